"""Which columns interact, and on which lengths: learnt from noisy sums and private labels, at no further cost.

The interactions of `PublicFeatures` are waves over the ranks of all columns, with one length a column: a column
with a long one hardly matters. Lengths and strengths of blocks of features maximise the evidence of averages s of
labels, under a normal prior of their logarithms. With s = Xw + noise, all divided by the deviation of each s, and
w ~ N(0, R²), R² the strength of each feature's block:
C = I + X R² Xᵀ, log evidence = −½(log|C| + sᵀ C⁻¹ s), a = C⁻¹ s; its slope by a column x of X is R²(a aᵀ − C⁻¹)x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize
from scipy.sparse import csr_array, vstack

from labeldp._values import Array, Index, Small
from labeldp.learning.bayes import MEAN_VARIANCE, Posterior
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.features import even_rows
from labeldp.learning.groups import NoisySums
from labeldp.learning.label_units import LabelSummary
from labeldp.learning.learner import PrivateRows
from labeldp.learning.waves import FREQUENCIES, frequencies

MOST_COLUMNS = 60
"""With more columns lengths are not learnt: there would be too many for what is known of labels."""

_SUMS_ROWS, _LABELS_ROWS = 2048, 4096
"""Public rows at most, evenly spread, that stand for all rows of their groups, or whose labels are looked at."""

_ITERATIONS, _AGAIN = 20, 12
"""Steps of the search at first, and where it goes on from lengths found before."""

_LENGTH, _COMMON, _STRENGTH = 1.0, 0.7, 1.0
"""Prior deviations of the logarithms of each length, of what all lengths share, and of strengths."""

_SHORT, _LONG = 0.5, 10.0
"""Lengths before anything is known of them, in ranges of ranks, over the root of the number of columns that
matter; and the longest."""

_UNSEEN = 0.3
"""The part of the spread that interactions are expected to explain: sums over groups made for others hide it."""

_DOUBT = 3.0
"""Log odds against interactions before anything is known: lengths that fit noise cost more than others gain."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """Lengths of columns.

    Attributes
    ----------
    lengths : array
    doubt : float
        Log odds against interactions with these lengths, which were chosen to fit: by Laplace's method.
    centre, place : arrays
        Logarithms of lengths before, and what was found, in prior deviations from there.
    """

    lengths: Array
    doubt: float
    centre: Array
    place: Array


def can_learn(table: FeatureTable) -> bool:
    """Whether the table has columns whose lengths can be learnt."""
    return 2 <= table.columns <= MOST_COLUMNS


def first_lengths(columns: int) -> Array:
    """Return lengths before anything is known."""
    return np.full(columns, _SHORT * math.sqrt(columns))


def learn_lengths(
    table: FeatureTable,
    linear: Posterior,
    summary: LabelSummary,
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
    summary : LabelSummary
    sums, labels : lists
        What was released.
    spread : float
        Variance of labels around the model so far, where it was measured.
    known : Relevance, optional
        Where to start from. Else from equal lengths, and then from lengths that are short for columns that matter
        alone: of both results the more likely one.
    """
    evidence = _Evidence(table, linear, summary, sums, labels, spread)
    if known is not None:
        return evidence.climb(known.centre, known.place, _AGAIN)[1]
    nowhere = np.zeros(table.columns + 1)
    equal = evidence.climb(np.log(first_lengths(table.columns)), nowhere, _ITERATIONS)
    other = evidence.climb(evidence.inherited_lengths(equal[1]), nowhere, _ITERATIONS)
    return max(equal, other, key=lambda found: found[0])[1]


