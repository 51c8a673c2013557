"""Coefficients with the distributions of their errors."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from labeldp._values import Array, Interval
from labeldp.errors import ParameterError
from labeldp.inference.design import Design
from labeldp.inference.goodness_of_fit import lack_of_fit, r_squared
from labeldp.inference.moments import Moments
from labeldp.inference.normal_laplace import NormalLaplaceMixture
from labeldp.inference.robust_variances import (
    clipping_variances,
    correlation_limit,
    estimate_variances,
    sampling_covariance,
    sampling_weights,
)
from labeldp.inference.solution import Solution
from labeldp.inference.variance_posterior import VarianceDistribution, variance_posteriors

STATED_LEVEL = 0.05
"""Intervals on a card miss with this probability."""

_MAX_VARIANCE_ERROR = 0.3
"""A variance is hidden by noise if its relative error is larger."""


class StatedEstimates(NamedTuple):
    """Coefficients and their errors as a card states them.

    Attributes
    ----------
    fit : dict
        As in `Estimates`.
    coefficients, standard_errors, pvalues : array
    ends : array, coefficients × 2
        Intervals of 95 %.
    ordinary_errors : array
    """

    fit: dict[str, float]
    coefficients: Array
    standard_errors: Array
    pvalues: Array
    ends: Array
    ordinary_errors: Array

    def intervals(self, alpha: float) -> Array:
        """Return intervals that miss with probability ``alpha``, which must be 0.05."""
        if parse_level(alpha) != STATED_LEVEL:
            raise ParameterError(f"a card has intervals for alpha = {STATED_LEVEL} alone, got {alpha}")
        return self.ends


class Estimates(NamedTuple):
    """Coefficients and the distributions of their errors, in the label's unit.

    Attributes
    ----------
    coefficients : array
    laws : list of NormalLaplaceMixture
        Of the error of each coefficient.
    ordinary_errors : array
        Standard errors that least squares without privacy would have; NaN if noise would hide them.
    fit : dict
        R² as "rsquared", its approximate "standard_error", and the "pvalue" of a test whether squared predictions
        improve the model; without those that noise would hide.
    sampling : array, coefficients × coefficients
        The covariance of the errors without the noise.
    noise_scales : array, coefficients × sums
        The scale of the noise of each sum in each coefficient.
    residual_variance : VarianceDistribution
        Of the mean variance of labels, in squared widths of the bounds.
    correlation : float, optional
        An upper limit of the correlation of labels of one person, where people are known.
    """

    coefficients: Array
    laws: list[NormalLaplaceMixture]
    ordinary_errors: Array
    fit: dict[str, float]
    sampling: Array
    noise_scales: Array
    residual_variance: VarianceDistribution
    correlation: float | None = None

    @property
    def standard_errors(self) -> Array:
        """Standard deviations of the errors."""
        return np.array([law.standard_deviation for law in self.laws])

    @property
    def pvalues(self) -> Array:
        """The probability of errors beyond ± the coefficients."""
        return np.array(list(map(NormalLaplaceMixture.tail, self.laws, self.coefficients.tolist())))

    def intervals(self, alpha: float) -> Array:
        """Return intervals that miss with probability ``alpha``, coefficients × 2."""
        reach = np.array([law.quantile(parse_level(alpha)) for law in self.laws])
        return self.coefficients[:, None] + np.outer(reach, [-1, 1])

    @property
    def covariance(self) -> Array:
        """The covariance of the errors."""
        return self.sampling + 2 * self.noise_scales @ self.noise_scales.T

    def law(self, direction: Array) -> NormalLaplaceMixture:
        """Return the distribution of the error of a weighted sum of coefficients."""
        sampling = max(float(direction @ self.sampling @ direction), 0.0)
        variances = self.residual_variance.scaled(sampling / self.residual_variance.mean)
        return NormalLaplaceMixture(variances, np.abs(direction @ self.noise_scales))

    def draws(self, number: int) -> Array:
        """Return errors of the coefficients, drawn from their known distribution with a fixed seed."""
        rng = np.random.default_rng(0)  # the distribution is public: nothing is protected by these numbers
        variance = self.residual_variance
        ratios = rng.choice(variance.values, number, p=variance.probabilities) / variance.mean
        zeros = np.zeros(len(self.sampling))
        normal = rng.multivariate_normal(zeros, self.sampling, number, check_valid="ignore", method="eigh")
        noise = rng.laplace(size=(number, self.noise_scales.shape[1])) @ self.noise_scales.T
        return np.sqrt(ratios)[:, None] * normal + noise


def describe_errors(design: Design, moments: Moments, solution: Solution, bounds: Interval) -> Estimates:
    """Return coefficients and the distributions of their errors, for labels between bounds."""
    mean, *robust = variance_posteriors(*estimate_variances(design, moments, solution))
    correlation = correlation_limit(moments, solution, mean.mean)
    if moments.window.rough_fit is None:
        # the line may be wrong, and then too much is subtracted from squares around the middle of the bounds
        robust = [variance if variance.mean >= mean.mean else mean for variance in robust]
    weights = sampling_weights(moments, solution, correlation)
    shifts = clipping_variances(moments, solution, bounds) / weights
    variances = list(map(VarianceDistribution.scaled, robust, weights.tolist(), shifts.tolist()))
    is_sure = math.sqrt(mean.variance) <= _MAX_VARIANCE_ERROR * mean.mean
    is_weighted = np.ptp(design.row_weights) > 0
    fit = r_squared(solution, mean) if is_sure and not is_weighted else {}
    return Estimates(
        coefficients=solution.coefficients,
        laws=list(map(NormalLaplaceMixture, variances, np.abs(solution.noise_scales))),
        ordinary_errors=np.sqrt(solution.ordinary_variances * (mean.mean if is_sure else math.nan)),
        fit=fit | lack_of_fit(moments, solution, mean),
        sampling=sampling_covariance(solution, np.array([variance.mean for variance in variances])),
        noise_scales=solution.noise_scales,
        residual_variance=mean,
        correlation=correlation,
    )


def parse_level(alpha: float) -> float:
    """Return the probability with which intervals miss."""
    if not 1e-6 <= alpha <= 0.99:
        raise ParameterError(f"alpha must lie between 1e-6 and 0.99, such as 0.05, got {alpha}")
    return alpha
