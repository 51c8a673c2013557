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

__all__ = ["SAMPLE", "Batches", "Vectors", "Work", "concatenate", "cut", "sum_vectors", "vector_batch"]

Batches = Iterator["pa.RecordBatch"]
Work = Callable[[Batches], Batches]
Vectors = dict[int, NDArray[Any]]
"""Vectors by key."""

SAMPLE = -1
"""The key of rows that are handed on as they are, and not added up."""

_SCHEMA = "key int, part long, data binary"
_CHUNK = 1 << 10


def cut(vector: NDArray[Any]) -> Vectors:
    """Cut a long vector into vectors with keys, so that many executors share the work of adding it up."""
    return {k: vector[start : start + _CHUNK] for k, start in enumerate(range(0, vector.size, _CHUNK))}


def concatenate(vectors: Vectors) -> NDArray[Any]:
    """Return the vector that was cut."""
    return np.concatenate([vectors[key] for key in sorted(vectors)])


def vector_batch(vectors: Vectors, part: int = 0) -> pa.RecordBatch:
    """Return vectors as a batch, ready to be sent; floats are added up in the order of their parts."""
    import pyarrow as pa  # noqa: PLC0415

    data = [np.ascontiguousarray(vector).tobytes() for vector in vectors.values()]
    arrays = [
        pa.array(list(vectors), pa.int32()),
        pa.array([part] * len(data), pa.int64()),
        pa.array(data, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["key", "part", "data"])


def _adder(kind: str) -> Work:
    def add(batches: Batches) -> Batches:
        import pyarrow.compute as pc  # noqa: PLC0415

        sums: Vectors = {}
        for batch in batches:
            sample = pc.equal(batch.column(0), SAMPLE)
            yield batch.filter(sample)
            for key, data in _pairs(batch.filter(pc.invert(sample))):
                vector = np.frombuffer(data, dtype=kind)
                sums[key] = sums[key] + vector if key in sums else vector
        yield vector_batch(sums)

    return add


def sum_vectors(frame: DataFrame, work: Work, kind: str = "int64") -> tuple[Vectors, bytes]:
    """Return the vectors that ``work`` makes of partitions, added up by key, and the sample that it hands on.

    They are added up on executors that each get all vectors of some keys, so that the driver gets one of each.

    Parameters
    ----------
    frame : DataFrame
    work : callable
        From batches of ``frame`` to batches of vectors.
    kind : {"int64", "float64"}
        The vectors' numbers. Sums of floats follow from the order in which they are added up, so each partition's
        must have a part of its own, which is public.
    """
    vectors = frame.mapInArrow(work, _SCHEMA).repartition("key").sortWithinPartitions("key", "part")
    table = without_labels(vectors.mapInArrow(_adder(kind), _SCHEMA).toArrow)
    pairs = list(_pairs(table))
    sums = {key: np.frombuffer(data, dtype=kind) for key, data in pairs if key != SAMPLE}
    return sums, b"".join(data for key, data in pairs if key == SAMPLE)


def _pairs(table: Any) -> Iterator[tuple[int, bytes]]:
    return zip(table.column(0).to_pylist(), table.column(2).to_pylist(), strict=True)
