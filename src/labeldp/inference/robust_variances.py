"""Sampling variances that are robust to unequal variances, to misfit and to several rows of a person.

Errors of labels are e, weights of labels in a coefficient h, weights of squares b. The variance function at the
fitted means is v, with a mean of 1. Sums of squares are noisy; everything else here is public.
"""

from __future__ import annotations

import math

import numpy as np

from labeldp._values import Array, Interval
from labeldp.inference.design import Design
from labeldp.inference.families import POISSON, poisson_excess
from labeldp.inference.moments import Moments
from labeldp.inference.solution import Solution
from labeldp.inference.square_weights import misfit_penalty
from labeldp.inference.variance_posterior import HETEROGENEITY, VarianceEstimate

_MIN_SHAPE = 1e-3
"""The smallest weighted mean of the variance function, as a fraction of its mean."""


def estimate_variances(design: Design, moments: Moments, solution: Solution) -> list[VarianceEstimate]:
    """Return estimates of the variance of labels around the model: the mean, then with each coefficient's weights.

    An estimate is Σ b (squares − fitted squares) / Σ b v times a correction for leverage. Those of coefficients
    are corrected for rows that are cut off.
    """
    weights = moments.weights.squares
    totals = np.maximum(weights.sum(axis=0), 1)
    correction = leverage_correction(design.leverage @ weights / totals)
    correction /= np.maximum(solution.variance_shape @ weights / totals, _MIN_SHAPE)
    values = (moments.square_sums - fitted_squares(moments, solution)) / totals * correction
    scales = moments.square_noise_scale / totals * correction
    scales = np.hypot(scales, fitted_squares_error(moments, solution))
    values[1:], scales[1:] = extrapolate_to_all_rows(design, moments, values, scales)
    values[1:] += hidden_squares(moments, solution, values[1:])
    sampling_errors = np.sqrt(2 * (weights**2).sum(axis=0)) / totals  # for errors with a kurtosis of 5
    columns = np.column_stack([values, scales, sampling_errors, heterogeneity(moments)])
    return [VarianceEstimate(*row) for row in columns.tolist()]


def leverage_correction(leverage: Array) -> Array:
    """Return factors for errors that are smaller around a fitted line than around the true one.

    The first is 1/(1 − leverage), for the mean over rows. Others are its squares, as in HC3: with few rows, robust
    variances are too small otherwise.
    """
    correction = 1 / (1 - leverage)
    correction[1:] **= 2
    return correction


def fitted_squares(moments: Moments, solution: Solution) -> Array:
    """Return the sums of squares around their center, less those around the fitted line.

    Labels differ from the means of all columns by chance alone. So these means decide the sums around the center,
    and the misfit of fewer columns is added to the sums around the line. The part that noise adds to a squared
    distance is left out.
    """
    distance = solution.means - moments.window.center
    squares = distance**2 - 2 * (solution.means_noise**2).sum(axis=1)
    misfit = solution.misfit**2 - 2 * (solution.misfit_noise**2).sum(axis=1)
    linear = moments.window.width / moments.window.square_factor * (distance @ moments.weights.linear)
    return np.asarray((squares - misfit) @ moments.weights.squares - linear)


def fitted_squares_error(moments: Moments, solution: Solution) -> float:
    """Return the error of a mean of fitted squares that comes from the noise of fitted values."""
    noise = solution.means_noise
    linear = (solution.means - moments.window.center) @ noise - solution.misfit @ solution.misfit_noise
    return 2 * math.hypot(np.linalg.norm(noise.T @ noise), np.linalg.norm(linear)) / len(noise)


def extrapolate_to_all_rows(design: Design, moments: Moments, values: Array, scales: Array) -> tuple[Array, Array]:
    """Return the estimates of coefficients and their noise scales as if no row were cut off.

    The model is that variances grow with the squares of whitened columns. The slopes of this growth are estimated
    from the differences between the coefficients' estimates and the mean over all rows.
    """
    visible = _mean_shapes(design, moments.weights.squares[:, 1:])
    missing = _mean_shapes(design, moments.squares.profile) - visible
    prior = (HETEROGENEITY * max(values[0], scales[0])) ** 2
    noise = np.diag(2 * scales[1:] ** 2 + 1e-9 * prior) + 2 * scales[0] ** 2  # never singular
    gain = prior * missing @ visible.T @ np.linalg.inv(prior * visible @ visible.T + noise)
    added = ((gain @ noise) * gain).sum(axis=1) / 2
    return values[1:] + gain @ (values[1:] - values[0]), np.sqrt(scales[1:] ** 2 + added)


