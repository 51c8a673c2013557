"""``labeldp preview`` and ``demo``: what each ε would give, and the main job on a synthetic survey."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from labeldp._atomic import atomic_file
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import number
from labeldp.app.cli import command
from labeldp.app.cli.shell import PlainConsole, figure_table, tell
from labeldp.app.options import EPSILONS
from labeldp.app.report import require_matplotlib, write_report
from labeldp.errors import MissingExtraError, ParameterError, Setting
from labeldp.evidence import previews
from labeldp.evidence.survey import Survey, make_survey
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.score import private_score
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.arrays import privatize
from labeldp.tables.paths import Target


@command(
    *("rows", "bounds", "epsilon", "wanted", "edges", "masses", "rows_per_person", "plot", "force"),
    epsilon=EPSILONS,
)
def preview(
    rows: int, edges: list[float] | None, masses: list[float] | None, plot: Path | None, force: bool, **given: Any
) -> None:
    """Say what each ε would give: noise of labels and means, and what a score or a model may reach.

    Rows and bounds are enough. A public distribution of the label makes the figures closer.

    What is released: nothing. No table is read, so no label can be, and nothing is spent.
    """
    if plot is not None:
        if plot.suffix not in (".png", ".svg", ".pdf"):
            raise ParameterError(Setting("plot"), f" must end in .png, .svg or .pdf, got {plot}")
        Target(str(plot), force).refuse()
        require_matplotlib()
    if (edges is None) != (masses is None):
        between = " go together: one share less than there are edges"
        raise ParameterError(Setting("edges"), " and ", Setting("masses"), between)
    prior = None if edges is None or masses is None else Histogram(edges, masses)
    result = previews.preview(rows=rows, prior=prior, **given)
    console = PlainConsole()
    console.print(figure_table(f"{rows:,} rows: what each ε would give", *result.table()))
    tell(console, *result.notes(), *result.cautions())
    if plot is not None:
        _draw(result, plot)
        tell(console, f"The curves are in {plot}.")


def _draw(result: previews.Preview, plot: Path) -> None:
    with atomic_file(plot, public=True) as unfinished:
        result.plot().savefig(unfinished, dpi=150, format=plot.suffix[1:])


@command(
    *("rows", "plot", "report"),
    rows={"default": 20_000, "help": "Households in the synthetic survey."},
    plot={"default": Path("labeldp-demo.png"), "help": "Where to save the picture."},
    report={"default": Path("labeldp-report.html"), "help": "Where to write the report."},
)
def demo(rows: int, plot: Path, report: Path) -> None:
    """Randomise the incomes of a synthetic survey, train a private model, and show what that costs and protects.

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
    result = previews.preview(rows=rows, bounds=survey.bounds)
    console.print(figure_table("What other ε would give, in dollars", *result.table()))
    tell(console, _score(survey), style="dim")
    try:
        require_matplotlib()
    except MissingExtraError as error:
        tell(console, f"No picture and no report: {error}")
        return
    _draw(result, plot)
    write_report(report, release.to_card(), force=True)
    tell(
        console,
        f"The picture is in {plot}.",
        f"The report of the release at ε = 1 is in {report}: open it in a browser.",
    )


def _score(survey: Survey) -> str:
    """Fit one model, measure its error privately, and say what both cost."""
    X, y = survey.features[:8000], survey.income[:8000]  # enough to show the price, and no wait
    test, train = slice(0, len(y) // 4), slice(len(y) // 4, None)
    ledger = Ledger()
    model = ModelReleaseRegressor(epsilon=2.0, bounds=survey.bounds, ledger=ledger).fit(X[train], y[train])
    score = private_score(model, X[test], y[test], epsilon=0.5, bounds=survey.bounds, ledger=ledger)
    return (
        "\nprivate_score measures the error of a model privately, on labels that were held out. For a further "
        f"ε = 0.5 it estimates the error of a model at ε = 2 as {score.figures['rmse']}; together they cost "
        f"{ledger.total}. Each release of the same incomes costs again, so choose one where incomes are real.\n"
    )
