"""One way through the page: what was chosen so far in one tab. Two tabs have two drafts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from labeldp.errors import DataNotFoundError, ParameterError
from labeldp.files import Dialect
from labeldp.files.overview import Overview, TableHeader, overview, table_header
from labeldp.files.places import EXTENSIONS
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.orders import Order
from labeldp.page.work import Work

__all__ = ["CHANGED", "Draft", "Drafts"]

CHANGED = "The file changed since it was read. Look at it again: nothing was charged."

Stamp = tuple[tuple[str, int, int], ...]


@dataclass
class Draft:
    """What was chosen so far.

    Attributes
    ----------
    source : Path
    name : str
        What the source is called, for people.
    header : TableHeader or None
    seen : Overview or None
        What is in the table, once the label is known.
    hints : list of str
        What gives labels away. For the owner's eyes only: on no disk, in no address, gone with the page.
    entered : dict
        What was typed into the last form, if it could not be used.
    problems : dict
        Why not, by field.
    """

    source: Path
    name: str
    stamp: Stamp
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    header: TableHeader | None = None
    format: str | None = None
    dialect: Dialect = field(default_factory=Dialect)
    label: str | None = None
    seen: Overview | None = None
    hints: list[str] = field(default_factory=list)
    bounds: tuple[float, float] | None = None
    drop: tuple[str, ...] = ()
    missing: Literal["error", "drop"] = "error"
    shuffle: bool = False
    rows_per_person: int = 1
    order: Order | None = None
    reading: Work | None = None
    release: Work | None = None
    entered: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Path, name: str) -> Draft:
        """Return a new draft for a table, once its header was read."""
        draft = cls(source, name, stamp_of(source))
        draft.read_header()
        return draft

    def read_header(self) -> None:
        """Read the names of the columns again, as the file is now."""
        stamp = stamp_of(self.source)
        self.header = table_header(self.source, self.format, dialect=self.dialect)
        self.stamp, self.seen = stamp, None

    def start_reading(self, drop: tuple[str, ...]) -> None:
        """Read the whole table, in a thread."""
        label, draft_stamp = str(self.label), stamp_of(self.source)

        def task(work: Work) -> Overview:
            found: list[str] = []
            seen = overview(
                self.source,
                label=label,
                drop=drop,
                format=self.format,
                dialect=self.dialect,
                progress=work.progress,
                hints=found.extend,
            )
            self.seen, self.hints = seen, found
            return seen

        self.stamp, self.seen, self.hints, self.release = draft_stamp, None, [], None
        self.reading = Work(task)

    @property
    def is_changed(self) -> bool:
        """Whether the file is not as it was when it was read."""
        try:
            return stamp_of(self.source) != self.stamp
        except (OSError, DataNotFoundError):
            return True

    @property
    def is_busy(self) -> bool:
        """Whether work is being done."""
        return any(work is not None and work.state == "running" for work in (self.reading, self.release))

    @property
    def output_format(self) -> str:
        """How the name of a private table ends: as its source's does, if that can be written."""
        return f".{EXTENSIONS[self.header.format]}" if self.header is not None else ""


def stamp_of(source: Path) -> Stamp:
    """Return what shows that files were changed: their sizes, which are never shown, and times."""
    files = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    if not source.exists():
        raise DataNotFoundError("the file is not there any more")
    return tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files)


class Drafts:
    """All drafts of one run; the oldest that rest are forgotten."""

    MOST = 50

    def __init__(self, folder: ChosenFolder) -> None:
        self._folder, self._drafts = folder, dict[str, Draft]()

    def add(self, draft: Draft) -> None:
        """Keep a draft."""
        self._drafts[draft.id] = draft
        resting = [each.id for each in self._drafts.values() if not each.is_busy]
        for old in resting[: len(self._drafts) - self.MOST]:
            del self._drafts[old]

    def get(self, name: str) -> Draft:
        """Return a draft by its id."""
        if name not in self._drafts:
            raise ParameterError("this page was left too long ago: begin again with the table")
        self._folder.refuse_elsewhere(self._drafts[name].source)  # each time: it may be a link by now
        return self._drafts[name]

    @property
    def is_busy(self) -> bool:
        """Whether work is being done for any of them."""
        return any(draft.is_busy for draft in list(self._drafts.values()))

    def finish(self) -> None:
        """Stop all work that is not paid for, and wait for the rest."""
        works = [work for draft in self._drafts.values() for work in (draft.reading, draft.release) if work]
        for work in works:
            work.stop()
        for work in works:
            work.wait()
