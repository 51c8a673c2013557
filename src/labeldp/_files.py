"""Files and folders that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["folder_written_whole", "refuse_unwritable", "written_whole"]


def refuse_unwritable(path: str | os.PathLike[str]) -> None:
    """Try whether a draft can be made beside ``path``.

    Raises
    ------
    OSError
        If it cannot: the disk may be read-only, or the name too long.
    """
    path = Path(path)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", suffix=".part"):
        pass


@contextmanager
def written_whole(path: str | os.PathLike[str], *, public: bool = False, most: int = 0o666) -> Iterator[Path]:
    """Give a draft beside ``path`` to write to; it takes that name only if nothing goes wrong.

    Parameters
    ----------
    path : path
    public : bool
        Whether others may read it, as far as the umask lets them. By default only its owner may: files of data
        sets hold labels.
    most : int
        The most rights that a public file gets.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp(), "table.txt")
    >>> with written_whole(target) as draft:
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
        os.replace(draft, path)
        _flush(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def folder_written_whole(
    path: str | os.PathLike[str],
    *,
    replace: bool = False,
    check: Callable[[], None] | None = None,
    most: int = 0o666,
) -> Iterator[Path]:
    """Give a draft folder beside ``path`` to write files to; it takes that name only if nothing goes wrong.

    Parameters
    ----------
    path : path
    replace : bool
        Whether a folder of that name may be there; it is removed once the new one is in its place. No system call
        swaps two folders everywhere: a kill in the one moment between two renames leaves the old folder beside the
        name, with ``.old`` at its end, and the new one with ``.part``.
    check : callable, optional
        Raises if that folder may not be removed; asked at the last moment, because much can happen to a folder
        while another one is written.
    most : int
        The most rights that its files get.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp(), "model")
    >>> with folder_written_whole(target) as draft:
    ...     _ = (draft / "part.txt").write_text("all of it")
    >>> [each.name for each in target.iterdir()], len(list(target.parent.iterdir()))
    (['part.txt'], 1)
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{path.name}.", suffix=".part"))
    try:
        yield draft
        rights = _rights(most)
        for each in draft.iterdir():
            _flush(each)
            each.chmod(rights)
        _flush(draft)
        draft.chmod(rights | (rights & 0o444) >> 2)  # whoever may read its files may enter it
        if replace and path.is_dir():
            if check is not None:
                check()
            _swap(draft, path)
        else:
            os.rename(draft, path)
        _flush(path.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _rights(most: int) -> int:
    """Return the rights of a new file that others may read; its owner may always write it."""
    mask = os.umask(0o077)  # there is no way to ask without setting it; a file made meanwhile gets less, not more
    os.umask(mask)
    return (most & 0o666 & ~mask) | 0o600


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _swap(draft: Path, path: Path) -> None:
    """Put a folder in the place of another, which goes only once that has worked."""
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{path.name}.", suffix=".old"))
    try:
        os.replace(path, aside)
        os.rename(draft, path)
    finally:
        if not os.path.lexists(path):
            os.rename(aside, path)
        shutil.rmtree(aside, ignore_errors=True)
