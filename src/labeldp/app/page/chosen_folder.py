"""The folder of the page: its paths, tables, cards and ledgers. Nothing outside of it is read or written."""

from __future__ import annotations

import os
from pathlib import Path

from labeldp._atomic import StrPath, as_path
from labeldp.accounts.ledger_file import private_columns
from labeldp.app.card_files import is_card_name
from labeldp.errors import ParameterError
from labeldp.tables.paths import format_in

MAX_LISTED = 200


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

    def target(self, name: str) -> Path:
        """Return the path of a name, links followed, to be written.

        Raises
        ------
        ParameterError
            If it leads out of the folder, or into a folder that does not exist.
        """
        path = as_path(self.root / name, follow=True)
        if not name.isprintable() or self.root not in path.parents:
            raise ParameterError(f"name something inside the folder {self.root.name}, not {name[:200]!r}")
        if not path.parent.is_dir():
            raise ParameterError(f"there is no folder {path.parent.name} for {path.name}")
        return path

    def source(self, name: str) -> Path:
        """Return the path of an existing file."""
        path = self.target(name)
        if not path.is_file():
            raise ParameterError(f"there is no file {name[:200]!r} in the folder")
        return path

    def card(self, name: str) -> Path:
        """Return the path of a card."""
        path = self.source(name)
        if not is_card_name(path.name):
            raise ParameterError(f"{name[:200]!r} is no card")
        return path

    def new_table(self, name: str) -> Path:
        r"""Return the path for a table that a browser sends, by the last part of its name.

        Examples
        --------
        >>> import tempfile
        >>> folder = ChosenFolder(tempfile.mkdtemp())
        >>> [folder.name(folder.new_table(name)) for name in ("../../flats.csv", "C:\\tables\\flats.xlsx")]
        ['flats.csv', 'flats.xlsx']
        """
        file_name = name.replace("\\", "/").rpartition("/")[2]
        if format_in(file_name) is None or file_name.startswith("."):
            raise ParameterError(
                f"{file_name[:200]!r} is not a name of a table: rename the file, such as table.csv"
            )
        if os.path.lexists(self.root / file_name):
            raise ParameterError(
                f"there is a file {file_name!r} in the folder already: choose that, or rename yours"
            )
        return self.target(file_name)

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

    def name(self, path: Path) -> str:
        """Return the name of a path, below the folder."""
        return path.relative_to(self.root).as_posix()

    # ---- lists --------------------------------------------------------------------------------------------

    def tables(self) -> list[str]:
        """Return the names of tables, here and one folder down; lock files of Excel are none."""
        return [
            name
            for name in self._files("*", "*/*")
            if format_in(name) is not None and not Path(name).name.startswith("~$")
        ]

    def cards(self) -> list[str]:
        """Return the names of cards, newest first: here and one folder down, and of models one further down."""
        names = self._files("*card.json", "*/*card.json", "*/*/card.json")
        cards = [name for name in names if is_card_name(Path(name).name)]
        return sorted(cards, key=lambda name: -(self.root / name).stat().st_mtime_ns)

    def released_tables(self) -> set[str]:
        """Return the names of tables with cards beside them, and of the page's copies of them as Excel sheets.

        The page names its copies ``.private``; a sheet of another name may be the source of a table with a card.

        Examples
        --------
        >>> import tempfile
        >>> folder = ChosenFolder(tempfile.mkdtemp())
        >>> released = ["a.private.csv", "a.private.csv.card.json", "a.private.xlsx", "b.csv", "b.csv.card.json"]
        >>> for name in [*released, "b.xlsx"]:
        ...     (folder.root / name).touch()
        >>> sorted(folder.released_tables())
        ['a.private.csv', 'a.private.xlsx', 'b.csv']
        """
        with_cards = {card.removesuffix(".card.json") for card in self.cards()}
        sheets = {Path(name).with_suffix(".xlsx").as_posix() for name in with_cards if ".private" in name}
        return (with_cards | sheets) & set(self.tables())

    def ledgers(self) -> list[str]:
        """Return the names of files that may be ledgers, here and one folder down."""
        return self._files("*.db", "*/*.db")

    def private_columns(self) -> frozenset[str]:
        """Return the private columns that charges of its ledgers name."""
        return frozenset().union(*(private_columns(self.target(name)) for name in self.ledgers()))

    def _files(self, *patterns: str) -> list[str]:
        """Return the names of visible files of the folder that match."""
        paths = sorted(path for pattern in patterns for path in self.root.glob(pattern))
        inside = (path for path in paths if path.is_file() and self.root in path.resolve().parents)
        names = list(map(self.name, inside))
        visible = [name for name in names if name.isprintable() and not f"/{name}".count("/.")]
        return visible[:MAX_LISTED]
