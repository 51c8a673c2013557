"""The charges of a ledger that is kept in memory."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Sequence

from labeldp.errors import LedgerError
from labeldp.ledger.budget import Budget
from labeldp.ledger.charge import Charge, refuse_overspend

__all__ = ["MemoryStore"]


class MemoryStore:
    """A list of charges that belongs to one process."""

    path = None

    def __init__(self, limit: Budget | None) -> None:
        self.limit = limit
        self.owner = os.getpid()
        self._charges: list[Charge] = []
        self._lock = threading.RLock()

    def charges(self) -> tuple[Charge, ...]:
        """Return all charges, oldest first."""
        with self._lock:
            return tuple(self._charges)

    def spend(self, charges: Sequence[Charge], reserve: Sequence[Charge] = ()) -> range:
        """Spend several charges together, or none of them, and leave room for those in reserve."""
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

    def describe(self, place: int, mechanism: str) -> None:
        """Note which mechanism a charge was for."""
        with self._lock:
            if not 0 <= place < len(self._charges):
                raise LedgerError(f"the ledger has no charge {place}")
            self._charges[place] = dataclasses.replace(self._charges[place], mechanism=mechanism)
