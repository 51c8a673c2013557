"""Amounts of privacy: ε as an exact fraction, rounded up for people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from labeldp._values import parse_number
from labeldp.accounts.scope import Scope
from labeldp.accounts.segments import Segments, is_visible_line
from labeldp.errors import BudgetError, CardError, ParameterError, Setting, describe
from labeldp.mechanisms.typed_data import Limit, Positive, optional, parse_fraction, plain, read

T = TypeVar("T")

MAX_BITS = 8192
"""Bits of the numerator and the denominator of an exact sum: thousands of honest amounts need a few hundred."""

LONGEST_STATEMENT = 500
"""Characters of one statement of an owner."""


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
    """Return an amount of ε for people: with a few digits, and never less than it is.

    Examples
    --------
    >>> rounded_up(1.0), rounded_up(1.0000049), rounded_up(Fraction(1, 3)), rounded_up(1e-7, 3), rounded_up(0.05)
    ('1', '1.00001', '0.333334', '1e-07', '0.05')
    """
    if amount == math.inf:
        return "inf"
    exact = amount if isinstance(amount, Fraction) else Fraction(repr(float(amount)))
    up = Context(prec=digits, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
    rounded = float(up.divide(Decimal(exact.numerator), Decimal(exact.denominator)))
    return f"{rounded or (5e-324 if exact else 0):.{digits}g}"


@dataclass(frozen=True, slots=True, init=False, eq=True, order=False, repr=False)
class Budget:
    """An amount of privacy: ε.

    Parameters
    ----------
    epsilon : float or Fraction
        A float counts as the decimal that was written: 0.1 is 1/10.

    Attributes
    ----------
    exact_epsilon : Fraction

    Examples
    --------
    Budgets add up exactly, and compare; ``minus`` subtracts, down to 0.

    >>> import labeldp as ldp
    >>> spent = ldp.Budget(epsilon=0.1) + ldp.Budget(epsilon=0.2)
    >>> spent, spent.exact_epsilon
    (Budget(epsilon=0.3), Fraction(3, 10))
    >>> spent <= ldp.Budget(epsilon=0.3)
    True
    >>> ldp.Budget(epsilon=1.0).minus(spent)
    Budget(epsilon=0.7)
    """

    exact_epsilon: Fraction

    def __init__(self, epsilon: float | Fraction) -> None:
        exact = epsilon if isinstance(epsilon, Fraction) else _exact(epsilon)
        if exact < 0:
            raise ParameterError(Setting("epsilon"), f" must not be negative, got {epsilon}")
        object.__setattr__(self, "exact_epsilon", exact)

    @property
    def epsilon(self) -> float:
        """ε as a float, for people, rounded up; infinite where no float is as large."""
        return float_at_least(self.exact_epsilon)

    def __add__(self, budget: Budget) -> Budget:
        return Budget(exact_sum([self.exact_epsilon, budget.exact_epsilon]))

    def __le__(self, budget: Budget) -> bool:
        return self.exact_epsilon <= budget.exact_epsilon

    def minus(self, budget: Budget) -> Budget:
        """Return the difference to another budget, at least 0.

        Parameters
        ----------
        budget : Budget
        """
        return Budget(max(Fraction(0), self.exact_epsilon - budget.exact_epsilon))

    def __str__(self) -> str:
        return f"ε = {rounded_up(self.exact_epsilon)}"

    def __repr__(self) -> str:
        return f"Budget(epsilon={self.epsilon!r})"

    def as_data(self) -> str:
        """Return ε as pure data, exactly: the text of a fraction."""
        return str(self.exact_epsilon)

    @classmethod
    def from_data(cls, data: Any) -> Budget:
        """Return the budget that `as_data` wrote.

        Raises
        ------
        ParameterError
            If it is not a valid budget.
        """
        return cls(parse_fraction(data))


def exact_sum(amounts: Iterable[Fraction]) -> Fraction:
    """Return the sum of amounts; a sum of many hostile amounts ends before it takes long to compute."""
    total = Fraction(0)
    for amount in amounts:
        total += amount
        if max(total.numerator, total.denominator).bit_length() > MAX_BITS:
            raise ParameterError(
                f"the exact sum of the amounts needs more than {MAX_BITS} bits: round them up first"
            )
    return total


def _exact(value: float) -> Fraction:
    number = parse_number(value, "epsilon")
    if not math.isfinite(number):
        raise ParameterError(Setting("epsilon"), f" must be finite, got {number}")
    return Fraction(repr(number))


def group_budget(budget: Budget, rows_per_person: int) -> Budget:
    """Return the cost to a person with k rows: k·ε."""
    return Budget(rows_per_person * budget.exact_epsilon)


Purpose = Literal["labels", "prior", "mean", "sums", "score", "intervals", "other"]
"""The kind of output of a charge, for programs; people read the description."""


def _is_statement(text: str) -> bool:
    return is_visible_line(text) and len(text) <= LONGEST_STATEMENT


Statement = Annotated[str, Limit(_is_statement, f"one line of 1 to {LONGEST_STATEMENT} characters")]
"""A statement of an owner, printed as it is: no file may bring other lines or hidden characters in."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """Statements of the owner on a release, on its card and in its ledger; nobody can check them.

    Attributes
    ----------
    intended_use : str or None
        The use that the release is made for.
    recipient : str or None
        The recipient of the release.
    bounds_reason : str or None
        The choice of the bounds, made without looking at the labels.
    """

    intended_use: Statement | None = optional()
    recipient: Statement | None = optional()
    bounds_reason: Statement | None = optional()


_declaration: ContextVar[Declaration] = ContextVar("declaration", default=Declaration())  # noqa: B039 (frozen)
_label: ContextVar[str | None] = ContextVar("label", default=None)


@contextmanager
def _holding(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a variable a value in the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def parse_statement(text: Any, name: str) -> str:
    """Return a statement of a declaration: one line of text."""
    if not isinstance(text, str) or not _is_statement(text):
        raise ParameterError(Setting(name), f" must be one line of 1 to {LONGEST_STATEMENT} characters")
    return text.strip()


@contextmanager
def declared(**statements: str | None) -> Iterator[None]:
    """Declare the intended use of all releases in the block.

    Parameters
    ----------
    intended_use, recipient, bounds_reason : str, optional
        As in `Declaration`; None leaves the statement of the block around this one.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import declared
    >>> with declared(intended_use="rent index 2026", recipient="the city's statisticians"):
    ...     release = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5))
    >>> release.terms.declaration.intended_use
    'rent index 2026'
    """
    parsed = {name: parse_statement(text, name) for name, text in statements.items() if text is not None}
    with _holding(_declaration, replace(_declaration.get(), **parsed)):
        yield


def charges_name(label: str | None) -> AbstractContextManager[None]:
    """Let charges in the block name a label, as there are several; the name is public."""
    return _holding(_label, label)


@dataclass(frozen=True, slots=True)
class Charge:
    """One entry of a ledger; every release and every model has its own in ``charges``.

    Attributes
    ----------
    description : str
        The output in words.
    budget : Budget
        The cost, group privacy included.
    when : str
        Time of the charge, UTC.
    mechanism : str or None
        On a card, the fingerprint of the mechanism's channel; a ledger is charged before that is known.
    rows_per_person : int
        The number of rows that one person may have; the cost is for all of them.
    purpose : {"labels", "prior", "mean", "sums", "score", "intervals", "other"}
        The kind of output, for programs.
    declaration : Declaration
        The statements of the owner.
    segments : Segments or None
        The segments of its rows; without, the charge counts for the rows of all segments.

    Examples
    --------
    >>> import labeldp as ldp
    >>> ledger = ldp.Ledger()
    >>> _ = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), mechanism="laplace", ledger=ledger)
    >>> [(charge.purpose, charge.description, charge.budget) for charge in ledger.charges]
    [('labels', 'labels', Budget(epsilon=1.0))]
    """

    description: str
    budget: Budget
    when: str
    mechanism: str | None = field(default=None, compare=False)
    rows_per_person: Positive = 1
    purpose: Purpose = "other"
    declaration: Declaration = field(default=Declaration(), compare=False, repr=False, metadata={"data": False})
    segments: Segments | None = optional()

    def __str__(self) -> str:
        where = "" if self.segments is None else f", in {self.segments}"
        return f"{rounded_up(self.budget.epsilon)} for {self.description}{where}"

    @property
    def key(self) -> tuple[object, ...]:
        """The common part of a charge in a ledger and on a card: the mechanism is noted later."""
        return self.when, self.budget, self.purpose, self.rows_per_person, self.segments

    @property
    def label_budget(self) -> Budget:
        """The cost of one label."""
        return Budget(self.budget.exact_epsilon / self.rows_per_person)


def new_charge(
    description: str,
    budget: Budget,
    *,
    purpose: Purpose,
    mechanism: str | None = None,
    scope: Scope | None = None,
) -> Charge:
    """Return a charge at the present time, at the price for all of a person's rows."""
    when = datetime.now(UTC).isoformat(timespec="microseconds")  # no two are the same
    people = 1 if scope is None else scope.rows_per_person
    segments = None if scope is None else scope.segments
    cost = group_budget(budget, people)
    label = _label.get()
    if label is not None:
        description = f"{description} of {label!r}"
    return Charge(description, cost, when, mechanism, people, purpose, _declaration.get(), segments)


