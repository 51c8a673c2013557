"""CSV and TSV: every column as the text that is there, and complaints that follow from rows, not from blocks.

PyArrow reads blocks of bytes, labels included. Where they end must show nowhere, so its guesses of types are not
used, its batches are cut again by `TextTable`, and what it complains about is looked for again row by row.
"""

from __future__ import annotations

import csv as python_csv
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from pyarrow import types

from labeldp.errors import DataError, LabelDPError, LabelError
from labeldp.files.columns import LONGEST, TOO_LONG, mark_missing
from labeldp.files.sources import Part, guard_arrow

__all__ = ["TextType", "check_rows", "first_fault", "parse_text", "read_header", "text_batches"]

BLOCK = 1 << 22
"""Bytes read at a time."""

LONGEST_ROW = 1 << 20
"""Bytes that the public values of a row may have: with a label a row is then shorter than a block."""

_LONG_ROW = f"has a row of more than {LONGEST_ROW >> 20} MB, or a quote that never ends"
_NO_TABLE = "the table cannot be read as text with columns"
_NOT_UTF8 = "is not UTF-8 text"
_DAMAGED = "is damaged: it cannot be unpacked"
_HIDDEN = (
    "has a value with line breaks in row {row} that looks like further rows, with their labels: a quote is "
    "missing there, or not closed. Fix it, or save the table as Parquet"
)


def text_batches(part: Part, delimiter: str, columns: Sequence[str]) -> Iterator[Any]:
    """Yield some columns of a text file as record batches of text, of any length."""
    names, before, is_all = read_header(part, delimiter)
    if is_all:
        return
    blank = len(names) == 1  # there a blank line is a missing value, but not before the header
    convert = arrow_csv.ConvertOptions(include_columns=list(columns), default_column_type=pa.string())
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not blank)
    read = arrow_csv.ReadOptions(block_size=BLOCK, skip_rows=before if blank else 0)
    options = {"read_options": read, "parse_options": parse, "convert_options": convert}
    with part.open_text() as stream:
        reader = guard_arrow(lambda: arrow_csv.open_csv(stream, **options), _NO_TABLE)
        while (batch := guard_arrow(lambda: next(reader, None), _NO_TABLE)) is not None:
            if batch.num_rows:
                yield batch


def read_header(part: Part, delimiter: str) -> tuple[list[str], int, bool]:
    """Return the names in a text file's header, how many blank lines are before it, and whether it is all."""
    with part.open_text() as stream:
        raw, is_all = _Raw(stream), False
        reader = _reader(raw, delimiter)
        try:
            names = next((row for row in reader if row), None)
        except python_csv.Error:
            names = ["\n"]
        before = reader.line_num - 1
        with suppress(python_csv.Error):
            is_all = next(reader, None) is None and not raw.damaged
    if names is None:
        raise DataError(f"{part.name} {_DAMAGED if raw.damaged else 'is empty'}")
    if not _is_utf8(names):
        raise DataError(f"{part.name} {_NOT_UTF8}")
    if any("\n" in name or "\r" in name for name in names):
        raise DataError(f"{part.name} has a line break in its header, or a quote there that is not closed")
    return names, before, is_all


def _reader(raw: _Raw, delimiter: str, *, strict: bool = False) -> Any:
    """Return Python's own reader of rows; bytes that are not UTF-8 become surrogates."""
    text = io.TextIOWrapper(io.BufferedReader(raw), "utf-8-sig", errors="surrogateescape", newline="")
    return python_csv.reader(text, delimiter=delimiter, strict=strict)


def _is_utf8(row: list[str]) -> bool:
    return not any("\ud800" <= character <= "\udfff" for value in row for character in value)


# ---- what is refused ------------------------------------------------------------------------------------------


def check_rows(
    batch: Any, names: Sequence[str], delimiter: str, headers: Sequence[Sequence[str]], label: str | None
) -> bool:
    """Refuse rows that are too long or hide others; return whether a public value has line breaks.

    How long the public text of a row is decides, wherever blocks end. A quote without its end takes all lines up
    to the next one in, and labels would leave as a part of that value. A line looks like a row, and the first like
    the rest of its own, if there is a number where the label would be.
    """
    public = [name for name in names if name != label]
    lengths = [pc.cast(pc.binary_length(batch.column(name)), "int64") for name in public]
    if lengths and (pc.max(reduce(pc.add, lengths)).as_py() or 0) > LONGEST_ROW:
        raise DataError(f"the table {_LONG_ROW}")
    values = {name: cells for name in names if (cells := _multiline_values(batch.column(name)))}
    for header in headers if label is not None else ():
        for name, cells in values.items():
            own, place = header.index(name), header.index(label)
            if any(_hides_row(cell, delimiter, own, place, len(header)) for cell in cells):
                raise DataError("a value holds rows")
    return not values.keys().isdisjoint(public)


def _multiline_values(column: Any) -> list[str]:
    data = bytes(column.buffers()[2] or b"")
    if b"\n" not in data and b"\r" not in data:
        return []
    return list(column.filter(pc.match_substring_regex(column, "[\\n\\r]")).to_pylist())


def _hides_row(cell: str, delimiter: str, own: int, place: int, width: int) -> bool:
    """Whether a value of the column ``own`` holds a label; labels are in the column ``place`` of ``width``."""
    first, *others = (line.split(delimiter) for line in re.split(r"[\r\n]+", cell))
    if not others:
        return False
    rows = [row for row in others if len(row) > place]
    if own < place and own + len(first) == width:
        rows.append([""] * own + first)
    return any(_is_number(row[place]) for row in rows)


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        return math.isfinite(float(text.strip(' \t"')))
    return False


