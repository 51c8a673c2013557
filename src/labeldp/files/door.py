"""The door: rows come in as two things, their public part and their labels, and leave as one, with private labels.

Labels meet nothing here but a channel, or the counts of a curator. What is written is made of the public part and
of what the channel gave out, in pieces that follow from the public part alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp.errors import DataError, LabelError, ParameterError
from labeldp.files.base_table import Table
from labeldp.files.batches import read_ahead, take_rows
from labeldp.files.formats import DELIMITERS
from labeldp.files.label_column import label_values
from labeldp.files.places import PIPE, is_folder
from labeldp.files.writer import TableWriter
from labeldp.mechanisms.base import Mechanism

__all__ = ["Door", "Output", "Progress", "Rows"]

Progress = Callable[[str, int, int | None], None]
NOT_COPIED = "metadata of the files and columns, row groups, batches, file names, sort orders"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """Some rows: the columns that are public, and the labels."""

    public: list[Any]
    labels: NDArray[np.float64]


class Door:
    """Where the rows of a table are split; `Table` has cut them by their number.

    Rows without a label are left out with ``drop``, and refused else.
    """

    def __init__(self, table: Table, *, drop: bool, progress: Progress) -> None:
        self.table, self._drop, self._progress = table, drop, progress
        self._place = table.schema.get_field_index(table.label)
        self.left_out = 0

    def labels(self) -> Iterator[NDArray[np.float64]]:
        """Yield the labels from the start.

        Where that is cheap all columns are read, so that one that is damaged is found before the charge.
        """
        done = kept = 0
        problem: LabelError | None = None  # is raised at the end: first what is wrong with the files themselves
        columns = [str(self.table.label)] if self.table.format == "parquet" else None
        for batch in read_ahead(self.table.batches(columns)):
            try:
                values, gone = self._labels(batch)
            except LabelError as error:
                problem = error
                continue
            done += batch.num_rows
            kept += batch.num_rows - int(gone.sum())
            if self.table.format not in DELIMITERS:  # how far it got before a fault tells where blocks end
                self._progress("Counting", done, self.table.rows)
            yield values[~gone]
        if problem is not None:
            raise problem
        if kept == 0:
            raise DataError("no row of the table has a label" if done else "the table has no rows")

    def rows(self, total: int) -> Iterator[Rows]:
        """Yield all rows that have a label."""
        done = 0
        for batch in read_ahead(self.table.batches()):
            values, gone = self._labels(batch)
            public = batch.remove_column(self._place)
            if gone.any():
                public, values = take_rows(public, np.flatnonzero(~gone)), values[~gone]
            self.left_out += int(gone.sum())
            done += values.size
            self._progress("Releasing", done, total)
            yield Rows(public.columns, values)

    def _labels(self, batch: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        return label_values(batch.column(str(self.table.label)), "keep" if self._drop else "error")


class Output:
    """The table that is written: public columns, and what the channel gave out, in the label's place."""

    def __init__(self, table: Table, debiased: str) -> None:
        self._table, self._debiased, self.label = table, debiased, str(table.label)
        self.second = f"{self.label}_debiased" if debiased == "add" else None
        self._place = table.schema.get_field_index(self.label)
        fields = list(table.schema)
        if self.second is not None:
            if self.second in table.schema.names:
                raise ParameterError(f"the table has a column {self.second!r} already: rename it")
            fields.insert(self._place + 1, pa.field(self.second, pa.float64()))
        self.schema = pa.schema(fields)
        self.rows = 0

    def batch(self, public: list[Any], private: NDArray[np.float64], mechanism: Mechanism) -> Any:
        """Return rows as they are written, from their public columns and their private labels."""
        self.rows += private.size
        unbiased = private
        if private.size and self._debiased != "no":
            unbiased = mechanism.debias(private)
        ours = {"replace": [unbiased], "add": [private, unbiased], "no": [private]}[self._debiased]
        columns = [*public[: self._place], *map(pa.array, ours), *public[self._place :]]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def types_changed(self, writer: TableWriter) -> dict[str, tuple[str, str]]:
        """Return what columns were and are, of those whose type changed; text has no types to keep."""
        if writer.format in DELIMITERS:
            return {}
        old, new = self._table.stored, writer.changed
        pairs = {
            field.name: (old.get(field.name, field.type), new.get(field.name, field.type))
            for field in self.schema
            if field.name not in (self.label, self.second)
        }
        return {name: (str(was), str(now)) for name, (was, now) in pairs.items() if was != now}

    def facts(
        self, to: str, writer: TableWriter, digests: dict[str, str], *, left_out: int, shuffle: bool
    ) -> dict[str, Any]:
        """Return what the card says of the file."""
        unbiased = self._debiased == "replace"
        return {
            "name": PIPE if to == PIPE else Path(to).name,
            "format": writer.format,
            "rows": self.rows,
            "rows_left_out": left_out,
            "column": self.label,
            "column_holds": "unbiased private labels" if unbiased else "private labels as released, biased",
            "unbiased_column": self.label if unbiased else self.second,
            "columns": list(self.schema.names),
            "types_changed": {name: list(pair) for name, pair in self.types_changed(writer).items()},
            "sha256": digests if is_folder(to) else next(iter(digests.values())),
            "row_order": "shuffled" if shuffle else "public, and kept",
            "not_copied": NOT_COPIED,
        }
