"""Weights of labels in the sums behind the coefficients.

A row's weights are its whitened values, projected onto an ℓ1 ball, which bounds the effect of one label. With many
rows the projection changes nothing, and the weights are those of least squares. With few rows it sets small values
to 0, which needs less noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from labeldp._values import Array, Index
from labeldp.errors import DataError
from labeldp.inference.design import Design, residuals
from labeldp.inference.weighted_sums import ASSUMED_DEVIATION, MAX_ROW_WEIGHT

_INTERCEPT_SHARES = (1 / 16, 1 / 8, 1 / 4)
"""Fractions of a row's weight to try for the sum of all labels, which determines the intercept."""

_MEAN_SHARE = 1 / 2
"""This fraction where there is no slope; the rest is for squares, without which intervals are too narrow."""

_MULTIPLIERS = 2.0 ** (np.arange(-24, 13) / 4)
"""Multiples of the whitened values to try before the projection."""

_SAMPLE_ROWS = 4000
"""The largest number of rows on which weights are compared."""

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

_MIN_NOISE = 2.0**-40
"""Less noise than this makes no difference to the choice."""


def integer_weights(shares: Array, limit: int = MAX_ROW_WEIGHT) -> Array:
    """Return M: integers whose absolute values add up to ``limit`` at most in each row, as shares add up to 1."""
    scale = limit - (shares.shape[1] + 1) // 2  # rounding adds at most 1/2 to each weight
    return np.asarray(np.rint(scale * shares))


def relative_noise(epsilon: float) -> float:
    """Return the variance of the noise of a sum with weights of 1, over the assumed variance of a label."""
    return 2 / (ASSUMED_DEVIATION * epsilon) ** 2


class Candidate(NamedTuple):
    """Weights to choose from, and the variances and the bias of each coefficient with them.

    Attributes
    ----------
    multiplier : float
        Of the whitened values, before the projection.
    intercept_share : float
        The part of a row's weight in the intercept's sum.
    sampling : array
        Sampling variances for labels of variance 1.
    noise : array, 2 × coefficients
        Variances for noise of variance 1 in the intercept's sum, and in each other sum.
    bias : array
        The largest bias from a squared direction that is omitted.
    """

    multiplier: float
    intercept_share: float
    sampling: Array
    noise: Array
    bias: Array

    def shares(self, design: Design) -> Array:
        """Return the weights of labels in sums, rows × sums; absolute values add up to 1 at most in each row."""
        ones = np.ones(design.rows)
        slopes = _project_centered(self.multiplier * design.whitened, design.row_weights, ones)
        intercept = self.intercept_share * design.row_weights / design.row_weights.max()
        return np.insert((1 - self.intercept_share) * slopes, 0, intercept, axis=1)


class WeightCandidates(NamedTuple):
    """Weights of a design's rows to choose from, for any noise.

    Attributes
    ----------
    design : Design
    candidates : list of Candidate
    importance : array
        Weights of the coefficients' variances in the risk.
    """

    design: Design
    candidates: list[Candidate]
    importance: Array

    @classmethod
    def of(cls, design: Design) -> WeightCandidates:
        """Return candidates that are compared on a sample of rows, or on all where a sample lacks a rare level."""
        rows = design.rows
        candidates = _candidates(design, *_sample(design)) or _candidates(design, np.arange(rows), np.ones(rows))
        if not candidates:
            raise DataError("columns are too nearly collinear: leave out one that nearly follows from the others")
        importance = np.append(_INTERCEPT_IMPORTANCE, np.ones(design.size - 1))
        return cls(design, candidates, importance / (design.least_squares_weights() ** 2).sum(axis=0))

    def choose(
        self, noise: float, *, intercept_ratio: float = 1.0, allowed_bias: float = _ALLOWED_BIAS
    ) -> Candidate:
        """Return the weights with the least summed variance of the coefficients.

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
        noises = np.maximum([noise * intercept_ratio, noise], _MIN_NOISE)
        noise_variances = 2.0 ** np.rint(np.log2(noises))

        def risk(candidate: Candidate) -> float:
            variances = candidate.sampling + noise_variances @ candidate.noise
            allowed = (_CURVATURE * candidate.bias / allowed_bias) ** 2
            return float(np.maximum(variances, allowed) @ self.importance)

        return min(self.candidates, key=risk)

    def smallest_noise(self, epsilon: float) -> float:
        """Return the smallest standard deviation of the noise of a standardised slope, in widths of the bounds."""
        candidate = self.choose(relative_noise(epsilon))
        deviations = np.sqrt(2 * candidate.noise.sum(axis=0)) / epsilon / np.diag(self.design.rescaling)
        return float(self.design.of_slopes(deviations).min())


def _sample(design: Design) -> tuple[Index, Array]:
    """Return rows on which weights are compared, and the number of rows for which each of them stands.

    These are the rows that the projection shrinks most, and evenly spaced ones for all others.
    """
    rows, half = design.rows, _SAMPLE_ROWS // 2
    if rows <= _SAMPLE_ROWS:
        return np.arange(rows), np.ones(rows)
    by_size = np.argpartition(np.abs(design.whitened).sum(axis=1) * design.row_weights, rows - half)
    small_rows = np.sort(by_size[:-half])
    spaced = small_rows[np.linspace(0, small_rows.size - 1, half).astype(int)]
    return np.append(by_size[-half:], spaced), np.repeat([1.0, small_rows.size / half], half)


def _candidates(design: Design, rows: Index, counts: Array) -> list[Candidate]:
    """Return all candidates that leave a system of equations with a solution, compared on a sample of rows."""
    matrix, whitened, row_weights = design.matrix[rows], design.whitened[rows], design.row_weights[rows]
    curvature = counts[:, None] * _curvature(whitened, matrix, row_weights, counts)
    shares = _INTERCEPT_SHARES if design.size > 1 else (_MEAN_SHARE,)
    candidates = []
    for multiplier in _MULTIPLIERS.tolist():
        slopes = _project_centered(multiplier * whitened, row_weights, counts)
        weights = np.insert(slopes, 0, row_weights / row_weights.max(), axis=1)
        gram = (counts[:, None] * weights).T @ matrix
        if np.linalg.cond(gram) <= _MAX_CONDITION:
            solution = design.rescaling @ np.linalg.inv(gram)
            label_weights = weights @ solution.T
            bias = np.abs(label_weights.T @ curvature).max(axis=1, initial=0.0)
            sampling = counts @ label_weights**2
            candidates += [
                Candidate(multiplier, share, sampling, _noise(solution, share), bias) for share in shares
            ]
    return candidates


def _noise(solution: Array, share: float) -> Array:
    """Return the variances of coefficients for noise of variance 1: in the intercept's sum, in each other sum."""
    squares = solution**2
    return np.vstack([squares[:, 0] / share**2, squares[:, 1:].sum(axis=1) / (1 - share) ** 2])


