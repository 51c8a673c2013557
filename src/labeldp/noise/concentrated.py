"""From concentrated privacy to (ε, δ), with an upper bound of δ in exact arithmetic.

Noise that is ρ-concentrated differentially private keeps, for every α > 1,

    δ ≤ e^((α−1)(αρ−ε)) · (1 − 1/α)^α / (α − 1)

(Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020, corollary 13).
Floats look for a good α and ρ; fractions decide.
"""

from __future__ import annotations

import math
from fractions import Fraction

from labeldp.channels.proof import exp_lower, exp_upper
from labeldp.errors import ParameterError

__all__ = ["delta_upper", "rho_for"]

_TERMS = 40


def delta_upper(rho: Fraction, epsilon: Fraction, alpha: Fraction) -> Fraction:
    """Return an upper bound of δ at ε for ρ-concentrated privacy, by one α > 1, in fractions.

    The logarithm of 1 − 1/α is bounded from above by a part of its series, whose terms are all negative.

    Examples
    --------
    >>> float(delta_upper(Fraction(1, 100), Fraction(1), Fraction(50)))
    1.7...e-13
    """
    if alpha <= 1:
        raise ParameterError("alpha must be above 1")
    logarithm = -sum((1 / (k * alpha**k) for k in range(1, _TERMS + 1)), Fraction(0))
    exponent = ((alpha - 1) * (alpha * rho - epsilon) + alpha * logarithm).limit_denominator(1 << 48)
    exponent += Fraction(1, 1 << 40)  # whatever was rounded, upwards
    size = exp_upper(exponent) if exponent >= 0 else 1 / exp_lower(-exponent)
    return size / (alpha - 1)


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a large ρ whose δ at ε is proven to be at most ``delta``.

    Examples
    --------
    >>> float(rho_for(Fraction(1), Fraction(1, 10**6)))
    0.0...
    """
    if not 0 < delta < 1 or epsilon <= 0:
        raise ParameterError("epsilon must be positive, and delta must lie in (0, 1)")
    low, high = 0.0, float(epsilon) + 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _best(middle, float(epsilon))[0] <= math.log(delta):
            low = middle
        else:
            high = middle
    alpha = Fraction(_best(low, float(epsilon))[1]).limit_denominator(10**4)
    rho = Fraction(low).limit_denominator(10**12)
    while rho > 0:
        if delta_upper(rho, epsilon, alpha) <= delta:
            return rho
        rho *= Fraction(999, 1000)
    raise ParameterError(f"no noise keeps epsilon={float(epsilon)} at delta={float(delta)}")


def _best(rho: float, epsilon: float) -> tuple[float, float]:
    """Return the least log δ over α, and that α: the logarithm is convex in α."""

    def log_delta(alpha: float) -> float:
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

    low, high = 1.01, max(2.0, (epsilon + 1) / (2 * max(rho, 1e-12)) + 2)
    for _ in range(200):
        third = (high - low) / 3
        if log_delta(low + third) < log_delta(high - third):
            high -= third
        else:
            low += third
    return log_delta(low), low
