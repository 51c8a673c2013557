"""Whether Spark, asked again, would compute the same rows again; and where other columns come from.

Spark runs tasks again after failures and for each action. A row's noise is the same then, so its label must be the
same too: the same noise on two labels shows how they differ. So a plan is accepted only if it is made of steps
known to repeat; any other is computed once and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from labeldp.errors import DataError, ParameterError
from labeldp.spark.secret import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["analyzed", "attribute_ids", "kept_or_repeatable", "listed", "node_name", "refuse_related"]

_REPEATS = frozenset(
    {
        "Distinct",
        "Except",
        "Filter",
        "Intersect",
        "Join",
        "LocalRelation",
        "OneRowRelation",
        "Project",
        "Range",
        "Repartition",
        "RepartitionByExpression",
        "ResolvedHint",
        "Sort",
        "SubqueryAlias",
        "Union",
        "View",
    }
)
"""Steps whose rows are the same each time, in whatever order.

Not among them: limits, samples, duplicates dropped by some columns and `first`, which keep whichever row comes
first; sums of floats, which depend on the order; Python functions over partitions; sources that are no files.
"""


def kept_or_repeatable(df: DataFrame, materialize: bool | None) -> DataFrame:
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
        return df.localCheckpoint(eager=True)
    if materialize is None:
        odd = sorted(set(_odd_steps(analyzed(df))))
        if odd:
            raise DataError(
                f"this frame may not be the same when Spark computes it again ({', '.join(odd)}), and the same "
                "noise on two labels would show how they differ: write it to a file and read it back, or say "
                "materialize=True; materialize=False if you know that it repeats"
            )
    return df


def analyzed(df: DataFrame) -> Any:
    """Return the analysed plan of a classic DataFrame."""
    jdf: Any = df._jdf
    return jdf.queryExecution().analyzed()


def listed(sequence: Any) -> Iterator[Any]:
    """Yield what is in a sequence of Scala's."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def node_name(node: Any) -> str:
    """Return what kind of step a plan ends in."""
    return str(node.getClass().getSimpleName())


def _odd_steps(plan: Any) -> Iterator[str]:
    name = node_name(plan)
    if not plan.deterministic() and all(child.deterministic() for child in listed(plan.children())):
        yield "an expression that is not deterministic"
    if name == "LogicalRelation":
        if node_name(plan.relation()) != "HadoopFsRelation":
            yield "a source that is no file"
    elif name == "Deduplicate":
        if plan.keys().size() < plan.output().size():  # which of the rows is kept?
            yield name
    elif name == "LogicalRDD":
        if not plan.rdd().isCheckpointed():
            yield "an RDD"
    elif name not in _REPEATS:
        yield name
    for child in listed(plan.children()):
        yield from _odd_steps(child)


# ---- where columns come from --------------------------------------------------------------------------


def refuse_related(df: DataFrame, label: str, allowed: Sequence[str]) -> None:
    """Refuse a frame that carries the label along in another column, as far as its plan tells.

    A column computed from what the label was computed from (``sales`` beside ``log(sales)``) may show it.
    """
    if isinstance(allowed, str):
        raise ParameterError("allow_related must be a list of columns")
    if is_connect(df):
        return
    plan = analyzed(df)
    source = _sources(plan)
    origin = {str(one.name()): source.get(_id(one), frozenset([_id(one)])) for one in listed(plan.output())}
    related = [name for name, of in origin.items() if name != label and of & origin[label] and name not in allowed]
    if related:
        raise DataError(
            f"column {related[0]!r} is computed from the same data as the label, and may show it: drop it, or "
            "name it in allow_related if you know that it may be public"
        )


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def attribute_ids(plan: Any) -> list[int]:
    """Return the ids by which Spark knows a plan's columns."""
    return [_id(one) for one in listed(plan.output())]


def _sources(plan: Any) -> dict[int, frozenset[int]]:
    """Return, for each attribute seen in a plan, the attributes of its sources that it was computed from."""
    known: dict[int, frozenset[int]] = {}
    for child in listed(plan.children()):
        known |= _sources(child)
    made = {"Project": "projectList", "Aggregate": "aggregateExpressions"}.get(node_name(plan))
    if made is not None:
        for expression in listed(getattr(plan, made)()):
            read = [_id(one) for one in listed(expression.references().toSeq())]
            known[_id(expression)] = frozenset().union(*(known.get(one, frozenset([one])) for one in read))
    elif node_name(plan) == "Union":
        outputs = [list(listed(child.output())) for child in listed(plan.children())]
        for place, one in enumerate(listed(plan.output())):
            each = [_id(output[place]) for output in outputs]
            known[_id(one)] = frozenset().union(*(known.get(k, frozenset([k])) for k in each))
    return known
