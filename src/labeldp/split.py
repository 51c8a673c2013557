"""How much of ε goes to the prior: decided by the number of labels and ε, never by labels."""

from __future__ import annotations

import math
from fractions import Fraction

from labeldp._checks import EPSILON_RANGE

__all__ = ["prior_budget"]

_APPETITE = {"curator": 4.0, "local": 4.0}


def prior_budget(rows: int, epsilon: Fraction, trust: str) -> Fraction:
    """Return the part of ε for the prior, or 0 where a prior would cost more than it brings.

    A share ε₁ of the budget raises the labels' variance by about 2ε₁/ε; a prior of ε₁ misplaces labels
    in proportion to 1/(nε₁), for a curator. The sum is least at ε₁ ∝ √(ε/n).
    """
    wish = math.sqrt(_APPETITE[trust] * float(epsilon) / rows)
    if wish < EPSILON_RANGE[0] or wish > float(epsilon) / 4:
        return Fraction(0)
    return Fraction(f"{wish:.3g}")
