"""Groups of rows, and the noisy sums of their labels.

The group of a row, and the prediction of its label, are functions of its own features, with the same bits in any
batch. So rows may be on any machine, and integer sums over groups do not depend on the order of addition.

Groups are chosen without any label. Each row belongs to exactly one group: a label may move all released sums by
the range of labels in total, and the information in a sum grows with the square of a row's weight in it, so that
one full weight is better than several parts. Groups minimise the Bayes risk of the linear model under the known
noise, in steps of the Frank-Wolfe method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from labeldp._values import Array, Index, Small
from labeldp.learning.feature_maps import exact_product
from labeldp.learning.features import FeatureTable, PublicFeatures, slices
from labeldp.learning.fit_plan import Limits
from labeldp.learning.linear_gaussian import GroupRisk, Observation
from labeldp.learning.model_average import Posterior
from labeldp.learning.threads import in_parallel

PREDICTION_UNIT = 2.0**30
"""Predictions are integers over this, so that their sums are exact."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The rule that assigns a row to the group with the largest score, a function of the row's features.

    Attributes
    ----------
    public : PublicFeatures
    directions : array, features × directions
    scores : array, directions × groups
    """

    public: PublicFeatures
    directions: Array
    scores: Array

    def of(self, table: FeatureTable) -> Index:
        """Return the groups of a table's rows."""
        pieces = table.map(lambda features, _: self.of_features(features))
        return np.concatenate(list(pieces))

    def of_features(self, features: Small) -> Index:
        """Return the groups of rows by their features, which must be exact."""
        coordinates = exact_product(self.directions, features.T)
        return np.asarray(np.argmax(exact_product(self.scores, coordinates), axis=0))


@dataclass(frozen=True, slots=True)
class Predictor:
    """The linear model that predicts the label of a row from its features, clipped to limits."""

    public: PublicFeatures
    linear: Posterior
    limits: Limits

    def of(self, table: FeatureTable) -> Array:
        """Return the predictions for a table's rows."""
        weights = self.linear.weights[:, None].astype(np.float64)
        pieces = table.map(lambda features, _: exact_product(weights, features.T)[0])
        predictions = np.clip(np.concatenate(list(pieces)) + self.linear.mean, *self.limits)
        return np.rint(predictions * PREDICTION_UNIT) / PREDICTION_UNIT


@dataclass(frozen=True, slots=True)
class Groups:
    """A partition of the rows into groups whose labels are summed.

    Attributes
    ----------
    group : array of int
        The group of each row of the table.
    sizes : array
        The number of all rows of each group, in the table or not.
    features : array, groups × features
        Sums of the features of a sample of each group's rows.
    sample_sizes : array
        The number of rows in each sample.
    rule : Grouping or None
        The rule that assigns rows to groups; None if there is one group.
    """

    group: Index
    sizes: Array
    features: Small
    sample_sizes: Array
    rule: Grouping | None = None

    @classmethod
    def of_all(cls, table: FeatureTable, rows: int) -> Groups:
        """Return one group of all rows, of which the table may be a sample."""
        sampled = table.sample_rows().size
        features = (table.moments[-1:] * sampled).astype(np.float32)
        return cls(np.zeros(table.rows, np.int64), np.array([float(rows)]), features, np.array([float(sampled)]))

    @classmethod
    def by_rule(cls, table: FeatureTable, rule: Grouping) -> Groups:
        """Return the groups of a table's rows, without those that have no rows."""
        count = rule.scores.shape[1]

        def add_up(features: Small, _: slice) -> tuple[Index, Small]:
            group = rule.of_features(features)
            return group, _membership(group, count).T @ features

        sums = np.zeros((count, table.public.size), np.float32)
        groups = []
        for piece_groups, piece_sums in table.map(add_up):
            groups.append(piece_groups)
            sums += piece_sums
        occupied, group = np.unique(np.concatenate(groups), return_inverse=True)
        sizes = np.bincount(group).astype(np.float64)
        return cls(group, sizes, sums[occupied], sizes, replace(rule, scores=rule.scores[:, occupied]))

    def with_interactions(self, interactions: Small, fixed: int) -> Groups:
        """Return the groups with other sums of interactions, which are between fixed features and the constant."""
        features = [self.features[:, :fixed], interactions, self.features[:, -1:]]
        return replace(self, features=np.concatenate(features, axis=1))


