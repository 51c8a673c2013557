"""Labels released in rounds: later rows over a narrow interval around what earlier rows predict.

Noise falls with the square of the interval's width, so a prediction made from earlier private labels, and
free to use, buys accuracy. Each row is released once, in one round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp.choice import expected_risk
from labeldp.errors import ParameterError
from labeldp.estimators.bayes import explained_risk
from labeldp.histogram import Histogram
from labeldp.mechanisms import Mechanism, RPWithPrior, TwoPoint, Unbiased
from labeldp.mechanisms.rp_with_prior import window_noise

__all__ = ["Interval", "Situation", "best_unit_mechanism", "design_interval"]

Array = NDArray[np.float64]

_BIAS = 0.5
"""How much of the variance that clipping hides is lost to a learner; the rest its slope brings back."""

_LOWER = (0.0, 0.005, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
_UPPER = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.995, 1.0)


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known, publicly or privately, when a round is designed.

    Attributes
    ----------
    spectrum : array
        Eigenvalues of the public features.
    signal : float
        Guessed variance that the features explain.
    rest : float
        Variance that they do not.
    rows : int
    epsilon : float
    """

    spectrum: Array
    signal: float
    rest: float
    rows: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Interval:
    """Where labels, minus their prediction, are told apart in a round.

    The unbiased label of the clipped residual c is mapped to shift + slope · c, the best straight line for
    the residual itself under what is known of it: that takes out most of the bias of clipping.
    """

    low: float
    high: float
    shift: float
    slope: float
    unit_prior: Histogram
    risk: float


def design_interval(values: Array, masses: Array, now: Situation) -> Interval:
    """Return the interval of least expected risk of a learner.

    Parameters
    ----------
    values, masses : arrays
        What is known of the residuals: increasing values and their probabilities.
    now : Situation
    """
    total = np.cumsum(masses)
    lows = np.unique([values[0], *[_quantile(values, total, p) for p in _LOWER[1:]]])
    highs = np.unique([values[-1], *[_quantile(values, total, p) for p in _UPPER[:-1]]])
    span = values[-1] - values[0]
    mean = float(masses @ values)
    strength = float(now.spectrum.sum()) * now.signal
    best: Interval | None = None
    two_point = 1 / np.tanh(now.epsilon / 2) ** 2 / 4
    for low in lows:
        for high in highs:
            if high - low < 1e-6 * span:
                continue
            clipped = np.clip(values, low, high)
            middle = float(masses @ clipped)
            variance = float(masses @ (clipped - middle) ** 2)
            if variance < 1e-12 * span**2:
                continue
            slope = float(masses @ ((values - mean) * (clipped - middle))) / variance
            shift = mean - slope * middle
            hidden = float(masses @ (values - shift - slope * clipped) ** 2)
            unit = (clipped - low) / (high - low)
            q = np.array([float(masses @ (unit - 0.5) ** 2)])
            noise = min(float(window_noise(now.epsilon, q)[0][0]), two_point - float(q[0]))
            level = (noise * (slope * (high - low)) ** 2 + now.rest) / now.rows
            lost = explained_risk(now.spectrum, now.signal, level)
            learnt = 1 - lost / strength if strength > 0 else 1.0
            risk = lost + _BIAS * hidden * learnt
            if best is None or risk < best.risk:
                prior = Histogram(*_unit_histogram(unit, masses))
                best = Interval(float(low), float(high), shift, slope, prior, risk)
    if best is None:
        raise ParameterError("the bounds leave no interval to tell labels apart in")
    return best


def _quantile(values: Array, total: Array, p: float) -> float:
    return float(values[min(int(np.searchsorted(total, p)), values.size - 1)])


def _unit_histogram(unit: Array, masses: Array, bins: int = 64) -> tuple[Array, Array]:
    nodes = np.linspace(0.0, 1.0, bins + 1)
    place = np.minimum((unit * bins).astype(np.int64), bins - 1)
    return nodes, np.bincount(place, masses, bins).astype(np.float64)


def best_unit_mechanism(prior: Histogram, epsilon: float, size: int = 24) -> Mechanism:
    """Return the unbiased mechanism on [0, 1] of least variance under a prior."""
    centers = prior.centers
    q = np.array([float(prior.masses @ (centers - 0.5) ** 2)])
    zeta = float(window_noise(epsilon, q)[1][0])
    choices: list[Mechanism] = [
        RPWithPrior(interval=(0.0, 1.0), zeta=zeta, epsilon=epsilon),
        TwoPoint(bounds=(0.0, 1.0), epsilon=epsilon),
    ]
    if epsilon < 6:
        choices.append(Unbiased.design(prior, epsilon, size=size))
    return min(choices, key=lambda mechanism: expected_risk(mechanism, prior))
