"""Coefficients with the distributions of their errors, R² and a test of fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from labeldp._values import Array
from labeldp.accounts.numbers import number
from labeldp.errors import ParameterError
from labeldp.inference.design import Design
from labeldp.inference.distribution import NormalLaplaceMixture, VarianceDistribution, variance_posteriors
from labeldp.inference.moments import Moments, PairProducts
from labeldp.inference.robust_variances import estimate_variances
from labeldp.inference.solution import Solution
from labeldp.inference.weighted_sums import MAX_ROW_WEIGHT
from labeldp.learning.fit_plan import Pair

STATED_LEVEL = 0.05
"""Intervals on a card miss with this probability."""

_NEAR_BOUND = 0.05
"""Fitted values lie at a bound if they are within this fraction of the bounds' width."""

_NEARLY_ALL = 0.9
"""A note is made if more than this fraction of fitted values lies at a bound."""

_MAX_VARIANCE_ERROR = 0.3
"""A variance is hidden by noise if its relative error is larger."""

_MAX_R_SQUARED_ERROR = 0.1
"""R² is hidden by noise if its standard error is larger."""

_CLIPPED = (
    "To save noise, slopes are from labels that were clipped {} from a rough fit. By noisy counts, this moves a "
    "label by about {} on average at most; standard errors include it."
)
_EDGE = "Nearly all fitted values lie at the bound {}: check that bounds and labels have the same unit."


class StatedError(NamedTuple):
    """The error of a coefficient as a card states it.

    Attributes
    ----------
    standard_deviation : float
    pvalue : float
        The probability of an error beyond the coefficient.
    half_width : float
        Of the interval of 95 %.
    """

    standard_deviation: float
    pvalue: float
    half_width: float

    def tail(self, distance: float) -> float:
        """Return the probability of an error beyond ± the coefficient, which is the only known distance."""
        return self.pvalue

    def quantile(self, alpha: float) -> float:
        """Return the distance that an error exceeds with probability ``alpha``, which must be 0.05."""
        if alpha != STATED_LEVEL:
            raise ParameterError(f"a card has intervals for alpha = {STATED_LEVEL} alone, got {alpha}")
        return self.half_width


@dataclass(frozen=True, slots=True)
class Estimates:
    """Coefficients and the distributions of their errors, in the label's unit.

    Attributes
    ----------
    coefficients : array
    distributions : list of NormalLaplaceMixture
    covariance : array
    noise_scales : array, coefficients × sums
        The scale of the noise of each sum in each coefficient.
    residual_variance : VarianceDistribution
        Of the mean variance of labels, in squared widths of the bounds.
    ordinary_errors : array
        Standard errors that least squares without privacy would have; NaN if noise would hide them.
    fit : dict
        R² as "rsquared", its approximate "standard_error", and the "pvalue" of a test whether squared predictions
        improve the model; without those that noise would hide.
    notes : list of str
        Sentences about clipped labels and about bounds.
    correlation : float, optional
        An upper limit of the correlation of labels of one person, where people are known.
    """

    coefficients: Array
    distributions: Sequence[NormalLaplaceMixture | StatedError]
    covariance: Array
    noise_scales: Array
    residual_variance: VarianceDistribution
    ordinary_errors: Array
    fit: dict[str, float]
    notes: list[str]
    correlation: float | None = None

    def law(self, direction: Array) -> NormalLaplaceMixture:
        """Return the distribution of the error of a weighted sum of coefficients."""
        noise = direction @ self.noise_scales
        sampling = max(float(direction @ self.covariance @ direction - 2 * noise @ noise), 0.0)
        variances = self.residual_variance.scaled(sampling / self.residual_variance.mean)
        return NormalLaplaceMixture(variances, np.abs(noise))

    def draws(self, number: int) -> Array:
        """Return errors of the coefficients, drawn from their known distribution with a fixed seed."""
        rng = np.random.default_rng(0)  # the distribution is public: nothing is protected by these numbers
        variance = self.residual_variance
        ratios = rng.choice(variance.values, number, p=variance.probabilities) / variance.mean
        sampling = self.covariance - 2 * self.noise_scales @ self.noise_scales.T
        eigenvalues, directions = np.linalg.eigh(sampling)
        root = directions * np.sqrt(np.maximum(eigenvalues, 0))
        normal = rng.normal(size=(number, len(root))) @ root.T
        noise = rng.laplace(size=(number, self.noise_scales.shape[1])) @ self.noise_scales.T
        return np.asarray(np.sqrt(ratios)[:, None] * normal + noise)


