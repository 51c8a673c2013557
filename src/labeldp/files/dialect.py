"""How text files are written: the separator, the marks in numbers, the encoding, words for missing values.

What nobody said is found out where it is certain: the separator from the header, the encoding from a byte-order
mark or the public columns, marks in numbers from the public columns. Labels are never looked at; they follow.
"""

from __future__ import annotations

import codecs
import csv as python_csv
import io
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from labeldp.errors import ParameterError
from labeldp.files.places import DELIMITERS
from labeldp.files.sources import Part

__all__ = [
    "GROUPS",
    "NULL_WORDS",
    "SEPARATOR_NAMES",
    "UTF8",
    "Dialect",
    "RawStream",
    "find_dialect",
    "find_marks",
    "number_pattern",
    "text_reader",
]

UTF8 = ("utf-8", "utf-8-sig")
"""The encodings that need no translation."""

WESTERN = "cp1252"
"""What text is that is not UTF-8 and has no byte-order mark: Latin-1, with some signs that Windows adds."""

SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
GROUPS = " \u00a0\u2009\u202f'\u2019"
"""Marks between groups of three digits that are no decimal marks; where one of them is used, so are the others."""

NULL_WORDS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA"),
    *(
        "NULL",
        "NaN",
        "n/a",
        "nan",
        "null",
        "<NA>",
        "None",
        "none",
        "N.A.",
        "n.a.",
        "N/a",
        "Null",
        "#NULL!",
        "#REF!",
    ),
    *("#DIV/0!", "#VALUE!", "#NAME?", "#NUM!", "-", "--", "\u2013", "\u2014", "?", "."),
)
"""What stands for a missing value in text: the words that PyArrow, pandas and spreadsheets know."""

ROWS = 1000
"""How many rows are looked at for marks in numbers."""

_BYTE_ORDER_MARKS = (
    ("utf-8-sig", codecs.BOM_UTF8),
    ("utf-32", codecs.BOM_UTF32_LE),  # before UTF-16, whose mark it begins with
    ("utf-32", codecs.BOM_UTF32_BE),
    ("utf-16", codecs.BOM_UTF16_LE),
    ("utf-16", codecs.BOM_UTF16_BE),
)


@dataclass(frozen=True, slots=True)
class Dialect:
    r"""How a text file is written; what is None is found out where that is certain.

    Parameters
    ----------
    separator : str, optional
        What stands between values: one character, or ``"tab"``. By default the header shows it.
    decimal : {".", ","}, optional
        The decimal mark. By default public columns show it; else it is a point.
    thousands : str, optional
        The mark between groups of three digits, or ``"space"``. By default public columns show it; else there is
        none.
    encoding : str, optional
        Such as ``"utf-8"``, ``"utf-16"`` or ``"latin-1"``. By default a byte-order mark or public columns show it.
    na : sequence of str
        Words for missing values, beside the usual ones such as ``NA``, ``n/a`` and ``-``.

    Examples
    --------
    >>> Dialect(separator=";", decimal=",", thousands="space", na=["unknown"])
    Dialect(separator=';', decimal=',', thousands=' ', encoding=None, na=('unknown',))
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    na: Collection[str] = ()

    def __post_init__(self) -> None:
        names = {"tab": "\t", "\\t": "\t", "space": " ", "semicolon": ";", "comma": ",", "point": ".", "dot": "."}
        for name in ("separator", "decimal", "thousands"):
            value = getattr(self, name)
            object.__setattr__(self, name, names.get(value, value))
        object.__setattr__(self, "na", tuple(self.na))
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise ParameterError(f"separator must be one character or 'tab', not {self.separator!r}")
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"decimal must be '.' or ',', not {self.decimal!r}")
        if self.thousands is not None and self.thousands not in (*".,", *GROUPS):
            raise ParameterError(f"thousands must be '.', ',', 'space' or an apostrophe, not {self.thousands!r}")
        if self.thousands in (".", ",") and self.decimal is None:
            object.__setattr__(self, "decimal", "," if self.thousands == "." else ".")
        if self.thousands is not None and self.thousands == self.decimal:
            raise ParameterError("decimal and thousands must differ")
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding(self.encoding))

    def completed(self, format: str) -> Dialect:
        """Return what most files of a format have, where nothing else is said."""
        separator = self.separator or DELIMITERS[format]
        return replace(self, separator=separator, decimal=self.decimal or ".", encoding=self.encoding or "utf-8")

    def describe(self, format: str) -> str:
        """Return in words what is not as in most files of a format, or nothing."""
        named = {"\t": "tab", " ": "space", **{mark: f"'{mark}'" for mark in ";,.|"}}
        unusual = {
            "separator": None if self.separator == DELIMITERS[format] else self.separator,
            "decimal mark": None if self.decimal == "." else self.decimal,
            "thousands mark": self.thousands,
            "encoding": None if self.encoding in UTF8 else self.encoding,
        }
        words = {name: named.get(value, value) for name, value in unusual.items() if value is not None}
        return ", ".join(f"{name} {value}" for name, value in words.items())


def _encoding(name: str) -> str:
    try:
        info = codecs.lookup(name)
        if not info._is_text_encoding or info.incrementaldecoder is None:
            raise LookupError
        "a,1\n".encode(info.name)
    except (LookupError, UnicodeError, ValueError):
        raise ParameterError(f"unknown encoding {name!r}; known are utf-8, utf-16, latin-1, cp1252 …") from None
    return str(info.name)


class RawStream(io.RawIOBase):
    """An Arrow stream for Python's own readers; where it cannot be read, it ends."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.damaged = stream, False

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it."""
        try:
            data = self._stream.read(len(buffer))
        except OSError as error:
            if error.errno is not None:
                raise
            self.damaged, data = True, b""
        buffer[: len(data)] = data
        return len(data)


def _mark_invalid(error: UnicodeError) -> tuple[str, int]:
    """Stand for bytes that are no text in an encoding: half of a pair of characters, which no text has."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


