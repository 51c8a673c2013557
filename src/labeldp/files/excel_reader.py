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

from labeldp.files.excel_parts import CELL, MOST_COLUMNS, MOST_ROWS, RELATIONS, ROW, Archive, Element, RefusedError

_REFERENCE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"0": False, "1": True, "false": False, "true": True}
_LITERALS = re.compile(r'"[^"]*"?|\\.?|[_*].?|\[(?!(?:h+|m+|s+)\])[^\]]*\]?', re.IGNORECASE | re.DOTALL)
"""What a number format shows beside the value: quoted and escaped text, blanks, colours, conditions, locales."""

_DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
_ELAPSED_FORMAT = 46
_HIDES_NOTHING = (False, False)


class DateCell(NamedTuple):
    """A number with the format of a date, or a date in ISO 8601; not converted, as that fails for some values."""

    serial: float | str
    elapsed: bool = False
    since_1904: bool = False


class Style(NamedTuple):
    """What a number format says: whether numbers are dates or durations, and whether numbers or text are hidden.

    Examples
    --------
    >>> Style.of("yyyy-mm-dd").date, Style.of("[h]:mm").elapsed, Style.of('0.0 "m"').date
    (True, True, False)
    >>> Style.of(";;;").hides, Style.of('[White]"";"x";;@').hides, Style.of("0;-0;;").hides
    ((True, True), (True, False), (False, True))
    >>> Style.of("[>1000]0;;").hides, Style.of("0;-0;;@").hides       # zeros alone may be left blank
    ((True, False), (False, False))
    """

    date: bool = False
    elapsed: bool = False
    hides: tuple[bool, bool] = _HIDES_NOTHING

    @classmethod
    def of(cls, code: str) -> Style:
        """Return what a format's code says."""
        sections = _LITERALS.sub("", code).lower().split(";")
        shows = [re.search("[0#?@dmhysgeb]", section) is not None for section in sections]
        return cls(
            re.search("[dmhys]", sections[0]) is not None,
            sections[0].lstrip().startswith(("[h", "[m", "[s")),
            (not all(shows[:2]), len(shows) > 3 and not shows[3]),
        )


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
        for kind, other in dict.fromkeys(self._archive.relations(part).values()):
            if kind in ("table", "pivotTable"):
                reader.add_computed(self._archive.elements(other))
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
        codes, numbers = dict[int, str](), list[int]()
        for path, attributes, _ in self._only("styles"):
            if path.endswith("/numFmt"):
                codes[int(attributes["numFmtId"])] = attributes["formatCode"]
            elif path.endswith("/xf"):
                numbers.append(int(attributes.get("numFmtId", 0)))
        known = {number: Style.of(codes[number]) for number in {*numbers} & {*codes}}
        return {
            str(place): known.get(number) or Style(number in _DATE_FORMATS, number == _ELAPSED_FORMAT)
            for place, number in enumerate(numbers or [0])
        }

    def _only(self, kind: str) -> Iterator[Element]:
        """Return the elements of the workbook's part of a kind, of which there is one at most."""
        parts = {part for other, part in self._parts.values() if other == kind}
        if len(parts) > 1:
            raise RefusedError(f"has several parts for its {kind}")
        return self._archive.elements(parts.pop()) if parts else iter(())


class SheetReader:
    """The cells of one sheet, and, once all were read, what its columns are besides."""

    def __init__(
        self, elements: Iterator[Element], strings: list[str], styles: dict[str, Style], *, since_1904: bool
    ) -> None:
        self._elements, self._strings, self._styles, self._since_1904 = elements, strings, styles, since_1904
        self._row: dict[int, Any] = {}
        self._row_numbers: set[int] = set()
        self._column = self._last_width = -1
        self._texts: list[str] = []
        self._ranges: list[str] = []
        self._edges = [0] * (MOST_COLUMNS + 1)
        self.hidden: set[int] = set()
        """The columns that are hidden, or have no width, or a cell whose format shows nothing of it."""

    @property
    def formulas(self) -> set[int]:
        """The columns that have formulas, or that an array, a data table, a table or a pivot table computes."""
        return {column for column, depth in enumerate(accumulate(self._edges)) if depth}

    def _add_formulas(self, first: int, last: int) -> None:
        self._edges[first] += 1
        self._edges[last + 1] -= 1

    def add_computed(self, elements: Iterator[Element]) -> None:
        """Count the columns of a table that have a formula, and those of a pivot table, as formulas."""
        computed, place = list[int](), 0
        for path, attributes, _ in elements:
            if path.endswith("Formula"):
                computed.append(place)
            elif path.endswith("/tableColumn"):
                place += 1
            elif path == "/table":
                if int(attributes.get("totalsRowCount", 0)):
                    raise RefusedError(
                        "has a table with a totals row, which depends on every label: remove that row"
                    )
                first, last = _columns(attributes["ref"])
                for offset in computed:
                    self._add_formulas(_within(first + offset, first, last), first + offset)
            elif path.endswith("/location"):
                self._add_formulas(*_columns(attributes["ref"]))

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
            elif path.endswith("/sheetFormatPr") and _is_invisible(attributes.get("defaultColWidth")):
                self.hidden.update(range(MOST_COLUMNS))

    def _add_width(self, attributes: dict[str, str]) -> None:
        first = _within(int(attributes["min"]) - 1, self._last_width + 1, MOST_COLUMNS - 1)
        self._last_width = _within(int(attributes["max"]) - 1, first, MOST_COLUMNS - 1)
        columns = range(first, self._last_width + 1)
        if attributes.get("hidden", "0") not in ("0", "false") or _is_invisible(attributes.get("width")):
            self.hidden.update(columns)
        elif "width" in attributes:
            self.hidden.difference_update(columns)

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
        style = self._styles[style_id]
        value: Any
        if kind == "n":
            value = _number(text.strip())
            if style.date:
                value = DateCell(value, style.elapsed, self._since_1904)
        elif kind == "s":
            value = self._strings[_within(int(text), 0, len(self._strings) - 1)]
        elif kind == "b":
            value = _BOOLEANS[text.strip()]
        elif kind == "d":
            value = DateCell(text)
        elif kind in ("str", "inlineStr"):
            value = text
        else:
            raise RefusedError("has a cell of an unknown type")
        if style.hides[isinstance(value, str)]:
            self.hidden.add(self._column)
        return value


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise RefusedError("has a cell of numbers that is no number")
    return int(text) if len(text) < 40 and text.lstrip("+-").isdigit() else float(text)


def _is_invisible(width: str | None) -> bool:
    """Whether a width in characters is less than a pixel."""
    return width is not None and not float(width) >= 0.2


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
