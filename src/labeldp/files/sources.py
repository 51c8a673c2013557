"""Where a table lies: a file, a folder of files, a glob, or a pipe."""

from __future__ import annotations

import glob
import io
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from labeldp.errors import DataError, DataNotFoundError, ParameterError
from labeldp.files.formats import compression_of, format_of, sniff_format
from labeldp.files.places import PIPE

__all__ = ["Part", "ask_arrow", "find_parts", "refuse_label_folders"]

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_GZIP = b"\x1f\x8b"


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
        What came through a pipe: a file without a name that only its owner can read, since labels are read twice.
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
            return pa.OSFile(str(self.path))
        return pa.PythonFile(_View(self.spool), mode="r")

    def open_text(self) -> Any:
        """Return the same for text, unpacked if it is compressed."""
        packed = None if self.path is None else compression_of(self.path.name)
        if packed is None:
            with self.open() as stream:
                packed = "gzip" if stream.read(2) == _GZIP else None
        return self.open() if packed is None else pa.CompressedInputStream(self.open(), packed)


class _View(io.RawIOBase):
    """An open file read from a place of its own, so that several can read it at once."""

    def __init__(self, handle: int) -> None:
        self._handle, self._place = handle, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = os.preadv(self._handle, [buffer], self._place)
        self._place += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        size = os.fstat(self._handle).st_size
        self._place = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: size}[whence] + offset
        return self._place

    def tell(self) -> int:
        return self._place


def ask_arrow(question: Callable[[], Any], complaint: str) -> Any:
    """Return what Arrow answers, or complain, without the original error, which may quote a label."""
    try:
        return question()
    except (pa.ArrowException, EOFError, UnicodeDecodeError) as error:
        if isinstance(error, KeyboardInterrupt | pa.ArrowCancelled | MemoryError):
            raise
    except OSError as error:
        if error.errno is not None:
            raise
    raise DataError(complaint)


def find_parts(source: str, format: str | None) -> tuple[list[Part], str]:
    """Return the files of a table, in the order of their names and of numbers in them, and their format.

    Raises
    ------
    DataError
        If there are none, or of several formats, or two are the same file.
    """
    path = Path(source)
    if source == PIPE:
        return _spool(sys.stdin.buffer, format)
    if path.is_fifo():
        with open(path, "rb") as pipe:
            return _spool(pipe, format)
    if path.is_dir():
        files, root = _files_below(path), path
    elif path.exists() or not glob.has_magic(source):
        if not path.exists():
            raise DataNotFoundError(f"there is no file {source}")
        files, root = [path], path.parent
    else:
        paths = (Path(name) for name in sorted(glob.glob(source, recursive=True), key=_sort_key))
        files = [file for each in paths if not _is_hidden(each) for file in _files_below(each)]
        root = Path(*_fixed_folders(path))
    if not files:
        raise DataNotFoundError(f"there are no files in {source}")
    files = list(dict.fromkeys(files))  # a glob may match a folder and what is in it
    _refuse_links(files)
    formats = {format} if format else {format_of(file.name) for file in files}
    if len(formats) > 1:
        raise DataError(
            f"{source} holds several formats ({', '.join(sorted(map(str, formats)))}): choose one by a glob"
        )
    whole = path.is_file()
    parts = [Part(file, {} if whole else _partition_keys(file.relative_to(root))) for file in files]
    return parts, str(formats.pop())


def _refuse_links(files: list[Path]) -> None:
    """Refuse a file with two names: its labels would be released twice, and charged once."""
    names: dict[tuple[int, int], Path] = {}
    for file in files:
        status = file.stat()
        other = names.setdefault((status.st_dev, status.st_ino), file)
        if other is not file:
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
            start = ask_arrow(lambda: stream.read(4096), f"{part.name} is damaged: it cannot be unpacked")
        format = sniff_format(bytes(start))
    return [part], format


def _sort_key(path: Path | str) -> list[tuple[int, str]]:
    """Return a key by which 10 comes after 9: how many files there are may follow from the sizes of labels."""
    pieces = re.split(r"([0-9]+)", str(path))
    return [(int(piece) if place % 2 else 0, piece) for place, piece in enumerate(pieces)]


def _is_hidden(path: Path) -> bool:
    return path.name.startswith((".", "_")) or path.name.endswith((".part", ".card.json"))


def _files_below(path: Path) -> list[Path]:
    files = [] if path.is_dir() else [path]
    for here, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not _is_hidden(Path(name))]
        files += (Path(here, name) for name in names if not _is_hidden(Path(name)))
    return sorted(files, key=_sort_key)


def _fixed_folders(pattern: Path) -> Iterator[str]:
    """Yield the folders before the first wildcard."""
    for part in pattern.parts[:-1]:
        if glob.has_magic(part):
            return
        yield part


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
    """Refuse files in folders named by the label: where a row lies would tell its label."""
    for part in parts:
        for key in _partition_keys(part.path.absolute()) if part.path is not None else ():
            if key.casefold() == label.casefold():
                raise ParameterError(
                    f"the files lie in folders named by the label, {key}=…/, and where a row lies gives its label "
                    "away: put them all into one folder first, in an order that does not tell"
                )
