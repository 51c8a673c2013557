"""What runs on the executors, and how it is sent there and back: counts, vectors to add up, private labels.

Functions here see labels. What they raise is shown on the driver and in logs, and never contains one. Spark's
pages and event logs show how many rows a step had; so no partition sends fewer vectors where counts are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from labeldp._values import Array, Counts, Interval, Labels, Numbers
from labeldp.errors import DataError
from labeldp.exact.row_ids import Ids
from labeldp.exact.row_words import RowWords
from labeldp.mechanisms.base import Mechanism
from labeldp.release.curator import count
from labeldp.spark.session import SealedSecret, column, without_labels

Batches = Iterator["pa.RecordBatch"]
Work = Callable[[Batches], Batches]
Counter = Callable[["pa.RecordBatch"], Counts]
Vectors = dict[int, Numbers]
"""Vectors by key."""

IDS_MISSING = "some ids are missing now that were not before: the table changed while it was read"

SAMPLE = -1
"""The key of rows that are handed on as they are, and not added up."""

_SCHEMA = "key int, part long, data binary"
_ARROW = pa.schema([("key", pa.int32()), ("part", pa.int64()), ("data", pa.binary())])


def vector_batch(vectors: Vectors, part: int = 0) -> pa.RecordBatch:
    """Return vectors as a batch, ready to be sent; floats are added up in the order of their parts."""
    data = [np.ascontiguousarray(vector).tobytes() for vector in vectors.values()]
    columns = {"key": list(vectors), "part": [part] * len(data), "data": data}
    return pa.RecordBatch.from_pydict(columns, schema=_ARROW)


def sum_integers(frame: DataFrame, count: Counter, rows: int) -> Counts:
    """Return the sum of ``count`` over all batches of a frame: a vector of integers.

    ``rows`` is how many there were when they were checked.
    """

    def count_all(batches: Batches) -> Batches:
        total = sum(np.append(count(batch), batch.num_rows) for batch in batches if batch.num_rows)
        if np.ndim(total):
            yield vector_batch({0: np.asarray(total)})

    total = sum_vectors(frame, count_all)[0].get(0, np.zeros(1, dtype=np.int64))
    if total[-1] != rows:
        raise DataError("there are more or fewer rows now than before: the table changed while it was read")
    return total[:-1]


def sum_vectors(frame: DataFrame, work: Work, dtype: str = "int64") -> tuple[Vectors, bytes]:
    """Return the vectors that ``work`` computes from partitions, added up by key, and the sample beside them.

    They are added up on executors that each get all vectors of some keys, so that the driver gets one of each.
    Sums of floats depend on the order, so each partition's must have a part of its own, which is public. ``work``
    sees columns by position: Spark cannot resolve every name of a column again.
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

    numbered = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
    vectors = numbered.mapInArrow(work, _SCHEMA).repartition("key").sortWithinPartitions("key", "part")
    pairs = list(_pairs(without_labels(vectors.mapInArrow(add, _SCHEMA).toArrow)))
    sums = {key: np.frombuffer(data, dtype=dtype) for key, data in pairs if key != SAMPLE}
    return sums, b"".join(data for key, data in pairs if key == SAMPLE)


def _pairs(table: Any) -> Iterator[tuple[int, bytes]]:
    return zip(table.column(0).to_pylist(), table.column(2).to_pylist(), strict=True)


Releaser = Callable[[Iterator[tuple[Any, Any]]], Iterator[Any]]
"""From Arrow arrays (labels, ids) to an array of private labels."""


def count_labels(labels: DataFrame, bounds: Interval, cells: int, rows: int) -> Counts:
    """Return how many labels, the only column, lie in each cell of their bounds, exactly, in one pass."""

    def count_batch(batch: pa.RecordBatch) -> Counts:
        return count(Labels.parse(floats(batch.column(0))).values, bounds, cells)

    (label,) = labels.columns
    return sum_integers(labels.select(column(label).cast("double")), count_batch, rows)


def releaser(mechanism: Mechanism, sealed: SealedSecret, *, debiased: bool) -> Releaser:
    """Return a function that randomises labels; on an executor the mechanism is built and proven again."""

    def release(arrays: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        secret = sealed.open()
        for labels, ids in arrays:
            private = np.zeros(0)
            if len(labels):
                words = RowWords(secret, array_ids(ids))
                private = mechanism.randomize(floats(labels), random_state=words)
                if debiased:
                    private = mechanism.debias(private)
            yield pa.array(private)

    return release


def floats(values: Any) -> Array:
    """Return a column of doubles; what is missing is NaN."""
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def array_ids(values: Any) -> Ids:
    """Return the ids in an Arrow array."""
    if values.null_count:
        raise DataError(IDS_MISSING)
    if pa.types.is_integer(values.type):
        return Ids("integer", values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    return Ids("text" if is_text else "binary", values.cast(pa.large_binary()).to_pylist())


PART_ROWS = 1 << 18
"""About so many rows are in a part of the output, and so in a file."""

MOST_PARTS = 10_000


def spread_by_id(frame: DataFrame, id: str, rows: int) -> DataFrame:
    """Return rows in parts and in an order that follow from their ids, and from how many rows there are.

    Spark cuts its input by bytes and packs files by size, and labels are among these bytes: where rows lie shows
    labels. The number of parts is explicit, because else Spark merges and splits them by size as it goes. No two
    rows may share an id, and no raw label may be in the frame: a shuffle lies on disks.
    """
    parts = min(MOST_PARTS, max(1, -(-rows // PART_ROWS)))
    return frame.repartition(parts, column(id)).sortWithinPartitions(column(id))


def release_frame(rows: DataFrame, label: str, id: str, release: Releaser, *, count: int) -> DataFrame:
    """Return the ``count`` rows with private labels, computed when an action needs them.

    Only labels and ids go to Python.
    """
    # by which Spark learns the arguments and the result
    release.__annotations__ = {"arrays": Iterator[tuple[pa.Array, pa.Array]], "return": Iterator[pa.Array]}
    randomize = F.arrow_udf(release, "double")  # type: ignore[attr-defined]
    private = randomize(column(label).cast("double"), column(id))
    private_rows = _refuse_new_gaps(rows, id).withColumn(label, private)
    private_rows = private_rows.select(*(column(name).alias(name, metadata={}) for name in rows.columns))
    return _wall(spread_by_id(private_rows, id, count))


def _refuse_new_gaps(rows: DataFrame, id: str) -> DataFrame:
    """Return the rows, of which one without an id is an error: they were checked, but may have changed since.

    It also keeps Spark from copying columns twice: what a filter has seen goes on in rows, and with Spark 4.3 a
    table of 24 columns then takes three quarters of the time.
    """
    return rows.where(F.when(column(id).isNull(), F.raise_error(F.lit(IDS_MISSING))).isNull())


def _wall(frame: DataFrame) -> DataFrame:
    """Return the frame behind a wall that what is done to it later cannot pass; it costs nothing.

    Spark takes out a sort that it thinks nobody needs, and moves filters in front of it; not past a condition that
    is not deterministic, though this one holds for every row. And it lets a filter or an order reach back to
    columns that a projection has dropped; not through a union, though this one is with nothing.
    """
    frame = frame.where(F.spark_partition_id() >= 0)
    return frame.union(frame.where(F.lit(False)))
