"""Frames whose rows are the same each time Spark computes them.

Spark runs tasks again after failures and for each action. A row's noise is the same then, so its label must be the
same too: the same noise on two labels shows how they differ. So a plan is accepted only if all of its steps are
known to repeat; any other frame is computed once and kept, if the caller says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from labeldp.errors import DataError, ParameterError
from labeldp.spark.plan_lineage import SAME_ROWS, analyzed_plan, expression_kinds, items, kind_of, steps
from labeldp.spark.session import is_connect, without_labels

__all__ = ["StableFrame", "stable_frame"]

_SETS = frozenset({"Distinct", "Except", "Filter", "Intersect", "Join"})
_SOURCES = frozenset({"CTERelationRef", "LocalRelation", "OneRowRelation", "Range"})
_REPEATS = (SAME_ROWS - {"Window"}) | _SETS | _SOURCES
"""Steps whose rows are the same each time, in whatever order.

Not among them: limits, samples, duplicates dropped by some columns and `first`, which keep whichever row comes
first; sums of floats, which depend on the order; Python functions over partitions; sources that are no files.
"""

_FUNCTIONS = frozenset({"HiveGenericUDF", "HiveSimpleUDF", "PythonUDF", "ScalaUDF"})
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
    kinds = set(expression_kinds(step))
    if kinds & _NOW or any(one.startswith("Current") for one in kinds):
        yield "an expression that depends on the time, or on the user"
    if kinds & _FUNCTIONS:
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
