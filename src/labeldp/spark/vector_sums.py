"""Vectors that partitions send to be added up: as many from each partition, whatever its labels are.

Spark's pages and event logs show how many rows a step had; so nothing here sends fewer where counts are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from labeldp.errors import DataError
from labeldp.spark.session import without_labels

__all__ = ["SAMPLE", "Batches", "Vectors", "Work", "sum_integers", "sum_vectors", "vector_batch"]

Batches = Iterator["pa.RecordBatch"]
Work = Callable[[Batches], Batches]
Vectors = dict[int, NDArray[Any]]
"""Vectors by key."""

SAMPLE = -1
"""The key of rows that are handed on as they are, and not added up."""

_SCHEMA = "key int, part long, data binary"
_CHUNK = 1 << 10


def vector_batch(vectors: Vectors, part: int = 0) -> pa.RecordBatch:
    """Return vectors as a batch, ready to be sent; floats are added up in the order of their parts."""
    data = [np.ascontiguousarray(vector).tobytes() for vector in vectors.values()]
    arrays = [
        pa.array(list(vectors), pa.int32()),
        pa.array([part] * len(data), pa.int64()),
        pa.array(data, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["key", "part", "data"])


def sum_integers(frame: DataFrame, count: Callable[[pa.RecordBatch], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the sum of ``count`` over all batches of a frame: a vector of integers.

    Each partition's is cut into vectors with keys, so that many executors share the work of adding them up.
    """

    def count_all(batches: Batches) -> Batches:
        total = None
        for batch in batches:
            if batch.num_rows:
                total = count(batch) if total is None else total + count(batch)
        if total is not None:
            starts = range(0, total.size, _CHUNK)
            yield vector_batch({k: total[start : start + _CHUNK] for k, start in enumerate(starts)})

    vectors, _ = sum_vectors(frame, count_all)
    if not vectors:
        raise DataError("there are no rows now that were there before: the table changed while it was read")
    return np.concatenate([vectors[key] for key in sorted(vectors)])


def sum_vectors(frame: DataFrame, work: Work, dtype: str = "int64") -> tuple[Vectors, bytes]:
    """Return the vectors that ``work`` computes from partitions, added up by key, and the sample beside them.

    They are added up on executors that each get all vectors of some keys, so that the driver gets one of each.
    Sums of floats depend on the order, so each partition's must have a part of its own, which is public.
    """

    def add(batches: Batches) -> Batches:
        sums: Vectors = {}
        for batch in batches:
            in_sample = pc.equal(batch.column(0), SAMPLE)
            yield batch.filter(in_sample)
            for key, data in _pairs(batch.filter(pc.invert(in_sample))):
                vector = np.frombuffer(data, dtype=dtype)
                sums[key] = sums[key] + vector if key in sums else vector
        yield vector_batch(sums)

    vectors = frame.mapInArrow(work, _SCHEMA).repartition("key").sortWithinPartitions("key", "part")
    pairs = list(_pairs(without_labels(vectors.mapInArrow(add, _SCHEMA).toArrow)))
    sums = {key: np.frombuffer(data, dtype=dtype) for key, data in pairs if key != SAMPLE}
    return sums, b"".join(data for key, data in pairs if key == SAMPLE)


def _pairs(table: Any) -> Iterator[tuple[int, bytes]]:
    return zip(table.column(0).to_pylist(), table.column(2).to_pylist(), strict=True)
