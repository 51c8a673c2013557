"""How strongly each column takes part in interactions, learnt from noisy sums and private labels.

The interactions of `PublicFeatures` are waves over the ranks of all columns, with one length a column: a column
with a long one hardly matters. Lengths and strengths of blocks of features maximise the evidence of averages s of
labels, under a normal prior of their logarithms. With s = Xw + noise, all divided by the deviation of each s, and
w ~ N(0, R²), R² the strength of each feature's block:
C = I + X R² Xᵀ, log evidence = −½(log|C| + sᵀ C⁻¹ s), a = C⁻¹ s; its slope by a column x of X is R²(a aᵀ − C⁻¹)x.
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
"""Prior deviations of the logarithms of each length, of what all lengths share, and of strengths."""

_FURTHEST = 4.0
"""How far from its expectation each of these may be, in prior deviations."""

_SHORT, _LONG = 0.5, 10.0
"""Lengths before anything is known of them, in ranges of ranks, over the root of the number of columns that
matter; and the longest."""

_DOUBT = 3.0
"""Log odds against interactions before anything is known: lengths that fit noise cost more than others gain."""

_SINGLE = 1e5
"""Numbers are of single precision if signal over noise, of all averages together, is less than this: rounding
errors, of about 1e-6 of the signal, are far below the noise then."""

_GUARD = 1e-5
"""Added to a diagonal, as a part of it: for products of single precision, and since averages are of some rows."""

_STRENGTHS = 3
"""Blocks whose strength is searched for: linear, additive, interactions."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """Lengths of columns.

    Attributes
    ----------
    lengths : array
    doubt : float
        Log odds against interactions with these lengths, which were chosen to fit: by Laplace's method.
    center : array
        Logarithms of the lengths that were expected.
    point : array
        What was found, in prior deviations from there: what all lengths share, then each length.
    """

    lengths: Array
    doubt: float
    center: Array
    point: Array


def first_lengths(columns: int) -> Array:
    """Return lengths before anything is known."""
    return np.full(columns, _SHORT * math.sqrt(columns))


class Evidence:
    """The evidence of averages of labels, as a function of strengths and lengths.

    Its argument, a point, has the strengths of three blocks (linear, additive, interactions), what lengths share,
    and each length, in prior deviations from what is expected.

    Parameters
    ----------
    table : FeatureTable
    rows : array of int
        Rows of the table that stand for all where waves are averaged.
    matrix : sparse array, averages × rows
        What makes averages of these rows.
    fixed : array, averages × features
        Averages of linear and additive features, over all rows of a group.
    values : array
        Averages of labels, less the middle of the range, over its width.
    variances : array
        Of these around what features explain, in squared widths.
    strengths : array
        Logarithms of what each block is expected to explain.
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
        """Return the best lengths, and their log evidence averaged over lengths that are as likely."""
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
        """Return logarithms of lengths that are short for columns that matter alone."""
        scale = self._scale(np.zeros(_STRENGTHS))
        solution = self._solve(scale, self._waves(found.lengths)[1])
        weights = (scale * solution.weights)[: self.block.size]
        alone = np.bincount(np.arange(self.block.size) % len(found.lengths), weights**2)
        share = np.maximum(alone / max(float(alone.sum()), 1e-300), (_SHORT / _LONG) ** 2)
        return np.asarray(np.log(_SHORT / np.sqrt(share)))

    def loss(self, point: Array, center: Array) -> tuple[float, Array]:
        """Return minus the log evidence and log prior of a point, and their slope."""
        lengths = _lengths(center, point[_STRENGTHS:])
        scale = self._scale(point[:_STRENGTHS])
        waves, averaged = self._waves(lengths)
        solution = self._solve(scale, averaged)
        by_length = self._slope_by_length(lengths, waves, self._slope_by_wave(solution, scale, averaged))
        by_strength = 0.5 * np.bincount(self.owner, solution.by_feature, _STRENGTHS + 1)[:_STRENGTHS]
        slope = np.concatenate([_STRENGTH * by_strength, [_COMMON * by_length.sum()], _LENGTH * by_length])
        return float(0.5 * point @ point - solution.score), np.asarray(point - slope, dtype=np.float64)

    def _scale(self, strengths: Array) -> Array:
        """Return the prior deviation of each feature's weight."""
        deviations = np.exp(0.5 * np.append(self.strengths + _STRENGTH * strengths, 0.0))
        return np.asarray(deviations[self.owner])

    def _waves(self, lengths: Array) -> tuple[Numbers, Numbers]:
        """Return waves of the rows, and their averages."""
        angles = (self.ranks / lengths.astype(self.kind)) @ self.frequencies
        waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / self.kind(math.sqrt(FREQUENCIES))
        averaged: Numbers = (self.matrix @ waves) * self.root
        return waves, averaged

    def _slope_by_wave(self, solution: _Solution, scale: Array, averaged: Numbers) -> Numbers:
        """Return the slope of the log evidence by each average of a wave."""
        residual = solution.residual.astype(self.kind)
        slope = np.outer(residual, residual @ averaged) - solution.spread.astype(self.kind)
        return np.asarray(slope * self.kind(scale[-1] ** 2))

    def _slope_by_length(self, lengths: Array, waves: Numbers, by_wave: Numbers) -> Array:
        """Return the slope of the log evidence by the logarithm of each length."""
        by_row = self.transposed @ (by_wave * self.root)
        cosine, sine = np.split(waves, 2, axis=1)
        by_cosine, by_sine = np.split(by_row, 2, axis=1)
        turned = self.ranks.T @ (by_cosine * sine - by_sine * cosine)
        return np.asarray((turned * self.frequencies).sum(axis=1) / lengths)

    def _solve(self, scale: Array, averaged: Numbers) -> _Solution:
        """Return the solution in the dimension of averages, or of features if these are fewer."""
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
        Of the features, over their prior deviations.
    by_feature : array
        Twice the slope of the log evidence by the logarithm of each feature's strength.
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
    """Return the Cholesky factor of I + a matrix, whose diagonal first grows by a part of it."""
    diagonal = np.diag_indices_from(matrix)
    matrix = matrix.astype(np.float64)
    matrix[diagonal] = 1 + (1 + guard) * matrix[diagonal]
    return factorise(matrix)


