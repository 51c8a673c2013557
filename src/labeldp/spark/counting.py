"""The passes before a release: rows and ids checked, labels counted. Nothing is charged yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labeldp.errors import DataError, LabelError
from labeldp.spark.columns import column
from labeldp.spark.executor import MISSING, counter
from labeldp.spark.failures import without_labels
from labeldp.spark.vectors import added, joined
from labeldp.stream import Counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["checked_rows", "count_labels", "refuse_repeated_ids"]


def _missing(name: str) -> Column:
    """Return whether a number is missing, NaN or infinite."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    value = column(name).cast("double")
    return value.isNull() | F.isnan(value) | (F.abs(value) == float("inf"))


def checked_rows(df: DataFrame, label: str, id: str | None = None, features: Sequence[str] = ()) -> int:
    """Return the number of rows, if all labels, ids and features are there; Spark counts them without Python.

    Raises
    ------
    LabelError
        If labels are missing or not finite, or there are none.
    DataError
        If ids or features are missing.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    lacks = {"label": _missing(label)}
    if id is not None:
        lacks["id"] = column(id).isNull()
    if features:
        found = _missing(features[0])
        for feature in features[1:]:
            found = found | _missing(feature)
        lacks["features"] = found
    counts = [F.count_if(condition).alias(what) for what, condition in lacks.items()]
    counted = df.agg(F.count(F.lit(1)).alias("rows"), *counts)
    told = without_labels(counted.collect)[0].asDict()
    rows = int(told.pop("rows"))
    _refuse_missing_labels(rows, int(told["label"]))
    if told.get("id"):
        raise DataError(f"{told['id']} of {rows} rows have no id: their noise follows from it")
    if told.get("features"):
        raise DataError(
            f"{told['features']} of {rows} rows have features that are missing, NaN or infinite: drop those rows "
            "or fill them first"
        )
    return rows


def _refuse_missing_labels(rows: int, missing: int) -> None:
    if rows == 0:
        raise LabelError("there are no labels: give at least one")
    if missing:
        raise LabelError(
            f"{missing} of {rows} labels are missing, NaN or infinite: drop those rows or fill them first"
        )


def count_labels(df: DataFrame, label: str, bounds: tuple[float, float], rows: int | None = None) -> Counted:
    """Return exact counts of labels, of which none may be missing, in one pass.

    Parameters
    ----------
    df : DataFrame
    label : str
    bounds : (lo, hi)
    rows : int, optional
        How many there were before.

    Raises
    ------
    LabelError
        If labels are missing or not finite, or there are none.
    DataError
        If there are more or fewer rows than before.
    """
    vectors, _ = added(df.select(column(label).cast("double")), counter(bounds))
    missing = int(vectors.pop(MISSING, [0])[0])
    fine = joined(vectors) if vectors else Counted.none().fine
    found = int(fine.sum()) + missing
    _refuse_missing_labels(found, missing)
    if rows is not None and found != rows:
        raise DataError("there are more or fewer labels now than before: the table changed while it was read")
    return Counted(found, fine)


def refuse_repeated_ids(df: DataFrame, id: str) -> None:
    """Refuse ids that two rows share, by a shuffle."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    groups = df.select(column(id).alias("id")).groupBy("id").agg(F.count(F.lit(1)).alias("n"))
    if without_labels(groups.where(F.col("n") > 1).limit(1).count):
        raise DataError(
            "some rows share an id, and would share their noise, which shows how their labels differ: give each "
            "row an id of its own"
        )
