"""Excel: the values of one sheet.

Formulas are not read, only what they came to; a public column that has some is refused, for they may have computed
it from the label. Notes, styles, names, other sheets and hidden columns are not read.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Collection, Iterator, Sequence
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

MOST_CELLS = 1 << 25
"""Cells of a table, which is read into memory."""

DAMAGED = (
    "is damaged, protected by a password, or of another format than its name says: save it as an Excel workbook "
    "(.xlsx)"
)
LAST_FLOAT = sys.float_info.max


class RefusedError(Exception):
    """What is wrong with a workbook, to be said after its name; quotes nothing from it."""


class _Formula(str):
    """What stands for a formula, which is not read."""

    __slots__ = ()


FORMULA = _Formula()

Row = dict[int, Any]
"""The values of a row by their column, from 1; blank cells and errors are left out."""


@dataclass(frozen=True)
class Sheet:
    """The values of one sheet, column by column, of the rows that have any; and what its columns are besides."""

    names: list[str]
    columns: dict[str, Sequence[Any]]
    hidden: set[str]
    dates: set[str]


class SheetTable(Table):
    """A table in one sheet of an Excel file; in memory."""

    def __init__(self, files: list[Path], label: str | None, dialect: Dialect, drop: Collection[str] = ()) -> None:
        self.dialect = dialect.found(separator=None, decimal=None, thousands=None, encoding=None, sheet=None)
        self._marks = dialect
        self._sheet = read_sheet(files[0], dialect, label)
        super().__init__(files, "xlsx", label, self._sheet.names, drop)

    def _refuse_computed(self, sheet: Sheet, path: Path) -> None:
        """Refuse columns that are hidden, or that formulas may have computed from labels."""
        computed = {name for name in self._inside if any(cell is FORMULA for cell in sheet.columns[name])}
        if self.label in computed:
            raise DataError(
                f"{path} has formulas in the label {self.label!r}, and a total or a running sum would "
                "release labels of other rows again: leave totals below the table out with ",
                Setting("skip_last", 1),
                ", and replace other formulas by their values",
            )
        refused = [name for name in self._inside if name != self.label and name in computed | sheet.hidden]
        if refused:
            raise ParameterError(
                f"{path} has columns that are hidden, or have formulas, which may use the label, directly or "
                "through other cells: leave these columns out with ",
                Setting("drop", refused),
                ", or show them and replace the formulas by their values if you know that they do not",
            )
        if self.label in sheet.dates:
            raise LabelError(f"the label {self.label!r} is formatted as a date: format the column as numbers")

    def _fields(self) -> list[Any]:
        self._refuse_computed(self._sheet, self._files[0])
        public = {name: self._sheet.columns[name] for name in self._inside if name != self.label}
        self._arrays = {name: _array(cells) for name, cells in public.items()}
        for name, cells in public.items():
            if self._arrays[name].type == pa.string() and not {*map(type, cells)} <= {str, type(None)}:
                self.stored[name] = "of several types"
        kinds = {name: array.type for name, array in self._arrays.items()}
        return [pa.field(name, kinds.get(name, pa.float64())) for name in self._inside]

    def _read(self, schema: Any) -> Iterator[Any]:
        arrays = [self._labels() if name == self.label else self._arrays[name] for name in schema.names]
        return cut([pa.RecordBatch.from_arrays(arrays, schema=schema)], rows_per_batch(schema))

    def _cells(self, names: Sequence[str], row: int) -> list[str]:
        return [_text(self._sheet.columns[name][row]) for name in names]

    def _labels(self) -> Any:
        """Return labels: numbers as they are, text as in text files; beyond the last float there is none."""
        cells = self._sheet.columns[str(self.label)]
        is_number = [type(cell) in (int, float) for cell in cells]
        pairs = list(zip(cells, is_number, strict=True))
        texts = pa.array([None if known else _text(cell) for cell, known in pairs], pa.string())
        floats = [min(max(float(cell), -LAST_FLOAT), LAST_FLOAT) if known else None for cell, known in pairs]
        return pc.coalesce(pa.array(floats, pa.float64()), parse_labels(texts, str(self.label), self._marks))


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a workbook, or say what is wrong with it, without the original error, which may quote a label."""
    try:
        import openpyxl  # noqa: F401, PLC0415 (an extra)

        from labeldp.tables.excel_reader import Workbook  # noqa: PLC0415 (needs openpyxl)
    except ImportError:
        raise MissingExtraError(
            'Excel files need openpyxl, which is not installed: pip install "labeldp[excel]"'
        ) from None
    complaint = DAMAGED
    try:
        with pa.OSFile(str(path)) as stream:
            yield Workbook(stream, stream.size())
            return
    except (LabelDPError, MemoryError):
        raise
    except RefusedError as error:
        complaint = str(error)
    except Exception as error:  # what it says may be a label
        if isinstance(error, OSError) and error.errno is not None:
            raise
    raise DataError(f"{path} {complaint}")


