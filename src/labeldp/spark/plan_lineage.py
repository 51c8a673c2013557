"""Plans of classic Spark sessions: steps, files that they read, and what columns and rows are computed from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from labeldp.errors import DataError

_MISSING = ("nullvalue", "nanvalue", "positiveinf", "negativeinf", "emptyvalue")
_MARKS = ("sep", "delimiter", "linesep", "quote", "escape", "chartoescapequoteescaping", "comment")
_LENGTHS = ("maxcharspercolumn", "maxnumlen")
_OF_NUMBERS = frozenset("0123456789+-.eE")
_TEXT = frozenset({"csv", "json", "text", "xml"})


@dataclass(frozen=True)
class FileSource:
    """Files of a kind ("csv", "parquet" …), and how they are read.

    Each path has "/" at its end, and links on this machine are followed. Names of options are in lower case; so is
    ``record``, the column that holds records which cannot be read.
    """

    kind: str
    paths: frozenset[str]
    schema: str
    options: dict[str, str]
    record: str

    @property
    def reading(self) -> str:
        """What tells ways of reading the same files apart."""
        return repr((self.kind, self.schema, sorted(self.options.items())))

    def keeps_numbers(self, kind: str) -> bool:
        """Return whether no number becomes missing, or not finite, because it does not fit a column's type.

        Parquet is read as what it is, or not at all. From other files a number that does not fit is missing.
        """
        return self.kind == "parquet" or kind in ("DOUBLE", "STRING")

    def refuse_options(self) -> None:
        """Refuse options by which a number, or a row, is missing because of the label's value or its digits."""
        if self.kind not in _TEXT:
            return
        if self.options.get("mode", "").upper() == "DROPMALFORMED":
            raise DataError(
                "the label's file is read with mode='DROPMALFORMED', so rows may be missing because of labels: "
                "leave the option out, and choose rows by public columns, or by whether the label is missing"
            )
        for name, value in self.options.items():
            number = name in _MISSING and any(letter.isdigit() for letter in value)
            mark = name in _MARKS and not _OF_NUMBERS.isdisjoint(value)
            if number or mark or (name in _LENGTHS and value != "-1"):
                raise DataError(
                    f"the label's file is read with the option {name}={value!r}, by which a label's value may "
                    "decide what is missing, or where a column ends: read it without the option, or write the "
                    "table in another format"
                )


def file_source(plan: Any) -> FileSource | None:
    """Return the files that a leaf of a plan reads; None if it is another kind of source."""
    name = kind_of(plan)
    if name == "LogicalRelation":
        relation = plan.relation()
        if kind_of(relation) != "HadoopFsRelation":
            return None
        kind = kind_of(relation.fileFormat()).removesuffix("FileFormat")
        places = relation.location()
        options = {str(pair._1()): str(pair._2()) for pair in items(relation.options().toSeq())}
    elif name == "DataSourceV2Relation":
        relation = plan.table()
        if str(relation.getClass().getSuperclass().getSimpleName()) != "FileTable":
            return None
        kind, places = str(relation.formatName()), relation.fileIndex()
        options = {str(key): str(value) for key, value in plan.options().asCaseSensitiveMap().items()}
    else:
        return None
    lower = {key.lower(): value for key, value in options.items() if key.lower() not in ("path", "paths")}
    usual = str(relation.sparkSession().conf().get("spark.sql.columnNameOfCorruptRecord"))
    return FileSource(
        kind.lower(),
        frozenset(_place(root.toUri()) for root in items(places.rootPaths())),
        str(relation.dataSchema().json()),
        lower,
        lower.get("columnnameofcorruptrecord", usual).lower(),
    )


def _place(uri: Any) -> str:
    """Return a path as text, without links where it is one of this machine."""
    if str(uri.getScheme()) == "file":
        return f"file:{os.path.realpath(str(uri.getPath()))}/"
    return f"{uri.toString()}/"


Origins = frozenset[object]
"""What a column was computed from: columns of sources, `PLACE` and `VARIABLE`."""

PLACE = "where rows lie"
"""The origin of what depends on how Spark cuts and orders rows: by bytes, labels' bytes among them."""

VARIABLE = "a session variable"
"""The origin of what is computed from a session variable, which somebody may have set from labels."""

_NAMES = frozenset({"CTERelationDef", "ResolvedHint", "SubqueryAlias", "View", "WithCTE"})
_MOVES = frozenset({"RebalancePartitions", "Repartition", "RepartitionByExpression", "Sort"})
_RECORD = "_corrupt_record"
_HIDDEN = "__metadata_col"
_KNOWN = frozenset({"CTERelationRef", "LocalRelation", "LogicalRDD", "OneRowRelation", "Range"})
SAME_ROWS = _NAMES | _MOVES | {"Project", "Union", "Window"}
"""Steps that neither choose nor merge rows."""


