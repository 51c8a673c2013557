"""``labeldp preview``, ``compare`` and ``demo``: what each ε would give, without labels or from public ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from labeldp._atomic import atomic_file
from labeldp._values import Data, Epsilon, parse_choice
from labeldp.accounts.budget import rounded_up
from labeldp.accounts.cells import as_csv, latex_tabular
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import number
from labeldp.app.cli import DIALECT, command
from labeldp.app.cli.shell import PlainConsole, finite, news, print_json, progress, tell
from labeldp.app.inputs import read_rows
from labeldp.app.options import EPSILONS
from labeldp.app.report import render_report, write_page
from labeldp.app.sentences import as_flag, spelled, without_controls
from labeldp.errors import ParameterError, Setting
from labeldp.evidence import previews
from labeldp.evidence.comparison import Comparison, compare_table
from labeldp.evidence.survey import make_survey
from labeldp.release.arrays import privatize
from labeldp.release.plan import mechanism_choices
from labeldp.tables.paths import Target, refuse_same

_MOST = 8000
"""Rows of the demo's models: enough to show the price, and no long wait."""

Figures = Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]
"""Tables by their titles, each with its header and its lines."""

FORMS = ("csv", "latex", "as_json", "force")


def _refuse(files: Mapping[str, Path | None], *, force: bool, source: str | None = None) -> None:
    """Refuse files that cannot be written, before any work."""
    refuse_same({f"the {kind} file": path for kind, path in files.items()}, {"the table": source})
    for path in filter(None, files.values()):
        Target(str(path), force).refuse()


def _write(tables: Figures, records: Sequence[Data], csv: Path | None, latex: Path | None, *, force: bool) -> None:
    """Write every figure as CSV, and the tables as LaTeX, where these files are named."""
    rows = as_csv([records[0], *(record.values() for record in records)])
    lines: list[str] = []
    for title, (header, body) in tables.items():
        lines += [f"% {without_controls(title)}", *latex_tabular([header, *body]), ""]
    for path, text in ((csv, rows), (latex, "\n".join(lines))):
        if path is not None:
            with atomic_file(path, public=True, replace=force) as unfinished:
                unfinished.write_text(text, encoding="utf-8", newline="\n")
            tell(news(), f"The figures are in {path}.")


def _show(tables: Figures, notes: Sequence[str], records: Sequence[Data] | None = None) -> None:
    """Print tables, which no pipe cuts, and notes; or every figure in full, as JSON."""
    if records is not None:
        figures = [
            {name: finite(part) if isinstance(part, float) else part for name, part in record.items()}
            for record in records
        ]
        print_json(figures=figures, notes=[spelled(note, as_flag) for note in notes])
        return
    console = PlainConsole()
    if not console.is_terminal:
        console.width = 1000
    for title, (header, lines) in tables.items():
        table = Table(title=title, title_justify="left")
        for k, name in enumerate(header):
            table.add_column(name, justify="right" if k else "left", overflow="fold")
        for line in lines:
            table.add_row(*line)
        console.print(table)
    tell(console, *notes)


def _save(figure: Any, plot: Path, *, force: bool = True) -> None:
    with atomic_file(plot, public=True, replace=force) as unfinished:
        figure.savefig(unfinished, dpi=150, format=plot.suffix[1:])


# ---- preview --------------------------------------------------------------------------------------------


@command("rows", "bounds", "epsilon", "columns", "rows_per_person", *FORMS, epsilon=EPSILONS)
def preview(rows: int, csv: Path | None, latex: Path | None, as_json: bool, force: bool, **given: Any) -> None:
    """Say what each ε would give: noise of labels and means, and what a score or a model may reach.

    Rows and bounds are enough.

    What is released: nothing. No table is read, so no label can be, and nothing is spent.
    """
    _refuse({"CSV": csv, "LaTeX": latex}, force=force)
    result = previews.preview(rows=rows, **given)
    tables = {f"{rows:,} rows: what each ε would give": result.table()}
    _show(tables, [*result.notes(), *result.cautions()], result.records() if as_json else None)
    _write(tables, result.records(), csv, latex, force=force)


# ---- compare --------------------------------------------------------------------------------------------


@command(
    *("source", "label", "bounds", "public", "epsilon", "mechanisms", "repeats", "features", "drop"),
    *("categories", "missing", "plot", *FORMS, "format", *DIALECT, "modules"),
    epsilon=EPSILONS,
    label={"help": "The column to predict, a number. It must be public."},
)
def compare(
    source: str,
    label: str,
    public: bool,
    epsilon: list[float],
    mechanisms: list[str],
    plot: Path | None,
    csv: Path | None,
    latex: Path | None,
    as_json: bool,
    force: bool,
    **given: Any,
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
    known = mechanism_choices()
    for name in mechanisms:
        parse_choice(name, "mechanisms", known)
    budgets = sorted({Epsilon(each) for each in epsilon})
    tell(news(), "These labels are treated as PUBLIC: errors are computed from them without noise.", style="bold")
    columns = {option: given.pop(option) for option in ("features", "drop", "categories")}
    fits = {option: given.pop(option) for option in ("bounds", "repeats")}
    with progress() as bars:
        rows = read_rows(source, label, columns=columns, progress=bars, **given)
        tell(news(), *rows.notes)
        fits |= {"budgets": budgets, "mechanisms": mechanisms or known, "progress": bars}
        result = compare_table(rows.public, rows.labels, **fits)
    tables = _tables(result, label)
    _show(tables, result.notes(), result.records() if as_json else None)
    _write(tables, result.records(), csv, latex, force=force)
    if plot is not None:
        _save(result.plot(label), plot, force=force)
        tell(news(), f"The curves are in {plot}.")


_NOT_PUBLIC = (
    "compare is for PUBLIC labels: it shows errors that are computed from them without noise. On private labels "
    "that would spend budget that nobody counts. Use a public or synthetic table like yours, and say so with "
    "--public; or privatize once, and compare learners on the release; labeldp preview reads no label at all"
)


def _tables(comparison: Comparison, label: str) -> Figures:
    """Return the tables of labels and of models."""
    header = ["", *(f"ε = {rounded_up(epsilon)}" for epsilon in comparison.budgets)]
    return {
        f"One private {label!r}: typical error, exact by the mechanism's counts": (
            header,
            comparison.table("label"),
        ),
        f"Predicting {label!r}: typical error on held-out rows": (header, comparison.table("model")),
    }


# ---- demo -----------------------------------------------------------------------------------------------


@command("rows", rows={"default": 20_000, "help": "Households in the synthetic survey."})
def demo(rows: int) -> None:
    """Randomise the incomes of a synthetic survey, train private models, and show what that costs and protects.

    What is released: nothing of yours. The survey is drawn at random; labeldp-demo.png and labeldp-report.html are
    written to the current folder, and replace older ones.
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
    tell(
        console,
        release.summary(),
        f"\nThese incomes are no secret, so the error can be seen: the mean of all private incomes is "
        f"{number(release.debiased.mean())}, in truth {number(survey.income.mean())}.\n",
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
    _show(_tables(result, "income"), result.notes())
    write_page("labeldp-report.html", render_report(release.to_card()), force=True)
    tell(console, "The report of the release at ε = 1 is in labeldp-report.html: open it in a browser.")
    try:
        import matplotlib  # noqa: F401, PLC0415 (an extra)
    except ImportError:
        tell(console, 'There is no picture: pip install "labeldp[plots]".')
        return
    _save(result.plot("income"), Path("labeldp-demo.png"))
    tell(console, "The picture is in labeldp-demo.png.")
