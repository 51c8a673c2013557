"""A linear model fitted to noisy sums of labels, in stages.

A stage forms groups of similar rows, releases a noisy sum for each, and fits the model to all sums so far. The
next stage forms new groups that suit this model, and sums residuals, which are smaller than labels and need less
noise. Labels are read by `LabelAccess.measure` only, for these sums and for counts that measure the spread of
residuals; all else is computed from public features and noisy integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from scipy.special import erf

from labeldp._values import Array
from labeldp.learning import epsilon_split as split
from labeldp.learning.ensemble import EarlierFit, Ensemble
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import FREE_SUMMARY, UNIT, LabelSummary, Limits
from labeldp.learning.groups import Groups, GroupSearch, NoisySums, Predictor, with_length_scales
from labeldp.learning.label_queries import OCTAVES, DistanceCounts, GroupSums, RowRules, find_range
from labeldp.learning.length_scales import (
    EXPECTED_CATEGORY_STRENGTH,
    LengthScales,
    can_learn,
    equal_length_scales,
    learn_length_scales,
)
from labeldp.learning.linear_gaussian import Observation
from labeldp.learning.model_average import MEAN_VARIANCE, SIGNAL_VARIANCES, Posterior, prior_grid
from labeldp.learning.threads import limit_libraries
from labeldp.release.label_access import LabelAccess
from labeldp.release.plan import Plan

_FIRST_STRENGTHS = 0.0133 * np.array([0.35, 0.3, 0.2, 0.15, 0.15])
"""The variance that each block of features explains before a sum was measured, in squared widths of the range."""

_FIRST_RESIDUAL_VARIANCE = 0.02
"""The variance that features do not explain before a sum was measured, in squared widths of the range."""

_MIN_STRENGTH = SIGNAL_VARIANCES[0] / 10
"""The least variance of a block when groups are formed again, in squared widths; less could not be measured."""

_RESIDUAL_LIMIT = 2.0
"""Residuals are clipped to ± this many standard deviations, if their spread was measured."""

_UNMEASURED_LIMITS = {1.0: 0.2, 3.0: 0.25, math.inf: 0.3}
"""If not, residuals are clipped to ± the value, in widths of the range, for the first key above ε."""

_LAST_SPREAD = 0.95
"""The variance of residuals of the last model, over that measured before the last stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumModel:
    """A linear model fitted to noisy sums, and these sums; a constant before there are any.

    Attributes
    ----------
    table : FeatureTable
        Features of the rows, with interactions if length scales were learnt.
    limits : Limits
        The range of labels.
    linear : Posterior
    residual_variance : float
        The variance of labels that features do not explain, by which sums are scaled.
    error : float
        The variance of labels around the model: expected, or measured by noisy counts.
    start : array
        The prediction for each row after the first stage.
    sums : tuple of NoisySums
    is_measured : bool
        Whether the error was measured.
    outliers : array
        The share of rows with a residual in each octave beyond what the assumed shape explains, as counted.
    far_counts : SpreadCounts or None
        The counts that show outliers.
    length_scales : LengthScales or None
    earlier : EarlierFit or None
        The model that these rows update; None for a first fit.
    """

    table: FeatureTable
    limits: Limits
    linear: Posterior
    residual_variance: float
    error: float
    start: Array
    sums: tuple[NoisySums, ...] = ()
    is_measured: bool = False
    outliers: Array = field(default_factory=lambda: np.zeros(OCTAVES))
    far_counts: SpreadCounts | None = None
    length_scales: LengthScales | None = None
    earlier: EarlierFit | None = None

    @classmethod
    def unmeasured(cls, table: FeatureTable) -> SumModel:
        """Return a constant, the middle of the bounds: nothing is measured of all labels."""
        half = FREE_SUMMARY.variance / 2
        return cls._constant(table, FREE_SUMMARY.limits, half, half)

    @classmethod
    def before_sums(cls, table: FeatureTable, limits: Limits) -> SumModel:
        """Return a constant, the middle of the range, with the variances that are expected of the blocks."""
        strengths = _FIRST_STRENGTHS * limits.width**2
        signal, residual = float(strengths.sum()), _FIRST_RESIDUAL_VARIANCE * limits.width**2
        model = cls._constant(table, limits, signal, residual)
        return replace(model, linear=replace(model.linear, block_variances=tuple(strengths)))

    @classmethod
    def _constant(cls, table: FeatureTable, limits: Limits, signal: float, residual: float) -> SumModel:
        """Return the middle of the limits, with variances that features explain, and that they do not."""
        return cls(
            table=table,
            limits=limits,
            linear=Posterior(np.zeros(table.public.size, np.float32), limits.middle, signal, residual, ()),
            residual_variance=residual,
            error=signal + residual,
            start=np.full(table.rows, limits.middle),
        )

    @property
    def observations(self) -> list[Observation]:
        """All sums, as a linear model takes them."""
        observations = [sums.observation(self.residual_variance) for sums in self.sums]
        if self.earlier is None:
            return observations
        return [*self.earlier.measurements.sum_observations(self.residual_variance), *observations]

    @property
    def all_observations(self) -> list[Observation]:
        """All sums, and the private labels of an earlier fit."""
        labels = [] if self.earlier is None else self.earlier.measurements.labels
        return [*self.observations, *labels]

    @property
    def label_summary(self) -> LabelSummary:
        """The range and variance of labels."""
        variance = self.linear.signal_variance + self.linear.residual_variance
        count = 0 if self.earlier is None else self.earlier.ensemble.label_summary.sums
        return LabelSummary(*self.limits, variance, sums=count + sum(sums.values.size for sums in self.sums))

    def ensemble(self) -> Ensemble:
        """Return the model of sums alone, with the trees of the model that it updates."""
        linear, summary = self.linear, self.label_summary
        plain = Ensemble(linear, None, 0.0, linear.residual_variance, self.error, summary)
        return plain if self.earlier is None else self.earlier.ensemble.with_linear(plain)

    def predictor(self) -> Predictor:
        """Return the rule that predicts labels by this model."""
        return Predictor(self.table.public, self.linear, self.limits)

    def add_sums(self, access: LabelAccess, query: GroupSums, epsilon: Fraction) -> SumModel:
        """Form groups, release their noisy sums, and fit the model to all sums so far."""
        groups = self._form_groups(access.rows, query.noise_variance(epsilon))
        row_rules = replace(query.row_rules, grouping=groups.rule, group=groups.group)
        query = replace(query, row_rules=row_rules, groups=groups.sizes.size)
        return self.with_sums(query.measure(access, groups, epsilon))

    def add_stage(self, access: LabelAccess, query: GroupSums, epsilon: Fraction) -> tuple[SumModel, GroupSums]:
        """Return the model with further sums and its error measured, and the sums of residuals that may follow."""
        model = self.add_sums(access, query, epsilon)
        predictor = model.predictor()
        prediction = predictor.of(model.table)
        row_rules = RowRules(predictor=predictor, prediction=prediction)
        model = replace(model, start=prediction) if not self.sums else model
        model = model.measure_error(access, row_rules)
        return model, model.residual_sums(access, row_rules)

    def with_sums(self, sums: NoisySums) -> SumModel:
        """Return the model fitted to further sums."""
        model = replace(self, sums=(*self.sums, sums))._fitted()
        if self.sums or self.earlier is not None:
            return model
        linear = model.linear
        return replace(model, error=linear.residual_variance + linear.signal_variance / 2)

    def _fitted(self) -> SumModel:
        """Return the model fitted to its sums."""
        priors = prior_grid(self.limits.width)
        return replace(self, linear=self.table.fit_linear(self.all_observations, self.limits, priors))

    def _form_groups(self, rows: int, noise: float) -> Groups:
        """Return the groups that inform the model most, beside the sums that there are."""
        width, public = self.limits.width, self.table.public
        strengths = np.maximum(self.linear.block_variances, _MIN_STRENGTH * width**2)
        prior = strengths[public.block] * self.table.strengths
        if not self.sums and self.earlier is None:
            prior[public.quantities : public.columns] *= EXPECTED_CATEGORY_STRENGTH
        search = GroupSearch.of(self.table, np.append(prior, MEAN_VARIANCE * width**2))
        grams = [item.gram / np.float32(item.variance(self.residual_variance)) for item in self.all_observations]
        return search.groups(
            self.table, rows, noise=noise, residual_variance=self.residual_variance, earlier_grams=grams
        )

    def measure_error(self, access: LabelAccess, row_rules: RowRules) -> SumModel:
        """Return the model with its error measured by noisy counts, if there is enough ε for them."""
        if access.rows_epsilon < split.FEWEST_FOR_SPREAD:
            return replace(self, residual_variance=min(self.linear.residual_variance, self.error))
        query, width = DistanceCounts(self.limits, row_rules), self.limits.width

        def count(share: split.Share) -> SpreadCounts:
            """Return noisy counts of the distances of labels from predictions."""
            epsilon = share.of(access)
            return SpreadCounts(access.measure(query, epsilon).values, access.rows, float(epsilon))

        counts, further = count(split.SPREAD), self.far_counts
        if further is None and counts.outliers(_SUSPICIOUS).any():  # noise may look like this
            further = count(split.OUTLIERS)
        outliers = np.zeros(OCTAVES)
        if further is not None:
            counts = counts.average(further)
            outliers = counts.outliers(_SIGNIFICANT)
        error = width**2 * float(counts.deviation**2 + outliers @ OUTLIER_DISTANCES**2)
        residual_variance = min(self.linear.residual_variance, error)
        far = counts if outliers.any() else None
        return replace(
            self,
            error=error,
            residual_variance=residual_variance,
            is_measured=True,
            far_counts=far,
            outliers=outliers,
        )

    def residual_sums(self, access: LabelAccess, row_rules: RowRules) -> GroupSums:
        """Return the sums of residuals of this model, for the next stages with the ε that is left.

        Residuals are clipped further out where the mean of all labels would lose more by clipping, squared, than
        the wider range adds in noise.
        """
        width, epsilon = self.limits.width, access.remaining
        if not self.is_measured:
            limit = width * next(share for above, share in _UNMEASURED_LIMITS.items() if epsilon < above)
            return GroupSums(self.limits, row_rules, residual_limit=limit)
        limits = [min(width, _RESIDUAL_LIMIT * math.sqrt(self.error))]
        limits += [edge for edge in (width * _EDGES[:-1][self.outliers > 0]).tolist() if edge > limits[0]]
        groups = self.sums[-1].values.size if self.sums else 1
        queries = [GroupSums(self.limits, row_rules, residual_limit=limit) for limit in limits]

        def risk(query: GroupSums) -> float:
            """Return the expected squared error of the mean."""
            lost = self.outliers @ np.maximum(width * OUTLIER_DISTANCES - query.residual_limit, 0.0)
            return float(lost**2 + groups * query.noise_variance(epsilon) / access.rows**2)

        return min(queries, key=risk)

    def learn_length_scales(self) -> SumModel:
        """Return the model fitted with length scales that are learnt from all sums so far."""
        learnt = learn_length_scales(
            self.table, self.linear, self.limits, self.sums, [], residual_variance=self.error
        )
        return self.with_length_scales(learnt)._fitted()

    def with_length_scales(self, length_scales: LengthScales) -> SumModel:
        """Return the same sums on features with these length scales."""
        learnt = length_scales.values, length_scales.strengths, length_scales.log_prior_odds
        table = self.table.with_length_scales(*learnt)
        sums = with_length_scales(self.sums, table)
        return replace(self, sums=sums, table=table, length_scales=length_scales)

    def explained_share(self) -> float:
        """Return the share of the variance of labels that the model explains."""
        return self.linear.signal_variance / (self.linear.signal_variance + self.error)

    def finished(self) -> SumModel:
        """Return the model with the error that is expected after its last stage."""
        if self.is_measured:
            return replace(self, error=_LAST_SPREAD * self.error)
        residual_variance = self.linear.residual_variance
        return replace(self, error=float(np.clip(residual_variance, self.error / 2, self.error)))


