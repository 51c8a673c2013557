"""The cells of one sheet of an Excel workbook, in one pass.

The same pass reads values, formulas, formats and widths, so nothing can be written in a way that only some of the
checks see. Types of cells and positions that Excel does not have are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from labeldp.tables.excel_parts import (
    CELL,
    MOST_COLUMNS,
    MOST_ROWS,
    RELATIONS,
    ROW,
    TABLE_COLUMN,
    Archive,
    Element,
    RefusedError,
)

_REFERENCE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"0": False, "1": True, "false": False, "true": True}
_LOCAL_DATES = {*range(27, 37), *range(50, 59)}
"""Formats of dates that have no code, because they differ between countries."""

_LITERALS = re.compile(r'"[^"]*"?|\\.?|[_*].?|\[[^\]]*\]?', re.DOTALL)
"""What a number format shows beside the value: quoted and escaped text, blanks, colours, conditions, locales."""

_NARROWEST = 0.2
"""A column of fewer characters than this is less than a pixel wide."""


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


class DateCell(NamedTuple):
    """A number with the format of a date, or a date in ISO 8601; not converted, as that fails for some values."""

    serial: float | str
    elapsed: bool = False
    since_1904: bool = False


class Workbook:
    """The parts of a workbook that are read: the names of its worksheets at once, and one sheet at a time.

    Parameters
    ----------
    stream : seekable binary stream
    size : int
        Its length in bytes.
    """

    def __init__(self, stream: Any, size: int) -> None:
        self._archive = Archive(stream, size)
        [main] = {part for kind, part in self._archive.relations("").values() if kind == "officeDocument"}
        self._parts = self._archive.relations(main)
        self._since_1904 = False
        self._sheets: dict[str, str] = {}
        for path, attributes, _ in self._archive.elements(main):
            if path == "/workbook/workbookPr":
                self._since_1904 = attributes.get("date1904") in ("1", "true")
            elif path == "/workbook/sheets/sheet":
                self._add_sheet(attributes)
        if not self._sheets:
            raise RefusedError("has no worksheet")

    def _add_sheet(self, attributes: dict[str, str]) -> None:
        key = next((attributes[name] for space in RELATIONS if (name := f"{space}}}id") in attributes), "")
        kind, part = self._parts.get(key, ("", ""))
        if attributes["name"] in self._sheets:
            raise RefusedError("has two sheets of one name")
        if kind == "worksheet":
            self._sheets[attributes["name"]] = part

    @property
    def sheets(self) -> list[str]:
        """The names of the worksheets: no charts, dialogs or macros."""
        return list(self._sheets)

    def sheet(self, name: str) -> SheetReader:
        """Return one sheet, of which no cell has been read yet."""
        part = self._sheets[name]
        reader = SheetReader(
            self._archive.elements(part), self._strings(), self._styles(), since_1904=self._since_1904
        )
        for kind, other in set(self._archive.relations(part).values()):
            if kind == "pivotTable":
                raise RefusedError("has a pivot table on the sheet, which may be computed from labels: remove it")
            if kind == "table":
                reader.add_table(self._archive.elements(other))
        return reader

    def _strings(self) -> list[str]:
        strings, pieces = list[str](), list[str]()
        for path, _, text in self._only("sharedStrings"):
            if path == "/sst/si":
                strings.append("".join(pieces).replace("x005F_", ""))  # an escaped underscore
                pieces.clear()
            elif path.endswith("/t"):
                pieces.append(text)
        return strings

    def _styles(self) -> dict[str, Style]:
        """Return what each format of cells says of numbers."""
        from openpyxl.styles import numbers as formats  # noqa: PLC0415 (an extra)

        codes, numbers = dict[int, str](), list[int]()
        for path, attributes, _ in self._only("styles"):
            if path.endswith("/numFmt"):
                codes[int(attributes["numFmtId"])] = attributes["formatCode"]
            elif path.endswith("/xf"):
                numbers.append(int(attributes.get("numFmtId", 0)))
        known = formats.BUILTIN_FORMATS | codes
        styles = {
            number: Style.of(known.get(number, "General"), is_date=number in _LOCAL_DATES)
            for number in {0, *numbers}
        }
        return {str(place): styles[number] for place, number in enumerate(numbers or [0])}

    def _only(self, kind: str) -> Iterator[Element]:
        """Return the elements of the workbook's part of a kind, of which there is one at most."""
        parts = {part for other, part in self._parts.values() if other == kind}
        if len(parts) > 1:
            raise RefusedError(f"has several parts for its {kind}")
        return self._archive.elements(parts.pop()) if parts else iter(())


