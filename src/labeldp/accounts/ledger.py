"""The ledger: an append-only list of charges, with an enforced limit."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import partial
from html import escape
from typing import Any, Unpack, get_args

from labeldp._atomic import StrPath, open_regular
from labeldp._values import parse_choice
from labeldp.accounts.budget import (
    Budget,
    Charge,
    Purpose,
    missing_charges,
    new_charge,
    parse_charge,
    sums_by_segment,
)
from labeldp.accounts.ledger_chain import Book, Chain, Extract, Header, Unit, record_of, write_extract
from labeldp.accounts.ledger_file import LedgerFile, has_charges
from labeldp.accounts.ledger_ids import parse_total
from labeldp.accounts.scope import IdColumn, RowOptions, Scope
from labeldp.accounts.segments import Segments
from labeldp.errors import (
    BudgetError,
    DataError,
    LabelDPError,
    LedgerError,
    Message,
    ParameterError,
    RepeatedReleaseWarning,
    Setting,
    is_called_from,
    list_first,
    warn,
)
from labeldp.mechanisms.typed_data import plain


class LedgerMemory:
    """The charges of a ledger without a file, which belongs to one process.

    Parameters
    ----------
    limit : Budget or None
    """

    path = None
    exists = True

    def __init__(self, limit: Budget | None) -> None:
        self._chain = Chain("the ledger")
        self._records = [self._chain.write(plain(Header(limit)))]
        self._lock = threading.RLock()
        self.owner = os.getpid()

    def chain(self) -> Chain:
        """Return all records."""
        return self._chain

    @property
    def header(self) -> Header:
        """The first record."""
        return self._chain.rules

    def records(self) -> list[tuple[str, str]]:
        """Return the text and the hash of each record."""
        return self._records

    def spend(self, charges: Sequence[Charge], reserve: Sequence[Charge], scope: Scope) -> None:
        """Spend several charges together, or none of them."""
        if scope.ids is not None:
            raise ParameterError(
                "ids are kept in the file of a ledger: use Ledger.open(path, limit=...)", option="id"
            )
        with self._lock:
            self._chain.refuse_overspend(charges, reserve)
            self._records.append(self._chain.write(record_of({"charges": charges})))


class Ledger(Book):
    """An append-only list of charges with a limit that is never passed.

    Parameters
    ----------
    limit : Budget, optional
        A charge that would pass it is refused, and nothing is spent. Without, all is counted and
        nothing refused.

    See Also
    --------
    Ledger.open : a ledger in a file, shared between processes.

    Examples
    --------
    >>> import labeldp as ldp
    >>> ledger = ldp.Ledger(limit=ldp.Budget(epsilon=1.0))
    >>> charge = ledger.charge("labels", epsilon=0.4)
    >>> ledger.remaining()
    Budget(epsilon=0.6)
    """

    def __init__(self, limit: Budget | None = None) -> None:
        if limit is not None and not isinstance(limit, Budget):
            raise ParameterError(Setting("limit"), " must be a Budget, for example Budget(epsilon=3.0)")
        self._store: LedgerFile | LedgerMemory = LedgerMemory(limit)
        self._own_charges: list[Charge] = []
        self._reserve: tuple[Charge, ...] = ()

    @classmethod
    def open(
        cls,
        path: StrPath,
        *,
        limit: Budget | None = None,
        unit: Unit | None = None,
        segments: str | None = None,
        create: bool = True,
    ) -> Ledger:
        """Return the ledger kept in a file, created with ``limit`` if it does not exist.

        Charges are locked between processes and on the disk before the release is handed over. A crash
        may leave a charge without a release, never a release without a charge. Keep the file on a disk
        of the machine: some network file systems do not lock.

        Parameters
        ----------
        path : path-like
            The file, an SQLite database.
        limit : Budget, optional
            For an existing file it must be left out or equal to the file's: a limit is not changed by
            opening. So must ``unit`` and ``segments``.
        unit : {"label", "person"}
            The unit of the limit: a label, by default, or a person, whose own account adds up the cost of all
            their rows; then every release needs ``person``, and the labels of people without budget stay empty.
        segments : str, optional
            The name of the segmentation, such as ``"night"``; otherwise the first ``segment`` begins one.
        create : bool
            If False, the file must exist, and opening it needs no permission to write.

        Examples
        --------
        >>> import tempfile, labeldp as ldp
        >>> path = tempfile.mkdtemp() + "/budget.db"
        >>> ledger = ldp.Ledger.open(path, limit=ldp.Budget(epsilon=3.0))
        >>> charge = ledger.charge("labels of the spring survey", epsilon=1.0, purpose="labels")
        >>> ldp.Ledger.open(path).remaining()           # tomorrow, in another process
        Budget(epsilon=2.0)
        """
        ledger = cls._at(path, limit, unit, segments)
        ledger._require_file().prepare(create=create)
        return ledger

    @classmethod
    def prepare(
        cls,
        path: StrPath,
        *,
        limit: Budget | None = None,
        unit: Unit | None = None,
        segments: str | None = None,
    ) -> Ledger:
        """Return the ledger kept in a file; the first accepted charge creates the file, so a refusal leaves none.

        Parameters
        ----------
        path, limit, unit, segments
            As for `Ledger.open`.

        Examples
        --------
        >>> import os, tempfile, labeldp as ldp
        >>> path = tempfile.mkdtemp() + "/budget.db"
        >>> ledger = ldp.Ledger.prepare(path, limit=ldp.Budget(epsilon=3.0))
        >>> os.path.exists(path), ledger.remaining()
        (False, Budget(epsilon=3.0))
        """
        if os.path.lexists(path):
            return cls.open(path, limit=limit, unit=unit, segments=segments)
        return cls._at(path, limit, unit, segments)

    @classmethod
    def _at(cls, path: StrPath, limit: Budget | None, unit: str | None, segments: str | None) -> Ledger:
        """Return the ledger of a file that is not read yet."""
        ledger = cls(limit)
        if unit is not None:
            parse_choice(unit, "unit", get_args(Unit))
        ledger._store = LedgerFile(os.fspath(path), limit=limit, unit=unit, segments=segments)
        return ledger

    def _require_file(self) -> LedgerFile:
        if isinstance(self._store, LedgerMemory):
            raise LedgerError("this needs a ledger in a file: use Ledger.open(path, limit=...)")
        return self._store

    # ---- reading ----------------------------------------------------------------------------

    @property
    def chain(self) -> Chain:
        """All records."""
        return self._store.chain()

    @property
    def rules(self) -> Header:
        """The limit, its unit and the name of the segmentation, as they were fixed when it was created."""
        return self._store.header

    @property
    def unit(self) -> str:
        """The unit of the limit, "label" or "person"."""
        return self.rules.unit

    @property
    def path(self) -> str | None:
        """The path of the file, or None for a ledger in memory."""
        return self._store.path

    @property
    def own_charges(self) -> tuple[Charge, ...]:
        """The charges made through this object; those of other processes may stand between them."""
        return tuple(self._own_charges)

    def total_of_person(self, person: str | int) -> Budget:
        """Return the total of a person, in a ledger for people.

        Parameters
        ----------
        person : str or int
        """
        self._require_people()
        people = IdColumn.parse([person], "person")
        with self._require_file().ids(people) as ids:
            return Budget(parse_total(ids.totals(people)[0]))

    def withdraw(self, person: str | int) -> None:
        """Let the labels of a person be used in no further release; past charges stay.

        Parameters
        ----------
        person : str or int

        Examples
        --------
        >>> import tempfile, labeldp as ldp
        >>> path = tempfile.mkdtemp() + "/budget.db"
        >>> ledger = ldp.Ledger.open(path, limit=ldp.Budget(2.0), unit="person")
        >>> ledger.withdraw("anna")
        >>> ledger.total_of_person("anna")
        Budget(epsilon=0.0)
        """
        self._require_people()
        self._require_file().withdraw(IdColumn.parse([person], "person"))

    def _require_people(self) -> None:
        if self.unit != "person":
            raise LedgerError('this ledger has no accounts of people: they need one of unit="person"')

    def backup(self, path: StrPath, *, force: bool = False) -> None:
        """Write a copy of the ledger's file; put it back with ``labeldp ledger LEDGER --restore COPY``.

        Parameters
        ----------
        path : path-like
        force : bool
            Whether it may replace a file.
        """
        self._require_file().backup(path, force=force)

    def to_extract(self) -> str:
        """Return the extract of the ledger, JSON for a reviewer, who does not open somebody else's database.

        Examples
        --------
        >>> import json, labeldp as ldp
        >>> ledger = ldp.Ledger(limit=ldp.Budget(epsilon=1.0))
        >>> charge = ledger.charge("labels", epsilon=0.4)
        >>> json.loads(ledger.to_extract())["total"]
        '2/5'
        """
        return write_extract(self._store.records())

    @property
    def is_copy(self) -> bool:
        """True for the memory of a ledger in another process, which takes no charge."""
        return isinstance(self._store, LedgerMemory) and self._store.owner != os.getpid()

    # ---- writing ----------------------------------------------------------------------------

    def charge(
        self,
        description: str,
        *,
        epsilon: float | Fraction,
        purpose: Purpose = "other",
        mechanism: str | None = None,
        rows_per_person: int = 1,
        **rows: Unpack[RowOptions],
    ) -> Charge:
        """Spend, or refuse. `privatize` and the regressors do it by themselves if they are given the ledger.

        Parameters
        ----------
        description : str
            The output in words.
        epsilon : float or Fraction
            The cost of one row.
        purpose : {"labels", "prior", "mean", "sums", "score", "intervals", "other"}
            The kind of output, for programs.
        mechanism : str, optional
            Fingerprint of the mechanism's channel.
        rows_per_person : int
            The number of rows that one person may have; the charge covers all of them.
        **rows
            ``segment``, ``id`` and ``person``, as in `labeldp.privatize`.

        Returns
        -------
        Charge

        Raises
        ------
        BudgetError
            If the limit would be passed; then nothing is spent.
        """
        budget = Budget(epsilon)
        scope = Scope.parse(rows_per_person, **rows)
        parse_choice(purpose, "purpose", get_args(Purpose))
        charge = new_charge(description, budget, purpose=purpose, mechanism=mechanism, scope=scope)
        self.charge_all([charge], scope)
        return charge

    def admit(self, scope: Scope, rows: int, epsilon: Fraction) -> Scope:
        """Return the scope of the rows that may be released; rows of people without budget are left out.

        The rule reads public ids alone.

        Parameters
        ----------
        scope : Scope
        rows : int
            The number of rows with a label.
        epsilon : Fraction
            The whole cost of a row.
        """
        scope = scope.for_rows(rows)
        if self.unit == "person":
            people, dearest = self._people_of(scope), Budget(scope.rows_per_person * epsilon)
            is_open = self.limit is None or self.total + dearest <= self.limit
            if self.chain.withdrawn or not is_open:  # else nobody can pass the limit
                with self._require_file().ids(people) as ids:
                    scope = scope.without(ids.exhausted(people, epsilon, self.limit))
            if not scope.used_rows(rows):
                raise BudgetError(
                    f"nobody in these rows has {Budget(epsilon)} left for each of their rows. Nothing was "
                    "spent: take a smaller epsilon, or other rows",
                    option="ledger",
                )
            if scope.exhausted:
                warn(f"The labels of {scope.exhausted:,} people without budget stay empty")
        return scope

    def _people_of(self, scope: Scope) -> IdColumn:
        if scope.people is None:
            raise ParameterError("this ledger has an account for each person: give ", Setting("person"))
        return scope.people

    def charge_all(self, charges: Sequence[Charge], scope: Scope | None = None) -> None:
        """Spend several charges together, or none of them.

        Parameters
        ----------
        charges : sequence of Charge
        scope : Scope, optional
            The rows that they are for, with ids of rows and of people.

        Raises
        ------
        BudgetError
            If the limit would be passed; then nothing is spent.
        """
        charges = list(map(parse_charge, charges))
        if self.is_copy:
            raise LedgerError(
                "this is a copy of a ledger that is in the memory of another process, which would not see the "
                "charge: use one in a file, Ledger.open(path, limit=...), in a model by set_params(ledger=...); "
                "or n_jobs=1"
            )
        if not charges:  # a score that costs nothing beyond its fit
            return
        scope = scope or Scope()
        if self.unit == "person":
            self._people_of(scope)
        self._store.spend(charges, self._reserve, scope)
        self._own_charges.extend(charges)

    @contextmanager
    def reserve(self, charges: Sequence[Charge]) -> Iterator[None]:
        """Keep budget for charges that follow: in the block, what would leave too little for them is refused.

        Parameters
        ----------
        charges : sequence of Charge
        """
        outer = self._reserve
        self._reserve = (*outer, *charges)
        try:
            yield
        finally:
            self._reserve = outer

    # ---- a ledger is one thing ----------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            return _copy, (self.limit, self.total)
        if self._store.exists:
            return _reopen, (self.path, self.limit)
        rules = self.rules
        prepare = partial(Ledger.prepare, limit=rules.limit, unit=rules.unit, segments=rules.segments)
        return prepare, (self.path,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} spent={self.total} limit={self.limit}>"

    def _repr_html_(self) -> str:
        """Show the total and each charge in a notebook."""
        limit = "no limit" if self.limit is None else f"{self.remaining()} of {self.limit} left"
        lines = [f"{charge.budget}  {charge.when[:10]}  {charge.description}" for charge in self.charges]
        return f"<pre>{escape(chr(10).join([f'{self.total} spent, {limit}', *lines]))}</pre>"


def _copy(limit: Budget | None, total: Budget) -> Ledger:
    """Return the copy of a ledger in memory that a pickle holds; it takes no charge."""
    ledger = Ledger(limit)
    if total != Budget(0):
        ledger.charge_all([new_charge("all that was spent before pickling", total, purpose="other")])
        ledger._own_charges.clear()
    ledger._store.owner = 0  # type: ignore[union-attr] # of no process
    return ledger


def _reopen(path: str, limit: Budget | None) -> Ledger:
    """Return the ledger in the file that a pickle names."""
    if not os.path.lexists(path):
        raise LedgerError(
            f"this pickle needs its ledger, and there is no file {path}: save_model writes a model without one"
        )
    return Ledger.open(path, limit=limit, create=False)


def as_ledger(ledger: object) -> Ledger | None:
    """Return a ledger or None, or raise `ParameterError`."""
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    raise ParameterError(Setting("ledger"), " must be a Ledger; for a file use Ledger.open(path, limit=...)")


def open_book(path: StrPath) -> Book:
    """Return the ledger of a database, to be read, or the extract of one.

    A reviewer reads extracts only, by `Extract.load`.
    """
    is_extract = False
    with suppress(DataError), open_regular(path) as stream:
        is_extract = stream.read(1) == b"{"
    if is_extract:
        return Extract.load(path)
    return Ledger.open(path, create=False)


def ledger_notes(ledger: Ledger) -> list[str]:
    """Return a note on the remaining budget after a release, or that no ledger was kept."""
    if ledger.path is None:
        return ["No ledger was kept: another release of these labels costs again, and nobody counts it."]
    try:
        return _balance_notes(ledger)
    except (LabelDPError, OSError):  # the release is in place
        return [f"The release was charged, but now the ledger {ledger.path} cannot be read: restore it."]


def _balance_notes(ledger: Ledger) -> list[str]:
    """Return the remaining budget of the rows that were charged last, and whether they were charged before."""
    charges, last = ledger.charges, ledger.own_charges[-1:]
    segments = last[0].segments if last else None
    remaining = ledger.chain.remaining(segments)
    where = "" if segments is None else f" for rows of {segments}"
    if ledger.unit == "person":
        where = " for the person with the largest total"
    balance = f"{ledger.total} in all, and no limit" if remaining is None else f"{remaining} left{where}"
    notes = [f"The ledger {ledger.path} has {balance}."]
    _, earlier = sums_by_segment(missing_charges(charges, ledger.own_charges))
    if segments is not None and (names := [name for name in segments.names if name in earlier]):
        notes.append(f"Charged before: {Segments.of(names)}. Costs in one segment add up.")
    return notes


def note_other_ledgers(ledger: Ledger, files: Mapping[str, StrPath], label: str) -> Message | None:
    """Return one sentence on other ledgers of the same column, and how to use one of them; None if there are none.

    Files that are not ledgers do not count, and no lock is waited for.

    Parameters
    ----------
    ledger : Ledger
        The one that is about to be charged.
    files : mapping of str to path
        Possible ledgers, by the names to show.
    label : str
        The private column.
    """
    charged = os.path.realpath(ledger.path) if ledger.path else ""
    candidates = {name: path for name, path in files.items() if os.path.realpath(path) != charged}
    ledgers = [name for name, path in candidates.items() if has_charges(path, label)]
    if not ledgers:
        return None
    has = "another ledger has" if len(ledgers) == 1 else "other ledgers have"
    sentence = (
        f"For people whose labels are in several ledgers, costs add up: {has} charges, {list_first(ledgers, 3)}"
    )
    return Message(f"{sentence}. To charge it instead, give ", Setting("ledger", ledgers[0]))


def ledger_to_charge(ledger: Ledger | None, labels: Any) -> Ledger:
    """Return the ledger to charge; without one, a new one, with a warning if these labels were released before."""
    if ledger is not None:
        return ledger
    warn_if_seen(labels)
    return Ledger()


_released: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Labels that were released without a ledger, by their identity while they exist."""


_REPEATED = "these labels were released before"


def warn_if_seen(labels: Any) -> None:
    """Warn if the same object was released before without a ledger, or is being cross-validated."""
    is_cross_validated = is_called_from("sklearn.model_selection")
    if is_cross_validated or _released.get(id(labels)) is labels:
        event = "cross-validation releases labels in several fits" if is_cross_validated else _REPEATED
        warn(
            f"{event}: each release costs epsilon again, and the costs add up. "
            "Keep one release and reuse it, or pass a ledger that counts.",
            RepeatedReleaseWarning,
        )
    with suppress(TypeError):  # a list has no weak references
        _released[id(labels)] = labels


def forget_labels(labels: Any) -> None:
    """Forget that labels were to be released without a ledger: nothing was."""
    if _released.get(id(labels)) is labels:
        del _released[id(labels)]
