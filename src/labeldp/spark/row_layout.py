"""The frame of a release: private labels in the place of labels, and rows where their ids put them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from labeldp.spark.executor import Releaser
from labeldp.spark.session import column

__all__ = ["release_frame", "spread_by_id"]

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


def release_frame(
    rows: DataFrame, label: str, id: str, release: Releaser, *, debiased: str | None, count: int
) -> DataFrame:
    """Return the ``count`` rows with private labels, computed when an action needs them.

    Only labels and ids go to Python. ``debiased`` is the name of a further column for unbiased labels.
    """
    output = "double" if debiased is None else "private double, debiased double"
    randomize = F.arrow_udf(_with_hints(release), output)  # type: ignore[attr-defined]
    private = randomize(column(label).cast("double"), column(id))
    private_rows = _refuse_new_gaps(rows, id).withColumn(label, private)
    values = {name: column(name) for name in rows.columns}
    if debiased is not None:
        values |= {label: column(label)["private"], debiased: column(label)["debiased"]}
    private_rows = private_rows.select(*(value.alias(name, metadata={}) for name, value in values.items()))
    return _wall(spread_by_id(private_rows, id, count))


def _refuse_new_gaps(rows: DataFrame, id: str) -> DataFrame:
    """Return the rows, of which one without an id is an error: they were checked, but may have changed since.

    It also keeps Spark from copying columns twice: what a filter has seen goes on in rows, and with Spark 4.3 a
    table of 24 columns then takes three quarters of the time.
    """
    message = "some ids are missing now that were not before: the table changed while it was read"
    return rows.where(F.when(column(id).isNull(), F.raise_error(F.lit(message))).isNull())


def _with_hints(release: Releaser) -> Any:
    """Return the function with the type hints by which Spark learns its arguments and result."""

    def private_labels(arrays: Any) -> Any:
        return release(arrays)

    private_labels.__annotations__ = {
        "arrays": Iterator[tuple[pa.Array, pa.Array]],
        "return": Iterator[pa.Array],
    }
    return private_labels


def _wall(frame: DataFrame) -> DataFrame:
    """Return the frame behind a wall that what is done to it later cannot pass; it costs nothing.

    Spark takes out a sort that it thinks nobody needs, and moves filters in front of it; not past a condition that
    is not deterministic, though this one holds for every row. And it lets a filter or an order reach back to
    columns that a projection has dropped; not through a union, though this one is with nothing.
    """
    frame = frame.where(F.spark_partition_id() >= 0)
    return frame.union(frame.where(F.lit(False)))
