"""The ledger that a command was asked for: a new file is made only with a charge that it accepts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from labeldp.cli.options import limit_of, refuse_lone_limit
from labeldp.ledger import Budget, Charge, Ledger, refuse_overspend, total_of

__all__ = ["LateLedger"]


class LateLedger(Ledger):
    """A ledger in a file, made with its first charge if it is new; so what is refused leaves no empty one behind.

    Without a path it is in memory: then nothing adds up over several runs.

    Parameters
    ----------
    path : path, optional
    limit, limit_delta : float, optional
        For a new file. One that is there is opened now, and must agree.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "budget.jsonl")
    >>> ledger = LateLedger(path, 1.0)
    >>> path.exists()
    False
    >>> charge = ledger.charge("labels", epsilon=0.4)
    >>> Ledger.open(path).remaining
    Budget(epsilon=0.6)
    """

    def __init__(self, path: Path | None, limit: float | None = None, limit_delta: float = 0.0) -> None:
        refuse_lone_limit(path, limit, limit_delta)
        super().__init__(limit_of(limit, limit_delta))
        self._path = path
        self._kept: tuple[Charge, ...] = ()
        self._made: list[int] = []
        self._paid: list[Charge] = []
        self._book: Ledger | None = None
        if path is None or os.path.lexists(path):
            self._book = self._opened()

    def _opened(self) -> Ledger:
        return Ledger() if self._path is None else Ledger.open(self._path, limit=self._limit)

    @property
    def limit(self) -> Budget | None:
        """What may be spent in all, or None."""
        return self._limit if self._book is None else self._book.limit

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges, oldest first."""
        return () if self._book is None else self._book.charges

    @property
    def made(self) -> tuple[Charge, ...]:
        """The charges that were made here; those of others may stand between them."""
        charges = self.charges
        return tuple(charges[place] for place in self._made)

    def spent_for_nothing(self) -> str:
        """Return what to say when something went wrong: what was charged here stays spent."""
        if self._path is None or not self._paid:
            return ""
        return f"{total_of(self._paid)} was charged before that, and stays spent."

    def refuse(self, charges: Sequence[Charge]) -> None:
        """Raise `BudgetError` if charges would pass the limit."""
        refuse_overspend(self.limit, self.charges, charges)

    @contextmanager
    def keeping(self, charges: Sequence[Charge]) -> Iterator[None]:
        """Keep room for charges that follow later: meanwhile, what would leave too little for them is refused."""
        self._kept = tuple(charges)
        try:
            yield
        finally:
            self._kept = ()

    def charge_all(self, charges: Sequence[Charge]) -> range:
        """Spend several charges together, or none of them."""
        self.refuse([*charges, *self._kept])
        if self._book is None:
            self._book = self._opened()
        places = self._book.charge_all(charges)
        self._made += places
        self._paid += charges
        return places

    def describe(self, place: int, mechanism: str) -> None:
        """Note which mechanism a charge was for."""
        (self._book or Ledger()).describe(place, mechanism)
