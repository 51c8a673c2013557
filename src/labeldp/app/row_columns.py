"""Public columns of a table that say whose labels its rows have: segments, ids of rows and of people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labeldp.accounts.scope import RowOptions, Scope
from labeldp.errors import ParameterError, Setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from labeldp.tables.tables import Table


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Options of a release of a table, for the scope of its labels; see `RowOptions`.

    Attributes
    ----------
    segment : str or None
        The segment of all rows.
    segment_by, id, person : str or None
        The column with the segment of each row, its id, and its person.
    most_rows_per_person : int or None
    """

    segment: str | None = None
    segment_by: str | None = None
    id: str | None = None
    person: str | None = None
    most_rows_per_person: int | None = None

    def __post_init__(self) -> None:
        """Refuse two sources of segments, and options without the column that they need."""
        if self.most_rows_per_person is not None and self.person is None:
            raise ParameterError(Setting("most_rows_per_person"), " needs ", Setting("person"))
        if self.segment is not None and self.segment_by is not None:
            raise ParameterError("give ", Setting("segment"), " or ", Setting("segment_by"), ", not both")

    @property
    def columns(self) -> dict[str, str]:
        """The name of the column for each option that has one."""
        named = {name: getattr(self, name) for name in ("segment_by", "id", "person")}
        return {name: column for name, column in named.items() if column is not None}

    def refuse_unknown(self, table: Table, label: str) -> None:
        """Refuse a column that is not in the table, and the label."""
        for option, column in self.columns.items():
            if column == label:
                raise ParameterError(Setting(option), f" is a public column, and {label!r} is the label")
            table.refuse_unknown(column, option)

    def options(self, values: Mapping[str, list[Any]]) -> RowOptions:
        """Return the options of a release, with the values of columns by their names."""
        read = {option: values[column] for option, column in self.columns.items()}
        options: RowOptions = {"segment": self.segment, "most_rows_per_person": self.most_rows_per_person}
        if self.segment_by is not None:
            options["segment"] = _NamedColumn(self.segment_by, read["segment_by"])
        options["id"], options["person"] = read.get("id"), read.get("person")
        return options


@dataclass(frozen=True, slots=True)
class _NamedColumn:
    """Values with the name of their column, which names the segmentation."""

    name: str
    values: list[Any]

    def to_pylist(self) -> list[Any]:
        """Return the values."""
        return self.values


class ScopeReader:
    """Reader of the rows of a table that have a label: keeps the columns of `RowColumns`."""

    def __init__(self, columns: RowColumns, table: Table) -> None:
        names = [name for name in table.schema.names if name != table.label]
        self._columns = columns
        self._places = {name: names.index(name) for name in columns.columns.values()}
        self._values: dict[str, list[Any]] = {name: [] for name in self._places}
        self._rows = 0

    def update(self, public: list[Any], labels: NDArray[np.float64], /) -> None:
        """Add the next rows."""
        self._rows += labels.size
        for name, place in self._places.items():
            self._values[name] += public[place].to_pylist()

    def scope(self, rows_per_person: int) -> tuple[Scope, int]:
        """Return the scope of all rows, and their number."""
        return Scope.parse(rows_per_person, **self._columns.options(self._values)), self._rows
