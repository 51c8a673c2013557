"""A DataFrame, checked before anything is charged: columns, rows, ids; and computed once, unless it is stored."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from labeldp.errors import DataError, LabelError, ParameterError, Setting
from labeldp.release.names import as_label_name, refuse_lookalike
from labeldp.spark.session import column, is_connect, refuse_revealing_log, without_labels

_ID_TYPES = (T.IntegralType, T.StringType, T.BinaryType)
_FLAT_TYPES = (*_ID_TYPES, T.NumericType, T.BooleanType, T.CharType, T.VarcharType, T.DatetimeType)
_FILE_FORMATS = ("avro", "csv", "json", "orc", "parquet", "text", "xml")


def _check_type(df: DataFrame, name: object, option: str, types: tuple[type[T.DataType], ...]) -> None:
    """Refuse a name that is not that of a column of one of these types."""
    if not isinstance(name, str) or name not in df.columns:
        raise ParameterError(Setting(option), " must be the name of a column of the frame, and it is not")
    kind = df.schema[name].dataType
    if not isinstance(kind, types):
        error = LabelError if option == "label" else ParameterError
        raise error(Setting(option), f" cannot have the type {kind.typeName()}: convert the column first")
    if isinstance(kind, T.StringType) and kind.collation != "UTF8_BINARY":
        raise ParameterError(Setting(option), " must be compared byte by byte: cast it to a plain string")


def refuse_nested_columns(df: DataFrame) -> None:
    """Refuse public columns that hold more than one value a row."""
    for field in df.schema.fields:
        if not isinstance(field.dataType, _FLAT_TYPES):
            kind = field.dataType.typeName()
            raise DataError(f"the column {field.name!r} has the type {kind}: leave it out with df.drop")


def check_label(df: DataFrame, label: str) -> None:
    """Refuse a label that is not a column of numbers, and frames whose columns cannot be told apart."""
    if not type(df).__module__.startswith("pyspark.sql."):
        raise ParameterError(f"df must be a DataFrame of Spark, got {type(df).__module__}.{type(df).__name__}")
    if len({name.lower() for name in df.columns}) < len(df.columns):  # Spark takes these for the same
        raise DataError("two columns have the same name, or differ only in upper and lower case: rename one")
    _check_type(df, label, "label", (T.NumericType,))
    as_label_name(label)
    public = (name for name in df.columns if name != label)
    refuse_lookalike(label, public, "leave it out with df.drop, or rename it if it is not the same")


def check_id(df: DataFrame, id: str, label: str) -> None:
    """Refuse an id that is not a column of integers, text or binary, or is the label."""
    _check_type(df, id, "id", _ID_TYPES)
    if id == label:
        raise ParameterError(Setting("id"), " must be another column than the label")


def check_rows(
    df: DataFrame, label: str, id: str | None = None, features: Sequence[str] = (), *, check_ids: bool = False
) -> int:
    """Return the number of rows, if there are some and no label, id or feature is missing or not finite.

    To ``check_ids`` is to refuse those that two rows share, by a shuffle.
    """
    conditions = {"label": _is_missing(label)}
    if id is not None:
        conditions["id"] = column(id).isNull()
    if features:
        conditions["features"] = reduce(operator.or_, map(_is_missing, features))
    counts = map(F.count_if, conditions.values())
    rows, *missing = without_labels(df.agg(F.count(F.lit(1)), *counts).collect)[0]
    if not rows:
        raise LabelError("there are no labels: give at least one")
    for name, number in zip(conditions, missing, strict=True):
        if number:
            problem = f"the {name} of {number} of {rows} rows is missing, NaN or infinite"
            raise (LabelError if name == "label" else DataError)(f"{problem}: drop those rows or fill them first")
    if id is not None and check_ids:
        _refuse_repeated_ids(df, id)
    return int(rows)


def _is_missing(name: str) -> Column:
    """Return whether a number is missing, NaN or infinite."""
    value = column(name).cast("double")
    return value.isNull() | F.isnan(value) | (F.abs(value) == float("inf"))


def _refuse_repeated_ids(df: DataFrame, id: str) -> None:
    rows = F.count(F.lit(1)).alias("n")
    groups = df.select(column(id).alias("id")).groupBy("id").agg(rows)
    if without_labels(groups.where(F.col("n") > 1).limit(1).count):
        raise DataError(
            "some rows share an id, and would share their noise, which shows how their labels differ: give each "
            "row an id of its own"
        )


@dataclass(slots=True)
class StableFrame:
    """A frame that is the same each time Spark computes it: a stored table, or a checkpoint.

    Spark computes rows again after failures and for each action. A row's noise is the same then, so its label must
    be the same too: the same noise on two labels shows how they differ.
    """

    frame: DataFrame
    is_checkpoint: bool

    def drop(self) -> None:
        """Delete a checkpoint: raw labels on the executors' disks.

        Spark Connect does so when nobody holds the frame any more.
        """
        if self.is_checkpoint and not is_connect(self.frame):
            self.is_checkpoint = False
            _analyzed_plan(self.frame).rdd().unpersist(True)


def stable_frame(df: DataFrame, columns: Sequence[Column] = ()) -> StableFrame:
    """Return some columns, or all, computed once unless the frame is a stored table."""
    rows = df.select(*columns) if columns else df
    if is_stored(df):
        return StableFrame(rows, is_checkpoint=False)
    return StableFrame(without_labels(lambda: rows.localCheckpoint(eager=True)), is_checkpoint=True)


@contextmanager
def checked_inputs(df: DataFrame, label: str, id: str, features: Sequence[str]) -> Iterator[tuple[DataFrame, int]]:
    """Yield label, id and features as columns c0, c1 …, checked and computed once, and the number of rows."""
    refuse_revealing_log(df)
    check_label(df, label)
    check_id(df, id, label)
    if isinstance(features, str) or not isinstance(features, Sequence) or not features:
        raise ParameterError(Setting("features"), " must be a list of columns")
    for name in features:
        _check_type(df, name, "features", (T.NumericType, T.BooleanType))
    if label in features or len(set(features)) < len(features):
        raise ParameterError(Setting("features"), " must be different columns, and none of them the label")
    numbers = [column(name).cast("double") for name in features]
    inputs = [column(label).cast("double"), column(id), *numbers]
    source = stable_frame(df, [values.alias(f"c{k}", metadata={}) for k, values in enumerate(inputs)])
    try:
        rows = source.frame
        yield rows, check_rows(rows, "c0", "c1", rows.columns[2:])
    finally:
        source.drop()


def is_stored(df: DataFrame) -> bool:
    """Return whether a frame is what files hold, with nothing computed from it."""
    if is_connect(df):
        plan: Any = df._plan
        return type(plan).__name__ == "DataSource" and plan._format in _FILE_FORMATS
    plan = _analyzed_plan(df)
    return _class_name(plan) == "LogicalRelation" and _class_name(plan.relation()) == "HadoopFsRelation"


def _class_name(java_object: Any) -> str:
    return str(java_object.getClass().getSimpleName())


def _analyzed_plan(df: DataFrame) -> Any:
    jdf: Any = df._jdf
    return jdf.queryExecution().analyzed()
