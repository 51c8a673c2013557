"""The cells of one sheet of an Excel workbook, in one pass over its XML.

openpyxl reads the workbook, its shared text and its number formats. Values, formulas, formats and widths are read
in the same pass, so that they cannot disagree. What a sheet may have is listed here; everything else is refused.
"""

from __future__ import annotations

import math
import posixpath
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from openpyxl.cell.text import Text
from openpyxl.packaging.relationship import get_rels_path
from openpyxl.reader.excel import ExcelReader, apply_stylesheet
from openpyxl.styles import numbers
from openpyxl.utils import column_index_from_string, range_boundaries
from openpyxl.utils.datetime import from_excel
from openpyxl.xml.constants import SHEET_MAIN_NS
from openpyxl.xml.functions import fromstring, iterparse

from labeldp.tables.excel import Formula, RefusedError, Row

MOST_UNPACKED = 64 << 20
MOST_RATIO = 100
"""A workbook unpacks to 64 MiB at most, or to 100 times the size of its file if that is more."""

MOST_ROWS, MOST_COLUMNS, MOST_CHARACTERS = 1_048_576, 16_384, 32_767
"""Excel's own limits."""

_PROLOG = 1 << 12
"""Bytes of a part in which a document type would be."""

_PATH = [f"{{{SHEET_MAIN_NS}}}{tag}" for tag in ("worksheet", "sheetData", "row")]
_CELL, _VALUE, _FORMULA, _TEXT, _WIDTH = (f"{{{SHEET_MAIN_NS}}}{tag}" for tag in ("c", "v", "f", "is", "col"))
_POSITION = re.compile("([A-Z]{1,3})([0-9]{1,7})")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_LOCAL_DATES = {*range(27, 37), *range(50, 59)}
"""Formats of dates that have no code, because they differ between countries."""

_FIRST_OWN = 164
"""The first number of a format that a workbook defines itself."""

_LITERALS = re.compile(r'"[^"]*"?|\\.?|[_*].?|\[[^\]]*\]?', re.DOTALL)
"""What a number format shows beside the value: quoted and escaped text, blanks, colours, conditions, locales."""

_NARROWEST = 0.2
"""A column of fewer characters than this is less than a pixel wide."""


def _shows_nothing(code: str) -> bool:
    """Whether a format leaves positive or negative numbers blank, as ``;;;`` does."""
    return any(not re.search("[0#?@A-Za-z]", section) for section in _LITERALS.sub("", code).split(";")[:2])


def _refuse_unless(holds: object) -> None:
    if not holds:
        raise RefusedError("has something that Excel does not write in a sheet of values: save the sheet as CSV")


class Workbook:
    """The worksheets of a workbook, by their names, with its text and its formats.

    Parameters
    ----------
    stream : seekable binary stream
    size : int
        Its length in bytes.
    """

    def __init__(self, stream: Any, size: int) -> None:
        with zipfile.ZipFile(stream) as archive:
            parts = archive.infolist()
            starts = [archive.open(part).read(_PROLOG).replace(b"\0", b"") for part in parts]
        _refuse_unless(len({part.filename.casefold() for part in parts}) == len(parts))
        _refuse_unless(not any(b"<!DOCTYPE" in start for start in starts))
        if sum(part.file_size for part in parts) > max(MOST_UNPACKED, MOST_RATIO * size):
            raise RefusedError(f"unpacks to more than {MOST_RATIO} times its size: save the sheet as CSV")
        reader = ExcelReader(stream, read_only=True, keep_links=False)
        reader.read_manifest()
        reader.read_strings()
        reader.read_workbook()
        apply_stylesheet(reader.archive, reader.wb)
        self.archive, self.strings, self.epoch = reader.archive, reader.shared_strings, reader.wb.epoch
        found = [(sheet.name, rel) for sheet, rel in reader.parser.find_sheets()]
        self.parts = {name: rel.target for name, rel in found if rel.Type.endswith("/worksheet")}
        if not self.parts:
            raise RefusedError("has no worksheet")
        own = dict(enumerate(reader.wb._number_formats, _FIRST_OWN))
        codes = {**numbers.BUILTIN_FORMATS, **dict.fromkeys(_LOCAL_DATES, "yyyy-mm-dd"), **own}
        self.formats = [codes.get(style.numFmtId, "General") for style in reader.wb._cell_styles]

    def sheet(self, name: str, skip: int, decimal: str) -> SheetReader:
        """Return one sheet without its first rows, with numbers as text with a decimal mark."""
        return SheetReader(self, name, skip, decimal)