def stated_estimates(figures: Mapping[str, Any], fit: dict[str, float]) -> Estimates:
    """Return the estimates of a card's figures; covariances are not among them."""
    values, hidden = np.array(figures["params"]), np.full(len(figures["params"]), math.nan)
    half_widths = np.diff(figures["conf_int"]).ravel() / 2
    errors = np.column_stack([figures["bse"], figures["pvalues"], half_widths])
    return Estimates(
        coefficients=values,
        distributions=[StatedError(*row) for row in errors.tolist()],
        covariance=np.diag(hidden),
        noise_scales=np.diag(hidden),
        residual_variance=VarianceDistribution(hidden[:1], np.ones(1)),
        ordinary_errors=np.array(figures.get("bse_ols", hidden)),
        fit=fit,
        notes=[],
    )


def describe_errors(design: Design, moments: Moments, solution: Solution, bounds: Pair) -> Estimates:
    """Return coefficients and the distributions of their errors, for labels between bounds."""
    mean, *robust = variance_posteriors(*estimate_variances(design, moments, solution))
    distributions = error_distributions(design, moments, solution, mean, robust)
    correlation = None if moments.pairs is None else correlation_limit(moments.pairs, moments, solution, mean)
    is_sure = math.sqrt(mean.variance) <= _MAX_VARIANCE_ERROR * mean.mean
    weighted = np.ptp(design.row_weights) > 0
    ordinary = np.diag(solution.covariance) * (mean.mean if is_sure else math.nan)
    return Estimates(
        coefficients=solution.coefficients,
        distributions=distributions,
        covariance=covariance(solution, distributions),
        noise_scales=solution.noise_scales,
        residual_variance=mean,
        ordinary_errors=np.sqrt(ordinary),
        fit=(r_squared(solution, mean) if is_sure and not weighted else {}) | lack_of_fit(moments, solution, mean),
        notes=_notes(moments, solution, bounds),
        correlation=correlation,
    )


def error_distributions(
    design: Design,
    moments: Moments,
    solution: Solution,
    mean: VarianceDistribution,
    robust: Sequence[VarianceDistribution],
) -> list[NormalLaplaceMixture]:
    """Return the distribution of each coefficient's error, √(V Σh²) · normal plus the noise.

    Without a rough fit, V is at least the mean variance: if the true relation is not linear, too much is
    subtracted from squares around the middle of the bounds. Clipping is an error of the slopes.
    """
    if moments.window.rough_fit is None:
        robust = [variance if variance.mean >= mean.mean else mean for variance in robust]
    squared_weights = sampling_weights(moments, solution, mean)
    clipped = solution.clipped_shares @ solution.label_weights**2 / squared_weights
    clipping_variances = moments.window.clipped_total**2 * clipped * design.coefficient_array(0.0, 1.0)
    factors = zip(squared_weights.tolist(), clipping_variances.tolist(), strict=True)
    variances = [variance.scaled(*factor) for variance, factor in zip(robust, factors, strict=True)]
    return list(map(NormalLaplaceMixture, variances, np.abs(solution.noise_scales)))