def _membership(group: Index, groups: int) -> Small:
    """Return rows × groups, 1 where a row is in a group and 0 elsewhere."""
    return np.eye(groups, dtype=np.float32)[group]


@dataclass(frozen=True, slots=True)
class NoisySums:
    """Noisy sums of centred labels over groups.

    Attributes
    ----------
    groups : Groups
    values : array
    noise_variance : float
        Of each value, in squared units of the label.
    """

    groups: Groups
    values: Array
    noise_variance: float

    def observation(self, residual_variance: float) -> Observation:
        """Return these sums as a linear model takes them.

        A sum over g rows has the variance g · residual_variance + noise around what features explain; where the
        features of some rows stand for those of all, by as much more as if labels varied like features. Sums are
        scaled to unit variance.

        Parameters
        ----------
        residual_variance : float
            The expected variance of a label that features do not explain.
        """
        scale = self.groups.sizes / self.groups.sample_sizes
        noise, rows = self.noise_variance, self.groups.sizes * scale
        return Observation.of_sums(self.groups.features, scale, self.values, rows, noise, residual_variance)


def with_length_scales(sums: Sequence[NoisySums], table: FeatureTable) -> tuple[NoisySums, ...]:
    """Return sums with the features of a table of the same rows that has other interactions."""

    def add_up(piece: slice) -> Small:
        members = [_membership(item.groups.group[piece], item.values.size) for item in sums]
        return np.concatenate(members, axis=1).T @ table.interactions(piece)

    interactions: Any = sum(in_parallel(add_up, slices(table.rows)))
    ends = np.cumsum([item.values.size for item in sums])[:-1]
    return tuple(
        replace(item, groups=item.groups.with_interactions(features, table.public.fixed))
        for item, features in zip(sums, np.split(interactions, ends), strict=True)
    )


_DIRECTIONS = 40
"""The number of directions of features in which groups differ; the other directions hardly vary."""

