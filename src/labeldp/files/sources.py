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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from labeldp._arrow import arrow
from labeldp.errors import DataError, DataNotFoundError
from labeldp.files.formats import compression_of, format_of, sniffed

__all__ = ["PIPE", "Part", "found", "partition_keys"]

PIPE = "-"
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
    """

    path: Path | None
    keys: dict[str, str | None] = field(default_factory=dict)
    spool: _Spool | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return "the table from the pipe" if self.path is None else str(self.path)

    def start(self) -> bytes:
        """Return the first bytes."""
        with self.open() as stream:
            return bytes(stream.read(4096))

    def open(self) -> Any:
        """Return a new Arrow stream from the start; closing it leaves others open."""
        pa = arrow().core
        if self.spool is None:
            return pa.OSFile(str(self.path))
        return pa.PythonFile(_View(self.spool), mode="r")

    def open_text(self) -> Any:
        """Return the same for text, unpacked if it is compressed."""
        pa = arrow().core
        packed = None if self.path is None else compression_of(self.path.name)
        if packed is None and self.start().startswith(_GZIP):
            packed = "gzip"
        return self.open() if packed is None else pa.CompressedInputStream(self.open(), packed)


class _Spool:
    """What came through a pipe, in a file without a name that only its owner can read: labels are read twice."""

    def __init__(self, pipe: BinaryIO) -> None:
        with tempfile.TemporaryFile() as file:
            shutil.copyfileobj(pipe, file, 1 << 20)
            file.flush()
            self.handle = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.handle)


class _View(io.RawIOBase):
    """An open file read from a place of its own, so that several can read it at once."""

    def __init__(self, spool: _Spool) -> None:
        self._spool = spool
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        got = os.preadv(self._spool.handle, [buffer], self._place)
        self._place += got
        return got

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: os.fstat(self._spool.handle).st_size}
        self._place = start[whence] + offset
        return self._place

    def tell(self) -> int:
        return self._place


def found(source: str, wanted: str | None) -> tuple[list[Part], str]:
    """Return the files of a table, in the order of their names and of numbers in them, and their format.

    Raises
    ------
    DataError
        If there are none, or of several formats.
    """
    if source == PIPE:
        part = Part(None, spool=_Spool(sys.stdin.buffer))
        return [part], wanted or _format_of_pipe(part)
    path = Path(source)
    if path.is_dir():
        files, root = sorted(_below(path), key=_in_order), path
    elif path.exists() or not glob.has_magic(source):
        if not path.exists():
            raise DataNotFoundError(f"there is no file {source}")
        files, root = [path], path.parent
    else:
        names = sorted(glob.glob(source, recursive=True), key=_in_order)
        files = [file for name in names if not _hidden(Path(name)) for file in _expanded(Path(name))]
        root = Path(*_fixed(Path(source)))
    if not files:
        raise DataNotFoundError(f"there are no files in {source}")
    kinds = {wanted} if wanted else {format_of(file.name) for file in files}
    if len(kinds) > 1:
        raise DataError(
            f"{source} holds several formats ({', '.join(sorted(map(str, kinds)))}): choose one by a glob"
        )
    whole = path.is_file()
    return [Part(file, {} if whole else _keys(file, root)) for file in files], str(kinds.pop())


def _format_of_pipe(part: Part) -> str:
    start = part.start()
    if start.startswith(_GZIP):
        with part.open_text() as text:
            start = text.read(4096)
    return sniffed(start)


def _in_order(path: Path | str) -> list[tuple[int, str]]:
    """Return a key by which 10 comes after 9: how many files there are may follow from the sizes of labels."""
    pieces = re.split(r"([0-9]+)", str(path))
    return [(int(piece) if place % 2 else 0, piece) for place, piece in enumerate(pieces)]


def _hidden(path: Path) -> bool:
    return path.name.startswith((".", "_")) or path.name.endswith((".part", ".card.json"))


def _below(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _hidden(Path(name))]
        yield from (Path(here, name) for name in names if not _hidden(Path(name)))


def _expanded(path: Path) -> list[Path]:
    return sorted(_below(path), key=_in_order) if path.is_dir() else [path]


def _fixed(pattern: Path) -> list[str]:
    """Return the folders before the first wildcard."""
    fixed: list[str] = []
    for part in pattern.parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return fixed


def _keys(file: Path, root: Path) -> dict[str, str | None]:
    return partition_keys(file.relative_to(root))


def partition_keys(path: Path) -> dict[str, str | None]:
    """Return what folders named ``key=value`` say, outermost first.

    Examples
    --------
    >>> partition_keys(Path("year=2024/region=north/a.csv"))
    {'year': '2024', 'region': 'north'}
    """
    pairs = [folder.split("=", 1) for folder in path.parts[:-1] if "=" in folder.strip("=")]
    return {unquote(key): None if value == _NO_VALUE else unquote(value) for key, value in pairs}
