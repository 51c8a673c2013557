"""The ledger: what was spent on what, exactly, and never more than the limit.

Budgets are fractions. A float enters as the decimal that the user wrote, so ten releases at 0.1 fit into
a limit of 1. A ledger is one thing: copies are the ledger itself, so that cloning an estimator mints no
budget. A pickle of one in memory tells its limit and what was spent, and takes no charge: the ledger itself
would not see it.

Examples
--------
>>> ledger = Ledger(limit=Budget(epsilon=1.0))
>>> for _ in range(10):
...     charge = ledger.charge("labels", epsilon=0.1)
>>> ledger.total, ledger.remaining
(Budget(epsilon=1.0), Budget(epsilon=0.0))
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal, get_args

from labeldp._validation import rounded_up
from labeldp.errors import BudgetError, LedgerError, ParameterError
from labeldp.ledger.budget import Budget, group_budget

__all__ = ["Budget", "Charge", "Ledger", "Purpose", "group_budget", "total_of"]

Purpose = Literal["labels", "prior", "mean", "sums", "score", "other"]
"""What was released for a charge: programs read this, people read the text beside it."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One entry of a ledger.

    Attributes
    ----------
    what : str
        What was released, in words.
    budget : Budget
        What it cost, group privacy included.
    when : str
        Time of the charge, UTC.
    mechanism : str or None
        Fingerprint of the mechanism's channel, once it is known.
    rows_per_person : int
        How many rows one person may have; the cost above is for all of them.
    purpose : {"labels", "prior", "mean", "sums", "score", "other"}
        What was released, for programs.
    column : int or None
        Which label column it was for, where each column has its own charge.
    """

    what: str
    budget: Budget
    when: str
    mechanism: str | None = None
    rows_per_person: int = 1
    purpose: Purpose = "other"
    column: int | None = None

    def __str__(self) -> str:
        return f"{rounded_up(self.budget.epsilon)} for {self.what}"

    def as_data(self) -> dict[str, Any]:
        """Return the charge as pure data, for cards and files."""
        return {
            "what": self.what,
            "budget": self.budget.as_data(),
            "when": self.when,
            "mechanism": self.mechanism,
            "rows_per_person": self.rows_per_person,
            "purpose": self.purpose,
            "column": self.column,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Charge:
        """Return the charge that `as_data` wrote.

        Raises
        ------
        ParameterError
            If it is none.
        """
        if not isinstance(data, dict) or set(data) != {field.name for field in dataclasses.fields(cls)}:
            raise ParameterError("a charge must have its entries, and no others")
        what, when, mechanism, people = (data[k] for k in ("what", "when", "mechanism", "rows_per_person"))
        if not (isinstance(what, str) and isinstance(when, str) and isinstance(mechanism, str | None)):
            raise ParameterError("what, when and mechanism of a charge must be text")
        if type(people) is not int or not 1 <= people < 1 << 63:
            raise ParameterError("rows_per_person of a charge must be a positive integer of 63 bits")
        purpose, column = data["purpose"], data["column"]
        if not isinstance(purpose, str) or purpose not in get_args(Purpose):
            raise ParameterError(f"purpose of a charge must be one of {', '.join(get_args(Purpose))}")
        if column is not None and (type(column) is not int or not 0 <= column < 1 << 63):
            raise ParameterError("column of a charge must be an integer from 0, or null")
        budget = Budget.from_data(data["budget"])
        return cls(what, budget, when, mechanism, people, purpose, column)  # type: ignore[arg-type]


def name_of_charge(what: str, column: int, columns: int) -> str:
    """Return what the charge for a label column is called, of this many columns."""
    return what if columns == 1 else f"{what}, column {column}"


def new_charge(
    what: str,
    budget: Budget,
    *,
    purpose: Purpose,
    column: int | None = None,
    mechanism: str | None = None,
    rows_per_person: int = 1,
) -> Charge:
    """Return a charge made now, at the price for all of a person's rows."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    cost = group_budget(budget, rows_per_person)
    return Charge(what, cost, when, mechanism, int(rows_per_person), purpose, column)


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
    """

    def __init__(self, limit: Budget | None = None) -> None:
        if limit is not None and not isinstance(limit, Budget):
            raise ParameterError("limit must be a Budget, for example Budget(epsilon=3.0)")
        self._limit = limit
        self._charges: list[Charge] = []
        self._lock = threading.RLock()
        self._owner = os.getpid()

    @staticmethod
    def open(path: str | os.PathLike[str], *, limit: Budget | None = None) -> Ledger:
        """Return the ledger kept in a file, made with ``limit`` if it does not exist.

        Charges are locked between processes and on the disk before the release is handed over. A crash
        may leave a charge without a release, never a release without a charge.

        Parameters
        ----------
        path : path
        limit : Budget, optional
            For an existing file it must be left out or equal to the file's: a limit is not changed by
            opening.
        """
        from labeldp.ledger.file import FileLedger  # noqa: PLC0415 (it is built on this module)

        return FileLedger(os.fspath(path), limit)

    # ---- reading ----------------------------------------------------------------------------

    @property
    def limit(self) -> Budget | None:
        """What may be spent in all, or None."""
        return self._limit

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges, oldest first."""
        with self._lock:
            return tuple(self._charges)

    @property
    def total(self) -> Budget:
        """What is spent: the sum of all charges."""
        return total_of(self.charges)

    @property
    def remaining(self) -> Budget | None:
        """What is left of the limit, or None without one."""
        return None if self.limit is None else self.limit.minus(self.total)

    @property
    def _here(self) -> bool:
        """Whether this is the ledger itself: not a child's memory of it, and not its pickle."""
        return self._owner == os.getpid()

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
        """Spend, or refuse.

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
        """Spend several charges together, or none of them; return their places in `charges`."""
        if not self._here:
            raise LedgerError(
                "this ledger stayed behind in the memory of another process, or was pickled, and would not see "
                "the charge: use one in a file, Ledger.open(path, limit=...), in a model by set_params(ledger=...)"
            )
        with self._lock:
            refuse_overspend(self._limit, self._charges, charges)
            start = len(self._charges)
            self._charges.extend(charges)
            return range(start, start + len(charges))

    def describe(self, place: int, mechanism: str) -> None:
        """Note which mechanism a charge was for, where that was decided after charging."""
        with self._lock:
            if not 0 <= place < len(self._charges):
                raise LedgerError(f"the ledger has no charge {place}")
            self._charges[place] = dataclasses.replace(self._charges[place], mechanism=mechanism)

    # ---- a ledger is one thing ----------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _stayed_behind, (self.limit, self.total)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} spent={self.total} limit={self.limit}>"


def _stayed_behind(limit: Budget | None, spent: Budget) -> Ledger:
    """Return what a pickle tells of a ledger in memory; it takes no charge."""
    ledger = Ledger(limit)
    if spent != Budget(0):
        ledger.charge_all([new_charge("all that was spent before pickling", spent, purpose="other")])
    ledger._owner = 0
    return ledger


def as_ledger(ledger: object) -> Ledger | None:
    """Return a ledger, or None, or say what to pass instead."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ParameterError("ledger must be a Ledger; for a file use Ledger.open(path, limit=...)")
    return ledger


def total_of(charges: Iterable[Charge]) -> Budget:
    """Return what charges cost together."""
    return sum((charge.budget for charge in charges), Budget(0))


def refuse_overspend(limit: Budget | None, spent: Sequence[Charge], wanted: Sequence[Charge]) -> None:
    before = total_of(spent)
    price = total_of(wanted)
    if limit is not None and not before + price <= limit:
        raise BudgetError(
            f"this would cost {price}, and of {limit} only {limit.minus(before)} is left; nothing was "
            "spent or released"
        )
