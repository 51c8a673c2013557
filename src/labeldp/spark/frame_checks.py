"""A DataFrame, checked before anything is charged: columns, rows, ids, and whether it repeats.

Spark runs tasks again after failures and for each action. A row's noise is the same then, so its label must be the
same too: the same noise on two labels shows how they differ. So a plan is accepted only if all of its steps are
known to repeat; any other frame is computed once and kept, if the caller says so.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from labeldp._names import as_label_name, reads_as_number
from labeldp.errors import DataError, LabelError, ParameterError
from labeldp.spark.plan_lineage import FUNCTIONS, SAME_ROWS, analyzed_plan, items, kind_of, kinds, steps
from labeldp.spark.session import column, is_connect, without_labels


def _field(df: DataFrame, name: object, parameter: str) -> Any:
    names = df.columns
    if not isinstance(name, str):
        raise ParameterError(f"{parameter} must be the name of a column, got {type(name).__name__}")
    if name in names:
        return df.schema[name]
    if "." in name and name.split(".", 1)[0] in names:
        raise ParameterError(
            f"{parameter}={name!r} is inside another column, which would carry it along: make it a column of its "
            "own, and take it out of the other"
        )
    texts = [one for one in names if not reads_as_number(one)]  # without a header, labels may be names
    near = [one for one in texts if one.lower() == name.lower()] or get_close_matches(name, texts, n=1)
    raise ParameterError(f"there is no column {name!r}" + (f"; is {near[0]!r} meant?" if near else ""))


def refuse_repeated_names(names: Sequence[str]) -> None:
    """Refuse names that Spark takes for the same."""
    if len({name.lower() for name in names}) < len(names):
        raise DataError("two columns have the same name, or differ only in upper and lower case: rename one")


def label_column(df: DataFrame, label: object) -> str:
    """Return the label's name, if it is a column of numbers."""
    if not type(df).__module__.startswith("pyspark.sql."):
        raise ParameterError(f"df must be a DataFrame of Spark, got {type(df).__module__}.{type(df).__name__}")
    refuse_repeated_names(df.columns)
    field = _field(df, label, "label")
    as_label_name(field.name)
    if not isinstance(field.dataType, T.NumericType):
        kind = field.dataType.simpleString().split("<")[0].split("(")[0]
        raise LabelError(f"labels must be real numbers, got {kind}: convert the column first, with try_cast")
    return str(field.name)


def id_column(df: DataFrame, id: object, label: str) -> str:
    """Return the id's name, if it is a column of integers, text or binary, and not the label."""
    if id is None:
        raise ParameterError(
            "id must name a column that tells rows apart: a row's noise follows from its id, so that a task "
            "that runs twice gives the same noise twice"
        )
    field = _field(df, id, "id")
    if not isinstance(field.dataType, T.IntegralType | T.StringType | T.BinaryType):
        raise ParameterError(
            f"ids must be integers, text or binary, got {field.dataType.simpleString()}: convert them"
        )
    if isinstance(field.dataType, T.StringType) and field.dataType.collation != "UTF8_BINARY":
        raise ParameterError("ids of text must be compared byte by byte: cast them to a plain string")
    if field.name == label:
        raise ParameterError("the label cannot be its own id")
    return str(field.name)


def feature_columns(df: DataFrame, features: object, label: str) -> list[str]:
    """Return the features' names, if they are columns of numbers."""
    if isinstance(features, str) or not isinstance(features, Sequence) or not features:
        raise ParameterError("features must be a list of columns")
    names = []
    for feature in features:
        field = _field(df, feature, "features")
        if not isinstance(field.dataType, T.NumericType | T.BooleanType):
            raise ParameterError(f"feature {feature!r} is not a number: encode it first, from what is public")
        names.append(str(field.name))
    if label in names or len(set(names)) < len(names):
        raise ParameterError("features must be different columns, and none of them the label")
    return names


def _is_missing(name: str) -> Column:
    """Return whether a number is missing, NaN or infinite."""
    value = column(name).cast("double")
    return value.isNull() | F.isnan(value) | (F.abs(value) == float("inf"))


def count_rows(df: DataFrame, label: str, id: str | None = None, features: Sequence[str] = ()) -> int:
    """Return the number of rows, if there are some and no label, id or feature is missing or not finite."""
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
    groups = df.select(column(id).alias("id")).groupBy("id").agg(F.count(F.lit(1)).alias("n"))
    if without_labels(groups.where(F.col("n") > 1).limit(1).count):
        raise DataError(
            "some rows share an id, and would share their noise, which shows how their labels differ: give each "
            "row an id of its own"
        )


_SETS = frozenset({"Distinct", "Except", "Filter", "Intersect", "Join"})
_SOURCES = frozenset({"CTERelationRef", "LocalRelation", "OneRowRelation", "Range"})
_REPEATS = (SAME_ROWS - {"Window"}) | _SETS | _SOURCES
"""Steps whose rows are the same each time, in whatever order.

Not among them: limits, samples, duplicates dropped by some columns and `first`, which keep whichever row comes
first; sums of floats, which depend on the order; Python functions over partitions; sources that are no files.
"""

_NOW = frozenset({"LocalTimestamp", "Now"})


@dataclass(slots=True)
class StableFrame:
    """A frame that is the same each time it is computed; perhaps because it is a checkpoint."""

    frame: DataFrame
    is_checkpoint: bool

    def drop(self) -> None:
        """Let Spark forget a checkpoint: raw labels on the executors' disks.

        Spark Connect does so when nobody holds the frame any more.
        """
        if self.is_checkpoint and not is_connect(self.frame):
            self.is_checkpoint = False
            analyzed_plan(self.frame).rdd().unpersist(True)


def stable_frame(df: DataFrame, materialize: bool | None) -> StableFrame:
    """Return the frame if it repeats, or computed once and kept; or refuse.

    True keeps it. False trusts the caller. None reads the plan, and refuses if it may not repeat; a plan behind
    Spark Connect cannot be read, so its frame is kept.
    """
    if materialize is not None and not isinstance(materialize, bool):
        raise ParameterError("materialize must be True, False or None")
    if materialize or (materialize is None and is_connect(df)):
        return StableFrame(without_labels(lambda: df.localCheckpoint(eager=True)), is_checkpoint=True)
    if materialize is None:
        reasons = sorted({reason for step in steps(analyzed_plan(df)) for reason in _variable(step)})
        if reasons:
            raise DataError(
                f"this frame may not be the same when Spark computes it again ({', '.join(reasons)}), and the "
                "same noise on two labels would show how they differ: write it to a file and read it back, or say "
                "materialize=True; materialize=False if you know that it repeats"
            )
    return StableFrame(df, is_checkpoint=False)


def _variable(step: Any) -> Iterator[str]:
    """Yield why a step's rows may be different the next time."""
    name = kind_of(step)
    if not step.deterministic() and all(child.deterministic() for child in items(step.children())):
        yield "an expression that is not deterministic"
    names = {kind for expression in items(step.expressions()) for kind in kinds(expression)}
    if names & _NOW or any(one.startswith("Current") for one in names):
        yield "an expression that depends on the time, or on the user"
    if names & FUNCTIONS:
        yield "a function that Spark does not know"
    if name == "LogicalRelation":
        if kind_of(step.relation()) != "HadoopFsRelation":
            yield "a source that is no file"
    elif name == "Deduplicate":
        if step.keys().size() < step.output().size():  # which of the rows is kept?
            yield name
    elif name == "LogicalRDD":
        if not step.rdd().isCheckpointed():
            yield "an RDD"
    elif name not in _REPEATS:
        yield name
