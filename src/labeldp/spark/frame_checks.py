"""A DataFrame, checked before anything is charged: columns, rows, ids; and computed once, unless it is stored."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from labeldp.errors import DataError, LabelError, ParameterError, Setting
from labeldp.release.names import as_label_name, nearest
from labeldp.spark.session import column, is_connect, refuse_revealing_log, without_labels

_ID_TYPES = (T.IntegralType, T.StringType, T.BinaryType)
_FLAT_TYPES = (*_ID_TYPES, T.NumericType, T.BooleanType, T.CharType, T.VarcharType, T.DatetimeType)
_FILE_FORMATS = ("avro", "csv", "json", "orc", "parquet", "text", "xml")


def _field(df: DataFrame, name: object, option: str) -> T.StructField:
    if not isinstance(name, str):
        raise ParameterError(Setting(option), f" must be the name of a column, got {type(name).__name__}")
    if name not in df.columns:
        near = nearest(name, df.columns)
        raise ParameterError(
            f"there is no column {name!r}" + (f"; is {near!r} meant?" if near else ""), option=option
        )
    return df.schema[name]


def refuse_repeated_names(names: Sequence[str]) -> None:
    """Refuse names that Spark takes for the same."""
    if len({name.lower() for name in names}) < len(names):
        raise DataError("two columns have the same name, or differ only in upper and lower case: rename one")


def refuse_nested_columns(df: DataFrame) -> None:
    """Refuse public columns that hold more than one value a row."""
    for field in df.schema.fields:
        if not isinstance(field.dataType, _FLAT_TYPES):
            kind = field.dataType.typeName()
            raise DataError(
                f"the column {field.name!r} of type {kind} is not supported: leave it out with df.drop"
            )


def label_column(df: DataFrame, label: object) -> str:
    """Return the label's name, if it is a column of numbers."""
    if not type(df).__module__.startswith("pyspark.sql."):
        raise ParameterError(f"df must be a DataFrame of Spark, got {type(df).__module__}.{type(df).__name__}")
    refuse_repeated_names(df.columns)
    field = _field(df, label, "label")
    as_label_name(field.name)
    if not isinstance(field.dataType, T.NumericType):
        kind = field.dataType.typeName()
        raise LabelError(f"labels must be real numbers, got {kind}: convert the column first, with try_cast")
    return field.name


def id_column(df: DataFrame, id: object, label: str) -> str:
    """Return the id's name, if it is a column of integers, text or binary, and not the label."""
    field = _field(df, id, "id")
    if not isinstance(field.dataType, _ID_TYPES):
        raise ParameterError(
            Setting("id"), f" must be a column of integers, text or binary, got {field.dataType.typeName()}"
        )
    if isinstance(field.dataType, T.StringType) and field.dataType.collation != "UTF8_BINARY":
        raise ParameterError(Setting("id"), " must be compared byte by byte: cast it to a plain string")
    if field.name == label:
        raise ParameterError(Setting("id"), " must be another column than the label")
    return field.name


def feature_columns(df: DataFrame, features: object, label: str) -> list[str]:
    """Return the features' names, if they are columns of numbers."""
    if isinstance(features, str) or not isinstance(features, Sequence) or not features:
        raise ParameterError(Setting("features"), " must be a list of columns")
    fields = [_field(df, feature, "features") for feature in features]
    for field in fields:
        if not isinstance(field.dataType, T.NumericType | T.BooleanType):
            raise ParameterError(
                f"feature {field.name!r} is not a number: encode it first, from what is public", option="features"
            )
    names = [field.name for field in fields]
    if label in names or len(set(names)) < len(names):
        raise ParameterError(Setting("features"), " must be different columns, and none of them the label")
    return names


def _is_missing(name: str) -> Column:
    """Return whether a number is missing, NaN or infinite."""
    value = column(name).cast("double")
    return value.isNull() | F.isnan(value) | (F.abs(value) == float("inf"))


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
    counts = [F.count_if(condition).alias(name) for name, condition in conditions.items()]
    totals = without_labels(df.agg(F.count(F.lit(1)).alias("rows"), *counts).collect)[0].asDict()
    rows = int(totals["rows"])
    if rows == 0:
        raise LabelError("there are no labels: give at least one")
    drop = "missing, NaN or infinite: drop those rows or fill them first"
    if totals["label"]:
        raise LabelError(f"{totals['label']} of {rows} labels are {drop}")
    if totals.get("id"):
        raise DataError(f"{totals['id']} of {rows} rows have no id: their noise follows from it")
    if totals.get("features"):
        raise DataError(f"{totals['features']} of {rows} rows have features that are {drop}")
    if id is not None and check_ids:
        _refuse_repeated_ids(df, id)
    return rows


def _refuse_repeated_ids(df: DataFrame, id: str) -> None:
    groups = df.select(column(id).alias("id")).groupBy("id").agg(F.count(F.lit(1)).alias("n"))
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


def stable_frame(df: DataFrame, materialize: bool | None, columns: Sequence[Column] = ()) -> StableFrame:
    """Return some columns, or all, computed once if ``materialize``; None: unless it is a stored table."""
    if materialize is not None and not isinstance(materialize, bool):
        raise ParameterError(Setting("materialize"), " must be True, False or None")
    rows = df.select(*columns) if columns else df
    if materialize or (materialize is None and not _is_stored(df)):
        return StableFrame(without_labels(lambda: rows.localCheckpoint(eager=True)), is_checkpoint=True)
    return StableFrame(rows, is_checkpoint=False)


def stable_inputs(
    df: DataFrame, label: str, id: str, features: object, materialize: bool | None
) -> tuple[list[str], StableFrame]:
    """Return the features' names, and label, id and features as columns c0, c1 …, checked and computed once."""
    label = label_column(df, label)
    id = id_column(df, id, label)
    names = feature_columns(df, features, label)
    refuse_revealing_log(df)
    inputs = [column(label).cast("double"), column(id), *(column(name).cast("double") for name in names)]
    return names, stable_frame(df, materialize, [one.alias(f"c{k}", metadata={}) for k, one in enumerate(inputs)])


def _is_stored(df: DataFrame) -> bool:
    """Return whether a frame is what files hold, with nothing computed from it."""
    if is_connect(df):
        plan: Any = df._plan
        return type(plan).__name__ == "DataSource" and plan._format in _FILE_FORMATS
    plan = _analyzed_plan(df)
    kinds = [str(plan.getClass().getSimpleName())]
    if kinds == ["LogicalRelation"]:
        kinds.append(str(plan.relation().getClass().getSimpleName()))
    return kinds == ["LogicalRelation", "HadoopFsRelation"]


def _analyzed_plan(df: DataFrame) -> Any:
    jdf: Any = df._jdf
    return jdf.queryExecution().analyzed()
