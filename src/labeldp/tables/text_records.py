"""Records of a text file: separator, encoding, header, and faults.

The header shows the separator, and a byte-order mark the encoding. Labels are never looked at. A fault is said by
the number of its row, and quotes nothing.
"""

from __future__ import annotations

import codecs
import csv as python_csv
import io
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from labeldp.errors import DataError, LabelDPError, Setting
from labeldp.release.names import looks_like_value
from labeldp.tables.batches import guard_arrow
from labeldp.tables.dialect import SEPARATOR_NAMES, UTF8, Dialect
from labeldp.tables.paths import DELIMITERS, PACKED
from labeldp.tables.source_file import SourceFile

LONGEST_VALUE = 1 << 23
"""Characters of a value that can be read; a quote that is never closed makes a longer one."""

MOST_IN_MEMORY = 1 << 29
"""Bytes of a text file that is translated to UTF-8, or whose first or last lines are left out."""

HEADER_ROWS = 50
"""Lines among which a header is looked for: titles may stand above it."""

MOST_TITLES = 10
"""Lines that may be titles."""

ROWS_BELOW = 5
"""Lines that have as many values as a header."""

FIRST_ROWS = 1000
"""Rows that are searched for marks in numbers."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ORDER_MARKS = {
    "utf-8-sig": (codecs.BOM_UTF8,),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}

python_csv.field_size_limit(max(LONGEST_VALUE, python_csv.field_size_limit()))  # one for all threads


def read_records(stream: Any, separator: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the values of each record, and the number of the line where it ends; blank lines are left out.

    Parameters
    ----------
    stream : binary stream of UTF-8
        Bytes that are not text become surrogates.
    separator : str
    strict : bool
        Whether only a separator or the end of a line may come after a closing quote, and all quotes must be
        closed.

    Raises
    ------
    csv.Error
        If a value is longer than `LONGEST_VALUE`, or quotes are wrong.
    """
    text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
    reader = python_csv.reader(text, delimiter=separator, strict=strict)
    for row in reader:
        if row:
            yield reader.line_num, row