def _score(factor: Array, fit: float) -> float:
    """Return the log evidence from the Cholesky factor of C and sᵀ C⁻¹ s."""
    return -float(np.log(np.diag(factor)).sum() + 0.5 * fit)


MOST_COLUMNS = 60
"""With more columns lengths are not learnt: there would be too many for what is known of labels."""

_SUMS_ROWS, _LABELS_ROWS = 2048, 4096
"""Public rows at most, evenly spread, that stand for all rows of their groups, or whose labels are looked at."""

_FIRST_STEPS, _FURTHER_STEPS = 20, 12
"""Steps of the search at first, and where it goes on from lengths found before."""

_PRECISION = 1e-5
"""A step that gains less than this part of the log evidence is the last: single precision shows no more."""

_UNSEEN = 0.3
"""The part of the spread that interactions are expected to explain: sums over groups made for others hide it."""

_LEAST_STRENGTH, _LEAST_SHARE = 1e-7, 0.03
"""Expected strength of a block at least: in squared widths of the range, and of what all blocks explain."""


def can_learn(table: FeatureTable) -> bool:
    """Return whether the table has columns whose lengths can be learnt."""
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
    """Return the lengths of most evidence.

    Parameters
    ----------
    table : FeatureTable
    linear : Posterior
        The model so far.
    limits : Limits
        Where labels lie.
    sums, labels : lists
        What was released.
    spread : float
        Variance of labels around the model so far, where it was measured.
    known : Relevance, optional
        Lengths learnt from less: a start beside equal lengths. Without it the other start is lengths that are
        short for columns that matter alone. Of both results the more likely one is taken: sums over groups that
        were made for other features may have hidden an interaction that labels show.
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
    """Return the evidence of what was released; parameters are those of `learn_lengths`."""
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
    """Return the logarithms of what each block is expected to explain, in squared widths."""
    blocks = np.array(linear.blocks) / width**2
    interactions = max(blocks[2:].sum(), _UNSEEN * spread / width**2)
    expected = np.array([blocks[0], blocks[1], interactions])
    least = max(_LEAST_STRENGTH, _LEAST_SHARE * blocks.sum())
    return np.asarray(np.log(np.maximum(expected, least)))
