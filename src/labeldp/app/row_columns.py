"""Public columns of a table that say whose labels its rows have: segments, ids of rows and of people."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labeldp.accounts.scope import RowOptions, Scope
from labeldp.errors import ParameterError, Setting

if TYPE_CHECKING:
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
        if self.id is not None and self.id == self.person:
            raise ParameterError(Setting("person"), f" must be another column than the id of rows, {self.id!r}")

    @property
    def columns(self) -> dict[str, str]:
        """The name of the column for each option that has one."""
        options = {name: getattr(self, name) for name in ("segment_by", "id", "person")}
        return {name: column for name, column in options.items() if column is not None}

    def hidden(self, drop: Collection[str]) -> list[str]:
        """Return the columns that are read, though they are left out of the release."""
        return [name for name in self.columns.values() if name in drop]

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
    """Reader of the rows of a table that have a label: keeps the columns of `RowColumns`.

    Attributes
    ----------
    rows : int
        The number of rows.
    """

    def __init__(self, columns: RowColumns) -> None:
        self._columns = columns
        self._values: dict[str, list[Any]] = {name: [] for name in columns.columns.values()}
        self.rows = 0

    def add(self, rows: Any) -> None:
        """Add the next rows, a record batch."""
        self.rows += rows.num_rows
        for name, values in self._values.items():
            values.extend(rows.column(name).to_pylist())

    def scope(self, rows_per_person: int) -> Scope:
        """Return the scope of all rows."""
        return Scope.parse(rows_per_person, **self._columns.options(self._values))
