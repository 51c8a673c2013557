"""Labels released in rounds: later rows over a narrow interval around what earlier rows predict.

Noise falls with the square of the interval's width, so a prediction made from earlier private labels, and
free to use, buys accuracy. Each row is released once, in one round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labeldp._values import Array
from labeldp.errors import ParameterError
from labeldp.learning.bayes import explained_risk
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import UnitNoise

_BIAS = 0.5
"""How much of the variance that clipping hides is lost to a learner; the rest its slope brings back."""

_LOWER = (0.0, 0.005, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
_UPPER = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.995, 1.0)
_UNIT_BINS = 64


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
    noise : function
        Variance of the unbiased label on [0, 1] of the mechanism that will be used.
    """

    spectrum: Array
    signal: float
    rest: float
    rows: int
    noise: UnitNoise


@dataclass(frozen=True, slots=True)
class Interval:
    """Where labels, minus their prediction, are distinguished in a round.

    The unbiased label of the clipped residual c is mapped to shift + slope · c, the best straight line for
    the residual itself under what is known of it: that takes out most of the bias of clipping.
    """

    low: float
    high: float
    shift: float
    slope: float
    hidden: float
    """Variance of the residual around that line: what clipping hides."""
    unit_prior: Histogram
    risk: float


def design_interval(values: Array, masses: Array, situation: Situation) -> Interval:
    """Return the interval of least expected risk of a learner.

    Parameters
    ----------
    values, masses : arrays
        What is known of the residuals: increasing values and their probabilities.
    situation : Situation
    """
    total = np.cumsum(masses)
    lows = np.unique([values[0], *[_quantile(values, total, p) for p in _LOWER[1:]]])
    highs = np.unique([values[-1], *[_quantile(values, total, p) for p in _UPPER[:-1]]])
    span, mean = values[-1] - values[0], float(masses @ values)
    low, high = np.repeat(lows, highs.size), np.tile(highs, lows.size)
    low, high = (ends[high - low >= 1e-6 * span] for ends in (low, high))
    clipped = np.clip(values, low[:, None], high[:, None])  # a row for each interval
    centred = clipped - (clipped @ masses)[:, None]
    variance = centred**2 @ masses
    if not (variance >= 1e-12 * span**2).any():
        raise ParameterError("the bounds leave no interval in which labels can be distinguished")
    slope = centred @ (masses * (values - mean)) / np.maximum(variance, 1e-12 * span**2)
    shift = mean - slope * (clipped @ masses)
    hidden = (values - shift[:, None] - slope[:, None] * clipped) ** 2 @ masses
    unit = (clipped - low[:, None]) / (high - low)[:, None]
    noise = situation.noise((unit - 0.5) ** 2 @ masses)
    level = (noise * (slope * (high - low)) ** 2 + situation.rest) / situation.rows
    lost = np.array([explained_risk(situation.spectrum, situation.signal, each) for each in level.tolist()])
    strength = float(situation.spectrum.sum()) * situation.signal
    risk = lost + _BIAS * hidden * (1 - lost / strength if strength > 0 else 1.0)
    k = int(np.argmin(np.where(variance >= 1e-12 * span**2, risk, np.inf)))
    place = np.minimum((unit[k] * _UNIT_BINS).astype(np.int64), _UNIT_BINS - 1)
    heights = np.bincount(place, masses, _UNIT_BINS).astype(np.float64)
    prior = Histogram.of(np.linspace(0.0, 1.0, _UNIT_BINS + 1), heights)
    ends = float(low[k]), float(high[k])
    return Interval(*ends, float(shift[k]), float(slope[k]), float(hidden[k]), prior, float(risk[k]))


def _quantile(values: Array, total: Array, p: float) -> float:
    return float(values[min(int(np.searchsorted(total, p)), values.size - 1)])
