"""Clopper–Pearson bounds of probabilities, the privacy loss they imply, and the loss they could have detected.

SciPy's distributions are imported where they are used: they take a second that other commands can save.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from labeldp._values import Array, Counts, parse_number
from labeldp.errors import ParameterError, Setting

POWER = 0.8
"""A violation counts as detectable if it is detected with at least this probability."""


def parse_confidence(confidence: float) -> float:
    """Return the probability that a bound is right, or raise `ParameterError`."""
    if not 0.5 <= parse_number(confidence, "confidence") < 1:
        raise ParameterError(Setting("confidence"), f" must be at least 0.5 and below 1, got {confidence}")
    return confidence


def share_at_least(hits: Counts | int, trials: Counts | int, level: float) -> Array:
    """Return Clopper and Pearson's lower bound of a probability: above it with probability ``level`` at most.

    Examples
    --------
    >>> round(float(share_at_least(60, 100, 0.025)), 3)
    0.497
    """
    from scipy import stats  # noqa: PLC0415

    hits = np.asarray(hits)
    positive = np.maximum(hits, 1)
    bound = stats.beta.ppf(level, positive, trials - positive + 1)
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
    incomplete = np.minimum(hits, trials - 1)
    bound = stats.beta.isf(level, incomplete + 1, trials - incomplete)
    return np.where(hits < trials, bound, 1.0)


def loss_at_least(hits: Counts | int, false_hits: Counts | int, trials: int, delta: float, level: float) -> Array:
    """Return a lower bound on ε from the counts of an event under one label and under another.

    P(S|y) ≤ e^ε P(S|y') + δ gives ε ≥ ln((P(S|y) − δ) / P(S|y')). Half of ``level`` goes to each probability.
    """
    upper = share_at_most(false_hits, trials, level / 2)
    lower = share_at_least(hits, trials, level / 2) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(np.maximum(lower, upper) / upper)
    return np.where(lower > upper, loss, 0.0)


@lru_cache(maxsize=256)
def detectable_loss(trials: int, epsilon: float, delta: float, level: float) -> float:
    """Return an ε' that some event would show to be above ε with probability `POWER`; infinite if there is none.

    The best case, over events of 120 probabilities q under y', and e^ε' q + δ under y: most randomisers have no
    such event. Both counts are unlucky at once with probability 1 − `POWER` at most. q is at most 1/(1 + e^ε),
    beyond which the event's complement shows more.

    Examples
    --------
    >>> 1.0 < detectable_loss(100_000, 1.0, 0.0, 1e-8) < 1.1
    True
    """
    from scipy import stats  # noqa: PLC0415

    lucky = math.sqrt(POWER)
    largest = 1 / (1 + math.exp(epsilon))
    rare = np.geomspace(0.1 / trials, largest, 60)
    common = np.linspace(largest / 2, largest, 60)
    q = np.concatenate([rare, common])
    false_hits = stats.binom.isf(1 - lucky, trials, q)
    lower = delta + math.exp(epsilon) * share_at_most(false_hits, trials, level / 2)  # the bound to exceed
    hits = stats.binom.isf(level / 2, trials, np.minimum(lower, 1.0)) + 1  # the least count that exceeds it
    p = np.ones(q.size)
    is_possible = hits <= trials
    p[is_possible] = stats.beta.ppf(lucky, hits[is_possible], trials - hits[is_possible] + 1)
    with np.errstate(divide="ignore"):
        loss = np.log(np.maximum(p - delta, 0.0) / q)
        of_complement = np.log((1 - q - delta) / (1 - p))
    is_largest = (p < 1) & (of_complement <= loss)
    return float(np.where(is_largest, loss, math.inf).min())
