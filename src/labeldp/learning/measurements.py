"""Measurements of a model: all that was released about labels, as a linear model takes it.

They are noisy sums with the public features of their groups, and the sums of products of private labels with
features (sufficient statistics). A model is a function of them: measurements of other rows are added as further
observations, under the same features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from labeldp._values import Array, Index, Mask, Small
from labeldp.learning.feature_maps import Codes
from labeldp.learning.features import FeatureTable
from labeldp.learning.groups import NoisySums
from labeldp.learning.linear_gaussian import Observation

T = TypeVar("T")


def join_arrays(items: Sequence[T], axis: int = 0) -> T:
    """Return objects with the same arrays as one, with each array joined; there is at least one."""
    kind: Any = type(items[0])
    arrays = {name: [getattr(item, name) for item in items] for name in kind.__dataclass_fields__}
    joined: T = kind(**{name: np.concatenate(pieces, axis) for name, pieces in arrays.items()})
    return joined


def _join_present(items: Sequence[T | None]) -> T | None:
    """Return the items that are there as one; None if there is none."""
    present = [item for item in items if item is not None]
    return join_arrays(present) if present else None


def precision_weights(noise: Array, residual_variance: float) -> Array:
    """Return the precisions of labels with these variances of noise, divided by their mean."""
    precision = 1 / (noise + residual_variance)
    return np.asarray(precision / precision.mean())


@dataclass(frozen=True, slots=True)
class PrivateRows:
    """Private labels of rows that have the same round and noise variance."""

    rows: Index
    labels: Array
    noise: float
    round: int

    def where(self, keep: Mask) -> PrivateRows:
        """Return some of these rows."""
        return PrivateRows(self.rows[keep], self.labels[keep], self.noise, self.round)

    def observation(self, table: FeatureTable, middle: float, earlier: Observation | None = None) -> Observation:
        """Return the labels as a linear model takes them, measured from the middle of their range."""
        return table.observation(self.rows, self.labels - middle, self.noise, earlier)


@dataclass(frozen=True, slots=True, eq=False)
class LabelRows:
    """Private labels, and what trees see of their rows.

    Attributes
    ----------
    codes : array, rows × columns
        Codes of columns among public quantiles.
    labels, noise : arrays
        Private labels in unit scale, and the variance of their noise.
    """

    codes: Codes
    labels: Array
    noise: Array

    @classmethod
    def of(cls, table: FeatureTable, private: Sequence[PrivateRows]) -> LabelRows:
        """Return the private labels of rows of a table."""
        rows = np.concatenate([item.rows for item in private])
        labels = np.concatenate([item.labels for item in private])
        noise = np.repeat([item.noise for item in private], [item.rows.size for item in private])
        return cls(table.codes(rows), labels, noise)

    def thin(self, max_rows: int, rng: np.random.Generator) -> LabelRows:
        """Return a random sample of about this many labels at most."""
        total = self.labels.size
        return self if total <= max_rows else self.take(rng.random(total) < max_rows / total)

    def take(self, rows: Mask) -> LabelRows:
        """Return some of the labels."""
        return LabelRows(self.codes[rows], self.labels[rows], self.noise[rows])

    def weights(self, residual_variance: float) -> Array:
        """Return the weights of the labels for a learner."""
        return precision_weights(self.noise, residual_variance)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedSums:
    """Noisy sums of labels minus the middle of their range, by groups of rows.

    Attributes
    ----------
    features : array, groups × features
        Mean features of the rows of each group.
    sizes : array
        The number of rows of each group.
    variance_factors : array
        Rows whose residual variances a sum has: its size, or more where mean features are of a sample.
    values : array
        The sums, in unit scale.
    noise : array
        The variance of the noise of each sum.
    """

    features: Small
    sizes: Array
    variance_factors: Array
    values: Array
    noise: Array

    @classmethod
    def of(cls, sums: NoisySums) -> GroupedSums:
        """Return the sums of one stage."""
        groups = sums.groups
        means = (groups.features / groups.sample_sizes[:, None]).astype(np.float32)
        factors = groups.sizes**2 / groups.sample_sizes
        return cls(means, groups.sizes, factors, sums.values, np.full(sums.values.size, sums.noise_variance))

    def observation(self, residual_variance: float) -> Observation:
        """Return the sums as a linear model takes them, scaled to unit variance."""
        factors, noise = self.variance_factors, self.noise
        return Observation.of_sums(self.features, self.sizes, self.values, factors, noise, residual_variance)


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Measurements of all rows that a model learnt from, and the prior of its features.

    Attributes
    ----------
    rows : int
    strengths : array
        The prior variance of the weight of each feature but the constant, over that of its block.
    log_prior_odds : float
        Log odds of interactions.
    sums : GroupedSums or None
    labels : list of Observation
        Sums of products of private labels with features, in one observation; none if there are no such labels.
    label_rows : LabelRows or None
        The private labels and what trees see of their rows; None if some of them were not kept.
    """

    rows: int
    strengths: Array
    log_prior_odds: float
    sums: GroupedSums | None
    labels: list[Observation]
    label_rows: LabelRows | None = None

    @classmethod
    def of_fit(
        cls,
        table: FeatureTable,
        sums: Sequence[NoisySums],
        private: Sequence[PrivateRows],
        labels: Sequence[Observation],
        residual_variance: float,
    ) -> Measurements:
        """Return the measurements of a fit or update; the same labels are rows for trees, and observations."""
        return cls(
            table.rows,
            table.strengths,
            table.log_prior_odds,
            _join_present([GroupedSums.of(item) for item in sums]),
            Observation.pool(labels, residual_variance),
            LabelRows.of(table, private) if private else None,
        )

    def add(self, further: Measurements, residual_variance: float) -> Measurements:
        """Return the measurements with those of other rows, under the prior of these."""
        rows = [item.label_rows for item in (self, further) if item.labels]
        return replace(
            self,
            rows=self.rows + further.rows,
            sums=_join_present([self.sums, further.sums]),
            labels=Observation.pool([*self.labels, *further.labels], residual_variance),
            label_rows=None if None in rows else _join_present(rows),
        )

    def sum_observations(self, residual_variance: float) -> list[Observation]:
        """Return the sums as a linear model takes them; none if there are no sums."""
        return [] if self.sums is None else [self.sums.observation(residual_variance)]

    def table(self, table: FeatureTable) -> FeatureTable:
        """Return a table of other rows with the prior of these features."""
        table.strengths, table.log_prior_odds = self.strengths, self.log_prior_odds
        return table