class _Evidence:
    """The evidence of averages of labels over groups of rows, and of single labels, as a function of lengths.

    Its argument are strengths of three blocks (linear, additive, interactions), what lengths share, and each
    length, in prior deviations from what is expected.
    """

    def __init__(
        self,
        table: FeatureTable,
        linear: Posterior,
        summary: LabelSummary,
        sums: list[NoisySums],
        labels: list[PrivateRows],
        spread: float,
    ) -> None:
        width, rest = summary.width, min(linear.rest, spread or linear.rest)
        rows = even_rows(table.rows, _LABELS_ROWS if labels else _SUMS_ROWS)
        position = np.full(table.rows, -1)
        position[rows] = np.arange(rows.size)
        self.ranks = np.ascontiguousarray((table.ranks(rows) - np.float32(0.5)).T)
        self.frequencies = frequencies(table.columns).astype(np.float32)
        self.block = table.public.block[table.public.block < 2]
        averages, values, variances = [], [], []
        for each in sums:
            average, used = _averages(each.groups.group[rows], each.groups.sizes.size)
            sizes = each.groups.sizes[used]
            averages.append(average)
            values.append(each.sums[used] / sizes)
            variances.append((rest + each.noise / sizes) / sizes)
        for some in labels:
            at = position[some.rows]
            here = at >= 0
            averages.append(_members(at[here], rows.size))
            values.append(some.labels[here] - summary.middle)
            variances.append(np.full(np.count_nonzero(here), rest + some.noise))
        self.average = vstack(averages, format="csr")
        self.transposed = self.average.T.tocsr()
        self.root = (width / np.sqrt(np.concatenate(variances))).astype(np.float32)[:, None]
        self.values = np.concatenate(values) / width * self.root[:, 0]
        features = np.concatenate([piece[:, : self.block.size] for _, piece in table.pieces(rows)])
        constant = np.full((self.values.size, 1), math.sqrt(MEAN_VARIANCE), dtype=np.float32)
        self.fixed = np.concatenate([self.average @ features, constant], axis=1) * self.root
        self.gram = self.fixed.T @ self.fixed
        blocks = np.array(linear.blocks) / width**2
        expected = np.array([blocks[0], blocks[1], max(blocks[2:].sum(), _UNSEEN * spread / width**2)])
        self.strengths = np.log(np.maximum(expected, max(1e-7, 0.03 * blocks.sum())))
        self.owner = np.concatenate([self.block, [3], np.full(2 * FREQUENCIES, 2)])  # 3: the constant

    def climb(self, centre: Array, place: Array, steps: int) -> tuple[float, Relevance]:
        """Return the log evidence of the best lengths, averaged over those that are as likely, and these."""
        found = minimize(
            self._slope,
            np.append(np.zeros(3), place),
            (centre,),
            "L-BFGS-B",
            jac=True,
            bounds=[(-4.0, 4.0)] * (3 + place.size),
            options={"maxiter": steps, "maxfun": 2 * steps},
        )
        covariance = found.hess_inv.todense()[3:, 3:]
        likely = np.clip(np.linalg.eigvalsh((covariance + covariance.T) / 2), 1e-12, 1.0)
        volume = 0.5 * float(np.log(likely).sum())
        place = found.x[3:]
        doubt = _DOUBT + 0.5 * float(place @ place) - volume
        return volume - float(found.fun), Relevance(_lengths(centre, place), doubt, centre, place)

    def inherited_lengths(self, found: Relevance) -> Array:
        """Return logarithms of lengths that are short for columns that matter alone."""
        scale = self._scale(np.zeros(3))
        weights = (scale * self._solve(scale, self._waves(found.lengths)[1])[3])[: self.block.size]
        alone = np.bincount(np.arange(self.block.size) % len(found.lengths), weights**2)
        share = np.maximum(alone / max(float(alone.sum()), 1e-300), (_SHORT / _LONG) ** 2)
        return np.asarray(np.log(_SHORT / np.sqrt(share)))

    def _scale(self, strengths: Array) -> Array:
        """Return the prior deviation of each feature's weight."""
        deviations = np.exp(0.5 * np.append(self.strengths + _STRENGTH * strengths, 0.0))
        return np.asarray(deviations[self.owner])

    def _waves(self, lengths: Array) -> tuple[Small, Small]:
        """Return waves of the rows, and their averages."""
        angles = (self.ranks / lengths.astype(np.float32)) @ self.frequencies
        waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.float32(math.sqrt(FREQUENCIES))
        averaged: Small = (self.average @ waves) * self.root
        return np.asarray(waves, dtype=np.float32), averaged

    def _slope(self, place: Array, centre: Array) -> tuple[float, Array]:
        """Return minus the log evidence and log prior, and their slope."""
        lengths, scale = _lengths(centre, place[3:]), self._scale(place[:3])
        waves, averaged = self._waves(lengths)
        score, by_strength, by_wave, _ = self._solve(scale, averaged)
        moved = self.transposed @ (by_wave * self.root)
        cosine, sine = np.split(waves, 2, axis=1)
        by_cosine, by_sine = np.split(moved, 2, axis=1)
        turned = self.ranks.T @ (by_cosine * sine - by_sine * cosine)
        by_length = (turned * self.frequencies).sum(axis=1) / lengths
        slope = np.concatenate([_STRENGTH * by_strength, [_COMMON * by_length.sum()], _LENGTH * by_length])
        return float(0.5 * place @ place - score), np.asarray(place - slope, dtype=np.float64)

    def _solve(self, scale: Array, averaged: Small) -> tuple[float, Array, Small, Array]:
        """Return the log evidence, its slopes by log strengths and by waves, and weights over their deviations.

        In the dimension of averages, or of features if these are fewer.
        """
        values, fixed = self.values, self.fixed.shape[1]
        if values.size <= scale.size:
            scaled = np.concatenate([self.fixed, averaged], axis=1) * scale
            factor = _factor(scaled @ scaled.T)
            inverse = cho_solve((factor, True), np.eye(values.size), check_finite=False)
            residual = inverse @ values
            weights, spread = residual @ scaled, inverse @ scaled
            fit, by_feature = residual @ values, weights**2 - np.einsum("ij,ij->j", scaled, spread)
            hidden = spread[:, fixed:] / scale[fixed:]
        else:
            gram = np.block(
                [[self.gram, self.fixed.T @ averaged], [averaged.T @ self.fixed, averaged.T @ averaged]]
            )
            factor = _factor(gram * scale * scale[:, None])
            inverse = cho_solve((factor, True), np.eye(scale.size), check_finite=False)
            small = values.astype(np.float32)
            moment = scale * np.concatenate([small @ self.fixed, small @ averaged])
            weights = inverse @ moment
            fit, by_feature = values @ values - moment @ weights, weights**2 + np.diag(inverse) - 1
            real = (scale * weights).astype(np.float32)
            residual = values - self.fixed @ real[:fixed] - averaged @ real[fixed:]
            spread = (scale[:, None] * inverse[:, fixed:] / scale[fixed:]).astype(np.float32)
            hidden = self.fixed @ spread[:fixed] + averaged @ spread[fixed:]
        score = -float(np.log(np.diag(factor)).sum() + 0.5 * fit)
        by_strength: Array = 0.5 * np.bincount(self.owner, by_feature, 4)[:3].astype(np.float64)
        small = residual.astype(np.float32)
        by_wave = np.outer(small, small @ averaged) - hidden.astype(np.float32)
        return score, by_strength, by_wave * np.float32(scale[-1] ** 2), np.asarray(weights)


def _lengths(centre: Array, place: Array) -> Array:
    return np.asarray(np.exp(centre + _COMMON * place[0] + _LENGTH * place[1:]))


def _factor(matrix: Array) -> Array:
    """Return the Cholesky factor of I + a matrix, whose products may be of single precision."""
    diagonal = np.diag_indices_from(matrix)
    matrix = matrix.astype(np.float64)
    matrix[diagonal] = 1 + (1 + 1e-5) * matrix[diagonal]
    return np.asarray(cholesky(matrix, lower=True, check_finite=False, overwrite_a=True))


def _members(at: Index, rows: int) -> csr_array:
    """Return a matrix that picks rows."""
    return csr_array((np.ones(at.size, dtype=np.float32), (np.arange(at.size), at)), shape=(at.size, rows))


def _averages(group: Index, groups: int) -> tuple[csr_array, Index]:
    """Return a matrix that averages rows by groups, and which groups have rows here."""
    sizes = np.bincount(group, minlength=groups)
    used = np.flatnonzero(sizes)
    share = 1 / sizes[group].astype(np.float32)
    matrix = csr_array((share, (group, np.arange(group.size))), shape=(groups, group.size))
    return matrix[used], used
