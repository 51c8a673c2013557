"""Excel: the values of one sheet in, and a new workbook with nothing but values out.

Formulas are not read, only what they came to; a public column that has some is refused, for they may have computed
it from the label. Notes, styles, names, other sheets and hidden columns are not copied.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labeldp.errors import DataError, LabelDPError, LabelError, MissingExtraError, ParameterError, Setting
from labeldp.release.names import reads_as_value
from labeldp.tables.batches import cut, rows_per_batch
from labeldp.tables.dialect import Dialect
from labeldp.tables.tables import Table, refuse_titles
from labeldp.tables.text_records import HEADER_ROWS, MOST_TITLES, ROWS_BELOW
from labeldp.tables.text_types import parse_labels

_TYPES = {
    frozenset[type](): pa.string(),
    frozenset({str}): pa.string(),
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(),
    frozenset({datetime.datetime}): pa.timestamp("us"),
    frozenset({datetime.time}): pa.time64("us"),
}
"""What a column is read as, by the types of its cells; any others are text."""

MOST_CELLS = 1 << 25
"""Cells of a table, which is read into memory."""

DAMAGED = (
    "is damaged, protected by a password, or of another format than its name says: save it as an Excel workbook "
    "(.xlsx)"
)
MIXED = "of several types"
LAST_FLOAT = sys.float_info.max


def openpyxl() -> Any:
    """Return openpyxl, or say which extra brings it."""
    try:
        import openpyxl as module  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError(
            'Excel files need openpyxl, which is not installed: pip install "labeldp[excel]"'
        ) from None
    return module


class RefusedError(Exception):
    """What is wrong with a workbook, to be said after its name; quotes nothing from it."""


Row = dict[int, Any]
"""The values of a row by their column, from 1; blank cells and errors are left out."""


@dataclass(frozen=True)
class Sheet:
    """The values of one sheet, column by column, of the rows that have any; and what its columns are besides."""

    names: list[str]
    columns: dict[str, Sequence[Any]]
    formulas: dict[str, int]
    hidden: dict[str, int]
    dates: dict[str, int]
    """The columns that have such cells, and the first row of the sheet that has one."""


class SheetTable(Table):
    """A table in one sheet of an Excel file; in memory."""

    def __init__(self, files: list[Path], label: str | None, dialect: Dialect, drop: Collection[str] = ()) -> None:
        self.dialect = dialect.found(separator=None, decimal=None, thousands=None, encoding=None, sheet=None)
        self._marks = dialect
        self._sheet = read_sheet(files[0], dialect, label)
        super().__init__(files, "xlsx", label, self._sheet.names, drop)
        self._refuse_computed(self._sheet, files[0])

    def _refuse_computed(self, sheet: Sheet, path: Path) -> None:
        """Refuse columns that are hidden, or that formulas may have computed from labels."""
        public = [name for name in self._inside if name != self.label]
        hidden = [name for name in public if name in sheet.hidden]
        if hidden:
            raise ParameterError(
                f"{path} has hidden columns: show them, or leave them out with ", Setting("drop", hidden)
            )
        if self.label in sheet.formulas:
            raise DataError(
                f"{path} has formulas in the label {self.label!r}, and a total or a running sum would "
                "release labels of other rows again: leave totals below the table out with ",
                Setting("skip_last", 1),
                ", and replace other formulas by their values",
            )
        computed = [name for name in public if name in sheet.formulas]
        if computed:
            raise ParameterError(
                f"{path} has formulas in public columns, which may use the label, directly or through other "
                "cells: leave these columns out with ",
                Setting("drop", computed),
                ", or replace the formulas by their values if you know that they do not",
            )
        if self.label in sheet.dates:
            raise LabelError(
                f"the label {self.label!r} is formatted as a date in row {sheet.dates[self.label]:,} of the "
                "sheet: format the column as numbers"
            )

    def _fields(self) -> list[Any]:
        fields = []
        for name in self._inside:
            kind = pa.float64() if name == self.label else _type_of(self._sheet.columns[name])
            if kind is None:
                self.stored[name], kind = MIXED, pa.string()
            fields.append(pa.field(name, kind))
        return fields

    def _read(self, schema: Any) -> Iterator[Any]:
        columns = [(self._sheet.columns[field.name], field) for field in schema]
        arrays = [
            self._label_array(cells) if field.name == self.label else _array(cells, field.type)
            for cells, field in columns
        ]
        return cut([pa.RecordBatch.from_arrays(arrays, schema=schema)], rows_per_batch(schema))

    def _cells(self, names: Sequence[str], row: int) -> list[str]:
        return [_text(self._sheet.columns[name][row]) for name in names]

    def _label_array(self, cells: Sequence[Any]) -> Any:
        """Return labels: numbers as they are, text as in text files; beyond the last float there is none."""
        is_number = [type(cell) in (int, float) for cell in cells]
        pairs = list(zip(cells, is_number, strict=True))
        texts = pa.array(["" if known else _text(cell) for cell, known in pairs], pa.string())
        floats = [min(max(float(str(cell)), -LAST_FLOAT), LAST_FLOAT) if known else None for cell, known in pairs]
        return pc.coalesce(pa.array(floats, pa.float64()), parse_labels(texts, str(self.label), self._marks))


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a workbook, or say what is wrong with it, without the original error, which may quote a label."""
    openpyxl()
    from labeldp.tables.excel_reader import Workbook  # noqa: PLC0415 (needs openpyxl)

    try:
        with pa.OSFile(str(path)) as stream:
            yield Workbook(stream, stream.size())
            return
    except (LabelDPError, MemoryError):
        raise
    except RefusedError as error:
        complaint = str(error)
    except OSError as error:
        if error.errno is not None:
            raise
        complaint = DAMAGED
    except Exception:  # what it says may be a label
        complaint = DAMAGED
    raise DataError(f"{path} {complaint}")