def sampling_weights(moments: Moments, solution: Solution, mean: VarianceDistribution) -> Array:
    """Return the sampling variance of each coefficient, for labels of mean variance 1.

    Rows of one person are taken to be equally correlated. For a correlation ρ, the variance is 1 − ρ times that of
    independent rows and ρ times that of people whose rows differ by the model alone, and never below the first.
    """
    independent = solution.variance_shape @ solution.label_weights**2
    if moments.pairs is None:
        return np.asarray(independent)
    deviations = np.sqrt(solution.variance_shape)
    squares = map(moments.pairs.people.squared_totals, (solution.label_weights * deviations[:, None]).T)
    correlation = correlation_limit(moments.pairs, moments, solution, mean)
    return np.maximum(independent, (1 - correlation) * independent + correlation * np.array(list(squares)))


def correlation_limit(
    pairs: PairProducts, moments: Moments, solution: Solution, mean: VarianceDistribution
) -> float:
    """Return an upper limit of the correlation of labels of one person, by one standard deviation of its noise."""
    distances = solution.fitted + solution.misfit - moments.window.center
    fitted = pairs.people.pairs(distances) - pairs.people.pairs(solution.misfit)
    size = max(pairs.people.pairs(np.sqrt(solution.variance_shape)) * mean.mean, 1e-300)
    limit = (pairs.total - fitted + math.sqrt(2) * pairs.noise_scale) / size
    return min(max(limit, 0.0), 1.0)


def covariance(solution: Solution, distributions: Sequence[NormalLaplaceMixture]) -> Array:
    """Return the covariance of the coefficients: their variances, and correlations as the model has them."""
    sampling = solution.label_weights.T @ (solution.variance_shape[:, None] * solution.label_weights)
    noise = 2 * solution.noise_scales @ solution.noise_scales.T
    variances = np.array([distribution.variance for distribution in distributions]) - np.diag(noise)
    scale = np.sqrt(np.maximum(variances, 0) / np.diag(sampling))
    return np.asarray(sampling * scale * scale[:, None] + noise)


def r_squared(solution: Solution, residual: VarianceDistribution) -> dict[str, float]:
    """Return R² without the part that noise adds, and its approximate standard error; nothing if noise hides it.

    The error has two parts: the product of the noise with the fit, and the square of the noise.
    """
    fitted = solution.fitted - solution.fitted.mean()
    noise = solution.fitted_noise - solution.fitted_noise.mean(axis=0)
    rows = fitted.size
    signal = max(float(fitted @ fitted - 2 * (noise**2).sum()) / rows, 0.0)
    linear, products = np.linalg.norm(fitted @ noise) / rows, np.linalg.norm(noise.T @ noise) / rows
    total = signal + residual.mean
    signal_variance = 8 * linear**2 + 20 * products**2
    error = math.sqrt(residual.mean**2 * signal_variance + signal**2 * residual.variance) / total**2
    return {"rsquared": signal / total, "standard_error": error} if error <= _MAX_R_SQUARED_ERROR else {}


def lack_of_fit(moments: Moments, solution: Solution, residual: VarianceDistribution) -> dict[str, float]:
    """Return the p-value of RESET, that squared rough predictions improve the fit; nothing without its sum."""
    weights = moments.reset_weights
    if not weights.size or not solution.family.is_linear:
        return {}
    variance = residual.scaled(float((weights**2).sum()))
    distribution = NormalLaplaceMixture(variance, moments.noise_scales[-1:] * MAX_ROW_WEIGHT)
    return {"pvalue": distribution.tail(float(moments.label_sums[-1] - weights[:, 0] @ solution.fitted))}


def _notes(moments: Moments, solution: Solution, bounds: Pair) -> list[str]:
    """Return notes on clipped labels, and on fitted values that lie at a bound."""
    width = bounds[1] - bounds[0]
    window, fitted = moments.window, solution.fitted
    notes = []
    if window.clipped_total:
        average = width * window.clipped_total / fitted.size
        notes.append(_CLIPPED.format(number(width * window.half_width), number(average)))
    if not solution.family.is_linear:
        return notes
    for bound, distances in zip(bounds, (fitted, 1 - fitted), strict=True):
        if (distances < _NEAR_BOUND).mean() > _NEARLY_ALL:
            notes.append(_EDGE.format(number(bound)))
    return notes
