"""Spark's plans, as far as a classic session shows them: their steps, and where columns come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Lineage", "Origins", "analyzed", "attribute_ids", "functions", "listed", "node_name", "steps"]

Origins = frozenset[object]
"""What a column was computed from: columns of sources."""


def analyzed(df: DataFrame) -> Any:
    """Return the analysed plan of a classic DataFrame."""
    jdf: Any = df._jdf
    return jdf.queryExecution().analyzed()


def listed(sequence: Any) -> Iterator[Any]:
    """Yield what is in a sequence of Scala's."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def node_name(node: Any) -> str:
    """Return what kind of step, or of expression, this is."""
    return str(node.getClass().getSimpleName())


def steps(plan: Any) -> Iterator[Any]:
    """Yield the steps of a plan, and of queries inside its expressions."""
    yield plan
    for child in (*listed(plan.children()), *listed(plan.subqueries())):
        yield from steps(child)


def functions(step: Any) -> Iterator[str]:
    """Yield the kinds of all expressions in a step."""
    waiting = list(listed(step.expressions()))
    while waiting:
        one = waiting.pop()
        name = node_name(one)
        yield name
        if name != "AttributeReference":
            waiting += listed(one.children())


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def attribute_ids(plan: Any) -> list[int]:
    """Return the ids by which Spark knows a plan's columns."""
    return [_id(one) for one in listed(plan.output())]


@dataclass
class Lineage:
    """Where the columns of a plan come from.

    Parameters
    ----------
    start : plan, optional
        Where to stop: its columns count as sources.
    released_by : str, optional
        The kind of expression or step whose results are private, and show nothing of what they are computed from.

    Attributes
    ----------
    known : dict
        From a column's id to what it was computed from.
    placed_by : list of (step, origins)
        Steps that decide where a row lands, or in which order, and what they look at.
    folders : set
        Columns of sources that stand in the names of folders.
    """

    start: Any = None
    released_by: str | None = None
    known: dict[int, Origins] = field(default_factory=dict)
    placed_by: list[tuple[Any, Origins]] = field(default_factory=list)
    folders: set[object] = field(default_factory=set)
    _files: list[list[str]] = field(default_factory=list)
    _parts: dict[int, list[int]] = field(default_factory=dict)

    def walk(self, plan: Any) -> None:
        """Take in a plan, from its sources on."""
        if self.start is not None and plan.sameResult(self.start):  # ids of columns may be new in a second copy
            pairs = zip(attribute_ids(plan), attribute_ids(self.start), strict=True)
            self.known |= {one: frozenset([source]) for one, source in pairs}
            return
        for child in (*listed(plan.subqueries()), *listed(plan.children())):
            self.walk(child)
        name = node_name(plan)
        made = {"Project": "projectList", "Aggregate": "aggregateExpressions"}.get(name)
        if not plan.children().size():
            self._source(plan, name)
        elif made is not None:
            self._computed(plan, made)
        elif name in ("Union", "Intersect", "Except"):
            outputs = [attribute_ids(child) for child in listed(plan.children())]
            for place, one in enumerate(attribute_ids(plan)):
                self.known[one] = self._of(output[place] for output in outputs)
        elif name == "CTERelationDef":
            self._parts[int(plan.id())] = attribute_ids(plan)
        else:
            self._others(plan, name)
        looked_at = self._looked_at(plan, name)
        if looked_at:
            self.placed_by.append((plan, looked_at))

    def origin(self, attribute: int) -> Origins:
        """Return what a column was computed from."""
        return self.known.get(attribute, frozenset([attribute]))

    def _of(self, attributes: Any) -> Origins:
        return frozenset().union(*(self.origin(one) for one in attributes))

    def _read(self, node: Any) -> Origins:
        return self._of(_id(one) for one in listed(node.references().toSeq()))

    def _computed(self, plan: Any, made: str) -> None:
        asked = self._of(one for query in listed(plan.subqueries()) for one in attribute_ids(query))
        found = {}
        for expression in listed(getattr(plan, made)()):
            if node_name(expression) == "AttributeReference":
                continue
            private = self.released_by is not None and node_name(expression.child()) == self.released_by
            found[_id(expression)] = frozenset() if private else self._read(expression) | asked
        self.known |= found

    def _others(self, plan: Any, name: str) -> None:
        """Whatever is new may come from all that the step looks at; of steps not known, from all that they get."""
        given = [one for child in listed(plan.children()) for one in attribute_ids(child)]
        new = [one for one in attribute_ids(plan) if one not in given]
        if new and name != self.released_by:
            of = self._read(plan) if name in ("Window", "Generate") else self._of(given)
            self.known |= dict.fromkeys(new, of)
        elif new:
            self.known |= dict.fromkeys(new, frozenset())

    def _source(self, plan: Any, name: str) -> None:
        """Name a source's columns so that a second look at the same source finds the same names."""
        outputs = list(listed(plan.output()))
        if name == "CTERelationRef":
            for one, other in zip(attribute_ids(plan), self._parts[int(plan.cteId())], strict=True):
                self.known[one] = self.origin(other)
        elif name == "LogicalRelation" and node_name(plan.relation()) == "HadoopFsRelation":
            relation = plan.relation()
            place = self._file([str(path) for path in listed(relation.location().rootPaths())])
            self.known |= {_id(one): frozenset([(place, str(one.name()).lower())]) for one in outputs}
            self.folders |= {(place, str(one).lower()) for one in relation.partitionSchema().fieldNames()}
        else:
            same = int(plan.rdd().id()) if name == "LogicalRDD" else int(plan.canonicalized().hashCode())
            self.known |= {_id(one): frozenset([(name, same, place)]) for place, one in enumerate(outputs)}

    def _file(self, paths: list[str]) -> int:
        """Return the number of a source of files; sources that share a file have the same."""
        ours = [f"{path}/" for path in paths]
        for number, theirs in enumerate(self._files):
            if any(one.startswith(two) or two.startswith(one) for one in ours for two in theirs):
                theirs.extend(ours)
                return number
        self._files.append(ours)
        return len(self._files) - 1

    def _looked_at(self, plan: Any, name: str) -> Origins:
        """Return what a step looks at to decide where a row lands.

        Rows that are dealt out evenly are first sorted by a hash of all their columns.
        """
        if name in ("Sort", "RepartitionByExpression", "RebalancePartitions", "Join", "Window", "Generate"):
            dealt = name == "RepartitionByExpression" and not plan.partitionExpressions().size()
            return self._of(attribute_ids(plan)) if dealt else self._read(plan)
        if name == "Aggregate":
            return frozenset().union(*(self._read(one) for one in listed(plan.groupingExpressions())))
        if name == "Deduplicate":
            return self._of(_id(one) for one in listed(plan.keys()))
        if name in ("Distinct", "Intersect", "Except") or (name == "Repartition" and plan.shuffle()):
            return self._of(attribute_ids(plan))
        return frozenset()