def parse_charge(charge: Any) -> Charge:
    """Return a charge that a ledger's file and a card can hold, by their schema.

    Raises
    ------
    ParameterError
        If it would not be read again as it is.
    """
    if not isinstance(charge, Charge):
        raise ParameterError(f"a ledger takes objects of the class Charge, got {describe(charge)}")
    try:
        read(Charge, plain(charge), "the charge")
        if charge.declaration != Declaration():
            read(Declaration, plain(charge.declaration), "the declaration")
    except CardError as error:
        raise ParameterError(str(error)) from None
    return charge


def sums_by_segment(charges: Iterable[Charge]) -> tuple[Fraction, dict[str, Fraction]]:
    """Return the sum of the charges without a segment, which all rows pay, and the sum of each segment."""
    amounts: dict[str | None, list[Fraction]] = {None: []}
    for charge in charges:
        for name in (None,) if charge.segments is None else charge.segments.names:
            amounts.setdefault(name, []).append(charge.budget.exact_epsilon)
    common = exact_sum(amounts.pop(None))
    return common, {name: exact_sum(values) for name, values in amounts.items() if name is not None}


def total_of(charges: Iterable[Charge], segments: Segments | None = None) -> Budget:
    """Return the charges without a segment and the largest sum of one segment, of all or of some.

    Examples
    --------
    >>> import labeldp as ldp
    >>> ledger = ldp.Ledger()
    >>> for night in ("Monday", "Tuesday"):
    ...     charge = ledger.charge("labels", epsilon=0.4, segment=night)
    >>> charge = ledger.charge("a table of all nights", epsilon=0.1)
    >>> total_of(ledger.charges)
    Budget(epsilon=0.5)
    """
    common, sums = sums_by_segment(charges)
    names = sums if segments is None else segments.names
    return Budget(exact_sum([common, max((sums.get(name, Fraction(0)) for name in names), default=Fraction(0))]))


