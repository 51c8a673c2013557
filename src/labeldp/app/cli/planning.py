"""``labeldp preview``, ``compare`` and ``demo``: what each ε would give, without labels or from public ones."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from labeldp._atomic import atomic_file
from labeldp._values import Epsilon, parse_choice
from labeldp.accounts.budget import rounded_up
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import number
from labeldp.app.cli import DIALECT, command
from labeldp.app.cli.figure_forms import FORMS, Figures, parse_form, print_figures
from labeldp.app.cli.shell import PlainConsole, news, progress, tell
from labeldp.app.inputs import read_inputs
from labeldp.app.options import EPSILONS
from labeldp.app.report import require_matplotlib, write_report
from labeldp.errors import MissingExtraError, ParameterError, Setting, WeakModelWarning
from labeldp.evidence import previews
from labeldp.evidence.comparison import Comparison, compare_table
from labeldp.evidence.survey import Survey, make_survey
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.score import private_score
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.registry import mechanism_class
from labeldp.release.arrays import privatize
from labeldp.release.plan import mechanism_choices
from labeldp.tables.paths import Target, refuse_same

_MOST = 8000
"""Rows of the demo's models: enough to show the price, and no long wait."""


@command(
    *("rows", "bounds", "epsilon", "edges", "masses", "rows_per_person", *FORMS),
    epsilon=EPSILONS,
)
def preview(rows: int, edges: list[float] | None, masses: list[float] | None, **given: Any) -> None:
    """Say what each ε would give: noise of labels and means, and what a score or a model may reach.

    Rows and bounds are enough. A public distribution of the label makes the figures closer.

    What is released: nothing. No table is read, so no label can be, and nothing is spent.
    """
    form = parse_form(given)
    if (edges is None) != (masses is None):
        between = " go together: one share less than there are edges"
        raise ParameterError(Setting("edges"), " and ", Setting("masses"), between)
    prior = None if edges is None or masses is None else Histogram(edges, masses)
    result = previews.preview(rows=rows, prior=prior, **given)
    tables = {f"{rows:,} rows: what each ε would give": result.table()}
    print_figures(Figures(tables, [*result.notes(), *result.cautions()], result.records()), form)


def _refuse_plot(plot: Path | None, *, force: bool) -> None:
    """Refuse a picture that cannot be written, before any work."""
    if plot is None:
        return
    if plot.suffix not in (".png", ".svg", ".pdf"):
        raise ParameterError(Setting("plot"), f" must end in .png, .svg or .pdf, got {plot}")
    Target(str(plot), force).refuse()
    require_matplotlib()


def _save(figure: Any, plot: Path) -> None:
    with atomic_file(plot, public=True) as unfinished:
        figure.savefig(unfinished, dpi=150, format=plot.suffix[1:])


@command(
    *("source", "label", "bounds", "public", "epsilon", "mechanisms", "repeats", "features", "drop"),
    *("categories", "missing", "delta", "plot", *FORMS, "format", *DIALECT, "force"),
    epsilon=EPSILONS,
)
def compare(
    source: str,
    label: str,
    bounds: tuple[float, float],
    public: bool,
    epsilon: list[float],
    mechanisms: list[str],
    repeats: int,
    delta: float,
    plot: Path | None,
    force: bool,
    **reading: Any,
) -> None:
    """For PUBLIC labels only: show what each mechanism, regressor and ε would cost in accuracy.

    The error of one private label follows exactly from each mechanism's counts. Models are judged on a quarter of
    the rows, which they did not see, beside a constant and a model without privacy; ± is a standard error, by the
    noise of fits and by the choice of rows.

    What is released: errors computed from the true labels, without noise. Private labels must not go in; labeldp
    preview plans for those, and reads none.
    """
    if not public:
        raise ParameterError(_NOT_PUBLIC, option="public")
    form = parse_form(reading)
    refuse_same({"the plot": plot}, {"the table": source})
    _refuse_plot(plot, force=force)
    known = [
        name for name in mechanism_choices() if delta or name == "auto" or not mechanism_class(name).needs_delta
    ]
    for name in mechanisms:
        parse_choice(name, "mechanisms", known)
    budgets = sorted({Epsilon(each) for each in epsilon})
    tell(news(), "These labels are treated as PUBLIC: errors are computed from them without noise.", style="bold")
    with progress() as bars:
        inputs = read_inputs(source, label, progress=bars, **reading)
        tell(news(), *inputs.notes)
        result = compare_table(
            inputs.X,
            inputs.labels,
            bounds,
            budgets=budgets,
            mechanisms=mechanisms or known,
            delta=delta,
            repeats=repeats,
            progress=bars,
        )
    print_figures(_figures(result, label), form)
    if plot is not None:
        _save(result.plot(label), plot)
        tell(news(), f"The curves are in {plot}.")


