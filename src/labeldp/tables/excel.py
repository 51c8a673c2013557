"""Excel: the values of one sheet, read as the text file that they would be.

openpyxl reads a sheet twice: its formulas, and the values that Excel stored for them. Public columns with formulas
are refused, for they may compute values from labels. Notes, styles, names and other sheets are not read.
"""

from __future__ import annotations

import csv as python_csv
import io
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, compress, cycle, islice, product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from labeldp.errors import DataError, LabelDPError, LabelError, MissingExtraError, ParameterError, Setting
from labeldp.tables.dialect import Dialect
from labeldp.tables.source_file import SourceFile
from labeldp.tables.text_records import HEADER_ROWS, TextFile
from labeldp.tables.text_tables import TextTable

T = TypeVar("T")

_DAMAGED = (
    "is damaged, protected by a password, or of another format than its name says: save it as an Excel workbook "
    "(.xlsx)"
)
_TOO_LARGE = "takes more memory than there is: save the sheet as CSV"

_CELL = r"\$?([A-Z]{1,3})\$?([0-9]+)"

_RANGE = re.compile(rf"(?<![A-Za-z0-9_.]){_CELL}(?::{_CELL})?(?![A-Za-z0-9_.(])")
"""A cell such as ``$B$2``, or a range of cells."""

_THIS_ROW = re.compile(r"[A-Za-z0-9_]*\[\[#This Row\],\[[^\]]*\]\]")
"""A cell of the same row of a table."""

_PLAIN = re.compile(
    r"(?!INDIRECT\(|OFFSET\()[A-Za-z_][A-Za-z0-9_.]*\(|TRUE|FALSE|[0-9.]+(?:E[+-]?[0-9]+)?|[-+*/^&=<>(),;%{}\s]"
)
"""Functions, constants and operators, by which a formula reaches no cell that it does not name."""

_TEXT = re.compile(r'"[^"]*"')
"""Text in a formula."""

_LABEL_PROBLEMS: dict[str, tuple[object, ...]] = {
    "date": ("is formatted as a date: format the column as numbers",),
    "reach": (
        "has formulas that use other rows, as totals and running sums do, and would release labels of those rows "
        "again: leave totals below the table out with ",
        Setting("skip_last", 1),
        ", and replace other formulas by their values",
    ),
    "unsaved": ("has formulas without a stored value: open the file in Excel and save it",),
    "error": ("has errors such as #N/A: correct them in Excel",),
}
"""The refusal for each mark of a label's column, in the order in which they are told."""

Formulas = dict[tuple[int, int], str]
"""Formulas of a sheet by row and column."""

SheetRow = tuple[int, dict[int, Any]]
"""The number of a row, and its cells by column."""


class Sheet(NamedTuple):
    """The table of one sheet as text, and the names of its columns by what marks them.

    Marks are "formula", "reach" (a formula that uses other rows), "unsaved" (a formula without a stored value),
    "error", "date" and "hidden".
    """

    file: TextFile
    marks: dict[str, set[str]]


class SheetTable(TextTable):
    """A table in one sheet of an Excel file; in memory."""

    def __init__(self, source: SourceFile, labels: Sequence[str], dialect: Dialect, **reading: Any) -> None:
        self._sheet = read_sheet(source, dialect)
        self._sheet_name = dialect.sheet
        super().__init__(source, "xlsx", labels, dialect, file=self._sheet.file, **reading)
        self.dialect = self.dialect.with_detected(decimal=dialect.decimal)  # numbers of sheets show none

    def _lines_above(self, label: str) -> int:
        top = _top(self._file.source, replace(self.dialect, sheet=self._sheet_name))
        return 0 if top is None else top.lines_above(label)

    def _fields(self) -> list[Any]:
        """Refuse columns that are hidden, or that formulas may have computed from labels."""
        for label in self.labels:
            self._refuse_label(label)
        marks, path = self._sheet.marks, self.source.path
        public = [name for name in self._inside if name not in self.labels]
        refused = [name for name in public if name in marks["formula"] | marks["hidden"]]
        if refused:
            raise ParameterError(
                f"{path} has columns that are hidden, or have formulas, which may use the label, directly or "
                "through other cells: leave these columns out with ",
                Setting("drop", refused),
                ", or show them and replace the formulas by their values if you know that they do not",
            )
        wrong = [name for name in public if name in marks["error"]]
        if wrong:
            raise DataError(
                f"{path} has errors such as #N/A: correct them in Excel, or leave their columns out with ",
                Setting("drop", wrong),
            )
        return super()._fields()

    def _refuse_label(self, label: str) -> None:
        """Refuse a label that is a date, an error, or a formula that repeats other labels or has no value."""
        for mark, problem in _LABEL_PROBLEMS.items():
            if label in self._sheet.marks[mark]:
                raise LabelError(f"the label {label!r} ", *problem)


