"""Whether Spark, asked again, would compute the same rows again.

Spark runs tasks again after failures and for each action. A row's noise is the same then, so its label must be the
same too: the same noise on two labels shows how they differ. So a plan is accepted only if it is made of steps
known to repeat; any other is computed once and kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labeldp.errors import DataError, ParameterError
from labeldp.spark.plan_lineage import SAME_ROWS, analyzed, functions, listed, node_name, steps
from labeldp.spark.session import is_connect, without_labels

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    """A frame that is the same each time it is computed; perhaps because it was kept."""

    frame: DataFrame
    kept: bool

    def drop(self) -> None:
        """Let Spark forget what was kept: raw labels on the executors' disks.

        Spark Connect does so when nobody holds the frame any more.
        """
        if self.kept and not is_connect(self.frame):
            self.kept = False
            analyzed(self.frame).rdd().unpersist(True)


def stable_frame(df: DataFrame, materialize: bool | None) -> StableFrame:
    """Return the frame if it repeats, or computed once and kept; or refuse.

    Parameters
    ----------
    df : DataFrame
    materialize : bool or None
        True keeps it. False takes the user's word. None asks the plan, and refuses if it may not repeat; a plan on
        the other side of Spark Connect cannot be asked, so its frame is kept.
    """
    if materialize is not None and not isinstance(materialize, bool):
        raise ParameterError("materialize must be True, False or None")
    if materialize or (materialize is None and is_connect(df)):
        return StableFrame(without_labels(lambda: df.localCheckpoint(eager=True)), kept=True)
    if materialize is None:
        odd = sorted({what for step in steps(analyzed(df)) for what in _odd(step)})
        if odd:
            raise DataError(
                f"this frame may not be the same when Spark computes it again ({', '.join(odd)}), and the same "
                "noise on two labels would show how they differ: write it to a file and read it back, or say "
                "materialize=True; materialize=False if you know that it repeats"
            )
    return StableFrame(df, kept=False)


def _odd(step: Any) -> Iterator[str]:
    """Yield what may be different the next time."""
    name = node_name(step)
    if not step.deterministic() and all(child.deterministic() for child in listed(step.children())):
        yield "an expression that is not deterministic"
    used = set(functions(step))
    if used & _NOW or any(one.startswith("Current") for one in used):
        yield "an expression that depends on the time, or on who asks"
    if used & _FUNCTIONS:
        yield "a function that Spark does not know"
    if name == "LogicalRelation":
        if node_name(step.relation()) != "HadoopFsRelation":
            yield "a source that is no file"
    elif name == "Deduplicate":
        if step.keys().size() < step.output().size():  # which of the rows is kept?
            yield name
    elif name == "LogicalRDD":
        if not step.rdd().isCheckpointed():
            yield "an RDD"
    elif name not in _REPEATS:
        yield name
