"""How text files are written, where nobody said it and it is certain.

The header shows the separator; a byte-order mark or the public columns show the encoding; the public columns show
the marks in numbers. Labels are never looked at: they follow.
"""

from __future__ import annotations

import codecs
import csv as python_csv
import io
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from labeldp.errors import ParameterError
from labeldp.files.dialect import GROUPS, NULL_WORDS, SEPARATOR_NAMES, UTF8, Dialect, number_pattern
from labeldp.files.places import DELIMITERS
from labeldp.files.sources import Part

WESTERN = "cp1252"
"""What text is that is not UTF-8 and has no byte-order mark: Latin-1, with some signs that Windows adds."""

ROWS = 1000
"""How many rows are looked at for marks in numbers."""

LONGEST_VALUE = 1 << 23
"""Characters of a value that can be read: a label may have a million, and must not change what is found out."""

_BYTE_ORDER_MARKS = (
    ("utf-8-sig", codecs.BOM_UTF8),
    ("utf-32", codecs.BOM_UTF32_LE),  # before UTF-16, whose mark it begins with
    ("utf-32", codecs.BOM_UTF32_BE),
    ("utf-16", codecs.BOM_UTF16_LE),
    ("utf-16", codecs.BOM_UTF16_BE),
)


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


def header_dialect(part: Part, given: Dialect, format: str) -> Dialect:
    """Return how the header of a text file is written; no other line is looked at."""
    encoding = given.encoding or _marked_encoding(part)
    if encoding is None:
        encoding = WESTERN if _as_utf8(_header(part, "latin-1")) is None else "utf-8"
    separator = given.separator or _sniff_separator(_header(part, encoding), DELIMITERS[format], ())
    return replace(given, separator=separator, encoding=encoding)


@contextmanager
def _rows(part: Part, encoding: str, separator: str) -> Iterator[Iterator[list[str]]]:
    """Give the rows of a file up to one that cannot be read, which is said later; labels may be long."""
    limit = python_csv.field_size_limit(LONGEST_VALUE)
    try:
        with part.open_text() as stream:
            reader = python_csv.reader(text_reader(RawStream(stream), encoding), delimiter=separator)
            yield _readable(row for row in reader if row)
    finally:
        python_csv.field_size_limit(limit)


def _readable(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    with suppress(python_csv.Error):
        yield from rows


# ---- encoding and separator -----------------------------------------------------------------------------------


def _marked_encoding(part: Part) -> str | None:
    """Return the encoding that a byte-order mark or zeros at the start show, or None."""
    with part.open_text() as stream:
        start = io.BufferedReader(RawStream(stream), 1 << 13).peek(4)[:4]
    marked = next((encoding for encoding, mark in _BYTE_ORDER_MARKS if start.startswith(mark)), None)
    if marked is None and len(start) >= 2 and 0 in start[:2] and start[:2] != b"\0\0":
        return "utf-16-le" if start[1] == 0 else "utf-16-be"
    return marked


def _sniff_encoding(part: Part) -> str | None:
    """Return the encoding that a byte-order mark, zeros or the whole file show, or None if it is not UTF-8."""
    marked = _marked_encoding(part)
    if marked is not None:
        return marked
    decoder = codecs.getincrementaldecoder("utf-8")()
    with part.open_text() as stream:
        raw = io.BufferedReader(RawStream(stream), 1 << 13)  # short: what comes before damage counts
        try:
            while block := raw.read1(1 << 13):
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
    with _rows(part, "latin-1", separator) as rows:
        header = next(rows, [])
        public = [place for place, name in enumerate(header) if not {name, _as_utf8(name)} & set(private)]
        cells = (row[place] for row in rows for place in public if place < len(row))
        return any(_as_utf8(cell) is None for cell in chain(header, cells))


def _as_utf8(text: str) -> str | None:
    """Return text that was read as Latin-1 as UTF-8, or None if it is not."""
    with suppress(UnicodeDecodeError):
        return text.encode("latin-1").decode()
    return None


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
            'or a comma: say which, as in Dialect(decimal=",")'
        )
    groups = {groups for _, groups in pairs}
    shown = groups.pop() if len(pairs) == 1 else ""
    return min(decimals, key=".,".index), dialect.thousands or shown[:1] or None


def _readings(part: Part, dialect: Dialect, private: Collection[str]) -> set[tuple[str, str]]:
    """Return the pairs of decimal mark and marks of groups with which the first public values can be read.

    Only columns of nothing but numbers count. ``1.234`` may be either of two, ``12.5`` and ``1.234.567`` not.
    """
    missing = {*NULL_WORDS, *dialect.na}
    with _rows(part, str(dialect.encoding), str(dialect.separator)) as rows:
        columns = {place: set(_READINGS) for place, name in enumerate(next(rows, [])) if name not in private}
        for row in islice(rows, ROWS):
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
