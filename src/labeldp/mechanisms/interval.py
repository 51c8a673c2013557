"""Designs: the interval that labels are clipped to, for an unbiased label and the paper's, and which mechanism.

**For an unbiased label.** The variance of every mechanism here, on an interval of width W, is W² · v(q), where
q = E[(p − m)²]/W² is the mean squared distance of the clipped label p from the middle m. Clipping reduces noise
and adds bias:

    J = E[(clip(y) − y)²] + weight · W² · v(q).

A weight of 1 is for a single label. For a learner of effective dimension d on n rows, noise averages out
and bias does not: its weight is d/n. `ClippingRisks` computes bias and q of all candidate intervals once, and each
mechanism takes the best for its own v.

**The paper's Algorithm 1** maximises F(A1, A2) = 2ζ P(A1 ≤ Y ≤ A2) / (2ζ + e^(−ε)(A2 − A1)), the probability that
a label is answered from its neighbourhood, by trying all pairs of bins. On a pair of bins F is linear-fractional
in each end, so its maximum is at nodes; what remains is a segment of largest ratio, which Dinkelbach's iteration
finds in O(k) a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labeldp._values import Array, Epsilon, Index, Interval, parse_positive
from labeldp.errors import ParameterError, PrivacyProofError
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.registry import REGISTRY, mechanism_class

if TYPE_CHECKING:
    from labeldp.mechanisms.base import Mechanism

DIMENSION = 300
"""Effective dimension of the learner that a release is designed for, between ridge and boosted trees."""

CANDIDATES = 128
"""Equally spaced ends of intervals, and as many equally likely ones."""

TAILS = (1e-4, 1e-3, 5e-3)
"""Shares of labels in a tail at which intervals may end as well."""

NEAR_MEDIAN = np.geomspace(0.01, 2.0, 30)
"""Distances from the median at which intervals may end as well, in standard deviations."""

MIN_WIDTH = 1e-6
"""The least width of an interval, in widths of the prior."""

UnitNoise = Callable[[Array], Array | float]
"""q → variance of the unbiased label on an interval of width 1."""


def noise_weight(rows: int | None) -> float:
    """Return the weight of variance against squared bias."""
    return 1.0 if rows is None else min(1.0, DIMENSION / rows)


class CandidateIntervals(NamedTuple):
    """Candidate intervals on the range of a prior scaled to [0, 1], with E[(clip(y) − y)²] and q of each."""

    low: Array
    high: Array
    bias: Array
    q: Array


class ClippingRisks:
    """Bias and spread of labels clipped to intervals, under a prior: one computation for all mechanisms.

    The range of the prior is scaled to [0, 1], so that the unit of labels does not matter. All is exact for a
    piecewise constant density.

    Parameters
    ----------
    prior : Histogram
    """

    def __init__(self, prior: Histogram) -> None:
        self.prior = prior
        self._low, high = prior.bounds
        self._width = high - self._low

    @cached_property
    def _nodes(self) -> Array:
        """The nodes of the prior on [0, 1]."""
        return (self.prior.nodes - self._low) / self._width

    @cached_property
    def _density(self) -> Array:
        """The height of each bin on [0, 1]."""
        return self.prior.masses / np.diff(self._nodes)

    @cached_property
    def _below(self) -> Array:
        """P, E[y] and E[y²] over labels below each node."""
        powers = [self._density * np.diff(self._nodes**power) / power for power in (1, 2, 3)]
        return np.cumulative_sum(np.array(powers), axis=1, include_initial=True)

    def _moments_below(self, ends: Array) -> Array:
        """Return P, E[y] and E[y²] over labels below each end."""
        bin = np.clip(np.searchsorted(self._nodes, ends, side="right") - 1, 0, self._density.size - 1)
        starts = self._nodes[bin]
        inside = np.array([(ends**power - starts**power) / power for power in (1, 2, 3)])
        return np.asarray(self._below[:, bin] + self._density[bin] * inside)

    def between(self, ends: Array, i: Index, j: Index) -> CandidateIntervals:
        """Return the intervals from ends[i] to ends[j]."""
        moments = self._moments_below(ends)
        low, high = ends[i], ends[j]
        middle = (low + high) / 2
        under = moments[:, i]
        over = self._below[:, -1:] - moments[:, j]
        inner = moments[:, j] - moments[:, i]
        bias = low**2 * under[0] - 2 * low * under[1] + under[2]
        bias += high**2 * over[0] - 2 * high * over[1] + over[2]
        spread = (under[0] + over[0]) * ((high - low) / 2) ** 2
        spread += inner[2] - 2 * middle * inner[1]
        spread += middle**2 * inner[0]
        q = np.clip(spread / (high - low) ** 2, 0.0, 0.25)
        return CandidateIntervals(low, high, np.maximum(bias, 0.0), q)

    @cached_property
    def candidates(self) -> CandidateIntervals:
        """The intervals between any two candidate ends."""
        ends = self._ends()
        i, j = np.triu_indices(ends.size, 1)
        is_wide = ends[j] - ends[i] > MIN_WIDTH
        return self.between(ends, i[is_wide], j[is_wide])

    def _ends(self) -> Array:
        """Return candidates for an interval's ends: equally spaced, equally likely, and near the median."""
        shares, tails = np.linspace(0.0, 1.0, CANDIDATES + 1), np.array(TAILS)
        cumulative = self._below[0] / self._below[0, -1]
        quantiles = np.interp([*shares, *tails, *(1 - tails)], cumulative, self._nodes)
        median = float(np.interp(0.5, cumulative, self._nodes))
        deviation = math.sqrt(self.prior.variance) / self._width
        distances = deviation * NEAR_MEDIAN
        ends = np.concatenate([shares, quantiles, median - distances, median + distances])
        return np.unique(np.clip(ends, 0.0, 1.0))

    def best_interval(self, noise: UnitNoise, rows: int | None) -> Interval:
        """Return the interval of least J.

        Parameters
        ----------
        noise : function q → v
            Variance of the unbiased label on an interval of width 1.
        rows : int or None
            For a learner on this many rows, or for a single label.
        """
        low, high, bias, q = self.candidates
        risks = bias + noise_weight(rows) * (high - low) ** 2 * noise(q)
        best = int(np.argmin(risks))
        start, stop = float(low[best]), float(high[best])
        return self._low + start * self._width, self._low + stop * self._width

    def mean_square(self, bounds: Interval) -> float:
        """Return q of labels clipped to bounds: their mean squared distance from the middle, for a width of 1."""
        ends = (np.array(bounds) - self._low) / self._width
        return float(self.between(ends, np.array([0]), np.array([1])).q[0])