FUNCTIONS = frozenset({"HiveGenericUDF", "HiveSimpleUDF", "PythonUDF", "ScalaUDF"})
"""Expressions that Spark calls and does not know."""


def analyzed_plan(df: DataFrame) -> Any:
    """Return the analysed plan of a classic DataFrame."""
    jdf: Any = df._jdf
    return jdf.queryExecution().analyzed()


def items(sequence: Any) -> Iterator[Any]:
    """Yield the items of a Scala sequence."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def kind_of(node: Any) -> str:
    """Return the class name of a step or an expression."""
    return str(node.getClass().getSimpleName())


def steps(plan: Any) -> Iterator[Any]:
    """Yield the steps of a plan, and of queries inside its expressions."""
    yield plan
    for child in (*items(plan.children()), *items(plan.subqueries())):
        yield from steps(child)


def kinds(expression: Any) -> Iterator[str]:
    """Yield the kinds of an expression and of all in it."""
    queue = [expression]
    while queue:
        one = queue.pop()
        kind = kind_of(one)
        yield kind
        if kind != "AttributeReference":
            queue += items(one.children())


def attribute_id(attribute: Any) -> int:
    """Return the id by which Spark knows a column."""
    return int(attribute.exprId().id())


def output_ids(plan: Any) -> list[int]:
    """Return the ids of a plan's columns."""
    return [attribute_id(one) for one in items(plan.output())]


def _keeps_missing(cast: Any) -> bool:
    """Return whether a cast is missing or not finite only where its input is, or is text that is not a number."""
    target = str(cast.dataType().sql())
    return target in ("DOUBLE", "STRING") or (target != "FLOAT" and str(cast.evalMode().toString()) == "ANSI")


@dataclass
class _Files:
    """Files, and the ways in which a plan reads them."""

    paths: set[str]
    readings: set[str]

    @classmethod
    def of(cls, source: FileSource) -> _Files:
        return cls(set(source.paths), {source.reading})

    def overlap(self, other: _Files) -> bool:
        return any(one.startswith(two) or two.startswith(one) for one in self.paths for two in other.paths)


