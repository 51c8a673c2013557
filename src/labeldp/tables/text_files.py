"""CSV and TSV: every column as the text that is there, and complaints that follow from rows, not from blocks.

PyArrow reads blocks of bytes, labels included. Where they end must show nowhere, so its guesses of types are not
used, its batches are cut again by `TextTable`, and what it complains about is looked for again row by row.
"""

from __future__ import annotations

import codecs
import csv as python_csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from labeldp.errors import DataError, LabelDPError, LabelError, Setting
from labeldp.release.names import reads_as_number
from labeldp.tables.dialect import SEPARATOR_NAMES, UTF8, Dialect
from labeldp.tables.sources import Part, guard_arrow
from labeldp.tables.text_records import TOO_LONG_RECORD, Records
from labeldp.tables.text_types import LONGEST, TOO_LONG

BLOCK = 1 << 22
"""Bytes read at a time."""

LONGEST_ROW = 1 << 20
"""Bytes that the public values of a row may have: with a label a row is then shorter than a block."""

_LONG_ROW = f"has a row of more than {LONGEST_ROW >> 20} MB, or a quote that never ends"
_NO_TABLE = "the table cannot be read as text with columns"
_DAMAGED = "is damaged: it cannot be unpacked"
_QUOTES = (
    "has a record that spans lines, or text after a closing quote, in {where}: if a quote is missing there, it "
    "takes labels into a public value. Fix it, or save the table as Parquet; if the values of a public column "
    "have line breaks, name it, as in ",
    Setting("multiline", "COLUMN"),
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

    def records(self, stream: Any, *, strict: bool = False) -> Records:
        """Return the records of a stream that `open` gave; bytes that are not text become surrogates."""
        return Records(stream, "utf-8", self.separator, strict=strict)

    @property
    def not_text(self) -> tuple[object, ...]:
        """What is wrong with bytes that are no text."""
        encoding = str(self.dialect.encoding).upper()
        return (
            f"is not {encoding} text in {{where}}: name its encoding, as in ",
            Setting("encoding", "cp1252"),
        )

    def fault(self, parts: Sequence[object], where: str) -> DataError:
        """Return what is wrong with the file, and where."""
        first, *others = parts
        return DataError(f"{self.part.name} {str(first).format(where=where)}", *others)


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
    given = list(file.dialect.names) or None
    read = arrow_csv.ReadOptions(block_size=BLOCK, skip_rows=before if blank else 0, column_names=given)
    options = {"read_options": read, "parse_options": parse, "convert_options": convert}
    with file.open() as stream:
        reader = guard_arrow(lambda: arrow_csv.open_csv(stream, **options), _NO_TABLE)
        while (batch := guard_arrow(lambda: next(reader, None), _NO_TABLE)) is not None:
            if batch.num_rows:
                yield batch


def read_header(file: TextFile) -> tuple[list[str], int, bool]:
    """Return the names of a text file's columns, the blank lines before its header, and whether it is all.

    Names that were given count as the header of a file that has none.
    """
    name, given = file.part.name, list(file.dialect.names)
    with file.open() as stream:
        records, is_all = file.records(stream), False
        try:
            row = next(records, [])
        except python_csv.Error:
            row = ["\n"]
        before = records.lines - 1
        with suppress(python_csv.Error):
            is_all = next(records, None) is None and not records.damaged
        is_damaged = records.damaged
    if not row:
        raise DataError(f"{name} {_DAMAGED if is_damaged else 'is empty'}")
    spans_lines = any("\n" in each or "\r" in each for each in row)
    if given:
        if len(row) != len(given) and not spans_lines:  # that is said of a row, as of others
            raise DataError(
                f"{name} has other than {len(given)} values in its first row, and names were given for so many "
                "columns. ",
                *_other_separator(file),
            )
        return given, 0, False
    if not _is_text(row):
        raise file.fault(file.not_text, "its header")
    if spans_lines:
        raise DataError(f"{name} has a line break in its header, or a quote there that is not closed")
    return row, before, is_all


def _is_text(row: list[str]) -> bool:
    return not any(_SURROGATE.search(value) for value in row)


_SURROGATE = re.compile("[\ud800-\udfff]")


# ---- what is refused ------------------------------------------------------------------------------------------


def may_hide_records(batch: Any, public: Sequence[str], separators: Collection[str]) -> bool:
    """Return whether a public value holds a line break or a separator, once no row is too long.

    How long the public text of a row is decides, wherever blocks end.
    """
    columns = [batch.column(name) for name in public]
    lengths = [pc.cast(pc.binary_length(column), "int64") for column in columns]
    if lengths and (pc.max(reduce(pc.add, lengths)).as_py() or 0) > LONGEST_ROW:
        raise DataError(f"the table {_LONG_ROW}")
    texts = [bytes(column.buffers()[2] or b"") for column in columns]
    return any(mark.encode() in text for text in texts for mark in ("\n", "\r", *separators))


def hides_record(row: list[str], header: list[str], dialect: Dialect, private: Collection[str]) -> bool:
    """Return whether a public value of a record spans lines and may hold another record, with its label.

    A quote without its end takes the rest of its record in, and further ones. Only values of the column that may
    have line breaks span lines, and none of these lines has a number where a private value would be, from the left
    or from the right.
    """
    public = {name: value for name, value in zip_longest(header, row) if name not in private}
    spanning = {name: value for name, value in public.items() if value and len(_lines(value)) > 1}
    if not spanning or list(spanning) != [dialect.multiline]:
        return bool(spanning)
    places = [place for place, name in enumerate(header) if name in private]
    cells = [line.split(str(dialect.separator)) for value in spanning.values() for line in _lines(value)]
    return any(_has_number(each, place, len(header)) for each in cells for place in places)


def _lines(text: str) -> list[str]:
    return re.split("\r\n|\r|\n", text)


def _has_number(cells: list[str], place: int, width: int) -> bool:
    """Whether there is a number at a column's position, counted from the left or from the right."""
    places = (at for at in (place, len(cells) - width + place) if 0 <= at < len(cells))
    return any(reads_as_number(cells[at]) for at in places)


# ---- what is wrong --------------------------------------------------------------------------------------------


def first_fault(
    files: Sequence[TextFile], private: Collection[str], label: str | None, *, only_quotes: bool = False
) -> LabelDPError | None:
    """Return what is wrong with the first row that is, in the order of files and rows; it quotes nothing.

    Where something is private, quotes are read strictly: a stray one may take a label in. With ``only_quotes``
    nothing else is looked for in records of one line.
    """
    for file in files:
        with file.open() as stream:
            records = file.records(stream, strict=bool(private))
            problem = _fault_of(file, private, label, records, only_quotes=only_quotes)
        if problem is not None:
            return problem
    return None


def _fault_of(
    file: TextFile, private: Collection[str], label: str | None, records: Records, *, only_quotes: bool
) -> LabelDPError | None:
    name, header = file.part.name, list(file.dialect.names)
    first = 1 if header else 0  # a header is row 0
    number, line = first - 1, 0
    try:
        for number, row in enumerate(records, first):
            before, line = line, records.lines
            if not header:
                header = row
                continue
            if only_quotes and line == before + 1:
                continue
            fault = _fault_of_row(row, header, file, private, label)
            if fault is not None and records.damaged and next(records, None) is None:
                break  # a file that was cut off ends in a part of a row
            if fault == (TOO_LONG,):
                return LabelError(TOO_LONG)
            if fault is not None:
                return file.fault(fault, f"row {number:,}")
    except python_csv.Error as error:
        where = f"row {number + 1:,}" if header else "its header"
        is_long = str(error) == TOO_LONG_RECORD and records.lines <= line + 1  # no quote was open
        return file.fault((_LONG_ROW,) if is_long else _QUOTES, where)
    return DataError(f"{name} {_DAMAGED}") if records.damaged else None


def _fault_of_row(
    row: list[str], header: list[str], file: TextFile, private: Collection[str], label: str | None
) -> tuple[object, ...] | None:
    """Return what is wrong with a row; lines in it come first: how long it is follows from their labels."""
    value = dict(zip(header, row, strict=False)).get(str(label), "")
    if private and (len(_lines(value)) > 1 or hides_record(row, header, file.dialect, private)):
        return _QUOTES
    if len(row) != len(header):
        what = "more" if len(row) > len(header) else "fewer"
        return f"is ragged: {{where}} has {what} values than its header. ", *_other_separator(file)
    if not _is_text(row):
        return file.not_text
    if len(value) > LONGEST:
        return (TOO_LONG,)
    public = [value for name, value in zip(header, row, strict=True) if name not in private]
    return (_LONG_ROW,) if sum(len(value.encode()) for value in public) > LONGEST_ROW else None


def _other_separator(file: TextFile) -> tuple[object, ...]:
    mark = SEPARATOR_NAMES[file.separator]
    other = "," if file.separator == ";" else ";"
    return f"Values were separated by {mark}: if that is wrong, name it, as in ", Setting("separator", other)
