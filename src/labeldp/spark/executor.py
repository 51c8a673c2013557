"""Work of the executors: vectors to add up, rows for the driver, private labels.

Functions here see labels. Their errors are shown on the driver and in logs, and never contain a label. Spark's
pages and event logs show the number of rows of a step; so each partition sends one vector, for any labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

from labeldp._values import Array, Counts
from labeldp.errors import DataError
from labeldp.exact.row_ids import Ids, public_places
from labeldp.exact.row_words import RowWords
from labeldp.mechanisms.base import Mechanism
from labeldp.spark.session import SealedSecret, column, without_labels

Batches = Iterator["pa.RecordBatch"]
Releaser = Callable[[Iterator[tuple[Any, Any]]], Iterator[Any]]
"""From Arrow arrays (labels, ids) to an array of private labels."""

IDS_MISSING = "some ids are missing now that were not before: the table changed while it was read"

_SCHEMA = "data binary"


def sum_integers(frame: DataFrame, count: Callable[[pa.RecordBatch], Counts], size: int, rows: int) -> Counts:
    """Return the sum of ``count`` over all batches of a frame: a vector of ``size`` integers.

    Vectors of partitions are added up on one executor, so that the driver gets one. Another number of ``rows``
    than was checked is refused.
    """

    def count_partition(batches: Batches) -> Batches:
        total = np.zeros(size + 1, dtype=np.int64)
        for batch in batches:
            if batch.num_rows:
                total += np.append(count(batch), batch.num_rows)
        yield _vector_batch(total)

    def add(batches: Batches) -> Batches:
        vectors = (np.frombuffer(data, dtype=np.int64) for batch in batches for data in batch[0].to_pylist())
        yield _vector_batch(sum(vectors, np.zeros(size + 1, dtype=np.int64)))

    partitions = frame.mapInArrow(count_partition, _SCHEMA)
    (data,) = without_labels(partitions.repartition(1).mapInArrow(add, _SCHEMA).toArrow)[0].to_pylist()
    *total, row_count = np.frombuffer(data, dtype=np.int64)
    if row_count != rows:
        raise DataError("there are more or fewer rows now than before: the table changed while it was read")
    return np.array(total)


def _vector_batch(vector: Counts) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"data": [vector.tobytes()]})


def collect_rows(frame: DataFrame, rows: int, row_limit: int) -> tuple[Array, Array]:
    """Return features and labels of a frame's rows (label, id, features), in the order of hashes of their ids.

    Of more rows than the limit, about as many as the limit: a sample by another hash. Neither depends on labels
    or on partitions. Ids that two rows share are refused: their order would follow from partitions.
    """
    if rows > row_limit:
        frame = frame.where(F.xxhash64("c1") < F.lit((row_limit << 64) // rows - (1 << 63)))
    table = without_labels(frame.toArrow)
    hashes = public_places(array_ids(table.column(1).combine_chunks()))[:, 0]
    order = np.argsort(hashes)
    if (np.diff(hashes[order]) == 0).any() or (rows <= row_limit and order.size != rows):
        raise DataError("rows share an id, or the table changed while it was read")
    return feature_table(table)[order], floats(table.column(0))[order]


def releaser(mechanism: Mechanism, sealed: SealedSecret, *, debiased: bool) -> Releaser:
    """Return a function that randomises labels; on an executor the mechanism is built and proven again."""

    def release(arrays: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        secret = sealed.unseal()
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
    """Return a column of doubles; missing values are NaN."""
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def feature_table(batch: Any) -> Array:
    """Return the features of rows (label, id, features) as numbers."""
    return np.column_stack([floats(values) for values in batch.columns[2:]])


def array_ids(values: Any) -> Ids:
    """Return the ids in an Arrow array."""
    if values.null_count:
        raise DataError(IDS_MISSING)
    if pa.types.is_integer(values.type):
        return Ids("integer", values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    return Ids("text" if is_text else "binary", values.cast(pa.large_binary()).to_pylist())


PARTITION_ROWS = 1 << 18
"""The approximate number of rows in a partition of the output, and so in a file."""

MAX_PARTITIONS = 10_000


def spread_by_id(frame: DataFrame, id: str, rows: int) -> DataFrame:
    """Return rows in partitions and in an order that follow from their ids and the number of rows.

    Spark cuts its input by bytes and packs files by size, and labels are among these bytes: partitions show
    labels. The number of partitions is explicit, because else Spark merges and splits them by size. No two rows
    may share an id, and no raw label may be in the frame: a shuffle lies on disks.
    """
    partitions = min(MAX_PARTITIONS, max(1, -(-rows // PARTITION_ROWS)))
    return frame.repartition(partitions, column(id)).sortWithinPartitions(column(id))


def release_frame(rows: DataFrame, label: str, id: str, release: Releaser, *, count: int) -> DataFrame:
    """Return the ``count`` rows with private labels, computed when an action needs them.

    Only labels and ids go to Python.
    """
    # by which Spark learns the arguments and the result
    release.__annotations__ = {"arrays": Iterator[tuple[pa.Array, pa.Array]], "return": Iterator[pa.Array]}
    randomize = arrow_udf(release, "double")
    private = randomize(column(label).cast("double"), column(id))
    private_rows = _refuse_new_gaps(rows, id).withColumn(label, private)
    private_rows = private_rows.select(*(column(name).alias(name, metadata={}) for name in rows.columns))
    return _wall(spread_by_id(private_rows, id, count))


def _refuse_new_gaps(rows: DataFrame, id: str) -> DataFrame:
    """Return the rows, of which one without an id is an error: they were checked, but may have changed since.

    It also keeps Spark from copying columns twice.
    """
    return rows.where(F.when(column(id).isNull(), F.raise_error(F.lit(IDS_MISSING))).isNull())


def _wall(frame: DataFrame) -> DataFrame:
    """Return the frame behind a wall that later operations cannot pass; it costs nothing.

    Spark removes a sort that nothing seems to need, and moves filters in front of it; not past a condition that is
    not deterministic, though this one holds for every row. Spark also lets a filter or an order reach back to
    columns that a projection has dropped; not through a union, though this one is with an empty frame.
    """
    frame = frame.where(F.spark_partition_id() >= 0)
    return frame.union(frame.where(F.lit(False)))