_PASSES = 3
"""Iterations to find the directions."""

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Numbers of groups to choose from."""

_MIN_ROWS_A_GROUP = 4
"""The fewest rows that a group has on average."""

_PATIENCE = 2
"""The search ends after so many numbers of groups in a row that are worse than the best one."""

_STEPS = 8
"""Steps for each number of groups."""

_MIN_SHARE = 0.1
"""The smallest share of rows that change groups in a step. The share is halved where a step does not help."""


@dataclass(frozen=True, slots=True)
class GroupSearch:
    """A search for the best groups, in the leading directions of the features under a prior of the weights.

    Attributes
    ----------
    axes : array, features × directions
        The last direction is the constant.
    sample : array, rows × directions
        Coordinates of the sample.
    gram : array, directions × directions
        Mean products of these coordinates.
    """

    axes: Array
    sample: Small
    gram: Array

    @classmethod
    def of(cls, table: FeatureTable, prior: Array) -> GroupSearch:
        """Return the search among a table's rows; ``prior`` is the variance of each feature's weight."""
        root = np.sqrt(prior)
        scaled = (table.moments * root * root[:, None])[:-1, :-1].astype(np.float32)
        size = len(scaled)
        leading = randomized_svd(scaled, min(size, _DIRECTIONS), n_iter=_PASSES, random_state=0)[0]
        directions = np.asarray(root[:-1, None] * leading, dtype=np.float32)
        rows = table.sample_rows()
        sample = np.full((rows.size, directions.shape[1] + 1), root[-1], dtype=np.float32)
        coordinates = table.map(lambda features, _: features[:, :-1] @ directions, rows)
        sample[:, :-1] = np.concatenate(list(coordinates))
        axes = np.zeros((size + 1, sample.shape[1]))
        axes[:-1, :-1] = directions
        axes[-1, -1] = root[-1]
        return cls(axes, sample, (sample.T @ sample / np.float32(len(sample))).astype(np.float64))

    def groups(
        self,
        table: FeatureTable,
        rows: int,
        *,
        noise: float,
        residual_variance: float,
        earlier_grams: Sequence[Small] = (),
    ) -> Groups:
        """Return the groups of least Bayes risk.

        Parameters
        ----------
        table : FeatureTable
        rows : int
            The number of rows; the table may be a sample of them.
        noise : float
            Variance of the noise of a sum.
        residual_variance : float
            Variance of a label that features do not explain.
        earlier_grams : arrays
            Precisions of the weights from earlier sums.
        """
        precision = np.zeros_like(self.gram)
        for gram in earlier_grams:
            precision += self.axes.T @ gram.astype(np.float64) @ self.axes
        weight = rows / len(self.sample)
        risk = GroupRisk(self.sample, weight, self.gram, precision, noise, residual_variance)
        return Groups.by_rule(table, self._rule(table, self._best_scores(table.rows, risk)))

    def _best_scores(self, rows: int, group_risk: GroupRisk) -> Small:
        """Return the scores of least risk among several numbers of groups."""
        largest = max(1, rows // _MIN_ROWS_A_GROUP)
        least_risk, best_scores, failures = np.inf, np.zeros((len(self.gram), 1), dtype=np.float32), 0
        for count in takewhile(lambda count: count <= largest, _COUNTS):
            risk, scores = self._search(count, group_risk)
            if risk < least_risk:
                least_risk, best_scores, failures = risk, scores, 0
            else:
                failures += 1
            if failures == _PATIENCE:
                break
        return best_scores

    def _search(self, count: int, group_risk: GroupRisk) -> tuple[float, Small]:
        """Return the least risk of so many groups, and scores: a row's group has its largest one.

        A row's best group, if all others stay, has the steepest descent of the risk: so these are the scores to
        try. All rows, or a part of them, move to their best groups at once.
        """
        rng = np.random.default_rng(0)
        scores = self._first_scores(count, rng)
        group = np.argmax(self.sample @ scores, axis=1)
        risk, descent = group_risk.assess(group, count)
        best = (risk, scores)
        share = 1.0
        for _ in range(_STEPS):
            scores = descent.astype(np.float32)
            next_group = np.argmax(self.sample @ scores, axis=1)
            next_risk, next_descent = group_risk.assess(next_group, count)
            if next_risk < best[0]:
                best = (next_risk, scores)
            if share < 1:
                next_group = np.where(rng.random(len(self.sample)) < share, next_group, group)
                next_risk, next_descent = group_risk.assess(next_group, count)
            if next_risk < risk:
                group, risk, descent = next_group, next_risk, next_descent
            else:
                share /= 2
            if share < _MIN_SHARE:
                break
        return best

    def _first_scores(self, count: int, rng: np.random.Generator) -> Small:
        """Return the constant, then leading axes, then random rows, each of the same size over the sample."""
        size = len(self.gram)
        scores = np.zeros((size, count), dtype=np.float32)
        scores[-1, 0] = 1
        axes = np.arange(1, min(size, count))
        scores[axes - 1, axes] = 1
        if count > size:
            indices = rng.choice(len(self.sample), count - size, replace=len(self.sample) < count - size)
            rows = self.sample[indices]
            scores[:, size:] = (rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)[:, None]).T
        spread = np.linalg.norm(self.sample @ scores, axis=0) / np.sqrt(len(self.sample))
        return np.asarray(scores / np.maximum(spread, 1e-12), dtype=np.float32)

    def _rule(self, table: FeatureTable, scores: Small) -> Grouping:
        """Return the rule with these scores, for coordinates that are scaled to lie inside ±1."""
        largest = np.abs(self.sample).max(axis=0).astype(np.float64)
        size = 2.0 ** np.frexp(largest)[1]
        return Grouping(table.public, self.axes / size, scores * size[:, None])
