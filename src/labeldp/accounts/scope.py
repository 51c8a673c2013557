"""The scope of a release: the segments and the people of the rows whose labels it uses. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from numbers import Integral
from typing import Any, Literal, Never, Self, TypedDict

import numpy as np

from labeldp._values import Index, Mask, parse_integer, refuse_other_order
from labeldp.accounts.segments import LONGEST_NAME, MAX_SEGMENTS, Segments, is_name
from labeldp.errors import ParameterError, Setting, describe
from labeldp.mechanisms.typed_data import Natural, Positive, optional

SEED = 0
"""Of the public random order in which ``most_rows_per_person`` keeps the first rows of each person."""


class RowOptions(TypedDict, total=False):
    """Options that every release takes, to state whose labels it uses; all of them are public.

    Attributes
    ----------
    segment : str or array-like
        The segment of all rows, or of each row, in the segmentation of the ledger: rows of different segments are
        different rows, and their charges do not add up.
    id : array-like
        An id of each row, text or integers. A row that was released in another segment is refused, before the
        charge. Needs a ledger in a file, which keeps keyed hashes of ids.
    person : array-like
        An id of the person of each row, text or integers; rows per person are counted.
    most_rows_per_person : int
        Keep this many rows of each person, by a public seed; the labels of the others stay empty.
    """

    segment: Any
    id: Any
    person: Any
    most_rows_per_person: int | None


@dataclass(frozen=True, slots=True, eq=False)
class IdColumn:
    """Ids of rows or of people: text or integers, never both.

    Attributes
    ----------
    kind : {"text", "integer"}
    distinct : list
        Each id once.
    codes : array
        The place of each row's id among them.

    Examples
    --------
    >>> IdColumn.parse(["a", "b", "a"], "person").codes
    array([0, 1, 0])
    """

    kind: Literal["text", "integer"]
    distinct: list[Any]
    codes: Index

    @classmethod
    def parse(cls, values: Any, name: str) -> Self:
        """Return a public column of ids; floats, mixed types, missing ids and text of another form are refused.

        Parameters
        ----------
        values : array-like
        name : str
            The option, for messages.
        """
        column = as_list(values, name)
        kinds = set(map(type, column))
        if all(issubclass(kind, str) for kind in kinds):
            kind: Literal["text", "integer"] = "text"
        elif all(issubclass(kind, Integral) and not issubclass(kind, bool) for kind in kinds):
            kind, column = "integer", list(map(int, column))
        else:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ParameterError(
                Setting(name),
                f" must have text or integers, one type in all rows and none missing, got {names}: convert them",
            )
        numbers: dict[Any, int] = {}
        codes = np.array([numbers.setdefault(value, len(numbers)) for value in column], dtype=np.int64)
        if kind == "text":
            _refuse_spellings(numbers, name)
        return cls(kind, list(numbers), codes)

    @property
    def counts(self) -> Index:
        """The number of rows of each id."""
        return np.bincount(self.codes, minlength=len(self.distinct))

    def take(self, rows: Index | Mask) -> IdColumn:
        """Return the ids of some rows."""
        codes, inverse = np.unique(self.codes[rows], return_inverse=True)
        return IdColumn(self.kind, [self.distinct[code] for code in codes.tolist()], inverse)


def as_list(values: Any, name: str) -> list[Any]:
    """Return a column of any kind of table, or a list, as a list of Python's objects."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, method):
            values = getattr(values, method)()
    if isinstance(values, str):
        raise ParameterError(
            Setting(name), f" must be a column with a value for each row, not its name: pass table[{values!r}]"
        )
    if not isinstance(values, list | tuple) or any(isinstance(value, list | tuple) for value in values[:1]):
        raise ParameterError(Setting(name), f" must be a column with a value for each row, got {describe(values)}")
    return list(values)


