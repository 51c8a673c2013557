"""What counts prove: Clopper–Pearson bounds, the privacy loss they imply, and the loss they could have shown.

SciPy's distributions are imported where they are used: they take a second that other commands can save.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from labeldp._arrays import Array, Counts

POWER = 0.8
"""A violation counts as one that could have been shown if it is convicted with at least this probability."""

_BLOCKS = 64
_UNLIKELY = 1e-4


def share_at_least(hits: Counts | int, trials: int, level: float) -> Array:
    """Return Clopper and Pearson's lower bound of a probability: above it with probability ``level`` at most.

    Examples
    --------
    >>> round(float(share_at_least(60, 100, 0.025)), 3)
    0.497
    """
    from scipy import stats  # noqa: PLC0415

    hits = np.asarray(hits)
    bound = stats.beta.ppf(level, np.maximum(hits, 1), trials - np.maximum(hits, 1) + 1)
    return np.where(hits > 0, bound, 0.0)


def share_at_most(hits: Counts | int, trials: int, level: float) -> Array:
    """Return Clopper and Pearson's upper bound of a probability.

    Examples
    --------
    >>> round(float(share_at_most(0, 100, 0.05)), 3)    # the rule of three
    0.03
    """
    from scipy import stats  # noqa: PLC0415

    hits = np.asarray(hits)
    bound = stats.beta.isf(level, np.minimum(hits, trials - 1) + 1, trials - np.minimum(hits, trials - 1))
    return np.where(hits < trials, bound, 1.0)


def loss_at_least(hits: Counts | int, others: Counts | int, trials: int, delta: float, level: float) -> Array:
    """Return what ε must at least be, if an event has ``hits`` under one label and ``others`` under another.

    P(S|y) ≤ e^ε P(S|y') + δ gives ε ≥ ln((P(S|y) − δ) / P(S|y')). Half of ``level`` goes to each probability.
    """
    most = share_at_most(others, trials, level / 2)
    least = share_at_least(hits, trials, level / 2) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(least > most, np.log(np.maximum(least, most) / most), 0.0)


def power(p: Array | float, q: Array | float, trials: int, epsilon: float, delta: float, level: float) -> Array:
    """Return the probability that `loss_at_least` is above ε, for an event of probability p, and q under y'.

    Summed over both binomial counts. Counts under y' are taken in blocks, each as if it were its largest, so it is
    a little less than the exact probability, and never more.

    Examples
    --------
    >>> float(power(0.9, 0.1, 1000, 1.0, 0.0, 1e-6)) > 0.999
    True
    >>> float(power(0.73, 0.27, 1000, 1.0, 0.0, 1e-6)) < 1e-6       # ln(0.73 / 0.27) < 1
    True
    """
    p, q = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64))
    weight, needed = _thresholds(q, trials, epsilon, delta, level)
    return _reached(p, trials, weight, needed)


def showable(q: Array | float, trials: int, epsilon: float, delta: float, level: float) -> Array:
    """Return the smallest ε' that an event of probability ``q`` under y' would have shown.

    The event has probability e^ε' q + δ under y. At the returned ε' the bound of `loss_at_least` is above
    ``epsilon`` with probability 0.8. Infinite if no probability under y is large enough.

    Examples
    --------
    >>> 1.0 < float(showable(0.25, 50_000, 1.0, 0.0, 1e-8)) < 1.1
    True
    """
    q = np.asarray(q, dtype=np.float64)
    weight, needed = _thresholds(q, trials, epsilon, delta, level)
    low, high = q.copy(), np.ones(q.shape)
    for _ in range(40):
        middle = (low + high) / 2
        enough = _reached(middle, trials, weight, needed) >= POWER
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    is_large = (_reached(np.ones(q.shape), trials, weight, needed) >= POWER) & (high > delta)
    return np.where(is_large, np.log(np.where(is_large, high - delta, 1.0) / q), math.inf)


@lru_cache(maxsize=256)
def best_case(trials: int, epsilon: float, delta: float, level: float) -> tuple[float, float]:
    """Return the smallest ε' that any one event would have shown, and that event's probability under y'.

    The best case: most randomisers have no such event. Over 120 probabilities, from a tenth of one in ``trials``
    to 1/(1 + e^ε), the largest of which ε' can be all there is: beyond it the event's complement is told apart by
    more than ε'.

    Examples
    --------
    >>> least, q = best_case(100_000, 1.0, 0.0, 1e-8)
    >>> 1.0 < least < 1.1, 0.2 < q < 0.27
    (True, True)
    """
    if math.isinf(epsilon):
        return math.inf, 1.0
    most = 1 / (1 + math.exp(epsilon))
    places = np.unique(np.concatenate([np.geomspace(0.1 / trials, most, 60), np.linspace(most / 2, most, 60)]))
    least = showable(places, trials, epsilon, delta, level)
    with np.errstate(over="ignore", invalid="ignore"):
        odds = np.exp(least)
        whole = 1 - places <= odds * (1 - odds * places - delta) + delta
    least = np.where(whole, least, math.inf)
    best = int(np.argmin(least))
    return float(least[best]), float(places[best])


def _thresholds(q: Array, trials: int, epsilon: float, delta: float, level: float) -> tuple[Array, Array]:
    """Return how likely each block of counts under y' is, and how many hits under y convict beside it.

    Both have one more axis, of blocks. More hits than trials are needed where nothing convicts.
    """
    from scipy import stats  # noqa: PLC0415

    q = q[..., None]
    least, most = stats.binom.ppf(_UNLIKELY, trials, q) - 1, stats.binom.isf(_UNLIKELY, trials, q)
    ends = np.floor(least + (most - least) * np.linspace(0, 1, _BLOCKS + 1))
    weight = np.diff(stats.binom.cdf(ends, trials, q), axis=-1)
    beyond = math.exp(epsilon) * share_at_most(ends[..., 1:].astype(np.int64), trials, level / 2) + delta
    possible = beyond < 1
    hits = stats.binom.isf(level / 2, trials, np.where(possible, beyond, 0.5)) + 1
    hits = np.minimum(hits, trials)
    enough = possible & (share_at_least(hits.astype(np.int64), trials, level / 2) > beyond)
    return weight, np.where(enough, hits, trials + 1)


def _reached(p: Array, trials: int, weight: Array, needed: Array) -> Array:
    from scipy import stats  # noqa: PLC0415

    chance: Array = (weight * stats.binom.sf(needed - 1, trials, p[..., None])).sum(axis=-1)
    return chance
