"""The values of one sheet of an Excel workbook, in one pass of openpyxl's parser.

The same pass reads values, formulas, formats and widths, so that they cannot disagree. openpyxl does not convert
dates here: it would warn of some values and quote them, and they may be labels.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from openpyxl.packaging.relationship import get_rels_path
from openpyxl.reader.excel import ExcelReader, apply_stylesheet
from openpyxl.styles import numbers as formats
from openpyxl.utils import datetime as dates
from openpyxl.utils import range_boundaries
from openpyxl.worksheet import _reader as sheets
from openpyxl.xml.functions import fromstring

from labeldp.tables.excel import RefusedError, Row

MOST_UNPACKED = 64 << 20
MOST_RATIO = 100
"""A workbook unpacks to 64 MiB at most, or to 100 times the size of its file if that is more."""

MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
MOST_CHARACTERS = 32_767
"""Excel's own limits."""

_PROLOG = 1 << 12
"""Bytes of a part in which a document type would be."""

_KINDS = {"n", "s", "b", "d", "e", "str", "inlineStr"}
"""The types of cells that Excel has; openpyxl takes any other for text."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_INTEGER = 18
"""Characters of an integer; Excel itself has 15 digits. A longer one is read as a float."""

_LOCAL_DATES = {*range(27, 37), *range(50, 59)}
"""Formats of dates that have no code, because they differ between countries."""

_FIRST_OWN = 164
"""The first number of a format that a workbook defines itself."""

_LITERALS = re.compile(r'"[^"]*"?|\\.?|[_*].?|\[[^\]]*\]?', re.DOTALL)
"""What a number format shows beside the value: quoted and escaped text, blanks, colours, conditions, locales."""

_NARROWEST = 0.2
"""A column of fewer characters than this is less than a pixel wide."""

_LONG_CELL = f"has a cell of more than {MOST_CHARACTERS:,} characters"


class Style(NamedTuple):
    """What a cell's format says of a number in it: whether it is a date or a duration, and whether it is hidden.

    Examples
    --------
    >>> Style.of(";;;")
    Style(is_date=False, is_duration=False, is_hidden=True)
    >>> Style.of("[h]:mm")
    Style(is_date=True, is_duration=True, is_hidden=False)
    """

    is_date: bool
    is_duration: bool
    is_hidden: bool

    @classmethod
    def of(cls, code: str, *, is_date: bool = False) -> Style:
        """Return what a format's code says; zeros alone may be left blank, positive and negative numbers not."""
        is_date = is_date or formats.is_date_format(code)
        shown = [re.search("[0#?@A-Za-z]", section) for section in _LITERALS.sub("", code).split(";")[:2]]
        return cls(is_date, formats.is_timedelta_format(code), not is_date and None in shown)


class Workbook:
    """The names of a workbook's worksheets, its text and its formats.

    Parameters
    ----------
    stream : seekable binary stream
    size : int
        Its length in bytes.
    """

    def __init__(self, stream: Any, size: int) -> None:

        with zipfile.ZipFile(stream) as archive:
            parts = archive.infolist()
            starts = [archive.open(part).read(_PROLOG) for part in parts]
        if any(b"<!DOCTYPE" in start.replace(b"\0", b"") for start in starts):
            raise RefusedError("has a document type or entities, which Excel does not write")
        if len({part.filename.casefold() for part in parts}) < len(parts):
            raise RefusedError("has two parts of one name")
        if sum(part.file_size for part in parts) > max(MOST_UNPACKED, MOST_RATIO * size):
            raise RefusedError(f"unpacks to more than {MOST_RATIO} times its size: save it as CSV")
        reader = ExcelReader(stream, read_only=True, keep_links=False)
        reader.read_manifest()
        reader.read_strings()
        reader.read_workbook()
        apply_stylesheet(reader.archive, reader.wb)
        self.archive, self.book, self.strings = reader.archive, reader.wb, reader.shared_strings
        found = [(sheet.name, rel) for sheet, rel in reader.parser.find_sheets()]
        self._parts = {name: rel.target for name, rel in found if rel.Type.endswith("/worksheet")}
        if max(map(len, self.strings), default=0) > MOST_CHARACTERS:
            raise RefusedError(_LONG_CELL)
        self.styles = [self._style(each.numFmtId) for each in self.book._cell_styles]

    def _style(self, number: int) -> Style:

        if number >= _FIRST_OWN:
            return Style.of(self.book._number_formats[number - _FIRST_OWN])
        return Style.of(formats.BUILTIN_FORMATS.get(number, "General"), is_date=number in _LOCAL_DATES)

    @property
    def sheets(self) -> list[str]:
        """The names of the worksheets: no charts, dialogs or macros."""
        if not self._parts:
            raise RefusedError("has no worksheet")
        return list(self._parts)

    def sheet(self, name: str, skip: int) -> SheetReader:
        """Return one sheet without its first rows; no cell has been read yet."""
        return SheetReader(self, self._parts[name], skip)


