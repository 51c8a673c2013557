"""Measurements of a model: all that was released about labels, as a linear model takes it.

They are noisy sums with the public features of their groups, and the sums of products of private labels with
features (sufficient statistics). A model is a function of them: measurements of other rows are added as further
observations, under the same features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from labeldp._values import Array, Small
from labeldp.learning.features import FeatureTable
from labeldp.learning.groups import NoisySums
from labeldp.learning.label_rounds import RowPart
from labeldp.learning.learner import EarlierLabels, LabelRows
from labeldp.learning.linear_gaussian import Observation
from labeldp.learning.sum_model import SumModel

MAX_BATCHES = 24
"""With more batches, the two oldest become one: a batch with labels takes about 4 MB for 1,400 features."""


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
    def join(cls, parts: Sequence[GroupedSums]) -> GroupedSums:
        """Return the sums of all parts; there is at least one."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @classmethod
    def of(cls, sums: NoisySums) -> GroupedSums:
        """Return the sums of one stage."""
        groups = sums.groups
        means = (groups.features / groups.sample_sizes[:, None]).astype(np.float32)
        factors = groups.sizes**2 / groups.sample_sizes
        return cls(means, groups.sizes, factors, sums.values, np.full(sums.values.size, sums.noise_variance))

    def observation(self, residual_variance: float) -> Observation:
        """Return the sums as a linear model takes them, scaled to unit variance."""
        variance = self.variance_factors * residual_variance + self.noise
        root = 1 / np.sqrt(variance)
        design = (self.features * (self.sizes * root)[:, None]).astype(np.float32)
        rows = float(np.mean(self.variance_factors / variance))
        return Observation.of_few(design, self.values * root, rows, float(np.mean(self.noise / variance)))


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Measurements of the rows of one fit or update, or of a few of them.

    Attributes
    ----------
    fits : tuple of str
        The time of the first charge of each fit or update.
    rows : int
    sums : GroupedSums or None
    labels : Observation or None
        Sums of products of private labels with features.
    label_rows : LabelRows or None
        The private labels and what trees see of their rows; None if they were not kept.
    """

    fits: tuple[str, ...]
    rows: int
    sums: GroupedSums | None
    labels: Observation | None
    label_rows: LabelRows | None = None

    def join(self, other: Batch, residual_variance: float) -> Batch:
        """Return the measurements of both."""
        sums = [batch.sums for batch in (self, other) if batch.sums is not None]
        labels = [batch.labels for batch in (self, other) if batch.labels is not None]
        with_labels = [batch for batch in (self, other) if batch.labels is not None]
        rows = [batch.label_rows for batch in with_labels if batch.label_rows is not None]
        return Batch(
            self.fits + other.fits,
            self.rows + other.rows,
            GroupedSums.join(sums) if sums else None,
            Observation.pool(labels, residual_variance) if labels else None,
            LabelRows.join(rows) if rows and len(rows) == len(with_labels) else None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Measurements of all rows that a model learnt from, and the prior of its features.

    Attributes
    ----------
    batches : tuple of Batch
        The oldest first.
    strengths : array
        The prior variance of the weight of each feature but the constant, over that of its block.
    log_prior_odds : float
        Log odds of interactions.
    """

    batches: tuple[Batch, ...]
    strengths: Array
    log_prior_odds: float

    @classmethod
    def of_fit(
        cls, fit: str, rows: int, parts: Sequence[RowPart], model: SumModel, residual_variance: float
    ) -> Measurements:
        """Return the measurements of a fit or update that was charged at this time."""
        table = model.table
        released = [GroupedSums.of(sums) for sums in model.sums]
        labels = [part.observation for part in parts]
        batch = Batch(
            (fit,),
            rows,
            GroupedSums.join(released) if released else None,
            Observation.pool(labels, residual_variance) if labels else None,
            LabelRows.of(table, [part.private for part in parts]) if parts else None,
        )
        return cls((batch,), table.strengths, table.log_prior_odds)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(batch.rows for batch in self.batches)

    @property
    def fits(self) -> tuple[str, ...]:
        """The time of the first charge of each fit or update."""
        return tuple(fit for batch in self.batches for fit in batch.fits)

    @property
    def has_rows(self) -> bool:
        """True if some private labels were kept with what trees see of their rows."""
        return any(batch.label_rows is not None for batch in self.batches)

    def add(self, others: Sequence[Batch], residual_variance: float) -> Measurements:
        """Return the measurements with further batches; the oldest are joined if there are very many."""
        batches = [*self.batches, *others]
        while len(batches) > MAX_BATCHES:
            batches[:2] = [batches[0].join(batches[1], residual_variance)]
        return replace(self, batches=tuple(batches))

    def sums(self, residual_variance: float) -> list[Observation]:
        """Return all sums as one observation; none if there are no sums."""
        parts = [batch.sums for batch in self.batches if batch.sums is not None]
        return [GroupedSums.join(parts).observation(residual_variance)] if parts else []

    def labels(self, residual_variance: float) -> EarlierLabels:
        """Return all private labels as one observation, and their rows if all were kept."""
        batches = [batch for batch in self.batches if batch.labels is not None]
        rows = [batch.label_rows for batch in batches if batch.label_rows is not None]
        observed = [batch.labels for batch in batches if batch.labels is not None]
        return EarlierLabels(
            Observation.pool(observed, residual_variance) if observed else None,
            LabelRows.join(rows) if rows and len(rows) == len(batches) else None,
        )

    def table(self, table: FeatureTable) -> FeatureTable:
        """Return a table of other rows with the prior of these features."""
        table.strengths, table.log_prior_odds = self.strengths, self.log_prior_odds
        return table
