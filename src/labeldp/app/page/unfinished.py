"""A release that is being prepared: a table as it was read, and everything that was chosen for it so far.

Another private column, other columns or another way to read the file begin another release, at an address of its
own: a form in an older tab goes on with the table that it was shown for.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp.app.page.release_request import ReleaseRequest
from labeldp.app.page.site import Site, go, site_of
from labeldp.app.page.table_file import TableFile
from labeldp.app.page.work import Work
from labeldp.app.sentences import as_field
from labeldp.errors import Message, ParameterError, Setting
from labeldp.tables.overview import Overview, overview


@dataclass
class Unfinished:
    """What was chosen so far.

    Attributes
    ----------
    table : TableFile
    label : str or None
        The private column; as long as nothing was read, the one that was chosen last.
    left_out : tuple of str
        Columns that are not shared, also those that the header lacks while the file is read the wrong way.
    typed : dict
        What was typed into forms, by field.
    problems : dict
        What is wrong with it, by field.
    options : dict or None
        Bounds and other options of rows, once they are valid.
    request : ReleaseRequest or None
        What is to be released; None as soon as anything that it is made of is chosen again.
    lock : Lock
        Held by the one request that is being answered.
    """

    table: TableFile
    label: str | None = None
    left_out: tuple[str, ...] = ()
    typed: dict[str, list[str]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    reading: Work | None = None
    options: dict[str, Any] | None = None
    request: ReleaseRequest | None = None
    release: Work | None = None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    lock: Any = field(default_factory=threading.Lock)

    @property
    def path(self) -> str:
        """Where its pages are."""
        return f"/new/{self.id}"

    @property
    def drop(self) -> tuple[str, ...]:
        """The columns of the table that are not shared."""
        return tuple(name for name in self.table.header.names if name in self.left_out)

    @property
    def seen(self) -> Overview | None:
        """What is in the table, once it is read."""
        return self.reading.result[0] if self.reading is not None and self.reading.state == "done" else None

    @property
    def hints(self) -> list[str]:
        """What reveals labels. For the owner only: on no disk, in no address, gone with the page."""
        if self.seen is None or self.reading is None:
            return []
        hints: list[Message] = self.reading.result[1]
        if self.options is not None and self.options["shuffle"]:
            hints = [hint for hint in hints if Setting("shuffle", True) not in hint.parts]
        return [hint.spell(_as_tick) for hint in hints]

    def keep_typed(self, form: FormData, names: Iterable[str]) -> None:
        """Keep what was typed into fields, to show it again."""
        texts = {name: [str(text) for text in form.getlist(name)] or [""] for name in names}
        self.typed = {**self.typed, **texts}

    def begin(self, site: Site) -> None:
        """Give it an address, and read the table in a thread if it has the private column."""
        site.unfinished[self.id] = self
        if self.label not in self.table.header.names:
            return
        label, drop = str(self.label), self.drop

        def task(work: Work) -> tuple[Overview, list[Message]]:
            hints: list[Message] = []
            table, progress = self.table, work.progress
            seen = overview(
                table.source, label=label, drop=drop, dialect=table.dialect, progress=progress, hints=hints.extend
            )
            return seen, hints

        self.reading = site.start(task, f"{self.path}/table", self.table.refuse_changed)


def _as_tick(setting: Setting) -> str:
    """Return an option in a hint; columns are left out by their ticks."""
    return "its tick" if setting.option == "drop" else as_field(setting)


def step(handler: Callable[..., Response]) -> Callable[..., Response]:
    """Return an endpoint for a page of an unfinished release, or for its form: one request at a time."""

    @wraps(handler)
    def answer(request: Request, *form: FormData) -> Response:
        site = site_of(request)
        unfinished = site.unfinished.get(request.path_params["id"])
        if unfinished is None:
            raise ParameterError("labeldp was started again since: begin with the table")
        site.folder.refuse_elsewhere(unfinished.table.source)  # each time: it may be a link by now
        with unfinished.lock:
            if form and unfinished.release is not None and unfinished.release.state == "running":
                return go(request, f"{unfinished.path}/release")
            if form:
                unfinished.table.refuse_changed()
                unfinished.problems = {}
            return handler(request, unfinished, *form)

    return answer
