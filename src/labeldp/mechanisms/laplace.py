"""Laplace noise, exact: two-sided geometric noise on a grid that contains both bounds.

`periodic_channel` makes the counts of any noise whose tail repeats, one label range after the other, by e^(−ε).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from labeldp._values import Data
from labeldp.exact.proof import WORDS, Promise, exp_lower
from labeldp.exact.shift import ShiftChannel
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.interval import UnitNoise
from labeldp.mechanisms.registry import register

SCALE = 1 << 256
"""Weights are fixed-point integers with this unit: the same on every machine."""

TABLE = 1 << 16
"""Noise tables have at most this many entries: half a megabyte stays in the cache."""

STEPS = 1 << 12
"""A label range has at most this many steps; randomised rounding then adds nothing that matters."""

REACH = 18.0
"""Noise is cut this many scales outside the bounds, where a word in 10^8 arrives."""

Period = Callable[[int, Fraction], tuple[list[int], Data]]
"""(steps, ε) → weights of 0 … steps − 1 in units of `SCALE`, whose ratio over ``steps`` steps is at most e^ε, and
the rule that a card states, without ε and the first cut of the noise."""


@register("laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Mechanism):
    """Add Laplace noise of scale (hi − lo)/ε.

    Parameters
    ----------
    bounds : (lo, hi)
        Public bounds; labels outside are clipped. Never read them off the data.
    epsilon : float
        Privacy budget, 0.001 to 20.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.Laplace(bounds=(0, 5), epsilon=1.0)
    >>> z = mech.randomize([0.2, 1.7, 9.0])
    >>> round(float(mech.variance([2.5])[0]), 1)    # 2 (5 / 1)^2
    50.0

    References
    ----------
    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data analysis".
    """

    bounds: tuple[float, float]
    epsilon: float
    channel: ShiftChannel = channel_field()

    @classmethod
    def unit_noise(cls, epsilon: float, **_: object) -> UnitNoise:
        """Return the variance of the noise, 2/ε²: the same for all labels."""
        return lambda _: 2 / epsilon**2

    def _build(self) -> ShiftChannel:
        return periodic_channel(*self.bounds, self.epsilon, _period)


def _period(steps: int, epsilon: Fraction) -> tuple[list[int], Data]:
    top, bottom = exp_lower(epsilon / steps).as_integer_ratio()
    weights = [SCALE]
    for _ in range(steps - 1):
        weights.append(weights[-1] * bottom // top)
    return weights, {"rule": "laplace"}


def periodic_channel(low: float, high: float, epsilon: float, period: Period) -> ShiftChannel:
    """Return the channel of a symmetric noise with w(x + steps) = e^(−ε) w(x) for x ≥ 0.

    Laplace and staircase noise are both of this kind, so one period determines all counts, and the mass of a
    tail is that of its first period over 1 − e^(−ε).
    """
    promise = Promise.of(epsilon)
    ranges = max(2.0, 1 + REACH / epsilon)
    steps = max(1, min(STEPS, int((TABLE - 2) / (2 * ranges))))
    channel = finest = _channel(low, high, steps, ranges, promise, period)
    while not channel.unbiased and steps >= 64:
        steps //= 2  # fewer cells have more words each, so the noise can be cut farther out
        channel = _channel(low, high, steps, ranges, promise, period)
    return channel if channel.unbiased else finest


def _channel(low: float, high: float, steps: int, ranges: float, promise: Promise, period: Period) -> ShiftChannel:
    room, cut = Fraction(0), math.ceil(steps * ranges)
    while True:  # rounding a count to an integer moves ε by up to 1/count on either side: make room
        weights, rule = period(steps, promise.epsilon - room)
        counts = _counts(weights, cut, promise.epsilon - room)
        needed = Fraction(2, min(counts))
        if needed <= room:
            margin = len(counts) // 2 - steps
            rule |= {"epsilon": promise.epsilon - room, "cut": cut}
            return ShiftChannel.from_counts(low, high, steps, margin, counts, promise, rule)
        room = needed * Fraction(17, 16)


def _counts(weights: list[int], reach: int, epsilon: Fraction) -> list[int]:
    """Return the counts of −reach … reach, or less far; both ends take their whole tail.

    Cells that rounding would change by more than 0.05 % of ε are left to the tail, as far as that
    leaves every output within reach of every label.
    """
    (top, bottom), steps = exp_lower(epsilon).as_integer_ratio(), len(weights)
    while len(weights) < reach + steps:
        weights.extend([weight * bottom // top for weight in weights[-steps:]])
    tail = sum(weights[reach : reach + steps]) * top // (top - bottom)
    fewest = 2 * sum(weights) * math.ceil(4096 / epsilon) // WORDS
    while reach > steps and min(weights[reach - 1], tail) < fewest:
        reach -= 1
        tail += weights[reach]
    del weights[reach:]
    return counts_from_weights([tail, *weights[:0:-1], *weights, tail])


def counts_from_weights(weights: list[int]) -> list[int]:
    """Return integer counts in proportion to ``weights``, of odd number, that sum to 2^64.

    Words that rounding down leaves over, less than one an entry, go to the middle.
    """
    total = sum(weights)
    counts = [w * WORDS // total for w in weights]
    counts[len(counts) // 2] += WORDS - sum(counts)
    return counts
