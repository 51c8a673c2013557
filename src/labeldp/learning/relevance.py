"""Length scales of columns in interactions, learnt from noisy sums and private labels.

The interactions of `PublicFeatures` are random Fourier features of the ranks of all columns, with one length scale
for each column, as in automatic relevance determination: a column with a large length scale hardly matters. Length
scales, called lengths here, and strengths (the variances that blocks of features explain) maximise the marginal
likelihood, called evidence, of averages s of labels, with a normal prior on their logarithms.

The model is s = Xw + noise, with rows divided by the standard deviation of their noise, and w ~ N(0, R²), where R²
is the strength of each feature's block. With C = I + X R² Xᵀ and a = C⁻¹ s, the log evidence is
−½(log|C| + sᵀ C⁻¹ s), and its gradient in a column x of X is R²(a aᵀ − C⁻¹)x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.sparse import csr_array, vstack

from labeldp._values import Array, Index, Numbers, Small
from labeldp.learning.bayes import MEAN_VARIANCE, Posterior, factorise
from labeldp.learning.feature_maps import FREQUENCIES, frequencies
from labeldp.learning.features import FeatureTable, even_rows
from labeldp.learning.fit_plan import Limits
from labeldp.learning.groups import NoisySums
from labeldp.learning.learner import PrivateRows

_LENGTH, _COMMON, _STRENGTH = 1.0, 0.7, 1.0
"""Prior standard deviations of log lengths, of the term that all log lengths share, and of log strengths."""

_FURTHEST = 4.0
"""The largest distance of each of these from its prior mean, in prior standard deviations."""

_SHORT, _LONG = 0.5, 10.0
"""The prior length, for ranks from 0 to 1, is the first number times the root of the number of columns that
matter; the second is the longest."""

_DOUBT = 3.0
"""Prior log odds against interactions, because lengths that fit noise cost more than good ones gain."""

_SINGLE = 1e5
"""Below this ratio of signal to noise, of all averages together, numbers have single precision: rounding errors
are about 1e-6 of the signal, far below the noise."""

_GUARD = 1e-5
"""The fraction by which a diagonal is increased, for single precision and averages over a sample of rows."""

_STRENGTHS = 3
"""The number of blocks whose strengths are optimised: linear, additive, interactions."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """Length scales of columns.

    Attributes
    ----------
    lengths : array
    doubt : float
        Log odds against interactions with these lengths, by Laplace's approximation.
    center : array
        Prior means of log lengths.
    point : array
        The optimum, in prior standard deviations from the means: the term that all log lengths share, then one
        for each length.
    """

    lengths: Array
    doubt: float
    center: Array
    point: Array


def first_lengths(columns: int) -> Array:
    """Return equal lengths, the prior mean for columns that all matter."""
    return np.full(columns, _SHORT * math.sqrt(columns))


class Evidence:
    """The log evidence of averages of labels, as a function of strengths and lengths.

    A point has the log strengths of three blocks (linear, additive, interactions), the term that all log lengths
    share, and one term for each length, all in prior standard deviations from their prior means.

    Parameters
    ----------
    table : FeatureTable
    rows : array of int
        A sample of the table's rows, over which interactions are averaged.
    matrix : sparse array, averages × rows
        The matrix that averages these rows.
    fixed : array, averages × features
        Averages of linear and additive features, over all rows of a group.
    values : array
        Averages of labels minus the middle of the range, in widths of the range.
    variances : array
        Variances of these averages around the model, in squared widths.
    strengths : array
        Prior means of log strengths.
    """

    def __init__(
        self,
        table: FeatureTable,
        rows: Index,
        matrix: csr_array,
        fixed: Small,
        values: Array,
        variances: Array,
        strengths: Array,
    ) -> None:
        root = (1 / np.sqrt(variances)).astype(np.float32)[:, None]
        precision = float(np.square(root, dtype=np.float64).sum())
        is_strong = precision * float(np.exp(strengths).sum()) >= _SINGLE
        self.kind: Any = np.float64 if is_strong else np.float32
        self.matrix = matrix.astype(self.kind)
        self.transposed = self.matrix.T.tocsr()
        self.root: Numbers = root.astype(self.kind)
        self.values = values * self.root[:, 0]
        self.strengths = strengths
        self.ranks: Numbers = np.ascontiguousarray((table.ranks(rows) - np.float32(0.5)).T, dtype=self.kind)
        self.frequencies: Numbers = frequencies(table.columns).astype(self.kind)
        self.block = table.public.block[: fixed.shape[1]]
        constant = np.full((values.size, 1), math.sqrt(MEAN_VARIANCE))
        self.fixed: Any = np.concatenate([fixed, constant], axis=1).astype(self.kind) * self.root
        self.gram: Numbers = np.dot(self.fixed.T, self.fixed)
        interactions = np.full(2 * FREQUENCIES, _STRENGTHS - 1)
        self.owner = np.concatenate([self.block, [_STRENGTHS], interactions])  # the constant is a block of its own

    def climb(self, center: Array, start: Array, steps: int) -> tuple[float, Relevance]:
        """Return the optimal lengths, and the log evidence integrated over lengths by Laplace's approximation."""
        found = minimize(
            self.loss,
            np.append(np.zeros(_STRENGTHS), start),
            (center,),
            "L-BFGS-B",
            jac=True,
            bounds=[(-_FURTHEST, _FURTHEST)] * (_STRENGTHS + start.size),
            options={"maxiter": steps, "maxfun": 2 * steps, "ftol": _PRECISION},
        )
        covariance = found.hess_inv.todense()[_STRENGTHS:, _STRENGTHS:]
        variances = np.clip(np.linalg.eigvalsh((covariance + covariance.T) / 2), 1e-12, 1.0)
        volume = 0.5 * float(np.log(variances).sum())
        point = found.x[_STRENGTHS:]
        doubt = _DOUBT + 0.5 * float(point @ point) - volume
        return volume - float(found.fun), Relevance(_lengths(center, point), doubt, center, point)

    def lengths_of_columns_alone(self, found: Relevance) -> Array:
        """Return log lengths that are short for columns with large linear and additive effects."""
        scale = self._scale(np.zeros(_STRENGTHS))
        solution = self._solve(scale, self._waves(found.lengths)[1])
        weights = (scale * solution.weights)[: self.block.size]
        alone = np.bincount(np.arange(self.block.size) % len(found.lengths), weights**2)
        share = np.maximum(alone / max(float(alone.sum()), 1e-300), (_SHORT / _LONG) ** 2)
        return np.asarray(np.log(_SHORT / np.sqrt(share)))

    def loss(self, point: Array, center: Array) -> tuple[float, Array]:
        """Return minus the sum of the log evidence and the log prior of a point, and its gradient."""
        lengths = _lengths(center, point[_STRENGTHS:])
        scale = self._scale(point[:_STRENGTHS])
        waves, averaged = self._waves(lengths)
        solution = self._solve(scale, averaged)
        by_length = self._slope_by_length(lengths, waves, self._slope_by_wave(solution, scale, averaged))
        by_strength = 0.5 * np.bincount(self.owner, solution.by_feature, _STRENGTHS + 1)[:_STRENGTHS]
        slope = np.concatenate([_STRENGTH * by_strength, [_COMMON * by_length.sum()], _LENGTH * by_length])
        return float(0.5 * point @ point - solution.score), np.asarray(point - slope, dtype=np.float64)

    def _scale(self, strengths: Array) -> Array:
        """Return the prior standard deviation of each feature's weight."""
        deviations = np.exp(0.5 * np.append(self.strengths + _STRENGTH * strengths, 0.0))
        return np.asarray(deviations[self.owner])

    def _waves(self, lengths: Array) -> tuple[Numbers, Numbers]:
        """Return the interaction features of the rows, and their averages."""
        angles = (self.ranks / lengths.astype(self.kind)) @ self.frequencies
        waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / self.kind(math.sqrt(FREQUENCIES))
        averaged: Numbers = (self.matrix @ waves) * self.root
        return waves, averaged

    def _slope_by_wave(self, solution: _Solution, scale: Array, averaged: Numbers) -> Numbers:
        """Return the gradient of the log evidence in the averages of interaction features."""
        residual = solution.residual.astype(self.kind)
        slope = np.outer(residual, residual @ averaged) - solution.spread.astype(self.kind)
        return np.asarray(slope * self.kind(scale[-1] ** 2))

    def _slope_by_length(self, lengths: Array, waves: Numbers, by_wave: Numbers) -> Array:
        """Return the gradient of the log evidence in log lengths."""
        by_row = self.transposed @ (by_wave * self.root)
        cosine, sine = np.split(waves, 2, axis=1)
        by_cosine, by_sine = np.split(by_row, 2, axis=1)
        turned = self.ranks.T @ (by_cosine * sine - by_sine * cosine)
        return np.asarray((turned * self.frequencies).sum(axis=1) / lengths)

    def _solve(self, scale: Array, averaged: Numbers) -> _Solution:
        """Solve the linear model in the dimension of averages, or of features if these are fewer."""
        if self.values.size <= scale.size:
            return self._solve_by_averages(scale, averaged)
        return self._solve_by_features(scale, averaged)

    def _solve_by_averages(self, scale: Array, averaged: Numbers) -> _Solution:
        values, fixed = self.values, self.fixed.shape[1]
        scaled = np.concatenate([self.fixed, averaged], axis=1) * scale
        factor = _factor(scaled @ scaled.T, _GUARD)
        solved = cho_solve((factor, True), np.column_stack([values, scaled]), check_finite=False)
        residual, spread = solved[:, 0], solved[:, 1:]
        weights = residual @ scaled
        by_feature = weights**2 - np.einsum("ij,ij->j", scaled, spread)
        score = _score(factor, residual @ values)
        return _Solution(score, weights, by_feature, residual, spread[:, fixed:] / scale[fixed:])

    def _solve_by_features(self, scale: Array, averaged: Numbers) -> _Solution:
        values, fixed = self.values, self.fixed.shape[1]
        across = averaged.T @ self.fixed
        gram = np.block([[self.gram, across.T], [across, averaged.T @ averaged]])
        factor = _factor(gram * scale * scale[:, None], 0.0 if self.kind is np.float64 else _GUARD)
        inverse = dpotri(factor, lower=True)[0]
        inverse += np.tril(inverse, -1).T
        small = values.astype(self.kind)
        moment = scale * np.concatenate([small @ self.fixed, small @ averaged])
        weights = inverse @ moment
        by_feature = weights**2 + np.diag(inverse) - 1
        unscaled = (scale * weights).astype(self.kind)
        residual = values - self.fixed @ unscaled[:fixed] - averaged @ unscaled[fixed:]
        half = (scale[:, None] * inverse[:, fixed:] / scale[fixed:]).astype(self.kind)
        score = _score(factor, values @ values - moment @ weights)
        return _Solution(score, weights, by_feature, residual, self.fixed @ half[:fixed] + averaged @ half[fixed:])