@dataclass
class Lineage:
    """What the columns of a plan are computed from: ``origins``, by the columns' ids."""

    origins: dict[int, Origins] = field(default_factory=dict)
    _copies: dict[int, set[int]] = field(default_factory=dict)
    _computed: set[int] = field(default_factory=set)
    _files: list[_Files] = field(default_factory=list)
    _others: set[int] = field(default_factory=set)
    _public: dict[int, Origins] = field(default_factory=dict)
    _queries: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Any, public: Iterable[int] = ()) -> Lineage:
        """Return the lineage of a plan, where public columns follow from nothing but themselves."""
        lineage = cls(_public={one: frozenset([("public", one)]) for one in public})
        for step in steps(plan):
            if source := file_source(step):
                lineage._add_files(_Files.of(source))
            elif not step.children().size() and kind_of(step) not in _KNOWN:
                lineage._others.add(int(step.canonicalized().hashCode()))
        lineage._walk(plan)
        return lineage

    def reads(self, expression: Any) -> Origins:
        """Return what an expression is computed from."""
        origins = self._of(attribute_id(one) for one in items(expression.references().toSeq()))
        if "VariableReference" in kinds(expression):
            origins |= {VARIABLE}
        return origins if expression.deterministic() else origins | {PLACE}

    def row_origins(self, step: Any) -> Origins:
        """Return what decides which rows leave a step; for an unknown step, all of its input and its order."""
        name = kind_of(step)
        if name in SAME_ROWS or not step.children().size():
            return frozenset()
        if name in ("Filter", "Generate", "Join"):
            return self._expressions(step)
        if name == "Aggregate":
            return frozenset().union(*(self.reads(one) for one in items(step.groupingExpressions())))
        everything = self._of(one for child in items(step.children()) for one in output_ids(child))
        by_all_columns = name == "Deduplicate" and step.keys().size() == step.output().size()
        if by_all_columns or name in ("Distinct", "Except", "Intersect"):
            return everything
        return everything | {PLACE}  # of duplicates by some columns, the first one stays

    def copies(self, attribute: int) -> set[int]:
        """Return the columns of which this one is a copy or a cast, and itself: it is missing where they are.

        The set is empty if it is computed otherwise: then it may be missing because of a value.
        """
        columns, queue = set[int](), [attribute]
        while queue:
            one = queue.pop()
            if one not in columns:
                columns.add(one)
                queue += self._copies.get(one, ())
        return set() if columns & self._computed else columns

    def _walk(self, plan: Any) -> None:
        for child in (*items(plan.subqueries()), *items(plan.children())):
            self._walk(child)
        name, outputs = kind_of(plan), [output_ids(child) for child in items(plan.children())]
        if not outputs:
            self._source(plan, name)
        elif name in ("Project", "Aggregate"):
            self._compute(plan, name)
        elif name in ("Union", "Intersect", "Except"):
            for place, one in enumerate(output_ids(plan)):
                self._copies.setdefault(one, set()).update(output[place] for output in outputs)
                self.origins[one] = self._of(output[place] for output in outputs)
        elif name == "CTERelationDef":
            self._queries[int(plan.id())] = output_ids(plan)
        else:  # windows, and unknown steps, may follow from the order of rows
            inputs = [one for output in outputs for one in output]
            origins = self._expressions(plan) if name in ("Generate", "Window") else self._of(inputs)
            new = [one for one in output_ids(plan) if one not in inputs]
            self.origins |= dict.fromkeys(new, origins if name == "Generate" else origins | {PLACE})
            self._computed.update(new)
        self.origins |= self._public

    def _of(self, attributes: Iterable[int]) -> Origins:
        return frozenset().union(*(self.origins.get(one, {PLACE}) for one in attributes))

    def _subquery_origins(self, plan: Any) -> Origins:
        """Return what the queries inside a step's expressions are computed from."""
        return self._of(one for query in items(plan.subqueries()) for one in output_ids(query))

    def _expressions(self, plan: Any) -> Origins:
        """Return what a step's expressions are computed from."""
        return self._subquery_origins(plan).union(*(self.reads(one) for one in items(plan.expressions())))

    def _compute(self, plan: Any, name: str) -> None:
        """Add computed columns; an aggregate may follow from the order of its input."""
        aggregate, queries = name == "Aggregate", self._subquery_origins(plan)
        for expression in items(plan.aggregateExpressions() if aggregate else plan.projectList()):
            if kind_of(expression) == "AttributeReference":
                continue
            one, value = attribute_id(expression), expression.child()
            self.origins[one] = self.reads(value) | queries | ({PLACE} if aggregate else set())
            while kind_of(value) == "Cast" and _keeps_missing(value):
                value = value.child()
            if kind_of(value) == "AttributeReference":
                self._copies[one] = {attribute_id(value)}
            else:
                self._computed.add(one)

    def _source(self, plan: Any, name: str) -> None:
        """Name a source's columns so that a second look at the same source finds the same names.

        Files that are read in several ways may have the label under any name: all their columns are one. Columns
        that Spark adds to a source tell where rows lie. Where a record cannot be read, its text, the label's among
        it, may be in a column of its own.
        """
        if name == "CTERelationRef":
            for one, other in zip(output_ids(plan), self._queries[int(plan.cteId())], strict=True):
                self.origins[one], self._copies[one] = self.origins[other], {other}
            return
        output = list(items(plan.output()))
        columns, records = [(attribute_id(one), str(one.name()).lower()) for one in output], {_RECORD}
        if files := file_source(plan):
            group = next(number for number, other in enumerate(self._files) if _Files.of(files).overlap(other))
            one_way = len(self._files[group].readings) == 1
            for one, title in columns:
                self.origins[one] = frozenset([(group, title if one_way else "")])
            records.add(files.record)
            types = {attribute_id(one): str(one.dataType().sql()) for one in output}
            self._computed.update(one for one, kind in types.items() if not files.keeps_numbers(kind))
        elif name in _KNOWN:
            same = int(plan.rdd().id()) if name == "LogicalRDD" else int(plan.canonicalized().hashCode())
            for place, (one, _) in enumerate(columns):
                self.origins[one] = frozenset([(name, same, place)])
        else:  # two sources that are no files may have the same data, in whatever columns
            for place, (one, _) in enumerate(columns):
                self.origins[one] = frozenset([("elsewhere", place if len(self._others) == 1 else "")])
        everything = self._of(one for one, _ in columns)
        self.origins |= {one: everything for one, title in columns if title in records}
        hidden = [attribute_id(one) for one in output if one.metadata().contains(_HIDDEN)]
        self.origins |= dict.fromkeys(hidden, frozenset([PLACE]))

    def _add_files(self, files: _Files) -> None:
        """Add files; sources that overlap are one."""
        for other in [other for other in self._files if files.overlap(other)]:
            self._files.remove(other)
            files = _Files(files.paths | other.paths, files.readings | other.readings)
        self._files.append(files)