def project(rows: Array) -> Array:
    """Return the nearest point of the ℓ1 ball of radius 1 to each row, by soft thresholding.

    Examples
    --------
    >>> project(np.array([[0.3, -0.2], [2.0, -1.5]]))
    array([[ 0.3 , -0.2 ],
           [ 0.75, -0.25]])
    """
    if not rows.size:
        return rows
    sizes = np.abs(rows)
    totals = np.cumsum(-np.sort(-sizes, axis=1), axis=1)
    thresholds = (totals - 1) / np.arange(1, rows.shape[1] + 1)  # the right one is the largest
    threshold = thresholds.max(axis=1, keepdims=True).clip(0)
    return np.asarray(np.sign(rows) * np.maximum(sizes - threshold, 0))


def _project_centered(rows: Array, row_weights: Array, counts: Array) -> Array:
    """Return projected rows of norm 1 at most, whose columns add up to 0, because clipped errors may not.

    Rows are multiplied by their weights before, and each stands for a number of rows.
    """
    weights = project(rows * row_weights[:, None])
    weights -= np.outer(row_weights, counts @ weights / (counts @ row_weights))
    return np.asarray(weights / np.abs(weights).sum(axis=1).max(initial=1e-300))


def _curvature(whitened: Array, matrix: Array, row_weights: Array, counts: Array) -> Array:
    """Return the part of each squared direction that the model does not explain, with standard deviation 1.

    So do those of the rows' weights and their products: survey weights often go with labels beyond the model.
    """
    root = np.sqrt(row_weights * counts)[:, None]
    weighted = row_weights[:, None] * np.column_stack([np.ones(len(whitened)), whitened])
    omitted = np.hstack([np.minimum(whitened**2, _CURVATURE_END**2), weighted])
    unexplained = residuals(root * matrix, root * omitted) / root
    centered = unexplained - np.average(unexplained, 0, counts)
    deviation = np.sqrt(np.average(centered**2, 0, counts))
    return unexplained[:, deviation > 1e-3] / deviation[deviation > 1e-3]


def expected_error(rows: int, columns: int, epsilon: float) -> float:
    """Return the standard error of a slope in widths of the bounds, for uncorrelated normal columns.

    Without columns it is that of the mean.

    Examples
    --------
    >>> expected_error(100_000, 5, 1.0) < expected_error(10_000, 5, 1.0) < expected_error(10_000, 20, 1.0)
    True
    """
    sample = min(rows, max(2000, 10 * columns))
    X = np.random.default_rng(0).normal(size=(sample, columns))
    design = Design.of(X, [f"x{k}" for k in range(columns)])
    candidates = WeightCandidates.of(design)
    noise = relative_noise(epsilon) * sample / rows
    candidate = candidates.choose(noise)
    variances = candidate.sampling + noise * candidate.noise.sum(axis=0)
    return ASSUMED_DEVIATION * math.sqrt(float(design.of_slopes(variances).mean()) * sample / rows)
