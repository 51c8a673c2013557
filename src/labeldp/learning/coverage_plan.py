"""The plan of the search for the width of intervals: the number of noisy counts, and the count that a width needs.

All of it follows from the number of rows, ε and the coverage, before a label is read. The proof is in
docs/proofs/intervals.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from labeldp._values import Array
from labeldp.exact.integers import DiscreteLaplace

_COUNTS = range(4, 11)
"""Possible numbers of noisy counts of a search."""

_OCTAVES = 12
"""The narrowest half width that is tried is the width of the bounds, halved this many times."""

_STEPS_PER_SCALE = 8
"""Steps of `most_misses` in one scale of noise."""

_SCALES_BELOW = 12
"""Scales of noise below the slack, from which on `most_misses` takes such steps …"""

_SCALES_ABOVE = 20
"""… and above the slack, up to which."""

_MAX_FEWEST = 1 << 26
"""The largest number of rows that `fewest_rows` tries."""

_WIDTH = 20.0
"""The width of the bounds in standard deviations of residuals, for the expected width of intervals."""

_ROUNDING = 1 - 1e-9
"""A margin larger than rounding errors."""


@dataclass(frozen=True, slots=True)
class CoveragePlan:
    """A search by bisection whose result is proven to have the coverage.

    Attributes
    ----------
    rows : int
        Calibration rows.
    epsilon : Fraction
        The ε of all counts together.
    counts : int
        The number of noisy counts.
    slack : int
        A half width passes if its noisy count is at least rows + 1 − slack.
    """

    rows: int
    epsilon: Fraction
    counts: int
    slack: int

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise of one count, which a change of one label moves by at most 1."""
        return DiscreteLaplace.calibrated(sensitivity=1, epsilon=self.epsilon / self.counts)

    @property
    def min_count(self) -> int:
        """The noisy count that a half width must have to pass."""
        return self.rows + 1 - self.slack

    def half_width(self, position: int, width: float) -> float:
        """Return a half width of the public grid; the last one, 2^counts, is the width of the bounds."""
        return width * math.exp2(_OCTAVES * (position / (1 << self.counts) - 1))

    def widening(self, coverage: Fraction) -> float:
        """Return the fraction by which noise is expected to widen intervals.

        Residuals are taken to be normal, and the bounds to be `_WIDTH` of their standard deviations wide. All ways
        that the search can take are weighted by their probability, at the expected numbers of labels outside.
        """
        positions = range(1, 1 + (1 << self.counts))
        half_widths = np.array([self.half_width(position, _WIDTH) for position in positions])
        outside = 2 * self.rows * ndtr(-half_widths)
        passes = _tail(outside + 1 - self.slack, float(self.noise.scale))
        ends = np.ones(1)
        for number in range(1, self.counts + 1):
            step = len(positions) >> number
            passes_middle = passes[step - 1 :: 2 * step]
            ends = np.column_stack([ends * passes_middle, ends * (1 - passes_middle)]).reshape(-1)
        return float(ends @ half_widths) / -float(ndtri(float(1 - coverage) / 2)) - 1

    @property
    def excess(self) -> float:
        """The expected half width for normal residuals: a quantile, and half a step of the grid."""
        step = _OCTAVES * math.log(2) / (1 << self.counts)
        return float(-ndtri(self.slack / (2 * (self.rows + 1)))) * (1 + step / 2)


@lru_cache(maxsize=64)
def plan_coverage(rows: int, epsilon: Fraction, coverage: Fraction) -> CoveragePlan | None:
    """Return the plan of the narrowest intervals that cover, or None where rows · ε cannot support any.

    Examples
    --------
    >>> plan = plan_coverage(2000, Fraction(1, 2), Fraction(9, 10))
    >>> plan.counts, plan.slack
    (9, 181)
    >>> plan_coverage(50, Fraction(1, 2), Fraction(9, 10)) is None
    True
    """
    plans = []
    for counts in _COUNTS:
        slack = _largest_slack(rows, epsilon, coverage, counts)
        if slack >= 1:
            plans.append(CoveragePlan(rows, epsilon, counts, slack))
    return min(plans, key=lambda plan: plan.excess, default=None)


def fewest_rows(epsilon: Fraction, coverage: Fraction) -> int:
    """Return the number of rows from which on ε supports the coverage.

    Examples
    --------
    >>> rows = fewest_rows(Fraction(1, 2), Fraction(9, 10))
    >>> plan_coverage(rows, Fraction(1, 2), Fraction(9, 10)) is not None
    True
    >>> plan_coverage(rows - 1, Fraction(1, 2), Fraction(9, 10)) is None
    True
    """
    counts = _COUNTS[0]  # the least noise

    def is_supported(rows: int) -> bool:
        return most_misses(1, rows, float(counts / epsilon), counts) <= _allowed_misses(rows, coverage)

    return bisect_left(range(_MAX_FEWEST), True, key=is_supported)


def _allowed_misses(rows: int, coverage: Fraction) -> float:
    """Return the expected misses of ``rows + 1`` rows that the coverage allows."""
    return float((1 - coverage) * (rows + 1)) * _ROUNDING


def _largest_slack(rows: int, epsilon: Fraction, coverage: Fraction, counts: int) -> int:
    """Return the largest slack with which a search of this number of counts covers, or 0."""
    allowed, scale = _allowed_misses(rows, coverage), float(counts / epsilon)
    slacks = range(1, math.floor(allowed) + 1)
    return bisect_right(slacks, allowed, key=lambda slack: most_misses(slack, rows, scale, counts))


def most_misses(slack: int, rows: int, scale: float, counts: int) -> float:
    """Return a bound on the expected number of misses: rows, of ``rows + 1``, outside the interval found.

    A player sees the noisy counts, and chooses the number of rows outside at each next half width: at least that
    at the last one that passed. The player wants many misses. No labels do better than the best player, whose
    value follows backwards from the last count. Choices between two steps are rounded to the player's advantage.

    Examples
    --------
    >>> round(most_misses(90, 999, 8.0, 8), 1)       # 8 counts for ε = 1: of 1,000 rows, for a slack of 90
    97.3
    """
    step = max(1, math.floor(scale / _STEPS_PER_SCALE))
    first = max(slack - math.ceil(_SCALES_BELOW * scale), 0)
    last = slack + math.ceil(_SCALES_ABOVE * scale)
    outside = np.concatenate([[0.0], np.arange(first, last + step, step), [rows + 1.0]])
    outside = np.minimum(outside, rows + 1.0)
    passes = np.concatenate([[1.0, 1.0], _tail(outside[1:-1] + 1 - slack, scale)])  # the nearest choice of a step
    value = outside
    for _ in range(counts):
        gain = np.triu(passes * (value - value[:, None]))
        value = value + gain.max(axis=1)
    return float(value[0])


def _tail(threshold: Array, scale: float) -> Array:
    """Return the probability that the noise of a count is at least so much, by its geometric tails."""
    ratio = math.exp(-1 / scale)
    up, down = np.maximum(threshold, 1), np.minimum(threshold, 0)
    return np.where(threshold >= 1, ratio**up, 1 + ratio - ratio ** (1 - down)) / (1 + ratio)
