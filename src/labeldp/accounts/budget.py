"""Amounts of privacy: ε and δ as exact fractions, rounded up for people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal
from unicodedata import category

from labeldp._values import parse_number
from labeldp.errors import BudgetError, ParameterError, Setting
from labeldp.exact.proof import exp_upper
from labeldp.mechanisms.typed_data import LONGEST_AMOUNT, Limit, Natural, Positive, optional, parse_fraction

MOST_BITS = 8192
"""Bits of the numerator and the denominator of an exact sum: thousands of honest amounts need a few hundred."""

LONGEST_STATEMENT = 500
"""Characters of what an owner says of a release."""

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of characters that end a line, or change how text around them is shown."""


def float_at_least(value: Fraction | float) -> float:
    """Return the smallest float that, written out as a decimal, is at least ``value``; infinite if there is none.

    Examples
    --------
    >>> float_at_least(Fraction(1, 3)), float_at_least(Fraction(1, 10))
    (0.33333333333333337, 0.1)
    """
    try:
        number = float(value)
    except OverflowError:
        return math.inf
    while number < math.inf and Fraction(repr(number)) < value:
        number = math.nextafter(number, math.inf)
    return number


def rounded_up(amount: float | Fraction, digits: int = 6) -> str:
    """Return an amount of ε or δ for people: with a few digits, and never less than it is.

    Examples
    --------
    >>> rounded_up(1.0), rounded_up(1.0000049), rounded_up(Fraction(1, 3)), rounded_up(1e-7, 3), rounded_up(0.05)
    ('1', '1.00001', '0.333334', '1e-07', '0.05')
    """
    if amount == math.inf:
        return "inf"
    exact = amount if isinstance(amount, Fraction) else Fraction(repr(float(amount)))
    up = Context(prec=digits, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
    shown = float(up.divide(Decimal(exact.numerator), Decimal(exact.denominator)))
    return f"{shown or (5e-324 if exact else 0):.{digits}g}"


@dataclass(frozen=True, slots=True, init=False, eq=True, order=False, repr=False)
class Budget:
    """An amount of privacy: ε, and δ where a mechanism needs one.

    Parameters
    ----------
    epsilon, delta : float or Fraction
        Floats count as the decimal that was written: 0.1 is 1/10.

    Attributes
    ----------
    exact_epsilon, exact_delta : Fraction
        ε and δ exactly.

    Examples
    --------
    Budgets add up exactly, and compare; ``minus`` says what is left.

    >>> import labeldp as ldp
    >>> spent = ldp.Budget(epsilon=0.1) + ldp.Budget(epsilon=0.2)
    >>> spent, spent.exact_epsilon
    (Budget(epsilon=0.3), Fraction(3, 10))
    >>> spent <= ldp.Budget(epsilon=0.3, delta=1e-6)
    True
    >>> ldp.Budget(epsilon=1.0).minus(spent)
    Budget(epsilon=0.7)
    """

    exact_epsilon: Fraction
    exact_delta: Fraction

    def __init__(self, epsilon: float | Fraction, delta: float | Fraction = Fraction(0)) -> None:
        exact_epsilon, exact_delta = _exact(epsilon, "epsilon"), _exact(delta, "delta")
        if exact_epsilon < 0:
            raise ParameterError(Setting("epsilon"), f" must not be negative, got {epsilon}")
        if not 0 <= exact_delta <= 1:
            raise ParameterError(Setting("delta"), f" must lie in [0, 1], got {delta}")
        object.__setattr__(self, "exact_epsilon", exact_epsilon)
        object.__setattr__(self, "exact_delta", exact_delta)

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Budget:
        """Return the budget of exact amounts that are known to be some."""
        budget = object.__new__(cls)
        object.__setattr__(budget, "exact_epsilon", epsilon)
        object.__setattr__(budget, "exact_delta", delta)
        return budget

    @property
    def epsilon(self) -> float:
        """ε as a float, for people, never less than it is; infinite where no float is as large."""
        return float_at_least(self.exact_epsilon)

    @property
    def delta(self) -> float:
        """δ as a float, for people, never less than it is."""
        return float_at_least(self.exact_delta)

    def __add__(self, other: Budget) -> Budget:
        return _sum([self, other])

    def __le__(self, other: Budget) -> bool:
        return self.exact_epsilon <= other.exact_epsilon and self.exact_delta <= other.exact_delta

    def minus(self, other: Budget) -> Budget:
        """Return what is left of this after another budget, at least nothing.

        Parameters
        ----------
        other : Budget
        """
        none, delta = Fraction(0), self.exact_delta - other.exact_delta
        return Budget.of(max(none, self.exact_epsilon - other.exact_epsilon), max(none, delta))

    def __str__(self) -> str:
        delta = f" and δ = {rounded_up(self.exact_delta, 3)}" if self.exact_delta else ""
        return f"ε = {rounded_up(self.exact_epsilon)}{delta}"

    def __repr__(self) -> str:
        delta = f", delta={self.delta!r}" if self.exact_delta else ""
        return f"Budget(epsilon={self.epsilon!r}{delta})"

    def rounded(self) -> dict[str, float]:
        """Return ε and δ as floats, rounded up, as a card states its cost."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    def as_data(self) -> list[str]:
        """Return ε and δ as pure data, exactly: the text of two fractions."""
        return [str(self.exact_epsilon), str(self.exact_delta)]

    @classmethod
    def from_data(cls, data: Any) -> Budget:
        """Return the budget that `as_data` wrote.

        Raises
        ------
        ParameterError
            If it is not a valid budget.
        """
        if not isinstance(data, list) or len(data) != 2:
            raise ParameterError("an amount must be a list of epsilon and delta, as fractions in text")
        return cls(*map(parse_fraction, data))


def refuse_long(budgets: Iterable[Budget]) -> None:
    """Refuse budgets that `Budget.from_data` would refuse; called before one is spent, or is a limit."""
    amounts = [amount for budget in budgets for amount in (budget.exact_epsilon, budget.exact_delta)]
    if any(_is_long(amount) or len(str(amount)) > LONGEST_AMOUNT for amount in amounts):
        raise ParameterError(
            f"epsilon and delta must have at most {LONGEST_AMOUNT} characters as fractions: round them up"
        )


def _sum(budgets: Iterable[Budget]) -> Budget:
    """Return what budgets are together; many hostile amounts end before their sum takes long to compute."""
    epsilon = delta = Fraction(0)
    for budget in budgets:
        epsilon += budget.exact_epsilon
        delta = min(Fraction(1), delta + budget.exact_delta)
        if _is_long(epsilon) or _is_long(delta):
            raise ParameterError(
                f"the exact sum of the amounts needs more than {MOST_BITS} bits: round them up first"
            )
    return Budget.of(epsilon, delta)


def _is_long(amount: Fraction) -> bool:
    """Return whether an exact amount has more bits than honest ones: sums of such amounts only grow."""
    return max(amount.numerator, amount.denominator).bit_length() > MOST_BITS


def _exact(value: Any, name: str) -> Fraction:
    if isinstance(value, Fraction):
        return value
    number = parse_number(value, name)
    if not math.isfinite(number):
        raise ParameterError(Setting(name), f" must be finite, got {number}")
    return Fraction(repr(number))


def group_budget(budget: Budget, rows_per_person: int) -> Budget:
    """Return what a person with this many rows is exposed to: k·ε, and k·e^((k−1)ε)·δ."""
    k, epsilon, delta = rows_per_person, budget.exact_epsilon, budget.exact_delta
    if k == 1:
        return budget
    if delta and float((k - 1) * epsilon) > -math.log(delta):  # e^((k−1)ε) is never written out
        delta = Fraction(1)
    elif delta:
        delta = min(Fraction(1), k * exp_upper((k - 1) * epsilon) * delta)
    return Budget.of(k * epsilon, delta)


Purpose = Literal["labels", "prior", "mean", "sums", "score", "intervals", "other"]
"""What was released for a charge: programs read this, people read the text beside it."""


def _is_statement(text: str) -> bool:
    shown = not any(category(character) in _HIDDEN for character in text)
    return shown and bool(text.strip()) and len(text) <= LONGEST_STATEMENT


Statement = Annotated[str, Limit(_is_statement, f"one line of 1 to {LONGEST_STATEMENT} characters")]
"""What an owner says: printed as it is, so no file may bring other lines or hidden characters in."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the owner says of a release, on its card and in its ledger; nobody can check it.

    Attributes
    ----------
    purpose : str or None
        What the release is for.
    recipient : str or None
        Who gets it.
    bounds_reason : str or None
        How the bounds were chosen without looking at the labels.
    """

    purpose: Statement | None = optional()
    recipient: Statement | None = optional()
    bounds_reason: Statement | None = optional()


_declaration: ContextVar[Declaration] = ContextVar("declaration", default=Declaration())  # noqa: B039 (frozen)


def parse_statement(text: Any, name: str) -> str:
    """Return a statement of a declaration: one line of text."""
    if not isinstance(text, str) or not _is_statement(text):
        raise ParameterError(Setting(name), f" must be one line of 1 to {LONGEST_STATEMENT} characters")
    return text.strip()


@contextmanager
def declared(**statements: str | None) -> Iterator[None]:
    """Say what all that is released in the block is for.

    Parameters
    ----------
    purpose, recipient, bounds_reason : str, optional
        As in `Declaration`; what is None stays as a block around this one says.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import declared
    >>> with declared(purpose="rent index 2026", recipient="the city's statisticians"):
    ...     release = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5))
    >>> release.terms.declaration.purpose
    'rent index 2026'
    """
    said = {name: parse_statement(text, name) for name, text in statements.items() if text is not None}
    token = _declaration.set(replace(_declaration.get(), **said))
    try:
        yield
    finally:
        _declaration.reset(token)


@dataclass(frozen=True, slots=True)
class Charge:
    """One entry of a ledger; every release and every model has its own in ``charges``.

    Attributes
    ----------
    what : str
        What was released, in words.
    budget : Budget
        What it cost, group privacy included.
    when : str
        Time of the charge, UTC.
    mechanism : str or None
        On a card, the fingerprint of the mechanism's channel; a ledger is charged before that is known.
    rows_per_person : int
        How many rows one person may have; the cost above is for all of them.
    purpose : {"labels", "prior", "mean", "sums", "score", "intervals", "other"}
        What was released, for programs.
    column : int or None
        Which label column it was for, where each column has its own charge.
    declaration : Declaration
        What for and for whom, if that was said.

    Examples
    --------
    >>> import labeldp as ldp
    >>> ledger = ldp.Ledger()
    >>> _ = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), mechanism="laplace", ledger=ledger)
    >>> [(charge.purpose, charge.what, charge.budget) for charge in ledger.charges]
    [('labels', 'labels', Budget(epsilon=1.0))]
    """

    what: str
    budget: Budget
    when: str
    mechanism: str | None = field(default=None, compare=False)
    rows_per_person: Positive = 1
    purpose: Purpose = "other"
    column: Natural | None = None
    declaration: Declaration = field(default=Declaration(), compare=False, repr=False, metadata={"data": False})

    def __str__(self) -> str:
        return f"{rounded_up(self.budget.epsilon)} for {self.what}"

    @property
    def key(self) -> tuple[object, ...]:
        """What is the same of a charge in a ledger and on a card: the mechanism is noted later."""
        return self.when, self.budget, self.purpose, self.column, self.rows_per_person


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
    when = datetime.now(UTC).isoformat(timespec="microseconds")  # no two are the same
    cost = group_budget(budget, rows_per_person)
    return Charge(what, cost, when, mechanism, rows_per_person, purpose, column, _declaration.get())


def total_of(charges: Iterable[Charge]) -> Budget:
    """Return what charges cost together."""
    return _sum(charge.budget for charge in charges)


def missing_charges(charges: Iterable[Charge], others: Iterable[Charge]) -> list[Charge]:
    """Return the charges that are not among others; one that occurs twice must be there twice."""
    left = Counter(other.key for other in others)
    missing = []
    for charge in charges:
        left[charge.key] -= 1
        if left[charge.key] < 0:
            missing.append(charge)
    return missing


def refuse_overspend(limit: Budget | None, spent: Sequence[Charge], charges: Sequence[Charge]) -> None:
    """Raise `BudgetError` if charges would pass a limit, beside what is spent already."""
    if limit is None or total_of([*spent, *charges]) <= limit:
        return
    price, left = total_of(charges), limit.minus(total_of(spent))
    room = f"of {limit} only {left} is left" if spent else f"the limit is {limit}"
    parts: list[object] = [f"this would cost {price}, and {room}; nothing was spent or released"]
    if price.exact_delta > left.exact_delta:
        parts += [
            "; how much δ may be spent is set when a ledger is created, by ",
            Setting("limit_delta"),
            ", in Python by limit=Budget(epsilon, delta)",
        ]
    raise BudgetError(*parts, option="ledger")
