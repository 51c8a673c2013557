"""What would show labels beside the label: columns computed from the same data, and where rows land."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from labeldp.errors import DataError, ParameterError
from labeldp.spark.plans import Lineage, Origins, analyzed, attribute_ids, listed, node_name
from labeldp.spark.secret import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["refuse_related"]


def refuse_related(df: DataFrame, label: str, id: str, allowed: Sequence[str]) -> None:
    """Refuse a frame that carries the label along: in another column, or by where its rows lie.

    A column computed from what the label was computed from (``sales`` beside ``log(sales)``) may show it; so does
    a row's place, if rows were sorted or spread by their labels. Only what the plan tells can be seen.

    Parameters
    ----------
    df : DataFrame
        Classic; plans behind Spark Connect cannot be asked.
    label, id : str
    allowed : list of str
        Columns that may be related to the label.
    """
    if isinstance(allowed, str):
        raise ParameterError("allow_related must be a list of columns")
    for name in allowed:
        if name not in df.columns:
            raise ParameterError(f"allow_related names a column that is not there: {name!r}")
    if is_connect(df):
        warnings.warn(
            "plans behind Spark Connect cannot be asked: whether another column, or the order of rows, gives the "
            "label away is for you to judge",
            UserWarning,
            stacklevel=4,
        )
        return
    plan = analyzed(df)
    lineage = Lineage()
    lineage.walk(plan)
    names = [str(one.name()) for one in listed(plan.output())]
    origin = {name: lineage.origin(one) for name, one in zip(names, attribute_ids(plan), strict=True)}
    of_label = origin[label]
    for name, of in origin.items():
        if name != label and of & of_label and name not in allowed:
            raise DataError(
                f"column {name!r} is computed from the same data as the label, and may show it: drop it, or "
                "name it in allow_related if you know that it may be public"
            )
    if of_label & lineage.folders:
        raise DataError(
            "the files lie in folders named by the label, and where a row lies gives its label away: put them all "
            "into one folder first, in an order that does not tell"
        )
    for step, looked_at in lineage.placed_by:
        if looked_at & of_label and not _sorted_after(plan, step, lineage, origin[id] - of_label):
            raise DataError(
                f"where a row lies depends on its label here ({node_name(step)}), and shows when the frame is "
                f"written: spread rows by their ids with .repartition(n, {id!r}), or add .orderBy({id!r})"
            )


def _sorted_after(plan: Any, step: Any, lineage: Lineage, by: Origins) -> bool:
    """Return whether all rows are sorted by their ids after a step."""
    while not plan.equals(step):
        if node_name(plan) == "Sort" and getattr(plan, "global")():
            looked_at = next(of for one, of in lineage.placed_by if one.equals(plan))
            if by and by <= looked_at:
                return True
        if plan.children().size() != 1:
            return False
        plan = plan.children().apply(0)
    return False
