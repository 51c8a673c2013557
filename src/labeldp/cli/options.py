"""Options that several commands share, messages in the same words everywhere, and the table that they name."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from labeldp.errors import ParameterError
from labeldp.ledger import Budget, Ledger

if TYPE_CHECKING:
    from labeldp.files import Dialect


Source = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="A table: CSV, TSV, Excel, Parquet, Arrow or Feather; a file, a folder, a glob in quotes, or - for "
        "a pipe.",
    ),
]
Label = Annotated[str, typer.Option("--label", metavar="COLUMN", help="The private column, a number.")]
Bounds = Annotated[
    tuple[float, float],
    typer.Option(
        metavar="LOW HIGH",
        help="Public bounds of the label, known without looking at the data; labels outside are clipped.",
    ),
]
Epsilon = Annotated[
    float, typer.Option("--epsilon", "-e", metavar="ε", help="The whole budget; less is more private.")
]
Delta = Annotated[float, typer.Option(metavar="δ", help="δ, for mechanisms that need one; a model needs none.")]
_BUDGET: dict[str, Any] = {"rich_help_panel": "Budget"}
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="Keeps what was spent on these labels, and refuses more than its limit; created if new.",
        **_BUDGET,
    ),
]
Limit = Annotated[
    float | None, typer.Option(metavar="ε", help="The most ε that a new ledger ever lets be spent.", **_BUDGET)
]
LimitDelta = Annotated[
    float, typer.Option(metavar="δ", help="The most δ that a new ledger ever lets be spent.", **_BUDGET)
]
RowsPerPerson = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Rows that one person may have; the cost covers them all.", **_BUDGET),
]
Missing = Annotated[
    Literal["error", "drop"],
    typer.Option(
        metavar="error|drop",
        help="Rows whose label is missing or not finite: stop, or leave them out (which rows is public then).",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
_FORMATS = "csv, tsv, xlsx, parquet, arrow or arrow-stream"
InputFormat = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help=f"Format of IN, where its name does not tell: {_FORMATS}."),
]
Format = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"Format of IN and of OUT, where a name does not tell: {_FORMATS}."),
]
_TEXT: dict[str, Any] = {"rich_help_panel": "How a text file is written, where it does not show"}
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="MARK", help="What stands between values, such as ';' or tab; the header shows it.", **_TEXT
    ),
]
Decimal = Annotated[
    str | None, typer.Option(metavar="MARK", help="The decimal mark, . or ','; public columns show it.", **_TEXT)
]
Thousands = Annotated[
    str | None,
    typer.Option(
        metavar="MARK", help="The mark between thousands: . or ',' or space; public columns show it.", **_TEXT
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Such as latin-1 or utf-16; public columns show the usual ones.", **_TEXT),
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        "--na", metavar="WORD", help="A word for missing values beside the usual ones; may be repeated.", **_TEXT
    ),
]
Multiline = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The public column whose values may have line breaks, never the label.", **_TEXT
    ),
]
_HEADER: dict[str, Any] = {"rich_help_panel": "Names of columns, of text files and sheets"}
Header = Annotated[
    bool,
    typer.Option(
        "--header", help="The first row names the columns, though names read as numbers (years).", **_HEADER
    ),
]
Names = Annotated[
    str | None,
    typer.Option(metavar="COLUMNS", help="Names of all columns, such as a,b,c, if there is no header.", **_HEADER),
]
_SHEET: dict[str, Any] = {"rich_help_panel": "Excel"}
SheetName = Annotated[
    str | None, typer.Option("--sheet", metavar="NAME", help="Which sheet; by default the only one.", **_SHEET)
]
Formulas = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns whose formulas may be used, such as a,b: public ones that do not use the label, or the "
        "label itself, if each formula uses its own row only. Others are refused.",
        **_SHEET,
    ),
]
Features = Annotated[
    str | None, typer.Option(metavar="COLUMNS", help="Columns to learn from, such as a,b,c; all by default.")
]
Drop = Annotated[str | None, typer.Option(metavar="COLUMNS", help="Columns to leave out, such as id,name.")]
Categories = Annotated[
    str | None, typer.Option(metavar="COLUMNS", help="Columns of numbers that name things, such as zip,region.")
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a page (HTML) that explains it all.")
]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curves: a .png, .svg or .pdf file.")]
Budgets = Annotated[str, typer.Option(metavar="ε,ε,…", help="Values of ε, with commas.")]
Json = Annotated[bool, typer.Option("--json", help="For scripts: the same as JSON.")]


def split_names(text: str | None) -> list[str]:
    """Return what was given with commas between; a name that has a comma stands in quotes.

    Examples
    --------
    >>> split_names('id, name,"a,b"')
    ['id', 'name', 'a,b']
    """
    rows = csv.reader(io.StringIO(text or "", newline=""), skipinitialspace=True)
    return [name for row in rows for part in row if (name := part.strip())]


def as_dialect(
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    na: list[str] | None = None,
    sheet: str | None = None,
    formulas: str | None = None,
    *,
    header: bool = False,
    names: str | None = None,
    multiline: str | None = None,
) -> Dialect:
    """Return how a file is written, as far as it was said."""
    from labeldp.files import Dialect  # noqa: PLC0415 (an extra)

    listed = {"na": na or (), "formulas": split_names(formulas), "names": split_names(names)}
    return Dialect(
        separator, decimal, thousands, encoding, sheet=sheet, header=header, multiline=multiline, **listed
    )


def parse_numbers(text: str, name: str, example: str) -> list[float]:
    """Return numbers that were given with commas between."""
    try:
        numbers = [float(part) for part in split_names(text)]
    except ValueError:
        numbers = []
    if not numbers:
        raise ParameterError(f"{name} must be numbers with commas between them, such as {example}")
    return numbers


def refuse_plot(path: Path | None, *, force: bool) -> None:
    """Refuse a picture that could not be written, before any work."""
    if path is None:
        return
    from labeldp.files.places import refuse_target  # noqa: PLC0415 (an extra)
    from labeldp.report.figures import require_matplotlib  # noqa: PLC0415

    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"--plot must end in .png, .svg or .pdf, got {path}")
    refuse_target(str(path), force=force)
    require_matplotlib()


def open_ledger(path: Path | None, limit: float | None, limit_delta: float) -> Ledger:
    """Return the ledger to charge; a new file is created with its first charge, so that a refusal leaves none."""
    if limit is None and limit_delta:
        raise ParameterError("--limit-delta goes with --limit")
    budget = None if limit is None else Budget(limit, limit_delta)
    if path is not None:
        return Ledger.open(path, limit=budget, create="late")
    if budget is not None:
        raise ParameterError("--limit needs a ledger to keep it: add --ledger FILE")
    return Ledger()