def _mean_shapes(design: Design, weights: Array) -> Array:
    """Return weighted means of the standardised squares of whitened columns, for each column of weights."""
    squares = design.whitened**2
    shapes = (squares - squares.mean(axis=0)) / squares.std(axis=0).clip(1e-9)
    return np.asarray(weights.T @ shapes / weights.sum(axis=0).clip(1e-300)[:, None])


def hidden_squares(moments: Moments, solution: Solution, values: Array) -> Array:
    """Return the correction for rows that are cut off and whose fitted values are outside the bounds.

    Their labels may lie anywhere between the bounds. For other rows that are cut off, squares are taken to be as
    large as for rows that are visible.
    """
    profile = moments.squares.scale * moments.squares.profile
    outside = np.abs(solution.fitted - 0.5) > 0.5
    hidden = np.maximum(profile[outside] - moments.weights.squares[outside, 1:], 0)
    squares = (solution.fitted[outside, None] - 0.5) ** 2 + 1 / 12
    excess = np.maximum(squares - np.maximum(values, 0), 0)
    return np.asarray((hidden * excess).sum(axis=0) / profile.sum(axis=0))


def heterogeneity(moments: Moments) -> Array:
    """Return the prior scale of the log ratio of variances: of the mean, then of each coefficient to it."""
    profile = moments.squares.profile
    ratios = misfit_penalty(moments.design, moments.window) @ profile / profile.sum(axis=0)
    return np.asarray(np.hypot(HETEROGENEITY, np.log(np.append(1.0, ratios)) / 2))


def correlation_limit(moments: Moments, solution: Solution, variance: float) -> float | None:
    """Return an upper limit of the correlation of labels of one person, by one standard deviation of its noise.

    None if people are not known. The mean variance of labels is ``variance``.
    """
    if moments.pairs is None:
        return None
    people, total, noise_scale = moments.pairs
    fitted = people.pairs(solution.means - moments.window.center) - people.pairs(solution.misfit)
    size = max(people.pairs(np.sqrt(solution.variance_shape)) * variance, 1e-300)
    return min(max((total - fitted + math.sqrt(2) * noise_scale) / size, 0.0), 1.0)


def sampling_weights(moments: Moments, solution: Solution, correlation: float | None) -> Array:
    """Return Σ h² v + 2ρ Σ (h√v)ᵢ(h√v)ₖ, the sampling variance of each coefficient, for labels of mean variance 1.

    The second sum is over pairs of rows of one person, which are taken to have the correlation ρ; it counts where
    it is positive.
    """
    weights = np.asarray(solution.variance_shape @ solution.label_weights**2)
    if moments.pairs is not None and correlation is not None:
        scaled = solution.label_weights * np.sqrt(solution.variance_shape)[:, None]
        products = np.array([moments.pairs.people.pairs(column) for column in scaled.T])
        weights += 2 * correlation * np.maximum(products, 0)
    return weights


def sampling_covariance(solution: Solution, variances: Array) -> Array:
    """Return the covariance of coefficients with these variances, and with the correlations of Hᵀ diag(v) H."""
    model = solution.label_weights.T @ (solution.variance_shape[:, None] * solution.label_weights)
    scale = np.sqrt(variances / np.diag(model))
    return model * scale * scale[:, None]


def clipping_variances(moments: Moments, solution: Solution, bounds: Interval) -> Array:
    """Return T² Σ p h²: the variance of each slope by the total T that clipping cuts off.

    The shares p of rows are equal, and for counts those of Poisson variables with the fitted means.
    """
    shares = np.ones_like(solution.fitted)
    if solution.family == POISSON:
        excess = poisson_excess(bounds[1] * solution.fitted, bounds[1] * moments.window.width)
        shares = np.maximum(excess, 1e-300)
    variances = moments.window.clipped_total**2 * (shares @ solution.label_weights**2) / shares.sum()
    variances[0] = 0  # labels of the intercept's sum are not clipped
    return np.asarray(variances)