class SheetReader:
    """The cells of one sheet, and, once all were read, what its columns are besides."""

    def __init__(
        self,
        elements: Iterator[Element],
        strings: list[str],
        styles: dict[str, Style],
        *,
        since_1904: bool,
    ) -> None:
        self._elements, self._strings, self._styles, self._since_1904 = elements, strings, styles, since_1904
        self._row: dict[int, Any] = {}
        self._row_numbers: set[int] = set()
        self._column = self._last_width = -1
        self._texts: list[str] = []
        self._ranges: list[str] = []
        self._edges = [0] * (MOST_COLUMNS + 1)
        self.hidden: set[int] = set()
        """The columns that are hidden, or have no width, or a number whose format shows nothing of it."""

    @property
    def formulas(self) -> set[int]:
        """The columns that have formulas, or that an array formula, a data table or a table computes."""
        return {column for column, depth in enumerate(accumulate(self._edges)) if depth}

    def _add_formulas(self, first: int, last: int) -> None:
        self._edges[first] += 1
        self._edges[last + 1] -= 1

    def add_table(self, elements: Iterator[Element]) -> None:
        """Count the columns that a table computes as formulas: a cell may keep the value alone."""
        computed, place = list[int](), 0
        for path, attributes, _ in elements:
            if path.endswith("Formula"):
                computed.append(place)
            elif path == TABLE_COLUMN:
                place += 1
            elif path == "/table":
                if int(attributes.get("totalsRowCount", 0)):
                    raise RefusedError(
                        "has a table with a totals row, which depends on every label: remove that row"
                    )
                first, last = _columns(attributes["ref"])
                for offset in computed:
                    self._add_formulas(_within(first + offset, first, last), first + offset)

    def rows(self) -> Iterator[tuple[int, dict[int, Any]]]:
        """Yield the number of each row that has values, from 1, and its values by their column, from 0."""
        number = 0
        for path, attributes, text in self._elements:
            if path.endswith(("/v", "/t")):
                self._texts.append(text)
            elif path.endswith("/f"):
                self._ranges.append(attributes.get("ref", ""))
            elif path == CELL:
                self._add_cell(attributes)
            elif path == ROW:
                number = _within(int(attributes.get("r", number + 1)), number + 1, MOST_ROWS)
                if self._row_numbers - {number}:
                    raise RefusedError("has a cell in another row than its reference says")
                if self._row:
                    yield number, self._row
                self._row, self._column = {}, -1
                self._row_numbers.clear()
            elif path.endswith("/col"):
                self._add_width(attributes)

    def _add_width(self, attributes: dict[str, str]) -> None:
        first = _within(int(attributes["min"]) - 1, self._last_width + 1, MOST_COLUMNS - 1)
        self._last_width = _within(int(attributes["max"]) - 1, first, MOST_COLUMNS - 1)
        columns = range(first, self._last_width + 1)
        is_seen = float(attributes.get("width", 1)) >= _NARROWEST
        if attributes.get("hidden", "0") not in ("0", "false") or not is_seen:
            self.hidden.update(columns)

    def _add_cell(self, attributes: dict[str, str]) -> None:
        column, reference = self._column + 1, attributes.get("r")
        if reference is not None:
            column, number = _position(reference)
            self._row_numbers.add(number)
        self._column = _within(column, self._column + 1, MOST_COLUMNS - 1)
        value = self._value(attributes.get("t", "n"), "".join(self._texts), attributes.get("s", "0"))
        if value is not None:
            self._row[column] = value
        for each in self._ranges:
            self._add_formulas(column, column)
            if each:
                self._add_formulas(*_columns(each))
        self._texts.clear()
        self._ranges.clear()

    def _value(self, kind: str, text: str, style_id: str) -> Any:
        """Return what a cell holds, None if it is blank or an error."""
        if not text or kind == "e":
            return None
        if kind == "n":
            style, number = self._styles[style_id], _number(text.strip())
            if style.is_hidden:
                self.hidden.add(self._column)
            return DateCell(number, style.is_duration, self._since_1904) if style.is_date else number
        if kind == "s":
            return self._strings[_within(int(text), 0, len(self._strings) - 1)]
        if kind == "b":
            return _BOOLEANS[text.strip()]
        if kind == "d":
            return DateCell(text)
        if kind in ("str", "inlineStr"):
            return text
        raise RefusedError("has a cell of an unknown type")


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise RefusedError("has a cell of numbers that is no number")
    return int(text) if len(text) < 40 and text.lstrip("+-").isdigit() else float(text)


def _within(value: int, first: int, last: int) -> int:
    """Return a position that lies in these limits, which are Excel's, and follows the one before."""
    if not first <= value <= last:
        raise RefusedError(
            f"has cells or columns twice, out of order, or beyond Excel's limits of {MOST_ROWS:,} rows and "
            f"{MOST_COLUMNS:,} columns"
        )
    return value


def _position(cell: str) -> tuple[int, int]:
    """Return the column of a cell, from 0, and its row, from 1.

    Examples
    --------
    >>> _position("A1"), _position("XFD12")
    ((0, 1), (16383, 12))
    """
    match = _REFERENCE.fullmatch(cell)
    if match is None:
        raise RefusedError("has a reference to a cell that cannot be read")
    return _column(match[1]), _within(int(match[2]), 1, MOST_ROWS)


@lru_cache(maxsize=MOST_COLUMNS)
def _column(letters: str) -> int:
    column = 0
    for letter in letters:
        column = 26 * column + ord(letter) - ord("A") + 1
    return _within(column, 1, MOST_COLUMNS) - 1


def _columns(reference: str) -> tuple[int, int]:
    """Return the first and last column of a range of cells."""
    first, _, last = reference.partition(":")
    start = _position(first)[0]
    return start, _within(_position(last or first)[0], start, MOST_COLUMNS - 1)
