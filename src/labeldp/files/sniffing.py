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

from labeldp.errors import DataError, ParameterError
from labeldp.files.dialect import GROUPS, NULL_WORDS, SEPARATOR_NAMES, Dialect, number_pattern
from labeldp.files.places import DELIMITERS
from labeldp.files.sources import Part
from labeldp.files.text_records import LONGEST_RECORD, RawStream, Records, text_reader

WESTERN = "cp1252"
"""What text is that is not UTF-8 and has no byte-order mark: Latin-1, with some signs that Windows adds."""

ROWS = 1000
"""How many rows are looked at for marks in numbers."""

_BYTE_ORDER_MARKS = (
    ("utf-8-sig", codecs.BOM_UTF8),
    ("utf-32", codecs.BOM_UTF32_LE),  # before UTF-16, whose mark it begins with
    ("utf-32", codecs.BOM_UTF32_BE),
    ("utf-16", codecs.BOM_UTF16_LE),
    ("utf-16", codecs.BOM_UTF16_BE),
)


def find_dialect(part: Part, given: Dialect, format: str, private: Collection[str]) -> Dialect:
    """Return how a text file is written, marks in numbers aside: its separator and its encoding."""
    start = _first_line(part, given.encoding or _marked_encoding(part))
    encoding = given.encoding or _sniff_encoding(part)
    separator = given.separator or _sniff_separator(start, given, format, private)
    if encoding is None:
        encoding = WESTERN if _has_other_text(part, replace(given, separator=separator), private) else "utf-8"
    return replace(given, separator=separator, encoding=encoding)


def header_dialect(part: Part, given: Dialect, format: str) -> Dialect:
    """Return how the header of a text file is written; no other line is looked at."""
    encoding = given.encoding or _marked_encoding(part)
    start = _first_line(part, encoding)
    if encoding is None:
        encoding = WESTERN if _as_utf8(_first_line(part, "latin-1")) is None else "utf-8"
    separator = given.separator or _sniff_separator(start, given, format, ())
    return replace(given, separator=separator, encoding=encoding)


@contextmanager
def _table(part: Part, dialect: Dialect) -> Iterator[tuple[list[str], Iterator[list[str]]]]:
    """Give the names of a file's columns and its rows, up to one that cannot be read, which is said later."""
    with part.open_text() as stream:
        rows = _readable(Records(stream, str(dialect.encoding), str(dialect.separator)))
        yield list(dialect.names) or next(rows, []), rows


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


def _first_line(part: Part, encoding: str | None) -> str:
    """Return the first line that is not blank, which names the columns; by default as UTF-8 if it is that."""
    with part.open_text() as stream:
        text = text_reader(RawStream(stream), encoding or "latin-1")
        try:
            lines = (text.readline(LONGEST_RECORD + 1) for _ in range(1000))
            line = next((line.lstrip("\ufeff") for line in lines if line.strip("\ufeff \r\n")), "")
        except UnicodeError:  # of UTF-16 and UTF-32, which must begin with a mark
            raise DataError(
                f"{part.name} has no byte-order mark: say which bytes come first, as in "
                f'Dialect(encoding="{encoding}-le")'
            ) from None
    if len(line) > LONGEST_RECORD:
        raise DataError(f"{part.name} has a first line of more than {LONGEST_RECORD >> 20} million characters")
    return line if encoding is not None else _as_utf8(line) or line


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


def _has_other_text(part: Part, dialect: Dialect, private: Collection[str]) -> bool:
    """Whether the header or a public value is not UTF-8; other values do not count."""
    with _table(part, replace(dialect, encoding="latin-1")) as (header, rows):
        public = [place for place, name in enumerate(header) if not {name, _as_utf8(name)} & set(private)]
        cells = (row[place] for row in rows for place in public if place < len(row))
        return any(_as_utf8(cell) is None for cell in chain(() if dialect.names else header, cells))


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
    with _table(part, dialect) as (header, rows):
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