class _Solution(NamedTuple):
    """The linear model of averages for given strengths and lengths.

    Attributes
    ----------
    score : float
        The log evidence.
    weights : array
        Weights of the features, over their prior standard deviations.
    by_feature : array
        Twice the derivative of the log evidence in the log strength of each feature.
    residual : array
        C⁻¹ s.
    spread : array, averages × waves
        C⁻¹ X, for the interactions.
    """

    score: float
    weights: Array
    by_feature: Array
    residual: Array
    spread: Array


def _lengths(center: Array, point: Array) -> Array:
    return np.asarray(np.exp(center + _COMMON * point[0] + _LENGTH * point[1:]))


def _factor(matrix: Array, guard: float) -> Array:
    """Return the Cholesky factor of I + a matrix, with its diagonal multiplied by 1 + guard."""
    diagonal = np.diag_indices_from(matrix)
    matrix = matrix.astype(np.float64)
    matrix[diagonal] = 1 + (1 + guard) * matrix[diagonal]
    return factorise(matrix)


def _score(factor: Array, fit: float) -> float:
    """Return the log evidence from the Cholesky factor of C and sᵀ C⁻¹ s."""
    return -float(np.log(np.diag(factor)).sum() + 0.5 * fit)


MOST_COLUMNS = 60
"""With more columns, lengths are not learnt: labels hold too little information on so many."""

