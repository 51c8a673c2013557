"""Files: which paths are accepted, how they are read, and how they appear complete or not at all.

Only regular files are read: a FIFO or a device would block a program or never end, and a looping link has no
file. ``docs/faults.md`` states the promises for each system.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

import portalocker

from labeldp.errors import DataError, DataNotFoundError, ParameterError, Setting

StrPath = str | os.PathLike[str]

MARK = ".labeldp.part"
"""End of the name of the empty file that reserves another name."""

LONGEST_NAME = 255
"""Bytes of a name that common disks take."""


# ---- paths ---------------------------------------------------------------------------------------------


def as_path(path: StrPath, *, follow: bool = False) -> Path:
    r"""Return a path whose names can be written to a disk, a card and a report, or refuse it.

    Parameters
    ----------
    path : path-like
    follow : bool
        Return where it leads, links followed; what lies there need not exist.

    Raises
    ------
    ParameterError
        If it is not UTF-8, contains a null character, one of its names is too long, or it is followed and a link
        leads back to itself.

    Examples
    --------
    >>> as_path("out.csv").name
    'out.csv'
    >>> as_path("out\udcff.csv")
    Traceback (most recent call last):
    labeldp.errors.ParameterError: the path 'out\udcff.csv' is not valid UTF-8: rename the file or folder
    """
    text = os.fspath(path)
    try:
        is_long = any(len(name.encode()) > LONGEST_NAME for name in Path(text).parts)
    except UnicodeEncodeError:
        raise ParameterError(f"the path {text!r} is not valid UTF-8: rename the file or folder") from None
    if is_long or "\0" in text:
        raise ParameterError(
            f"the path {text[:100]!r} has a null character or is too long: its names may have {LONGEST_NAME} bytes"
        )
    try:
        return Path(path).resolve() if follow else Path(path)
    except (RuntimeError, OSError):  # which of the two depends on the version of Python
        raise ParameterError(f"{text} cannot be followed: a link leads back to itself") from None


# ---- reading -------------------------------------------------------------------------------------------


def open_regular(path: StrPath) -> BufferedReader:
    """Open a regular file for reading bytes; refuse everything else at once, as `regular_handle` does.

    Examples
    --------
    >>> open_regular("/dev/null")
    Traceback (most recent call last):
    labeldp.errors.DataError: /dev/null is not a regular file
    """
    return os.fdopen(regular_handle(path), "rb")


def regular_handle(path: StrPath) -> int:
    """Return a handle of a regular file; refuse everything else at once.

    Parameters
    ----------
    path : path-like
        Links are followed.
    access : int
        ``os.O_RDONLY`` or ``os.O_RDWR``.

    Raises
    ------
    DataNotFoundError
        If there is no such file.
    DataError
        If it is a folder, a FIFO, a device, a socket, a looping link or no possible path.
    """
    regular_status(path)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):  # a FIFO took its name meanwhile
        os.close(handle)
        raise DataError(f"{os.fspath(path)} is not a regular file")
    return handle


def read_regular(path: StrPath, limit: int) -> bytes:
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
    with open_regular(path) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"{os.fspath(path)} is too large: it may have {limit:,} bytes at most")
    return content


def regular_status(path: StrPath) -> os.stat_result:
    """Return the status of a regular file; raise as `regular_handle` does for all else."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise DataNotFoundError(f"there is no file {os.fspath(path)}") from None
    except ValueError:
        raise DataError("a path must be valid UTF-8 and must not contain a null character") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DataError(f"{os.fspath(path)} is a link that leads back to itself") from None
        raise
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"{os.fspath(path)} is a folder, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{os.fspath(path)} is not a regular file")
    return status


# ---- writing -------------------------------------------------------------------------------------------


