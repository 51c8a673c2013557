"""The files of a table: where they lie, a folder, a glob or a pipe, and the rows of Parquet and Arrow files."""

from __future__ import annotations

import glob
import io
import os
import re
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from labeldp._atomic import as_path, regular_status
from labeldp.errors import DataError, DataNotFoundError, ParameterError
from labeldp.tables.paths import PIPE, compression_of, expand_glob, format_of, is_hidden, sniff_format

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_GZIP = b"\x1f\x8b"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Integers that int64 holds, written in the one way that comes back the same."""


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
    keys : dict
        What the folders around it say: ``region=north/`` is a column.
    spool : int or None
        What came through a pipe: a temporary file, since labels are read twice.
    """

    path: Path | None
    keys: dict[str, str | None] = field(default_factory=dict)
    spool: int | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return "the table from the pipe" if self.path is None else str(self.path)

    def open(self) -> Any:
        """Return a new Arrow stream from the start; closing it leaves others open."""
        if self.spool is None:
            regular_status(str(self.path))
            return pa.OSFile(str(self.path))
        return pa.PythonFile(_View(self.spool), mode="r")

    def open_text(self) -> Any:
        """Return the same for text, unpacked if it is compressed."""
        packed = self._compression
        return self.open() if packed is None else pa.CompressedInputStream(self.open(), packed)

    @cached_property
    def _compression(self) -> str | None:
        named = None if self.path is None else compression_of(self.path.name)
        if named is not None:
            return named
        with self.open() as stream:
            return "gzip" if stream.read(2) == _GZIP else None

    def guard(self, call: Callable[[], Any]) -> Any:
        """Return what a call of Arrow returns, or say that the file is damaged."""
        return guard_arrow(call, f"{self.name} is damaged, or of another format than its name says")

    def query(self, format: str, question: Callable[[Any], Any]) -> Any:
        """Return what the open Parquet or Arrow file answers."""
        with self.open() as stream:
            return self.guard(lambda: question(_reader(stream, format)))

    def batches(self, format: str, names: list[str], rows: int) -> Iterator[Any]:
        """Yield batches of a Parquet or Arrow file, of at most so many rows; they end where its own do."""
        batches = (_parquet_batches if format == "parquet" else _arrow_batches)(self, names, rows)
        while (batch := self.guard(lambda: next(batches, None))) is not None:
            if batch.num_rows:
                yield batch.select(names)


_turn = threading.Lock()
"""Whose turn it is to move the place in a spooled file and read there: not every system reads at a place."""


class _View(io.RawIOBase):
    """An open file read from a place of its own, so that several can read it at once."""

    def __init__(self, handle: int) -> None:
        self._handle, self._place = handle, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _turn:
            os.lseek(self._handle, self._place, os.SEEK_SET)
            data = os.read(self._handle, len(buffer))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        size = os.fstat(self._handle).st_size
        self._place = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: size}[whence] + offset
        return self._place

    def tell(self) -> int:
        return self._place


# ---- rows of Parquet and Arrow files --------------------------------------------------------------------------


def _reader(stream: Any, format: str) -> Any:
    """Return a reader; Arrow's file and stream formats go by the same names."""
    if format == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

        return pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)
    start = stream.read(6)
    stream.seek(0)
    return pa.ipc.open_file(stream) if start == b"ARROW1" else pa.ipc.open_stream(stream)


def schema_of(file: Any) -> Any:
    """Return the columns that an open file has."""
    schema = getattr(file, "schema_arrow", None) or file.schema
    list(schema.names)  # raises here, where it is caught, if a name is no text
    return schema


def public_codec(file: Any, label: str | None) -> str | None:
    """Return how the first public column of an open Parquet file is compressed."""
    meta = file.metadata
    columns = [meta.row_group(0).column(k) for k in range(meta.num_columns)] if meta.num_row_groups else []
    return next((str(each.compression).lower() for each in columns if each.path_in_schema != label), None)


def _parquet_batches(part: Part, names: list[str], rows: int) -> Iterator[Any]:
    """Yield batches page by page, so that a file of one huge row group needs no more memory than others."""
    with part.open() as stream:
        yield from _reader(stream, "parquet").iter_batches(batch_size=rows, columns=names)


