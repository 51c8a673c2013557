"""What a plan shows of labels: in other columns, by which rows there are, or in several rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from labeldp.errors import DataError, ParameterError
from labeldp.spark.plan_lineage import (
    FUNCTIONS,
    PLACE,
    SAME_ROWS,
    VARIABLE,
    Lineage,
    Origins,
    analyzed_plan,
    attribute_id,
    file_source,
    items,
    kind_of,
    kinds,
    output_ids,
    steps,
)
from labeldp.spark.session import is_connect

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

    Columns ``allowed`` may be public, and so may what is computed from them alone; what they come from stays
    private. With more than one row a person, one label may be in several rows: so many are paid for. Rows that
    share an ``id`` are refused elsewhere.
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


_EXACT = ("TINYINT", "SMALLINT", "INT", "BIGINT", "STRING", "BINARY", "DATE")
"""Types whose values are the same where they are equal; not so floats (0 and -0) and text with a collation."""

_SINGLE = SAME_ROWS | {"Deduplicate", "Distinct", "Filter"}
"""Steps that leave each row in at most one place, unless they are looked at by themselves."""

_QUERIES = frozenset({"Exists", "InSubquery", "ListQuery", "ScalarSubquery"})


def refuse_repeated_labels(plan: Any, lineage: Lineage, label: int, id: int | None) -> None:
    """Refuse a plan that may have one label of a source in several rows.

    Through joins, generators, and unions that read a source twice, it may. It is accepted nevertheless if the
    label's own row decides the id, because then rows with the same label have the same id, and these are refused.
    """
    for path in _Paths(plan, lineage).of(plan, {label}):
        if path.repeats is not None and id not in path.keys:
            raise DataError(
                f"one label may be in several rows ({path.repeats}), and each would get noise of its own while "
                "one is paid for: release the labels in their own table, and join the rest to what was released; "
                "or say in rows_per_person how many rows one label may be in. A plan does not tell whether a key "
                "is unique: if you know that no label is there twice, take the id from the label's table, where "
                "shared ids show it, or write the frame to a file, read it back, and release that"
            )


@dataclass(frozen=True)
class _Path:
    """A way of labels from a source to a step of a plan.

    ``source`` has the source's columns that labels are computed from, ``keys`` those columns of the step that the
    source's row decides: they are equal in all rows that have its label, and two of them are computed alike if
    their values are equal. ``repeats`` names the step that may put a row's label into several rows.
    """

    source: Origins
    keys: dict[int, object]
    repeats: str | None = None

    def renamed(self, before: Iterable[int], after: Iterable[int]) -> _Path:
        """Return the path where columns have other ids."""
        pairs = zip(before, after, strict=True)
        return replace(self, keys={new: self.keys[old] for old, new in pairs if old in self.keys})


class _Paths:
    """The ways of labels through a plan."""

    def __init__(self, plan: Any, lineage: Lineage) -> None:
        self._lineage = lineage
        self._queries = {int(step.id()): step for step in steps(plan) if kind_of(step) == "CTERelationDef"}

    def of(self, plan: Any, label: set[int]) -> list[_Path]:
        """Return the paths of what is computed from some columns of a plan."""
        name, children = kind_of(plan), list(items(plan.children()))
        if not label:
            return []
        if name == "CTERelationRef":
            children = [self._queries[int(plan.cteId())]]
        if name in ("CTERelationRef", "Union"):
            return _merged([path for child in children for path in self._by_place(plan, child, label)])
        if name in ("Project", "Aggregate"):
            return self._computed(plan, children[0], label, aggregate=name == "Aggregate")
        if name == "Join":
            return self._joined(plan, children, label)
        if not children:
            return [_Path(self._origins(label), {one: self._source_key(one) for one in output_ids(plan)})]
        child = children[-1]  # of WithCTE, the last
        new, repeats = label - set(output_ids(child)), None if name in _SINGLE else name
        lost = [_Path(self._origins(new), {}, name)] if new else []  # a window's labels are of many rows
        return lost + [replace(path, repeats=path.repeats or repeats) for path in self.of(child, label - new)]

    def _origins(self, attributes: Iterable[int]) -> Origins:
        return frozenset().union(*(self._lineage.origins[one] for one in attributes))

    def _source_key(self, attribute: int) -> object:
        """Return a name for a source's column; for one reading only, if a source is read in several ways."""
        origins = self._lineage.origins[attribute]
        known = len(origins) == 1 and all(isinstance(one, tuple) and one[-1] != "" for one in origins)
        return origins if known else attribute

    def _by_place(self, plan: Any, child: Any, label: set[int]) -> list[_Path]:
        """Return the paths from a step whose columns have the same places, and perhaps other ids."""
        inner, outer = output_ids(child), output_ids(plan)
        below = {old for old, new in zip(inner, outer, strict=True) if new in label}
        return [path.renamed(inner, outer) for path in self.of(child, below)]

    def _computed(self, plan: Any, child: Any, label: set[int], *, aggregate: bool) -> list[_Path]:
        expressions = list(items(plan.aggregateExpressions() if aggregate else plan.projectList()))
        below, lost = set[int](), []
        for one in expressions:
            if attribute_id(one) in label:
                below |= _references(one)
                if _QUERIES & set(kinds(one)):
                    lost.append(_Path(self._origins([attribute_id(one)]), {}, "a query inside an expression"))
        paths = self.of(child, below)
        return lost + [replace(path, keys=_computed_keys(path.keys, expressions, aggregate)) for path in paths]

    def _joined(self, plan: Any, children: list[Any], label: set[int]) -> list[_Path]:
        kind = str(plan.joinType().sql())
        if kind in ("LEFT SEMI", "LEFT ANTI"):
            return self.of(children[0], label)
        pairs = list(_equal_pairs(plan.condition().get())) if plan.condition().isDefined() else []
        paths = []
        for side, outer in zip(children, ("RIGHT OUTER", "LEFT OUTER"), strict=True):
            # With these kinds of join, no row has this side's label where the condition does not hold.
            holds = pairs if kind in ("INNER", "CROSS", outer) else []
            for path in self.of(side, label & set(output_ids(side))):
                keys = _with_equals(path.keys, holds)
                paths.append(replace(path, keys=keys, repeats=path.repeats or "Join"))
        return paths


