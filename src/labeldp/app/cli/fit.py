"""``labeldp fit``, ``regress`` and ``predict``: private models, regression tables, and predictions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from labeldp.accounts.ledger import Ledger, ledger_notes
from labeldp.app.cli import DIALECT, LEDGER, RECORD, command
from labeldp.app.cli.shell import PlainConsole, hints_note, hints_on_screen, news, progress, tell
from labeldp.app.model_fit import fit_file
from labeldp.app.model_predictions import predict_file
from labeldp.app.regression import regress_file


@command(
    *("source", "label", "bounds", "epsilon", "out", "release", "features", "drop", "categories", "missing"),
    *(*LEDGER, "rows_per_person", *RECORD, "label_transform", "score", "format", *DIALECT, "force"),
    stopped="Stopped. A model that is there is whole; the ledger, if there is one, says what was paid.",
    out={"type": Path, "metavar": "FOLDER", "help": "The folder for the model."},
)
def fit(out: Path, ledger: Ledger, release: str, **given: Any) -> None:
    """Learn to predict a private column, and save a model that is ε-differentially private for every label.

    All other columns are public features: numbers, booleans, dates and text, and values may be missing. The budget
    is charged after everything that can be checked without labels.

    What is released: the model's folder, with the model as plain numbers and its card. With --release labels,
    private labels are in it too; true labels never are.
    """
    with progress() as bars:
        hints = hints_on_screen(bars, "Fit a model to these columns?")
        done = fit_file(out=out, ledger=ledger, release=release, progress=bars, hints=hints, **given)
    places = [f"The model is in {out}:  labeldp predict {shlex.quote(str(out))} TABLE -o OUT"]
    if release == "labels":
        places.append(f"The private labels are in {out / 'release.npz'} too; both may be made public.")
    tell(PlainConsole(), done.summary, *done.notes, *hints_note(hints), *places, *ledger_notes(ledger))
    if done.score_error is not None:
        tell(news(), "How good the model is could not be measured.", style="red")
        raise done.score_error


@command(
    *("source", "label", "bounds", "epsilon", "on", "out", "missing"),
    *(*LEDGER, "rows_per_person", *RECORD, "format", *DIALECT, "force"),
    stopped="Stopped. A table that is there is whole; the ledger, if there is one, says what was paid.",
    out={"type": Path, "metavar": "FILE", "help": "The table to write: .html (a report), .csv, .tex or .txt."},
    missing={"help": "Rows without a label, or with a gap in a column that is used: stop, or leave them out."},
)
def regress(out: Path, ledger: Ledger, **given: Any) -> None:
    """Estimate a linear regression of a private column: coefficients, standard errors, intervals and p-values.

    All other columns are public. Intervals include the noise. The budget is charged after
    everything that can be checked without labels.

    What is released: the table and its card, OUT.card.json. True labels are in neither.
    """
    with progress() as bars:
        hints = hints_on_screen(bars, "Estimate the regression on these columns?")
        done = regress_file(out=out, ledger=ledger, progress=bars, hints=hints, **given)
    tell(news(), *done.notes, *hints_note(hints))
    places = f"The table is in {out}, its card in {done.card}:  labeldp verify {done.card}"
    tell(PlainConsole(), done.table.summary(), places, *ledger_notes(ledger))


@command(
    *("model", "source", "out", "column", "keep", "format", *DIALECT, "force"),
    out={"help": "The table to write."},
)
def predict(out: str, column: str, keep: list[str], **given: Any) -> None:
    """Add a private model's predictions to a table.

    Columns are found by name, in any order. Whatever is done with a private model costs no more ε.

    What is released: OUT, with the columns of IN that the model uses, those that you --keep, and the predictions.
    Other columns may hold true labels, whatever they are called: they are not read, and left out. The column that
    the model predicts is never copied.
    """
    with progress() as bars:
        done = predict_file(out=out, column=column, keep=keep, progress=bars, **given)
    said = f"{done.rows:,} rows, with {done.label!r} as predicted in the column {column!r}: {out}"
    tell(news(), said, *done.notes)
    if keep:
        tell(news(), "With true labels among the columns that you keep, the output is not private.")
