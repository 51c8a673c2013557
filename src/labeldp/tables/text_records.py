"""The records of a text file: how they are separated and encoded, their header, and what is wrong with them.

The header shows the separator, and a byte-order mark the encoding. Labels are never looked at. What is wrong is
said by the number of a row and quotes nothing. Records are read within a limit: a line without an end must not
fill the memory.
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
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from labeldp.errors import DataError, LabelDPError, Setting
from labeldp.release.names import reads_as_value
from labeldp.tables.batches import guard_arrow
from labeldp.tables.dialect import SEPARATOR_NAMES, UTF8, Dialect
from labeldp.tables.paths import DELIMITERS, compression_of

LONGEST_RECORD = 1 << 23
"""Characters of a record that can be read: its public values may have a million, and its label as many."""

HEADER_ROWS = 50
"""Lines among which a header is looked for: titles may stand above it."""

MOST_TITLES = 10
"""Lines among which a header is looked for while nobody has named a column."""

ROWS_BELOW = 5
"""Lines that have as many values as a header."""

FIRST_ROWS = 1000
"""How many rows are looked at for marks in numbers."""

LONGEST_ROW = 1 << 20
"""Bytes that the public values of a row may have, and its label: a row is then shorter than a block."""

LONG_ROW = f"the table has a row or a label of more than {LONGEST_ROW >> 20} MB, or a quote that never ends"
_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ORDER_MARKS = {
    "utf-8-sig": (codecs.BOM_UTF8,),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}

python_csv.field_size_limit(max(LONGEST_RECORD, python_csv.field_size_limit()))  # one for all threads


def _mark_invalid(error: UnicodeError) -> tuple[str, int]:
    """Stand for bytes that are no text in an encoding: half of a pair of characters, which no text has."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


codecs.register_error("labeldp.invalid", _mark_invalid)


class _Raw(io.RawIOBase):
    """Blocks of bytes for Python's own readers; closing it closes the Arrow stream that they come from."""

    def __init__(self, stream: Any, blocks: Iterator[bytes]) -> None:
        self._stream, self._blocks, self._left = stream, blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = next((block for block in self._blocks if block), b"")
        data, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _open(path: Path) -> Any:
    """Return a new Arrow stream of a text file, unpacked if it is compressed."""
    stream, compression = pa.OSFile(str(path)), compression_of(path.name)
    return stream if compression is None else pa.CompressedInputStream(stream, compression)


def _blocks(path: Path, stream: Any) -> Iterator[bytes]:
    def read() -> bytes:
        return guard_arrow(lambda: bytes(stream.read(1 << 16)), f"{path} is damaged: it cannot be unpacked")

    return iter(read, b"")


