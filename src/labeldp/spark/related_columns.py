"""What would show labels beside the label: columns computed from the same data, and which rows there are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from labeldp.errors import DataError, ParameterError
from labeldp.spark.file_sources import file_source
from labeldp.spark.label_rows import refuse_repeated_labels
from labeldp.spark.plan_lineage import (
    PLACE,
    VARIABLE,
    Lineage,
    Origins,
    analyzed_plan,
    attribute_id,
    items,
    kind_of,
    steps,
)
from labeldp.spark.session import is_connect

__all__ = ["refuse_related"]

_COMPARISONS = frozenset(
    {"EqualNullSafe", "EqualTo", "GreaterThan", "GreaterThanOrEqual", "In", "LessThan", "LessThanOrEqual"}
)
_FLOATS = frozenset({"DOUBLE", "FLOAT"})
_NOT_FINITE = frozenset({"Infinity", "-Infinity", "NaN"})


def refuse_related(
    df: DataFrame, label: str, allowed: Sequence[str] = (), *, id: str | None = None, rows_per_person: int = 1
) -> None:
    """Refuse a frame that carries the label along: in another column, by which rows there are, or in more rows.

    A column computed from what the label was computed from (``sales`` beside ``log(sales)``) may show it, and so
    may a filter on it. What follows from where rows lie (``monotonically_increasing_id``, ``limit``) may do so
    too, because Spark cuts its input by bytes, the label's among them. Only what the plan tells can be seen.

    Parameters
    ----------
    df : DataFrame
        Classic; plans behind Spark Connect cannot be asked.
    label : str
    allowed : list of str
        Columns that may be public, and so may what is computed from them alone; what they come from stays private.
    id : str, optional
        By which rows with the same id are refused, if that is done.
    rows_per_person : int
        If more than 1, one label may be in several rows: so many are paid for.
    """
    if isinstance(allowed, str):
        raise ParameterError("allow_related must be a list of columns")
    for name in allowed:
        if name not in df.columns:
            raise ParameterError(f"allow_related names {name!r}, which is not a column of df")
    if is_connect(df):
        warnings.warn(
            "plans behind Spark Connect cannot be read: whether another column, or which rows there are, gives "
            "the label away, or one label is in several rows, is for you to judge",
            UserWarning,
            stacklevel=3,
        )
        return
    plan = analyzed_plan(df)
    lineage = Lineage.of(plan)
    ids = {str(one.name()): attribute_id(one) for one in items(plan.output())}
    whole, label_origins = lineage, lineage.origins[ids[label]] - {PLACE, VARIABLE}
    private = label_origins | {PLACE, VARIABLE}
    if allowed:
        lineage = Lineage.of(plan, {ids[name] for name in allowed} - {ids[label]})
    for name, one in ids.items():
        shown = lineage.origins[one] & private
        if shown and name != label:
            raise DataError(
                f"column {name!r} is computed from {_describe(shown)}, and may show it: drop it, or name it in "
                "allow_related if you know that it may be public"
            )
    conditions = _Conditions(lineage, private, lineage.copies(ids[label]))
    for step in steps(plan):
        shown = lineage.row_origins(step) & private
        if shown and not conditions.only_for_missing_labels(step):
            raise DataError(
                f"which rows there are follows from {_describe(shown)} ({kind_of(step)}), and may show it: choose "
                "rows by public columns, or by whether the label is missing. If you know that it shows nothing, "
                "write the frame to a file, read it back, and release that"
            )
        source = file_source(step)
        if source and any(whole.origins[attribute_id(one)] & label_origins for one in items(step.output())):
            source.refuse_options()
    if rows_per_person == 1:
        refuse_repeated_labels(plan, whole, ids[label], ids.get(id) if id is not None else None)


def _describe(shown: Origins) -> str:
    if shown == {VARIABLE}:
        return "a session variable, which may have been set from labels"
    return "where rows lie, as the labels' bytes decide" if shown == {PLACE} else "the same data as the label"


@dataclass(frozen=True, slots=True)
class _Conditions:
    """What conditions reveal of the label, which is a copy of the columns ``copies``."""

    lineage: Lineage
    private: Origins
    copies: set[int]

    def only_for_missing_labels(self, step: Any) -> bool:
        """Return whether a step is a filter that asks no more than whether labels are missing or not finite."""
        return kind_of(step) == "Filter" and not step.subqueries().size() and self._passes(step.condition())

    def _passes(self, condition: Any) -> bool:
        if self._is_public(condition):
            return True
        name, children = kind_of(condition), list(items(condition.children()))
        if name in ("And", "Or", "Not"):
            return all(self._passes(child) for child in children)
        if name in _COMPARISONS:
            children = [one for one in children if str(one.toString()) not in _NOT_FINITE]
            floats = all(one.dataType().sql() in _FLOATS for one in children)  # text is compared letter by letter
            return len(children) == 1 and floats and self._is_label(children[0])
        missing = name in ("AtLeastNNonNulls", "IsNaN", "IsNotNull", "IsNull")
        return missing and all(self._is_label(one) or self._is_public(one) for one in children)

    def _is_public(self, value: Any) -> bool:
        return not self.lineage.reads(value) & self.private

    def _is_label(self, value: Any) -> bool:
        """Return whether a value is the label, perhaps without its sign, or as a double."""
        while kind_of(value) == "Abs" or (kind_of(value) == "Cast" and value.dataType().sql() == "DOUBLE"):
            value = next(items(value.children()))
        return kind_of(value) == "AttributeReference" and attribute_id(value) in self.copies
