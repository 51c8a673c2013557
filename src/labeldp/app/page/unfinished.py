"""A release that is being prepared: a table as it was opened, everything that was chosen for it, and the request.

Another private column, other columns or another way to read the file begin another release, at an address of its
own: a form in an older tab goes on with the table that it was shown for.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request

from labeldp._values import Data, as_fraction
from labeldp.accounts.budget import Budget, Charge, new_charge
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scope import Scope
from labeldp.app.options import open_ledger
from labeldp.app.page.forms import Problems, Texts
from labeldp.app.page.site import Site, site_of
from labeldp.app.page.work import Work
from labeldp.errors import DataError, Message, ParameterError, Setting
from labeldp.tables.dialect import Dialect
from labeldp.tables.hints import HintSampler
from labeldp.tables.opening import TableHeader, table_header
from labeldp.tables.overview import Overview, overview


def new_id() -> str:
    """Return a random name for an address."""
    return secrets.token_urlsafe(9)


def _stamp_of(source: Path) -> tuple[int, ...]:
    """Return the inode, size and times of a file; none of it is ever shown."""
    status = source.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@dataclass(frozen=True)
class ReleaseRequest:
    """A release that was asked for.

    Attributes
    ----------
    kind : {"table", "model", "regression"}
    source, out, ledger : Path
    limit : float or None
        Of a ledger that is new; one that is there must have the same, or it refuses.
    options : dict
        Of `labeldp.privatize_file`, `labeldp.fit_file` or `regress_file`, by name.
    id : str
        Is sent with the button: it releases the request that it was shown with.
    """

    kind: str
    source: Path
    out: Path
    ledger: Path
    limit: float | None
    options: Data
    id: str = field(default_factory=new_id)

    @property
    def price(self) -> Charge:
        """The whole cost."""
        price = Budget(max(as_fraction(self.options["epsilon"]), as_fraction(self.options.get("score") or 0)))
        scope = Scope.parse(self.options["rows_per_person"], segment=self.options.get("segment"))
        return new_charge(self.kind, price, purpose="other", scope=scope)

    def open_ledger(self) -> Ledger:
        """Return the ledger to charge; a new file is created with its first charge."""
        return open_ledger(self.ledger, self.limit)


@dataclass
class Unfinished:
    """A table as it is now, of which only the header is read at first, with the choices so far.

    Attributes
    ----------
    source : Path
    dialect : Dialect
        How it is written, as far as the owner said so.
    label : str or None
        The private column; as long as nothing was read, the one that was chosen last.
    left_out : frozenset of str
        Columns that are not shared, also those that the header lacks while the file is read the wrong way.
    earlier : frozenset of str or None
        The columns of the release that is done again; others are left out as soon as a header has them.
    written, typed : dict
        Texts of forms, by field: those of the dialect, and all that are shown again.
    problems : dict
        Problems of the form that was sent last, by its step and by field; shown with that step.
    is_chosen : bool
        Whether to go on once the table is read, because its columns were chosen together with that.
    options : dict or None
        Bounds and other options of rows, once they are valid.
    request : ReleaseRequest or None
        The release that is asked for; None as soon as anything in it is chosen again.
    lock : Lock
        Held by the one request that is being answered.
    """

    source: Path
    dialect: Dialect
    label: str | None = None
    left_out: frozenset[str] = frozenset()
    written: Texts = field(default_factory=dict)
    typed: Texts = field(default_factory=dict)
    problems: dict[str, Problems] = field(default_factory=dict)
    is_chosen: bool = False
    reading: Work | None = None
    options: Data | None = None
    request: ReleaseRequest | None = None
    release: Work | None = None
    earlier: frozenset[str] | None = None
    id: str = field(default_factory=new_id)
    lock: Any = field(default_factory=threading.Lock)
    header: TableHeader = field(init=False)
    stamp: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.stamp = _stamp_of(self.source)
        self.header = table_header(self.source, dialect=self.dialect)

    def leave_out_new(self, names: Iterable[str] = ()) -> None:
        """Leave out columns that neither an earlier header nor the release that is done again has."""
        if self.earlier is not None:
            self.left_out |= frozenset(self.header.names).difference(names, self.earlier)

    def refuse_changed(self) -> None:
        """Refuse to go on with a file that is not the one that was opened, whatever it contains."""
        if _stamp_of(self.source) != self.stamp:
            raise DataError("the file changed since it was opened: begin again with it")

    def at(self, step: str) -> str:
        """Return where the page of a step is."""
        return f"/new/{self.id}/{step}"

    @property
    def rows_per_person(self) -> int:
        """Rows that one person may have."""
        return int((self.options or {})["rows_per_person"])

    @property
    def drop(self) -> tuple[str, ...]:
        """The columns of the table that are not shared."""
        return tuple(name for name in self.header.names if name in self.left_out)

    @property
    def overview(self) -> Overview | None:
        """The overview of the table, once it is read."""
        return self.reading.result[0] if self.reading is not None and self.reading.state == "done" else None

    @property
    def rows(self) -> int:
        """The number of rows with a private value."""
        return max(1, self.overview.rows - self.overview.missing) if self.overview else 1

    @property
    def hints(self) -> list[Message]:
        """Hints on columns that reveal labels: for the owner only, on no disk, and gone with the page."""
        if self.reading is None or self.overview is None:
            return []
        hints, sampler = self.reading.result[1:]
        if self.options is None:
            return list(hints)
        gone = Setting("shuffle", True) if self.options["shuffle"] else None
        bound_hints: list[Message] = sampler.bound_hints(self.options["bounds"])
        return bound_hints + [hint for hint in hints if gone not in hint.pieces]

    def keep_typed(self, form: FormData, names: Iterable[str]) -> None:
        """Keep typed text, to show it again."""
        self.typed = self.typed | {name: typed_texts(form, name) for name in names}

    def begin(self, site: Site) -> None:
        """Give it an address, and read the table in a thread if it has the private column."""
        site.unfinished[self.id] = self
        if self.label in self.header.names:
            self.reading = site.start(self._read, self.at("table"), self.refuse_changed)

    def _read(self, work: Work) -> tuple[Overview, list[Message], HintSampler]:
        samplers: list[HintSampler] = []
        table = overview(
            self.source,
            label=str(self.label),
            drop=self.drop,
            dialect=self.dialect,
            progress=work.progress,
            hints=samplers.append,
        )
        return table, samplers[0].hints(ordered=True), samplers[0]


def typed_texts(form: FormData, name: str) -> list[str]:
    """Return the texts in the fields of a name."""
    return [str(text) for text in form.getlist(name)] or [""]


@contextmanager
def unfinished_of(request: Request) -> Iterator[tuple[Site, Unfinished]]:
    """Yield the page, and the unfinished release that a request is for: one request at a time."""
    site = site_of(request)
    unfinished = site.unfinished.get(request.path_params["id"])
    if unfinished is None:
        raise ParameterError("labeldp was started again since: begin with the table")
    with unfinished.lock:
        yield site, unfinished
