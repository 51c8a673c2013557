"""Algorithm 1: the interval that keeps most labels in their neighbourhood, exactly, in linear time.

The paper maximises F(A1, A2) = 2ζ P(A1 ≤ Y ≤ A2) / (2ζ + e^(−ε)(A2 − A1)) by trying all pairs of bins.
On a pair of bins F is linear-fractional in each end, so its maximum is at nodes; what remains is a
segment of largest ratio, which Dinkelbach's iteration finds in O(k) a step.
"""

from __future__ import annotations

import math

import numpy as np

from labeldp._validation import as_epsilon, as_positive
from labeldp.histogram import Histogram

__all__ = ["interval_value", "optimal_interval"]


def interval_value(prior: Histogram, interval: tuple[float, float], *, epsilon: float, zeta: float) -> float:
    """Return F(A1, A2): the probability that a label is answered from its neighbourhood."""
    low, high = interval
    inside = float(np.diff(prior.cumulative([low, high]))[0])
    return 2 * zeta * inside / (2 * zeta + math.exp(-epsilon) * (high - low))


def optimal_interval(prior: Histogram, *, epsilon: float, zeta: float) -> tuple[float, float]:
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
    >>> prior = Histogram([0, 1, 2, 10], [1, 8, 1])
    >>> optimal_interval(prior, epsilon=1.0, zeta=0.5)
    (1.0, 2.0)
    """
    prior = Histogram.checked(prior)
    cost = math.exp(-as_epsilon(epsilon))
    fixed = 2 * as_positive(zeta, "zeta")
    nodes = prior.nodes - prior.nodes[0]
    mass = np.concatenate([[0.0], np.cumsum(prior.masses)])
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
