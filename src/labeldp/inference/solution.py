"""Estimating equations: coefficients from the moments of a regression."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import root

from labeldp._values import Array, Interval
from labeldp.errors import NoSolutionError
from labeldp.inference.design import Design
from labeldp.inference.families import OLS, Family
from labeldp.inference.moments import Moments

_TOLERANCE = 1e-9
"""The equations are solved if no sum differs by more than this fraction of the sum of all labels."""

_MAX_CONDITION = 1e12
"""Equations with a larger condition number have no solution that can be computed."""

_MEAN_OUTSIDE = (
    "The noisy mean is beyond every {family.quantity}, so the {family.title} model has no solution. In Python, "
    "another family from the same moments costs nothing more; a larger ε or more rows take a new release."
)
_SEPARATED = (
    "The {family.title} model has no finite solution for these noisy sums: by chance, by noise, or because "
    "columns separate the labels. Fewer columns may have one. In Python, that and a linear model from the same "
    "moments cost nothing more."
)

_MAX_PREDICTOR = 30.0
"""The largest distance of a linear predictor from that of the mean; e^30 is beyond any odds and rates."""


class Solution(NamedTuple):
    """Coefficients, and their dependence on labels and noise.

    Attributes
    ----------
    family : Family
    coefficients : array
        In the label's unit, as the next two.
    label_weights : array, rows × coefficients
        H: the weight of each label, scaled to [0, 1], in each coefficient.
    noise_scales : array, coefficients × sums
        K: the scale of the noise of each sum in each coefficient.
    fitted : array
        Fitted means of labels that are scaled to [0, 1].
    fitted_noise : array, rows × sums
        The scale of the noise of each sum in each fitted mean.
    means : array
        Means that are fitted by all columns that were released.
    means_noise : array, rows × sums
        The scale of the noise of each sum in each of these means.
    variance_shape : array
        The variance function at the fitted means, divided by its mean.
    ordinary_variances : array
        Of maximum likelihood without privacy, for labels with a mean variance of 1.
    """

    family: Family
    coefficients: Array
    label_weights: Array
    noise_scales: Array
    fitted: Array
    fitted_noise: Array
    means: Array
    means_noise: Array
    variance_shape: Array
    ordinary_variances: Array

    @property
    def misfit(self) -> Array:
        """The means of all columns less the fitted ones."""
        return self.means - self.fitted

    @property
    def misfit_noise(self) -> Array:
        """The scale of the noise of each sum in each misfit."""
        return self.means_noise - self.fitted_noise


def solve(design: Design, moments: Moments, family: Family, bounds: Interval) -> Solution:
    """Return the coefficients of some of the columns that were released, by maximum likelihood on fitted means.

    The fitted means are those of all columns: they solve Mᵀμ(D̃γ) = z for the weights M and the sums z. So shrunk
    rows of M do not move the coefficients of fewer columns D, where the model of all columns holds. Where M is
    linear in D̃, the coefficients are those of maximum likelihood on the labels, whether it holds or not.
    """
    means, derivatives = _released_means(design, moments, family)
    matrix, weighted = design.matrix, design.weighted
    values = _solve_equations(weighted, matrix, weighted.T @ means, family)
    fitted = family.mean(matrix @ values)
    variance = family.variance(fitted)
    scaled = variance[:, None] * matrix
    inverse = np.linalg.inv(weighted.T @ scaled)
    by_sums = inverse @ (weighted.T @ derivatives)
    scores = inverse @ (weighted.T * variance) @ weighted @ inverse
    factor, shift = family.units(bounds)
    rescaling = factor * design.rescaling
    coefficients = rescaling @ values
    coefficients[0] += shift
    return Solution(
        family=family,
        coefficients=coefficients,
        label_weights=moments.label_weights @ (rescaling @ by_sums).T,
        noise_scales=rescaling @ by_sums * moments.noise_scales,
        fitted=fitted,
        fitted_noise=scaled @ by_sums * moments.noise_scales,
        means=means,
        means_noise=derivatives * moments.noise_scales,
        variance_shape=variance / variance.mean(),
        ordinary_variances=np.diag(rescaling @ scores @ rescaling.T) / variance.mean(),
    )


def _released_means(design: Design, moments: Moments, family: Family) -> tuple[Array, Array]:
    """Return fitted means of labels by all columns that were released, and their derivatives by the sums.

    If fewer columns are asked for, and all together have no solution, the means are those of a linear model.
    """
    matrix, weights = moments.design.matrix, moments.label_weights
    scale = len(matrix) / np.abs(weights).sum(axis=0)  # sums are then as large as means times rows
    try:
        values = _solve_equations(weights * scale, matrix, scale * moments.label_sums[: len(scale)], family)
    except NoSolutionError:
        if design.size == moments.design.size:
            raise
        return _released_means(design, moments, OLS)
    means = family.mean(matrix @ values)
    scaled = family.variance(means)[:, None] * matrix
    return means, scaled @ np.linalg.inv(weights.T @ scaled)


def _solve_equations(instruments: Array, matrix: Array, sums: Array, family: Family) -> Array:
    """Return the solution γ of Hᵀμ(Dγ) = s, searched for from the mean of all labels."""
    if family.is_linear:
        return np.asarray(np.linalg.solve(instruments.T @ matrix, sums))
    mean = sums[0] / len(matrix)
    if not family.limits[0] < mean < family.limits[1]:
        raise NoSolutionError(_MEAN_OUTSIDE.format(family=family))

    def gap(values: Array) -> Array:
        return instruments.T @ family.mean(matrix @ values) - sums

    def jacobian(values: Array) -> Array:
        return instruments.T @ (family.variance(family.mean(matrix @ values))[:, None] * matrix)

    start = float(family.link(mean))
    values = root(gap, np.append(start, np.zeros(matrix.shape[1] - 1)), jac=jacobian, method="lm", tol=1e-15).x
    is_solved = np.abs(gap(values)).max() <= _TOLERANCE * sums[0]
    is_finite = np.abs(matrix @ values - start).max() <= _MAX_PREDICTOR
    if not is_solved or not is_finite or np.linalg.cond(jacobian(values)) > _MAX_CONDITION:
        raise NoSolutionError(_SEPARATED.format(family=family))
    return np.asarray(values)
