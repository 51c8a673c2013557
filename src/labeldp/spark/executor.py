"""What runs on the executors: Arrow arrays in, counts or private labels out.

Functions here see labels. What they raise is shown on the driver and in logs, and never contains one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import DataError
from labeldp.mechanisms.base import Mechanism, load_mechanism
from labeldp.priors import Reports
from labeldp.randomness.row_ids import IntegerIds, TextIds
from labeldp.randomness.row_words import RowWords
from labeldp.release.stream import LabelCounts
from labeldp.spark.vectors import Batches, Work, cut, vector_batch

if TYPE_CHECKING:
    from labeldp.spark.secret import Sealed

__all__ = ["Release", "counter", "floats", "ids_of", "releaser", "reporter"]

Release = Callable[[Iterator[tuple[Any, Any]]], Iterator[Any]]
"""From Arrow arrays (labels, ids) to an array of private labels, or of structs with unbiased ones beside them."""


def counter(bounds: tuple[float, float]) -> Work:
    """Return what counts labels, the only column, of which none is missing."""

    def count_labels(batches: Batches) -> Batches:
        total = LabelCounts.none()
        for batch in batches:
            total += LabelCounts.of(floats(batch.column(0)), bounds)
        if total.rows:
            yield vector_batch(cut(total.fine))

    return count_labels


def reporter(asked: Reports, sealed: Sealed) -> Work:
    """Return what randomises labels (first column) of rows (second) for a prior, and counts the reports."""

    def count_reports(batches: Batches) -> Batches:
        mechanism, secret = asked.mechanism, sealed.open()
        counts: Any = None
        for batch in batches:
            if batch.num_rows:
                some = asked.count(_randomize(mechanism, secret, batch.column(0), batch.column(1)))
                counts = some if counts is None else counts + some
        if counts is not None:
            yield vector_batch(cut(counts))

    return count_reports


def releaser(card: str, sealed: Sealed, *, debiased: bool) -> Release:
    """Return what makes private labels."""

    def release(arrays: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        mechanism, secret = _mechanism(card), sealed.open()
        for labels, ids in arrays:
            private = _randomize(mechanism, secret, labels, ids) if len(labels) else np.zeros(0)
            if not debiased:
                yield pa.array(private)
                continue
            unbiased = mechanism.debias(private) if private.size else private
            yield pa.StructArray.from_arrays([pa.array(private), pa.array(unbiased)], ["private", "debiased"])

    return release


@lru_cache(maxsize=8)
def _mechanism(card: str) -> Mechanism:
    """Return the mechanism, proven again, once for each Python worker."""
    mechanism: Mechanism = load_mechanism(card)
    return mechanism


def _randomize(mechanism: Mechanism, secret: bytes, labels: Any, ids: Any) -> NDArray[np.float64]:
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
    starts: NDArray[Any] = np.frombuffer(places, dtype=np.int64 if wide else np.int32)
    offsets = starts[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return TextIds(offsets, np.frombuffer(data or b"", dtype=np.uint8), "text" if text else "binary")
