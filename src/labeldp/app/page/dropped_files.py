"""Files that were dropped on the page: copies in a hidden folder, which is removed when labeldp ends."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

import portalocker

PREFIX = ".labeldp-page-"
"""How the names of the hidden folders begin; each process has one, and locks it."""

_HIDDEN = re.compile(rf"{re.escape(PREFIX)}[0-9a-f]{{8}}")
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])[ ]*(\.|$)", re.IGNORECASE)
"""How names begin that Windows takes for devices, whatever their ending."""


class DroppedFiles:
    """The hidden folder of one run inside the chosen one; it is created with the first file.

    Parameters
    ----------
    root : Path
        The chosen folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder: Path | None = None
        self._lock = -1

    @property
    def folder(self) -> Path:
        """The hidden folder, which only its owner can read."""
        while self._folder is None:
            self.remove_leftovers()
            folder = self._root / f"{PREFIX}{secrets.token_hex(4)}"
            folder.mkdir(0o700)
            try:
                self._lock = _lock_folder(folder)
            except (BlockingIOError, FileNotFoundError):  # another process took it for a leftover
                continue
            except OSError:  # nobody could see later that it is left over
                shutil.rmtree(folder, ignore_errors=True)
                raise
            if (folder / "lock").exists():
                self._folder = folder
            else:
                os.close(self._lock)
        return self._folder

    def new_file(self, name: str) -> tuple[Path, int]:
        """Return the path of a new file for what is dropped, and an open handle; only its owner can read it."""
        parent = self.folder / secrets.token_hex(4)
        parent.mkdir(0o700)
        return parent / safe_name(name), _new_file(parent / safe_name(name))

    def entry_page(self) -> tuple[Path, int]:
        """Return the path of a new file that leads a browser to the page, and an open handle.

        It is in the chosen folder itself, because many browsers may not read hidden or temporary folders. It is
        removed with the hidden folder that it is named after.
        """
        path = _entry_page_of(self.folder)
        return path, _new_file(path)

    def contains(self, path: Path) -> bool:
        """Whether a path is that of a dropped file."""
        return self._folder is not None and self._folder in path.parents

    def remove(self) -> None:
        """Remove everything."""
        if self._folder is not None:
            _remove(self._folder, self._lock)
            self._folder = None

    def remove_leftovers(self) -> None:
        """Remove what processes left behind that have ended; those that have not hold a lock."""
        for folder in self._root.glob(f"{PREFIX}*"):
            if _HIDDEN.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
                with suppress(OSError):
                    _remove(folder, _lock_folder(folder))


def _new_file(path: Path) -> int:
    """Return a handle for a new file that only its owner can read."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)


def _entry_page_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name.removeprefix('.')}.html")


def _remove(folder: Path, lock: int) -> None:
    """Remove a folder and then unlock it; Windows removes the lock itself only once it is closed."""
    with suppress(OSError):
        _entry_page_of(folder).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
    shutil.rmtree(folder, ignore_errors=True)


def _lock_folder(folder: Path) -> int:
    """Return a handle that locks a folder until it is closed or its process ends, or raise `OSError`."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        portalocker.lock(handle, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
    except portalocker.LockException as error:
        os.close(handle)
        if isinstance(error, portalocker.AlreadyLocked):
            raise BlockingIOError(f"{folder} is in use") from None
        message = "this disk cannot lock files, so none can be dropped here: put the file into the folder"
        raise OSError(errno.ENOLCK, message) from None
    return handle


def safe_name(name: str) -> str:
    r"""Return the last part of a name that a browser gave, without what a file's name cannot have.

    Examples
    --------
    >>> [safe_name(name) for name in ("../../etc/passwd", "C:\\tables\\flats.xlsx", "..", "con.csv")]
    ['passwd', 'flats.xlsx', 'table', 'table-con.csv']
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    safe = "".join(letter for letter in last if letter.isprintable() and letter not in '<>:"|?*').strip(" .")
    safe = safe[-100:].lstrip(" .") or "table"
    return f"table-{safe}" if _DEVICE.match(safe) else safe