@limit_libraries()
def release_sums(
    table: FeatureTable,
    access: LabelAccess,
    plan: Plan,
    announce: Callable[[str], None],
    earlier: EarlierFit | None = None,
) -> SumModel:
    """Release the range of labels and noisy sums, and return the model fitted to them.

    Under local trust nothing is computed from all labels, and nothing is released here. Of rows that update an
    earlier fit, sums of residuals are released.
    """
    if earlier is not None:
        announce("sums")
        return update_sums(table, access, earlier)
    if not plan.for_sums:
        return SumModel.unmeasured(table)
    announce("range")
    limits = find_range(access, UNIT)
    announce("sums")
    if limits is None or not table.spectrum.any():  # residuals would be clipped for features that are none
        return fit_mean(table, Limits(*(limits or UNIT)), access)
    return fit_sums(table, Limits(*limits), access, plan.labels_share)


def update_sums(table: FeatureTable, access: LabelAccess, earlier: EarlierFit) -> SumModel:
    """Spend the ε that is left on noisy sums of residuals from a model, and return the model fitted to all."""
    linear, limits = earlier.ensemble.linear, earlier.ensemble.label_summary.limits
    predictor = Predictor(table.public, linear, limits)
    prediction = predictor.of(table)
    row_rules = RowRules(predictor=predictor, prediction=prediction)
    model = SumModel(
        table=table,
        limits=limits,
        linear=linear,
        residual_variance=linear.residual_variance,
        error=earlier.ensemble.error,
        start=prediction,
        earlier=earlier,
    )
    if not access.remaining:
        return model
    model = replace(model, error=linear.residual_variance + linear.signal_variance / 2)
    model = model.measure_error(access, row_rules)
    query = model.residual_sums(access, row_rules)
    return model.add_sums(access, query, access.remaining).finished()


