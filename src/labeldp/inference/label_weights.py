"""Weights of labels in the sums behind the coefficients.

A row's weights are its whitened values, projected onto an ℓ1 ball, which bounds the effect of one label. With many
rows the projection changes nothing, and the weights are those of least squares. With few rows it sets small values
to 0, which needs less noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from labeldp._values import Array
from labeldp.errors import DataError
from labeldp.inference.design import Design
from labeldp.inference.weighted_sums import MAX_ROW_WEIGHT

ASSUMED_DEVIATION = 0.1
"""Assumed standard deviation of labels around the model, as a fraction of the bounds' width."""

_INTERCEPT_SHARES = (1 / 16, 1 / 8, 1 / 4)
"""Fractions of a row's weight to try for the sum of all labels, which determines the intercept."""

_MULTIPLIERS = 2.0 ** (np.arange(-24, 13) / 4)
"""Multiples of the whitened values to try before the projection."""

_SAMPLE_ROWS = 4000
"""The number of rows on which weights are compared."""

_INTERCEPT_IMPORTANCE = 0.3
"""The weight of the intercept's variance in the risk; each slope has weight 1."""

_CURVATURE = 0.4
"""Assumed curvature that the model omits, in standard deviations of a label."""

_CURVATURE_END = 10.0
"""Distance from the mean where the curvature ends, in standard deviations of a direction."""

_ALLOWED_BIAS = 0.25
"""The bias that the curvature may cause, in standard errors."""

_MAX_CONDITION = 1e9
"""Weights that leave a system of equations with a larger condition number are not tried."""


@dataclass(frozen=True, slots=True)
class LabelWeights:
    """Integer weights M of labels in sums z, and the matrix S of the coefficients S z.

    Attributes
    ----------
    integers : array, rows × sums
    solution : array, coefficients × sums
        The rescaling of the design times (MᵀD)⁻¹.
    """

    integers: Array
    solution: Array

    @classmethod
    def of(cls, design: Design, shares: Array, limit: int = MAX_ROW_WEIGHT) -> LabelWeights:
        """Return integers whose absolute values add up to ``limit`` at most in each row.

        Parameters
        ----------
        design : Design
        shares : array
            From `WeightCandidates.choose`; absolute values add up to 1 at most in each row.
        limit : int
        """
        scale = limit - (design.size + 1) // 2  # rounding adds at most 1/2 to each weight
        integers = np.rint(scale * shares)
        return cls(integers, design.rescaling @ np.linalg.inv(integers.T @ design.matrix))

    def noise_scales(self, scale: float | Array) -> Array:
        """Return the scale of the noise of each sum in each coefficient, coefficients × sums.

        ``scale`` is that of the noise of a sum whose weights are at most 1.
        """
        return self.solution * (scale * MAX_ROW_WEIGHT)

    def of_labels(self) -> Array:
        """Return the weight of each label in each coefficient, rows × coefficients."""
        return self.integers @ self.solution.T


@dataclass(frozen=True, slots=True)
class WeightCandidates:
    """Weights to choose from, and the variances and biases of coefficients with each.

    Attributes
    ----------
    design : Design
    settings : list of (multiplier, intercept share)
    sampling : array, candidates × coefficients
        Sampling variances for labels of variance 1.
    intercept_noise, slope_noise : arrays, candidates × coefficients
        Variances for noise of variance 1 in the intercept's sum, and in each other sum.
    bias : array, candidates × coefficients
        The largest bias from a squared direction that is omitted.
    """

    design: Design
    settings: list[tuple[float, float]]
    sampling: Array = field(repr=False)
    intercept_noise: Array = field(repr=False)
    slope_noise: Array = field(repr=False)
    bias: Array = field(repr=False)

    @classmethod
    def of(cls, design: Design, sample_rows: int = _SAMPLE_ROWS) -> WeightCandidates:
        """Return the candidates, compared on a sample of rows, or on all where a sample lacks a rare level."""
        rows = len(design.matrix)
        sample = np.linspace(0, rows - 1, min(rows, sample_rows)).astype(int)
        matrix, whitened = design.matrix[sample], design.whitened[sample]
        curvature = _curvature(whitened, matrix)
        settings, figures = [], []
        for multiplier in _MULTIPLIERS.tolist():
            halves = _shares(whitened, multiplier, 0.5)
            products = [rows / sample.size * halves.T @ other for other in (matrix, halves, curvature)]
            for intercept_share in _INTERCEPT_SHARES:
                factors = design.coefficient_array(2 * intercept_share, 2 * (1 - intercept_share))
                gram, covariance, omitted = (factors[:, None] * product for product in products)
                if np.linalg.cond(gram) <= _MAX_CONDITION:
                    solution = design.rescaling @ np.linalg.inv(gram)
                    figures.append(_figures(solution, covariance * factors, omitted))
                    settings.append((multiplier, intercept_share))
        if settings:
            return cls(design, settings, *np.swapaxes(figures, 0, 1))
        if sample.size < rows:
            return cls.of(design, rows)
        raise DataError("columns are too nearly collinear: leave out one that nearly follows from the others")

    def choose(self, noise: float, *, intercept_ratio: float = 1.0, allowed_bias: float = _ALLOWED_BIAS) -> Array:
        """Return the weights with the least summed variance of the coefficients, rows × sums.

        Parameters
        ----------
        noise : float
            The variance of the noise of a sum whose weights are at most 1, divided by the variance of a label
            around the model; rounded to a power of 2.
        intercept_ratio : float
            The noise variance of the intercept's sum, divided by that of the other sums.
        allowed_bias : float
            The bias from curvature that is allowed, in standard errors.
        """
        in_intercept, in_slopes = (
            2.0 ** round(math.log2(max(v, 2.0**-40))) for v in (noise * intercept_ratio, noise)
        )
        variances = self.sampling + in_intercept * self.intercept_noise + in_slopes * self.slope_noise
        needed = (_CURVATURE * self.bias / allowed_bias) ** 2
        ordinary = (self.design.least_squares_weights() ** 2).sum(axis=0)
        importance = self.design.coefficient_array(_INTERCEPT_IMPORTANCE, 1.0) / ordinary
        risk = np.maximum(variances, needed) @ importance
        return _shares(self.design.whitened, *self.settings[int(risk.argmin())])


