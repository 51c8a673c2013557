"""The folder that the page works in: which paths are in it, and which tables, cards and ledgers."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from labeldp._atomic import StrPath, as_path
from labeldp.app.card_files import is_card_name
from labeldp.app.sentences import printable
from labeldp.errors import ParameterError
from labeldp.tables.paths import format_in

MOST_LISTED = 200
LONGEST = 1000


class ChosenFolder:
    """A folder outside of which nothing is read or written.

    Parameters
    ----------
    root : path
        An existing folder.
    """

    def __init__(self, root: StrPath) -> None:
        self.root = as_path(root, follow=True)
        if not self.root.is_dir():
            raise ParameterError(f"there is no folder {root}")

    # ---- paths --------------------------------------------------------------------------------------------

    def inside(self, text: str) -> Path:
        """Return the path that a text names: parts of names below the folder, none of which is a link.

        Raises
        ------
        ParameterError
            If it is elsewhere; the message does not depend on whether there is anything.
        """
        path = self.root / Path(text)
        is_name = text.isprintable() and len(text) <= LONGEST and not {"..", "~"}.intersection(path.parts)
        if not is_name or path == self.root or not self._is_here(path):
            raise ParameterError(f"name something inside the folder {self.root.name}, not {text[:200]!r}")
        return path

    def _is_here(self, path: Path) -> bool:
        """Whether a path is in the folder, and no link leads to it."""
        try:
            return as_path(path, follow=True) == path and self.root in (path, *path.parents)
        except (OSError, ParameterError):  # too long, or links that lead in circles
            return False

    def is_plain(self, path: Path) -> bool:
        """Whether a path is a file or a folder of files, and no link leads to it or out of it.

        Nothing else is read, because a link beside somebody's card may lead to the true labels.
        """
        try:
            kinds = [part.lstat().st_mode for part in (path, *path.rglob("*"))]
        except OSError:
            return False
        return self._is_here(path) and all(stat.S_ISREG(kind) or stat.S_ISDIR(kind) for kind in kinds)

    def is_plain_file(self, path: Path) -> bool:
        """Whether a path is a file of the folder, and no link."""
        return path.is_file() and self.is_plain(path)

    def refuse_elsewhere(self, *paths: Path) -> None:
        """Refuse what leads out of the folder by now, or is no file: it may be a link since it was named."""
        for path in paths:
            if not self.is_plain(path) and (os.path.lexists(path) or not self._is_here(path)):
                raise ParameterError(
                    f"{printable(path.name, 200)!r} is, or contains, something else than files of the folder"
                )

    def source(self, text: str) -> Path:
        """Return a file that is there to be read."""
        path = self.inside(text)
        if not self.is_plain_file(path):
            raise ParameterError(f"there is no file {text[:200]!r} in the folder")
        return path

    def target(self, text: str) -> Path:
        """Return a path in the folder where something may be written; the folder around it is there."""
        path = self.inside(text)
        if not path.parent.is_dir():
            raise ParameterError(f"there is no folder {Path(text).parent} for {path.name}")
        return path

    def new_table(self, name: str) -> Path:
        r"""Return where a table goes that a browser sends, by the last part of the name that the browser gives.

        Examples
        --------
        >>> import tempfile
        >>> folder = ChosenFolder(tempfile.mkdtemp())
        >>> [folder.name(folder.new_table(name)) for name in ("../../flats.csv", "C:\\tables\\flats.xlsx")]
        ['flats.csv', 'flats.xlsx']
        """
        last = name.replace("\\", "/").rpartition("/")[2]
        if format_in(last) is None or not re.fullmatch(r"\w[\w .,;&'+@=#%!()\[\]-]*", last):
            raise ParameterError(
                f"{printable(last, 200)!r} is not a name of a table: rename the file, such as table.csv"
            )
        path = self.target(last)
        if os.path.lexists(path):
            raise ParameterError(f"there is a file {last!r} in the folder already: choose that, or rename yours")
        return path

    def name(self, path: Path) -> str:
        """Return what to call a path in the folder."""
        return path.relative_to(self.root).as_posix()

    def card(self, text: str) -> Path:
        """Return the plain file of a card, anywhere in the folder."""
        path = self.source(text)
        if not is_card_name(path.name) or self.name(path) != text:
            raise ParameterError(f"there is no card {printable(text, 100)!r} in the folder")
        return path

    # ---- what is there ------------------------------------------------------------------------------------

    def tables(self) -> list[str]:
        """Return the names of files that look like tables, here and one folder down."""
        names = self._near(["*", "[!.]*/*"])
        return [name for name in names if format_in(name) and not Path(name).name.startswith("~$")][:MOST_LISTED]

    def cards(self) -> list[str]:
        """Return the names of cards, here and one folder down, and of models one further down, newest first."""
        names = self._near(
            ["*.card.json", "card.json", "[!.]*/*.card.json", "[!.]*/card.json", "[!.]*/[!.]*/card.json"]
        )
        return sorted(names, key=lambda name: -(self.root / name).stat().st_mtime_ns)[:MOST_LISTED]

    def ledgers(self) -> list[str]:
        """Return the names of files that may be ledgers, here and one folder down."""
        return self._near(["*.jsonl", "[!.]*/*.jsonl"])[:MOST_LISTED]

    def _near(self, patterns: Iterable[str]) -> list[str]:
        """Return the names of plain files that fit, as far as they can be asked for by their names."""
        names = list[str]()
        for path in sorted(path for pattern in patterns for path in self.root.glob(pattern)):
            with suppress(OSError, ParameterError):
                if not path.name.startswith(".") and self.inside(self.name(path)).is_file():
                    names.append(self.name(path))
        return names

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
        name, number = f"{stem}{ending}", 1
        while os.path.lexists(self.root / name):
            number += 1
            name = f"{stem}-{number}{ending}"
        return name
