"""Groups of rows whose noisy sums inform a linear model most, chosen without any label.

Under pure ε a row may move the released sums by one label's range in all, and the information in a sum grows with
the square of a row's part in it: so each row belongs to exactly one sum. Which one is chosen by the Bayes risk of
the linear model under the known noise, step by step (Frank and Wolfe's method). Groups depend on features only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csc_array

from labeldp._values import Array, Index, Small
from labeldp.learning.bayes import Observations
from labeldp.learning.features import PIECE, FeatureTable

_DIRECTIONS = 40
_STEPS = 8
_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""How many groups to choose from; with one, only the mean is released."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Which rows are summed together.

    Attributes
    ----------
    group : array of int
        Of each row.
    sizes : array
        How many rows each group has.
    features : array, groups × features
        Sums of the rows' features.
    """

    group: Index
    sizes: Array
    features: Small

    @classmethod
    def of_all(cls, table: FeatureTable, rows: int) -> Groups:
        """Return one group of all rows, of which the table may be a sample."""
        features = (table.moments[-1:] * rows).astype(np.float32)
        return cls(np.zeros(table.rows, np.int64), np.array([float(rows)]), features)

    def observations(self, sums: Array, rest: float, noise: float) -> Observations:
        """Return the statistics of noisy sums of centred labels.

        A sum over g rows varies by g · rest + noise. Sums are scaled to unit variance by a guess of the rest.
        """
        level = self.sizes * rest + noise
        root = 1 / np.sqrt(level)
        scaled = (self.features * root[:, None]).astype(np.float32)
        share, part = float(np.mean(self.sizes / level)), float(np.mean(noise / level))
        return Observations.of_few(scaled, sums * root, share, part)


@dataclass(frozen=True, slots=True)
class NoisySums:
    """Noisy sums of centred labels over groups, and the variance of their noise."""

    groups: Groups
    sums: Array
    noise: float

    def observations(self, rest: float) -> Observations:
        """Return their statistics, by a guess of what features do not explain."""
        return self.groups.observations(self.sums, rest, self.noise)

    def on(self, table: FeatureTable) -> NoisySums:
        """Return these sums with the features of the same rows in a table with other interactions."""
        group, old, fixed = self.groups.group, self.groups.features, table.public.fixed
        sums = np.zeros((len(old), table.public.size), dtype=np.float32)
        sums[:, :fixed], sums[:, -1] = old[:, :fixed], old[:, -1]
        for start in range(0, table.rows, PIECE):
            rows = np.arange(start, min(start + PIECE, table.rows))
            members = np.eye(len(old), dtype=np.float32)[group[rows]]
            sums[:, fixed:-1] += members.T @ table.public.interactions(table.ranks(rows))
        return NoisySums(replace(self.groups, features=sums), self.sums, self.noise)


