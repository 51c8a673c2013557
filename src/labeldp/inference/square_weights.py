"""Weights of squared residuals, from which the sampling variances of coefficients are estimated.

The sampling variance of a coefficient is Σ h² e², with the weights h of labels in the coefficient and their errors
e. If the linear model is wrong, errors are large in the rows with the largest weights. So squares are taken around
the predictions of a rough fit, not around the middle of the bounds, and the weights of as few rows are cut off as
noise allows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from labeldp._values import Array
from labeldp.inference.design import Design
from labeldp.inference.weighted_sums import MAX_ROW_WEIGHT, ClipWindow, WeightedSums

_LINEAR_SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
"""Fractions of a row's weight to try for squares around the rough fit."""

_SCALES = 2.0 ** np.arange(10)
"""Factors of the weights of squares to try, relative to the largest weights with which no row is cut off."""

_MISFIT = 0.5
"""The expected misfit per standard deviation of leverage, in standard deviations of a label."""

_VARIANCE_IMPORTANCE = 0.5
"""The weight of the relative error of variances beside the noise of coefficients."""


class SquareWeights(NamedTuple):
    """Weights of squared residuals for each coefficient, before they are cut off and rounded.

    Attributes
    ----------
    profile : array, rows × coefficients
        Squared weights of labels; each column has the same mean, and rows add up to 1 on average.
    scale : float
        The integer weights of a row are its profile times this, unless they are cut off.
    linear_share : float
        The fraction of a row's weight that is kept for squares around the rough fit.
    """

    profile: Array
    scale: float
    linear_share: float


def choose_square_weights(design: Design, integers: Array, window: ClipWindow, epsilon: float) -> SquareWeights:
    """Return the weights with the least error from noise and from rows that are cut off.

    Parameters
    ----------
    design : Design
    integers : array
        The weights M of labels in sums if squares needed none.
    window : ClipWindow
    epsilon : float
        The budget of the sums.
    """
    unit = MAX_ROW_WEIGHT / epsilon
    profile, label_noise = _profile(design, integers, window.width * unit)
    noise_ratio = label_noise / window.residual_variance
    square_noise = design.size * window.square_unit * unit / window.residual_variance
    label_totals, penalty = np.abs(integers).sum(axis=1), misfit_penalty(design, window)
    choices = []
    for linear_share in (0.0,) if window.rough_fit is None else _LINEAR_SHARES:
        limits = _row_limits(window, (1 - linear_share) * label_totals, 0, design.size)
        error, scale = _best_scale(profile.sum(axis=1), limits, penalty, square_noise)
        risk = noise_ratio / (1 - linear_share) ** 2 + _VARIANCE_IMPORTANCE * error / (1 + noise_ratio)
        choices.append((risk, scale, linear_share))
    return SquareWeights(profile, *min(choices)[1:])


def _profile(design: Design, integers: Array, noise_scale: float) -> tuple[Array, float]:
    """Return the profile of squares, and the mean variance of slopes by noise over that by labels."""
    solution = design.rescaling @ np.linalg.inv(integers.T @ design.matrix)
    squares = (integers @ solution.T) ** 2
    noise = 2 * ((solution * noise_scale) ** 2).sum(axis=1) / squares.sum(axis=0)
    return squares / squares.mean(axis=0) / design.size, float(design.of_slopes(noise).mean())


def sums_beside_squares(window: ClipWindow, squares: SquareWeights, integers: Array, reset: Array) -> WeightedSums:
    """Return all sums: of labels, of the test of fit, and of squares as far as a row's weight allows.

    The first column of squares has equal weights for all rows, the others are for the coefficients.
    """
    intercept, slopes = np.split(integers, [1], axis=1)
    clipped = np.hstack([slopes, reset])
    constant, size = intercept.max(), integers.shape[1]
    limits = _row_limits(window, constant + np.abs(clipped).sum(axis=1), constant, size)
    scale = np.minimum(squares.scale, limits / np.maximum(squares.profile.sum(axis=1), 1e-300))
    weights = np.insert(np.rint(squares.profile * scale[:, None]), 0, 0, axis=1)
    linear = np.trunc(weights * _linear_factors(window)[:, None])
    weights[:, 0] = (MAX_ROW_WEIGHT - constant) // (size + 1)
    return WeightedSums(window, intercept, clipped, weights, linear)


def _best_scale(totals: Array, limits: Array, penalty: Array, noise: float) -> tuple[float, float]:
    """Return the least squared relative error of variances, and the scale of profiles that has it.

    Parameters
    ----------
    totals, limits, penalty : arrays
        For each row, the sum of its profile, the largest sum of its weights, and `misfit_penalty`.
    noise : float
        The error by noise of a sum of squares, as a multiple of the variance of a label.
    """
    errors = []
    for scale in (_SCALES * (limits.max() / totals.max())).tolist():
        visible = np.minimum(scale * totals, limits)
        cut_off = float(((totals - visible / scale) * penalty).mean())
        errors.append((float((noise / visible.sum()) ** 2) + cut_off**2, scale))
    return min(errors)


def misfit_penalty(design: Design, window: ClipWindow) -> Array:
    """Return the expected square of a row's error over a label's variance, where the model may not fit.

    The misfit grows with leverage, up to the largest that bounds allow.
    """
    leverage = design.leverage
    excess = (leverage - leverage.mean()) / max(leverage.std(), 1e-9 * leverage.mean())
    farthest = 0.5 if window.rough_fit is None else np.abs(window.rough_fit - 0.5)
    largest = (farthest + 0.5) / math.sqrt(window.residual_variance)
    return np.asarray(1 + np.minimum(_MISFIT * np.abs(excess), largest) ** 2)


def _linear_factors(window: ClipWindow) -> Array:
    """Return the multiple of a distance to subtract from its square, so that squares are around the rough fit."""
    target = window.center if window.rough_fit is None else window.rough_fit
    return 2 * window.square_factor / window.width * (target - window.center)


def _row_limits(window: ClipWindow, label_totals: Array, constant: int, size: int) -> Array:
    """Return the largest sum of the weights of a row's squares, beside the weights of labels and equal ones."""
    rounding = size / 2 + 1
    by_equal = (MAX_ROW_WEIGHT - constant) * size / (size + 1)
    by_linear = (MAX_ROW_WEIGHT - label_totals) / np.maximum(np.abs(_linear_factors(window)), 1e-9)
    return np.clip(np.minimum(by_equal, by_linear) - rounding, 0, None)
