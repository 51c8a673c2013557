"""A table's rows on their way from file to file, and what its card says of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._arrow import arrow
from labeldp.errors import DataError, ParameterError
from labeldp.files.ahead import ahead
from labeldp.files.drafts import is_folder
from labeldp.files.hints import Watch
from labeldp.files.labels import label_values
from labeldp.files.rows import taken
from labeldp.files.sources import PIPE
from labeldp.files.table import Table
from labeldp.files.text import DELIMITERS
from labeldp.files.writer import TableWriter
from labeldp.stream import LabelStream

__all__ = ["Job", "Progress"]

Progress = Callable[[str, int, int | None], None]
DROPPED = "metadata of the files and columns, row groups, file names, sort orders"


class Job:
    """The way of one table's rows from file to file."""

    def __init__(self, table: Table, label: str, debiased: str, drop: bool, progress: Progress) -> None:
        pa = arrow().core
        self.table, self.label, self.drop, self.progress = table, label, drop, progress
        self.debiased = debiased
        self.second = f"{label}_debiased" if debiased == "add" else None
        self.place = table.schema.get_field_index(label)
        fields = list(table.schema)
        fields[self.place] = pa.field(label, pa.float64())
        if self.second is not None:
            if self.second in table.schema.names:
                raise ParameterError(f"the table has a column {self.second!r} already: rename it")
            fields.insert(self.place + 1, pa.field(self.second, pa.float64()))
        self.schema = pa.schema(fields)
        self.rows_out = 0
        self.left_out = 0

    def labels(self) -> Iterator[NDArray[np.float64]]:
        """Yield the labels from the start.

        Where that is cheap all columns are read, so that one that is damaged is found before the charge.
        """
        done = kept = 0
        for batch in ahead(self.table.batches([self.label] if self.table.format == "parquet" else None)):
            values, gone = label_values(batch.column(self.label), "keep" if self.drop else "error")
            done += batch.num_rows
            kept += batch.num_rows - int(gone.sum())
            self.progress("Counting", done, self.table.rows)
            yield values[~gone] if self.drop else values
        if kept == 0:
            raise DataError("no row of the table has a label" if done else "the table has no rows")

    def released(self, stream: LabelStream, watch: Watch) -> Iterator[Any]:
        """Yield the rows with private labels."""
        pa = arrow().core
        total = stream.terms.rows
        for whole in ahead(self.table.batches()):
            batch = whole
            values, gone = label_values(batch.column(self.place), "keep" if self.drop else "error")
            if gone.any():
                batch, values = taken(batch, np.flatnonzero(~gone)), values[~gone]
            private = stream.release(values)
            watch.see(batch, values)
            self.rows_out += values.size
            self.left_out += int(gone.sum())
            columns = list(batch.columns)
            if private.size and self.debiased == "replace":
                private = stream.mechanism.debias(private)
            columns[self.place] = pa.array(private)
            if self.second is not None:
                columns.insert(
                    self.place + 1, pa.array(stream.mechanism.debias(private) if private.size else private)
                )
            self.progress("Releasing", self.rows_out, total)
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def types_changed(self, writer: TableWriter) -> dict[str, tuple[str, str]]:
        """Return what columns were and are, of those whose type changed; text has no types to keep."""
        if writer.format in DELIMITERS:
            return {}
        pairs = {
            field.name: (self.table.stored.get(field.name, field.type), writer.changed.get(field.name, field.type))
            for field in self.schema
            if field.name not in (self.label, self.second)
        }
        return {name: (str(old), str(new)) for name, (old, new) in pairs.items() if old != new}

    def public(self, to: str, writer: TableWriter, digests: dict[str, str], *, shuffle: bool) -> dict[str, Any]:
        """Return what the card says of the file."""
        holds = "unbiased private labels" if self.debiased == "replace" else "private labels as released, biased"
        return {
            "name": PIPE if to == PIPE else Path(to).name,
            "format": writer.format,
            "rows": self.rows_out,
            "rows_left_out": self.left_out,
            "column": self.label,
            "column_holds": holds,
            "unbiased_column": self.label if self.debiased == "replace" else self.second,
            "columns": list(self.schema.names),
            "types_changed": {name: list(pair) for name, pair in self.types_changed(writer).items()},
            "sha256": digests if is_folder(to) else next(iter(digests.values())),
            "row_order": "shuffled" if shuffle else "public, and kept",
            "not_copied": DROPPED,
        }