def fit_mean(table: FeatureTable, limits: Limits, access: LabelAccess) -> SumModel:
    """Spend the ε that is left on one noisy sum of all labels."""
    groups = Groups.of_all(table, access.rows)
    sums = GroupSums(limits).measure(access, groups, access.remaining)
    model = SumModel.before_sums(table, limits).with_sums(sums)
    return replace(model, start=model.predictor().of(table))


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
    learns_length_scales = can_learn(table) and rows_epsilon >= split.FEWEST_FOR_LENGTHS
    if learns_length_scales:
        table = table.with_length_scales(equal_length_scales(table.sources), np.ones(table.sources), 0.0)
    model, query = SumModel.before_sums(table, limits), GroupSums(limits)
    for stage, share in enumerate(split.stage_shares(rows_epsilon, with_length_scales=learns_length_scales)):
        model, query = model.add_stage(access, query, share.of(access))
        if not learns_length_scales:
            continue
        model = model.learn_length_scales()
        if model.is_measured and split.prefers_labels(labels_share, stage, model.explained_share()):
            return model.finished()
    model = model.add_sums(access, query, access.remaining)
    return (model.learn_length_scales() if learns_length_scales else model).finished()


_DEVIATIONS = 2.0 ** (-np.arange(4, 48) / 4)
"""Deviations of residuals to choose from, in widths: from 1/2 to 2⁻¹², four in an octave."""

