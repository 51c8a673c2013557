"""Posterior distributions of variances, from noisy estimates of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from labeldp._values import Array

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

HETEROGENEITY = 0.4
"""Prior scale of the logarithm of a coefficient's variance over the mean variance, without misfit."""


class VarianceDistribution(NamedTuple):
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
        return cls(np.exp(logs)[::4], softmax(density[::4]))


class VarianceEstimate(NamedTuple):
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
    heterogeneity: float = HETEROGENEITY

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
    posteriors = [VarianceDistribution(mean_posterior.values, softmax(total))]
    for estimate, contribution in zip(robust, evidence, strict=True):
        posteriors.append(estimate.posterior(mean_logs, softmax(total - contribution), low, high))
    return posteriors
