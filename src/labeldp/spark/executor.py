"""What runs on the executors: Arrow batches in, counts or private labels out.

Functions here see labels. What they raise is shown on the driver and in logs, and never contains one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import DataError
from labeldp.mechanisms.base import Mechanism, load_mechanism
from labeldp.priors import Reports
from labeldp.row_ids import IntegerIds, TextIds
from labeldp.row_words import RowWords
from labeldp.stream import Counted

if TYPE_CHECKING:
    import pyarrow as pa

    from labeldp.spark.secret import Sealed

__all__ = [
    "COUNTS",
    "MISSING_FEATURE",
    "MISSING_ID",
    "MISSING_LABEL",
    "ROWS",
    "counter",
    "floats",
    "ids_of",
    "releaser",
    "reporter",
    "sparse",
]

Batches = Iterator["pa.RecordBatch"]
Work = Callable[[Batches], Batches]

COUNTS = "cell int, n bigint"
"""The schema of counts: sparse, so that partitions of any number and size add up in one aggregation."""

ROWS, MISSING_LABEL, MISSING_ID, MISSING_FEATURE = -1, -2, -3, -4
"""Cells that count something else than labels."""


def counter(bounds: tuple[float, float]) -> Work:
    """Return what counts labels (first column) and missing ids (second column, if there is one)."""

    def count_labels(batches: Batches) -> Batches:
        total, missing, no_id = Counted.none(), 0, 0
        for batch in batches:
            labels = floats(batch.column(0))
            finite = np.isfinite(labels)
            missing += labels.size - int(np.count_nonzero(finite))
            total += Counted.of(labels[finite], bounds)
            no_id += batch.column(1).true_count if batch.num_columns > 1 else 0
        yield sparse(total.fine, {ROWS: total.rows + missing, MISSING_LABEL: missing, MISSING_ID: no_id})

    return count_labels


def reporter(asked: Reports, sealed: Sealed) -> Work:
    """Return what randomises labels (first column) of rows (second) for a prior, and counts the reports."""

    def count_reports(batches: Batches) -> Batches:
        mechanism, secret = asked.mechanism, sealed.open()
        counts: Any = 0
        for batch in batches:
            if batch.num_rows:
                counts = counts + asked.count(_randomized(mechanism, secret, batch.column(0), batch.column(1)))
        yield sparse(np.atleast_1d(np.asarray(counts, dtype=np.int64)), {})

    return count_reports


def releaser(card: str, sealed: Sealed, label: int, id: int, *, names: Sequence[str], debiased: bool) -> Work:
    """Return what puts private labels in the place of labels, and unbiased ones last if they are wanted.

    ``label`` and ``id`` are places of columns; ``names`` are those of the output.
    """

    def release(batches: Batches) -> Batches:
        import pyarrow as pa  # noqa: PLC0415

        mechanism, secret = _mechanism(card), sealed.open()
        for batch in batches:
            private = np.empty(0)
            if batch.num_rows:
                private = _randomized(mechanism, secret, batch.column(label), batch.column(id))
            columns = batch.columns
            columns[label] = pa.array(private)
            if debiased:
                columns.append(pa.array(mechanism.debias(private) if private.size else private))
            yield pa.RecordBatch.from_arrays(columns, names=names)

    return release


@lru_cache(maxsize=8)
def _mechanism(card: str) -> Mechanism:
    """Return the mechanism, proven again, once for each Python worker."""
    mechanism: Mechanism = load_mechanism(card)
    return mechanism


def _randomized(mechanism: Mechanism, secret: bytes, labels: Any, ids: Any) -> NDArray[np.float64]:
    return mechanism.randomize(floats(labels), random_state=RowWords(secret, ids_of(ids)))


def floats(values: Any) -> NDArray[np.float64]:
    """Return a column of doubles; what is missing is NaN."""
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def ids_of(values: Any) -> IntegerIds | TextIds:
    """Return the ids in an Arrow column, without a copy where they are text."""
    import pyarrow as pa  # noqa: PLC0415

    if values.null_count:
        raise DataError("some ids are missing now that were not before: the table changed while it was read")
    if pa.types.is_integer(values.type):
        return IntegerIds(values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    _, places, data = values.buffers()
    found: NDArray[Any] = np.frombuffer(places, dtype=np.int64 if wide else np.int32)
    offsets = found[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return TextIds(offsets, np.frombuffer(data or b"", dtype=np.uint8), "text" if text else "binary")


def sparse(counts: NDArray[np.int64], also: dict[int, int]) -> pa.RecordBatch:
    """Return counts of cells that are not empty, and others by their cells."""
    import pyarrow as pa  # noqa: PLC0415

    cells = np.flatnonzero(counts)
    numbers = np.concatenate([np.array(list(also.values()), dtype=np.int64), counts[cells]])
    places = np.concatenate([np.array(list(also), dtype=np.int64), cells]).astype(np.int32)
    return pa.RecordBatch.from_arrays([pa.array(places), pa.array(numbers)], names=["cell", "n"])