def sheet_names(path: Path) -> list[str]:
    """Return the names of a workbook's sheets."""
    with _open(path) as book:
        return list(book.sheets)


def read_sheet(path: Path, how: Dialect, label: str | None) -> Sheet:
    """Return the values of one sheet; if the label is named below the first row, say so."""
    with _open(path) as book:
        names = book.sheets
        listed = ", ".join(map(repr, names[:12]))
        if how.sheet is None and len(names) > 1:
            raise ParameterError(
                f"{path} has several sheets ({listed}): choose one with ", Setting("sheet", names[0])
            )
        if how.sheet is not None and how.sheet not in names:
            raise ParameterError(f"{path} has no sheet {how.sheet!r}; there are {listed}", option="sheet")
        reader = book.sheet(how.sheet or names[0], how.skip)
        rows = reader.rows()
        first = next(rows, (0, Row()))[1]
        header = _texts(first)

        def rows_above(label: str) -> int:
            top = islice(rows, HEADER_ROWS)
            return next((number - 1 for number, row in top if label in _texts(row).values()), 0)

        refuse_titles(header.values(), label, how, rows_above, f"{path}, row")
        if None in first.values():
            raise RefusedError("has a formula in its header: replace it by its value")
        if not header:
            raise DataError(f"{path} is empty: the sheet has no values")
        reader.dates.clear()  # of the header
        numbers, cells = list[int](), list[list[Any]]()
        for number, row in rows:
            if row.keys() & header.keys():
                numbers.append(number)
                cells.append([row.get(place) for place in header])
            if len(header) * len(cells) > MOST_CELLS:
                raise RefusedError(f"has a table of more than {MOST_CELLS:,} cells: save it as CSV")
    count = max(0, len(cells) - (how.skip_last or 0))
    last = numbers[count - 1] if count else 0
    noted = [
        {header[place]: row for place, row in notes.items() if place in header and row <= last}
        for notes in (reader.formulas, reader.hidden, reader.dates)
    ]
    columns = zip(*cells[:count], strict=True) if count else [()] * len(header)
    return Sheet(list(header.values()), dict(zip(header.values(), columns, strict=True)), *noted)


def count_sheet_titles(path: Path, how: Dialect) -> int:
    """Return how many rows seem to be titles: a header names all columns in which the rows below it have values.

    Of these rows only which cells are filled is looked at. As in text, a row with numbers may be one of values.
    """
    with _open(path) as book:
        if how.sheet is None and len(book.sheets) > 1:
            return 0
        rows = list(islice(book.sheet(how.sheet or book.sheets[0], 0).rows(), HEADER_ROWS))
    for place, (number, row) in enumerate(rows[:MOST_TITLES], 1):
        names = _texts(row)
        if len(names) > 1 and all(below.keys() <= names.keys() for _, below in rows[place : place + ROWS_BELOW]):
            return 0 if any(map(reads_as_value, names.values())) else number - 1
    return 0


def _texts(row: Row) -> dict[int, str]:
    return {place: text for place, value in row.items() if (text := _text(value))}


# ---- values ---------------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return "" if value is None else str(value).strip()


def _type_of(cells: Iterable[Any]) -> Any:
    """Return the type that holds all cells of a public column, or None if there is no such but text."""
    values = [cell for cell in cells if cell is not None]
    kinds = frozenset(map(type, values))
    if kinds == {datetime.datetime} and all(value.time() == datetime.time() for value in values):
        return pa.date32()
    return _TYPES.get(kinds)


def _array(cells: Sequence[Any], kind: Any) -> Any:
    if kind == pa.string():
        cells = [cell if cell is None or isinstance(cell, str) else _text(cell) for cell in cells]
    if kind == pa.date32():
        cells = [None if cell is None else cell.date() for cell in cells]
    return pa.array(cells, kind, safe=False)
