"""Public columns that single out rows, and so perhaps people: pointed out to the owner before a table is shared.

All of it follows from public columns, and may be shown anywhere.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.errors import Message, Setting
from labeldp.tables.batches import is_text, size_of

MOST_ROWS = 1 << 16
MOST_BYTES = 1 << 26
"""What is looked at, from the first row on."""

FEWEST = 20
"""With fewer values chance alone could make all of them differ."""

SHARED = 5
"""Rows that have values in common hide each other if they are as many."""

MOST_COLUMNS = 12
"""Columns of which all pairs are looked at."""

MOST_HINTS = 3

_DECIMALS = r"^[+-]?[0-9]*[.,][0-9]+$"
"""Hardly anybody knows measured numbers of others, unless each of them is another."""


class Identifiers:
    """Looks at public columns while rows pass by.

    Examples
    --------
    >>> rows = range(40)
    >>> seen = Identifiers()
    >>> seen.see(pa.record_batch({"id": list(rows), "town": [str(row % 2) for row in rows]}))
    >>> seen.unique
    ('id',)
    """

    def __init__(self) -> None:
        self._batches: list[Any] = []
        self._rows = self._size = 0

    def see(self, public: Any) -> None:
        """Look at the public columns of the next rows."""
        if self._rows < MOST_ROWS and self._size < MOST_BYTES:
            self._batches.append(public.slice(0, MOST_ROWS - self._rows))
            self._rows += self._batches[-1].num_rows
            self._size += size_of(self._batches[-1])

    def _columns(self) -> dict[str, Any]:
        """Return the columns of text, numbers and times; empty text is missing."""
        table = pa.Table.from_batches(self._batches) if self._batches else pa.table({})
        columns = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            if is_text(column.type):
                columns[name] = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
            elif types.is_primitive(column.type):
                columns[name] = column
        return columns

    @property
    def unique(self) -> tuple[str, ...]:
        """The columns whose values all differ, as names and customer numbers do."""
        return tuple(name for name, column in self._columns().items() if _is_unique(column))

    @cached_property
    def hints(self) -> list[Message]:
        """A sentence for the columns whose values all differ, and for pairs that few rows share."""
        unique, hints = list(self.unique), []
        if unique:
            advice = "as names and customer numbers do: unless they must be shared, leave them out with "
            listed = ", ".join(map(repr, unique))
            hints.append(Message(f"All values of {listed} differ, {advice}", Setting("drop", unique)))
        columns = self._columns().items()
        others = {name: column for name, column in columns if name not in unique and not _is_measured(column)}
        for names, rows in _rare(dict(list(others.items())[:MOST_COLUMNS])):
            listed = " and ".join(map(repr, names))
            share = f"{rows:,} of {self._rows:,} rows have values of {listed} that fewer than five rows share"
            hints.append(Message(f"{share}: whoever knows these of a person may find the row"))
        return hints


def _is_measured(column: Any) -> bool:
    if is_text(column.type):
        return bool(pc.any(pc.match_substring_regex(column, _DECIMALS)).as_py())
    return bool(types.is_floating(column.type) or types.is_boolean(column.type))


def _is_unique(column: Any) -> bool:
    known = len(column) - column.null_count
    return bool(known >= FEWEST and pc.count_distinct(column).as_py() == known)


def _rare(columns: dict[str, Any]) -> list[tuple[tuple[str, ...], int]]:
    """Return the columns and pairs with most rows among fewer than five; pairs if both together have far more."""
    codes = {name: column.combine_chunks().dictionary_encode().indices for name, column in columns.items()}
    table = pa.table(codes)

    def rare(*names: str) -> int:
        sizes = table.group_by(list(names)).aggregate([([], "count_all")]).column("count_all")
        return pc.sum(sizes.filter(pc.less(sizes, SHARED))).as_py() or 0

    if table.num_rows < FEWEST:
        return []
    single = {name: rare(name) for name in columns}
    counts: dict[tuple[str, ...], int] = {(name,): rows for name, rows in single.items() if rows}
    for one, other in combinations(columns, 2):
        rows = rare(one, other)
        if rows > 2 * max(single[one], single[other]):
            counts[one, other] = rows
    return sorted(counts.items(), key=lambda pair: -pair[1])[:MOST_HINTS]