def sheet_names(path: Path) -> list[str]:
    """Return the names of a workbook's sheets."""
    with _open(path) as book:
        return list(book.parts)


@contextmanager
def _sheet(path: Path, name: str | None, skip: int) -> Iterator[Any]:
    """Open the sheet of a name, or the only one, without its first rows."""
    with _open(path) as book:
        names = list(book.parts)
        if name not in (names if len(names) > 1 else [*names, None]):
            listed = ", ".join(map(repr, names[:12]))
            raise ParameterError(f"{path} has the sheets {listed}: choose one with ", Setting("sheet", names[0]))
        from labeldp.tables.excel_reader import SheetReader  # noqa: PLC0415 (needs openpyxl)

        yield SheetReader(book, name or names[0], skip)


def read_sheet(path: Path, how: Dialect, label: str | None) -> Sheet:
    """Return the values of one sheet; if the label is named below the first row, say so."""
    with _sheet(path, how.sheet, how.skip) as reader:
        rows = reader.rows()
        first = next(rows, (0, Row()))[1]
        header = _texts(first)

        def rows_above(label: str) -> int:
            top = islice(rows, HEADER_ROWS)
            return next((number - 1 for number, row in top if label in _texts(row).values()), 0)

        refuse_titles(header.values(), label, how, rows_above, f"{path}, row")
        if any(value is FORMULA for value in first.values()):
            raise RefusedError("has a formula in its header: replace it by its value")
        if not header:
            raise RefusedError("is empty: the sheet has no values")
        reader.dates.clear()  # of the header
        cells = list[list[Any]]()
        for _, row in rows:
            if row.keys() & header.keys():
                cells.append([row.get(place) for place in header])
            if len(header) * len(cells) > MOST_CELLS:
                raise RefusedError(f"has a table of more than {MOST_CELLS:,} cells: save it as CSV")
    count = max(0, len(cells) - (how.skip_last or 0))
    columns = zip(*cells[:count], strict=True) if count else [()] * len(header)
    noted = ({name for place, name in header.items() if place in notes} for notes in (reader.hidden, reader.dates))
    names = list(header.values())
    return Sheet(names, dict(zip(names, columns, strict=True)), *noted)


def count_sheet_titles(path: Path, how: Dialect) -> int:
    """Return how many rows seem to be titles: a header names all columns in which the rows below it have values.

    Of these rows only which cells are filled is looked at. As in text, a row with numbers may be one of values.
    """
    if how.sheet is None and len(sheet_names(path)) > 1:
        return 0
    with _sheet(path, how.sheet, 0) as reader:
        rows = list(islice(reader.rows(), HEADER_ROWS))
    for place, (number, row) in enumerate(rows[:MOST_TITLES], 1):
        names = _texts(row)
        if len(names) > 1 and all(below.keys() <= names.keys() for _, below in rows[place : place + ROWS_BELOW]):
            return 0 if any(map(reads_as_value, names.values())) else number - 1
    return 0


def _texts(row: Row) -> dict[int, str]:
    """Return the names in a row, each in one line."""
    return {place: " ".join(text.split()) for place, value in row.items() if (text := _text(value))}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.datetime | datetime.time):
        return value.isoformat()
    return "" if value is None else str(value).strip()


def _array(cells: Sequence[Any]) -> Any:
    """Return a public column in the type that all its cells have, else as text."""
    try:
        array = pa.array(cells)
    except pa.ArrowException:
        array = pa.array([cell if cell is None or isinstance(cell, str) else _text(cell) for cell in cells])
    if pa.types.is_null(array.type):
        return array.cast(pa.string())
    is_time = pa.types.is_timestamp(array.type)
    is_day = is_time and all(cell is None or cell.time() == datetime.time() for cell in cells)
    return array.cast(pa.date32()) if is_day else array
