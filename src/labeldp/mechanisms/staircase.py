"""Staircase noise: the additive noise of least expected size among all that are ε-differentially private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

from labeldp._values import Data, Interval
from labeldp.exact.proof import exp_lower
from labeldp.exact.shift import ShiftChannel
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.interval import UnitNoise
from labeldp.mechanisms.laplace import SCALE, periodic_channel
from labeldp.mechanisms.registry import register


@register("staircase")
@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(Mechanism):
    """Add staircase noise: flat for γ(hi − lo), then a step down by e^(−ε) every label range.

    Parameters
    ----------
    bounds : (lo, hi)
        Public bounds; labels outside are clipped. Never read them off the data.
    epsilon : float
        Privacy budget, 0.001 to 20.
    minimise : {"absolute", "squared"}
        Which size of the noise γ makes smallest.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.Staircase(bounds=(0, 5), epsilon=2.0)
    >>> z = mech.randomize([0.2, 1.7, 9.0])

    References
    ----------
    Geng and Viswanath, "The optimal noise-adding mechanism in differential privacy".
    """

    bounds: tuple[float, float]
    epsilon: float
    minimise: Literal["absolute", "squared"] = "absolute"
    channel: ShiftChannel = channel_field()

    @classmethod
    def for_bounds(cls, bounds: Interval, epsilon: float, **_: object) -> Self:
        """Return the noise of least variance: errors of models are squared."""
        return cls(bounds=bounds, epsilon=epsilon, minimise="squared")

    @classmethod
    def unit_noise(cls, epsilon: float, **_: object) -> UnitNoise:
        """Return the variance of the noise: the same for all labels."""
        variance = staircase_variance(epsilon, optimal_tread(epsilon, "squared"))
        return lambda _: variance

    def _build(self) -> ShiftChannel:
        tread = optimal_tread(self.epsilon, self.minimise)

        def period(steps: int, epsilon: Fraction) -> tuple[list[int], Data]:
            flat = min(steps, max(1, round(tread * steps + 0.5)))
            lower = SCALE // exp_lower(epsilon)
            return [SCALE] * flat + [lower] * (steps - flat), {"rule": "staircase", "flat": flat}

        return periodic_channel(*self.bounds, self.epsilon, period)


def optimal_tread(epsilon: float, minimise: Literal["absolute", "squared"]) -> float:
    """Return γ, the part of a label range before the first step down.

    Examples
    --------
    >>> round(optimal_tread(1.0, "absolute"), 6)
    0.377541
    """
    if minimise == "absolute":
        return 1 / (1 + math.exp(epsilon / 2))
    b = math.exp(-epsilon)
    gap = -math.expm1(-epsilon)
    # (b − 2b² + 2b⁴ − b⁵) = b(1 − b)³(1 + b), which does not cancel for small ε.
    root = (b * (1 + b) / 2) ** (1 / 3) * gap
    return float((root - b * gap) / gap**2)


def staircase_variance(epsilon: float, tread: float) -> float:
    """Return the variance of staircase noise, in squared label ranges.

    The noise is ±(G + γU) with probability γ/(γ + (1 − γ)b), else ±(G + γ + (1 − γ)U), where b = e^(−ε),
    G is geometric with ratio b, and U uniform.

    Examples
    --------
    >>> 1.8 < staircase_variance(1.0, optimal_tread(1.0, "squared")) < 2.0
    True
    """
    b = math.exp(-epsilon)
    first, second = b / (1 - b), b * (1 + b) / (1 - b) ** 2  # moments of G
    high = tread / (tread + (1 - tread) * b)

    def square(start: float, width: float) -> float:
        mean = start + width / 2
        return second + 2 * first * mean + mean**2 + width**2 / 12

    return high * square(0.0, tread) + (1 - high) * square(tread, 1 - tread)