def _refuse_spellings(texts: dict[Any, int], name: str) -> None:
    """Refuse ids that people take for others: a second spelling of an id would be a second account."""
    for text in texts:
        is_plain = text.isascii() and text.isprintable() and text == text.strip()
        is_float = text.endswith(".0") and text[:-2].isdecimal()
        if not 0 < len(text) <= LONGEST_NAME or is_float or not (is_plain or is_name(text)):
            raise ParameterError(
                Setting(name),
                f" has text that is empty, not in Unicode's form NFC, longer than {LONGEST_NAME} characters, an "
                "integer with a decimal point such as 7.0, or has blanks at an end or hidden characters: mend it "
                "at the source, always in the same way",
            )


@dataclass(frozen=True, slots=True)
class People:
    """The people of a release, on its card: their rows were counted.

    Attributes
    ----------
    people : int
        Those whose labels were used.
    rows_left_out : int
        Rows whose label stays empty, by a rule on ids alone.
    exhausted : int
        People without budget in their own account, or withdrawn.
    most_rows_per_person : int or None
        The number of rows of each that were kept at most.
    """

    people: Positive
    rows_left_out: Natural = 0
    exhausted: Natural = 0
    most_rows_per_person: Positive | None = optional()


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The rows whose labels a release uses: their segments, ids and people. Without arrays, it is for any rows.

    Attributes
    ----------
    rows_per_person : int
        The most rows of one person: counted, or as the owner states.
    segments : Segments or None
    segment : IdColumn or None
        The segment of each row, where there are several.
    ids, people : IdColumn or None
    most_rows_per_person : int or None
    kept : array or None
        The rows that are used, of all; None where that is all of them.
    rows_left_out, exhausted : int

    Examples
    --------
    >>> scope = Scope.parse(person=["a", "b", "a"], segment="2026-11-18")
    >>> scope.rows_per_person, scope.segments.names
    (2, ('2026-11-18',))
    """

    rows_per_person: int = 1
    segments: Segments | None = None
    segment: IdColumn | None = None
    ids: IdColumn | None = None
    people: IdColumn | None = None
    most_rows_per_person: int | None = None
    kept: Index | None = None
    rows_left_out: int = 0
    exhausted: int = 0

    @classmethod
    def parse(
        cls,
        rows_per_person: Any = 1,
        *,
        segment: Any = None,
        id: Any = None,
        person: Any = None,
        most_rows_per_person: Any = None,
        labels: Any = None,
        X: Any = None,
        **unknown: Never,
    ) -> Scope:
        """Return the scope that options state, see `RowOptions`, of the rows of ``labels`` and ``X``."""
        for name in unknown:
            raise TypeError(
                f"{name} is not supported: besides the parameters in its signature, this function takes "
                f"{', '.join(RowOptions.__annotations__)}"
            )
        for name, values in (("segment", segment), ("id", id), ("person", person)):
            refuse_other_order(labels, values, name, "labels")
            refuse_other_order(X, values, name)
        rows = parse_integer(rows_per_person, "rows_per_person")
        if most_rows_per_person is not None:
            most_rows_per_person = parse_integer(most_rows_per_person, "most_rows_per_person")
            if person is None:
                raise ParameterError(Setting("most_rows_per_person"), " needs ", Setting("person"))
        if id is not None and segment is None:
            raise ParameterError(
                Setting("id"), " is compared with rows of other segments: give ", Setting("segment")
            )
        people = None if person is None else IdColumn.parse(person, "person")
        if people is not None:
            _refuse_more_rows(people, rows, most_rows_per_person)
        ids = None if id is None else IdColumn.parse(id, "id")
        segments, by_row = _parse_segments(segment, checked=ids is not None)
        scope = cls(rows, segments, by_row, ids, people, most_rows_per_person)
        return scope if people is None else scope._counted()

    def for_rows(self, rows: int) -> Scope:
        """Return the scope for this many rows with a label; rows beyond ``most_rows_per_person`` are left out."""
        for name, column in (("segment", self.segment), ("id", self.ids), ("person", self.people)):
            if column is not None and column.codes.size != rows:
                raise ParameterError(
                    Setting(name), f" has {column.codes.size:,} values, and there are {rows:,} labels"
                )
        if self.people is None or self.most_rows_per_person is None:
            return self
        return self._keep(_first_rows(self.people.codes, self.most_rows_per_person))

    def without(self, exhausted: Mask) -> Scope:
        """Return the scope without the rows of some people."""
        if self.people is None or not exhausted.any():
            return self
        scope = self._keep(~exhausted[self.people.codes])
        return replace(scope, exhausted=int(exhausted.sum()))

    def take(self, rows: Index) -> Scope:
        """Return the scope of some of the rows that are kept; the most rows of one person stay those of all."""
        columns = (self.segment, self.ids, self.people)
        segment, ids, people = (None if column is None else column.take(rows) for column in columns)
        segments = self.segments
        if segment is not None and segments is not None and segment.distinct:
            segments = replace(segments, names=tuple(sorted(segment.distinct)))
        return replace(self, segment=segment, segments=segments, ids=ids, people=people)

    def used_rows(self, rows: int) -> int:
        """Return the number of rows that are used, of all rows."""
        return rows if self.kept is None else int(self.kept.size)

    def select(self, values: Any) -> Any:
        """Return the values of the rows that are kept, of an array of all rows."""
        return values if self.kept is None else values[self.kept]

    @property
    def summary(self) -> People | None:
        """The people, as a card states them; None where nobody counted."""
        if self.people is None:
            return None
        counted = len(self.people.distinct)
        return People(counted, self.rows_left_out, self.exhausted, self.most_rows_per_person)

    def _keep(self, is_kept: Mask) -> Scope:
        """Return the scope of the rows of a mask."""
        rows = np.flatnonzero(is_kept)
        if rows.size == is_kept.size:
            return self
        kept = rows if self.kept is None else self.kept[rows]
        left_out = self.rows_left_out + is_kept.size - rows.size
        return replace(self.take(rows), kept=kept, rows_left_out=left_out)._counted()

    def _counted(self) -> Scope:
        """Return the scope with the rows of each person counted."""
        counts = np.zeros(0) if self.people is None else self.people.counts
        return replace(self, rows_per_person=int(counts.max(initial=1)))


def _refuse_more_rows(people: IdColumn, rows_per_person: int, limit: int | None) -> None:
    """Refuse people with more rows than the owner states: their cost would be above the one that was meant."""
    rows = int(people.counts.max(initial=1))
    if 1 < rows_per_person < (rows if limit is None else min(rows, limit)):
        raise ParameterError(
            Setting("rows_per_person", rows_per_person),
            f" is too few: a person has {rows:,} rows. Give ",
            Setting("most_rows_per_person", rows_per_person),
            " to leave out the others, or leave out ",
            Setting("rows_per_person"),
            " to pay for all",
        )


def _first_rows(people: Index, limit: int) -> Mask:
    """Return the first rows of each person, in a random order by a public seed."""
    order = np.random.default_rng(SEED).permutation(people.size)
    by_person = order[np.argsort(people[order], kind="stable")]
    starts = np.searchsorted(people[by_person], people[by_person])
    is_kept = np.zeros(people.size, dtype=bool)
    is_kept[by_person[np.arange(people.size) - starts < limit]] = True
    return is_kept


def _parse_segments(segment: Any, *, checked: bool) -> tuple[Segments | None, IdColumn | None]:
    """Return the segments of all rows, and of each row where several are given."""
    if segment is None:
        return None, None
    by_row, names = None, [segment]
    if not isinstance(segment, str | date | Integral) or isinstance(segment, bool):
        column = as_list(segment, "segment")
        if column and all(type(value) is date for value in column):
            column = [value.isoformat() for value in column]
        by_row = IdColumn.parse(column, "segment")
        by_row = replace(by_row, distinct=list(map(str, by_row.distinct)))
        names = by_row.distinct
    texts = sorted({str(name) for name in names})
    if not all(map(is_name, texts)) or not 0 < len(texts) <= MAX_SEGMENTS:
        raise ParameterError(
            Setting("segment"),
            f" must be 1 to {MAX_SEGMENTS} names, each one line in Unicode's form NFC without blanks at its ends",
        )
    partition = getattr(segment, "name", None)
    partition = partition if by_row is not None and isinstance(partition, str) and is_name(partition) else None
    return Segments(tuple(texts), partition, checked), by_row
