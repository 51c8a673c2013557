"""Designs: the interval that labels are clipped to, for an unbiased label and the paper's, and which mechanism.

**For an unbiased label.** The variance of every mechanism here, on an interval of width W, is W² · v(q), where
q = E[(p − m)²]/W² is the mean squared distance of the clipped label p from the middle m. Clipping reduces noise
and adds bias:

    J = E[(clip(y) − y)²] + weight · W² · v(q).

A weight of 1 is for a single label. For a learner of effective dimension d on n rows, noise averages out
and bias does not: its weight is d/n.

**The paper's Algorithm 1** maximises F(A1, A2) = 2ζ P(A1 ≤ Y ≤ A2) / (2ζ + e^(−ε)(A2 − A1)), the probability that
a label is answered from its neighbourhood, by trying all pairs of bins. On a pair of bins F is linear-fractional
in each end, so its maximum is at nodes; what remains is a segment of largest ratio, which Dinkelbach's iteration
finds in O(k) a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp._values import Array, Epsilon, Index, Interval, parse_positive
from labeldp.errors import ParameterError, PrivacyProofError
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.registry import REGISTRY, mechanism_class

if TYPE_CHECKING:
    from labeldp.mechanisms.base import Mechanism

DIMENSION = 20
"""Effective dimension of the learner that a release is designed for: a modest regression."""

_CANDIDATES, _MOST_NODES = 128, 256
UnitNoise = Callable[[Array], Array | float]
"""q → variance of the unbiased label on an interval of width 1."""


def noise_weight(rows: int | None) -> float:
    """Return the weight of variance against squared bias."""
    return 1.0 if rows is None else min(1.0, DIMENSION / rows)


def _scaled(prior: Histogram) -> tuple[Array, Array, Array]:
    """Return nodes and density of the prior on [0, 1], and P, E[y] and E[y²] over labels below each node.

    So the unit of labels does not matter.
    """
    low, high = prior.bounds
    nodes = (prior.nodes - low) / (high - low)
    density = prior.masses / np.diff(nodes)
    powers = [density * np.diff(nodes ** (k + 1)) / (k + 1) for k in range(3)]
    return nodes, density, np.cumulative_sum(np.array(powers), axis=1, include_initial=True)


def clipping_risks(prior: Histogram, ends: Array, i: Index, j: Index) -> tuple[Array, Array]:
    """Return E[(clip(y) − y)²] and q for each interval from ends[i] to ends[j], where the prior is on [0, 1].

    Both are exact for a piecewise constant density.
    """
    nodes, density, below = _scaled(prior)
    own = np.clip(np.searchsorted(nodes, ends, side="right") - 1, 0, density.size - 1)
    inside = np.array([(ends ** (k + 1) - nodes[own] ** (k + 1)) / (k + 1) for k in range(3)])
    moments = below[:, own] + density[own] * inside
    low, high, middle = ends[i], ends[j], (ends[i] + ends[j]) / 2
    under, over, between = moments[:, i], below[:, -1:] - moments[:, j], moments[:, j] - moments[:, i]
    bias = low**2 * under[0] - 2 * low * under[1] + under[2]
    bias += high**2 * over[0] - 2 * high * over[1] + over[2]
    spread = (under[0] + over[0]) * ((high - low) / 2) ** 2
    spread += between[2] - 2 * middle * between[1]
    spread += middle**2 * between[0]
    return np.maximum(bias, 0.0), np.clip(spread / (high - low) ** 2, 0.0, 0.25)


def _candidates(prior: Histogram) -> Array:
    """Return candidates for an interval's ends, equally spaced and equally likely, where the prior is on [0, 1].

    They are nodes of a prior that was estimated: all labels of a bin may lie at one end of it, as zeros do, and
    the cost of cutting through a bin follows only from a prior that is known to be even in each bin.
    """
    nodes, _, below = _scaled(prior)
    estimated = prior.origin is not None
    if estimated and nodes.size <= _MOST_NODES:
        return nodes
    shares, tails = np.linspace(0.0, 1.0, _CANDIDATES + 1), np.array([1e-4, 1e-3, 5e-3])
    quantiles = np.interp([*shares, *tails, *(1 - tails)], below[0] / below[0, -1], nodes)
    ends = np.unique(np.concatenate([shares, quantiles]))
    return np.unique(nodes[np.searchsorted(nodes, ends)]) if estimated else ends


def mean_square(prior: Histogram, bounds: Interval) -> float:
    """Return q of labels clipped to bounds: their mean squared distance from the middle, for a width of 1."""
    low, high = prior.bounds
    ends = (np.array(bounds) - low) / (high - low)
    return float(clipping_risks(prior, ends, np.array([0]), np.array([1]))[1][0])


def best_interval(prior: Histogram, noise: UnitNoise, rows: int | None) -> Interval:
    """Return the interval of least J.

    Parameters
    ----------
    prior : Histogram
    noise : function q → v
        Variance of the unbiased label on an interval of width 1.
    rows : int or None
        For whom: a learner on this many rows, or a single label.
    """
    ends = _candidates(prior)
    i, j = np.triu_indices(ends.size, 1)
    wide = ends[j] - ends[i] > 1e-6
    starts, stops = ends[i[wide]], ends[j[wide]]
    bias, q = clipping_risks(prior, ends, i[wide], j[wide])
    best = int(np.argmin(bias + noise_weight(rows) * (stops - starts) ** 2 * noise(q)))
    low, high = prior.bounds
    return low + float(starts[best]) * (high - low), low + float(stops[best]) * (high - low)


def expected_risk(mechanism: Mechanism, prior: Histogram, rows: int | None = None) -> float:
    """Return bias² + weight · variance of a mechanism's unbiased label, on average under the prior.

    Parameters
    ----------
    mechanism : Mechanism
    prior : Histogram
    rows : int, optional
        As for `best_interval`.
    """
    fine = np.linspace(*prior.bounds, 1025)
    points = np.unique(np.concatenate([fine, prior.nodes])) if prior.nodes.size < 4096 else fine
    mass = np.diff(prior.cumulative(points))
    labels = (points[:-1] + points[1:]) / 2
    bias = np.clip(labels, *mechanism.domain) - labels
    risk = bias**2 + noise_weight(rows) * mechanism.channel.variance(labels) / mechanism.channel.slope() ** 2
    return float(mass @ risk)


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

    def design(cls: type[Mechanism]) -> Mechanism:
        if prior is None or not clips:
            return cls.for_bounds(bounds, epsilon, prior=prior, **options)
        return cls._design(prior, epsilon, rows, **options).with_origin(prior.origin)

    if name != "auto":
        mechanism = design(mechanism_class(name))
    else:
        candidates: list[Mechanism] = []
        for cls in auto_classes():
            with suppress(ParameterError):  # a linear programme may find no table; the others always exist
                candidates.append(design(cls))
        assumed = (Histogram(bounds, [1.0]), None) if prior is None else (prior, rows if clips else None)
        mechanism = min(candidates, key=lambda candidate: expected_risk(candidate, *assumed))
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
        value = float(mass[j] - mass[i]) / (fixed + cost * float(nodes[j] - nodes[i]))
        if value <= ratio:
            return float(prior.nodes[best[0]]), float(prior.nodes[best[1]])
        best, ratio = (i, j), value
        # The segment of largest mass − ratio · cost · length beats the ratio if any does.
        score = mass - ratio * cost * nodes
        lowest_before = np.minimum.accumulate(score)
        j = int(np.argmax(score[1:] - lowest_before[:-1])) + 1
        i = int(np.argmin(score[:j]))
