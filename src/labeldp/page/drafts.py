"""One way through the page: what was chosen so far in one tab. Two tabs have two drafts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from labeldp.errors import DataError, DataNotFoundError, ParameterError
from labeldp.files import Dialect
from labeldp.files.opening import TableHeader
from labeldp.files.overview import Overview, overview, table_header
from labeldp.files.places import EXTENSIONS
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.orders import Choice, Order, Stamp
from labeldp.page.work import Work

CHANGED = "The file changed since it was read. Look at it again: nothing was charged."

WITHHELD = ("private", "stays")
"""What is said of columns once, and holds until something else is said, also when the file changed."""

AGAIN = (*WITHHELD, "label", "bounds", "missing", "shuffle", "rows_per_person")
"""What is said of a table once, and holds when it is opened again."""


@dataclass(frozen=True)
class Header:
    """The names of columns, of the file as it was then; what forms say of columns is said of one header.

    Attributes
    ----------
    id : str
        Goes with each form that says something of columns: said of another header, or reading, it means nothing.
    """

    table: TableHeader
    dialect: Dialect
    stamp: Stamp
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @classmethod
    def of(cls, source: Path, dialect: Dialect) -> Header:
        """Return the names of columns as they are now."""
        stamp = stamp_of(source)
        return cls(table_header(source, dialect=dialect), dialect, stamp)


@dataclass
class Draft:
    """What was chosen so far.

    Attributes
    ----------
    source : Path
    name : str
        What the source is called, for people.
    read : Header
    label : str or None
        The private column, while the header has it.
    private : str or None
        The last column that was said to be private, also once the file changed or is read the wrong way.
    stays : tuple of str
        Columns that are not to leave, also those that the header lacks while the file is read the wrong way.
    entered : dict
        What was typed into the last form, if it could not be used.
    problems : dict
        Why not, by field.
    """

    source: Path
    name: str
    read: Header
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    label: str | None = None
    private: str | None = None
    bounds: tuple[float, float] | None = None
    stays: tuple[str, ...] = ()
    missing: Literal["error", "drop"] = "error"
    shuffle: bool = False
    rows_per_person: int = 1
    reading: Work | None = None
    release: Work | None = None
    entered: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    _order: Order | None = None

    @classmethod
    def of(cls, source: Path, name: str, like: Draft | None = None) -> Draft:
        """Return a new draft for a table, once its header was read; with what another says of the same table."""
        if like is None:
            return cls(source, name, Header.of(source, Dialect()))
        is_changed = like.is_changed
        said = {what: getattr(like, what) for what in (WITHHELD if is_changed else AGAIN)}
        return cls(source, name, Header.of(source, Dialect() if is_changed else like.dialect), **said)

    def take(self, read: Header, label: str | None, stays: tuple[str, ...]) -> None:
        """Take a header and what is said of its columns, and read the table, in a thread, if there is a label.

        What an earlier reading finds from now on is its own: nobody looks there.
        """
        if self.reading is not None:
            self.reading.stop()
        self.bounds = self.bounds if label == self.label else None
        self.read = replace(read, id=secrets.token_urlsafe(9))
        self.label, self.stays, self.reading = label, stays, None
        if label is None:
            return
        self.private = label
        drop = self.drop

        def task(work: Work) -> tuple[Overview, list[str]]:
            hints: list[str] = []
            seen = overview(
                self.source,
                label=label,
                drop=drop,
                dialect=read.dialect,
                progress=work.progress,
                hints=hints.extend,
            )
            return seen, hints

        self.reading = Work(task)

    @property
    def header(self) -> TableHeader:
        """The names of the columns."""
        return self.read.table

    @property
    def dialect(self) -> Dialect:
        """How the file is written, as far as that was said."""
        return self.read.dialect

    @property
    def drop(self) -> tuple[str, ...]:
        """The columns that do not leave."""
        stays = set(self.stays)
        return tuple(name for name in self.header.names if name in stays)

    @property
    def seen(self) -> Overview | None:
        """What is in the table, once the current reading is done."""
        return self.reading.result[0] if self.reading is not None and self.reading.state == "done" else None

    @property
    def hints(self) -> list[str]:
        """What gives labels away. For the owner's eyes only: on no disk, in no address, gone with the page."""
        return [] if self.seen is None or self.reading is None else list(self.reading.result[1])

    @property
    def choice(self) -> Choice | None:
        """All that is said of the table and its label now, if that is all that must be said."""
        if self.seen is None or self.label is None or self.bounds is None:
            return None
        here = {*self.stays, self.label}
        return Choice(
            source=self.source,
            source_name=self.name,
            stamp=self.read.stamp,
            dialect=self.dialect,
            label=self.label,
            bounds=self.bounds,
            columns=tuple(name for name in self.header.names if name not in here),
            drop=self.drop,
            missing=self.missing,
            shuffle=self.shuffle,
            rows_per_person=self.rows_per_person,
        )

    @property
    def order(self) -> Order | None:
        """The order that was placed, as long as all that it was made of is still said."""
        order = self._order
        return order if order is not None and order.choice == self.choice else None

    def place(self, order: Order) -> None:
        """Place an order, instead of an earlier one."""
        self._order, self.release = order, None

    @property
    def is_changed(self) -> bool:
        """Whether the file is not as it was when its header was read."""
        try:
            return stamp_of(self.source) != self.read.stamp
        except (OSError, DataNotFoundError):
            return True

    @property
    def is_releasing(self) -> bool:
        """Whether a release is under way: until it ends, nothing that was said can be changed."""
        return self.release is not None and self.release.state == "running"

    @property
    def is_busy(self) -> bool:
        """Whether work is being done."""
        return self.is_releasing or (self.reading is not None and self.reading.state == "running")

    @property
    def output_format(self) -> str:
        """How the name of a private table ends: as its source's does, if that can be written."""
        return f".{EXTENSIONS[self.header.format]}"