def sum_of(charges: Iterable[Charge]) -> Budget:
    """Return the sum of charges, for a person with labels in all segments."""
    return Budget(exact_sum(charge.budget.exact_epsilon for charge in charges))


def label_cost(charges: Iterable[Charge]) -> Budget:
    """Return the total of charges for one label."""
    return total_of(replace(charge, budget=charge.label_budget) for charge in charges)


def missing_charges(charges: Iterable[Charge], recorded: Iterable[Charge]) -> list[Charge]:
    """Return the charges that are not among others; one that occurs twice must be there twice."""
    unmatched = Counter((charge.key, charge.description) for charge in recorded)
    missing = []
    for charge in charges:
        unmatched[charge.key, charge.description] -= 1
        if unmatched[charge.key, charge.description] < 0:
            missing.append(charge)
    return missing


def refuse_overspend(limit: Budget | None, earlier: Sequence[Charge], charges: Sequence[Charge]) -> None:
    """Raise `BudgetError` if charges would pass a limit together with earlier ones."""
    if limit is None or total_of([*earlier, *charges]) <= limit:
        return
    segments = charges[0].segments
    remaining = limit.minus(total_of(earlier, segments))
    where = "" if segments is None else f" in segment {segments}"
    raise BudgetError(
        f"Budget exceeded: this costs {total_of(charges)}, and {rounded_up(remaining.exact_epsilon)} of "
        f"{rounded_up(limit.exact_epsilon)} is left{where}. Nothing was spent.",
        option="ledger",
    )