@dataclass(frozen=True, slots=True)
class Geometry:
    """The leading directions of the features under a prior of the weights, and a sample of rows in them.

    Attributes
    ----------
    vectors : array, features × directions
    constant : float
        The prior deviation of the intercept, the last direction.
    sample : array, rows × directions
    gram : array
        Second moments of the sample.
    """

    vectors: Small
    constant: float
    sample: Small
    gram: Array

    @classmethod
    def of(cls, table: FeatureTable, prior: Array) -> Geometry:
        """Return the geometry of a table's rows; ``prior`` holds the variance of each weight."""
        root = np.sqrt(prior)
        scaled = (table.moments * root * root[:, None])[:-1, :-1].astype(np.float32)
        size = len(scaled)
        axes = eigh(scaled, subset_by_index=(max(0, size - _DIRECTIONS), size - 1), check_finite=False)[1]
        vectors = np.asarray(root[:-1, None] * axes[:, ::-1], dtype=np.float32)
        constant = float(root[-1])
        rows = table.sample_rows()
        sample = np.concatenate([_places(features, vectors, constant) for _, features in table.pieces(rows)])
        return cls(vectors, constant, sample, (sample.T @ sample / np.float32(len(sample))).astype(np.float64))

    def groups(self, table: FeatureTable, *, noise: float, rest: float, known: Sequence[Small] = ()) -> Groups:
        """Return the groups of least Bayes risk.

        Parameters
        ----------
        table : FeatureTable
        noise : float
            Variance of the noise of a sum.
        rest : float
            Variance of a label that features do not explain.
        known : arrays
            Precisions of the weights that earlier sums gave.
        """
        start = np.eye(len(self.gram))
        axes = np.zeros((table.public.size, len(self.gram)))
        axes[:-1, :-1], axes[-1, -1] = self.vectors, self.constant
        for precision in known:
            start += axes.T @ precision.astype(np.float64) @ axes
        best, worse = (np.inf, np.zeros((len(self.gram), 1), dtype=np.float32)), 0
        for count in _COUNTS:
            if count > max(1, table.rows // 4) or worse == 2:
                break
            choice = self._divide(count, table.rows, noise, rest, start)
            best, worse = (choice, 0) if choice[0] < best[0] else (best, worse + 1)
        return self._assign(table, best[1])

    def _divide(self, count: int, rows: int, noise: float, rest: float, start: Array) -> tuple[float, Small]:
        """Return the least risk found with so many groups, and the scores whose largest names a row's group."""
        places, rng = self.sample, np.random.default_rng(0)
        grow, ones = rows / len(places), np.ones(len(places), dtype=np.float32)

        def evaluate(group: Index) -> tuple[float, Array]:
            """Return the risk, and how it falls where a row joins a group."""
            sizes = np.bincount(group, minlength=count) * grow
            level = noise + sizes * rest
            members = csc_array((ones, group, np.arange(len(places) + 1)), shape=(count, len(places)))
            sums = grow * np.asarray(members @ places, dtype=np.float64)
            spread = np.linalg.inv(start + (sums.T / level) @ sums)
            risk = float(np.trace(spread @ self.gram))
            return risk, (spread @ self.gram @ spread @ sums.T) / level

        scores = self._first_scores(count, rng)
        group = np.argmax(places @ scores, axis=1)
        risk, slope = evaluate(group)
        best, share = (risk, scores), 1.0
        for _ in range(_STEPS):
            scores = slope.astype(np.float32)
            wish = np.argmax(places @ scores, axis=1)
            wish_risk, wish_slope = evaluate(wish)
            best = min(best, (wish_risk, scores), key=lambda pair: pair[0])
            if share < 1:
                wish = np.where(rng.random(len(places)) < share, wish, group)
                wish_risk, wish_slope = evaluate(wish)
            if wish_risk < risk:
                group, risk, slope = wish, wish_risk, wish_slope
            else:
                share /= 2
            if share < 0.1:
                break
        return best

    def _first_scores(self, count: int, rng: np.random.Generator) -> Small:
        """Return the constant, then leading axes, then random rows, each of the same size over the sample."""
        places, size = self.sample, len(self.gram)
        scores = np.zeros((size, count), dtype=np.float32)
        scores[-1, 0] = 1
        axes = np.arange(1, min(size, count))
        scores[axes - 1, axes] = 1
        if count > size:
            rows = places[rng.choice(len(places), count - size, replace=len(places) < count - size)]
            scores[:, size:] = (rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)[:, None]).T
        spread = np.linalg.norm(places @ scores, axis=0) / np.sqrt(len(places))
        return np.asarray(scores / np.maximum(spread, 1e-12), dtype=np.float32)

    def _assign(self, table: FeatureTable, scores: Small) -> Groups:
        group = np.zeros(table.rows, dtype=np.int64)
        sums = np.zeros((scores.shape[1], table.public.size), dtype=np.float32)
        for piece, features in table.pieces(np.arange(table.rows)):
            group[piece] = np.argmax(_places(features, self.vectors, self.constant) @ scores, axis=1)
            sums += np.eye(len(sums), dtype=np.float32)[group[piece]].T @ features
        used, group = np.unique(group, return_inverse=True)
        return Groups(group, np.bincount(group).astype(np.float64), sums[used])


def _places(features: Small, vectors: Small, constant: float) -> Small:
    ones = np.full((len(features), 1), constant, dtype=np.float32)
    return np.concatenate([features[:, :-1] @ vectors, ones], axis=1)