codecs.register_error("labeldp.invalid", _mark_invalid)


def text_reader(raw: RawStream, encoding: str) -> io.TextIOWrapper:
    """Return the text of a stream without a byte-order mark; bytes that are no text are halves of characters."""
    name, errors = (encoding, "labeldp.invalid") if encoding not in UTF8 else ("utf-8-sig", "surrogateescape")
    return io.TextIOWrapper(io.BufferedReader(raw), name, errors=errors, newline="")


def find_dialect(part: Part, given: Dialect, format: str, private: Collection[str]) -> Dialect:
    """Return how a text file is written, marks in numbers aside: its separator and its encoding."""
    encoding = given.encoding or _sniff_encoding(part)
    header = _header(part, encoding or "latin-1")
    separator = given.separator or _sniff_separator(header, DELIMITERS[format], private)
    if encoding is None:
        encoding = WESTERN if _has_other_text(part, separator, private) else "utf-8"
    return replace(given, separator=separator, encoding=encoding)


def _rows(part: Part, encoding: str, separator: str) -> Iterator[list[str]]:
    with part.open_text() as stream, suppress(python_csv.Error):  # what is wrong is said once the table is read
        reader = python_csv.reader(text_reader(RawStream(stream), encoding), delimiter=separator)
        yield from (row for row in reader if row)


# ---- encoding and separator -----------------------------------------------------------------------------------


