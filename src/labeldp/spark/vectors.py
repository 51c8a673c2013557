"""Vectors that partitions send to be added up: as many from each partition, whatever its labels are.

Spark's pages and event logs tell how many rows a step had; so nothing here sends fewer where counts are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeldp.spark.failures import without_labels

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["SAMPLED", "Batches", "Parts", "Work", "added", "batch_of", "chunks", "joined"]

Batches = Iterator["pa.RecordBatch"]
Work = Callable[[Batches], Batches]
Parts = list[tuple[int, bytes]]

SAMPLED = -1
"""The key of rows that are handed on as they are, and not added up."""

_SCHEMA = "key int, data binary"
_CHUNK = 1 << 10


def chunks(vector: NDArray[Any]) -> dict[int, NDArray[Any]]:
    """Cut a long vector into vectors with keys, so that many executors share the work of adding it up."""
    return {k: vector[start : start + _CHUNK] for k, start in enumerate(range(0, vector.size, _CHUNK))}


def joined(vectors: dict[int, NDArray[Any]]) -> NDArray[Any]:
    """Return the vector that was cut into chunks."""
    return np.concatenate([vectors[key] for key in sorted(vectors)])


def batch_of(vectors: dict[int, NDArray[Any]]) -> pa.RecordBatch:
    """Return vectors as a batch, ready to be sent."""
    import pyarrow as pa  # noqa: PLC0415

    data = [np.ascontiguousarray(vector).tobytes() for vector in vectors.values()]
    arrays = [pa.array(list(vectors), pa.int32()), pa.array(data, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, names=["key", "data"])


def _adder(kind: str) -> Work:
    def add(batches: Batches) -> Batches:
        import pyarrow.compute as pc  # noqa: PLC0415

        sums: dict[int, NDArray[Any]] = {}
        for batch in batches:
            handed_on = pc.equal(batch.column(0), SAMPLED)
            yield batch.filter(handed_on)
            for key, data in _pairs(batch.filter(pc.invert(handed_on))):
                vector = np.frombuffer(data, dtype=kind)
                sums[key] = sums[key] + vector if key in sums else vector
        yield batch_of(sums)

    return add


def added(frame: DataFrame, work: Work, kind: str = "int64") -> tuple[dict[int, NDArray[Any]], Parts]:
    """Return the vectors that ``work`` makes of partitions, added up by key, and what is handed on.

    They are added up on executors that each get all vectors of some keys, so that the driver gets one of each.

    Parameters
    ----------
    frame : DataFrame
    work : callable
        From batches of ``frame`` to batches of vectors.
    kind : {"int64", "float64"}
        The vectors' numbers.
    """
    sums_of = frame.mapInArrow(work, _SCHEMA).repartition("key").mapInArrow(_adder(kind), _SCHEMA)
    table = without_labels(sums_of.toArrow)
    parts = list(_pairs(table))
    sums = {key: np.frombuffer(data, dtype=kind) for key, data in parts if key != SAMPLED}
    return sums, [part for part in parts if part[0] == SAMPLED]


def _pairs(table: Any) -> Iterator[tuple[int, bytes]]:
    return zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True)
