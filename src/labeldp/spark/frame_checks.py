"""Rows and ids checked, by Spark alone, before anything is charged."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from labeldp.errors import DataError, LabelError
from labeldp.spark.session import column, without_labels

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["count_rows", "refuse_repeated_ids"]


def _is_missing(name: str) -> Column:
    """Return whether a number is missing, NaN or infinite."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    value = column(name).cast("double")
    return value.isNull() | F.isnan(value) | (F.abs(value) == float("inf"))


def count_rows(df: DataFrame, label: str, id: str | None = None, features: Sequence[str] = ()) -> int:
    """Return the number of rows, if no label, id or feature is missing.

    Raises
    ------
    LabelError
        If labels are missing or not finite, or there are none.
    DataError
        If ids or features are missing.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    conditions = {"label": _is_missing(label)}
    if id is not None:
        conditions["id"] = column(id).isNull()
    if features:
        conditions["features"] = reduce(operator.or_, map(_is_missing, features))
    counts = [F.count_if(condition).alias(name) for name, condition in conditions.items()]
    totals = without_labels(df.agg(F.count(F.lit(1)).alias("rows"), *counts).collect)[0].asDict()
    rows = int(totals["rows"])
    if rows == 0:
        raise LabelError("there are no labels: give at least one")
    if totals["label"]:
        raise LabelError(
            f"{totals['label']} of {rows} labels are missing, NaN or infinite: drop those rows or fill them first"
        )
    if totals.get("id"):
        raise DataError(f"{totals['id']} of {rows} rows have no id: their noise follows from it")
    if totals.get("features"):
        raise DataError(
            f"{totals['features']} of {rows} rows have features that are missing, NaN or infinite: drop those "
            "rows or fill them first"
        )
    return rows


def refuse_repeated_ids(df: DataFrame, id: str) -> None:
    """Refuse ids that two rows share, by a shuffle."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    groups = df.select(column(id).alias("id")).groupBy("id").agg(F.count(F.lit(1)).alias("n"))
    if without_labels(groups.where(F.col("n") > 1).limit(1).count):
        raise DataError(
            "some rows share an id, and would share their noise, which shows how their labels differ: give each "
            "row an id of its own"
        )
