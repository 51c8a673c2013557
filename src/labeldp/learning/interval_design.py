"""The interval around a prediction in which labels of a round are randomised, and the slope that undoes clipping.

Noise falls with the square of an interval's width, but labels outside it are clipped to its ends. The design tries
intervals of several widths and takes the one from which a learner is expected to learn most. They are symmetric:
even if it were known exactly which side has the longer tail, that would not pay (benchmarks/ablation.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labeldp._values import Array
from labeldp.learning.bayes import explained_risk
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import UnitNoise

_CELLS = 64
"""Values of a distribution of residuals, and bins of a prior on [0, 1]."""

_BIAS = 0.5
"""How much of the variance that clipping hides is lost to a learner; the rest its slope brings back."""

_HALF_WIDTHS = 0.1 * np.sqrt(2.0) ** np.arange(13)
"""Widths that are tried on either side, from a tenth of a standard deviation of the residuals to more than six."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """A symmetric distribution of labels minus their predictions.

    Attributes
    ----------
    values, masses : arrays
        Increasing values and their probabilities.
    """

    values: Array
    masses: Array

    @classmethod
    def uniform(cls, width: float) -> Residuals:
        """Return residuals of which nothing is known but that they lie within half a width."""
        return cls(width * np.linspace(-0.5, 0.5, _CELLS), np.full(_CELLS, 1 / _CELLS))

    @classmethod
    def of_variance(cls, variance: float, width: float) -> Residuals:
        """Return residuals of half a normal and half a Laplace distribution, none beyond the width."""
        limit = min(width, 6 * math.sqrt(variance))
        edges = limit * np.sinh(3 * np.linspace(-1, 1, _CELLS + 1)) / math.sinh(3)
        values = (edges[1:] + edges[:-1]) / 2
        rate = math.sqrt(2 / variance)
        normal = np.exp(-0.5 * values**2 / variance) / math.sqrt(2 * math.pi * variance)
        masses = (0.5 * normal + 0.25 * rate * np.exp(-np.abs(values) * rate)) * np.diff(edges)
        return cls(values, masses / masses.sum())


@dataclass(frozen=True, slots=True)
class Interval:
    """Where labels, minus their prediction, are distinguished in a round.

    The unbiased label of the clipped residual c is mapped to slope · c, the best multiple for the residual itself
    under what is known of it: that takes out most of the bias of clipping.

    Attributes
    ----------
    half_width, slope : float
    hidden : float
        Variance of the residual around slope · c: what clipping hides.
    units, masses : arrays
        Clipped residuals, from 0 to 1 in the interval, and their probabilities.
    """

    half_width: float
    slope: float
    hidden: float
    units: Array
    masses: Array

    @classmethod
    def of(cls, residuals: Residuals, half_width: float) -> Interval:
        """Return an interval with its slope."""
        values, masses = residuals.values, residuals.masses
        clipped = np.clip(values, -half_width, half_width)
        slope = float(masses @ (values * clipped) / (masses @ clipped**2))
        hidden = float(masses @ (values - slope * clipped) ** 2)
        return cls(half_width, slope, hidden, 0.5 + clipped / (2 * half_width), masses)

    def unit_prior(self) -> Histogram:
        """Return clipped residuals as a prior on [0, 1]."""
        heights, nodes = np.histogram(self.units, _CELLS, (0.0, 1.0), weights=self.masses)
        return Histogram.of(nodes, heights)


def design_interval(
    residuals: Residuals, unit_noise: UnitNoise, risk: Callable[[float, float], float]
) -> Interval:
    """Return the interval of least risk.

    Parameters
    ----------
    residuals : Residuals
    unit_noise : function
        Variance of the unbiased label on [0, 1] of the mechanism that will be used.
    risk : function
        Expected error of a learner, by the variances of the noise in a label and of what clipping hides of it.
    """
    deviation = math.sqrt(residuals.masses @ residuals.values**2)
    widths = np.minimum(_HALF_WIDTHS * deviation, residuals.values[-1])
    intervals = [Interval.of(residuals, half_width) for half_width in widths.tolist()]
    squares = np.array([one.masses @ (one.units - 0.5) ** 2 for one in intervals])  # distances from the middle
    scales = np.array([2 * one.half_width * one.slope for one in intervals])
    noises = scales**2 * unit_noise(squares)
    risks = [risk(noise, one.hidden) for noise, one in zip(noises.tolist(), intervals, strict=True)]
    return intervals[int(np.argmin(risks))]


def learner_risk(noise: float, hidden: float, *, spectrum: Array, signal: float, rest: float, rows: int) -> float:
    """Return the squared error that a linear learner is expected to have because of noise and clipping.

    Parameters
    ----------
    noise, hidden : float
        Variances of the noise in a label, and of what clipping hides of it.
    spectrum : array
        Eigenvalues of the public features.
    signal, rest : float
        Guessed variance that the features explain, and what they do not.
    rows : int
    """
    unlearnt, strength = explained_risk(spectrum, signal, (noise + rest) / rows), float(spectrum.sum()) * signal
    return unlearnt + _BIAS * hidden * (1 - unlearnt / strength if strength > 0 else 1.0)
