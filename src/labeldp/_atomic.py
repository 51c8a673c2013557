"""Files and folders that appear complete or not at all.

A loose module, because `ledger`, `estimators` and rooms below them write files, and no room above has another
reason to. What each system can promise is in ``docs/faults.md``.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import portalocker

from labeldp._paths import resolve_path
from labeldp.errors import ParameterError

MARK = ".labeldp.part"
"""How the name of a file ends that keeps another name."""


@contextmanager
def atomic_file(
    path: str | os.PathLike[str], *, public: bool = False, most: int = 0o666, replace: bool = True
) -> Iterator[Path]:
    """Give a draft beside ``path`` to write to; it takes that name only if nothing goes wrong.

    Parameters
    ----------
    path : path-like
    public : bool
        Whether others may read it, as far as the umask lets them. By default only its owner may: files of data
        sets hold labels. On Windows the rights of its folder decide.
    most : int
        The most rights that a public file gets.
    replace : bool
        Whether it may take the place of another file, which may have come while the draft was written.

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
            draft.chmod(_rights(most))
        if replace:
            os.replace(draft, path)
        else:
            _put(draft, path)
        flush_folder(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _put(draft: Path, path: Path) -> None:
    """Give a draft a name that nothing has: of two that try at once, one fails."""
    try:
        if sys.platform == "win32":
            os.rename(draft, path)  # which replaces nothing there
            return
        try:
            os.link(draft, path)
            draft.unlink()
        except FileExistsError:
            raise
        except OSError:  # a disk that knows no links
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(draft, path)
    except FileExistsError:
        raise _name_conflict(path) from None


def _name_conflict(path: Path) -> ParameterError:
    return ParameterError(f"{path} exists already: pass force=True to replace it")


@contextmanager
def atomic_folder(
    path: str | os.PathLike[str], *, check: Callable[[], None] = lambda: None, most: int = 0o666
) -> Iterator[Path]:
    """Give a draft folder beside ``path`` to write files to; it takes that name only if nothing goes wrong.

    A folder of that name is removed once the new one is in its place. No system call swaps two folders everywhere:
    a kill in the one moment between two renames leaves the old folder beside the name, with ``.old`` at its end,
    and the new one with ``.part``.

    Parameters
    ----------
    path : path-like
    check : callable
        Raises if a folder that is there may not be removed; called at the last moment, because much can happen to
        a folder while another one is written.
    most : int
        The most rights that its files get.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp(), "model")
    >>> with atomic_folder(target) as draft:
    ...     _ = (draft / "part.txt").write_text("all of it")
    >>> [each.name for each in target.iterdir()], len(list(target.parent.iterdir()))
    (['part.txt'], 1)
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = beside(path, "part")
    draft.mkdir(0o777 if sys.platform == "win32" else 0o700)  # 0o700 would keep others out of it there, for good
    try:
        yield draft
        rights = _rights(most)
        for each in draft.iterdir():
            _flush(each)
            each.chmod(rights)
        flush_folder(draft)
        draft.chmod(rights | (rights & 0o444) >> 2)  # whoever may read its files may enter it
        is_full = path.is_dir() and any(path.iterdir())
        if path.is_dir():
            check()
        if is_full:
            _swap(draft, path)
        else:
            _put_folder(draft, path)
        flush_folder(path.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _put_folder(draft: Path, path: Path) -> None:
    """Give a draft folder a name that nothing has, or an empty folder: of two that try at once, one fails."""
    try:
        if sys.platform == "win32" and path.is_dir():
            path.rmdir()  # a rename replaces nothing there, and elsewhere an empty folder
        os.rename(draft, path)
    except OSError:
        if os.path.lexists(path):
            raise _name_conflict(path) from None
        raise


@contextmanager
def reserve_name(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep a name for this block: who asks for it meanwhile, in another thread or process, is refused at once.

    The lock is on an empty file beside it, with ``.labeldp.part`` at its end, which goes with the block. A kill
    may leave that file, but not the lock: it keeps nobody out. Where a disk knows no locks, no name is kept.

    Raises
    ------
    ParameterError
        If the name is kept for another, or something else has the name of that file.

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
    mark = _mark_of(Path(path))
    try:
        handle = _lock(mark)
    except portalocker.AlreadyLocked:
        raise ParameterError(f"another release is being written to {path}: choose another name, or wait") from None
    try:
        yield
    finally:
        _unlock(handle, mark)


def _mark_of(path: Path) -> Path:
    """Return the file that keeps a name, where the system would put that name: links come before ``..``."""
    if path.name in ("", ".."):
        path = resolve_path(path)
    return resolve_path(path.parent) / f"{path.name}{MARK}"


def _lock(mark: Path) -> int:
    """Return an open file that is locked; where a disk knows no locks, the second is refused at the end."""
    for _ in range(100):
        handle = _open_mark(mark)
        try:
            portalocker.lock(handle, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
            if os.path.samestat(os.fstat(handle), os.lstat(mark)):
                return handle
        except portalocker.AlreadyLocked:
            os.close(handle)
            raise
        except portalocker.LockException:
            return handle
        except FileNotFoundError:
            pass
        os.close(handle)  # whoever had it has just removed it
    return _open_mark(mark)  # a disk that gives a file another number each time


def _open_mark(mark: Path) -> int:
    """Open the file that keeps a name, and wait for nobody; refuse whatever else is there."""
    refusal = ParameterError(f"{mark} is in the way: move it elsewhere, or choose another name")
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe waits for its other end
    try:
        try:
            handle = os.open(mark, os.O_RDWR | os.O_CREAT | flags, 0o666)
        except PermissionError:  # another user's
            handle = os.open(mark, os.O_RDONLY | flags)
    except OSError:
        if os.path.lexists(mark):
            raise refusal from None
        raise
    if not _is_mark(os.fstat(handle)):
        os.close(handle)
        raise refusal
    if sys.platform != "win32":
        with suppress(OSError):  # another user's
            os.fchmod(handle, 0o644)  # whatever the umask: after a kill, others must be able to open it
    return handle


def _is_mark(found: os.stat_result) -> bool:
    """Whether this may be a file that keeps a name: nothing is lost with an empty one that has no second name."""
    return stat.S_ISREG(found.st_mode) and found.st_size == 0 and found.st_nlink <= 1


def _unlock(handle: int, mark: Path) -> None:
    """Give a lock back, and remove its file: before, as it may be another's after; Windows removes none open."""
    if sys.platform != "win32":
        _remove_mark(mark)
    with suppress(portalocker.LockException):  # closing would not unlock it while a forked child has it open
        portalocker.unlock(handle)
    os.close(handle)
    if sys.platform == "win32":
        _remove_mark(mark)


def _remove_mark(mark: Path) -> None:
    with suppress(OSError):  # another user's, or another has it open by now
        if _is_mark(os.lstat(mark)):
            mark.unlink()


def _rights(most: int) -> int:
    """Return the rights of a new file that others may read; its owner may always write it."""
    mask = os.umask(0o077)  # it cannot be read without setting it; a file created meanwhile gets less, not more
    os.umask(mask)
    return (most & 0o666 & ~mask) | 0o600


def beside(path: Path, ending: str) -> Path:
    """Return a name for something that lies beside a path for a while; nothing has it yet.

    Examples
    --------
    >>> name, _, ending = beside(Path("model"), "old").name.split(".")
    >>> name, ending
    ('model', 'old')
    """
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.{ending}")


def flush_file(handle: int) -> None:
    """Wait until what was written to an open file is on the disk."""
    if sys.platform == "darwin":  # where fsync leaves it in the memory of the disk itself
        import fcntl  # noqa: PLC0415

        try:
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        except OSError:  # a network's or a foreign disk that knows no such call
            os.fsync(handle)
    else:
        os.fsync(handle)


def flush_folder(path: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on the disk; Windows flushes no folders, and NTFS has its journal."""
    if sys.platform != "win32":
        _flush(path, os.O_RDONLY)


def _flush(path: str | os.PathLike[str], flags: int = os.O_RDWR) -> None:
    handle = os.open(path, flags)  # Windows flushes only what could be written
    try:
        flush_file(handle)
    finally:
        os.close(handle)


def _swap(draft: Path, path: Path) -> None:
    """Put a folder in the place of another, which goes only once that has worked."""
    aside = beside(path, "old")
    try:
        os.rename(path, aside)
        os.rename(draft, path)
    finally:
        if not os.path.lexists(path):
            os.rename(aside, path)
        shutil.rmtree(aside, ignore_errors=True)
