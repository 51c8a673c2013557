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
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Copy these too, such as id,name. With true labels among them OUT is not private.",
        ),
    ] = None,
    drop: options.Drop = None,
    format: options.Format = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    na: options.Na = None,
    multiline: options.Multiline = None,
    header: options.Header = False,
    names: options.Names = None,
    sheet: options.SheetName = None,
    formulas: options.Formulas = None,
    force: options.Force = False,
) -> None:
    """Add a private model's predictions to a table.

    Columns are found by name, in any order. Whatever is done with a private model
    costs no more ε.

    What leaves: OUT, with the columns of IN that the model uses, those that you
    --keep, and the predictions. Other columns may hold true labels, whatever they
    are called: they are not read, and left out. The column that the model predicts
    is never copied.
    """
    console = news()
    with explained():
        with progress() as update:
            done = predict_file(
                model,
                source,
                out,
                column=column,
                keep=options.split_names(keep),
                drop=options.split_names(drop),
                format=format,
                dialect=options.as_dialect(
                    separator,
                    decimal,
                    thousands,
                    encoding,
                    na,
                    sheet,
                    formulas,
                    header=header,
                    names=names,
                    multiline=multiline,
                ),
                force=force,
                progress=update or (lambda *_: None),
            )
        tell(console, f"{done.rows:,} rows, with {done.label!r} as predicted in the column {column!r}: {out}")
        for note in done.notes:
            tell(console, note)
        for sentence in done.columns:
            tell(console, sentence)
        if done.left_out:
            tell(console, "--keep copies columns.")
        if keep:
            tell(console, "With true labels among the columns that you keep, the output is not private.")