# ---- what is wrong --------------------------------------------------------------------------------------------


def first_fault(
    parts: Sequence[Part], delimiter: str, label: str | None, *, strict: bool = False
) -> LabelDPError | None:
    """Return what is wrong with the first row that is, in the order of files and rows; it quotes nothing.

    With ``strict`` a quote must begin a value, and only the next value or row may come after the one that ends it.
    """
    limit = python_csv.field_size_limit(2 * BLOCK)  # what is longer is too long for Arrow, too
    try:
        for part in parts:
            with part.open_text() as stream:
                problem = _fault_of(part.name, delimiter, label, _Raw(stream), strict)
            if problem is not None:
                return problem
    finally:
        python_csv.field_size_limit(limit)
    return None


def _fault_of(name: str, delimiter: str, label: str | None, raw: _Raw, strict: bool) -> LabelDPError | None:
    reader = _reader(raw, delimiter, strict=strict)
    rows = (row for row in reader if row)
    number, line, width, place = -1, 0, 0, None  # the header is row 0
    try:
        for number, row in enumerate(rows):
            line = reader.line_num
            if number == 0:
                width, place = len(row), row.index(label) if label in row else None
                continue
            fault = _fault_of_row(row, width, delimiter, place)
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


def _fault_of_row(row: list[str], width: int, delimiter: str, place: int | None) -> str | None:
    """Return what is wrong with a row; rows in it come first: how long it is follows from their labels."""
    if place is not None and any(_hides_row(text, delimiter, own, place, width) for own, text in enumerate(row)):
        return _HIDDEN
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
        return _LONG_ROW
    return None


class _Raw(io.RawIOBase):
    """An Arrow stream for Python's own readers; where it cannot be read, it ends."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.damaged = stream, False

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


# ---- types of columns -----------------------------------------------------------------------------------------


def parse_text(text: Any, kind: Any) -> Any:
    """Return text as values of a type; words for missing values are null, but in a column of text.

    Arrow's errors may quote text that is no such value.

    Examples
    --------
    >>> parse_text(pa.array(["1", "NA", " 3"]), pa.int64()).to_pylist()
    [1, None, 3]
    """
    return text if kind == pa.string() else _parse(mark_missing(text), kind)


def _parse(values: Any, kind: Any) -> Any:
    if types.is_time(kind):  # a cast from text knows times of a day only with their day
        day = pc.binary_join_element_wise("1970-01-01", values, " ")
        return day.cast(pa.timestamp(kind.unit)).cast(kind)
    return values.cast(kind)


class TextType:
    """The type of one column of text, once all of it was seen.

    Parameters
    ----------
    exact : bool
        Whether all text must come back the same from its type, but for words for missing values: ``01000`` is no
        number then. Of floats only the value counts.

    Examples
    --------
    >>> column = TextType(exact=False)
    >>> column.see(pa.array(["1", "2"]))
    >>> column.see(pa.array(["2.5", ""]))
    >>> column.kind
    DataType(double)
    """

    def __init__(self, *, exact: bool) -> None:
        self._exact, self._empty = exact, True
        kinds = [pa.int64(), pa.bool_(), pa.date32(), pa.time32("s")]
        kinds += [pa.timestamp(unit, zone) for unit in ("s", "ns") for zone in (None, "UTC")]
        self._left = {kind: _spellings(kind) for kind in [*kinds, pa.float64()]}

    def see(self, text: Any) -> None:
        """Look at more of the column."""
        values = mark_missing(text)
        self._empty = self._empty and values.null_count == len(values)
        for kind, spellings in list(self._left.items()):
            try:
                parsed = _parse(values, kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                del self._left[kind]
                continue
            if self._exact:
                self._left[kind] = [spelling for spelling in spellings if _are_all(spelling(parsed, text))]

    @property
    def kind(self) -> Any:
        """The first type that all text can be read as; text, if it does not come back from it or is missing."""
        kind, spellings = next(iter(self._left.items()), (None, []))
        return kind if spellings and not self._empty else pa.string()


Spelling = Callable[[Any, Any], Any]
"""Says which text is what values look like, written in one way."""

_NAMES = r"^[ \t]*(\+|-?0[0-9]|-?[0-9]{16,}[ \t]*$)|[0-9.]{20,}"
"""Text that can be read as floats, but is a name: telephone numbers, codes, more digits than a float holds."""


def _spellings(kind: Any) -> list[Spelling]:
    """Return the ways in which values of a type may be written: a column keeps to one of them."""
    if types.is_floating(kind):
        return [lambda _, text: pc.invert(pc.match_substring_regex(text, _NAMES))]
    ways: list[Callable[[Any], Any]] = [lambda plain: plain]
    if types.is_boolean(kind):
        ways += [pc.utf8_title, pc.utf8_upper]
    if types.is_timestamp(kind):
        ways += [lambda plain: pc.replace_substring(plain, " ", "T")]
    return [partial(_are_equal, way) for way in ways]


def _are_equal(way: Callable[[Any], Any], parsed: Any, text: Any) -> Any:
    return pc.equal(way(parsed.cast(pa.string())), text)


def _are_all(flags: Any) -> bool:
    """Whether no flag is false; where a value is missing there is none."""
    return bool(pc.all(flags, min_count=0).as_py())
