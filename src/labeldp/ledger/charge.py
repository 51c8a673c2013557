"""One charge: what was released, at which cost, and when."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from labeldp._validation import rounded_up
from labeldp.errors import BudgetError, ParameterError
from labeldp.ledger.budget import Budget, group_budget

__all__ = ["Charge", "Purpose", "name_of_charge", "new_charge", "refuse_overspend", "total_of"]

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
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**fields, "budget": self.budget.as_data()}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Charge:
        """Return the charge that `as_data` wrote.

        Raises
        ------
        ParameterError
            If it is not a valid charge.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(data, dict) or set(data) != set(names):
            raise ParameterError(f"a charge must have these fields and no others: {', '.join(names)}")
        if not (isinstance(data["what"], str) and isinstance(data["when"], str)):
            raise ParameterError("what and when of a charge must be text")
        if not isinstance(data["mechanism"], str | None):
            raise ParameterError("mechanism of a charge must be text, or null")
        if not _is_integer(data["rows_per_person"], at_least=1):
            raise ParameterError("rows_per_person of a charge must be a positive integer of 63 bits")
        if not isinstance(data["purpose"], str) or data["purpose"] not in get_args(Purpose):
            raise ParameterError(f"purpose of a charge must be one of {', '.join(get_args(Purpose))}")
        if data["column"] is not None and not _is_integer(data["column"], at_least=0):
            raise ParameterError("column of a charge must be an integer from 0, or null")
        return cls(**{**data, "budget": Budget.from_data(data["budget"])})


def _is_integer(value: Any, *, at_least: int) -> bool:
    return type(value) is int and at_least <= value < 1 << 63


def name_of_charge(what: str, column: int, columns: int) -> str:
    """Return the text of the charge for a label column, of this many columns."""
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
    """Return a charge at the present time, at the price for all of a person's rows."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    cost = group_budget(budget, rows_per_person)
    return Charge(what, cost, when, mechanism, int(rows_per_person), purpose, column)


def total_of(charges: Iterable[Charge]) -> Budget:
    """Return what charges cost together."""
    return sum((charge.budget for charge in charges), Budget(0))


def refuse_overspend(limit: Budget | None, spent: Sequence[Charge], wanted: Sequence[Charge]) -> None:
    """Raise `BudgetError` if charges would pass a limit, beside what is spent already."""
    before, price = total_of(spent), total_of(wanted)
    if limit is None or before + price <= limit:
        return
    left = limit.minus(before)
    how = "; how much δ may be spent is set when a ledger is created, by limit=Budget(epsilon, delta)"
    raise BudgetError(
        f"this would cost {price}, and of {limit} only {left} is left; nothing was spent or released"
        + (how if price.exact_delta > left.exact_delta else "")
    )
