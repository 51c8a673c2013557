"""Options that several commands share, said in the same words everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from labeldp.errors import ParameterError
from labeldp.ledger import Budget, Ledger

__all__ = [
    "Bounds",
    "Categories",
    "Delta",
    "Drop",
    "Epsilon",
    "Features",
    "Force",
    "Format",
    "InputFormat",
    "Label",
    "LedgerFile",
    "Limit",
    "LimitDelta",
    "Missing",
    "Policy",
    "Report",
    "RowsPerPerson",
    "Source",
    "listed",
    "open_ledger",
]


class Policy(StrEnum):
    """What to do with rows whose label is missing."""

    error = "error"
    drop = "drop"


Source = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="A table: CSV, TSV, Parquet, Arrow or Feather; a file, a folder, a glob in quotes, or - for a pipe.",
        show_default=False,
    ),
]
Label = Annotated[str, typer.Option("--label", help="The private column, a number.", show_default=False)]
Bounds = Annotated[
    tuple[float, float],
    typer.Option(
        metavar="LOW HIGH",
        help="Public bounds of the label, known without looking at the data; labels outside are clipped.",
        show_default=False,
    ),
]
Epsilon = Annotated[
    float, typer.Option("--epsilon", "-e", help="The whole budget; less is more private.", show_default=False)
]
Delta = Annotated[float, typer.Option(help="δ for Gaussian noise; 0 is pure ε.")]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger", help="File that keeps what was spent on these labels; made if new.", show_default=False
    ),
]
Limit = Annotated[
    float | None, typer.Option(help="The most ε that a new ledger ever lets be spent.", show_default=False)
]
LimitDelta = Annotated[float, typer.Option(help="The most δ that a new ledger ever lets be spent.")]
RowsPerPerson = Annotated[
    int, typer.Option(min=1, help="Rows that one person may have; the cost covers them all.")
]
Missing = Annotated[
    Policy,
    typer.Option(
        help="Rows whose label is missing or not finite: stop, or leave them out (which rows is public then)."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
_FORMATS = "csv, tsv, parquet, arrow or arrow-stream"
InputFormat = Annotated[
    str | None,
    typer.Option("--format", help=f"Format of IN, where its name does not tell: {_FORMATS}.", show_default=False),
]
Format = Annotated[
    str | None,
    typer.Option(help=f"Format of IN and of OUT, where a name does not tell: {_FORMATS}.", show_default=False),
]
Features = Annotated[
    str | None, typer.Option(help="Columns to learn from, such as a,b,c; all by default.", show_default=False)
]
Drop = Annotated[str | None, typer.Option(help="Columns to leave out, such as id,name.", show_default=False)]
Categories = Annotated[
    str | None, typer.Option(help="Columns of numbers that name things, such as zip,region.", show_default=False)
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Write a page (HTML) that explains it all.", show_default=False)
]


def listed(text: str | None) -> list[str]:
    """Return what was given with commas between."""
    return [name for part in (text or "").split(",") if (name := part.strip())]


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