_SUMS_ROWS, _LABELS_ROWS = 2048, 4096
"""The largest samples of rows, evenly spaced, for learning from sums alone, and from labels too."""

_FIRST_STEPS, _FURTHER_STEPS = 20, 12
"""Iterations of the optimiser from a new start, and from lengths that were learnt before."""

_PRECISION = 1e-5
"""The optimiser stops where the log evidence grows by less than this fraction: single precision has no more."""

_UNSEEN = 0.3
"""The prior fraction of the residual variance that interactions explain: groups formed without them hide it."""

_LEAST_STRENGTH, _LEAST_SHARE = 1e-7, 0.03
"""The least prior strength of a block, in squared widths of the range, and as a fraction of all strengths."""


def can_learn(table: FeatureTable) -> bool:
    """Return whether the number of columns is such that lengths can be learnt."""
    return 2 <= table.columns <= MOST_COLUMNS


def learn_lengths(
    table: FeatureTable,
    linear: Posterior,
    limits: Limits,
    sums: list[NoisySums],
    labels: list[PrivateRows],
    *,
    spread: float = 0.0,
    known: Relevance | None = None,
) -> Relevance:
    """Return the lengths with the largest evidence.

    Parameters
    ----------
    table : FeatureTable
    linear : Posterior
        The model so far.
    limits : Limits
        The range of labels.
    sums, labels : lists
        The released sums and labels.
    spread : float
        Variance of labels around the model so far; 0 if it was not measured.
    known : Relevance, optional
        Lengths learnt from sums. The optimiser starts twice: from equal lengths, and from these, or without them
        from lengths that are short for columns with large effects of their own. The result with the larger
        evidence is returned. A new start helps because sums by groups that were formed without an interaction may
        hide it, while labels show it.
    """
    evidence = gather_evidence(table, linear, limits, sums, labels, spread)
    origin = np.zeros(1 + table.columns)
    equal = evidence.climb(np.log(first_lengths(table.columns)), origin, _FIRST_STEPS)
    if known is not None:
        other = evidence.climb(known.center, known.point, _FURTHER_STEPS)
    else:
        other = evidence.climb(evidence.lengths_of_columns_alone(equal[1]), origin, _FIRST_STEPS)
    return max(equal, other, key=lambda found: found[0])[1]


