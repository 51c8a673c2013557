"""Excel: the values of one sheet, read as the text file that they would be.

Formulas are not read, only what they came to; a public column that has some is refused, for they may have computed
it from the label. Notes, styles, names, other sheets (but their headers, to find the label) and hidden columns are
not read.
"""

from __future__ import annotations

import csv as python_csv
import io
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from labeldp.errors import DataError, LabelDPError, LabelError, MissingExtraError, ParameterError, Setting
from labeldp.tables.dialect import Dialect
from labeldp.tables.source_file import SourceFile
from labeldp.tables.text_records import HEADER_ROWS, TextFile
from labeldp.tables.text_tables import TextTable

MOST_CELLS = 1 << 25
"""Cells of a table, which is read into memory."""

DAMAGED = (
    "is damaged, protected by a password, or of another format than its name says: save it as an Excel workbook "
    "(.xlsx)"
)


class RefusedError(Exception):
    """What is wrong with a workbook, to be said after its name; quotes nothing from it."""


class Formula(str):
    """What stands for a formula, which is not read."""

    __slots__ = ()


Row = dict[int, str]
"""The values of a row by their column, from 1, as text; blank cells and errors are left out."""


class Sheet(NamedTuple):
    """The table of one sheet as text, and the names of columns that have formulas, are hidden, or have dates."""

    file: TextFile
    formulas: set[str]
    hidden: set[str]
    dates: set[str]


class SheetTable(TextTable):
    """A table in one sheet of an Excel file; in memory."""

    def __init__(self, source: SourceFile, label: str | None, dialect: Dialect, **reading: Any) -> None:
        self._sheet = read_sheet(source, dialect)
        super().__init__(source, "xlsx", label, dialect, file=self._sheet.file, **reading)
        self.dialect = self.dialect.with_detected(decimal=dialect.decimal)  # numbers of sheets show none

    def _lines_above(self, label: str) -> int:
        top = _top(self._file.source, self.dialect)
        return 0 if top is None else top.lines_above(label)

    def _fields(self) -> list[Any]:
        """Refuse columns that are hidden, or that formulas may have computed from labels."""
        sheet, path = self._sheet, self.source.path
        if self.label in sheet.formulas:
            raise DataError(
                f"{path} has formulas in the label {self.label!r}, and a total or a running sum would "
                "release labels of other rows again: leave totals below the table out with ",
                Setting("skip_last", 1),
                ", and replace other formulas by their values",
            )
        refused = [name for name in self._inside if name != self.label and name in sheet.formulas | sheet.hidden]
        if refused:
            raise ParameterError(
                f"{path} has columns that are hidden, or have formulas, which may use the label, directly or "
                "through other cells: leave these columns out with ",
                Setting("drop", refused),
                ", or show them and replace the formulas by their values if you know that they do not",
            )
        if self.label in sheet.dates:
            raise LabelError(f"the label {self.label!r} is formatted as a date: format the column as numbers")
        return super()._fields()


@contextmanager
def _open(source: SourceFile) -> Iterator[Any]:
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
        yield Workbook(io.BytesIO(source.stream().read()), source.file.size())
        return
    except (LabelDPError, MemoryError):
        raise
    except RefusedError as error:
        complaint = str(error)
    except Exception as error:  # what it says may be a label
        if isinstance(error, OSError) and error.errno is not None:
            raise
    raise DataError(f"{source.path} {complaint}")


def sheet_names(source: SourceFile) -> list[str]:
    """Return the names of a workbook's sheets."""
    with _open(source) as book:
        return list(book.parts)


def _chosen_sheet(book: Any, path: Path, how: Dialect) -> str:
    """Return the name of the sheet to read, or ask for one."""
    names = list(book.parts)
    if how.sheet not in (names if len(names) > 1 else [*names, None]):
        listed = ", ".join(map(repr, names[:12]))
        raise ParameterError(f"{path} has the sheets {listed}: choose one with ", Setting("sheet"))
    return how.sheet or names[0]


def read_sheet(source: SourceFile, how: Dialect) -> Sheet:
    """Return the table of one sheet."""
    with _open(source) as book:
        reader = book.sheet(_chosen_sheet(book, source.path, how), how.skip, how.decimal or ".")
        rows = reader.rows()
        header = next(rows, (0, Row()))[1]
        if not header or any(isinstance(name, Formula) for name in header.values()):
            raise RefusedError("has no header, or a formula in it: add one, or replace the formula by its value")
        reader.dates.clear()  # of the header
        table = list[list[str]]()
        for _, row in rows:
            if row.keys() & header.keys():
                table.append([row.get(place, "") for place in header])
            if len(header) * len(table) > MOST_CELLS:
                raise RefusedError(f"has a table of more than {MOST_CELLS:,} cells: save it as CSV")
    del table[max(0, len(table) - (how.skip_last or 0)) :]
    names = {place: " ".join(name.split()) for place, name in header.items()}
    columns = zip(names.values(), zip(*table, strict=True), strict=False)
    formulas = {name for name, cells in columns if any(isinstance(cell, Formula) for cell in cells)}
    hidden, dates = ({names[place] for place in places & names.keys()} for places in (reader.hidden, reader.dates))
    return Sheet(_as_text(source, how, [list(names.values()), *table]), formulas, hidden, dates)


def count_sheet_titles(path: Path, how: Dialect) -> int:
    """Return how many rows seem to be titles, as in a text file."""
    top = _top(SourceFile(path), how)
    return 0 if top is None else top.titles("csv")


def _top(source: SourceFile, how: Dialect) -> TextFile | None:
    """Return the first rows of a sheet as text; None if there are several sheets and none is named."""
    with _open(source) as book:
        if how.sheet is None and len(book.parts) > 1:
            return None
        top = dict(islice(book.sheet(_chosen_sheet(book, source.path, how), 0, ".").rows(), HEADER_ROWS))
    rows = (top.get(number, Row()) for number in range(1, max(top, default=0) + 1))
    lines = [[row.get(place, "") for place in range(1, max(row, default=0) + 1)] for row in rows]
    return _as_text(source, how, lines)


def _as_text(source: SourceFile, how: Dialect, rows: Iterable[Collection[str]]) -> TextFile:
    """Return rows as a text file; a line break in a cell becomes a blank."""
    text = io.StringIO()
    writer = python_csv.writer(text, lineterminator="\n")
    writer.writerows([re.sub(r"[\r\n\0]+", " ", cell) for cell in row] for row in rows)
    dialect = how.with_detected(separator=",", decimal=how.decimal or ".", encoding="utf-8", sheet=None)
    return TextFile(source, dialect, text.getvalue().encode())
