"""The ledger: what was spent, and no way past the limit."""

from __future__ import annotations

import dataclasses
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any, Literal

from labeldp._atomic import StrPath
from labeldp.accounts.budget import Budget, Charge, Purpose, new_charge, refuse_long, refuse_overspend, total_of
from labeldp.accounts.ledger_file import FileStore
from labeldp.errors import LedgerError, ParameterError, RepeatedReleaseWarning, Setting, warn


@dataclasses.dataclass(eq=False)
class MemoryStore:
    """A list of charges that belongs to one process."""

    limit: Budget | None
    path: None = None
    owner: int = dataclasses.field(default_factory=os.getpid)
    _charges: list[Charge] = dataclasses.field(default_factory=list, repr=False)
    _lock: Any = dataclasses.field(default_factory=threading.RLock, repr=False)

    def charges(self) -> tuple[Charge, ...]:
        """Return all charges, oldest first."""
        with self._lock:
            return tuple(self._charges)

    known_charges = charges

    def spend(self, charges: Sequence[Charge], reserve: Sequence[Charge] = ()) -> range:
        """Spend several charges together, or none of them, and keep budget for those in reserve."""
        if self.owner != os.getpid():
            raise LedgerError(
                "this is a copy of a ledger that is in the memory of another process, which would not see the "
                "charge: use one in a file, Ledger.open(path, limit=...), in a model by set_params(ledger=...)"
            )
        with self._lock:
            refuse_overspend(self.limit, self._charges, [*charges, *reserve])
            start = len(self._charges)
            self._charges.extend(charges)
            return range(start, start + len(charges))

    def describe(self, position: int, mechanism: str) -> None:
        """Note which mechanism a charge was for."""
        with self._lock:
            self._charges[position] = dataclasses.replace(self._charges[position], mechanism=mechanism)


class Ledger:
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
    >>> ledger.remaining
    Budget(epsilon=0.6)
    """

    def __init__(self, limit: Budget | None = None) -> None:
        if limit is not None and not isinstance(limit, Budget):
            raise ParameterError(Setting("limit"), " must be a Budget, for example Budget(epsilon=3.0)")
        self._store: MemoryStore | FileStore = MemoryStore(limit)
        self._own: dict[int, Charge] = {}
        self._reserve: tuple[Charge, ...] = ()

    @classmethod
    def open(
        cls,
        path: StrPath,
        *,
        limit: Budget | None = None,
        create: Literal["now", "late", "never"] = "now",
    ) -> Ledger:
        """Return the ledger kept in a file, created with ``limit`` if it does not exist.

        Charges are locked between processes and on the disk before the release is handed over. A crash
        may leave a charge without a release, never a release without a charge.

        Parameters
        ----------
        path : path-like
            The file; JSON, one charge a line.
        limit : Budget, optional
            For an existing file it must be left out or equal to the file's: a limit is not changed by
            opening.
        create : {"now", "late", "never"}
            When a file that does not exist is created: now, with the first charge that is accepted, or never.
            With "never" opening it needs no permission to write.

        Examples
        --------
        >>> import tempfile, labeldp as ldp
        >>> path = tempfile.mkdtemp() + "/budget.jsonl"
        >>> ledger = ldp.Ledger.open(path, limit=ldp.Budget(epsilon=3.0))
        >>> charge = ledger.charge("labels of the spring survey", epsilon=1.0, purpose="labels")
        >>> ldp.Ledger.open(path).remaining             # tomorrow, in another process
        Budget(epsilon=2.0)
        """
        ledger = cls(limit)
        ledger._store = FileStore(os.fspath(path), limit, create)
        return ledger

    # ---- reading ----------------------------------------------------------------------------

    @property
    def limit(self) -> Budget | None:
        """What may be spent in all, or None."""
        return self._store.limit

    @property
    def path(self) -> str | None:
        """Where the ledger is kept, or None for one in memory."""
        return self._store.path

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges, oldest first."""
        return self._store.charges()

    @property
    def own_charges(self) -> tuple[Charge, ...]:
        """The charges made through this object; those of other processes may stand between them."""
        return tuple(self._own.values())

    @property
    def total(self) -> Budget:
        """What is spent, the sum of all charges."""
        return total_of(self.charges)

    @property
    def remaining(self) -> Budget | None:
        """What is left of the limit, or None without one."""
        return None if self.limit is None else self.limit.minus(self.total)

    @property
    def is_copy(self) -> bool:
        """Whether this only remembers a ledger in another process's memory, and takes no charge."""
        return isinstance(self._store, MemoryStore) and self._store.owner != os.getpid()

    # ---- writing ----------------------------------------------------------------------------

    def charge(
        self,
        what: str,
        *,
        epsilon: float | Fraction,
        delta: float | Fraction = 0,
        purpose: Purpose = "other",
        mechanism: str | None = None,
        rows_per_person: int = 1,
    ) -> Charge:
        """Spend, or refuse. `privatize` and the regressors do it by themselves if they are given the ledger.

        Parameters
        ----------
        what : str
            What is released, in words.
        epsilon, delta : float or Fraction
            What it costs for one row.
        purpose : {"labels", "prior", "mean", "sums", "score", "intervals", "other"}
            What is released, for programs.
        mechanism : str, optional
            Fingerprint of the mechanism's channel.
        rows_per_person : int
            How many rows one person may have; the charge covers all of them.

        Returns
        -------
        Charge

        Raises
        ------
        BudgetError
            If the limit would be passed; then nothing is spent.
        """
        budget = Budget(epsilon, delta)
        charge = new_charge(what, budget, purpose=purpose, mechanism=mechanism, rows_per_person=rows_per_person)
        self.charge_all([charge])
        return charge

    def charge_all(self, charges: Sequence[Charge]) -> range:
        """Spend several charges together, or none of them; return their positions in `charges`.

        Parameters
        ----------
        charges : sequence of Charge

        Raises
        ------
        BudgetError
            If the limit would be passed; then nothing is spent.
        """
        refuse_long(charge.budget for charge in (*charges, *self._reserve))  # a ledger and a card hold them
        positions = self._store.spend(charges, self._reserve)
        self._own.update(zip(positions, charges, strict=True))
        return positions

    def describe_all(self, positions: Sequence[int], mechanisms: Sequence[str | None]) -> list[Charge]:
        """Note which mechanisms own charges were for, where one is given; return the charges."""
        for position, mechanism in zip(positions, mechanisms, strict=True):
            if mechanism is not None:
                self._store.describe(position, mechanism)
                self._own[position] = dataclasses.replace(self._own[position], mechanism=mechanism)
        return [self._own[position] for position in positions]

    @contextmanager
    def reserve(self, charges: Sequence[Charge]) -> Iterator[None]:
        """Keep budget for charges that follow: in the block, what would leave too little for them is refused.

        Parameters
        ----------
        charges : sequence of Charge
        """
        self._reserve = tuple(charges)
        try:
            yield
        finally:
            self._reserve = ()

    # ---- a ledger is one thing ----------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._store, FileStore):
            create: Literal["late", "never"] = "never" if self._store.exists else "late"
            return partial(Ledger.open, self._store.path, limit=self.limit, create=create), ()
        return _copy, (self.limit, self.total)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} spent={self.total} limit={self.limit}>"