def _references(expression: Any) -> set[int]:
    return {attribute_id(one) for one in items(expression.references().toSeq())}


def _computed_keys(keys: dict[int, object], expressions: list[Any], aggregate: bool) -> dict[int, object]:
    """Return which columns of a projection the source's row decides; of an aggregate, those that it groups by."""
    chosen: dict[int, object] = {}
    for expression in expressions:
        one, value = attribute_id(expression), expression
        if kind_of(value) == "Alias":
            value = value.child()
        if kind_of(value) == "AttributeReference":
            if attribute_id(value) in keys:
                chosen[one] = keys[attribute_id(value)]
        elif not aggregate and value.deterministic() and _references(value) <= keys.keys():
            known = not (_QUERIES | FUNCTIONS) & set(kinds(value))
            chosen |= {one: ("computed", one)} if known else {}
    return chosen


def _merged(paths: list[_Path]) -> list[_Path]:
    """Return the paths through a union, where those from one source are one."""
    merged: list[_Path] = []
    for new in paths:
        path = new
        for other in [other for other in merged if other.source & new.source]:
            merged.remove(other)
            keys = {one: value for one, value in path.keys.items() if other.keys.get(one) == value}
            path = _Path(path.source | other.source, keys, path.repeats or other.repeats or "Union")
        merged.append(path)
    return merged


def _equal_pairs(condition: Any) -> Iterator[tuple[int, int]]:
    """Yield the columns that are equal where a condition holds."""
    name, children = kind_of(condition), list(items(condition.children()))
    if name == "And":
        for child in children:
            yield from _equal_pairs(child)
    elif name in ("EqualTo", "EqualNullSafe"):
        first, second = (_without_upcast(child) for child in children)
        if all(kind_of(one) == "AttributeReference" and _type(one) in _EXACT for one in (first, second)):
            yield attribute_id(first), attribute_id(second)


def _type(value: Any) -> str:
    return str(value.dataType().sql())


def _without_upcast(value: Any) -> Any:
    """Return the integer of which a value is the same one in a larger type, or the value."""
    if kind_of(value) == "Cast":
        kinds = [_type(value.child()), _type(value)]
        if all(kind in _EXACT[:4] for kind in kinds) and _EXACT.index(kinds[0]) <= _EXACT.index(kinds[1]):
            return value.child()
    return value


def _with_equals(keys: dict[int, object], pairs: list[tuple[int, int]]) -> dict[int, object]:
    """Return keys with the columns that are equal to one of them."""
    more = dict(keys)
    for _ in pairs:
        for first, second in [*pairs, *((second, first) for first, second in pairs)]:
            if first in more:
                more.setdefault(second, more[first])
    return more
