"""``labeldp preview``, ``compare`` and ``demo``: expected errors at each ε, without labels or from public ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from labeldp._atomic import atomic_file
from labeldp._values import Data, Epsilon, parse_choice, parse_integer
from labeldp.accounts.budget import rounded_up
from labeldp.app.cli.commands import command
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import (
    finite,
    print_json,
    print_result,
    print_status,
    print_table,
    progress,
)
from labeldp.app.options import (
    AsJson,
    Bounds,
    ColumnOptions,
    DialectOptions,
    Epsilons,
    Field,
    Force,
    Format,
    Label,
    Missing,
    Modules,
    Names,
    RowsPerPerson,
    Source,
)
from labeldp.app.sentences import as_flag, spelled
from labeldp.errors import MissingExtraError, ParameterError, Setting
from labeldp.evidence import previews
from labeldp.evidence.survey import make_survey
from labeldp.release.plan import mechanism_choices
from labeldp.tables.paths import Target, refuse_same

if TYPE_CHECKING:
    from labeldp.app.inputs import Rows
    from labeldp.evidence.comparison import Comparison

PAGE_TARGETS = {name: text for name, text in previews.NAMES.items() if name != "curator_mean"}
"""Errors that the page can choose an ε by: it releases no mean alone."""

Figures = Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]
"""Tables by their titles, each with its header and its lines."""


def _show(tables: Figures, notes: Sequence[str], records: Sequence[Data] | None = None) -> None:
    """Print tables and notes, or every figure in full, as JSON."""
    if records is not None:
        figures = [
            {name: finite(value) if isinstance(value, float) else value for name, value in record.items()}
            for record in records
        ]
        print_json(figures=figures, notes=[spelled(note, as_flag) for note in notes])
        return
    for title, (header, lines) in tables.items():
        print_table(header, lines, title)
    print_result(*notes)


def _save(figure: Any, plot: Path, *, force: bool = True) -> None:
    with atomic_file(plot, public=True, replace=force) as unfinished:
        figure.savefig(unfinished, dpi=150, format=plot.suffix[1:])


# ---- demo -----------------------------------------------------------------------------------------------


@command("Start here", "--rows 20000")
def demo(rows: Annotated[int, Option(help="Households in the synthetic survey.")] = 6_000) -> None:
    """Release one private column three ways, train three learners on each, and draw their predictions.

    Releases: nothing of yours. The survey is drawn at random; labeldp-demo.png and labeldp-report.html are
    written to the current folder, and replace older ones.
    """
    from labeldp.app.report import render_report, write_page
    from labeldp.evidence.recipients import Recipients

    survey = make_survey(rows)
    low, high = survey.bounds
    print_result(f"\nA synthetic survey of {rows:,} households, and one private column: the income.", style="bold")
    print_result(
        f"Age, schooling, region … are public, and so are the bounds of the income, ${low:,.0f} to ${high:,.0f}.\n"
        "Incomes are released in two ways, each for ε = 1, and learners that know nothing of noise are trained.\n"
    )
    recipients = Recipients.train(survey)
    lines = [
        [title, *(f"{score:.0%}" for score in scores.values())] for title, scores in recipients.scores().items()
    ]
    header = ["trained on", *next(iter(recipients.models.values()))]
    print_table(header, lines, "How much of new households' incomes each learner explains (R²)")
    print_result(
        "Both private columns cost the same: whoever sees one raises the odds on an income 2.7 times at most.\n"
    )
    write_page("labeldp-report.html", render_report(recipients.release.to_card()), force=True)
    print_result("labeldp-report.html is the report of the last one: open it in a browser.")
    try:
        picture = recipients.plot()
    except MissingExtraError:
        print_result('There is no picture: pip install "labeldp[plots]".')
    else:
        _save(picture, Path("labeldp-demo.png"))
        print_result("labeldp-demo.png is the picture, to show to others.")
    print_result("Next, a table of your own: labeldp page")


# ---- preview --------------------------------------------------------------------------------------------


@command("Plan", "--rows 20000 --bounds 0 200")
def preview(
    rows: Annotated[int, Option(help="Number of rows of the table.")],
    bounds: Bounds,
    epsilon: Epsilons = (),
    columns: Annotated[
        int | None, Option(help="Columns of a regression table, to show the ± of its intervals.")
    ] = None,
    target_error: Annotated[
        float | None,
        Option(help="Find the ε that reaches this error, in place of --epsilon."),
        Field("The error that you can accept"),
    ] = None,
    target: Annotated[
        str,
        Option(help=f"The figure that has --target-error: {', '.join(previews.TARGETS)}."),
        Field("In", {name: text.replace("label", "noisy value") for name, text in PAGE_TARGETS.items()}),
    ] = "mean",
    rows_per_person: RowsPerPerson = 1,
    as_json: AsJson = False,
) -> None:
    """Show expected errors at each ε: noise of labels and means, and the best error of a score or a model.

    Rows and bounds are enough. With --target-error the other way round: the least ε that reaches this error.

    Releases: nothing. No table is read, so no label can be, and nothing is spent.
    """
    result = previews.preview(
        rows=rows,
        bounds=bounds,
        epsilon=epsilon or None,
        columns=columns,
        rows_per_person=rows_per_person,
        target_error=target_error,
        target=target,
    )
    tables = {f"{rows:,} rows, by ε": result.table()}
    _show(tables, [*result.notes(), *result.cautions()], result.records() if as_json else None)


# ---- compare --------------------------------------------------------------------------------------------


@command("Plan", "homes.parquet --label price --bounds 0 5 --public --plot compare.png")
def compare(
    source: Source,
    label: Label,
    bounds: Bounds,
    public: Annotated[bool, Option(help="The labels are public, or synthetic.")] = False,
    epsilon: Epsilons = previews.DEFAULTS,
    mechanisms: Annotated[
        Names,
        Option(
            metavar="NAMES",
            help="Some of auto, laplace, rp, rr-on-bins, staircase, two-point and unbiased, with commas; by "
            "default all.",
        ),
    ] = (),
    repeats: Annotated[int, Option(help="Fits of each regressor at each ε: their errors vary by chance.")] = 2,
    *,
    columns: ColumnOptions,
    missing: Missing = "error",
    plot: Annotated[Path | None, Option(help="Draw the curves: a .png, .svg or .pdf file.")] = None,
    as_json: AsJson = False,
    force: Force = False,
    format: Format = None,
    dialect: DialectOptions,
    modules: Modules = (),
) -> None:
    """For PUBLIC labels only: show the error of each mechanism, regressor and ε.

    The error of one private label follows exactly from each mechanism's counts. Models are judged on a quarter of
    the rows, which they did not see, beside a constant and a model without privacy; ± is a standard error, by the
    choice of these rows and, with --repeats 2 or more, by the noise of fits.

    Releases: errors computed from the true labels, without noise. Private labels must not go in; labeldp
    preview plans for those, and reads none.
    """
    if not public:
        raise ParameterError(NOT_PUBLIC, option="public")
    from labeldp.evidence.comparison import compare_table

    import_modules(modules)
    parse_integer(repeats, "repeats", 1, 100)
    _refuse_plot(plot, source, force=force)
    budgets = sorted({Epsilon(budget) for budget in epsilon})
    mechanisms = [parse_choice(name, "mechanisms", mechanism_choices()) for name in mechanisms]
    print_status("These labels are treated as PUBLIC: errors are computed from them without noise.", style="bold")
    with progress() as bars:
        rows = _read_public(source, label, columns, missing=missing, format=format, dialect=dialect, progress=bars)
        result = compare_table(
            rows.public,
            rows.labels,
            bounds,
            budgets=budgets,
            mechanisms=mechanisms or mechanism_choices(),
            repeats=repeats,
            progress=bars,
        )
    _show(_tables(result, label), result.notes(), result.records() if as_json else None)
    if plot is not None:
        _save(result.plot(label), plot, force=force)
        print_status(f"The curves are in {plot}.")


def _read_public(source: str, label: str, columns: Data, **reading: Any) -> Rows:
    """Read a table whose labels are public."""
    from labeldp.app.file_job import FileJob
    from labeldp.app.inputs import Columns, read_rows

    rows = read_rows(FileJob(source=source, labels=(label,), **reading), Columns(**columns))
    print_status(*rows.notes)
    return rows


def _refuse_plot(plot: Path | None, source: str, *, force: bool) -> None:
    """Refuse a plot of another format, in another file's place, or without the package that draws it."""
    if plot is None:
        return
    if plot.suffix not in (".png", ".svg", ".pdf"):
        raise ParameterError(Setting("plot"), f" must end in .png, .svg or .pdf, got {plot}")
    import matplotlib  # noqa: F401 (an extra)

    refuse_same({"the plot": plot}, {"the table": source})
    Target(str(plot), force).refuse()


NOT_PUBLIC = (
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
