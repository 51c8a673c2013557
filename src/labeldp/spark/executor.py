"""What runs on the executors: Arrow arrays in, counts or private labels out.

Functions here see labels. What they raise is shown on the driver and in logs, and never contains one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp.cards import load_mechanism
from labeldp.errors import DataError
from labeldp.mechanisms.base import Mechanism
from labeldp.priors import Reports
from labeldp.randomness.row_ids import IntegerIds, TextIds
from labeldp.randomness.row_words import RowWords
from labeldp.release.stream import LabelCounts
from labeldp.spark.sealed_secret import SealedSecret

__all__ = ["Counter", "Releaser", "array_ids", "floats", "label_counter", "releaser", "report_counter"]

Counter = Callable[["pa.RecordBatch"], NDArray[np.int64]]
Releaser = Callable[[Iterator[tuple[Any, Any]]], Iterator[Any]]
"""From Arrow arrays (labels, ids) to an array of private labels, or of structs with unbiased ones beside them."""


def label_counter(bounds: tuple[float, float]) -> Counter:
    """Return a function that counts labels, the only column, in fine cells."""

    def count(batch: pa.RecordBatch) -> NDArray[np.int64]:
        return LabelCounts.of(floats(batch.column(0)), bounds).fine

    return count


def report_counter(reports: Reports, sealed: SealedSecret) -> Counter:
    """Return a function that randomises labels (first column) of ids (second) for a prior, and counts reports."""

    def count(batch: pa.RecordBatch) -> NDArray[np.int64]:
        private = _randomize(reports.mechanism, sealed.open(), batch.column(0), batch.column(1))
        return reports.count(private)

    return count


def releaser(card: str, sealed: SealedSecret, *, debiased: bool) -> Releaser:
    """Return a function that randomises labels."""

    def release(arrays: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
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
    return mechanism.randomize(floats(labels), random_state=RowWords(secret, array_ids(ids)))


def floats(values: Any) -> NDArray[np.float64]:
    """Return a column of doubles; what is missing is NaN."""
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def array_ids(values: Any) -> IntegerIds | TextIds:
    """Return the ids in an Arrow array, without a copy where they are text."""
    if values.null_count:
        raise DataError("some ids are missing now that were not before: the table changed while it was read")
    if pa.types.is_integer(values.type):
        return IntegerIds(values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    is_large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    _, starts, data = values.buffers()
    places: NDArray[Any] = np.frombuffer(starts, dtype=np.int64 if is_large else np.int32)
    offsets = places[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return TextIds(offsets, np.frombuffer(data or b"", dtype=np.uint8), "text" if is_text else "binary")
