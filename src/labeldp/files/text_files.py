"""CSV and TSV: every column as the text that is there, and complaints that follow from rows, not from blocks.

PyArrow reads blocks of bytes, labels included. Where they end must show nowhere, so its guesses of types are not
used, its batches are cut again by `TextTable`, and what it complains about is looked for again row by row.
"""

from __future__ import annotations

import codecs
import csv as python_csv
import io
import math
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from labeldp.errors import DataError, LabelDPError, LabelError
from labeldp.files.dialect import SEPARATOR_NAMES, UTF8, Dialect
from labeldp.files.sniffing import RawStream, text_reader
from labeldp.files.sources import Part, guard_arrow
from labeldp.files.text_types import LONGEST, TOO_LONG

BLOCK = 1 << 22
"""Bytes read at a time."""

LONGEST_ROW = 1 << 20
"""Bytes that the public values of a row may have: with a label a row is then shorter than a block."""

_LONG_ROW = f"has a row of more than {LONGEST_ROW >> 20} MB, or a quote that never ends"
_NO_TABLE = "the table cannot be read as text with columns"
_DAMAGED = "is damaged: it cannot be unpacked"
_HIDDEN = (
    "has a value with line breaks in row {row} that looks like further rows, with their labels: a quote is "
    "missing there, or not closed. Fix it, or save the table as Parquet"
)


@dataclass(frozen=True)
class TextFile:
    """A text file, and how it is written."""

    part: Part
    dialect: Dialect

    @property
    def separator(self) -> str:
        """What stands between values."""
        return str(self.dialect.separator)

    def open(self) -> Any:
        """Return a new Arrow stream of its text in UTF-8; bytes that are no text are not UTF-8 there either."""
        stream, encoding = self.part.open_text(), str(self.dialect.encoding)
        if encoding in UTF8:
            return stream
        return pa.PythonFile(io.BufferedReader(_Translation(stream, encoding), 1 << 16), mode="r")

    @property
    def not_text(self) -> str:
        """What is wrong with bytes that are no text."""
        return (
            f"is not {str(self.dialect.encoding).upper()} text in row {{row}}: say which encoding it has, as in "
            'Dialect(encoding="latin-1")'
        )


class _Translation(io.RawIOBase):
    """A stream of text in some encoding, in UTF-8."""

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream, self._left = stream, b""
        self._decoder = codecs.getincrementaldecoder(encoding)("labeldp.invalid")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        is_last = False
        while not self._left and not is_last:
            block = self._stream.read(1 << 16)
            is_last = not block
            self._left = self._decoder.decode(block, is_last).encode("utf-8", "surrogatepass")
        data, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def text_batches(file: TextFile, columns: Sequence[str]) -> Iterator[Any]:
    """Yield some columns of a text file as record batches of text, of any length."""
    names, before, is_all = read_header(file)
    if is_all:
        return
    blank = len(names) == 1  # there a blank line is a missing value, but not before the header
    kinds = dict.fromkeys(columns or names, pa.string())  # no column is left for PyArrow to guess
    convert = arrow_csv.ConvertOptions(include_columns=list(columns), column_types=kinds)
    parse = arrow_csv.ParseOptions(delimiter=file.separator, newlines_in_values=True, ignore_empty_lines=not blank)
    read = arrow_csv.ReadOptions(block_size=BLOCK, skip_rows=before if blank else 0)
    options = {"read_options": read, "parse_options": parse, "convert_options": convert}
    with file.open() as stream:
        reader = guard_arrow(lambda: arrow_csv.open_csv(stream, **options), _NO_TABLE)
        while (batch := guard_arrow(lambda: next(reader, None), _NO_TABLE)) is not None:
            if batch.num_rows:
                yield batch


def read_header(file: TextFile) -> tuple[list[str], int, bool]:
    """Return the names in a text file's header, how many blank lines are before it, and whether it is all."""
    with file.open() as stream:
        raw, is_all = RawStream(stream), False
        reader = _reader(raw, file)
        try:
            names = next((row for row in reader if row), None)
        except python_csv.Error:
            names = ["\n"]
        before = reader.line_num - 1
        with suppress(python_csv.Error):
            is_all = next(reader, None) is None and not raw.damaged
    name = file.part.name
    if names is None:
        raise DataError(f"{name} {_DAMAGED if raw.damaged else 'is empty'}")
    if not _is_text(names):
        raise DataError(f"{name} {file.not_text.replace('row {row}', 'its header')}")
    if any("\n" in each or "\r" in each for each in names):
        raise DataError(f"{name} has a line break in its header, or a quote there that is not closed")
    return names, before, is_all


def _reader(raw: RawStream, file: TextFile, *, strict: bool = False) -> Any:
    """Return Python's own reader of rows; bytes that are not text become surrogates."""
    return python_csv.reader(text_reader(raw, "utf-8"), delimiter=file.separator, strict=strict)


def _is_text(row: list[str]) -> bool:
    return not any("\ud800" <= character <= "\udfff" for value in row for character in value)


# ---- what is refused ------------------------------------------------------------------------------------------


