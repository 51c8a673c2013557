"""The door: rows are split into their public part and their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import DataError, LabelError
from labeldp.files.batches import read_ahead, take_rows
from labeldp.files.columns import label_values
from labeldp.files.hints import Watch
from labeldp.files.places import DELIMITERS
from labeldp.files.tables import Table

Progress = Callable[[str, int, int | None], None]


class Door:
    """Where rows are split into their public part and their labels; `Table` has cut them by their number.

    Rows without a label are left out with ``drop``, and refused else.
    """

    def __init__(self, table: Table, *, drop: bool, progress: Progress) -> None:
        self.table, self._drop, self._progress = table, drop, progress
        self._place = table.schema.get_field_index(table.label)
        self.left_out = 0

    def labels(
        self, rehearse: Callable[[Any], None] = lambda _: None, watch: Watch | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the labels from the start.

        All columns are read, so that one that is damaged is found before the charge; of Parquet that is 10 to 20 %
        more work for a release. ``rehearse`` is called with the public part of all rows, to refuse what cannot be
        written. Who watches sees all rows that have a label.
        """
        done = kept = 0
        problem: LabelError | None = None  # is raised at the end: first what is wrong with the files themselves
        for batch in read_ahead(self.table.batches()):
            rehearse(batch.remove_column(self._place))
            try:
                values, missing = self._labels(batch)
            except LabelError as error:
                problem = error
                continue
            done += batch.num_rows
            kept += batch.num_rows - int(missing.sum())
            known = self.table.format not in DELIMITERS  # how far it got before a fault shows where blocks end
            self._progress("Counting", done if known else 0, self.table.rows)
            if watch is not None:
                watch.see(*self._split(batch, values, missing))
            yield values[~missing]
        if problem is not None:
            raise problem
        if kept == 0:
            raise DataError("no row of the table has a label" if done else "the table has no rows")

    def rows(self, total: int) -> Iterator[tuple[list[Any], NDArray[np.float64]]]:
        """Yield the public columns and the labels of all rows that have one."""
        done = 0
        for batch in read_ahead(self.table.batches()):
            values, missing = self._labels(batch)
            public, values = self._split(batch, values, missing)
            self.left_out += int(missing.sum())
            done += values.size
            self._progress("Releasing", done, total)
            yield public, values

    def _split(
        self, batch: Any, values: NDArray[np.float64], missing: NDArray[np.bool_]
    ) -> tuple[list[Any], NDArray[np.float64]]:
        public = batch.remove_column(self._place)
        if missing.any():
            public, values = take_rows(public, np.flatnonzero(~missing)), values[~missing]
        return public.columns, values

    def _labels(self, batch: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        return label_values(batch.column(str(self.table.label)), allow_missing=self._drop)
