"""What counts prove: Clopper–Pearson bounds, the privacy loss they imply, and the loss they could have shown.

SciPy's distributions are imported where they are used: they take a second that other commands can save.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["POWER", "loss_at_least", "share_at_least", "share_at_most", "showable", "smallest_showable"]

POWER = 0.8
"""A violation counts as one that could have been shown if it is convicted with at least this probability."""


def share_at_least(hits: NDArray[np.int64] | int, trials: int, level: float) -> NDArray[np.float64]:
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


def share_at_most(hits: NDArray[np.int64] | int, trials: int, level: float) -> NDArray[np.float64]:
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


def loss_at_least(
    hits: NDArray[np.int64] | int, others: NDArray[np.int64] | int, trials: int, delta: float, level: float
) -> NDArray[np.float64]:
    """Return what ε must at least be, if an event has ``hits`` under one label and ``others`` under another.

    P(S|y) ≤ e^ε P(S|y') + δ gives ε ≥ ln((P(S|y) − δ) / P(S|y')). Half of ``level`` goes to each probability.
    """
    most = share_at_most(others, trials, level / 2)
    least = share_at_least(hits, trials, level / 2) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(least > most, np.log(np.maximum(least, most) / most), 0.0)


def showable(q: float, trials: int, epsilon: float, delta: float, level: float) -> float:
    """Return the smallest ε' above a claimed ε that an event of probability ``q`` would have shown.

    The event has probability q under y', and e^ε' q + δ under y. From the returned ε' on, the bound of
    `loss_at_least` is above ε with probability 0.8 or more: each of the two counts is on the right side of a
    quantile with probability √0.8. Infinite if no probability under y is large enough.
    """
    return float(_showable(np.array([q]), trials, epsilon, delta, level)[0])


@lru_cache(maxsize=256)
def smallest_showable(trials: int, epsilon: float, delta: float, level: float) -> tuple[float, float]:
    """Return the smallest ε' that any event would have shown, and that event's probability under y'.

    Over 400 probabilities, from a tenth of one in ``trials`` to 1/(1 + e^ε), the largest of which ε' can be all
    there is: beyond it the event's complement is told apart by more than ε'.

    Examples
    --------
    >>> least, q = smallest_showable(100_000, 1.0, 0.0, 1e-8)
    >>> 1.0 < least < 1.1, 0.2 < q < 0.27
    (True, True)
    """
    if math.isinf(epsilon):
        return math.inf, 1.0
    places = np.geomspace(0.1 / trials, 1 / (1 + math.exp(epsilon)), 400)
    least = _showable(places, trials, epsilon, delta, level)
    with np.errstate(over="ignore", invalid="ignore"):
        odds = np.exp(least)
        whole = 1 - places <= odds * (1 - odds * places - delta) + delta
    least = np.where(whole, least, math.inf)
    best = int(np.argmin(least))
    return float(least[best]), float(places[best])


def _showable(
    q: NDArray[np.float64], trials: int, epsilon: float, delta: float, level: float
) -> NDArray[np.float64]:
    from scipy import stats  # noqa: PLC0415

    if math.isinf(epsilon):
        return np.full(q.shape, math.inf)
    tail = (1 - math.sqrt(POWER)) * 0.999  # a little less, for the quantiles' own rounding
    worst = stats.binom.isf(tail, trials, q)
    needed = np.minimum(math.exp(epsilon) * share_at_most(worst, trials, level / 2) + delta, 1.0)
    hits = np.minimum(stats.binom.isf(level / 2, trials, needed) + 1, trials)
    p = stats.beta.isf(tail, hits, trials - hits + 1)
    shown = (share_at_least(hits, trials, level / 2) > needed) & (p > delta)
    loss = np.log(np.where(shown, p - delta, 1.0) / q)
    return np.where(shown, np.maximum(loss, epsilon), math.inf)