def _copy(limit: Budget | None, spent: Budget) -> Ledger:
    """Return what a pickle has of a ledger in memory; it takes no charge."""
    ledger, store = Ledger(limit), MemoryStore(limit)
    if spent != Budget(0):
        store.spend([new_charge("all that was spent before pickling", spent, purpose="other")])
    store.owner = 0
    ledger._store = store
    return ledger


def as_ledger(ledger: object) -> Ledger | None:
    """Return a ledger or None, or raise `ParameterError`."""
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    raise ParameterError(Setting("ledger"), " must be a Ledger; for a file use Ledger.open(path, limit=...)")


def ledger_notes(ledger: Ledger) -> list[str]:
    """Return what was left in a ledger after a release, or that none was kept."""
    if ledger.path is None:
        return ["No ledger was kept: another release of these labels costs again, and nobody counts it."]
    if ledger.limit is None:
        return []
    left = ledger.limit.minus(total_of(ledger._store.known_charges()))
    return [f"The ledger {ledger.path} has {left} left."]


def ledger_to_charge(ledger: Ledger | None, labels: Any) -> Ledger:
    """Return the ledger to charge; without one, a new one, with a warning if these labels were released before."""
    if ledger is not None:
        return ledger
    warn_if_seen(labels)
    return Ledger()


_released: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_warned: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Label arrays that were released without a ledger, and those that a warning was given for, by identity."""


def warn_if_seen(labels: Any) -> None:
    """Warn, once, if this very object, whatever is in it, was released before without a ledger."""
    key = id(labels)
    is_repeated = key in _released
    try:
        _released[key] = labels
    except TypeError:  # a list, say
        return
    if is_repeated and key not in _warned:
        _warned[key] = labels
        warn(
            "these labels were released before: each release costs epsilon again, and the costs add up. "
            "Keep one release and reuse it, or pass a ledger that counts.",
            RepeatedReleaseWarning,
        )