def _guard(source: SourceFile, read: Callable[[], T]) -> T:
    """Return the result of reading, or complain without the original error, which may quote a label."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl's may quote a label
            return read()
    except LabelDPError:
        raise
    except MemoryError:
        complaint = _TOO_LARGE
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        complaint = _DAMAGED
    raise DataError(f"{source.path} {complaint}")


def _load(source: SourceFile, *, stored: bool) -> Any:
    """Return a workbook with the values that Excel stored, row by row, or with formulas and widths."""
    try:
        from openpyxl import load_workbook  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError(
            'Excel files need openpyxl, which is not installed: pip install "labeldp[excel]"'
        ) from None
    book = load_workbook(io.BytesIO(source.stream().read()), read_only=stored, data_only=stored, keep_links=False)
    if not book.worksheets:
        raise DataError(f"{source.path} has no worksheet")
    return book


def sheet_names(source: SourceFile) -> list[str]:
    """Return the names of a workbook's sheets."""
    return _guard(source, lambda: _names(_load(source, stored=True)))


def _names(book: Any) -> list[str]:
    return [sheet.title for sheet in book.worksheets]


def _chosen_sheet(book: Any, path: Path, dialect: Dialect) -> Any:
    """Return the sheet to read, or ask for one."""
    names = _names(book)
    if dialect.sheet not in (names if len(names) > 1 else [*names, None]):
        choices = ", ".join(map(repr, names[:12]))
        raise ParameterError(f"{path} has the sheets {choices}: choose one with ", Setting("sheet"))
    return book[dialect.sheet or names[0]]


def read_sheet(source: SourceFile, dialect: Dialect) -> Sheet:
    """Return the table of one sheet."""
    return _guard(source, lambda: _read_sheet(source, dialect))


def _read_sheet(source: SourceFile, dialect: Dialect) -> Sheet:
    layout = _chosen_sheet(_load(source, stored=False), source.path, dialect)
    formulas = _formulas(layout, source.path)
    groups = [group for group in layout.column_dimensions.values() if group.hidden]
    hidden = set(chain.from_iterable(range(group.min, group.max + 1) for group in groups))
    del layout, groups  # before the values take as much memory
    sheet = _chosen_sheet(_load(source, stored=True), source.path, dialect)
    header, rows = _table_rows(sheet, formulas, source.path, dialect)
    decimal = dialect.decimal or "."
    names = {column: " ".join(_cell_text(cell, decimal).split()) for column, cell in header.items()}
    marks = _column_marks(names, rows, formulas)
    marks["hidden"] = {name for column, name in names.items() if column in hidden}
    lines = [[_cell_text(cells.get(column), decimal) for column in names] for _, cells in rows]
    return Sheet(_as_text(source, dialect, [list(names.values()), *lines]), marks)


def _table_rows(
    sheet: Any, formulas: Formulas, path: Path, dialect: Dialect
) -> tuple[dict[int, Any], list[SheetRow]]:
    """Return the cells of the header, and the rows of the table below it; no formula names a column."""
    (number, header), *rows = _stored_rows(sheet, formulas, dialect.skip) or [(0, {})]
    if not header or any((number, column) in formulas for column in header):
        raise DataError(f"{path} has no header, or a formula in it: add one, or replace the formula by its value")
    rows = [row for row in rows if row[1].keys() & header.keys()]
    return header, rows[: max(0, len(rows) - (dialect.skip_last or 0))]


def _column_marks(names: dict[int, str], rows: list[SheetRow], formulas: Formulas) -> dict[str, set[str]]:
    """Return the names of columns with a cell of each mark."""
    marks = defaultdict[str, set[str]](set)
    for number, cells in rows:
        for column in cells.keys() & names.keys():
            for mark in _marks(cells[column], formulas.get((number, column))):
                marks[mark].add(names[column])
            if formulas.get((number, column)) and _uses_other_rows(formulas, number, column, names):
                marks["reach"].add(names[column])
    return marks


def _formulas(sheet: Any, path: Path) -> Formulas:
    """Return formulas by row and column, empty text for other cells that a formula or a table fills.

    Pivot tables and rows of totals are refused: their cells may be values alone.
    """
    if sheet._pivots:
        raise DataError(f"{path} has a pivot table on the sheet, which may be computed from labels: remove it")
    tables = sheet.tables.values()
    if any(table.totalsRowCount for table in tables):
        raise DataError(f"{path} has a table with a totals row, which depends on all labels: remove that row")
    formulas = {position: cell.value for position, cell in sheet._cells.items() if cell.data_type == "f"}
    filled = dict.fromkeys(chain.from_iterable(map(_computed_cells, tables)), "")
    for formula in formulas.values():
        if not isinstance(formula, str):  # of an array, or a table of a what-if analysis
            filled |= dict.fromkeys(_positions(formula.ref), "")
    return filled | {position: str(getattr(formula, "text", formula)) for position, formula in formulas.items()}


def _positions(cells: str) -> Iterator[tuple[int, int]]:
    """Yield row and column of the cells of a range such as ``A2:B7``."""
    first, top, last, bottom = _boundaries(cells)
    return product(range(top, bottom + 1), range(first, last + 1))