def _sniff_encoding(part: Part) -> str | None:
    """Return the encoding that a byte-order mark, zeros or the whole file show, or None if it is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with part.open_text() as stream:
        raw = io.BufferedReader(RawStream(stream), 1 << 20)
        start = raw.peek(4)[:4]
        marked = next((encoding for encoding, mark in _BYTE_ORDER_MARKS if start.startswith(mark)), None)
        if marked is not None:
            return marked
        if len(start) >= 2 and 0 in start[:2] and start[:2] != b"\0\0":
            return "utf-16-le" if start[1] == 0 else "utf-16-be"
        try:
            while block := raw.read(1 << 20):
                decoder.decode(block)
        except UnicodeDecodeError:
            return None
    return "utf-8"


def _header(part: Part, encoding: str) -> str:
    """Return the line that names the columns, as it is written."""
    with part.open_text() as stream:
        text = text_reader(RawStream(stream), encoding)
        lines = (text.readline(1 << 20) for _ in range(1000))
        return next((line.lstrip("\ufeff") for line in lines if line.strip("\ufeff \r\n")), "")


def _sniff_separator(header: str, usual: str, private: Collection[str]) -> str:
    """Return the separator by which a header names the private columns, else the usual one, else the only one."""

    def names(separator: str) -> list[str]:
        with suppress(python_csv.Error):
            return next(python_csv.reader([header], delimiter=separator), [])
        return []

    candidates = [usual, *(mark for mark in SEPARATOR_NAMES if mark != usual)]
    if private:
        naming = [mark for mark in candidates if len(names(mark)) > 1 and set(private) <= set(names(mark))]
        if naming:
            return naming[0]
    there = [mark for mark in candidates if len(names(mark)) > 1]
    return there[0] if usual in there or len(there) == 1 else usual


def _has_other_text(part: Part, separator: str, private: Collection[str]) -> bool:
    """Whether the header or a public value is not UTF-8; other values do not count."""
    places: list[int] = []
    for number, row in enumerate(_rows(part, "latin-1", separator)):
        if number == 0:
            places = [place for place, name in enumerate(row) if not {name, _as_utf8(name)} & set(private)]
            cells = row
        else:
            cells = [row[place] for place in places if place < len(row)]
        if any(_as_utf8(cell) is None for cell in cells):
            return True
    return False


def _as_utf8(text: str) -> str | None:
    """Return text that was read as Latin-1 as UTF-8, or None if it is not."""
    with suppress(UnicodeDecodeError):
        return text.encode("latin-1").decode()
    return None


# ---- marks in numbers -----------------------------------------------------------------------------------------


def number_pattern(decimal: str, groups: str) -> str:
    """Return a pattern, for RE2 too, of numbers with a decimal mark and marks between groups of three digits."""
    whole = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:[{groups}][0-9]{{3}})+)" if groups else "[0-9]+"
    return rf"^[+-]?(?:{whole}(?:[{decimal}][0-9]*)?|[{decimal}][0-9]+)(?:[eE][+-]?[0-9]+)?$"


_READINGS = {
    (decimal, groups): re.compile(number_pattern(decimal, groups))
    for decimal, other in (".,", ",.")
    for groups in ("", other, GROUPS)
}


def find_marks(files: Sequence[tuple[Part, Dialect]], private: Collection[str]) -> tuple[str, str | None]:
    """Return the decimal mark, and the one between thousands or None, that public values show, or that were given.

    Raises
    ------
    ParameterError
        If values are separated by semicolons, and nothing shows whether decimals have a point or a comma.
    """
    dialect = files[0][1]
    pairs = set.intersection(*(_readings(part, each, private) for part, each in files[:10]))
    pairs = {pair for pair in pairs if dialect.decimal in (None, pair[0])} or {(str(dialect.decimal or "."), "")}
    decimals = {decimal for decimal, _ in pairs}
    if len(decimals) > 1 and dialect.separator == ";":
        raise ParameterError(
            "values are separated by semicolons, and the public columns do not show whether decimals have a point "
            'or a comma: say which, as in Dialect(decimal=",")'
        )
    groups = {groups for _, groups in pairs}
    shown = groups.pop() if len(pairs) == 1 else ""
    return min(decimals, key=".,".index), dialect.thousands or shown[:1] or None


def _readings(part: Part, dialect: Dialect, private: Collection[str]) -> set[tuple[str, str]]:
    """Return the pairs of decimal mark and marks of groups with which the first public values can be read.

    Only columns of nothing but numbers count. ``1.234`` may be either of two, ``12.5`` and ``1.234.567`` not.
    """
    rows = islice(_rows(part, str(dialect.encoding), str(dialect.separator)), ROWS + 1)
    header = next(rows, [])
    columns = {place: set(_READINGS) for place, name in enumerate(header) if name not in private}
    missing = {*NULL_WORDS, *dialect.na}
    for row in rows:
        for place in [place for place in columns if place < len(row)]:
            cell = row[place].strip()
            if not cell.isdecimal() and cell not in missing:
                bare = _without_currency(cell)
                columns[place] = {pair for pair in columns[place] if _READINGS[pair].search(bare)}
                if not columns[place]:
                    del columns[place]
    return set.intersection(set(_READINGS), *columns.values())


def _without_currency(cell: str) -> str:
    """Return a number without the currency sign at one of its ends.

    Examples
    --------
    >>> _without_currency("-€ 12.50"), _without_currency("1 200 $"), _without_currency("price")
    ('-12.50', '1 200', 'price')
    """
    if cell.isascii() and "$" not in cell:
        return cell
    sign, bare = (cell[0], cell[1:]) if cell[:1] in ("+", "-") else ("", cell)
    ends = [end for end in (0, -1) if bare and unicodedata.category(bare[end]) == "Sc"]
    return cell if len(ends) != 1 else sign + (bare[1:] if ends == [0] else bare[:-1]).strip()
