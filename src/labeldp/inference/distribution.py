"""The distribution of a noisy estimate: a normal error of uncertain variance plus Laplace noise of known scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from labeldp._values import Array

_POINTS, _REACH = 2048, 40.0
"""Frequencies of the characteristic function, and how many standard deviations the distribution may span."""

_NEGLIGIBLE = 1e-9
"""Frequencies at which the characteristic function is smaller are left out."""

_LARGEST_VARIANCE, _MEAN_DEVIATION = 0.25, 0.3
"""Of labels between 0 and 1: the largest variance, and the mean of their standard deviation, which follows an
exponential law before anything is known."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A noisy estimate of a variance.

    Attributes
    ----------
    value : float
    scale : float
        Scale of the Laplace noise.
    chance : float
        Scale of the sampling error, as a fraction of the true variance.
    unequal : float
        How far unequal variances may move it from the mean variance, before squares are looked at: the density of
        the standard deviation is that of a t distribution with 4 degrees of freedom and this scale, at the
        logarithm of the ratio of both variances.
    """

    value: float
    scale: float
    chance: float = 0.0
    unequal: float = 0.4

    def log_likelihood(self, variances: Array) -> Array:
        """Return how likely the estimate is for each true variance, as a logarithm and up to a factor."""
        scales = np.hypot(self.scale, self.chance * variances)
        return -np.abs(variances - self.value) / scales - np.log(scales)

    def prior(self, logs: Array, centers: Array) -> Array:
        """Return the density of the true variance's logarithm, in rows, for mean variances with logarithms."""
        ratios = logs[:, None] - centers
        return np.exp(ratios / 2) * (1 + (ratios / self.unequal) ** 2 / 4) ** -2.5

    def evidence(self, centers: Array, low: float, high: float) -> Array:
        """Return how likely the estimate is for mean variances with these logarithms, as a logarithm."""
        grid = np.linspace(low, high, 200)
        prior, likelihood = self.prior(grid, centers), self.log_likelihood(np.exp(grid))
        return np.asarray(np.log(np.exp(likelihood - likelihood.max()) @ prior / prior.sum(axis=0)))

    def posterior(self, centers: Array, weights: Array, low: float, high: float) -> tuple[Array, Array]:
        """Return possible variances and probabilities, where the mean variance has these probabilities."""

        def log_density(log: Array) -> Array:
            return np.log(self.prior(log, centers) @ weights) + self.log_likelihood(np.exp(log))

        return _posterior(log_density, low, high)


def possible_variances(mean: Spread, own: Sequence[Spread]) -> list[tuple[Array, Array]]:
    """Return possible variances of a label, with probabilities: on average, then as each coefficient weights rows.

    Every estimate says something about the mean variance, and so about the variances in other coefficients.

    Parameters
    ----------
    mean : Spread
        The mean variance of a label, in squared widths of the bounds.
    own : sequence of Spread
        For each coefficient, the mean with the squared weights that labels have in it; none if variances count as
        equal.
    """
    top = math.log(_LARGEST_VARIANCE)
    bottom = min(math.log(max(mean.value, 0.0) + mean.scale), top) - 12

    def mean_density(log: Array) -> Array:
        deviations = np.exp(log / 2)
        return log / 2 - deviations / _MEAN_DEVIATION + mean.log_likelihood(deviations**2)

    variances, probabilities = _posterior(mean_density, bottom, top)
    centers = np.log(variances)
    limits = float(centers.min()) - 2, min(float(centers.max()) + 4, top)
    evidence = [spread.evidence(centers, *limits) for spread in own]

    logs = np.log(probabilities) + sum(evidence)
    pairs = zip(own, evidence, strict=True)
    own_laws = [spread.posterior(centers, _normalised(logs - part), *limits) for spread, part in pairs]
    return [(variances, _normalised(logs)), *own_laws]


def _normalised(logs: Array) -> Array:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _posterior(log_density: Callable[[Array], Array], low: float, high: float) -> tuple[Array, Array]:
    """Return variances and probabilities for a density of their logarithms, on a grid that closes in on it."""
    for _ in range(4):
        grid, step = np.linspace(low, high, 200, retstep=True)
        density = log_density(grid)
        probable = grid[density > density.max() - 14]
        low, high = max(low, float(probable[0] - step)), min(high, float(probable[-1] + step))
    return np.exp(grid)[::4], _normalised(density[::4])


class EstimateLaw:
    """The distribution of √V · normal + Σ scale · Laplace, computed from its characteristic function.

    Parameters
    ----------
    variances, weights : arrays
        Possible values of V, and their probabilities.
    scales : array
        Scales of independent Laplace variables.

    Examples
    --------
    >>> normal = EstimateLaw(np.array([4.0]), np.array([1.0]), np.array([0.0]))
    >>> round(normal.quantile(0.05), 3), round(normal.tail(2.0), 4)
    (3.92, 0.3173)
    """

    def __init__(self, variances: Array, weights: Array, scales: Array) -> None:
        self.variance = float(variances @ weights + 2 * scales @ scales)
        self.deviation = math.sqrt(self.variance)
        step = math.pi / _REACH
        t = (np.arange(_POINTS) + 0.5) * step
        squares = t * t / self.variance
        noise = 1 / np.prod(1 + np.outer(squares, scales**2), axis=1)
        last = np.count_nonzero(noise * np.exp(-0.5 * squares * variances.min()) > _NEGLIGIBLE)
        values = noise[:last] * (np.exp(-0.5 * np.outer(squares[:last], variances)) @ weights)
        self._t, self._weights = t[:last], values / t[:last] * (2 * step / math.pi)

    def tail(self, distance: float) -> float:
        """Return the probability of an error beyond ± ``distance``."""
        x = abs(distance) / self.deviation
        inside = float(self._weights @ np.sin(self._t * x)) if x < _REACH / 2 else 1.0
        return min(max(1 - inside, 0.0), 1.0)

    def quantile(self, alpha: float) -> float:
        """Return the distance that an error exceeds with probability ``alpha``."""
        low, high = 0.0, _REACH / 2
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if self.tail(middle * self.deviation) > alpha else (low, middle)
        return high * self.deviation