_MISFIT = 0.03
"""The share of rows by which counts may differ from those of the assumed shape."""

_SUSPICIOUS = 2.0
"""Rows are counted again if a count is above the assumed shape by this many standard deviations of its noise, and
the misfit."""

_SIGNIFICANT = 4.0
"""Rows are outliers if the average of the counts is above by this many standard deviations of its own noise. Where
noise was taken for outliers, a fit had up to three times the error."""

_MOST_OUTLIERS = 0.5
"""The largest share of rows that are outliers; noise alone may show more."""

_EDGES = np.append(2.0 ** -np.arange(OCTAVES), 0.0)
"""Edges of the octaves of distances, from far to near, in widths."""

OUTLIER_DISTANCES = 0.75 * _EDGES[:-1]
"""The assumed distance of an outlier in each octave, in widths."""


def residual_masses(edges: Array) -> Array:
    """Return the probabilities of distances between edges, from far to near, in standard deviations.

    Residuals are an equal mixture of a normal and a double exponential distribution; those beyond the first edge
    count as within it.
    """
    within = 0.5 * erf(edges / math.sqrt(2)) + 0.5 * -np.expm1(-math.sqrt(2) * edges)
    return np.append(1 - within[1], within[1:-1] - within[2:])


@dataclass(frozen=True, slots=True)
class SpreadCounts:
    """Noisy counts of rows by their residual, in octaves from far to near.

    Residuals are taken to lie between a normal and a double exponential distribution, as where intervals are
    designed, but for outliers.

    Examples
    --------
    >>> counts = SpreadCounts(np.append([500, 0, 0, 4500], np.zeros(10)), 5000, 0.1)    # a yes of one in ten
    >>> counts.outliers(4)[:3].round(2)
    array([0.1, 0. , 0. ])
    """

    values: Array
    rows: int
    epsilon: float

    @property
    def noise(self) -> float:
        """Return the standard deviation of the noise of each count."""
        return math.sqrt(8) / self.epsilon

    @property
    def deviation(self) -> float:
        """Return the standard deviation of residuals that fits best, in widths of the range."""
        best = (math.inf, 0.0)
        for deviation in _DEVIATIONS:
            expected = self.rows * residual_masses(_EDGES / deviation)
            level = self.noise**2 + expected + (_MISFIT * self.rows) ** 2  # of noise, of chance, of the shape
            misfit = float(np.sum((self.values - expected) ** 2 / level))
            best = min(best, (misfit, float(deviation)))
        return best[1]

    def average(self, other: SpreadCounts) -> SpreadCounts:
        """Return the average of both that has the least noise."""
        precisions = [self.epsilon**2, other.epsilon**2]
        values = np.average([self.values, other.values], axis=0, weights=precisions)
        return SpreadCounts(values, self.rows, math.sqrt(sum(precisions)))

    def outliers(self, significant: float) -> Array:
        """Return the share of rows in each octave above those of the shape, if by so many deviations of noise."""
        expected = self.rows * residual_masses(_EDGES / self.deviation)
        surplus = self.values - expected
        threshold = significant * self.noise + np.minimum(_MISFIT * self.rows, expected)
        is_outlier = (surplus > threshold) & (_RESIDUAL_LIMIT * self.deviation < OUTLIER_DISTANCES)
        shares = np.where(is_outlier, surplus / self.rows, 0.0)
        return np.asarray(shares / max(1.0, float(shares.sum()) / _MOST_OUTLIERS))