def check_rows(
    batch: Any, names: Sequence[str], headers: Collection[tuple[str, tuple[str, ...]]], private: Collection[str]
) -> bool:
    """Refuse rows that are too long or hide others; return whether a public value has line breaks.

    How long the public text of a row is decides, wherever blocks end. A quote without its end takes all lines up
    to the next one in, and labels would leave as a part of that value. A line looks like a row, and the first like
    the rest of its own, if there is a number where a private value would be. ``headers`` are separators and names.
    """
    public = [name for name in names if name not in private]
    lengths = [pc.cast(pc.binary_length(batch.column(name)), "int64") for name in public]
    if lengths and (pc.max(reduce(pc.add, lengths)).as_py() or 0) > LONGEST_ROW:
        raise DataError(f"the table {_LONG_ROW}")
    values = {name: cells for name in names if (cells := _multiline_values(batch.column(name)))}
    for separator, header in headers:
        places = [place for place, name in enumerate(header) if name in private]
        for name, cells in values.items():
            if any(_hides_row(cell, separator, header.index(name), places, len(header)) for cell in cells):
                raise DataError("a value holds rows")
    return not values.keys().isdisjoint(public)


def _multiline_values(column: Any) -> list[str]:
    data = bytes(column.buffers()[2] or b"")
    if b"\n" not in data and b"\r" not in data:
        return []
    return list(column.filter(pc.match_substring_regex(column, "[\\n\\r]")).to_pylist())


def _hides_row(cell: str, separator: str, own: int, places: Sequence[int], width: int) -> bool:
    """Whether a value of the column ``own`` holds one of the private columns at ``places`` among ``width``."""
    first, *others = (line.split(separator) for line in re.split(r"[\r\n]+", cell))
    if not others:
        return False
    rows = list(others)
    if own + len(first) == width:
        rows.append([""] * own + first)
    return any(_is_number(row[place]) for row in rows for place in places if len(row) > place)


def _is_number(text: str) -> bool:
    """Whether text is a number, whatever its marks."""
    bare = text.strip(' \t"')
    with suppress(ValueError):
        return math.isfinite(float(bare))
    return _ANY_NUMBER.match(bare) is not None


_ANY_NUMBER = re.compile(r"[+-]?[^\w\s]?\s*[+-]?[.,]?[0-9][0-9.,'\u2019\s]*([eE][+-]?[0-9]+\s*)?[^\w\s]?$")


# ---- what is wrong --------------------------------------------------------------------------------------------


def first_fault(
    files: Sequence[TextFile], private: Collection[str], label: str | None, *, strict: bool = False
) -> LabelDPError | None:
    """Return what is wrong with the first row that is, in the order of files and rows; it quotes nothing.

    With ``strict`` a quote must begin a value, and only the next value or row may come after the one that ends it.
    """
    limit = python_csv.field_size_limit(2 * BLOCK)  # what is longer is too long for Arrow, too
    try:
        for file in files:
            with file.open() as stream:
                problem = _fault_of(file, private, label, RawStream(stream), strict)
            if problem is not None:
                return problem
    finally:
        python_csv.field_size_limit(limit)
    return None


def _fault_of(
    file: TextFile, private: Collection[str], label: str | None, raw: RawStream, strict: bool
) -> LabelDPError | None:
    name, reader = file.part.name, _reader(raw, file, strict=strict)
    rows = (row for row in reader if row)
    number, line, header = -1, 0, list[str]()  # the header is row 0
    try:
        for number, row in enumerate(rows):
            line = reader.line_num
            if number == 0:
                header = row
                continue
            fault = _fault_of_row(row, header, file, private, label)
            if fault is not None and raw.damaged and next(rows, None) is None:
                break  # a file that was cut off ends in a part of a row
            if fault == TOO_LONG:
                return LabelError(TOO_LONG)
            if fault is not None:
                return DataError(f"{name} {fault.format(row=f'{number:,}')}")
    except python_csv.Error:
        return DataError(f"{name} {_fault_of_quotes(number + 1, strict, reader.line_num > line + 1)}")
    return DataError(f"{name} {_DAMAGED}") if raw.damaged else None


def _fault_of_quotes(row: int, strict: bool, has_line_breaks: bool) -> str:
    """Return what is wrong with a row that Python's reader refuses: its quotes, or, if not strict, its length."""
    if strict:
        where = f"row {row:,}" if row else "its header"
        return (
            f"has text after a closing quote in {where}, or a quote that is not closed: since some values have "
            "line breaks, it may take further rows in, with their labels. Fix it, or save the table as Parquet"
        )
    return _HIDDEN.format(row=f"{row:,}") if has_line_breaks else _LONG_ROW


def _fault_of_row(
    row: list[str], header: list[str], file: TextFile, private: Collection[str], label: str | None
) -> str | None:
    """Return what is wrong with a row; rows in it come first: how long it is follows from their labels."""
    places, width = [place for place, name in enumerate(header) if name in private], len(header)
    if places and any(_hides_row(text, file.separator, own, places, width) for own, text in enumerate(row)):
        return _HIDDEN
    if len(row) != width:
        what = "more" if len(row) > width else "fewer"
        mark = SEPARATOR_NAMES.get(file.separator, f"{file.separator!r}")
        other = "," if file.separator == ";" else ";"
        return (
            f"is ragged: row {{row}} has {what} values than its header, which has {mark} between them. If that is "
            f'not what separates values, say what does, as in Dialect(separator="{other}")'
        )
    if not _is_text(row):
        return file.not_text
    if label in header and len(row[header.index(label)]) > LONGEST:
        return TOO_LONG
    public = [value for name, value in zip(header, row, strict=True) if name not in private]
    return _LONG_ROW if sum(len(value.encode()) for value in public) > LONGEST_ROW else None
