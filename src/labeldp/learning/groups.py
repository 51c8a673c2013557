"""Groups of rows whose noisy sums inform a linear model most, chosen without any label.

Under pure ε a row may move the released sums by one label's range in all, and the information in a sum grows with
the square of a row's part in it: so each row belongs to exactly one sum. Which one is chosen by the Bayes risk of
the linear model under the known noise, step by step (Frank and Wolfe's method). Groups depend on features only.

The group of a row, and the guess of its label, are functions of its own features, with the same bits in any batch:
so rows may be anywhere, and integer sums over groups are the same however rows are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csc_array

from labeldp._values import Array, Index, Small
from labeldp.learning.bayes import Observations, Posterior
from labeldp.learning.features import PIECE, FeatureTable, PublicFeatures, even_rows, exact_product

SEEN = 400_000
"""Rows at most, evenly spread, whose features stand for those of all rows in their groups."""

FINE = 2.0**30
"""Guesses are whole numbers over this, so that their sums are exact."""

_DIRECTIONS = 40
_STEPS = 8
_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""How many groups to choose from; with one, only the mean is released."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The group of a row, as a function of its features: the one whose score is largest.

    Attributes
    ----------
    public : PublicFeatures
    vectors : array, features × directions
    scores : array, directions × groups
    """

    public: PublicFeatures
    vectors: Array
    scores: Array

    def choose(self, features: Small) -> Index:
        """Return the groups of rows by their features, which are exact."""
        places = exact_product(self.vectors, features.T)
        return np.asarray(np.argmax(exact_product(self.scores, places), axis=0))

    def of(self, table: FeatureTable) -> Index:
        """Return the groups of a table's rows."""
        pieces = table.pieces(np.arange(table.rows), exact=True)
        return np.concatenate([self.choose(features) for _, features in pieces])


@dataclass(frozen=True, slots=True)
class Guess:
    """The guess of a row's label, as a function of its features: what a linear model predicts inside a range."""

    public: PublicFeatures
    linear: Posterior
    range: tuple[float, float]

    def of(self, table: FeatureTable) -> Array:
        """Return the guesses for a table's rows."""
        weights = self.linear.weights[:, None].astype(np.float64)
        pieces = table.pieces(np.arange(table.rows), exact=True)
        products = np.concatenate([exact_product(weights, features.T)[0] for _, features in pieces])
        return np.asarray(np.rint(np.clip(products + self.linear.mean, *self.range) * FINE) / FINE)


@dataclass(frozen=True, slots=True)
class Groups:
    """Which rows are summed together.

    Attributes
    ----------
    group : array of int
        Of each row in a table.
    sizes : array
        How many rows each group has, wherever they are.
    features : array, groups × features
        Sums of the features of some of them.
    seen : array
        How many these are.
    rule : Grouping or None
        What puts a row into its group; None if there is one group.
    """

    group: Index
    sizes: Array
    features: Small
    seen: Array
    rule: Grouping | None = None

    @classmethod
    def of_all(cls, table: FeatureTable, rows: int) -> Groups:
        """Return one group of all rows, of which the table may be a sample."""
        seen = table.sample_rows().size
        features = (table.moments[-1:] * seen).astype(np.float32)
        return cls(np.zeros(table.rows, np.int64), np.array([float(rows)]), features, np.array([float(seen)]))

    def observations(self, sums: Array, rest: float, noise: float) -> Observations:
        """Return the statistics of noisy sums of centred labels.

        A sum over g rows varies by g · rest + noise; where features of some of them stand for all, by as much more
        as if labels had the spread of features. Sums are scaled to unit variance by a guess of the rest.
        """
        part = self.sizes / self.seen
        level = self.sizes * part * rest + noise
        root = 1 / np.sqrt(level)
        scaled = (self.features * (part * root)[:, None]).astype(np.float32)
        share = float(np.mean(self.sizes * part / level))
        return Observations.of_few(scaled, sums * root, share, float(np.mean(noise / level)))


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
        seen = even_rows(table.rows, SEEN)
        for start in range(0, seen.size, PIECE):
            rows = seen[start : start + PIECE]
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

    def groups(
        self, table: FeatureTable, rows: int, *, noise: float, rest: float, known: Sequence[Small] = ()
    ) -> Groups:
        """Return the groups of least Bayes risk.

        Parameters
        ----------
        table : FeatureTable
        rows : int
            How many there are, of which the table may be a sample.
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
            choice = self._divide(count, rows, noise, rest, start)
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
        """Return the groups with these scores that have rows; places in them are scaled to lie inside ±1."""
        size = 2.0 ** np.frexp(np.abs(self.sample).max(axis=0).astype(np.float64))[1]
        vectors = np.zeros((table.public.size, len(size)))
        vectors[:-1, :-1], vectors[-1, -1] = self.vectors, self.constant
        rule = Grouping(table.public, vectors / size, scores * size[:, None])
        seen = even_rows(table.rows, SEEN)
        group, sums = np.zeros(seen.size, np.int64), np.zeros((scores.shape[1], len(vectors)), np.float32)
        for piece, features in table.pieces(seen, exact=True):
            group[piece] = rule.choose(features)
            sums += np.eye(len(sums), dtype=np.float32)[group[piece]].T @ features
        used, group = np.unique(group, return_inverse=True)
        rule, counts = replace(rule, scores=rule.scores[:, used]), np.bincount(group).astype(np.float64)
        if seen.size < table.rows:
            group = rule.of(table)
        return Groups(group, counts, sums[used], counts, rule)


def _places(features: Small, vectors: Small, constant: float) -> Small:
    ones = np.full((len(features), 1), constant, dtype=np.float32)
    return np.concatenate([features[:, :-1] @ vectors, ones], axis=1)
