"""``labeldp predict``: a saved model's predictions for a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labeldp.app.cli.command import DIALECT, command
from labeldp.app.cli.shell import news, progress, tell
from labeldp.app.model_predictions import predict_file


@command(
    *("model", "source", "out", "column", "keep", "drop", "format", *DIALECT, "force"),
    out={"help": "The table to write, or - for a pipe."},
)
def predict(model: Path, source: str, out: str, column: str, keep: list[str], **given: Any) -> None:
    """Add a private model's predictions to a table.

    Columns are found by name, in any order. Whatever is done with a private model costs no more ε.

    What is released: OUT, with the columns of IN that the model uses, those that you --keep, and the predictions.
    Other columns may hold true labels, whatever they are called: they are not read, and left out. The column that
    the model predicts is never copied.
    """
    console = news()
    with progress() as update:
        done = predict_file(model, source, out, column=column, keep=keep, progress=update, **given)
    tell(console, f"{done.rows:,} rows, with {done.label!r} as predicted in the column {column!r}: {out}")
    for sentence in (*done.notes, *done.columns):
        tell(console, sentence)
    if done.left_out:
        tell(console, "--keep copies columns.")
    if keep:
        tell(console, "With true labels among the columns that you keep, the output is not private.")
