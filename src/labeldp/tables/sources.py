"""The files of a table: a file, a folder or a pipe, and the rows of Parquet files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from labeldp._atomic import as_path, regular_status
from labeldp.errors import DataError, DataNotFoundError, ParameterError
from labeldp.tables.paths import PIPE, compression_of, format_of, is_hidden, sniff_format

_GZIP = b"\x1f\x8b"


def guard_arrow(call: Callable[[], Any], complaint: str) -> Any:
    """Return what a call of Arrow returns, or complain, without the original error, which may quote a label."""
    try:
        return call()
    except (pa.ArrowException, EOFError, UnicodeDecodeError) as error:
        if isinstance(error, KeyboardInterrupt | pa.ArrowCancelled | MemoryError):
            raise
    except OSError as error:
        if error.errno is not None:
            raise
    raise DataError(complaint)


@dataclass(frozen=True)
class Part:
    """One file of a table.

    Attributes
    ----------
    path : Path or None
        None if it came through a pipe.
    data : buffer or None
        What came through a pipe, in memory, since labels are read twice.
    compression : str or None
        Of text.
    """

    path: Path | None
    data: Any = field(default=None, repr=False)
    compression: str | None = None

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return "the table from the pipe" if self.path is None else str(self.path)

    def open(self) -> Any:
        """Return a new Arrow stream from the start; closing it leaves others open."""
        return pa.BufferReader(self.data) if self.path is None else pa.OSFile(str(self.path))

    def open_text(self) -> Any:
        """Return the same for text, unpacked if it is compressed."""
        is_plain = self.compression is None
        return self.open() if is_plain else pa.CompressedInputStream(self.open(), self.compression)

    def guard(self, call: Callable[[], Any]) -> Any:
        """Return what a call of Arrow returns, or say that the file is damaged."""
        return guard_arrow(call, f"{self.name} is damaged, or of another format than its name says")

    def query(self, question: Callable[[Any], Any]) -> Any:
        """Return what the open Parquet file answers."""
        with self.open() as stream:
            return self.guard(lambda: question(_parquet(stream)))

    def parquet_batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Yield batches of a Parquet file, of at most so many rows.

        They come page by page, so that a file of one huge row group needs no more memory than others.
        """
        with self.open() as stream:
            batches = self.guard(lambda: _parquet(stream).iter_batches(batch_size=rows, columns=names))
            while (batch := self.guard(lambda: next(batches, None))) is not None:
                if batch.num_rows:
                    yield batch.select(names)


def _parquet(stream: Any) -> Any:
    import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

    return pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)


def schema_of(file: Any) -> Any:
    """Return the columns that an open file has."""
    schema = file.schema_arrow
    list(schema.names)  # raises here, where it is caught, if a name is no text
    return schema


# ---- where files lie ------------------------------------------------------------------------------------------


def find_parts(source: str, format: str | None) -> tuple[list[Part], str]:
    """Return the files of a table, in the order of their names and of numbers in them, and their format.

    Raises
    ------
    DataError
        If there are none, or of several formats, or two are the same file.
    """
    path = as_path(source)
    if source == PIPE:
        return _read_pipe(format)
    if path.is_dir():
        root, files = path, list(map(as_path, _files_below(path)))
    elif os.path.lexists(path):
        root, files = path.parent, [path]
    else:
        raise DataNotFoundError(f"there is no file {source}")
    if not files:
        raise DataNotFoundError(f"there are no files in {source}")
    _refuse_links(files)
    formats = {format} if format else {format_of(file.name) for file in files}
    if len(formats) > 1:
        raise DataError(
            f"{source} holds several formats ({', '.join(sorted(map(str, formats)))}): name one of its files"
        )
    if any("=" in folder for file in files for folder in file.relative_to(root).parts[:-1]):
        raise DataError(
            f"{source} has folders named key=value, and what they say is not read: write it as a table of one "
            "folder first, with a column for each key"
        )
    return [Part(file, compression=compression_of(file.name)) for file in files], str(formats.pop())


def _refuse_links(files: list[Path]) -> None:
    """Refuse what is not a regular file, and one with two names: its labels would be released twice."""
    names: dict[tuple[int, int], Path] = {}
    for file in files:
        status = regular_status(file)
        other = names.setdefault((status.st_dev, status.st_ino), file)
        if other is not file and status.st_ino:  # some disks on Windows number no files
            raise DataError(
                f"{other} and {file} are the same file, and its labels would be released twice: remove the link"
            )


def _read_pipe(format: str | None) -> tuple[list[Part], str]:
    data = sys.stdin.buffer.read()
    part = Part(None, pa.py_buffer(data), "gzip" if data.startswith(_GZIP) else None)
    if format is None:
        with part.open_text() as stream:
            start = guard_arrow(lambda: stream.read(4096), f"{part.name} is damaged: it cannot be unpacked")
        format = sniff_format(bytes(start))
    return [part], format


def _sort_key(path: Path | str) -> list[tuple[int, str]]:
    """Return a key by which 10 comes after 9: how many files there are may follow from the sizes of labels."""
    pieces = re.split(r"([0-9]+)", Path(path).as_posix())  # one order of rows on every system
    return [(int(piece) if place % 2 else 0, piece) for place, piece in enumerate(pieces)]


def _files_below(path: Path) -> list[Path]:
    files = [] if path.is_dir() else [path]
    for here, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not is_hidden(name)]
        files += (Path(here, name) for name in names if not is_hidden(name))
    return sorted(files, key=_sort_key)


def refuse_label_folders(parts: list[Part], label: str) -> None:
    """Refuse files in folders named by the label: where a row lies would reveal its label."""
    for part in parts:
        for folder in part.path.absolute().parts[:-1] if part.path is not None else ():
            key, equals, _ = folder.partition("=")
            if equals and unquote(key).casefold() == label.casefold():
                raise ParameterError(
                    f"the files lie in folders named by the label, {key}=…/, and where a row lies gives its label "
                    "away: put them all into one folder first, in an order that reveals nothing"
                )
