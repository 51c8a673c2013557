"""CSV and TSV: every column as the text that is there, and complaints that follow from rows, not from blocks.

PyArrow reads blocks of bytes, labels included. Where they end must show nowhere, so its guesses of types are not
used, its batches are cut again by `labeldp.files.table`, and what it complains about is found again row by row.
"""

from __future__ import annotations

import csv as python_csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from labeldp._arrow import arrow
from labeldp.errors import DataError
from labeldp.files.sources import Part

__all__ = ["DELIMITERS", "column_names", "refuse_long_rows", "text_batches"]

DELIMITERS = {"csv": ",", "tsv": "\t"}
BLOCK = 1 << 22
"""Bytes read at a time."""

LONGEST_ROW = 1 << 20
"""Bytes that the public values of a row may have: with a label a row is then shorter than a block."""


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
        reader = _readable(part, delimiter, lambda: _reader(stream, delimiter, columns, blank=blank))
        while (batch := _readable(part, delimiter, lambda: next(reader, None))) is not None:
            if batch.num_rows:
                yield batch


def _reader(stream: Any, delimiter: str, columns: Sequence[str] | None = None, *, blank: bool = False) -> Any:
    pa, csv = arrow().core, arrow().csv
    convert = csv.ConvertOptions(
        include_columns=None if columns is None else list(columns), default_column_type=pa.string()
    )
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not blank)
    read = csv.ReadOptions(block_size=BLOCK)
    return csv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert)


def column_names(part: Part, delimiter: str) -> list[str]:
    """Return the names in a text file's header."""
    with part.open_text() as stream:
        return list(_readable(part, delimiter, lambda: _reader(stream, delimiter).schema.names))


def refuse_long_rows(batch: Any, part: str) -> None:
    """Refuse public text of more than `LONGEST_ROW` bytes in one row; by its length alone, wherever blocks end."""
    pc = arrow().compute
    total = None
    for column in batch.columns:
        length = pc.cast(pc.binary_length(column), "int64")
        total = length if total is None else pc.add(total, length)
    if total is not None and (pc.max(total).as_py() or 0) > LONGEST_ROW:
        raise DataError(_too_long(part))


def _too_long(name: str) -> str:
    return f"{name} has a row of more than {LONGEST_ROW >> 20} MB, or a quote that never ends"


def _readable(part: Part, delimiter: str, call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns, or raise what is wrong with the file.

    That is raised outside of the handler, so that the original, which may quote a label, is not attached.
    """
    pa = arrow().core
    try:
        return call()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        if isinstance(error, KeyboardInterrupt | pa.ArrowCancelled | MemoryError):
            raise
    except OSError as error:
        if error.errno is not None:
            raise
    raise _complaint(part, delimiter)


def _complaint(part: Part, delimiter: str) -> DataError:
    """Return the first thing that is wrong with a file, in the order of its rows; it quotes nothing."""
    pa = arrow().core
    limit = python_csv.field_size_limit(LONGEST_ROW)
    try:
        with part.open_text() as stream:
            text = io.TextIOWrapper(io.BufferedReader(_Raw(stream)), "utf-8-sig", newline="")
            return _first_fault(part, delimiter, text)
    except UnicodeDecodeError:
        return DataError(f"{part.name} is not UTF-8 text")
    except python_csv.Error:  # a field without an end
        return DataError(_too_long(part.name))
    except (pa.ArrowException, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return DataError(f"{part.name} is damaged: it cannot be unpacked")
    finally:
        python_csv.field_size_limit(limit)


def _first_fault(part: Part, delimiter: str, text: io.TextIOWrapper) -> DataError:
    rows = python_csv.reader(text, delimiter=delimiter)
    header = next(rows, None)
    if not header:
        return DataError(f"{part.name} is empty")
    for number, row in enumerate((row for row in rows if row), 1):
        if len(row) != len(header):
            what = "more" if len(row) > len(header) else "fewer"
            return DataError(
                f"{part.name} is ragged: row {number:,} has {what} values than its header, of {len(header)}. "
                "Values must be separated by commas (.csv) or tabs (.tsv), not by semicolons"
            )
        if sum(map(len, row)) > LONGEST_ROW:
            return DataError(_too_long(part.name))
    return DataError(f"{part.name} cannot be read as text with columns")


class _Raw(io.RawIOBase):
    """An Arrow stream for Python's own readers."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
