"""Where a table is written until it is whole: a file, a folder of files, or a pipe."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from labeldp._arrow import arrow
from labeldp._files import folder_written_whole, refuse_unwritable, written_whole
from labeldp.errors import ParameterError
from labeldp.files.sources import PIPE

__all__ = ["Draft", "drafted", "is_folder", "refuse_target"]

_PART = re.compile(r"part-\d{5}\.\w+")


class Draft(Protocol):
    """A place for one or several files."""

    def add(self, extension: str) -> Any:
        """Return an Arrow stream for the next file."""

    def full(self) -> bool:
        """Whether a file with many rows should be followed by another."""

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file, by its name."""


class _File:
    def __init__(self, draft: Path, name: str) -> None:
        self._draft, self._name = draft, name

    def add(self, extension: str) -> Any:
        return arrow().core.OSFile(str(self._draft), "wb")

    def full(self) -> bool:
        return False

    def digests(self) -> dict[str, str]:
        return {self._name: _digest(self._draft)}


class _Folder:
    def __init__(self, draft: Path) -> None:
        self._draft = draft
        self._count = 0

    def add(self, extension: str) -> Any:
        self._count += 1
        return arrow().core.OSFile(str(self._draft / f"part-{self._count - 1:05d}.{extension}"), "wb")

    def full(self) -> bool:
        return True

    def digests(self) -> dict[str, str]:
        return {path.name: _digest(path) for path in sorted(self._draft.iterdir())}


class _Pipe:
    def __init__(self, spool: BinaryIO) -> None:
        self._spool = spool

    def add(self, extension: str) -> Any:
        return arrow().core.PythonFile(_Kept(self._spool), mode="w")

    def full(self) -> bool:
        return False

    def digests(self) -> dict[str, str]:
        self._spool.seek(0)
        digest = hashlib.file_digest(self._spool, "sha256")  # type: ignore[arg-type]
        return {PIPE: digest.hexdigest()}


class _Kept:
    """A file that stays open when Arrow closes it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()


def is_folder(to: str) -> bool:
    """Whether a target means a folder: it ends in a slash, or is one."""
    return to != PIPE and (to.endswith(("/", os.sep)) or os.path.isdir(to))


def refuse_target(to: str, *, force: bool, folder: bool = False) -> None:
    """Refuse to write where that cannot work, or would destroy something.

    Parameters
    ----------
    to : str
    force : bool
        Whether what is there may be replaced.
    folder : bool
        Whether it may be a folder, of files that this room wrote.

    Raises
    ------
    ParameterError
        If something is there, and may not be replaced.
    OSError
        If nothing can be written there.
    """
    if to == PIPE:
        return
    path = Path(to)
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent}: make it first")
    if os.path.lexists(path):
        _refuse_replacing(to, force, folder)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", str(path.parent))
    refuse_unwritable(path)


def _refuse_replacing(to: str, force: bool, folder: bool) -> None:
    path = Path(to)
    if path.is_dir():
        if path.is_symlink():
            raise ParameterError(f"{path} is a link to a folder: name the folder itself")
        if not folder:
            raise ParameterError(f"{path} is a folder: name a file")
        others = [each.name for each in path.iterdir() if not _PART.fullmatch(each.name)]
        if others:
            raise ParameterError(f"{path} is a folder with other files in it: choose another")
    elif is_folder(to):
        raise ParameterError(f"{path} is a file, not a folder: choose another, or leave out the slash")
    elif path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise ParameterError(f"{path} is not a file; for a pipe write -")
    if not force:
        raise ParameterError(f"{path} is there already; force=True replaces it")


@contextmanager
def drafted(to: str, most: int = 0o666) -> Iterator[Draft]:
    """Give a draft of a file, folder or pipe, which becomes the thing itself if nothing goes wrong."""
    if to == PIPE:
        with tempfile.TemporaryFile() as spool:
            yield _Pipe(spool)
            spool.seek(0)
            shutil.copyfileobj(spool, sys.stdout.buffer, 1 << 20)
            sys.stdout.buffer.flush()
    elif is_folder(to):
        again = partial(refuse_target, to, force=True, folder=True)
        with folder_written_whole(to, replace=True, check=again, most=most) as folder:
            yield _Folder(folder)
    else:
        with written_whole(to, public=True, most=most) as draft:
            yield _File(draft, Path(to).name)


def _digest(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