@dataclass(frozen=True)
class TextFile:
    """A text file and its dialect.

    Parameters
    ----------
    source : SourceFile
    dialect : Dialect
    content : bytes, optional
        Read in place of the file: the text of a sheet, or text that was translated to UTF-8.
    """

    source: SourceFile
    dialect: Dialect
    content: bytes | None = None

    @classmethod
    def detect(cls, source: SourceFile, options: Dialect, format: str, private: Collection[str]) -> TextFile:
        """Return a file with its separator and encoding, from its first line; marks in numbers come later.

        Text without a byte-order mark is UTF-8 unless an encoding is given.
        """
        start = cls(source, options)._start(4)
        marked = (name for name, marks in _BYTE_ORDER_MARKS.items() if start.startswith(marks))
        dialect = options.with_detected(encoding=options.encoding or next(marked, "utf-8"))
        file = cls(source, dialect)
        if dialect.encoding not in UTF8 or dialect.skip or dialect.skip_last:
            file = cls(source, dialect, file._translate())
        line = next((line for line in file._lines() if line.strip("\ufeff \r\n")), "")
        if "\0" in line:
            raise DataError(
                f"{source.path} has no byte-order mark: name the encoding with the order of its bytes, as in ",
                Setting("encoding", "utf-16-le"),
            )
        separator = options.separator or _sniff_separator(line.lstrip("\ufeff"), format, private)
        return cls(source, dialect.with_detected(separator=separator), file.content)

    @property
    def path(self) -> Path:
        """The name of the file."""
        return self.source.path

    def _start(self, size: int) -> bytes:
        """Return the first bytes of the file, unpacked if it is compressed."""
        with self._unpacked() as stream:
            return guard_arrow(lambda: bytes(stream.read(size)), self._damaged)

    def _translate(self) -> bytes:
        """Return all text in UTF-8, without the lines that are skipped."""
        text, dialect = self._start(MOST_IN_MEMORY + 1), self.dialect
        if len(text) > MOST_IN_MEMORY:
            raise DataError(
                f"{self.path} has more than {MOST_IN_MEMORY >> 20} MB: convert it to UTF-8, and remove the lines "
                "above and below the table in the file itself"
            )
        if dialect.encoding not in UTF8:
            decoded = None
            with suppress(UnicodeError):  # UTF-16 may have half a pair of characters, which UTF-8 has not
                decoded = text.decode(str(dialect.encoding)).encode()
            if decoded is None:
                raise self._not_text("it")
            text = decoded
        return _without_ends(text, dialect.skip, dialect.skip_last or 0)

    @property
    def _damaged(self) -> str:
        return f"{self.path} is damaged: it cannot be unpacked"

    @property
    def separator(self) -> str:
        """Mark between values."""
        return str(self.dialect.separator)

    def stream(self) -> Any:
        """Return a new stream of the text in UTF-8, without skipped lines; bytes that are no text stay."""
        return self._unpacked() if self.content is None else pa.BufferReader(self.content)

    def _unpacked(self) -> Any:
        is_packed = self.path.suffix.lower() == PACKED
        stream = self.source.stream()
        return pa.CompressedInputStream(stream, "gzip") if is_packed else stream

    def _lines(self) -> list[str]:
        """Return the first lines, as far as they can be read."""
        with self.stream() as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
            return guard_arrow(lambda: [text.readline() for _ in range(HEADER_ROWS)], self._damaged)

    def lines_above(self, label: str) -> int:
        """Return the number of lines above the first that names the label, 0 if none of the first 50 does."""
        for number, line in enumerate(self._lines()):
            if any(label in _split(line.strip("\ufeff\r\n"), mark) for mark in SEPARATOR_NAMES):
                return number
        return 0

    def titles(self, format: str) -> int:
        """Count lines that seem to be titles: a header has as many values as each of the lines below it.

        Of rows only the number of values is looked at. A line with numbers may be a row of values: where such a
        line comes first, no line is taken for a title.
        """
        lines = [line.strip("\ufeff \r\n") for line in self._lines()]
        for number, line in enumerate(lines[:MOST_TITLES]):
            separator = _sniff_separator(line, format, ())
            values = _split(line, separator)
            names = [value for value in values if value.strip()]
            if not _is_text(names):
                raise self._not_text(f"line {number + 1}")
            if line.count('"') % 2:  # a header that spans lines, which is refused as one
                return 0
            below = islice(filter(None, lines[number + 1 :]), ROWS_BELOW)
            is_header = len(names) > max(1, len(values) // 2)
            if is_header and all(len(_split(row, separator)) == len(values) for row in below):
                return 0 if any(map(looks_like_value, names)) else number
        return 0

    @cached_property
    def _head(self) -> list[tuple[int, list[str]]]:
        """The first records, with the lines where they end; an empty one for one that cannot be read."""

        def read() -> list[tuple[int, list[str]]]:
            records = list[tuple[int, list[str]]]()
            try:
                for record in islice(read_records(stream, self.separator), FIRST_ROWS + 1):
                    records.append(record)  # those before an error count
            except python_csv.Error:
                records.append((0, []))
            return records

        with self.stream() as stream:
            return guard_arrow(read, self._damaged)

    @cached_property
    def header(self) -> list[str]:
        """The names of its columns."""
        names = self._head[0][1] if self._head else []
        if not _is_text(names):
            raise self._not_text("its header")
        if not names or _spans_lines(names):
            raise DataError(
                f"{self.path} is empty, or has a header with a line break, a quote that is not closed, or more "
                f"than {LONGEST_VALUE >> 20} million characters: write each name in one line"
            )
        return names

    @property
    def header_line(self) -> int:
        """The number of the line that ends the header, 0 if there is no other."""
        return self._head[0][0] if len(self._head) > 1 else 0

    def first_columns(self, private: Collection[str]) -> list[list[str]]:
        """Return the public columns of the first rows, up to one that cannot be read: that is said later."""
        rows = zip_longest(*(row for _, row in self._head[1:]), fillvalue="")
        return [list(column) for name, column in zip(self.header, rows, strict=False) if name not in private]

    def first_fault(self, private: Collection[str], labels: Collection[str]) -> LabelDPError | None:
        """Return the first fault of the file, None if there is none.

        Where something is private, quotes are read strictly: a stray one may take a label in. Only a column that
        is left out may have line breaks; they come first, as how long a row is may follow from its label.
        """
        with self.stream() as stream:
            records = read_records(stream, self.separator, strict=bool(private))
            return guard_arrow(lambda: self._fault_in(records, private, labels), self._damaged)

    def _fault_in(
        self, records: Iterator[tuple[int, list[str]]], private: Collection[str], labels: Collection[str]
    ) -> LabelDPError | None:
        where = "its header"
        with suppress(python_csv.Error):
            for number, (_, row) in enumerate(records):
                where = f"row {number:,}"  # a header is row 0
                names = zip_longest(self.header, row)
                visible = (value for name, value in names if name in labels or name not in private)
                if private and _spans_lines(value for value in visible if value):
                    return self._wrong_quotes(where)
                if len(row) != len(self.header):
                    return self._ragged(where)
                if not _is_text(row):
                    return self._not_text(where)
                where = f"row {number + 1:,}"
            return None
        return self._wrong_quotes(where)

    def _ragged(self, where: str) -> DataError:
        alternative = "," if self.separator == ";" else ";"
        return DataError(
            f"{self.path} is ragged: {where} has more or fewer values than its header. Values were separated by "
            f"{SEPARATOR_NAMES[self.separator]}: if that is wrong, name it, as in ",
            Setting("separator", alternative),
            ". Lines above the header are left out with ",
            Setting("skip", 1),
            ", totals below the table with ",
            Setting("skip_last", 1),
        )

    def _wrong_quotes(self, where: str) -> DataError:
        return DataError(
            f"{self.path} has a record that spans lines, or text after a closing quote, in {where}, or one of "
            f"more than {LONGEST_VALUE >> 20} million characters: if a quote is missing there, it takes labels "
            "into a public value. Fix it, or save the table as Parquet; a column with line breaks can be left out "
            "with ",
            Setting("drop", ["COLUMN"]),
        )

    def _not_text(self, where: str) -> DataError:
        return DataError(
            f"{self.path} has letters in {where} that are not {str(self.dialect.encoding).upper()}: say how its "
            "letters are stored; files of Windows programs mostly have ",
            Setting("encoding", "cp1252"),
        )


def _sniff_separator(header: str, format: str, private: Collection[str]) -> str:
    """Return the separator by which a header names the private columns, else the usual one, else the only one."""
    usual = DELIMITERS[format]
    candidates = [usual, *(mark for mark in SEPARATOR_NAMES if mark != usual)]
    splitting = [mark for mark in candidates if len(_split(header, mark)) > 1]
    naming = [mark for mark in splitting if private and set(private) <= set(_split(header, mark))]
    if naming:
        return naming[0]
    return splitting[0] if len(splitting) == 1 else usual


def _without_ends(text: bytes, first: int, last: int) -> bytes:
    r"""Return text without its first lines, and its last ones; blank lines at the end do not count.

    Examples
    --------
    >>> _without_ends(b"Homes\na,b\n1,2\nTotal,2\n\n", 1, 1)
    b'a,b\n1,2\n'
    """
    if first:
        lines = re.split(rb"\r\n?|\n", text, maxsplit=first)
        text = lines[first] if len(lines) > first else b""
    while last and text:
        text = text.rstrip()
        text = text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]
        last -= 1
    return text


def _split(line: str, separator: str) -> list[str]:
    with suppress(python_csv.Error):
        return next(python_csv.reader([line], delimiter=separator), [])
    return []


def _is_text(row: list[str]) -> bool:
    text = "".join(row)
    return text.isascii() or not _SURROGATE.search(text)


def _spans_lines(values: Iterable[str]) -> bool:
    return any("\n" in value or "\r" in value for value in values)