def _in_utf8(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("labeldp.invalid")
    for block in chain(blocks, [b""]):
        yield decoder.decode(block, not block).encode("utf-8", "surrogatepass")


def _without_ends(blocks: Iterable[bytes], skip: int, skip_last: int) -> Iterator[bytes]:
    """Yield text without its first and its last lines; blank lines at the end are not counted."""
    lines, rest = list[bytes](), b""
    for block in chain(blocks, [b""]):
        lines += (rest + block).splitlines(keepends=True)
        rest = lines.pop() if block and lines else b""  # which may go on
        if len(rest) > LONGEST_RECORD:  # whoever reads such a line refuses it
            lines, rest = [*lines, rest], b""
        first = min(skip, len(lines))
        skip, lines = skip - first, lines[first:]
        last = len(lines)
        while skip_last and last and not lines[last - 1].strip():
            last -= 1
        last = max(0, last - skip_last)
        yield b"".join(lines[:last])
        lines = lines[last:]


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
        If a record is longer than `LONGEST_RECORD`, or its quotes are wrong.
    """
    text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
    left = LONGEST_RECORD

    def next_line() -> str:
        nonlocal left
        line = text.readline(left + 1)
        left -= len(line)
        if left < 0:
            raise python_csv.Error
        return line

    reader = python_csv.reader(iter(next_line, ""), delimiter=separator, strict=strict)
    for row in reader:
        left = LONGEST_RECORD
        if row:
            yield reader.line_num, row


@dataclass(frozen=True)
class TextFile:
    """A text file, and how it is written; `find` detects what was not given. A sheet is one with its own text."""

    path: Path
    dialect: Dialect
    content: bytes | None = None

    @classmethod
    def find(cls, path: Path, given: Dialect, format: str, private: Collection[str]) -> TextFile:
        """Return a file with its separator and encoding, from its first line; marks in numbers come later.

        Text without a byte-order mark is UTF-8 unless an encoding is given.
        """
        encoding = given.encoding
        if encoding is None:
            with _open(path) as stream:
                start = next(_blocks(path, stream), b"")
            marked = (name for name, marks in _BYTE_ORDER_MARKS.items() if start.startswith(marks))
            encoding = next(marked, "utf-8")
        file = cls(path, given.with_detected(encoding=encoding))
        try:
            line = next((line for line in file._lines(1000) if line.strip("\ufeff \r\n")), "")
        except UnicodeError:  # of UTF-16, which must begin with a mark
            line = "\0"
        if "\0" in line:
            raise DataError(
                f"{path} has no byte-order mark: name the encoding with the order of its bytes, as in ",
                Setting("encoding", "utf-16-le"),
            )
        if len(line) > LONGEST_RECORD:
            raise DataError(f"{path} has a first line of more than {LONGEST_RECORD >> 20} million characters")
        separator = given.separator or _sniff_separator(line.lstrip("\ufeff"), format, private)
        return cls(path, given.with_detected(separator=separator, encoding=encoding))

    def _lines(self, most: int) -> Iterator[str]:
        """Yield the first lines, as far as they can be read."""
        with self.stream() as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
            yield from (text.readline(LONGEST_RECORD + 1) for _ in range(most))

    @property
    def separator(self) -> str:
        """What stands between values."""
        return str(self.dialect.separator)

    def stream(self) -> Any:
        """Return a new stream of its text in UTF-8, without what is skipped; other bytes are not UTF-8 there."""
        if self.content is not None:
            return io.BytesIO(self.content)
        how, opened = self.dialect, _open(self.path)
        blocks = _blocks(self.path, opened)
        if how.encoding not in UTF8:
            blocks = _in_utf8(blocks, str(how.encoding))
        if how.skip or how.skip_last:
            blocks = _without_ends(blocks, how.skip, how.skip_last or 0)
        return io.BufferedReader(_Raw(opened, blocks), 1 << 16)

    def open(self) -> Any:
        """Return the same as an Arrow stream."""
        how = self.dialect
        is_plain = self.content is None and how.encoding in UTF8 and not how.skip and not how.skip_last
        return _open(self.path) if is_plain else pa.PythonFile(self.stream(), mode="r")

    def lines_above(self, label: str) -> int:
        """Return how many lines stand above the first that names the label, if one of the first 50 does."""
        for number, line in enumerate(self._lines(HEADER_ROWS)):
            if any(label in _split(line, mark) for mark in SEPARATOR_NAMES):
                return number
        return 0

    def titles(self, format: str) -> int:
        """Return how many lines seem to be titles: a header has as many values as each of the lines below it.

        Of rows only the number of values is looked at. A line with numbers may be a row of values: where such a
        line comes first, no line is taken for a title.
        """
        lines = [line.strip("\ufeff \r\n") for line in self._lines(HEADER_ROWS)]
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
                return 0 if any(map(reads_as_value, names)) else number
        return 0

    @cached_property
    def header(self) -> tuple[list[str], int]:
        """The names of its columns, and the number of the line that has them, 0 if there is no other."""
        with self.stream() as stream:
            records, is_all = read_records(stream, self.separator), False
            try:
                line, names = next(records, (0, []))
            except python_csv.Error:
                line, names = 0, ["\n"]
            with suppress(python_csv.Error):
                is_all = next(records, None) is None
        if not names:
            raise DataError(f"{self.path} is empty")
        if not _is_text(names):
            raise self._not_text("its header")
        if _spans_lines(names):
            raise DataError(
                f"{self.path} has a line break in its header, or a quote there that is not closed: write each "
                "name in one line"
            )
        return names, 0 if is_all else line

    def first_columns(self, private: Collection[str]) -> list[list[str]]:
        """Return the public columns of the first rows, up to one that cannot be read: that is said later."""
        rows = list[list[str]]()
        with self.stream() as stream, suppress(python_csv.Error):
            for _, row in islice(read_records(stream, self.separator), 1, FIRST_ROWS + 1):
                rows.append(row)  # those before an error count
        columns = zip(self.header[0], zip_longest(*rows, fillvalue=""), strict=False)
        return [list(column) for name, column in columns if name not in private]

    def first_fault(self, private: Collection[str], label: str | None) -> LabelDPError | None:
        """Return what is wrong with the first row that is.

        Where something is private, quotes are read strictly: a stray one may take a label in. Only a column that
        is left out may have line breaks; they come first, as how long a row is may follow from its label.
        """
        header, number = list[str](), -1
        with self.stream() as stream:
            try:
                for number, (_, row) in enumerate(read_records(stream, self.separator, strict=bool(private))):
                    header, where = header or row, f"row {number:,}"  # a header is row 0
                    names = zip_longest(header, row, fillvalue=None)
                    kept = (value for name, value in names if name == label or name not in private)
                    if private and _spans_lines(value for value in kept if value):
                        return self._wrong_quotes(where)
                    if len(row) != len(header):
                        return self._ragged(where)
                    if not _is_text(row):
                        return self._not_text(where)
            except python_csv.Error:
                return self._wrong_quotes(f"row {number + 1:,}" if header else "its header")
        return None

    def _ragged(self, where: str) -> DataError:
        other = "," if self.separator == ";" else ";"
        return DataError(
            f"{self.path} is ragged: {where} has more or fewer values than its header. Values were separated by "
            f"{SEPARATOR_NAMES[self.separator]}: if that is wrong, name it, as in ",
            Setting("separator", other),
            ". Lines above the header are left out with ",
            Setting("skip", 1),
            ", totals below the table with ",
            Setting("skip_last", 1),
        )

    def _wrong_quotes(self, where: str) -> DataError:
        return DataError(
            f"{self.path} has a record that spans lines, or text after a closing quote, in {where}, or one of "
            f"more than {LONGEST_RECORD >> 20} million characters: if a quote is missing there, it takes labels "
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
    there = [mark for mark in candidates if len(_split(header, mark)) > 1]
    naming = [mark for mark in there if private and set(private) <= set(_split(header, mark))]
    return naming[0] if naming else there[0] if len(there) == 1 else usual


def _split(line: str, separator: str) -> list[str]:
    with suppress(python_csv.Error):
        return next(python_csv.reader([line], delimiter=separator), [])
    return []


def _is_text(row: list[str]) -> bool:
    text = "".join(row)
    return text.isascii() or not _SURROGATE.search(text)


def _spans_lines(values: Iterable[str]) -> bool:
    return any("\n" in value or "\r" in value for value in values)