def expected_risk(mechanism: Mechanism, prior: Histogram, rows: int | None = None) -> float:
    """Return bias² + weight · variance of a mechanism's unbiased label, on average under the prior.

    Parameters
    ----------
    mechanism : Mechanism
    prior : Histogram
    rows : int, optional
        For a learner on this many rows, or for a single label.
    """
    fine = np.linspace(*prior.bounds, 1025)
    points = np.unique(np.concatenate([fine, prior.nodes])) if prior.nodes.size < 4096 else fine
    mass = np.diff(prior.cumulative(points))
    labels = (points[:-1] + points[1:]) / 2
    bias = np.clip(labels, *mechanism.domain) - labels
    channel = mechanism.channel
    variance = noise_weight(rows) * channel.variance(labels) / channel.slope() ** 2
    return float(mass @ (bias**2 + variance))


def auto_classes() -> list[type[Mechanism]]:
    """Return the mechanisms among which ``mechanism="auto"`` chooses."""
    return [cls for _, cls in sorted(REGISTRY.items()) if cls.in_auto]


def choose_mechanism(
    name: str,
    prior: Histogram | None,
    *,
    bounds: Interval,
    epsilon: float,
    rows: int | None = 1,
    clips: bool = True,
    **options: Any,
) -> Mechanism:
    """Return the mechanism called ``name``, designed for a prior; for "auto" the one of least expected risk.

    Arguments are parsed. Unless it ``clips``, it is for labels anywhere in the bounds, which somebody else has
    chosen.
    """
    risks = ClippingRisks(prior) if prior is not None and clips else None

    def design(cls: type[Mechanism]) -> Mechanism:
        if risks is None:
            return cls.for_bounds(bounds, epsilon, prior=prior, **options)
        return cls._design(risks, epsilon, rows, **options)

    if name != "auto":
        mechanism = design(mechanism_class(name))
    else:
        candidates: list[Mechanism] = []
        for cls in auto_classes():
            with suppress(ParameterError):  # a linear programme may find no table; the others always exist
                candidates.append(design(cls))
        assumed = Histogram(bounds, [1.0]) if prior is None else prior
        learner = None if prior is None or not clips else rows
        mechanism = min(candidates, key=lambda candidate: expected_risk(candidate, assumed, learner))
    if mechanism.epsilon > float(epsilon) or mechanism.delta:
        raise PrivacyProofError(
            f"{type(mechanism).__name__} costs more than was asked for: ε = {mechanism.epsilon:g}"
        )
    return mechanism


def optimal_interval(prior: Histogram, *, epsilon: float, zeta: float) -> Interval:
    """Return the interval (A1, A2) that maximises F, the paper's Algorithm 1.

    Parameters
    ----------
    prior : Histogram
        Any number of bins; ten million take about a second.
    epsilon, zeta : float
        Budget and half-width of the neighbourhood.

    Returns
    -------
    (float, float)
        Two nodes of the prior.

    Examples
    --------
    >>> import labeldp as ldp
    >>> prior = ldp.Histogram([0, 1, 2, 10], [1, 8, 1])
    >>> ldp.optimal_interval(prior, epsilon=1.0, zeta=0.5)
    (1.0, 2.0)
    """
    prior = Histogram.parse(prior)
    cost = math.exp(-Epsilon(epsilon))
    fixed = 2 * parse_positive(zeta, "zeta")
    nodes = prior.nodes - prior.nodes[0]
    mass = np.cumulative_sum(prior.masses, include_initial=True)
    best, ratio = (0, 0), 0.0
    i, j = 0, nodes.size - 1
    while True:
        length = float(nodes[j] - nodes[i])
        value = float(mass[j] - mass[i]) / (fixed + cost * length)
        if value <= ratio:
            return float(prior.nodes[best[0]]), float(prior.nodes[best[1]])
        best, ratio = (i, j), value
        # The segment of largest mass − ratio · cost · length beats the ratio if any does.
        score = mass - ratio * cost * nodes
        lowest_before = np.minimum.accumulate(score)
        j = int(np.argmax(score[1:] - lowest_before[:-1])) + 1
        i = int(np.argmin(score[:j]))
