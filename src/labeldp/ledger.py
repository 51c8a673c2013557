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
import math
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from numbers import Integral
from typing import Any

from labeldp._checks import as_fraction, as_number
from labeldp.channels.proof import exp_upper
from labeldp.errors import BudgetError, LedgerError, ParameterError

__all__ = ["Budget", "Charge", "Ledger", "group_budget", "total_of"]


@dataclass(frozen=True, slots=True, init=False, eq=True, order=False, repr=False)
class Budget:
    """An amount of privacy: ε, and δ where a mechanism needs one.

    Parameters
    ----------
    epsilon, delta : float or Fraction
        Floats count as the decimal that was written: 0.1 is 1/10. ``epsilon`` may be infinite only for
        labels that are released as they are.
    """

    exact_epsilon: Fraction | None
    exact_delta: Fraction

    def __init__(self, epsilon: float | Fraction, delta: float | Fraction = 0) -> None:
        unlimited = isinstance(epsilon, float) and epsilon == math.inf
        exact = None if unlimited else _exact(epsilon, "epsilon")
        spent = _exact(delta, "delta")
        if (exact is not None and exact < 0) or not 0 <= spent <= 1:
            raise ParameterError("a budget needs epsilon >= 0 and delta between 0 and 1")
        object.__setattr__(self, "exact_epsilon", exact)
        object.__setattr__(self, "exact_delta", spent)

    @property
    def epsilon(self) -> float:
        """ε as a float, for people; infinite where no float is as large."""
        try:
            return math.inf if self.exact_epsilon is None else float(self.exact_epsilon)
        except OverflowError:
            return math.inf

    @property
    def delta(self) -> float:
        """δ as a float, for people."""
        return float(self.exact_delta)

    def __add__(self, other: Budget) -> Budget:
        delta = min(Fraction(1), self.exact_delta + other.exact_delta)
        if self.exact_epsilon is None or other.exact_epsilon is None:
            return Budget(math.inf, delta)
        return Budget(self.exact_epsilon + other.exact_epsilon, delta)

    def __le__(self, other: Budget) -> bool:
        fits = other.exact_epsilon is None or (
            self.exact_epsilon is not None and self.exact_epsilon <= other.exact_epsilon
        )
        return fits and self.exact_delta <= other.exact_delta

    def minus(self, other: Budget) -> Budget:
        """Return what is left of this after ``other``, at least nothing."""
        delta = max(Fraction(0), self.exact_delta - other.exact_delta)
        if self.exact_epsilon is None:
            return Budget(math.inf, delta)
        if other.exact_epsilon is None:
            return Budget(0, delta)
        return Budget(max(Fraction(0), self.exact_epsilon - other.exact_epsilon), delta)

    def __str__(self) -> str:
        delta = f" and δ = {self.delta:.3g}" if self.exact_delta else ""
        return f"ε = {self.epsilon:.6g}{delta}"

    def __repr__(self) -> str:
        delta = f", delta={self.delta!r}" if self.exact_delta else ""
        return f"Budget(epsilon={self.epsilon!r}{delta})"


def _exact(value: Any, name: str) -> Fraction:
    if isinstance(value, Fraction):
        return value
    number = as_number(value, name)
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be finite, got {number}")
    return as_fraction(number)


def group_budget(budget: Budget, rows_per_person: int) -> Budget:
    """Return what a person with this many rows is exposed to: k·ε, and k·e^((k−1)ε)·δ."""
    if isinstance(rows_per_person, bool) or not isinstance(rows_per_person, Integral) or rows_per_person < 1:
        raise ParameterError(f"rows_per_person must be a whole number, 1 or more, got {rows_per_person!r}")
    k = int(rows_per_person)
    if budget.exact_epsilon is None or k == 1:
        return budget
    delta = budget.exact_delta
    if delta:
        grown = (k - 1) * budget.exact_epsilon
        hopeless = float(grown) > -math.log(delta)
        delta = Fraction(1) if hopeless else min(Fraction(1), k * exp_upper(grown) * delta)
    return Budget(k * budget.exact_epsilon, delta)


@dataclass(frozen=True, slots=True)
class Charge:
    """One entry of a ledger.

    Attributes
    ----------
    what : str
        What was released.
    budget : Budget
        What it cost, group privacy included.
    when : str
        Time of the charge, UTC.
    mechanism : str or None
        Fingerprint of the mechanism's channel, once it is known.
    rows_per_person : int
        How many rows one person may have; the cost above is for all of them.
    """

    what: str
    budget: Budget
    when: str
    mechanism: str | None = None
    rows_per_person: int = 1

    def as_data(self) -> dict[str, Any]:
        """Return the charge as pure data, for cards."""
        return {
            "what": self.what,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "when": self.when,
            "mechanism": self.mechanism,
            "rows_per_person": self.rows_per_person,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Charge:
        """Return the charge that `as_data` wrote.

        Raises
        ------
        ParameterError
            If it is none.
        """
        budget = Budget(data["epsilon"], data["delta"])
        return cls.checked(data["what"], budget, data["when"], data["mechanism"], data["rows_per_person"])

    @classmethod
    def checked(cls, what: Any, budget: Budget, when: Any, mechanism: Any, rows_per_person: Any) -> Charge:
        """Return the charge that was read from somewhere, or refuse it."""
        texts = isinstance(what, str) and isinstance(when, str) and isinstance(mechanism, str | None)
        if not texts or type(rows_per_person) is not int or not 1 <= rows_per_person < 1 << 63:
            raise ParameterError("this is no charge")
        return cls(what, budget, when, mechanism, rows_per_person)


def new_charge(what: str, budget: Budget, *, mechanism: str | None = None, rows_per_person: int = 1) -> Charge:
    """Return a charge made now, at the price for all of a person's rows."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    cost = group_budget(budget, rows_per_person)
    return Charge(what, cost, when, mechanism, int(rows_per_person))


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
        from labeldp.ledger_file import FileLedger  # noqa: PLC0415 (it is built on this module)

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
        charge = new_charge(what, budget, mechanism=mechanism, rows_per_person=rows_per_person)
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
        ledger.charge_all([new_charge("all that was spent before pickling", spent)])
    ledger._owner = 0
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
