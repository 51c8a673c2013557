"""The values of one sheet of an Excel workbook, in one pass of openpyxl's parser.

The same pass reads values, formulas, formats and widths, so that they cannot disagree. openpyxl does not convert
dates here: it would warn of some values and quote them, and they may be labels.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

MOST_UNPACKED = 64 << 20
MOST_RATIO = 100
"""A workbook unpacks to 64 MiB at most, or to 100 times the size of its file if that is more."""

_LOCAL_DATES = {*range(27, 37), *range(50, 59)}
"""Formats of dates that have no code, because they differ between countries."""

_FIRST_OWN = 164
"""The first number of a format that a workbook defines itself."""

_LITERALS = re.compile(r'"[^"]*"?|\\.?|[_*].?|\[[^\]]*\]?', re.DOTALL)
"""What a number format shows beside the value: quoted and escaped text, blanks, colours, conditions, locales."""

_NARROWEST = 0.2
"""A column of fewer characters than this is less than a pixel wide."""

Row = dict[int, Any]
"""The values of a row by their column, from 1; blank cells and errors are left out."""


class RefusedError(Exception):
    """What is wrong with a workbook, to be said after its name; quotes nothing from it."""


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
        from openpyxl.styles import numbers as formats  # noqa: PLC0415 (an extra)

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
        from openpyxl.reader.excel import ExcelReader, apply_stylesheet  # noqa: PLC0415 (an extra)

        with zipfile.ZipFile(stream) as archive:
            if sum(info.file_size for info in archive.infolist()) > max(MOST_UNPACKED, MOST_RATIO * size):
                raise RefusedError(f"unpacks to more than {MOST_RATIO} times its size: save it as CSV")
        reader = ExcelReader(stream, read_only=True, keep_links=False)
        reader.read_manifest()
        reader.read_strings()
        reader.read_workbook()
        apply_stylesheet(reader.archive, reader.wb)
        self.archive, self.book, self.strings = reader.archive, reader.wb, reader.shared_strings
        parts = [(sheet.name, rel) for sheet, rel in reader.parser.find_sheets()]
        self._parts = {name: rel.target for name, rel in parts if rel.Type.endswith("/worksheet")}
        self.styles = [self._style(each.numFmtId) for each in self.book._cell_styles]

    def _style(self, number: int) -> Style:
        from openpyxl.styles.numbers import BUILTIN_FORMATS  # noqa: PLC0415 (an extra)

        if number >= _FIRST_OWN:
            return Style.of(self.book._number_formats[number - _FIRST_OWN])
        return Style.of(BUILTIN_FORMATS.get(number, "General"), is_date=number in _LOCAL_DATES)

    @property
    def sheets(self) -> list[str]:
        """The names of the worksheets: no charts, dialogs or macros."""
        if not self._parts:
            raise RefusedError("has no worksheet")
        return list(self._parts)

    def sheet(self, name: str) -> SheetReader:
        """Return one sheet, of which no cell has been read yet."""
        return SheetReader(self, self._parts[name])


class SheetReader:
    """The cells of one sheet, and, once all were read, what its columns are besides.

    Attributes
    ----------
    formulas : set of int
        The columns that have formulas, or that an array formula, a data table or a table computes.
    hidden : set of int
        The columns that are hidden, or have no width, or a number whose format shows nothing of it.
    dates : dict
        The columns that have numbers in the format of a date, and the first row that has one.
    """

    def __init__(self, book: Workbook, part: str) -> None:
        self._book, self._part = book, part
        self.formulas: set[int] = set()
        self.hidden: set[int] = set()
        self.dates: dict[int, int] = {}
        self._read_relations()

    def _read_relations(self) -> None:
        """Refuse pivot tables, and count the columns that a table computes: a cell may keep the value alone."""
        from openpyxl.packaging.relationship import get_dependents, get_rels_path  # noqa: PLC0415 (an extra)

        archive, relations = self._book.archive, get_rels_path(self._part)
        for each in get_dependents(archive, relations) if relations in archive.namelist() else ():
            if each.Type.endswith("/pivotTable"):
                raise RefusedError("has a pivot table on the sheet, which may be computed from labels: remove it")
            if each.Type.endswith("/table"):
                self._add_table(archive.read(each.target))

    def _add_table(self, data: bytes) -> None:
        from openpyxl.utils import range_boundaries  # noqa: PLC0415 (an extra)
        from openpyxl.xml.functions import fromstring  # noqa: PLC0415 (an extra)

        table = fromstring(data)
        if int(table.get("totalsRowCount", 0)):
            raise RefusedError("has a table with a totals row, which depends on every label: remove that row")
        first = range_boundaries(table.get("ref"))[0]
        for place, column in enumerate(table.iterfind("{*}tableColumns/{*}tableColumn")):
            if column.find("{*}calculatedColumnFormula") is not None:
                self.formulas.add(first + place)

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the number of each row that has values, from 1, and its values."""
        from openpyxl.worksheet import _reader as sheets  # noqa: PLC0415 (an extra)

        with self._book.archive.open(self._part) as source:
            parser = sheets.WorkSheetParser(source, self._book.strings)
            for _, element in sheets.iterparse(source):
                if element.tag == sheets.COL_TAG:
                    self._add_width(element)
                elif element.tag == sheets.ROW_TAG:
                    number, cells = parser.parse_row(element)
                    element.clear()
                    row = {cell["column"]: self._value(**cell) for cell in cells if _is_filled(cell)}
                    if row:
                        yield number, row

    def _add_width(self, element: Any) -> None:
        is_seen = float(element.get("width", 1)) >= _NARROWEST
        if element.get("hidden", "0") not in ("0", "false") or not is_seen:
            last = min(int(element.get("max")), 1 << 14)
            self.hidden.update(range(int(element.get("min")), last + 1))

    def _value(self, row: int, column: int, value: Any, data_type: str, style_id: int) -> Any:
        """Return what a cell holds; None for a formula, and for a date beyond the last year."""
        from openpyxl.utils import datetime as dates  # noqa: PLC0415 (an extra)
        from openpyxl.utils import range_boundaries  # noqa: PLC0415 (an extra)

        if data_type == "f":
            self.formulas.add(column)
            if hasattr(value, "ref"):  # of an array or a data table
                first, _, last, _ = range_boundaries(value.ref)
                self.formulas.update(range(first, last + 1))
            return None
        if data_type == "d":
            self.dates.setdefault(column, row)
        if data_type != "n":
            return value
        style = self._book.styles[style_id]
        if style.is_hidden:
            self.hidden.add(column)
        if not style.is_date:
            return value
        self.dates.setdefault(column, row)
        try:
            return dates.from_excel(value, self._book.book.epoch, timedelta=style.is_duration)
        except (OverflowError, ValueError):
            return None


def _is_filled(cell: dict[str, Any]) -> bool:
    """Whether a cell holds a value: no blank, no blanks in text, no error."""
    value = cell["value"]
    return value is not None and cell["data_type"] != "e" and bool(str(value).strip())
