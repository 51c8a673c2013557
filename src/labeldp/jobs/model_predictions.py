"""`predict_file`: a table and a private model in, the table with predictions out; no label is needed or read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labeldp.errors import ParameterError
from labeldp.files.places import PIPE, refuse_same
from labeldp.jobs.inputs import tally_notes
from labeldp.tabular import Tally
from labeldp.tabular.arrow import arrow

if TYPE_CHECKING:
    from labeldp.files import Dialect


@dataclass(frozen=True, slots=True)
class FilePredictions:
    """A table with predictions that was written.

    Attributes
    ----------
    rows : int
    label : str
        What the model predicts.
    notes : list of str
        What is to be said of the table: how it was read, and values that were missing, or new to the model.
    left_out, copied : bool
        Whether the table has a column of that name itself, and what became of it.
    """

    rows: int
    label: str
    notes: list[str]
    left_out: bool
    copied: bool


def predict_file(
    model: str | os.PathLike[str],
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    column: str = "prediction",
    keep_label: bool = False,
    drop: Sequence[str] = (),
    format: str | None = None,
    dialect: Dialect | None = None,
    force: bool = False,
    progress: Callable[[str, int, int | None], None] = lambda *_: None,
) -> FilePredictions:
    """Add a private model's predictions to a table, batch by batch; its other columns stay as they are.

    Parameters
    ----------
    model : path
        The folder of a saved model.
    source, out, drop, format, dialect, force, progress
        As in `labeldp.files.privatize_file`.
    column : str
        What to call the new column.
    keep_label : bool
        Whether to copy a column that is named as the model's label. By default it is left out, and not read.
    """
    refuse_same({"the predictions": out}, {"the table": source, "the model": model})
    from labeldp.files import TableWriter, open_table  # noqa: PLC0415 (an extra)
    from labeldp.files.models import load_model  # noqa: PLC0415

    pa, saved = arrow(), load_model(model)
    progress("Reading", 0, None)
    left_out = drop if keep_label else [*drop, saved.label]
    table = open_table(source, format, text=saved.encoder.texts, drop=left_out, dialect=dialect)
    for name in drop:
        table.refuse_unknown(name)
    saved.encoder.check(table.schema)
    if column in table.schema.names:
        raise ParameterError(f"the table has a column {column!r} already: name another with --column")
    output = table.as_text()
    schema = output.schema.append(pa.field(column, pa.float64()))
    tally: Tally = Counter()
    rows, form = 0, format if out == PIPE else None
    with TableWriter(out, schema, form, force, dialect=table.dialect_for) as writer:
        for batch in output.batches():
            predicted = pa.array(saved.predict(table.parse(batch, saved.encoder.names), tally))
            writer.write(pa.RecordBatch.from_arrays([*batch.columns, predicted], schema=schema))
            rows += batch.num_rows
            progress("Predicting", rows, table.rows)
    return FilePredictions(
        rows,
        saved.label,
        [*table.notes, *tally_notes(tally)],
        saved.label in table.private,
        saved.label in table.schema.names,
    )