@contextmanager
def atomic_file(
    path: StrPath, *, public: bool = False, max_rights: int = 0o666, replace: bool = True
) -> Iterator[Path]:
    """Give a temporary file beside ``path`` to write to; it takes that name only if nothing goes wrong.

    Parameters
    ----------
    path : path-like
    public : bool
        Whether others may read it, as far as the umask lets them. By default only its owner may: files of data
        sets hold labels. On Windows the rights of its folder decide.
    max_rights : int
        The most rights that a public file gets.
    replace : bool
        Whether it may take the place of another file, which may have appeared while this one was written.

    Raises
    ------
    ParameterError
        If there is another file that it may not replace.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp(), "table.txt")
    >>> with atomic_file(target) as draft:
    ...     _ = draft.write_text("all of it")
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('all of it', 1)
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".part")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        _flush(draft)
        if public:
            draft.chmod(_rights(max_rights))
        if replace:
            os.replace(draft, path)
        else:
            _name_new(draft, path)
        flush_folder(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _name_new(draft: Path, path: Path) -> None:
    """Give a temporary file a name that nothing has: of two that try at once, one fails."""
    try:
        if sys.platform == "win32":
            os.rename(draft, path)  # which replaces nothing there
        else:
            _link(draft, path)
    except FileExistsError:
        raise _name_conflict(path) from None


def _link(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a disk without links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(draft, path)
    else:
        draft.unlink()


def _name_conflict(path: Path) -> ParameterError:
    return ParameterError(f"{path} exists already: pass ", Setting("force", True), " to replace it")


@contextmanager
def atomic_folder(path: StrPath, *, check: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """Give a temporary folder beside ``path`` to write files to; it takes that name only if nothing goes wrong.

    A folder of that name is removed once the new one is in its place. No system call swaps two folders everywhere:
    a kill in the one moment between two renames leaves the old folder beside the name, with ``.old`` at its end,
    and the new one with ``.part``.

    Parameters
    ----------
    path : path-like
    check : callable
        Raises if a folder that is there may not be removed; called at the last moment, because much can happen to
        a folder while another one is written.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp(), "model")
    >>> with atomic_folder(target) as draft:
    ...     _ = (draft / "model.txt").write_text("all of it")
    >>> [file.name for file in target.iterdir()], len(list(target.parent.iterdir()))
    (['model.txt'], 1)
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _temporary_name(path, "part")
    draft.mkdir(0o777 if sys.platform == "win32" else 0o700)  # 0o700 would keep others out of it there, for good
    try:
        yield draft
        rights = _rights(0o666)
        for file in draft.iterdir():
            _flush(file)
            file.chmod(rights)
        flush_folder(draft)
        draft.chmod(rights | (rights & 0o444) >> 2)  # whoever may read its files may enter it
        if path.is_dir():
            check()
        if path.is_dir() and any(path.iterdir()):
            _swap(draft, path)
        else:
            _name_new_folder(draft, path)
        flush_folder(path.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _name_new_folder(draft: Path, path: Path) -> None:
    """Give a temporary folder a name that nothing has, or an empty folder: of two that try at once, one fails."""
    try:
        if sys.platform == "win32" and path.is_dir():
            path.rmdir()  # a rename replaces nothing there, and elsewhere an empty folder
        os.rename(draft, path)
    except OSError:
        if os.path.lexists(path):
            raise _name_conflict(path) from None
        raise


@contextmanager
def reserve_name(path: StrPath) -> Iterator[None]:
    """Reserve a name for this block: another thread or process that asks for it is refused at once.

    The lock is on an empty file beside it, with ``.labeldp.part`` at its end, which goes with the block. A kill
    may leave that file, but not the lock: it keeps nobody out. Where a disk has no locks, no name is reserved.

    Raises
    ------
    ParameterError
        If the name is reserved already.
    OSError
        If there is no such folder, or nothing can be written to it.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp(), "table.csv")
    >>> with reserve_name(target), reserve_name(target):
    ...     pass
    Traceback (most recent call last):
    labeldp.errors.ParameterError: another release is being written to ...table.csv: choose another name, or wait
    >>> list(target.parent.iterdir())
    []
    """
    target = Path(path)
    if target.name in ("", ".."):
        target = target.resolve()
    mark = target.parent.resolve() / f"{target.name}{MARK}"  # as the system does, links come before ..
    handle = _lock(mark, path)
    try:
        yield
    finally:
        if sys.platform != "win32":  # which removes no open file; elsewhere another may have it once unlocked
            mark.unlink(missing_ok=True)
        with suppress(portalocker.LockException):  # closing does not unlock it while a forked child has it open
            portalocker.unlock(handle)
        os.close(handle)
        if sys.platform == "win32":
            with suppress(OSError):  # another has it open by now
                mark.unlink()


def _lock(mark: Path, path: StrPath) -> int:
    """Return an open file that is locked; where a disk has no locks, the second is refused at the end."""
    for _ in range(100):
        handle = os.open(mark, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            portalocker.lock(handle, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
            if os.path.samestat(os.fstat(handle), os.stat(mark)):
                return handle
        except portalocker.AlreadyLocked:
            os.close(handle)
            raise ParameterError(
                f"another release is being written to {path}: choose another name, or wait"
            ) from None
        except portalocker.LockException:
            return handle
        except FileNotFoundError:
            pass
        os.close(handle)  # its owner has just removed it
    return os.open(mark, os.O_RDWR | os.O_CREAT, 0o600)  # a disk that gives a file another number each time


def _rights(max_rights: int) -> int:
    """Return the rights of a new file that others may read; its owner may always write it."""
    mask = os.umask(0o077)  # it cannot be read without setting it; a file created meanwhile gets less, not more
    os.umask(mask)
    return (max_rights & 0o666 & ~mask) | 0o600


def _temporary_name(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.{ending}")


def flush_file(handle: int) -> None:
    """Wait until the content of an open file is on the disk."""
    if sys.platform == "darwin":  # where fsync leaves it in the memory of the disk itself
        import fcntl  # noqa: PLC0415

        try:
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        except OSError:  # a network's or a foreign disk without this call
            os.fsync(handle)
    else:
        os.fsync(handle)


def flush_folder(path: StrPath) -> None:
    """Wait until the names in a folder are on the disk; Windows flushes no folders, and NTFS has its journal."""
    if sys.platform != "win32":
        _flush(path, os.O_RDONLY)


def _flush(path: StrPath, flags: int = os.O_RDWR) -> None:
    handle = os.open(path, flags)  # Windows flushes only what could be written
    try:
        flush_file(handle)
    finally:
        os.close(handle)


def _swap(draft: Path, path: Path) -> None:
    """Put a folder in the place of another, which goes only once that has worked."""
    aside = _temporary_name(path, "old")
    try:
        os.rename(path, aside)
        os.rename(draft, path)
    finally:
        if not os.path.lexists(path):
            os.rename(aside, path)
        shutil.rmtree(aside, ignore_errors=True)
