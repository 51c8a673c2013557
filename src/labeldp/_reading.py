"""Open files for reading: regular files only, and no more of them than expected.

A FIFO or a device at the path of a file would block a program or never end; a looping link has no file at all.
Every file that the library reads is opened here. To read a pipe, pass ``-`` where a source is asked for.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import Any, BinaryIO

from labeldp.errors import DataError, DataNotFoundError


def open_regular(path: str | os.PathLike[str], opener: Callable[[str], Any] | None = None) -> Any:
    """Open a regular file for reading bytes; refuse everything else at once.

    Parameters
    ----------
    path : path-like
        Links are followed.
    opener : callable, optional
        Called with the path once it is known to be a regular file, such as ``pyarrow.OSFile``. By default a
        buffered Python file is returned.

    Raises
    ------
    DataNotFoundError
        If there is no such file.
    DataError
        If it is a folder, a FIFO, a device, a socket, a looping link or no possible path.

    Examples
    --------
    >>> open_regular("/dev/null")
    Traceback (most recent call last):
    labeldp.errors.DataError: /dev/null is not a regular file; to read from a pipe, use - as the source
    """
    regular_status(path)
    if opener is not None:
        return opener(os.fspath(path))
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    handle = os.open(path, flags)
    try:
        _refuse_irregular(path, os.fstat(handle))  # it may have been replaced in between
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the bytes of a regular file that has at most ``limit`` of them.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "card.json")
    >>> _ = path.write_bytes(b"x" * 11)
    >>> read_regular(path, limit=10)
    Traceback (most recent call last):
    labeldp.errors.DataError: ...card.json is too large: it may have 10 bytes at most
    """
    stream: BinaryIO
    with open_regular(path) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"{os.fspath(path)} is too large: it may have {limit:,} bytes at most")
    return content


def regular_status(path: str | os.PathLike[str]) -> os.stat_result:
    """Return the status of a regular file; raise as `open_regular` does for everything else."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise DataNotFoundError(f"there is no file {os.fspath(path)}") from None
    except ValueError:  # a null character
        raise DataError("a path must not contain a null character") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DataError(f"{os.fspath(path)} is a link that leads back to itself") from None
        raise
    _refuse_irregular(path, status)
    return status


def _refuse_irregular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"{os.fspath(path)} is a folder, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{os.fspath(path)} is not a regular file; to read from a pipe, use - as the source")
