"""The records of a text file, and how they are written where nobody said it and it is certain.

The header shows the separator, a byte-order mark the encoding, and the public columns the marks in numbers. Labels
are never looked at: they follow. Records are read within a limit: a line without an end must not fill the memory.
"""

from __future__ import annotations

import codecs
import csv as python_csv
import io
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from labeldp.errors import DataError, ParameterError, Setting
from labeldp.tables.dialect import GROUPS, NULL_WORDS, SEPARATOR_NAMES, UTF8, Dialect, number_pattern
from labeldp.tables.paths import DELIMITERS
from labeldp.tables.sources import Part

LONGEST_RECORD = 1 << 23
"""Characters of a record that can be read: its public values may have a million, and its label as many."""

TOO_LONG_RECORD = "the record is too long"

python_csv.field_size_limit(max(LONGEST_RECORD, python_csv.field_size_limit()))  # one for all threads


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


def text_reader(buffer: io.BufferedReader[RawStream], encoding: str) -> io.TextIOWrapper:
    """Return the text of a stream without a byte-order mark; bytes that are no text are halves of characters."""
    name, errors = (encoding, "labeldp.invalid") if encoding not in UTF8 else ("utf-8-sig", "surrogateescape")
    return io.TextIOWrapper(buffer, name, errors=errors, newline="")


class Records(Iterator[list[str]]):
    """The records of a stream as lists of values, blank lines left out.

    Parameters
    ----------
    stream : Arrow stream
    encoding, separator : str
    strict : bool
        Whether only a separator or the end of a line may come after a closing quote, and all quotes must be
        closed.

    Attributes
    ----------
    lines : int
        How many lines were read.

    Raises
    ------
    csv.Error
        While it is read, if a record is longer than `LONGEST_RECORD`, or its quotes are wrong.
    """

    def __init__(self, stream: Any, encoding: str, separator: str, *, strict: bool = False) -> None:
        self._raw, self._left = RawStream(stream), LONGEST_RECORD
        self._text = text_reader(io.BufferedReader(self._raw), encoding)
        self._reader = python_csv.reader(iter(self._next_line, ""), delimiter=separator, strict=strict)

    def _next_line(self) -> str:
        line = self._text.readline(self._left + 1)
        self._left -= len(line)
        if self._left < 0:
            raise python_csv.Error(TOO_LONG_RECORD)
        return line

    def __next__(self) -> list[str]:
        row: list[str] = []
        while not row:
            self._left = LONGEST_RECORD
            row = next(self._reader)
        return row

    @property
    def lines(self) -> int:
        """How many lines were read."""
        return int(self._reader.line_num)

    @property
    def damaged(self) -> bool:
        """Whether the stream ended because it could not be read."""
        return self._raw.damaged


ROWS = 1000
"""How many rows are looked at for marks in numbers."""

_BYTE_ORDER_MARKS = {
    "utf-8-sig": (codecs.BOM_UTF8,),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}


def find_dialect(part: Part, given: Dialect, format: str, private: Collection[str]) -> Dialect:
    """Return how a text file is written, marks in numbers aside, from its first line: separator and encoding.

    Text without a byte-order mark is UTF-8 unless an encoding is given.
    """
    with part.open_text() as stream:
        buffer = io.BufferedReader(RawStream(stream))
        start = buffer.peek(4)
        marked = (name for name, marks in _BYTE_ORDER_MARKS.items() if start.startswith(marks))
        encoding = given.encoding or next(marked, "utf-8")
        text = text_reader(buffer, encoding)
        try:
            lines = (text.readline(LONGEST_RECORD + 1) for _ in range(1000))
            line = next((line.lstrip("\ufeff") for line in lines if line.strip("\ufeff \r\n")), "")
        except UnicodeError:  # of UTF-16, which must begin with a mark
            line = "\0"
    if "\0" in line:
        raise DataError(
            f"{part.name} has no byte-order mark: name the encoding with the order of its bytes, as in ",
            Setting("encoding", "utf-16-le"),
        )
    if len(line) > LONGEST_RECORD:
        raise DataError(f"{part.name} has a first line of more than {LONGEST_RECORD >> 20} million characters")
    separator = given.separator or _sniff_separator(line, given, format, private)
    return given.found(separator=separator, encoding=encoding)


def _sniff_separator(header: str, given: Dialect, format: str, private: Collection[str]) -> str:
    """Return the separator by which a header names the private columns, else the usual one, else the only one.

    A file without a header has the usual one: its first line holds a label.
    """

    def names(separator: str) -> list[str]:
        with suppress(python_csv.Error):
            return next(python_csv.reader([header], delimiter=separator), [])
        return []

    usual = DELIMITERS[format]
    candidates = [usual, *(mark for mark in SEPARATOR_NAMES if mark != usual)]
    there = [] if given.names else [mark for mark in candidates if len(names(mark)) > 1]
    naming = [mark for mark in there if private and set(private) <= set(names(mark))]
    return naming[0] if naming else there[0] if len(there) == 1 else usual


# ---- marks in numbers -----------------------------------------------------------------------------------------


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
            "or a comma: name it, as in ",
            Setting("decimal", ","),
        )
    groups = {groups for _, groups in pairs}
    shown = groups.pop() if len(pairs) == 1 else ""
    return min(decimals, key=".,".index), dialect.thousands or shown[:1] or None


def _readings(part: Part, dialect: Dialect, private: Collection[str]) -> set[tuple[str, str]]:
    """Return the pairs of decimal mark and marks of groups with which the first public values can be read.

    Only columns of nothing but numbers count. ``1.234`` may be either of two, ``12.5`` and ``1.234.567`` not.
    """
    missing = {*NULL_WORDS, *dialect.na}
    with part.open_text() as stream:
        rows = _readable(Records(stream, str(dialect.encoding), str(dialect.separator)))
        header = list(dialect.names) or next(rows, [])
        columns = {place: set(_READINGS) for place, name in enumerate(header) if name not in private}
        for row in islice(rows, ROWS):
            for place in [place for place in columns if place < len(row)]:
                cell = row[place].strip()
                if not cell.isdecimal() and cell not in missing:
                    bare = _without_currency(cell)
                    columns[place] = {pair for pair in columns[place] if _READINGS[pair].search(bare)}
                    if not columns[place]:
                        del columns[place]
    return set.intersection(set(_READINGS), *columns.values())


def _readable(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """Yield rows up to one that cannot be read, which is said later."""
    with suppress(python_csv.Error):
        yield from rows


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