def _figures(solution: Array, covariance: Array, omitted: Array) -> tuple[Array, Array, Array, Array]:
    """Return the variances and the bias of each coefficient, in the order of `WeightCandidates`."""
    sampling = ((solution @ covariance) * solution).sum(axis=1)
    squares = solution**2
    bias = np.abs(solution @ omitted).max(axis=1, initial=0.0)
    return sampling, squares[:, 0], squares[:, 1:].sum(axis=1), bias


def _shares(whitened: Array, multiplier: float, intercept_share: float) -> Array:
    """Return weights of labels in sums, of which the intercept's sum has a fixed share.

    Weights in each other sum add up to 0 over rows, because clipped errors may not.
    """
    slopes = project(multiplier * whitened)
    slopes -= slopes.mean(axis=0)
    slopes /= np.abs(slopes).sum(axis=1).max()
    return np.hstack([np.full((len(slopes), 1), intercept_share), (1 - intercept_share) * slopes])


def project(rows: Array) -> Array:
    """Return the nearest point of the ℓ1 ball of radius 1 to each row, by soft thresholding.

    Examples
    --------
    >>> project(np.array([[0.3, -0.2], [2.0, -1.5]]))
    array([[ 0.3 , -0.2 ],
           [ 0.75, -0.25]])
    """
    sizes = np.abs(rows)
    descending = -np.sort(-sizes, axis=1)
    excess = np.cumsum(descending, axis=1) - 1
    nonzero = np.maximum((descending * np.arange(1, rows.shape[1] + 1) > excess).sum(axis=1), 1)
    threshold = np.maximum(excess[np.arange(len(rows)), nonzero - 1] / nonzero, 0)
    return np.asarray(np.sign(rows) * np.maximum(sizes - threshold[:, None], 0))


def _curvature(whitened: Array, matrix: Array) -> Array:
    """Return the part of each squared direction that the model does not explain, with standard deviation 1."""
    squares = np.minimum(whitened**2, _CURVATURE_END**2)
    unexplained = squares - matrix @ np.linalg.lstsq(matrix, squares, rcond=None)[0]
    deviation = unexplained.std(axis=0)
    return np.asarray(unexplained[:, deviation > 1e-3] / deviation[deviation > 1e-3])


def smallest_noise(candidates: WeightCandidates, epsilon: float) -> float:
    """Return the smallest standard deviation of the noise of a standardised slope, in widths of the bounds."""
    weights = LabelWeights.of(candidates.design, candidates.choose(2 / (ASSUMED_DEVIATION * epsilon) ** 2))
    scales = weights.noise_scales(1 / epsilon) / np.diag(candidates.design.rescaling)[:, None]
    return math.sqrt(2 * float((scales**2).sum(axis=1)[1:].min()))


def expected_error(rows: int, columns: int, epsilon: float) -> float:
    """Return the standard error of a slope in widths of the bounds, for uncorrelated normal columns.

    Examples
    --------
    >>> expected_error(100_000, 5, 1.0) < expected_error(10_000, 5, 1.0) < expected_error(10_000, 20, 1.0)
    True
    """
    sample = min(rows, max(2000, 10 * columns))
    X = np.random.default_rng(0).normal(size=(sample, columns))
    design = Design.of(X, [f"x{k}" for k in range(columns)])
    noise = 2 / (ASSUMED_DEVIATION * epsilon) ** 2 * sample / rows
    weights = LabelWeights.of(design, WeightCandidates.of(design).choose(noise))
    variances = (weights.of_labels() ** 2).sum(axis=0) + noise * (weights.noise_scales(1.0) ** 2).sum(axis=1)
    return ASSUMED_DEVIATION * math.sqrt(float(variances[1:].mean()) * sample / rows)
