"""A release that is being prepared in a tab: everything that was chosen so far. Two tabs have two of them."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp.app.page.messages import collect_problem
from labeldp.app.page.release_request import DIALECT, ReleaseRequest, Stamp
from labeldp.app.page.site import Site, go, site_of, text_in
from labeldp.app.page.work import Work
from labeldp.errors import DataError, DataNotFoundError, Message, ParameterError
from labeldp.tables.dialect import Dialect
from labeldp.tables.opening import TableHeader
from labeldp.tables.overview import Overview, overview, table_header

CHANGED = "The file changed since it was read. Check it again: nothing was charged."
OTHER_TAB = "This form was shown for another reading of the table, perhaps in another tab. Check it again."

_new_id = partial(secrets.token_urlsafe, 9)


@dataclass(frozen=True)
class Header:
    """The names of columns of a file as it was then.

    Attributes
    ----------
    id : str
        Is sent with each form about columns: a form that was shown for another header, or reading, is refused.
    """

    table: TableHeader
    dialect: Dialect
    stamp: Stamp
    id: str = field(default_factory=_new_id)

    @classmethod
    def of(cls, source: Path, dialect: Dialect) -> Header:
        """Return the names of columns as they are now."""
        stamp = stamp_of(source)
        return cls(table_header(source, dialect=dialect), dialect, stamp)


@dataclass
class Unfinished:
    """What was chosen so far.

    Attributes
    ----------
    source : Path
    name : str
        What the source is called, for people.
    header : Header
    private : str or None
        The private column that was chosen last, also if the file changed or is read the wrong way since.
    left_out : tuple of str
        Columns that are not shared, also those that the header lacks while the file is read the wrong way.
    label : str or None
        The private column of the current reading.
    options : dict or None
        Bounds and other options of rows, once they are valid for the current reading.
    request : ReleaseRequest or None
        What is to be released; None as soon as anything that it is made of is chosen again.
    typed : dict
        What was typed into forms, by field.
    problems : dict
        What is wrong with it, by field.
    lock : Lock
        Held by the one request that is being answered.
    """

    source: Path
    name: str
    header: Header
    private: str | None = None
    left_out: tuple[str, ...] = ()
    label: str | None = None
    options: dict[str, Any] | None = None
    request: ReleaseRequest | None = None
    reading: Work | None = None
    release: Work | None = None
    typed: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    id: str = field(default_factory=_new_id)
    lock: Any = field(default_factory=threading.Lock)

    @property
    def path(self) -> str:
        """Where its pages are."""
        return f"/new/{self.id}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.header.table.names

    @property
    def drop(self) -> tuple[str, ...]:
        """The columns that are not shared."""
        return tuple(name for name in self.names if name in set(self.left_out))

    @property
    def seen(self) -> Overview | None:
        """What is in the table, once the current reading is done."""
        return self.reading.result[0] if self.reading is not None and self.reading.state == "done" else None

    @property
    def hints(self) -> list[Message]:
        """What reveals labels. For the owner only: on no disk, in no address, gone with the page."""
        return [] if self.seen is None or self.reading is None else list(self.reading.result[1])

    @property
    def is_changed(self) -> bool:
        """Whether the file is not as it was when its header was read."""
        try:
            return stamp_of(self.source) != self.header.stamp
        except (OSError, DataNotFoundError):
            return True

    @property
    def is_finished(self) -> bool:
        """Whether it was released."""
        return self.release is not None and self.release.state == "done"

    @property
    def is_releasing(self) -> bool:
        """Whether it is being released: until that ends, nothing can be chosen again."""
        return self.release is not None and self.release.state == "running"

    @property
    def typed_dialect(self) -> dict[str, str]:
        """What was typed of how the file is written."""
        return {option.name: self.typed.get(option.name, "") for option in DIALECT}

    def note_typed(self, form: FormData, names: Iterable[str]) -> None:
        """Keep what was typed into fields, to show it again."""
        self.typed |= {name: text_in(form, name) for name in names}

    def choose_columns(self, label: str | None, form: FormData) -> None:
        """Take which columns are shared; forms send them by number, because they change line breaks.

        Of columns that this header lacks, what was chosen for them before holds.
        """
        shared = set(form.getlist("shared"))
        chosen = [name for number, name in enumerate(self.names) if str(number) not in shared and name != label]
        self.left_out = (*chosen, *(name for name in self.left_out if name not in self.names))

    def read(self, site: Site, header: Header, label: str | None) -> None:
        """Take a header, and read the table in a thread, if there is a label; choices for another reading end."""
        if self.reading is not None:
            self.reading.stop()
        self.header, self.label = replace(header, id=_new_id()), label
        self.options = self.request = self.reading = None
        if label is None:
            return
        if label != self.private:
            self.typed = self.typed_dialect
        self.private, drop = label, self.drop

        def task(work: Work) -> tuple[Overview, list[Message]]:
            hints: list[Message] = []
            seen = overview(
                self.source,
                label=label,
                drop=drop,
                dialect=header.dialect,
                progress=work.progress,
                hints=hints.extend,
            )
            return seen, hints

        self.reading = site.start(task, f"{self.path}/table")


def stamp_of(source: Path) -> Stamp:
    """Return what shows that files were changed or exchanged: inode, size, which is never shown, and times."""
    if not source.exists():
        raise DataNotFoundError("the file is not there any more")
    files = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    stats = [(str(path), path.stat()) for path in files]
    return tuple((name, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for name, each in stats)


def refuse_changed(source: Path, stamp: Stamp) -> None:
    """Refuse to go on with a file that is not the one that was chosen, whatever it contains."""
    if stamp_of(source) != stamp:
        raise DataError("the file changed while it was read: begin again with it")


# ---- the pages of an unfinished release ---------------------------------------------------------------------


def unfinished_of(request: Request) -> Unfinished:
    """Return the unfinished release that a page is about."""
    site = site_of(request)
    unfinished = site.unfinished.get(request.path_params["id"])
    if unfinished is None:
        raise ParameterError("labeldp was started again since: begin with the table")
    site.folder.refuse_elsewhere(unfinished.source)  # each time: it may be a link by now
    return unfinished


def step_page(handler: Callable[[Request, Unfinished], Response]) -> Callable[[Request], Response]:
    """Return an endpoint that shows a step of an unfinished release."""

    @wraps(handler)
    def answer(request: Request) -> Response:
        unfinished = unfinished_of(request)
        with unfinished.lock:
            return handler(request, unfinished)

    return answer


def step_form(
    handler: Callable[[Request, Unfinished, FormData], Response],
) -> Callable[[Request, FormData], Response]:
    """Return a handler of a step's form: one at a time, of the current reading, and not while it is released."""

    @wraps(handler)
    def answer(request: Request, form: FormData) -> Response:
        unfinished = unfinished_of(request)
        with unfinished.lock:
            if unfinished.is_releasing:
                return go(request, f"{unfinished.path}/release")
            if unfinished.is_changed and "written" not in form:
                _read_changed(site_of(request), unfinished)
            elif form.get("reading") != unfinished.header.id:
                unfinished.problems = {"table": OTHER_TAB}
            else:
                unfinished.problems = {}
                return handler(request, unfinished, form)
            return go(request, f"{unfinished.path}/table")

    return answer


def _read_changed(site: Site, unfinished: Unfinished) -> None:
    """Note that the file changed, and take its header as it is now."""
    problems = {"table": CHANGED}
    header = replace(unfinished.header, stamp=())
    with collect_problem(problems, "reason"):
        header = Header.of(unfinished.source, header.dialect)
    unfinished.read(site, header, None)
    unfinished.problems = problems
