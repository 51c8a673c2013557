"""CSV and TSV: every column as the text that is there, and complaints that follow from rows, not from blocks.

PyArrow reads blocks of bytes, labels included. Where they end must show nowhere, so its guesses of types are not
used, its batches are cut again by `labeldp.files.table`, and what it complains about is found again row by row.
"""

from __future__ import annotations

import csv as python_csv
import io
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import reduce
from typing import Any

from labeldp._arrow import arrow
from labeldp.errors import DataError, LabelDPError, LabelError
from labeldp.files.labels import LONGEST, TOO_LONG
from labeldp.files.sources import Part

__all__ = ["DELIMITERS", "column_names", "first_fault", "refuse_hidden_rows", "refuse_long_rows", "text_batches"]

DELIMITERS = {"csv": ",", "tsv": "\t"}
BLOCK = 1 << 22
"""Bytes read at a time."""

LONGEST_ROW = 1 << 20
"""Bytes that the public values of a row may have: with a label a row is then shorter than a block."""


_NOT_UTF8 = "is not UTF-8 text"
_DAMAGED = "is damaged: it cannot be unpacked"


def text_batches(part: Part, delimiter: str, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield a text file's rows as record batches of text, of whatever length.

    Parameters
    ----------
    part : Part
    delimiter : str
    columns : sequence of str, optional
        Which to read; by default all.
    """
    blank = len(column_names(part, delimiter)) == 1  # there a blank line is a missing value
    with part.open_text() as stream:
        reader = _answer(lambda: _reader(stream, delimiter, columns, blank=blank))
        while (batch := _answer(lambda: next(reader, None))) is not None:
            if batch.num_rows:
                yield batch


def _rows(raw: _Raw, delimiter: str) -> Iterator[list[str]]:
    """Yield rows that are not blank, by Python's own reader; bytes that are not UTF-8 become surrogates."""
    text = io.TextIOWrapper(io.BufferedReader(raw), "utf-8-sig", errors="surrogateescape", newline="")
    return (row for row in python_csv.reader(text, delimiter=delimiter) if row)


def _is_utf8(row: list[str]) -> bool:
    return not any("\ud800" <= character <= "\udfff" for value in row for character in value)


def _reader(stream: Any, delimiter: str, columns: Sequence[str] | None = None, *, blank: bool = False) -> Any:
    pa, csv = arrow().core, arrow().csv
    convert = csv.ConvertOptions(
        include_columns=None if columns is None else list(columns), default_column_type=pa.string()
    )
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not blank)
    read = csv.ReadOptions(block_size=BLOCK)
    return csv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert)


def column_names(part: Part, delimiter: str) -> list[str]:
    """Return the names in a text file's header, whatever comes after it."""
    with part.open_text() as stream:
        raw = _Raw(stream)
        try:
            header = next(_rows(raw, delimiter), None)
        except python_csv.Error:
            header = ["\n"]
    if header is None:
        raise DataError(f"{part.name} {_DAMAGED if raw.damaged else 'is empty'}")
    if not _is_utf8(header):
        raise DataError(f"{part.name} {_NOT_UTF8}")
    if any("\n" in name or "\r" in name for name in header):
        raise DataError(f"{part.name} has a line break in its header, or a quote there that is not closed")
    return header


def refuse_long_rows(public: Any) -> None:
    """Refuse public text of more than `LONGEST_ROW` bytes in one row; by its length alone, wherever blocks end."""
    pc = arrow().compute
    lengths = [pc.cast(pc.binary_length(column), "int64") for column in public.columns]
    if lengths and (pc.max(reduce(pc.add, lengths)).as_py() or 0) > LONGEST_ROW:
        raise DataError(_too_long("the table"))


def _too_long(name: str) -> str:
    return f"{name} has a row of more than {LONGEST_ROW >> 20} MB, or a quote that never ends"


def refuse_hidden_rows(public: Any, delimiter: str, places: Collection[int]) -> None:
    """Refuse a value in quotes that holds what looks like further rows: labels would leave as a part of it.

    A quote without its end takes all lines up to the next one in. A line after a line break looks like a row if
    there is a number where the label would be.
    """
    pc = arrow().compute
    for column in public.columns:
        data = bytes(column.buffers()[2] or b"")
        if b"\n" in data or b"\r" in data:
            cells = column.filter(pc.match_substring_regex(column, "[\\n\\r]")).to_pylist()
            if any(_hides_row(cell, delimiter, place) for cell in cells for place in places):
                raise DataError("a value holds rows")


def _hides_row(cell: str, delimiter: str, place: int) -> bool:
    for line in re.split(r"[\r\n]+", cell)[1:]:
        values = line.split(delimiter)
        try:
            if len(values) > place and math.isfinite(float(values[place].strip(' \t"'))):
                return True
        except ValueError:
            continue
    return False


def _answer(question: Callable[[], Any]) -> Any:
    """Return what Arrow answers, or raise that there is a fault, without the original, which may quote a label."""
    pa = arrow().core
    try:
        return question()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        if isinstance(error, KeyboardInterrupt | pa.ArrowCancelled | MemoryError):
            raise
    except OSError as error:
        if error.errno is not None:
            raise
    raise DataError("the table cannot be read as text with columns")


def first_fault(parts: Sequence[Part], delimiter: str, label: str | None) -> LabelDPError | None:
    """Return what is wrong with the first row that is, in the order of files and rows; it quotes nothing."""
    limit = python_csv.field_size_limit(2 * BLOCK)  # what is longer is too long for Arrow, too
    try:
        for part in parts:
            with part.open_text() as stream:
                problem = _fault_of(part.name, delimiter, label, _Raw(stream))
            if problem is not None:
                return problem
    finally:
        python_csv.field_size_limit(limit)
    return None


def _fault_of(name: str, delimiter: str, label: str | None, raw: _Raw) -> LabelDPError | None:
    rows = _rows(raw, delimiter)
    header = next(rows, [])
    place = header.index(label) if label in header else None
    try:
        for number, row in enumerate(rows, 1):
            fault = _fault_of_row(row, len(header), delimiter, place)
            if fault == TOO_LONG:
                return LabelError(TOO_LONG)
            if fault is not None:
                return DataError(f"{name} {fault.format(row=f'{number:,}')}")
    except python_csv.Error:
        return DataError(_too_long(name))
    return DataError(f"{name} {_DAMAGED}") if raw.damaged else None


def _fault_of_row(row: list[str], width: int, delimiter: str, place: int | None) -> str | None:
    if len(row) != width:
        what = "more" if len(row) > width else "fewer"
        return (
            f"is ragged: row {{row}} has {what} values than its header. Values must be separated by commas (.csv) "
            "or tabs (.tsv), not by semicolons"
        )
    if not _is_utf8(row):
        return _NOT_UTF8
    public = row if place is None else row[:place] + row[place + 1 :]
    if place is not None and len(row[place]) > LONGEST:
        return TOO_LONG
    if sum(len(value.encode()) for value in public) > LONGEST_ROW:
        return _too_long("").strip()
    if place is not None and any(_hides_row(value, delimiter, place) for value in public):
        return (
            "has a value with line breaks in row {row} that looks like further rows, with their labels: a quote "
            "is missing there, or not closed. Mend it, or write the table as Parquet"
        )
    return None


class _Raw(io.RawIOBase):
    """An Arrow stream for Python's own readers; where it cannot be read, it ends."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.damaged = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except OSError as error:
            if error.errno is not None:
                raise
            self.damaged, data = True, b""
        buffer[: len(data)] = data
        return len(data)
