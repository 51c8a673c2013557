"""Amounts of privacy: ε and δ as exact fractions, rounded up for people."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any

from labeldp._validation import as_fraction, as_number, float_at_least, rounded_up
from labeldp.channels.proof import exp_upper
from labeldp.errors import ParameterError

__all__ = ["Budget", "group_budget"]

_FRACTION = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?", re.ASCII)


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
            raise ParameterError(f"a budget needs epsilon >= 0 and delta in [0, 1], got {epsilon} and {delta}")
        object.__setattr__(self, "exact_epsilon", exact)
        object.__setattr__(self, "exact_delta", spent)

    @property
    def epsilon(self) -> float:
        """ε as a float, for people, never less than it is; infinite where no float is as large."""
        return math.inf if self.exact_epsilon is None else float_at_least(self.exact_epsilon)

    @property
    def delta(self) -> float:
        """δ as a float, for people, never less than it is."""
        return float_at_least(self.exact_delta)

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
        delta = f" and δ = {rounded_up(self.exact_delta, 3)}" if self.exact_delta else ""
        return f"ε = {rounded_up(math.inf if self.exact_epsilon is None else self.exact_epsilon)}{delta}"

    def __repr__(self) -> str:
        delta = f", delta={self.delta!r}" if self.exact_delta else ""
        return f"Budget(epsilon={self.epsilon!r}{delta})"

    def as_data(self) -> list[str | None]:
        """Return ε and δ as pure data, exactly: the text of two fractions, and None for an infinite ε."""
        return [None if self.exact_epsilon is None else str(self.exact_epsilon), str(self.exact_delta)]

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
        epsilon, delta = data
        return cls(math.inf if epsilon is None else _fraction(epsilon), _fraction(delta))


def _fraction(text: Any) -> Fraction:
    """Return what `str` of a fraction gave. `Fraction` itself would take 1e999999999, and all memory with it."""
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise ParameterError('an amount must be a fraction in text, such as "1/20"')
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ParameterError("an amount must be a fraction, and not over 0") from None


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
        raise ParameterError(f"rows_per_person must be an integer, 1 or more, got {rows_per_person!r}")
    k = int(rows_per_person)
    if budget.exact_epsilon is None or k == 1:
        return budget
    delta = budget.exact_delta
    if delta:
        grown = (k - 1) * budget.exact_epsilon
        hopeless = float(grown) > -math.log(delta)
        delta = Fraction(1) if hopeless else min(Fraction(1), k * exp_upper(grown) * delta)
    return Budget(k * budget.exact_epsilon, delta)