def _arrow_batches(part: Part, names: list[str], rows: int) -> Iterator[Any]:
    """Yield batches of one of Arrow's files or streams, checked to the last offset."""
    with part.open() as stream:
        batches = reader = _reader(stream, "arrow")
        if hasattr(reader, "get_batch"):  # a file, of which some columns can be read alone
            places = [reader.schema.get_field_index(name) for name in names]
            some = pa.ipc.open_file(stream, options=pa.ipc.IpcReadOptions(included_fields=places))
            batches = map(some.get_batch, range(some.num_record_batches))
        for batch in batches:
            batch.validate(full=True)  # offsets are taken on trust otherwise, and could point anywhere
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)


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
        return _spool(sys.stdin.buffer, format)
    if path.is_dir():
        root, files = path, list(map(as_path, _files_below(path)))
    elif os.path.lexists(path):
        root, files = path.parent, [path]
    elif not glob.has_magic(source):
        raise DataNotFoundError(f"there is no file {source}")
    else:
        root, paths = expand_glob(path)
        found = [file for each in sorted(paths, key=_sort_key) for file in _files_below(each)]
        files = list(dict.fromkeys(map(as_path, found)))  # a glob may match a folder and what is in it
    if not files:
        raise DataNotFoundError(f"there are no files in {source}")
    _refuse_links(files)
    formats = {format} if format else {format_of(file.name) for file in files}
    if len(formats) > 1:
        raise DataError(
            f"{source} holds several formats ({', '.join(sorted(map(str, formats)))}): choose one by a glob"
        )
    parts = [Part(file, _partition_keys(file.relative_to(root))) for file in files]
    return parts, str(formats.pop())


def _refuse_links(files: list[Path]) -> None:
    """Refuse what is not a regular file, and one with two names: its labels would be released twice."""
    names: dict[tuple[int, int], Path] = {}
    for file in files:
        status = regular_status(file)
        other = names.setdefault((status.st_dev, status.st_ino), file)
        if other is not file and status.st_ino:  # some disks on Windows number no files
            raise DataError(
                f"{other} and {file} are the same file, and its labels would be released twice: remove the link, "
                "or leave it out by a glob"
            )


def _spool(pipe: BinaryIO, format: str | None) -> tuple[list[Part], str]:
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(pipe, file, 1 << 20)
        file.flush()
        handle = os.dup(file.fileno())
    part = Part(None, spool=handle)
    weakref.finalize(part, os.close, handle)
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


def _partition_keys(path: Path) -> dict[str, str | None]:
    """Return what folders named ``key=value`` say, outermost first.

    Examples
    --------
    >>> _partition_keys(Path("year=2024/region=north/a.csv"))
    {'year': '2024', 'region': 'north'}
    """
    pairs = [folder.split("=", 1) for folder in path.parts[:-1] if "=" in folder.strip("=")]
    return {unquote(key): None if value == _NO_VALUE else unquote(value) for key, value in pairs}


def refuse_label_folders(parts: list[Part], label: str) -> None:
    """Refuse files in folders named by the label: where a row lies would reveal its label."""
    for part in parts:
        for key in _partition_keys(part.path.absolute()) if part.path is not None else ():
            if key.casefold() == label.casefold():
                raise ParameterError(
                    f"the files lie in folders named by the label, {key}=…/, and where a row lies gives its label "
                    "away: put them all into one folder first, in an order that reveals nothing"
                )


def folder_types(parts: list[Part]) -> dict[str, Any]:
    """Return the type of each column that folders name: integers where all are, else text."""
    names = list(parts[0].keys)
    if any(list(part.keys) != names for part in parts):
        raise DataError("some files lie in folders named key=value and others do not, or in other ones")
    kinds = {}
    for name in names:
        values = [value for part in parts if (value := part.keys[name]) is not None]
        integers = bool(values) and all(_INTEGER.fullmatch(value) for value in values)
        kinds[name] = pa.int64() if integers else pa.string()
    return kinds
