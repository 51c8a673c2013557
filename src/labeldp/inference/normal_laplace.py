"""The distribution of a normal error of uncertain variance plus Laplace noise of known scales."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from labeldp._values import Array
from labeldp.inference.variance_posterior import VarianceDistribution

_FREQUENCIES = 2048
"""The number of frequencies of the characteristic function."""

_SPAN = 40.0
"""The width of the distribution on the grid of frequencies, in standard deviations."""

_NEGLIGIBLE = 1e-9
"""Frequencies at which the characteristic function is smaller are left out."""

_MIN_VARIANCE = 1e-300
"""The variance of an error that is always 0, as of an effect on a probability of 1."""


class NormalLaplaceMixture:
    """The distribution of √V · normal + Σ scale · Laplace, computed from its characteristic function.

    Parameters
    ----------
    variances : VarianceDistribution
        The distribution of V.
    scales : array
        Scales of independent Laplace variables.

    Attributes
    ----------
    variance : float

    Examples
    --------
    >>> normal = NormalLaplaceMixture(VarianceDistribution(np.array([4.0]), np.array([1.0])), np.array([0.0]))
    >>> round(normal.quantile(0.05), 3), round(normal.tail(2.0), 4)
    (3.92, 0.3173)
    """

    def __init__(self, variances: VarianceDistribution, scales: Array) -> None:
        self.variance = max(variances.mean + float(2 * scales @ scales), _MIN_VARIANCE)
        step = math.pi / _SPAN
        frequencies = (np.arange(_FREQUENCIES) + 0.5) * step
        squares = frequencies**2 / self.variance
        laplace = 1 / np.prod(1 + np.outer(squares, scales**2), axis=1)
        largest = laplace * np.exp(-0.5 * squares * variances.values.min())
        last = np.count_nonzero(largest > _NEGLIGIBLE)
        normal = np.exp(-0.5 * np.outer(squares[:last], variances.values)) @ variances.probabilities
        self._frequencies = frequencies[:last]
        self._weights = laplace[:last] * normal / frequencies[:last] * (2 * step / math.pi)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance)

    def tail(self, distance: float) -> float:
        """Return the probability of an error beyond ± ``distance``."""
        deviations = abs(distance) / self.standard_deviation
        if deviations >= _SPAN / 2:
            return 0.0
        inside = float(self._weights @ np.sin(self._frequencies * deviations))
        return min(max(1 - inside, 0.0), 1.0)

    def quantile(self, alpha: float) -> float:
        """Return the distance that an error exceeds with probability ``alpha``."""
        unit = self.standard_deviation
        if not math.isfinite(unit):
            return unit
        return unit * float(brentq(lambda distance: self.tail(distance * unit) - alpha, 0, _SPAN / 2, xtol=1e-9))
