"""Sampling variances that are robust to unequal variances and to misfit, from noisy sums of squares."""

from __future__ import annotations

import math

import numpy as np

from labeldp._values import Array
from labeldp.inference.design import Design
from labeldp.inference.distribution import VarianceEstimate
from labeldp.inference.moments import Moments
from labeldp.inference.solution import Solution
from labeldp.inference.square_weights import HETEROGENEITY

_MIN_SHAPE = 1e-3
"""The smallest weighted mean of the variance function, as a fraction of its mean."""


def estimate_variances(design: Design, moments: Moments, solution: Solution) -> list[VarianceEstimate]:
    """Return estimates of the variance of labels around the model: the mean, then with each coefficient's weights.

    An estimate is Σ b (squares − fitted squares) / Σ b v, with the weights b of squares and the variance function
    v, whose mean is 1, times a correction for leverage. Those of coefficients are corrected for rows that are cut
    off.
    """
    weights = moments.sum_weights.squares
    totals = np.maximum(weights.sum(axis=0), 1)
    correction = leverage_correction(design.leverage @ weights / totals)
    correction /= np.maximum(solution.variance_shape @ weights / totals, _MIN_SHAPE)
    values = (moments.square_sums - fitted_squares(moments, solution)) / totals * correction
    sum_errors = moments.window.square_noise(moments.epsilon) / totals * correction
    scales = np.hypot(sum_errors, fitted_squares_error(moments, solution))
    values[1:], scales[1:] = extrapolate_to_all_rows(design, moments, values, scales)
    values[1:] += hidden_squares(moments, solution, values[1:])
    sampling_errors = np.sqrt(2 * (weights**2).sum(axis=0)) / totals  # for errors with a kurtosis of 5
    columns = values, scales, sampling_errors, moments.squares.heterogeneity
    return [VarianceEstimate(*row) for row in np.column_stack(columns).tolist()]


def leverage_correction(leverage: Array) -> Array:
    """Return factors for errors that are smaller around a fitted line than around the true one.

    The first is 1/(1 − leverage), for the mean over rows. Others are its squares, as in HC3: with few rows, robust
    variances are too small otherwise.
    """
    correction = 1 / (1 - leverage)
    correction[1:] **= 2
    return np.asarray(correction)


def fitted_squares(moments: Moments, solution: Solution) -> Array:
    """Return the sums of squares around their center, less those around the fitted line.

    Labels differ from the means of all columns by chance alone. So these means decide the sums around the center,
    and the misfit of fewer columns is added to the sums around the line. The part that noise adds to a squared
    distance is left out.
    """
    window = moments.window
    distance = solution.fitted + solution.misfit - window.center
    noise = solution.fitted_noise + solution.misfit_noise
    squares = distance**2 - 2 * (noise**2).sum(axis=1)
    misfit = solution.misfit**2 - 2 * (solution.misfit_noise**2).sum(axis=1)
    linear = window.width / window.square_factor * (distance @ moments.sum_weights.linear)
    return np.asarray((squares - misfit) @ moments.sum_weights.squares - linear)


def fitted_squares_error(moments: Moments, solution: Solution) -> float:
    """Return the error of a mean of fitted squares that comes from the noise of fitted values."""
    noise = solution.fitted_noise + solution.misfit_noise
    distance = solution.fitted + solution.misfit - moments.window.center
    linear = distance @ noise - solution.misfit @ solution.misfit_noise
    products = noise.T @ noise
    return 2 * math.hypot(np.linalg.norm(products), np.linalg.norm(linear)) / len(noise)


def extrapolate_to_all_rows(design: Design, moments: Moments, values: Array, scales: Array) -> tuple[Array, Array]:
    """Return the estimates of coefficients and their noise scales as if no row were cut off.

    The model is that variances grow with the squares of whitened columns. The slopes of this growth are estimated
    from the differences between the coefficients' estimates and the mean over all rows.
    """
    visible = _mean_shapes(design, moments.sum_weights.squares[:, 1:])
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
    weights = moments.squares
    outside = np.flatnonzero(np.abs(solution.fitted - 0.5) > 0.5)
    hidden = np.maximum(weights.scale * weights.profile[outside] - moments.sum_weights.squares[outside, 1:], 0)
    squares = (solution.fitted[outside, None] - 0.5) ** 2 + 1 / 12
    excess = np.maximum(squares - np.maximum(values, 0), 0)
    return np.asarray((hidden * excess).sum(axis=0) / (weights.scale * weights.profile.sum(axis=0)))
