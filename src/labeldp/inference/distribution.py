"""Distributions of estimates: a normal error of uncertain variance, plus Laplace noise of known scales."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labeldp._values import Array

_FREQUENCIES = 2048
"""The number of frequencies of the characteristic function."""

_SPAN = 40.0
"""The width of the distribution on the grid of frequencies, in standard deviations."""

_NEGLIGIBLE = 1e-9
"""Frequencies at which the characteristic function is smaller are left out."""

_LARGEST_VARIANCE = 0.25
"""The largest variance of labels between 0 and 1."""

_MEAN_DEVIATION = 0.3
"""Prior mean of the standard deviation of labels between 0 and 1; the prior is exponential."""

_GRID = 200
"""Points of a grid of log variances."""

_ZOOMS = 4
"""The number of grids, each over the probable part of the one before."""

_IMPROBABLE = 14
"""Log densities this far below the largest are outside the next grid."""


@dataclass(frozen=True, slots=True)
class VarianceDistribution:
    """Possible variances with their probabilities.

    Attributes
    ----------
    values, probabilities : arrays
    """

    values: Array
    probabilities: Array

    @property
    def mean(self) -> float:
        """The posterior mean."""
        return float(self.values @ self.probabilities)

    @property
    def variance(self) -> float:
        """The posterior variance of the variance."""
        return float((self.values - self.mean) ** 2 @ self.probabilities)

    def scaled(self, factor: float, shift: float = 0.0) -> VarianceDistribution:
        """Return the distribution of (variance + shift) · factor."""
        return VarianceDistribution((self.values + shift) * factor, self.probabilities)

    @classmethod
    def of_logarithms(cls, log_density: Callable[[Array], Array], low: float, high: float) -> VarianceDistribution:
        """Return the distribution for a density of the variance's logarithm between two limits."""
        for _ in range(_ZOOMS):
            logs, step = np.linspace(low, high, _GRID, retstep=True)
            density = log_density(logs)
            probable = logs[density > density.max() - _IMPROBABLE]
            low = max(low, float(probable[0] - step))
            high = min(high, float(probable[-1] + step))
        return cls(np.exp(logs)[::4], _normalized(density[::4]))


@dataclass(frozen=True, slots=True)
class VarianceEstimate:
    """A noisy estimate of a variance.

    Attributes
    ----------
    value : float
    noise_scale : float
        Scale of the Laplace noise.
    sampling_error : float
        Scale of the sampling error, as a fraction of the true variance.
    heterogeneity : float
        Prior scale of the logarithm of the true variance over the mean variance. The density of the standard
        deviation is a t distribution with 4 degrees of freedom in this logarithm.
    """

    value: float
    noise_scale: float
    sampling_error: float = 0.0
    heterogeneity: float = 0.4

    def log_likelihood(self, variances: Array) -> Array:
        """Return the log likelihood of each true variance, up to a constant."""
        scales = np.hypot(self.noise_scale, self.sampling_error * variances)
        return -np.abs(variances - self.value) / scales - np.log(scales)

    def prior(self, logs: Array, mean_logs: Array) -> Array:
        """Return the prior density of the true variance's logarithm, a column for each log mean variance."""
        ratios = logs[:, None] - mean_logs
        return np.exp(ratios / 2) * (1 + (ratios / self.heterogeneity) ** 2 / 4) ** -2.5

    def log_evidence(self, mean_logs: Array, low: float, high: float) -> Array:
        """Return the log likelihood of each log mean variance, with the true variance integrated out."""
        logs = np.linspace(low, high, _GRID)
        prior = self.prior(logs, mean_logs)
        likelihood = self.log_likelihood(np.exp(logs))
        return np.asarray(np.log(np.exp(likelihood - likelihood.max()) @ prior / prior.sum(axis=0)))

    def posterior(self, mean_logs: Array, weights: Array, low: float, high: float) -> VarianceDistribution:
        """Return the posterior of the true variance, where log mean variances have these probabilities."""

        def log_density(logs: Array) -> Array:
            return np.log(self.prior(logs, mean_logs) @ weights) + self.log_likelihood(np.exp(logs))

        return VarianceDistribution.of_logarithms(log_density, low, high)

    def mean_posterior(self) -> VarianceDistribution:
        """Return the posterior of the mean variance, by this estimate alone."""
        highest = math.log(_LARGEST_VARIANCE)
        lowest = min(math.log(max(self.value, 0.0) + self.noise_scale), highest) - 12

        def log_density(logs: Array) -> Array:
            deviations = np.exp(logs / 2)
            return logs / 2 - deviations / _MEAN_DEVIATION + self.log_likelihood(deviations**2)

        return VarianceDistribution.of_logarithms(log_density, lowest, highest)


def variance_posteriors(mean: VarianceEstimate, *robust: VarianceEstimate) -> list[VarianceDistribution]:
    """Return the posterior of the mean variance, then of each coefficient's own variance.

    Every estimate is evidence of the mean variance, and so of the variances of other coefficients.

    Parameters
    ----------
    mean : VarianceEstimate
        Of the mean variance of a label, in squared widths of the bounds.
    *robust : VarianceEstimate
        For each coefficient, of the mean with the squared weights of labels in the coefficient.
    """
    mean_posterior = mean.mean_posterior()
    mean_logs = np.log(mean_posterior.values)
    low = float(mean_logs.min()) - 2
    high = min(float(mean_logs.max()) + 4, math.log(_LARGEST_VARIANCE))
    evidence = [estimate.log_evidence(mean_logs, low, high) for estimate in robust]
    total = np.log(mean_posterior.probabilities) + sum(evidence)
    posteriors = [VarianceDistribution(mean_posterior.values, _normalized(total))]
    for estimate, contribution in zip(robust, evidence, strict=True):
        posteriors.append(estimate.posterior(mean_logs, _normalized(total - contribution), low, high))
    return posteriors


def _normalized(log_weights: Array) -> Array:
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


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
        self.variance = variances.mean + float(2 * scales @ scales)
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
        low, high = 0.0, _SPAN / 2
        for _ in range(30):
            middle = (low + high) / 2
            if self.tail(middle * self.standard_deviation) > alpha:
                low = middle
            else:
                high = middle
        return high * self.standard_deviation