class SheetReader:
    """The cells of one sheet below its first rows, and which of its columns are hidden or have dates.

    Attributes
    ----------
    hidden, dates : set of int
        The columns that do not show their values, and that have dates among them, once all rows were read.
    """

    def __init__(self, book: Workbook, name: str, skip: int, decimal: str) -> None:
        self._book, self._part, self._skip, self._decimal = book, book.parts[name], skip, decimal
        self.hidden, self.dates = set[int](), set[int]()
        self._computed: list[tuple[int, int, int]] = []
        """The columns that tables compute, each with its first and last row."""
        self._filled: dict[int, int] = {}
        """The last row that array and shared formulas, of the rows read so far, fill in a column."""
        self._read_relations()

    def _read_relations(self) -> None:
        """Refuse pivot tables and totals, and note which columns a table computes: cells may be values alone."""
        archive, relations = self._book.archive, get_rels_path(self._part)
        for each in fromstring(archive.read(relations)) if relations in archive.namelist() else ():
            kind = each.get("Type", "").rpartition("/")[2]
            if kind == "pivotTable":
                raise RefusedError("has a pivot table on the sheet, which may be computed from labels: remove it")
            if kind == "table":
                target = posixpath.join("/", posixpath.dirname(self._part), each.get("Target", ""))
                table = fromstring(archive.read(posixpath.normpath(target).lstrip("/")))
                if table.get("totalsRowCount", "0") != "0":
                    raise RefusedError(
                        "has a table with a totals row, which depends on all labels: remove that row"
                    )
                first, top, _, bottom = range_boundaries(table.get("ref"))
                for place, column in enumerate(table.iterfind("{*}tableColumns/{*}tableColumn"), first):
                    if column.find("{*}calculatedColumnFormula") is not None:
                        self._computed.append((place, top + 1, bottom))

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the number of each row that has values, from 1, and its values."""
        path, last = list[str](), 0
        with self._book.archive.open(self._part) as source:
            for event, element in iterparse(source, ("start", "end")):
                if event == "start":
                    path.append(element.tag)
                    if element.tag in _PATH or path[-2:-1] == _PATH[1:2]:
                        _refuse_unless(path == _PATH[: len(path)])
                    continue
                path.pop()
                if element.tag == _WIDTH:
                    self._add_width(element)
                elif element.tag == _PATH[2]:
                    number = int(element.get("r", 0))
                    _refuse_unless(last < number <= MOST_ROWS)
                    row, last = self._row(element, number), number
                    element.clear()
                    if row and number > self._skip:
                        yield number, row

    def _row(self, row: Any, number: int) -> Row:
        """Return the values of a row by their columns."""
        values, last = Row(), 0
        for cell in row:
            position: Any = _POSITION.fullmatch(cell.get("r", ""))
            parts = {part.tag: part for part in cell}
            _refuse_unless(position and cell.tag == _CELL and len(parts) == len(cell))
            _refuse_unless(parts.keys() <= {_FORMULA, _VALUE, _TEXT} and int(position[2]) == number)
            column = column_index_from_string(position[1])
            _refuse_unless(last < column <= MOST_COLUMNS)
            last = column
            if _FORMULA in parts and (filled := parts[_FORMULA].get("ref")):
                first, _, end, bottom = range_boundaries(filled)
                for place in range(first, end + 1):
                    self._filled[place] = max(bottom, self._filled.get(place, 0))
            is_computed = number <= self._filled.get(column, 0) or any(
                place == column and top <= number <= bottom for place, top, bottom in self._computed
            )
            style = self._book.formats[int(cell.get("s", 0))]
            value = self._value(cell.get("t", "n"), parts, style, column if number > self._skip else 0)
            if _FORMULA in parts or (value and is_computed):
                values[column] = Formula()
            elif value:
                values[column] = value
        return values

    def _value(self, kind: str, parts: dict[str, Any], style: str, column: int) -> str:
        """Return the number, text or boolean of a cell as text; empty text if it is blank or an error."""
        text = parts[_VALUE].text or "" if _VALUE in parts else ""
        if kind == "inlineStr" and _TEXT in parts:
            text = Text.from_tree(parts[_TEXT]).content
        elif kind == "s":
            _refuse_unless(text.isdecimal())
            text = self._book.strings[int(text)]
        text = text.strip()
        if kind == "n" and text:
            _refuse_unless(_NUMBER.fullmatch(text))
            return self._number(text, style, column)
        _refuse_unless(kind in ("n", "s", "b", "e", "str", "inlineStr") and len(text) <= MOST_CHARACTERS)
        return {"e": "", "b": "TRUE" if text == "1" else "FALSE"}.get(kind, text) if text else ""

    def _number(self, text: str, style: str, column: int) -> str:
        """Return a number, or the date that its format says it is; durations stay numbers, of days."""
        value = float(text)
        if _shows_nothing(style):
            self.hidden.add(column)
        if numbers.is_date_format(style):
            self.dates.add(column)
            if not numbers.is_timedelta_format(style):
                try:
                    return str(from_excel(value, self._book.epoch)).removesuffix(" 00:00:00")
                except (OverflowError, ValueError):  # beyond the last year
                    return ""
        if not text.isdecimal() and math.isfinite(value):  # Excel writes 17 digits
            text = repr(value)
        return text.replace(".", self._decimal)

    def _add_width(self, element: Any) -> None:
        first, last = int(element.get("min", 0)), int(element.get("max", 0))
        _refuse_unless(1 <= first <= last <= MOST_COLUMNS)
        is_seen = float(element.get("width", 1)) >= _NARROWEST
        if element.get("hidden", "0") not in ("0", "false") or not is_seen:
            self.hidden.update(range(first, last + 1))