_NOT_PUBLIC = (
    "compare is for PUBLIC labels: it shows errors that are computed from them without noise. On private labels "
    "that would spend budget that nobody counts. Use a public or synthetic table like yours, and say so with "
    "--public; or privatize once, and compare learners on the release; labeldp preview reads no label at all"
)


def _figures(comparison: Comparison, label: str) -> Figures:
    """Return the tables of labels and of models, and what to do."""
    header = ["", *(f"ε = {rounded_up(epsilon)}" for epsilon in comparison.budgets)]
    tables = {
        f"One private {label!r}: typical error, exact by the mechanism's counts": comparison.table("label"),
        f"Predicting {label!r}: typical error on held-out rows": comparison.table("model"),
    }
    titled = {title: (header, lines) for title, lines in tables.items()}
    return Figures(titled, comparison.advice(), comparison.records())


@command(
    *("rows", "plot", "report"),
    rows={"default": 20_000, "help": "Households in the synthetic survey."},
    plot={"default": Path("labeldp-demo.png"), "help": "Where to save the picture."},
    report={"default": Path("labeldp-report.html"), "help": "Where to write the report."},
)
def demo(rows: int, plot: Path, report: Path) -> None:
    """Randomise the incomes of a synthetic survey, train private models, and show what that costs and protects.

    What is released: nothing of yours. The survey is drawn at random; the picture and the report are written to
    the current folder, and replace older ones.
    """
    console = PlainConsole()
    survey = make_survey(rows)
    low, high = survey.bounds
    tell(console, f"\nA synthetic survey of {rows:,} households.", style="bold")
    tell(
        console,
        "Age, schooling, region … are public; the income is private, asked as "
        f"${low:,.0f} to ${high:,.0f} (these bounds are public).\n",
    )
    release = privatize(survey.income, epsilon=1.0, bounds=survey.bounds, ledger=Ledger())
    typical = float(np.sqrt(np.mean((release.debiased - survey.income) ** 2)))
    tell(
        console,
        release.summary(),
        f"\nThese incomes are no secret, so the error can be seen: one private income is off by "
        f"±{number(typical, 3)}, and their mean is {number(release.debiased.mean())}, in truth "
        f"{number(survey.income.mean())}. Noise averages out over many.\n",
    )
    with progress() as bars:
        result = compare_table(
            survey.features[:_MOST],
            survey.income[:_MOST],
            survey.bounds,
            budgets=(0.1, 0.5, 2.0),
            mechanisms=("laplace", "rp", "auto"),
            progress=bars,
        )
    tell(console, "What that costs at other ε: errors in dollars, on incomes that are no secret here.\n")
    print_figures(_figures(result, "income"), "")
    tell(console, _score(survey), style="dim")
    try:
        require_matplotlib()
    except MissingExtraError as error:
        tell(console, f"No picture and no report: {error}")
        return
    _save(result.plot("income"), plot)
    write_report(report, release.to_card(), force=True)
    tell(
        console,
        f"The picture is in {plot}.",
        f"The report of the release at ε = 1 is in {report}: open it in a browser.",
    )


def _score(survey: Survey) -> str:
    """Fit one model, measure its error privately, and say what both cost."""
    X, y = survey.features[:_MOST], survey.income[:_MOST]
    test, train = slice(0, len(y) // 4), slice(len(y) // 4, None)
    ledger = Ledger()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)  # of few rows; its score says so
        model = ModelReleaseRegressor(epsilon=2.0, bounds=survey.bounds, ledger=ledger).fit(X[train], y[train])
    score = private_score(model, X[test], y[test], epsilon=0.5, bounds=survey.bounds, ledger=ledger)
    return (
        "\nHow wrong is a model? That can be measured privately too, on rows that were held out: labeldp fit "
        "--score, private_score in Python. For ε = 0.5 more, a model at ε = 2 has a typical error (RMSE) of "
        f"{score.figures['rmse']}; together they cost {ledger.total}. Each release of the same incomes costs "
        "again, so choose one where incomes are real.\n"
    )
