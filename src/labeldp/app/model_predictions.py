"""`predict_file`: a table and a private model in, the table with predictions out; no label is needed or read."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp._atomic import StrPath
from labeldp.app.inputs import tally_notes
from labeldp.errors import Message, ParameterError, Setting
from labeldp.learning.models import SavedModel, load_model
from labeldp.release.names import as_text, same_name
from labeldp.tables import opening
from labeldp.tables.arrow import arrow
from labeldp.tables.column_encoders import Tally
from labeldp.tables.dialect import Dialect
from labeldp.tables.opening import Progress
from labeldp.tables.paths import output_format, refuse_same
from labeldp.tables.tables import Table
from labeldp.tables.writer import TableWriter


@dataclass(frozen=True, slots=True)
class FilePredictions:
    """A table with predictions that was written.

    Attributes
    ----------
    rows : int
    label : str
        The label of the model.
    notes : list of str
        How the table was read, values that were missing or new to the model, which columns were copied, and which
        were not: true labels may be among them.
    """

    rows: int
    label: str
    notes: list[str]


def predict_file(
    model: StrPath,
    source: StrPath,
    out: StrPath,
    *,
    column: str = "prediction",
    keep: Sequence[str] = (),
    format: str | None = None,
    dialect: Dialect | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> FilePredictions:
    """Add a private model's predictions to a table, batch by batch, to a hundred-thousandth of the label's range.

    The output has the columns that the model uses, those in ``keep``, and the predictions. Any other column may
    hold true labels, whatever it is called and whatever the model says of it: it is left out, and not read. The
    column that the model predicts is never copied.

    Parameters
    ----------
    model : path
        The folder of a saved model.
    source, out, format, dialect, force, progress
        As in `labeldp.privatize_file`.
    column : str
        The name of the new column.
    keep : sequence of str
        Columns to copy though the model does not use them. With true labels among them ``out`` is not private; a
        column with the name of the model's label is refused.
    """
    refuse_same({"the predictions": out}, {"the table": source, "the model": model})
    column = as_text(column, "column")
    saved = load_model(model)
    report: Progress = progress or (lambda *_: None)
    report("Reading", 0, None)
    table = open_features(source, saved, keep, format, dialect)
    names = _copied_names(table, {*saved.encoder.names, *keep}, column)
    tally: Tally = Counter()
    rows = 0
    output = table.as_text()
    schema = arrow().schema([*map(output.schema.field, names), (column, arrow().float64())])
    dialect = table.dialect_for(output_format(os.fspath(out)))
    with TableWriter(out, schema, None, force, max_rights=table.rights, dialect=dialect) as writer:
        for batch in output.batches():
            predicted = _predict(saved, table.parse(batch, saved.encoder.names), tally)
            writer.write(batch.select(names).append_column(column, predicted))
            rows += batch.num_rows
            report("Predicting", rows, table.rows)
    notes = [*table.notes, *tally_notes(tally), *_column_notes(table, names)]
    return FilePredictions(rows, saved.label, notes)


def _copied_names(table: Table, copied: Collection[str], column: str) -> list[str]:
    """Return the names of the columns to copy; that of the predictions must be new."""
    names = [name for name in table.schema.names if name in copied]
    if column in names:
        raise ParameterError(
            f"the table has a column {column!r} already: rename it, or name another with ", Setting("column")
        )
    return names


def _predict(saved: SavedModel, features: Any, tally: Tally) -> Any:
    """Return predictions with six digits of the range of labels, as an Arrow array."""
    low, high = saved.card.terms.bounds[0]
    digits = 5 - math.floor(math.log10(high - low))
    return arrow().array(np.round(saved.predict(features, tally), digits))


def open_features(
    source: StrPath, saved: SavedModel, keep: Sequence[str], format: str | None, dialect: Dialect | None
) -> Table:
    """Open a table of which only the columns of a model and those to copy are read."""
    for name in keep:
        if same_name(name, saved.label):
            raise ParameterError(f"{name!r} is the label of the model: true labels are never copied")
    columns = {*saved.encoder.names, *keep}
    table = opening.open_table(source, format, text=saved.encoder.texts, only=columns, dialect=dialect)
    for name in keep:
        table.refuse_unknown(name, "keep")
    saved.encoder.check(table.schema, sorted(table.private))
    return table


def _column_notes(table: Table, copied: Sequence[str]) -> list[str]:
    """Return notes on columns that were copied, and on columns that were not."""
    notes = [f"Copied from the table: {', '.join(map(repr, copied)) or 'no column'}."]
    if left_out := sorted(table.private):
        names = ", ".join(map(repr, left_out[:12])) + (", …" if len(left_out) > 12 else "")
        reason = "Left out, because the model does not use them and they may hold true labels"
        notes.append(Message(f"{reason}: {names}. To copy columns, name them with ", Setting("keep"), "."))
    return notes
