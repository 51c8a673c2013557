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
def written_whole(path: str | os.PathLike[str], *, public: bool = False) -> Iterator[Path]:
    """Give a draft beside ``path`` to write to; it takes that name only if nothing goes wrong.

    Readable by its owner only, unless it is public: files of data sets hold labels.

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
        with open(draft, "rb+") as stream:
            os.fsync(stream.fileno())
        if public:
            draft.chmod(0o644)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def folder_written_whole(
    path: str | os.PathLike[str], *, replace: bool = False, check: Callable[[], None] | None = None
) -> Iterator[Path]:
    """Give a draft folder beside ``path`` to write files to; it takes that name only if nothing goes wrong.

    Parameters
    ----------
    path : path
    replace : bool
        Whether a folder of that name may be there; it is removed once the new one is in its place.
    check : callable, optional
        Raises if that folder may not be removed; asked at the last moment, because much can happen to a folder while
        another one is written.

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
        for each in draft.iterdir():
            with open(each, "rb+") as stream:
                os.fsync(stream.fileno())
            each.chmod(0o644)
        draft.chmod(0o755)
        if replace and path.is_dir():
            if check is not None:
                check()
            _swap(draft, path)
        else:
            os.rename(draft, path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _swap(draft: Path, path: Path) -> None:
    """Put a folder in the place of another, which goes only once that has worked."""
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{path.name}.", suffix=".old"))
    os.replace(path, aside)
    try:
        os.rename(draft, path)
    except BaseException:
        os.rename(aside, path)
        raise
    shutil.rmtree(aside, ignore_errors=True)