def _boundaries(cells: str) -> tuple[int, int, int, int]:
    """Return first column, first row, last column and last row of a cell or a range."""
    from openpyxl.utils import range_boundaries  # noqa: PLC0415 (an extra)

    first, top, last, bottom = range_boundaries(cells)
    return first, top, last, bottom


def _computed_cells(table: Any) -> Iterator[tuple[int, int]]:
    """Yield row and column of the cells that a table computes."""
    is_computed = [bool(column.calculatedColumnFormula) for column in table.tableColumns]
    below_header = islice(_positions(table.ref), len(is_computed), None)
    return compress(below_header, cycle(is_computed))


def _stored_rows(sheet: Any, formulas: Formulas, skip: int) -> list[SheetRow]:
    """Return rows below the skipped ones that are not blank."""
    sheet.reset_dimensions()  # which some programs state wrong
    rows = []
    for number, row in enumerate(sheet.rows, 1):
        cells = {
            column: cell
            for column, cell in enumerate(row, 1)
            if _cell_text(cell, ".") or cell.data_type == "e" or (number, column) in formulas
        }
        if cells and number > skip:
            rows.append((number, cells))
    return rows


def _cell_text(cell: Any, decimal: str) -> str:
    """Return the value of a cell as text, a duration in days; empty text if it is blank or an error."""
    value = None if cell is None or cell.data_type == "e" else cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, timedelta):
        value = value / timedelta(days=1)
    if isinstance(value, int | float):
        return str(value).replace("inf", "1e999").replace(".", decimal)  # a number, though beyond floats
    if isinstance(value, datetime):
        return str(value).removesuffix(" 00:00:00")
    return str(value).strip()


def _marks(cell: Any, formula: str | None) -> Iterator[str]:
    """Yield marks of a cell for its column."""
    from openpyxl.styles.numbers import is_date_format  # noqa: PLC0415 (an extra)

    is_error = cell.data_type == "e"
    if is_error:
        yield "error"
    if cell.data_type == "d" or (is_error and is_date_format(cell.number_format)):  # also where it can be no date
        yield "date"
    if formula is not None:
        yield "formula"
    if formula and cell.value is None and cell.data_type == "n":
        yield "unsaved"


def _uses_other_rows(formulas: Formulas, row: int, column: int, columns: Collection[int]) -> bool:
    """Return whether a formula may use other cells of its column, or other rows that formulas fill.

    Cells of the same row that have formulas are followed. Names, other sheets and ranges over several rows may
    hold any cell.
    """
    pending, followed = [column], set[int]()
    while pending:
        current = pending.pop()
        formula = formulas.get((row, current))
        if formula is None or current in followed:
            continue
        followed.add(current)
        text, uses_table = _THIS_ROW.subn("0", _TEXT.sub("0", formula))
        if uses_table:
            pending.extend(columns)
        if not formula or _PLAIN.sub("", _RANGE.sub("", text)):
            return True
        for cells in _RANGE.finditer(text):
            first, top, last, bottom = _boundaries(cells[0])
            if top == bottom == row:
                pending.extend(range(first, last + 1))
            elif top != bottom or first != last or first == column or (top, first) in formulas:
                return True
    return False


def count_sheet_titles(path: Path, dialect: Dialect) -> int:
    """Count rows that seem to be titles, as in a text file."""
    top = _top(SourceFile(path), dialect)
    return 0 if top is None else top.titles("csv")


def _top(source: SourceFile, dialect: Dialect) -> TextFile | None:
    """Return the first rows of a sheet as text; None if there are several sheets and none is named."""
    return _guard(source, lambda: _read_top(source, dialect))


def _read_top(source: SourceFile, dialect: Dialect) -> TextFile | None:
    book = _load(source, stored=True)
    if dialect.sheet is None and len(book.worksheets) > 1:
        return None
    sheet = _chosen_sheet(book, source.path, dialect)
    sheet.reset_dimensions()
    lines = [[_cell_text(cell, ".") for cell in row] for row in islice(sheet.rows, HEADER_ROWS)]
    return _as_text(source, dialect, _pad_below(lines))


def _pad_below(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield rows as wide as those above them, without the empty cells at their ends; blank rows stay blank.

    A sheet stores no cells after the last value of a row, so a row whose last value is missing is shorter.
    """
    widest = 0
    for row in rows:
        width = max((column for column, text in enumerate(row, 1) if text), default=0)
        widest = max(widest, width)
        yield [*row[:width], *[""] * (widest - width)] if width else []


def _as_text(source: SourceFile, dialect: Dialect, rows: Iterable[list[str]]) -> TextFile:
    """Return rows as a text file; a line break in a cell becomes a blank."""
    text = io.StringIO()
    writer = python_csv.writer(text, lineterminator="\n")
    writer.writerows([re.sub(r"[\r\n\0]+", " ", cell) for cell in row] for row in rows)
    written = dialect.with_detected(separator=",", decimal=dialect.decimal or ".", encoding="utf-8", sheet=None)
    return TextFile(source, written, text.getvalue().encode())
