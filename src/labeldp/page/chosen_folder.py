"""The folder that the page works in: which paths lie in it, which tables, and what was dropped into it."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import portalocker

from labeldp._paths import resolve_path
from labeldp.errors import ParameterError
from labeldp.files.places import format_in
from labeldp.jobs.card_files import is_card_name
from labeldp.jobs.sentences import printable

DROPPED = ".labeldp-page-"
"""How the names of folders begin that hold dropped files; each process has one, and locks it."""

DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])[ ]*(\.|$)", re.IGNORECASE)
"""How names begin that Windows takes for devices, whatever their ending."""

MOST_TABLES = 200
LONGEST = 1000


class ChosenFolder:
    """A folder outside of which nothing is read or written.

    Parameters
    ----------
    root : path
        An existing folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = resolve_path(root)
        if not self.root.is_dir():
            raise ParameterError(f"there is no folder {root}")
        self._dropped: Path | None = None
        self._lock = -1

    # ---- paths --------------------------------------------------------------------------------------------

    def inside(self, text: str) -> Path:
        """Return the path that a text names, if it lies in the folder, links followed.

        Raises
        ------
        ParameterError
            If it lies elsewhere; the message does not tell whether there is anything.
        """
        elsewhere = ParameterError(f"name something inside the folder {self.root.name}, not {text[:200]!r}")
        if not text.strip() or len(text) > LONGEST or any(not letter.isprintable() for letter in text):
            raise elsewhere
        if text.startswith("~") or os.path.splitdrive(text)[0] or (os.sep == "/" and "\\" in text):
            raise elsewhere
        try:
            path = resolve_path(self.root / text)
        except (OSError, ParameterError):  # too long, or links that lead in circles
            raise elsewhere from None
        if self.root not in path.parents or any(part.startswith(DROPPED) for part in path.parts):
            raise elsewhere
        return path

    def source(self, text: str) -> Path:
        """Return a file or a folder of files that is there to be read; none of them leads out of the folder."""
        path = self.inside(text)
        if not path.exists():
            raise ParameterError(f"there is no file {text[:200]!r} in the folder")
        self.refuse_elsewhere(path)
        return path

    def refuse_elsewhere(self, *paths: Path) -> None:
        """Refuse what leads out of the folder by now, or is no file: it may be a link since it was named."""
        for path in paths:
            for each in [path, *(path.rglob("*") if path.is_dir() else ())]:
                kind = each.stat().st_mode if each.exists() else stat.S_IFREG
                if self.root not in resolve_path(each).parents or not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                    raise ParameterError(
                        f"{printable(path.name, 200)!r} is, or holds, something else than files of the folder"
                    )

    def target(self, text: str) -> Path:
        """Return a place in the folder where something may be written; the folder around it is there."""
        path = self.inside(text)
        if not path.parent.is_dir():
            raise ParameterError(f"there is no folder {Path(text).parent} for {path.name}")
        return path

    def name(self, path: Path) -> str:
        """Return what to call a path in the folder."""
        return path.relative_to(self.root).as_posix()

    def plain_size(self, path: Path) -> int | None:
        """Return how many bytes a plain file has, or the files of a plain folder have together; None for all else.

        Plain is what lies here under the very name that it is called by: no link leads to it, and a folder holds
        none. Of past releases nothing else is read or handed out, because a link beside a card may lead to the
        true labels.
        """
        try:
            if resolve_path(path) != path or self.root not in (path, *path.parents):
                return None
            stats = [part.lstat() for part in (path, *(path.iterdir() if path.is_dir() else ()))]
        except (OSError, ParameterError):
            return None
        files = [each.st_size for each in stats if stat.S_ISREG(each.st_mode)]
        folders = [each for each in stats if stat.S_ISDIR(each.st_mode)]
        return sum(files) if len(files) + len(folders) == len(stats) else None

    # ---- what is there ------------------------------------------------------------------------------------

    def tables(self) -> list[str]:
        """Return the names of files that look like tables, here and one folder down."""
        found = (path for path in sorted(self._near("*")) if format_in(path.name) and path.is_file())
        return [self.name(path) for path in found if not path.name.startswith("~$")][:MOST_TABLES]

    def card(self, text: str) -> Path:
        """Return the plain file of a card, anywhere in the folder."""
        path = self.inside(text)
        is_own = self.name(path) == text and self.plain_size(path) is not None
        if not is_own or not is_card_name(path.name) or path.is_dir():
            raise ParameterError(f"there is no card {printable(text, 100)!r} in the folder")
        return path

    def cards(self) -> list[str]:
        """Return the names of cards, here and one folder down, and of models one further down, newest first."""
        paths = [*self._near("*.card.json"), *self._near("card.json"), *self._near("[!.]*/card.json")]
        found = [path for path in paths if path.is_file() and self.plain_size(path) is not None]
        found.sort(key=lambda path: (-path.stat().st_mtime_ns, path.name))
        return [self.name(path) for path in dict.fromkeys(found)][:MOST_TABLES]

    def ledgers(self) -> list[str]:
        """Return the names of files that may be ledgers."""
        return [self.name(path) for path in sorted(self._near("*.jsonl")) if path.is_file()][:MOST_TABLES]

    def _near(self, pattern: str) -> Iterator[Path]:
        for path in [*self.root.glob(pattern), *self.root.glob(f"[!.]*/{pattern}")]:
            with suppress(OSError, ParameterError):  # what cannot be asked for by its name is not listed
                self.inside(self.name(path))
                if not path.name.startswith("."):
                    yield path

    def free_name(self, stem: str, ending: str) -> str:
        """Return a name that nothing in the folder has yet.

        Examples
        --------
        >>> import tempfile
        >>> folder = ChosenFolder(tempfile.mkdtemp())
        >>> (folder.root / "flats.private.csv").touch()
        >>> folder.free_name("flats.private", ".csv")
        'flats.private-2.csv'
        """
        names = (f"{stem}{'' if number == 1 else f'-{number}'}{ending}" for number in range(1, 10_000))
        return next(name for name in names if not os.path.lexists(self.root / name))

    # ---- dropped files ------------------------------------------------------------------------------------

    def dropped_file(self, name: str) -> tuple[Path, int]:
        """Return the path of a new file for what is dropped, and an open handle; only its owner can read it."""
        place = self._own_folder() / secrets.token_hex(4)
        place.mkdir(0o700)
        path = place / _safe_name(name)
        return path, _new_file(path)

    def doorway(self) -> tuple[Path, int]:
        """Return the path of a new file that leads a browser to the page, and an open handle.

        It lies in the chosen folder itself, because many a browser is not let into hidden ones, or into those for
        temporary files. It goes with the folder that it is named after.
        """
        path = _doorway_of(self._own_folder())
        return path, _new_file(path)

    def _own_folder(self) -> Path:
        if self._dropped is None:
            self.remove_leftovers()
            self._lock, self._dropped = self._new_folder()
        return self._dropped

    def _new_folder(self) -> tuple[int, Path]:
        """Return a new folder for dropped files and its lock."""
        while True:
            folder = self.root / f"{DROPPED}{secrets.token_hex(4)}"
            folder.mkdir(0o700)
            try:
                handle = _lock_folder(folder)
            except (BlockingIOError, FileNotFoundError):  # another process took it for a leftover
                continue
            except OSError:  # nobody would ever know that it is left over
                shutil.rmtree(folder, ignore_errors=True)
                raise
            if (folder / "lock").exists():
                return handle, folder
            os.close(handle)

    def is_dropped(self, path: Path) -> bool:
        """Whether a path is that of a dropped file."""
        return self._dropped is not None and self._dropped in path.parents

    def discard(self, path: Path) -> None:
        """Remove a dropped file; any other stays."""
        if self.is_dropped(path):
            shutil.rmtree(path.parent, ignore_errors=True)

    def remove_dropped(self) -> None:
        """Remove all that was dropped, and the doorway."""
        if self._dropped is not None:
            _remove(self._dropped, self._lock)
            self._dropped = None

    def remove_leftovers(self) -> None:
        """Remove the folders and doorways of processes that are not there any more; those that are hold a lock."""
        for folder in self.root.glob(f"{DROPPED}*"):
            is_ours = re.fullmatch(r"[0-9a-f]{8}", folder.name.removeprefix(DROPPED)) is not None
            if not is_ours or folder.is_symlink() or not folder.is_dir() or folder == self._dropped:
                continue
            try:
                handle = _lock_folder(folder)
            except OSError:
                continue
            _remove(folder, handle)


def _new_file(path: Path) -> int:
    """Return a handle for a new file that only its owner can read."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)


def _doorway_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name.removeprefix('.')}.html")


def _remove(folder: Path, handle: int) -> None:
    """Remove a folder and then unlock it; Windows removes the lock itself only once it is closed."""
    with suppress(OSError):
        _doorway_of(folder).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    os.close(handle)
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
        raise OSError(
            errno.ENOLCK, "this disk cannot lock files, and so takes none that is dropped: put it into the folder"
        ) from None
    return handle


def _safe_name(name: str) -> str:
    r"""Return the last part of a name that a browser gave, without what a file's name cannot have.

    Examples
    --------
    >>> [_safe_name(name) for name in ("../../etc/passwd", "C:\\tables\\flats.xlsx", "..", "con.csv")]
    ['passwd', 'flats.xlsx', 'table', 'table-con.csv']
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    safe = "".join(letter for letter in last if letter.isprintable() and letter not in '<>:"|?*').strip(" .")
    safe = safe[-100:].lstrip(" .") or "table"
    return f"table-{safe}" if DEVICE.match(safe) else safe
