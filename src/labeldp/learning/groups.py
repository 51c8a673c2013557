"""Groups of rows, and the noisy sums of their labels.

The group of a row, and the prediction of its label, are functions of its own features, with the same bits in any
batch: so rows may be anywhere, and integer sums over groups are the same however rows are added up.
`labeldp.learning.group_search` chooses the groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from labeldp._values import Array, Index, Small
from labeldp.learning.bayes import Posterior
from labeldp.learning.bayes_solvers import Observations
from labeldp.learning.feature_maps import exact_product
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.features import PIECE, PublicFeatures, even_rows
from labeldp.learning.label_units import Limits

SEEN = 400_000
"""Rows at most, evenly spread, whose features stand for those of all rows in their groups."""

PREDICTION_UNIT = 2.0**30
"""Predictions are integers over this, so that their sums are exact."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The group of a row, as a function of its features: the one whose score is largest.

    Attributes
    ----------
    public : PublicFeatures
    directions : array, features × directions
    scores : array, directions × groups
    """

    public: PublicFeatures
    directions: Array
    scores: Array

    def of_rows(self, X: Array) -> Index:
        """Return the groups of any rows, by their columns."""
        return self.of(FeatureTable(self.public, X, exact=True))

    def of(self, table: FeatureTable) -> Index:
        """Return the groups of a table's rows."""
        return np.concatenate([self.of_features(features) for features in table.exact_pieces()])

    def of_features(self, features: Small) -> Index:
        """Return the groups of rows by their features, which must be exact."""
        coordinates = exact_product(self.directions, features.T)
        return np.asarray(np.argmax(exact_product(self.scores, coordinates), axis=0))


@dataclass(frozen=True, slots=True)
class Predictor:
    """The prediction for a row, as a function of its features: that of a linear model, clipped to limits."""

    public: PublicFeatures
    linear: Posterior
    limits: Limits

    def of_rows(self, X: Array) -> Array:
        """Return the predictions for any rows, by their columns."""
        return self.of(FeatureTable(self.public, X, exact=True))

    def of(self, table: FeatureTable) -> Array:
        """Return the predictions for a table's rows."""
        weights = self.linear.weights[:, None].astype(np.float64)
        products = [exact_product(weights, features.T)[0] for features in table.exact_pieces()]
        predictions = np.clip(np.concatenate(products) + self.linear.mean, *self.limits)
        return np.asarray(np.rint(predictions * PREDICTION_UNIT) / PREDICTION_UNIT)


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

    @classmethod
    def by_rule(cls, table: FeatureTable, rule: Grouping) -> Groups:
        """Return the groups of a table's rows, without those that have no rows."""
        seen = even_rows(table.rows, SEEN)
        group = np.zeros(seen.size, np.int64)
        features = np.zeros((rule.scores.shape[1], table.public.size), np.float32)
        for piece, some in table.pieces(seen, exact=True):
            group[piece] = rule.of_features(some)
            features += _membership(group[piece], len(features)).T @ some
        used, group = np.unique(group, return_inverse=True)
        sizes = np.bincount(group).astype(np.float64)
        rule = replace(rule, scores=rule.scores[:, used])
        if seen.size < table.rows:
            group = rule.of(table)
        return cls(group, sizes, features[used], sizes, rule)

    def with_lengths(self, table: FeatureTable) -> Groups:
        """Return the same groups with the features of a table of the same rows that has other interactions."""
        fixed, old = table.public.fixed, self.features
        features = np.zeros((len(old), table.public.size), dtype=np.float32)
        features[:, :fixed] = old[:, :fixed]
        features[:, -1] = old[:, -1]
        seen = even_rows(table.rows, SEEN)
        for start in range(0, seen.size, PIECE):
            rows = seen[start : start + PIECE]
            interactions = table.public.interactions(table.ranks(rows))
            features[:, fixed:-1] += _membership(self.group[rows], len(old)).T @ interactions
        return replace(self, features=features)


def _membership(group: Index, groups: int) -> Small:
    """Return rows × groups, 1 where a row is in a group and 0 elsewhere."""
    return np.eye(groups, dtype=np.float32)[group]


@dataclass(frozen=True, slots=True)
class NoisySums:
    """Noisy sums of centred labels over groups, and the variance of their noise."""

    groups: Groups
    sums: Array
    noise: float

    def observations(self, rest: float) -> Observations:
        """Return the statistics of these sums for a linear model.

        A sum over g rows has the variance g · rest + noise around what features explain; where the features of
        some rows stand for those of all, by as much more as if labels varied like features. Sums are scaled to
        unit variance.

        Parameters
        ----------
        rest : float
            The expected variance of a label that features do not explain.
        """
        sizes = self.groups.sizes
        times = sizes / self.groups.seen
        variance = sizes * times * rest + self.noise
        root = 1 / np.sqrt(variance)
        scaled = (self.groups.features * (times * root)[:, None]).astype(np.float32)
        share = float(np.mean(sizes * times / variance))
        return Observations.of_few(scaled, self.sums * root, share, float(np.mean(self.noise / variance)))

    def with_lengths(self, table: FeatureTable) -> NoisySums:
        """Return these sums with the features of a table of the same rows that has other interactions."""
        return replace(self, groups=self.groups.with_lengths(table))
