"""CSV and TSV: every column as the text that is there, and complaints that follow from rows, not from blocks.

PyArrow reads blocks of bytes, labels included. Where they end must show nowhere, so its guesses of types are not
used, its batches are cut again by `labeldp.files.table`, and what it complains about is found again row by row.
"""

from __future__ import annotations

import csv as python_csv
import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

from labeldp._arrow import arrow
from labeldp.errors import DataError, LabelDPError, LabelError
from labeldp.files.labels import LONGEST, TOO_LONG
from labeldp.files.sources import Part

__all__ = ["DELIMITERS", "column_names", "refuse_long_rows", "text_batches"]

DELIMITERS = {"csv": ",", "tsv": "\t"}
BLOCK = 1 << 22
"""Bytes read at a time."""

LONGEST_ROW = 1 << 20
"""Bytes that the public values of a row may have: with a label a row is then shorter than a block."""


_NOT_UTF8 = "is not UTF-8 text"
_DAMAGED = "is damaged: it cannot be unpacked"


def text_batches(
    part: Part, delimiter: str, columns: Sequence[str] | None = None, label: str | None = None
) -> Iterator[Any]:
    """Yield a text file's rows as record batches of text, of whatever length.

    Parameters
    ----------
    part : Part
    delimiter : str
    columns : sequence of str, optional
        Which to read; by default all.
    label : str, optional
        The private column: its length has no part in any complaint.
    """
    ask = partial(_answer, part, delimiter, label)
    blank = len(column_names(part, delimiter)) == 1  # there a blank line is a missing value
    with part.open_text() as stream:
        reader = ask(lambda: _reader(stream, delimiter, columns, blank=blank))
        while (batch := ask(lambda: next(reader, None))) is not None:
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
        header = next(_rows(raw, delimiter), None)
    if header is None:
        raise DataError(f"{part.name} {_DAMAGED if raw.damaged else 'is empty'}")
    if not _is_utf8(header):
        raise DataError(f"{part.name} {_NOT_UTF8}")
    return header


def refuse_long_rows(public: Any, name: str) -> None:
    """Refuse public text of more than `LONGEST_ROW` bytes in one row; by its length alone, wherever blocks end."""
    pc = arrow().compute
    lengths = [pc.cast(pc.binary_length(column), "int64") for column in public.columns]
    if lengths and (pc.max(reduce(pc.add, lengths)).as_py() or 0) > LONGEST_ROW:
        raise DataError(_too_long(name))


def _too_long(name: str) -> str:
    return f"{name} has a row of more than {LONGEST_ROW >> 20} MB, or a quote that never ends"


def _answer(part: Part, delimiter: str, label: str | None, question: Callable[[], Any]) -> Any:
    """Return what Arrow answers, or raise what is wrong with the file: the first fault in the order of rows.

    That is raised outside of the handler, so that the original, which may quote a label, is not attached.
    """
    pa = arrow().core
    try:
        return question()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        if isinstance(error, KeyboardInterrupt | pa.ArrowCancelled | MemoryError):
            raise
    except OSError as error:
        if error.errno is not None:
            raise
    limit = python_csv.field_size_limit(2 * BLOCK)  # what is longer never comes here from Arrow
    try:
        with part.open_text() as stream:
            problem = _first_fault(part.name, delimiter, label, _Raw(stream))
    finally:
        python_csv.field_size_limit(limit)
    raise problem


def _first_fault(name: str, delimiter: str, label: str | None, raw: _Raw) -> LabelDPError:
    """Return what is wrong with the first row that is; it quotes nothing."""
    rows = _rows(raw, delimiter)
    header = next(rows, [])
    place = header.index(label) if label in header else None
    try:
        for number, row in enumerate(rows, 1):
            if len(row) != len(header):
                what = "more" if len(row) > len(header) else "fewer"
                return DataError(
                    f"{name} is ragged: row {number:,} has {what} values than its header. Values must be "
                    "separated by commas (.csv) or tabs (.tsv), not by semicolons"
                )
            if not _is_utf8(row):
                return DataError(f"{name} {_NOT_UTF8}")
            if place is not None and len(row.pop(place)) > LONGEST:
                return LabelError(TOO_LONG)
            if sum(len(value.encode()) for value in row) > LONGEST_ROW:
                return DataError(_too_long(name))
    except python_csv.Error:
        return DataError(_too_long(name))
    return DataError(f"{name} {_DAMAGED if raw.damaged else 'cannot be read as text with columns'}")


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
