"""Estimating equations: coefficients from the moments of a regression."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from labeldp._values import Array
from labeldp.errors import NoSolutionError
from labeldp.inference.design import Design
from labeldp.inference.families import OLS, Family
from labeldp.inference.moments import Moments
from labeldp.inference.weighted_sums import MAX_ROW_WEIGHT
from labeldp.learning.fit_plan import Pair

_MAX_STEPS = 100
"""The largest number of Newton steps."""

_MIN_STEP = 1e-6
"""Newton's method stops where no shorter step of this fraction improves the fit."""

_TOLERANCE = 1e-11
"""The equations are solved if no sum differs by more than this fraction of the rows."""

_MAX_CONDITION = 1e12
"""Equations with a larger condition number have no solution that can be computed."""

_MEAN_OUTSIDE = (
    "The noisy mean is beyond every {family.quantity}, so the {family.title} model has no solution: estimate "
    "another family from the same moments at no further cost, or release anew with a larger ε or more rows."
)
_SEPARATED = (
    "The {family.title} model has no finite solution for these noisy sums: by chance, by noise, or because "
    "columns separate the labels. Leave out columns, or estimate a linear model, from the same moments: it costs "
    "nothing more."
)

_MAX_PREDICTOR = 30.0
"""The largest distance of a linear predictor from that of the mean; e^30 is beyond any odds and rates."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Coefficients, and their dependence on labels and noise.

    Attributes
    ----------
    family : Family
    coefficients : array
        In the label's unit, as the next two.
    label_weights : array, rows × coefficients
        The weight of each label, scaled to [0, 1], in each coefficient.
    noise_scales : array, coefficients × sums
        The scale of the noise of each sum in each coefficient.
    fitted : array
        Fitted means of labels that are scaled to [0, 1].
    fitted_noise : array, rows × sums
        The scale of the noise of each sum in each fitted mean.
    misfit : array
        Means that are fitted by all columns that were released, less ``fitted``.
    misfit_noise : array, rows × sums
        The scale of the noise of each sum in each misfit.
    variance_shape : array
        The variance function at the fitted means, divided by its mean.
    clipped_shares : array
        The share of each row in the amount that clipping cuts off.
    covariance : array, coefficients × coefficients
        Of maximum likelihood without privacy, for labels with a mean variance of 1.
    """

    family: Family
    coefficients: Array
    label_weights: Array = field(repr=False)
    noise_scales: Array = field(repr=False)
    fitted: Array = field(repr=False)
    fitted_noise: Array = field(repr=False)
    misfit: Array = field(repr=False)
    misfit_noise: Array = field(repr=False)
    variance_shape: Array = field(repr=False)
    clipped_shares: Array = field(repr=False)
    covariance: Array = field(repr=False)


def solve(design: Design, moments: Moments, family: Family, bounds: Pair) -> Solution:
    """Return the coefficients of some of the columns that were released, by maximum likelihood on fitted means.

    The fitted means are those of all columns: they solve Mᵀμ(D̃γ) = z for the weights M and the sums z. So shrunk
    rows of M do not move the coefficients of fewer columns D, where the model of all columns holds. Where M is
    linear in D̃, the coefficients are those of maximum likelihood on the labels, whether it holds or not.
    """
    means, variance = _released_means(design, moments, family)
    matrix, released = design.matrix, moments.design.matrix * variance[:, None]
    weighted = design.weighted
    released = released @ np.linalg.inv(moments.weights.integers.T @ released)
    sum_scales = moments.noise_scales * MAX_ROW_WEIGHT
    mixing = weighted.T @ released
    values = _solve_equations(weighted, matrix, weighted.T @ means, family)
    fitted = family.mean(matrix @ values)
    variance = family.variance(fitted)
    scaled = variance[:, None] * matrix
    inverse = np.linalg.inv(weighted.T @ scaled)
    scores = inverse @ (weighted.T * variance) @ weighted @ inverse
    noise = inverse @ mixing * sum_scales
    fitted_noise = scaled @ noise
    factor, shift = family.units(bounds)
    rescaling = factor * design.rescaling
    return Solution(
        family=family,
        coefficients=rescaling @ values + design.coefficient_array(shift, 0.0),
        label_weights=moments.weights.integers @ (rescaling @ inverse @ mixing).T,
        noise_scales=rescaling @ noise,
        fitted=fitted,
        fitted_noise=fitted_noise,
        misfit=means - fitted,
        misfit_noise=released * sum_scales - fitted_noise,
        variance_shape=variance / variance.mean(),
        clipped_shares=family.clipped_shares(fitted, moments.window.width, bounds),
        covariance=rescaling @ scores @ rescaling.T / variance.mean(),
    )


def _released_means(design: Design, moments: Moments, family: Family) -> tuple[Array, Array]:
    """Return fitted means of labels by all columns that were released, and the derivative of the mean there.

    If fewer columns are asked for, and all together have no solution, the means are those of a linear model.
    """
    matrix, weights = moments.design.matrix, moments.weights.integers
    scale = len(matrix) / np.abs(weights).sum(axis=0)  # sums are then as large as means times rows
    sums = scale * moments.label_sums[: len(scale)]
    try:
        values = _solve_equations(weights * scale, matrix, sums, family)
    except NoSolutionError:
        if design.size == moments.design.size:
            raise
        return _released_means(design, moments, OLS)
    means = family.mean(matrix @ values)
    return means, family.variance(means)


def _solve_equations(instruments: Array, matrix: Array, sums: Array, family: Family) -> Array:
    """Return the solution γ of Hᵀμ(Dγ) = s, by Newton's method from the mean of all labels."""
    if family.is_linear:
        return np.asarray(np.linalg.solve(instruments.T @ matrix, sums))
    rows, size = matrix.shape
    mean = sums[0] / rows
    low, high = family.limits
    if not low < mean < high:
        raise NoSolutionError(_MEAN_OUTSIDE.format(family=family))
    values = np.zeros(size)
    start = values[0] = float(family.link(mean))
    predictor = matrix @ values
    for _ in range(_MAX_STEPS):
        fitted = family.mean(predictor)
        gap = sums - instruments.T @ fitted
        if np.abs(gap).max() <= _TOLERANCE * rows * max(mean, _TOLERANCE):
            return values
        jacobian = instruments.T @ (family.variance(fitted)[:, None] * matrix)
        if np.linalg.cond(jacobian) > _MAX_CONDITION:
            break
        step = np.linalg.solve(jacobian, gap)
        fraction, size_of_gap = 1.0, np.linalg.norm(gap)
        while fraction > _MIN_STEP:
            trial = matrix @ (values + fraction * step)
            remaining_gap = np.linalg.norm(sums - instruments.T @ family.mean(trial))
            if remaining_gap < size_of_gap:
                break
            fraction /= 2
        else:
            break
        values, predictor = values + fraction * step, trial
        if np.abs(predictor - start).max() > _MAX_PREDICTOR:
            break
    raise NoSolutionError(_SEPARATED.format(family=family))
