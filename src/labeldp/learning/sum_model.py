"""A linear model fitted to noisy sums of labels, in stages.

A stage forms groups of similar rows, releases a noisy sum for each, and fits the model to all sums so far. The
next stage forms new groups that suit this model, and sums residuals, which are smaller than labels and need less
noise. Labels are read by `LabelAccess.measure` only, for these sums and for counts that measure the spread of
residuals; all else is computed from public features and noisy integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import erf

from labeldp._values import Array, Sums
from labeldp.learning import epsilon_split as split
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import Limits
from labeldp.learning.groups import Groups, GroupSearch, NoisySums, Predictor, with_length_scales
from labeldp.learning.label_queries import OCTAVES, DistanceCounts, GroupSums, RowRules
from labeldp.learning.length_scales import (
    EXPECTED_CATEGORY_STRENGTH,
    LengthScales,
    can_learn,
    equal_length_scales,
    learn_length_scales,
)
from labeldp.learning.linear_gaussian import Observation
from labeldp.learning.model_average import MEAN_VARIANCE, SIGNAL_VARIANCES, Posterior, prior_grid
from labeldp.release.label_access import LabelAccess

_FIRST_STRENGTHS = 0.0133 * np.array([0.35, 0.3, 0.2, 0.15, 0.15])
_FIRST_REST = 0.02
"""Prior variances, in squared widths of the range: those that each block of features explains, and the rest."""

_LEAST_STRENGTH = SIGNAL_VARIANCES[0] / 10
"""The least variance of a block when groups are formed again, in squared widths; less could not be measured."""

_RESIDUAL_LIMIT = 2.0
"""Residuals are clipped to ± this many standard deviations, if their spread was measured."""

_UNMEASURED_LIMITS = {1.0: 0.2, 3.0: 0.25, math.inf: 0.3}
"""If not, residuals are clipped to ± the value, in widths of the range, for the first key above ε."""

_LAST_SPREAD = 0.95
"""The variance of residuals of the last model, over that measured before the last stage."""


@dataclass(frozen=True, slots=True)
class SumModel:
    """A linear model fitted to noisy sums, and the sums.

    Attributes
    ----------
    linear : Posterior
    released : list of NoisySums
        The sums, for later models that are fitted to labels too.
    start : array
        The prediction for each row after the first stage.
    spread : float
        Variance of labels around the model: measured, or expected.
    rest : float
        Variance of labels that features do not explain, by which sums are scaled.
    table : FeatureTable
        Features of the rows, with interactions if lengths were learnt.
    length_scales : LengthScales or None
    """

    linear: Posterior
    released: list[NoisySums]
    start: Array
    spread: float
    rest: float
    table: FeatureTable
    length_scales: LengthScales | None = None

    @property
    def observations(self) -> list[Observation]:
        """All sums, as a linear model takes them."""
        return [each.observation(self.rest) for each in self.released]

    @property
    def sums(self) -> int:
        """The total number of sums."""
        return sum(each.sums.size for each in self.released)

    def with_length_scales(self, length_scales: LengthScales, rest: float) -> SumModel:
        """Return the same sums on features with other lengths."""
        table = length_scales.apply(self.table)
        return replace(
            self,
            released=with_length_scales(self.released, table),
            rest=rest,
            table=table,
            length_scales=length_scales,
        )


def fit_sums(table: FeatureTable, limits: Limits, access: LabelAccess, labels_share: float = 0.0) -> SumModel:
    """Spend the ε that is left on noisy sums by group, and return the linear model fitted to them.

    A part of ε is left for labels if the first sums explain little.

    Parameters
    ----------
    table : FeatureTable
        The rows, or a sample of them.
    limits : Limits
        The range of labels.
    access : LabelAccess
    labels_share : float
        The share of all ε for labels; 0 if they cannot get more.
    """
    rows_epsilon = access.rows_epsilon
    with_length_scales = can_learn(table) and rows_epsilon >= split.FEWEST_FOR_LENGTHS
    fit = _StagedFit(table, limits, access)
    if with_length_scales:
        fit.table = table.with_length_scales(equal_length_scales(table.sources), np.ones(table.sources), 0.0)
    for stage, share in enumerate(split.stage_shares(rows_epsilon, with_length_scales=with_length_scales)):
        fit.release_sums(share.of(access))
        fit.sum_residuals_next()
        if with_length_scales:
            fit.learn_length_scales()
            if fit.is_measured and split.prefers_labels(labels_share, stage, fit.explained_share()):
                return fit.result()
    fit.release_sums(access.remaining)
    if with_length_scales:
        fit.learn_length_scales()
    return fit.result()


def fit_mean(table: FeatureTable, limits: Limits, access: LabelAccess) -> SumModel:
    """Spend the ε that is left on one noisy sum of all labels; parameters are those of `fit_sums`."""
    fit = _StagedFit(table, limits, access)
    fit.release_mean()
    start = np.clip(table.predict(fit.linear, np.arange(table.rows)), *limits)
    return SumModel(fit.linear, fit.released, start, fit.expected_spread(), fit.rest, table)


class _StagedFit:
    """The state of a fit between its stages.

    Attributes
    ----------
    table : FeatureTable
    query : GroupSums
        What the next stage sums.
    released : list of NoisySums
    linear : Posterior
        The model for all sums so far.
    strengths : array
        The variance that each block of features is expected to explain.
    rest : float
        The variance of labels that features do not explain.
    starts : list of arrays
        What the model predicted after each stage but the last.
    spread : float
        Variance of labels around the latest of these predictions: expected, or measured by noisy counts.
    """

    linear: Posterior

    def __init__(self, table: FeatureTable, limits: Limits, access: LabelAccess) -> None:
        self.table, self.limits, self.access = table, limits, access
        self.width = limits.width
        self.query = GroupSums(limits)
        self.released: list[NoisySums] = []
        self.strengths: Array = _FIRST_STRENGTHS * self.width**2
        self.rest = _FIRST_REST * self.width**2
        self.starts: list[Array] = []
        self.spread = 0.0
        self.is_measured = False
        self.length_scales: LengthScales | None = None

    def release_sums(self, epsilon: Fraction) -> None:
        """Form groups, release their noisy sums, and fit the model to all sums so far."""
        groups = self._form_groups(self.query.noise_variance(epsilon))
        row_rules = replace(self.query.row_rules, grouping=groups.rule, group=groups.group)
        self.query = replace(self.query, row_rules=row_rules, groups=groups.sizes.size)
        self._release(groups, epsilon)

    def release_mean(self) -> None:
        """Release the noisy sum of all labels, for all that is left."""
        self._release(Groups.of_all(self.table, self.access.rows), self.access.remaining)

    def _release(self, groups: Groups, epsilon: Fraction) -> None:
        self.released.append(self.query.measure(self.access, groups, epsilon))
        self._fit()

    def _form_groups(self, noise: float) -> Groups:
        """Return the groups that inform the model most, beside the sums that there are."""
        prior = self.strengths[self.table.public.block] * self.table.strengths
        if not self.released:
            prior[self.table.public.quantities : self.table.public.columns] *= EXPECTED_CATEGORY_STRENGTH
        prior = np.append(prior, MEAN_VARIANCE * self.width**2)
        known = [each.observation(self.rest).gram for each in self.released]
        search = GroupSearch.of(self.table, prior)
        return search.groups(self.table, self.access.rows, noise=noise, residual_variance=self.rest, known=known)

    def _fit(self) -> None:
        """Fit the model to all sums so far."""
        observations = [each.observation(self.rest) for each in self.released]
        self.linear = self.table.fit_linear(observations, self.limits, prior_grid(self.width))
        self.strengths = np.maximum(self.linear.block_variances, _LEAST_STRENGTH * self.width**2)

    def sum_residuals_next(self) -> None:
        """Let the next stage sum residuals from what the model predicts now."""
        predictor = Predictor(self.table.public, self.linear, self.limits)
        self.starts.append(predictor.of(self.table))
        row_rules = RowRules(predictor=predictor, prediction=self.starts[-1])
        self._measure_spread(row_rules)
        if self.is_measured:
            limit = min(self.width, _RESIDUAL_LIMIT * math.sqrt(self.spread))
        else:
            epsilon = self.access.remaining
            limit = self.width * next(part for below, part in _UNMEASURED_LIMITS.items() if epsilon < below)
        self.query = GroupSums(self.limits, row_rules, residual_limit=limit)
        self.rest = min(self.linear.residual_variance, self.spread)

    def _measure_spread(self, row_rules: RowRules) -> None:
        """Update the spread of labels around predictions, by noisy counts if there is enough ε for them."""
        self.spread = self.spread or self.expected_spread()
        if self.access.rows_epsilon < split.FEWEST_FOR_SPREAD:
            return
        epsilon = split.SPREAD.of(self.access)
        counts = self.access.measure(DistanceCounts(self.limits, row_rules), epsilon).values
        self.spread = estimate_spread(counts, self.access.rows, float(epsilon), self.width)
        self.is_measured = True

    def expected_spread(self) -> float:
        """Return the variance of labels around the model, where it is not measured."""
        return self.linear.residual_variance + self.linear.signal_variance / 2

    def explained_share(self) -> float:
        """Return the share of the variance of labels that the model explains."""
        return self.linear.signal_variance / (self.linear.signal_variance + self.spread)

    def learn_length_scales(self) -> None:
        """Learn the length of each column from all sums so far, and fit the model again with these lengths."""
        learnt = learn_length_scales(
            self.table, self.linear, self.limits, self.released, [], residual_variance=self.spread
        )
        self.table = learnt.apply(self.table)
        self.released = with_length_scales(self.released, self.table)
        self.length_scales = learnt
        self._fit()

    def result(self) -> SumModel:
        """Return the model after the last stage."""
        if self.is_measured:
            spread = _LAST_SPREAD * self.spread
        else:
            spread = float(np.clip(self.linear.residual_variance, self.spread / 2, self.spread))
        return SumModel(
            self.linear, self.released, self.starts[0], spread, self.rest, self.table, self.length_scales
        )


_DEVIATIONS = 2.0 ** (-np.arange(4, 48) / 4)
"""Deviations of residuals to choose from, in widths: from 1/2 to 2⁻¹², four in an octave."""

_MISFIT = 0.03
"""The share of rows by which counts may differ from those of the assumed shape."""


def residual_masses(edges: Array) -> Array:
    """Return the probabilities of distances between edges, from far to near, in standard deviations.

    Residuals are an equal mixture of a normal and a double exponential distribution; those beyond the first edge
    count as within it.
    """
    within = 0.5 * erf(edges / math.sqrt(2)) + 0.5 * -np.expm1(-math.sqrt(2) * edges)
    return np.append(1 - within[1], within[1:-1] - within[2:])


def estimate_spread(noisy: Sums, rows: int, epsilon: float, width: float) -> float:
    """Return the variance of residuals that fits noisy counts of their distances best.

    Residuals are taken to lie between a normal and a double exponential distribution, as where intervals are
    designed.

    Parameters
    ----------
    noisy : array of int
        Counts by halves of the width, from `DistanceCounts`.
    rows : int
    epsilon : float
        Of these counts.
    width : float
        The largest distance.
    """
    edges = np.append(2.0 ** -np.arange(OCTAVES), 0.0)  # from far to near, in widths
    best = (math.inf, 0.0)
    for deviation in _DEVIATIONS:
        expected = rows * residual_masses(edges / deviation)
        level = 8 / epsilon**2 + expected + (_MISFIT * rows) ** 2  # of noise, of chance, of the shape
        misfit = float(np.sum((noisy - expected) ** 2 / level))
        best = min(best, (misfit, float(deviation)))
    return (best[1] * width) ** 2
