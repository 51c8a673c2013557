"""How much of ε goes to the prior: decided by the number of labels and ε, never by labels."""

from __future__ import annotations

import math
from fractions import Fraction

from labeldp._validation import EPSILON_RANGE

__all__ = ["prior_budget"]


def prior_budget(rows: int, epsilon: Fraction, trust: str) -> Fraction:
    """Return the part of ε for the prior.

    A share ε₁ raises the labels' variance by about 2ε₁/ε. A curator's prior misplaces labels in proportion
    to 1/(nε₁), so the sum is least at an ε₁ ∝ √(ε/n); 5√(ε/n), and a quarter at most, is near the best of
    a sweep over distributions (``benchmarks/split.py``). A local prior gains little from more than a
    twentieth.

    Examples
    --------
    >>> prior_budget(20_000, Fraction(1), "curator")
    Fraction(177, 5000)
    """
    least, quarter = Fraction(str(EPSILON_RANGE[0])), epsilon / 4
    if quarter < least or rows * quarter < 5:  # a histogram of a handful of labels would be all noise
        return Fraction(0)
    wish = 5 * math.sqrt(epsilon / rows) if trust == "curator" else float(epsilon) / 20
    return min(max(Fraction(f"{wish:.3g}"), least), quarter)
