"""The records of a text file, read within a limit: a line without an end must not fill the memory."""

from __future__ import annotations

import codecs
import csv as python_csv
import io
from collections.abc import Iterator
from typing import Any

from labeldp.files.dialect import UTF8

LONGEST_RECORD = 1 << 23
"""Characters of a record that can be read: its public values may have a million, and its label as many."""

TOO_LONG_RECORD = "the record is too long"

python_csv.field_size_limit(max(LONGEST_RECORD, python_csv.field_size_limit()))  # one for all threads


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


class Records(Iterator[list[str]]):
    """The records of a stream as lists of values, blank lines left out.

    Parameters
    ----------
    stream : Arrow stream
    encoding, separator : str
    strict : bool
        Whether only a separator or the end of a line may come after a closing quote, and all quotes must be
        closed.

    Attributes
    ----------
    lines : int
        How many lines were read.

    Raises
    ------
    csv.Error
        While it is read, if a record is longer than `LONGEST_RECORD`, or its quotes are wrong.
    """

    def __init__(self, stream: Any, encoding: str, separator: str, *, strict: bool = False) -> None:
        self._raw, self._left = RawStream(stream), LONGEST_RECORD
        self._text = text_reader(self._raw, encoding)
        self._reader = python_csv.reader(self._bounded_lines(), delimiter=separator, strict=strict)

    def _bounded_lines(self) -> Iterator[str]:
        while line := self._text.readline(self._left + 1):
            self._left -= len(line)
            if self._left < 0:
                raise python_csv.Error(TOO_LONG_RECORD)
            yield line

    def __next__(self) -> list[str]:
        row: list[str] = []
        while not row:
            self._left = LONGEST_RECORD
            row = next(self._reader)
        return row

    @property
    def lines(self) -> int:
        """How many lines were read."""
        return int(self._reader.line_num)

    @property
    def damaged(self) -> bool:
        """Whether the stream ended because it could not be read."""
        return self._raw.damaged