def stamp_of(source: Path) -> Stamp:
    """Return what shows that files were changed or exchanged: numbers, sizes, which are never shown, and times."""
    files = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    if not source.exists():
        raise DataNotFoundError("the file is not there any more")
    stats = [path.stat() for path in files]
    return tuple(
        (str(path), each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns)
        for path, each in zip(files, stats, strict=True)
    )


def refuse_changed(source: Path, stamp: Stamp) -> None:
    """Refuse to go on with a file that is not the one that was chosen, whatever it holds."""
    if stamp_of(source) != stamp:
        raise DataError("the file changed while it was read: begin again with it")


class Drafts:
    """All drafts of one run, and work that belongs to none; the oldest that rest are forgotten."""

    MOST = 50

    def __init__(self, folder: ChosenFolder) -> None:
        self._folder, self._drafts, self._works = folder, dict[str, Draft](), dict[str, Work]()

    def add(self, draft: Draft) -> None:
        """Keep a draft; of those that are forgotten, dropped files go."""
        self._drafts[draft.id] = draft
        resting = [each.id for each in self._drafts.values() if not each.is_busy]
        for old in resting[: len(self._drafts) - self.MOST]:
            self._folder.discard(self._drafts.pop(old).source)

    def get(self, name: str) -> Draft:
        """Return a draft by its id."""
        if name not in self._drafts:
            raise ParameterError("this page was left too long ago: begin again with the table")
        self._folder.refuse_elsewhere(self._drafts[name].source)  # each time: it may be a link by now
        return self._drafts[name]

    def keep(self, work: Work) -> str:
        """Keep work that belongs to no draft, and return its id."""
        name = secrets.token_urlsafe(9)
        self._works[name] = work
        resting = [old for old, each in self._works.items() if each.state != "running" and old != name]
        for old in resting[: len(self._works) - self.MOST]:
            del self._works[old]
        return name

    def work(self, name: str) -> Work | None:
        """Return work that belongs to no draft, by its id, if it is not forgotten."""
        return self._works.get(name)

    def like(self, source: Path) -> Draft | None:
        """Return the newest draft for the same table, of those that withhold columns if there are such."""
        drafts = [draft for draft in reversed(self._drafts.values()) if draft.source == source]
        withholding = [draft for draft in drafts if draft.private is not None or draft.stays]
        return next(iter([*withholding, *drafts]), None)

    def unfinished(self) -> list[Draft]:
        """Return those whose label was said and whose release was not done, newest first."""
        drafts = [draft for draft in reversed(self._drafts.values()) if draft.label is not None]
        return [draft for draft in drafts if draft.release is None or draft.release.state != "done"]

    @property
    def is_busy(self) -> bool:
        """Whether work is being done for any of them."""
        works = list(self._works.values())
        return any(draft.is_busy for draft in list(self._drafts.values())) or any(
            work.state == "running" for work in works
        )

    def finish(self) -> None:
        """Stop all work that is not paid for, and wait for the rest."""
        works = [work for draft in self._drafts.values() for work in (draft.reading, draft.release) if work]
        works += self._works.values()
        for work in works:
            work.stop()
        for work in works:
            work.wait()
