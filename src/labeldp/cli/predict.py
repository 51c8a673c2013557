"""``labeldp predict``: a saved model's predictions for a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labeldp.cli import options
from labeldp.cli.shell import explained, news, progress, tell
from labeldp.jobs.model_predictions import predict_file


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder that labeldp fit wrote.")],
    source: options.Source,
    out: Annotated[str, typer.Option("--out", "-o", metavar="OUT", help="The table to write, or - for a pipe.")],
    column: Annotated[str, typer.Option(metavar="NAME", help="What to call the new column.")] = "prediction",
    keep_label: Annotated[
        bool, typer.Option("--keep-label", help="Copy the column of true labels too; OUT is not private then.")
    ] = False,
    drop: options.Drop = None,
    format: options.Format = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    na: options.Na = None,
    sheet: options.SheetName = None,
    formulas: options.Formulas = None,
    force: options.Force = False,
) -> None:
    """Add a private model's predictions to a table; its other columns stay as they are.

    Columns are found by name, in any order; those that the model does not know
    are only copied. Whatever is done with a private model costs no more ε.

    What leaves: OUT, with the columns of IN and the predictions. A column of
    true labels is left out unless you --keep-label: OUT would not be private.
    """
    console = news()
    with explained():
        with progress() as update:
            done = predict_file(
                model,
                source,
                out,
                column=column,
                keep_label=keep_label,
                drop=options.split_names(drop),
                format=format,
                dialect=options.as_dialect(separator, decimal, thousands, encoding, na, sheet, formulas),
                force=force,
                progress=update or (lambda *_: None),
            )
        tell(console, f"{done.rows:,} rows, with {done.label!r} as predicted in the column {column!r}: {out}")
        for note in done.notes:
            tell(console, note)
        if done.left_out:
            tell(console, f"The table's own column {done.label!r} was left out: --keep-label copies it.")
        elif done.copied:
            tell(
                console,
                f"The table's own column {done.label!r} was copied. If it holds true labels, the output is not "
                "private.",
            )
