"""``labeldp preview``, ``compare`` and ``demo``: what each ε would give, without labels or from public ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labeldp._atomic import atomic_file
from labeldp._values import Data, Epsilon, parse_choice
from labeldp.accounts.budget import rounded_up
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import number
from labeldp.app.cli import DIALECT, command
from labeldp.app.cli.shell import PlainConsole, figure_table, finite, news, print_json, progress, tell
from labeldp.app.inputs import read_inputs
from labeldp.app.options import EPSILONS
from labeldp.app.report import write_report
from labeldp.app.sentences import as_flag, spelled, without_controls
from labeldp.errors import ParameterError, Setting
from labeldp.evidence import previews
from labeldp.evidence.comparison import Comparison, compare_table
from labeldp.evidence.survey import make_survey
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.registry import mechanism_class
from labeldp.release.arrays import privatize
from labeldp.release.plan import mechanism_choices
from labeldp.tables.paths import Target, refuse_same

FORMS = ("csv", "latex", "as_json")

_MOST = 8000
"""Rows of the demo's models: enough to show the price, and no long wait."""


# ---- figures in their forms -----------------------------------------------------------------------------


class Figures(NamedTuple):
    """What a command has to show: tables by their titles, sentences, and every figure in full."""

    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]
    notes: Sequence[str]
    records: Sequence[Data]


def _refuse(files: Mapping[str, Path | None], *, force: bool, source: str | None = None) -> None:
    """Refuse files that cannot be written, before any work."""
    refuse_same({f"the {kind} file": path for kind, path in files.items()}, {"the table": source})
    for path in filter(None, files.values()):
        Target(str(path), force).refuse()


def _write(figures: Figures, csv: Path | None, latex: Path | None, *, force: bool) -> None:
    """Write every figure as CSV, and the tables as LaTeX, where these files are named."""
    tables = "\n".join(_as_latex(title, *table) for title, table in figures.tables.items())
    for path, text in ((csv, _as_csv(figures.records)), (latex, tables)):
        if path is not None:
            with atomic_file(path, public=True, replace=force) as unfinished:
                unfinished.write_text(text, encoding="utf-8", newline="\n")
            tell(news(), f"The figures are in {path}.")


def _as_csv(records: Sequence[Data]) -> str:
    """Return every figure in full."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {mark: f"\\{mark}" for mark in "&%$#_{}"}
_LATEX |= {"ε": r"$\varepsilon$", "±": r"$\pm$", "×": r"$\times$", "≈": r"$\approx$", "–": "--"}


def _as_latex(title: str, header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table of LaTeX, with the rules of the package booktabs."""
    head, *body = (
        " & ".join("".join(_LATEX.get(mark, mark) for mark in cell) for cell in row) + r" \\"
        for row in (header, *lines)
    )
    start = [f"% {without_controls(title)}", rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule"]
    return "\n".join([*start, head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""])


def _show(figures: Figures, *, as_json: bool = False) -> None:
    """Print figures: tables, which no pipe cuts, or JSON."""
    if as_json:
        records = [
            {name: finite(part) if isinstance(part, float) else part for name, part in record.items()}
            for record in figures.records
        ]
        print_json(figures=records, notes=[spelled(note, as_flag) for note in figures.notes])
        return
    console = PlainConsole()
    if not console.is_terminal:
        console.width = 1000
    for title, (header, lines) in figures.tables.items():
        console.print(figure_table(title, header, lines))
    tell(console, *figures.notes)


def _save(figure: Any, plot: Path) -> None:
    with atomic_file(plot, public=True) as unfinished:
        figure.savefig(unfinished, dpi=150, format=plot.suffix[1:])


# ---- preview --------------------------------------------------------------------------------------------


@command(
    *("rows", "bounds", "epsilon", "columns", "edges", "masses", "rows_per_person", *FORMS, "force"),
    epsilon=EPSILONS,
)
def preview(
    rows: int,
    edges: list[float] | None,
    masses: list[float] | None,
    csv: Path | None,
    latex: Path | None,
    as_json: bool,
    force: bool,
    **given: Any,
) -> None:
    """Say what each ε would give: noise of labels and means, and what a score or a model may reach.

    Rows and bounds are enough. A public distribution of the label makes the figures closer.

    What is released: nothing. No table is read, so no label can be, and nothing is spent.
    """
    _refuse({"CSV": csv, "LaTeX": latex}, force=force)
    if (edges is None) != (masses is None):
        between = " go together: one share less than there are edges"
        raise ParameterError(Setting("edges"), " and ", Setting("masses"), between)
    prior = None if edges is None or masses is None else Histogram(edges, masses)
    result = previews.preview(rows=rows, prior=prior, **given)
    tables = {f"{rows:,} rows: what each ε would give": result.table()}
    figures = Figures(tables, [*result.notes(), *result.cautions()], result.records())
    _show(figures, as_json=as_json)
    _write(figures, csv, latex, force=force)


# ---- compare --------------------------------------------------------------------------------------------


@command(
    *("source", "label", "bounds", "public", "epsilon", "mechanisms", "repeats", "features", "drop"),
    *("categories", "missing", "delta", "plot", *FORMS, "format", *DIALECT, "force", "modules"),
    epsilon=EPSILONS,
    label={"help": "The column to predict, a number. It must be public."},
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
    csv: Path | None,
    latex: Path | None,
    as_json: bool,
    force: bool,
    **reading: Any,
) -> None:
    """For PUBLIC labels only: show what each mechanism, regressor and ε would cost in accuracy.

    The error of one private label follows exactly from each mechanism's counts. Models are judged on a quarter of
    the rows, which they did not see, beside a constant and a model without privacy; ± is a standard error, by the
    choice of these rows and, with --repeats 2 or more, by the noise of fits.

    What is released: errors computed from the true labels, without noise. Private labels must not go in; labeldp
    preview plans for those, and reads none.
    """
    if not public:
        raise ParameterError(_NOT_PUBLIC, option="public")
    if plot is not None:
        if plot.suffix not in (".png", ".svg", ".pdf"):
            raise ParameterError(Setting("plot"), f" must end in .png, .svg or .pdf, got {plot}")
        import matplotlib  # noqa: F401, PLC0415 (an extra)
    _refuse({"plot": plot, "CSV": csv, "LaTeX": latex}, force=force, source=source)
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
    figures = _figures(result, label)
    _show(figures, as_json=as_json)
    _write(figures, csv, latex, force=force)
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
    return Figures(titled, comparison.notes(), comparison.records())


# ---- demo -----------------------------------------------------------------------------------------------


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
    console, survey = PlainConsole(), make_survey(rows)
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
        f"{number(survey.income.mean())}. The noise of one cancels out over many.\n",
    )
    with progress() as bars:
        result = compare_table(
            survey.features[:_MOST],
            survey.income[:_MOST],
            survey.bounds,
            budgets=(0.1, 0.5, 2.0),
            mechanisms=("laplace", "rp", "auto"),
            repeats=1,
            progress=bars,
        )
    tell(console, "What that costs at other ε: errors in dollars, on incomes that are no secret here.\n")
    _show(_figures(result, "income"))
    write_report(report, release.to_card(), force=True)
    tell(console, f"The report of the release at ε = 1 is in {report}: open it in a browser.")
    try:
        import matplotlib  # noqa: F401, PLC0415 (an extra)
    except ImportError:
        tell(console, 'There is no picture: pip install "labeldp[plots]".')
        return
    _save(result.plot("income"), plot)
    tell(console, f"The picture is in {plot}.")