def gather_evidence(
    table: FeatureTable,
    linear: Posterior,
    limits: Limits,
    sums: list[NoisySums],
    labels: list[PrivateRows],
    spread: float,
) -> Evidence:
    """Return the evidence of released sums and labels; parameters are those of `learn_lengths`."""
    rest = min(linear.rest, spread or linear.rest)
    rows = even_rows(table.rows, _LABELS_ROWS if labels else _SUMS_ROWS)
    position = np.full(table.rows, -1)
    position[rows] = np.arange(rows.size)
    count = np.count_nonzero(table.public.block < 2)  # linear and additive features
    fixed: list[Any] = []
    matrices, values, variances = [], [], []
    for each in sums:
        used, group = np.unique(each.groups.group[rows], return_inverse=True)
        sizes = each.groups.sizes[used]
        matrices.append(_averaging(group, position[rows], rows.size))
        fixed.append(each.groups.features[used, :count] / each.groups.seen[used, None].astype(np.float32))
        values.append(each.sums[used] / sizes)
        variances.append((rest + each.noise / sizes) / sizes)
    for some in labels:
        here = some.where(position[some.rows] >= 0)
        matrices.append(_averaging(np.arange(here.rows.size), position[here.rows], rows.size))
        fixed.extend(features[:, :count] for _, features in table.pieces(here.rows))
        values.append(here.labels - limits.middle)
        variances.append(np.full(here.rows.size, rest + here.noise))
    return Evidence(
        table,
        rows,
        vstack(matrices, format="csr"),
        np.concatenate(fixed),
        np.concatenate(values) / limits.width,
        np.concatenate(variances) / limits.width**2,
        _expected_strengths(linear, spread, limits.width),
    )


def _averaging(group: Index, position: Index, rows: int) -> csr_array:
    """Return a matrix that averages rows at these positions by groups."""
    sizes = np.bincount(group)
    share = (1 / sizes[group]).astype(np.float32)
    return csr_array((share, (group, position)), shape=(sizes.size, rows))


def _expected_strengths(linear: Posterior, spread: float, width: float) -> Array:
    """Return the prior means of log strengths, in squared widths of the range."""
    blocks = np.array(linear.blocks) / width**2
    interactions = max(blocks[2:].sum(), _UNSEEN * spread / width**2)
    expected = np.array([blocks[0], blocks[1], interactions])
    least = max(_LEAST_STRENGTH, _LEAST_SHARE * blocks.sum())
    return np.asarray(np.log(np.maximum(expected, least)))
