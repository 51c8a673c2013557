"""The pass before a release: labels counted, rows and ids checked. Nothing is charged yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labeldp.curator import FINE
from labeldp.errors import DataError, LabelError
from labeldp.spark.columns import column
from labeldp.spark.executor import COUNTS, MISSING_FEATURE, MISSING_ID, MISSING_LABEL, ROWS, Work, counter
from labeldp.stream import Counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["count_rows", "dense", "refuse_missing", "refuse_repeated_ids", "summed"]

Counts = NDArray[np.int64]


def summed(df: DataFrame, work: Work) -> dict[int, int]:
    """Return {cell: count}, added up over all partitions in one aggregation."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    parts = df.mapInArrow(work, COUNTS)
    table = parts.groupBy("cell").agg(F.sum("n").alias("n")).toArrow()
    return dict(zip(table["cell"].to_pylist(), table["n"].to_pylist(), strict=True))


def dense(counts: dict[int, int], size: int) -> Counts:
    """Return the counts of cells 0 … size − 1."""
    result = np.zeros(size, dtype=np.int64)
    for cell, n in counts.items():
        if cell >= 0:
            result[cell] = n
    return result


def count_rows(df: DataFrame, label: str, id: str | None, bounds: tuple[float, float]) -> Counted:
    """Return the exact counts of labels, if all labels and ids are there.

    Raises
    ------
    LabelError
        If labels are missing or not finite, or there are none.
    DataError
        If ids are missing.
    """
    chosen = [column(label).cast("double")]
    if id is not None:
        chosen.append(column(id).isNull())
    found = summed(df.select(*chosen), counter(bounds))
    return Counted(refuse_missing(found), dense(found, FINE))


def refuse_missing(found: dict[int, int]) -> int:
    """Return the number of rows, if all labels, ids and features are there."""
    rows, bad = found.get(ROWS, 0), found.get(MISSING_LABEL, 0)
    if rows == 0:
        raise LabelError("there are no labels: give at least one")
    if bad:
        raise LabelError(
            f"{bad} of {rows} labels are missing, NaN or infinite: drop those rows or fill them first"
        )
    if found.get(MISSING_ID, 0):
        raise DataError(f"{found[MISSING_ID]} of {rows} rows have no id: their noise follows from it")
    if found.get(MISSING_FEATURE, 0):
        raise DataError(
            f"{found[MISSING_FEATURE]} of {rows} rows have features that are missing, NaN or infinite: drop those "
            "rows or fill them first"
        )
    return rows


def refuse_repeated_ids(df: DataFrame, id: str) -> None:
    """Refuse ids that two rows share, by a shuffle."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    groups = df.select(column(id).alias("id")).groupBy("id").agg(F.count(F.lit(1)).alias("n"))
    if groups.where(F.col("n") > 1).limit(1).count():
        raise DataError(
            "some rows share an id, and would share their noise, which shows how their labels differ: give each "
            "row an id of its own"
        )