class SheetReader:
    """The cells of one sheet, and, once all were read, what its columns are besides.

    Attributes
    ----------
    formulas : dict
        The columns that have formulas, or that an array formula, a data table or a table computes; and the first
        row that has one.
    hidden : dict
        The columns that are hidden, or have no width, or a number whose format shows nothing of it; likewise.
    dates : dict
        The columns that have numbers in the format of a date; likewise.
    """

    def __init__(self, book: Workbook, part: str, skip: int) -> None:
        self._book, self._part, self._skip = book, part, skip
        self.formulas: dict[int, int] = {}
        self.hidden: dict[int, int] = {}
        self.dates: dict[int, int] = {}
        self._read_relations()

    def _read_relations(self) -> None:
        """Refuse pivot tables, and count the columns that a table computes: a cell may keep the value alone."""
        archive, relations = self._book.archive, get_rels_path(self._part)
        for each in fromstring(archive.read(relations)) if relations in archive.namelist() else ():
            kind = each.get("Type", "").rpartition("/")[2]
            if kind == "pivotTable":
                raise RefusedError("has a pivot table on the sheet, which may be computed from labels: remove it")
            if kind == "table":
                target = posixpath.join("/", posixpath.dirname(self._part), each.get("Target"))
                self._add_table(archive.read(posixpath.normpath(target).lstrip("/")))

    def _add_table(self, data: bytes) -> None:

        table = fromstring(data)
        if int(table.get("totalsRowCount", 0)):
            raise RefusedError("has a table with a totals row, which depends on every label: remove that row")
        first = range_boundaries(table.get("ref"))[0]
        for place, column in enumerate(table.iterfind("{*}tableColumns/{*}tableColumn")):
            if column.find("{*}calculatedColumnFormula") is not None:
                self.formulas[first + place] = 0

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the number of each row that has values, from 1, and its values."""
        last, count, is_over = 0, 0, False
        with self._book.archive.open(self._part) as source:
            parser = sheets.WorkSheetParser(source, self._book.strings)
            data = f"{{{sheets.SHEET_MAIN_NS}}}sheetData"
            for _, element in sheets.iterparse(source):
                if element.tag == sheets.COL_TAG:
                    self._add_width(element)
                elif element.tag == sheets.ROW_TAG:
                    _refuse_unless(not is_over)
                    number, cells = self._parse_row(parser, element)
                    _refuse_positions(number, cells, last)
                    last, count = number, count + 1
                    if number <= self._skip:
                        continue
                    row = {cell["column"]: self._value(**cell) for cell in cells if _is_filled(cell)}
                    if row:
                        yield number, row
                elif element.tag == data:
                    _refuse_unless(len(element) == count)  # no row is elsewhere, and nothing else is among them
                    is_over = True
        _refuse_unless(is_over or not count)

    def _parse_row(self, parser: Any, row: Any) -> tuple[int, list[dict[str, Any]]]:
        """Return a row's number and cells; refuse what Excel does not write, and note ranges of formulas."""
        extension = f"{{{sheets.SHEET_MAIN_NS}}}extLst"
        inside = {sheets.FORMULA_TAG, sheets.VALUE_TAG, sheets.INLINE_STRING, extension}
        for cell in row:
            _refuse_unless(cell.tag in (sheets.CELL_TAG, extension) and all(part.tag in inside for part in cell))
            kind, value = cell.get("t", "n"), cell.find(sheets.VALUE_TAG)
            if kind not in _KINDS:
                raise RefusedError("has a cell of an unknown type")
            if sum(map(len, cell.itertext())) > MOST_CHARACTERS and kind != "n":
                raise RefusedError(_LONG_CELL)
            for formula in cell.iterfind(sheets.FORMULA_TAG):
                if formula.get("ref"):
                    first, top, last, bottom = range_boundaries(formula.get("ref"))
                    if bottom > self._skip:
                        _note(self.formulas, range(first, last + 1), max(top, self._skip + 1))
            if kind == "n" and value is not None and value.text and value.text.strip():
                value.text = value.text.strip()
                if not _NUMBER.fullmatch(value.text):
                    raise RefusedError("has a cell of numbers that is no number")
                if len(value.text) > _LONGEST_INTEGER and value.text.lstrip("+-").isdigit():
                    value.text += "e0"
        number, cells = parser.parse_row(row)
        row.clear()
        return number, cells

    def _add_width(self, element: Any) -> None:
        first, last = int(element.get("min")), int(element.get("max"))
        _refuse_unless(1 <= first <= last <= MOST_COLUMNS)
        is_seen = float(element.get("width", 1)) >= _NARROWEST
        if element.get("hidden", "0") not in ("0", "false") or not is_seen:
            _note(self.hidden, range(first, last + 1), 0)

    def _value(self, row: int, column: int, value: Any, data_type: str, style_id: int) -> Any:
        """Return what a cell holds; None for a formula, and for a date beyond the last year."""
        if data_type == "f":
            _note(self.formulas, [column], row)
            return None
        if data_type == "d":
            self.dates.setdefault(column, row)
        if data_type != "n":
            return value
        style = self._book.styles[style_id]
        if style.is_hidden:
            _note(self.hidden, [column], row)
        if not style.is_date:
            return value
        self.dates.setdefault(column, row)
        try:
            return dates.from_excel(value, self._book.book.epoch, timedelta=style.is_duration)
        except (OverflowError, ValueError):
            return None


def _note(notes: dict[int, int], columns: Iterable[int], row: int) -> None:
    """Note of some columns the first row in which something was found."""
    notes.update({column: min(row, notes.get(column, row)) for column in columns})


def _is_filled(cell: dict[str, Any]) -> bool:
    """Whether a cell holds a value: no blank, no blanks in text, no error."""
    value = cell["value"]
    return value is not None and cell["data_type"] != "e" and bool(str(value).strip())


def _refuse_positions(number: int, cells: list[dict[str, Any]], before: int) -> None:
    """Refuse cells that are twice in a row, out of order, or elsewhere than their row says, and such rows."""
    columns = [0, *(cell["column"] for cell in cells), MOST_COLUMNS + 1]
    _refuse_unless(before < number <= MOST_ROWS and all(cell["row"] == number for cell in cells))
    _refuse_unless(all(one < other for one, other in pairwise(columns)))


def _refuse_unless(holds: bool) -> None:
    if not holds:
        raise RefusedError("has cells, rows or other elements where Excel does not write them, or has them twice")
