"""Release labels in rounds: each label once, in an interval around the prediction of earlier rounds.

The variance of noise is proportional to the squared width of the interval. A prediction from labels that are
private already costs no ε and allows a narrower interval.

Labels outside an interval are clipped to its ends. Of several widths, `design_interval` chooses the one with the
least expected error of the model. Intervals are symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from labeldp._values import Array, Index, Interval
from labeldp.learning.ensemble import Ensemble
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import UNIT, LabelSummary, Limits, from_units
from labeldp.learning.learner import TrainingData, fit_ensemble
from labeldp.learning.length_scales import can_learn, learn_length_scales
from labeldp.learning.linear_gaussian import Observation, explained_risk
from labeldp.learning.measurements import Measurements, PrivateRows
from labeldp.learning.model_average import Posterior
from labeldp.learning.sum_model import OUTLIER_DISTANCES, SumModel
from labeldp.learning.threads import limit_libraries
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import UnitNoise
from labeldp.release.label_access import LabelAccess, RowIntervals
from labeldp.release.plan import Plan
from labeldp.release.reports import Intervals

Announce = Callable[[str], None]
"""Reports that a step of a fit begins."""

_CELLS = 64
"""The number of values in a distribution of residuals, and of bins in a prior on [0, 1]."""

_BIAS = 0.5
"""The fraction of the variance hidden by clipping that adds to a model's error."""

_SIGNAL_SHARE = 0.5
"""The assumed share of the variance of labels that features explain."""

_HALF_WIDTHS = 0.1 * np.sqrt(2.0) ** np.arange(13)
"""The half widths that are tried, in standard deviations of the residuals."""

_LEAST_NEAR = 0.05
"""The least share of the variance of residuals that is not due to outliers."""


_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Call a function with the name of each step of the fits in the block, as it begins."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_step(step: str) -> None:
    """Call the function that listens to the steps of fits, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(step)


@dataclass(frozen=True, slots=True)
class Residuals:
    """A symmetric distribution of labels minus their predictions.

    Attributes
    ----------
    values, masses : arrays
        Increasing values and their probabilities.
    """

    values: Array
    masses: Array

    @classmethod
    def uniform(cls, width: float) -> Residuals:
        """Return a uniform distribution from -width/2 to width/2."""
        return cls(width * np.linspace(-0.5, 0.5, _CELLS), np.full(_CELLS, 1 / _CELLS))

    @classmethod
    def of_variance(cls, variance: float, width: float, outliers: Array | None = None) -> Residuals:
        """Return an equal mixture of a normal and a Laplace distribution, cut off at ± width or six deviations.

        Outliers, a share of rows for each octave of distances, are a part of the variance.
        """
        if outliers is not None and outliers.any():
            return cls._with_outliers(variance, width, outliers)
        limit = min(width, 6 * math.sqrt(variance))
        edges = limit * np.sinh(3 * np.linspace(-1, 1, _CELLS + 1)) / math.sinh(3)
        values = (edges[1:] + edges[:-1]) / 2
        rate = math.sqrt(2 / variance)
        normal = np.exp(-0.5 * values**2 / variance) / math.sqrt(2 * math.pi * variance)
        masses = (0.5 * normal + 0.25 * rate * np.exp(-np.abs(values) * rate)) * np.diff(edges)
        return cls(values, masses / masses.sum())

    @classmethod
    def _with_outliers(cls, variance: float, width: float, outliers: Array) -> Residuals:
        """Return such a mixture with outliers on both sides, at two distances in each octave."""
        explained = float(outliers @ (width * OUTLIER_DISTANCES) ** 2)
        near = cls.of_variance(max(variance - explained, _LEAST_NEAR * variance), width)
        far = np.outer(width * OUTLIER_DISTANCES, [5 / 6, 7 / 6]).ravel()
        masses = np.repeat(outliers, 2) / 4
        values = np.concatenate([-far, near.values, far])
        masses = np.concatenate([masses, (1 - outliers.sum()) * near.masses, masses])
        order = np.argsort(values)
        return cls(values[order], masses[order])


@dataclass(frozen=True, slots=True)
class ClippingInterval:
    """The interval around 0 to which the residuals of a round are clipped.

    A residual is estimated by slope · c, where c is the clipped residual. The slope is that of least squares under
    the assumed distribution of residuals, which removes most of the bias of clipping.

    Attributes
    ----------
    half_width, slope : float
    hidden : float
        Mean square of the residual minus slope · c: the variance hidden by clipping.
    units, masses : arrays
        Clipped residuals, as positions in the interval from 0 to 1, and their probabilities.
    """

    half_width: float
    slope: float
    hidden: float
    units: Array
    masses: Array

    @classmethod
    def of(cls, residuals: Residuals, half_width: float) -> ClippingInterval:
        """Return the interval from -half_width to half_width, with its slope."""
        values, masses = residuals.values, residuals.masses
        clipped = np.clip(values, -half_width, half_width)
        slope = float(masses @ (values * clipped) / (masses @ clipped**2))
        hidden = float(masses @ (values - slope * clipped) ** 2)
        return cls(half_width, slope, hidden, 0.5 + clipped / (2 * half_width), masses)

    def unit_prior(self) -> Histogram:
        """Return the distribution of clipped residuals as a prior on [0, 1]."""
        heights, nodes = np.histogram(self.units, _CELLS, (0.0, 1.0), weights=self.masses)
        return Histogram.of(nodes, heights)


def design_interval(
    residuals: Residuals, unit_noise: UnitNoise, risk: Callable[[Array, Array], Array]
) -> ClippingInterval:
    """Return the interval of least risk among several widths.

    Parameters
    ----------
    residuals : Residuals
    unit_noise : function
        Noise variance of the mechanism for labels in [0, 1], by the mean squared distance of labels from 1/2.
    risk : function
        Expected squared errors of models, given variances of the noise and variances hidden by clipping.
    """
    deviation = math.sqrt(residuals.masses @ residuals.values**2)
    widths = np.minimum(_HALF_WIDTHS * deviation, residuals.values[-1])
    intervals = [ClippingInterval.of(residuals, half_width) for half_width in widths.tolist()]
    squares = np.array([item.masses @ (item.units - 0.5) ** 2 for item in intervals])  # distances from the middle
    scales = np.array([2 * item.half_width * item.slope for item in intervals])
    noises = scales**2 * unit_noise(squares)
    hidden = np.array([item.hidden for item in intervals])
    return intervals[int(np.argmin(risk(noises, hidden)))]


def learner_risk(
    noise: Array,
    hidden: Array,
    *,
    spectrum: Array,
    signal_variance: float,
    residual_variance: float,
    rows: int,
) -> Array:
    """Return the expected squared errors of linear models that are due to noise and clipping.

    Parameters
    ----------
    noise, hidden : arrays
        Variances of the noise in a label, and variances of labels hidden by clipping.
    spectrum : array
        Eigenvalues of the public features.
    signal_variance, residual_variance : float
        Estimated variance of labels that the features explain, and that they do not explain.
    rows : int
    """
    unlearnt = explained_risk(spectrum, signal_variance, (noise + residual_variance) / rows)
    signal = float(spectrum.sum()) * signal_variance
    learnt_share = 1 - unlearnt / signal if signal > 0 else 1.0
    return unlearnt + _BIAS * hidden * learnt_share


MIN_WIDTH = 1e-6
"""The least width of an interval, as a fraction of the labels' range; narrower ones would be rounding errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRound:
    """The private labels of one round, and how each was randomised.

    Attributes
    ----------
    private : PrivateRows
    mechanism : Mechanism
    unit : array
        The unbiased position of each label in its interval, as a fraction of the width.
    intervals : Intervals
    observation : Observation
        The labels as a linear model takes them.
    """

    private: PrivateRows
    mechanism: Mechanism
    unit: Array
    intervals: Intervals
    observation: Observation


def place_intervals(centre: Array, interval: ClippingInterval, mechanism: Mechanism, limits: Limits) -> Intervals:
    """Return an interval for each row around its centre and inside the limits, in unit scale."""
    margin = MIN_WIDTH * limits.width  # that much of an interval stays inside the limits
    low = np.clip(centre - interval.half_width, limits.low, limits.high - margin)
    high = np.clip(centre + interval.half_width, low + margin, limits.high)
    prior = interval.unit_prior()
    unit_variance = float(prior.masses @ mechanism.unbiased_variance(prior.centers))
    scale = interval.slope * (high - low)
    return Intervals(
        low=low,
        high=high,
        offset=centre + interval.slope * (low - centre),
        scale=scale,
        noise=unit_variance * scale**2,
        hidden=np.full(centre.size, interval.hidden),
        bounds=UNIT,
    )


def in_bounds(intervals: Intervals, bounds: Interval) -> Intervals:
    """Return intervals in the label's scale."""
    width = bounds[1] - bounds[0]
    return Intervals(
        low=from_units(intervals.low, bounds),
        high=from_units(intervals.high, bounds),
        offset=from_units(intervals.offset, bounds),
        scale=width * intervals.scale,
        noise=width**2 * intervals.noise,
        hidden=width**2 * intervals.hidden,
        bounds=bounds,
    )


@limit_libraries()
def draw_rounds(
    access: LabelAccess, sum_model: SumModel, plan: Plan, noise: UnitNoise, ends: Array, announce: Announce
) -> tuple[list[LabelRound], Posterior]:
    """Release every label exactly once, in rounds with these boundaries; raise if that failed.

    Also returned is the linear model on which the last round was centred.
    """
    rounds: list[LabelRound] = []
    table, summary, earlier = sum_model.table, sum_model.label_summary, sum_model.earlier
    rows_of_model = table.rows + (0 if earlier is None else earlier.measurements.rows)
    for number, rows in enumerate(round_rows(ends, table.rows)):
        announce(f"round {number + 1} of {ends.size - 1}")
        ensemble = ensemble_of(rounds, sum_model, quick=True)
        residuals = Residuals.uniform(summary.width)
        if rounds or sum_model.sums or earlier is not None:
            residuals = Residuals.of_variance(ensemble.error, summary.width, sum_model.outliers)
        interval = round_interval(residuals, ensemble, table, summary, noise, rows_of_model)
        mechanism = plan.request.design(interval.unit_prior(), plan.epsilon, access.rows)
        if rows.size:
            centre = ensemble.predict(table, rows)
            intervals = place_intervals(centre, interval, mechanism, summary.limits)
            rounds.append(_draw_round(access, sum_model, rows, number, mechanism, intervals))
    access.require_all_randomized()
    return rounds, ensemble.linear


def round_interval(
    residuals: Residuals,
    ensemble: Ensemble,
    table: FeatureTable,
    summary: LabelSummary,
    noise: UnitNoise,
    rows: int,
) -> ClippingInterval:
    """Return the interval of a round, for a model that so many rows are fitted to at last."""
    risk = partial(
        learner_risk,
        spectrum=table.spectrum,
        signal_variance=_SIGNAL_SHARE * summary.variance,
        residual_variance=ensemble.residual_variance,
        rows=rows,
    )
    return design_interval(residuals, noise, risk)


def _draw_round(
    access: LabelAccess,
    sum_model: SumModel,
    rows: Index,
    number: int,
    mechanism: Mechanism,
    intervals: Intervals,
) -> LabelRound:
    """Randomise the labels of a round, each in its interval."""
    limits = sum_model.label_summary.limits
    positions = RowIntervals(rows, intervals.low, intervals.widths, limits)
    unit = np.asarray(mechanism.channel.debias(access.randomize(mechanism, positions).values))
    labels = intervals.offset + intervals.scale * unit
    private = PrivateRows(rows, labels, float(intervals.noise.mean()), number)
    return LabelRound(
        private=private,
        mechanism=mechanism,
        unit=unit,
        intervals=intervals,
        observation=private.observation(sum_model.table, limits.middle),
    )


def round_rows(ends: Array, rows: int) -> list[Index]:
    """Return the rows of each round, in a public random order of all rows."""
    order = np.random.default_rng(0).permutation(rows)
    boundaries = np.rint(ends * rows).astype(np.int64).tolist()
    return [np.sort(order[start:end]) for start, end in pairwise(boundaries)]


def ensemble_of(rounds: Sequence[LabelRound], sum_model: SumModel, *, quick: bool = False) -> Ensemble:
    """Fit the model to all labels and sums that were released so far."""
    if not rounds:
        return sum_model.ensemble()
    data = TrainingData(
        table=sum_model.table,
        label_summary=sum_model.label_summary,
        labels=[labels.private for labels in rounds],
        observations=[labels.observation for labels in rounds],
        sums=sum_model.observations,
        earlier=sum_model.earlier,
    )
    return fit_ensemble(data, quick=quick)


def new_measurements(rounds: Sequence[LabelRound], sum_model: SumModel, residual_variance: float) -> Measurements:
    """Return the measurements of the rows of a fit or update."""
    return Measurements.of_fit(
        sum_model.table,
        sum_model.sums,
        [labels.private for labels in rounds],
        [labels.observation for labels in rounds],
        residual_variance,
    )


def learn_interactions(
    rounds: Sequence[LabelRound], sum_model: SumModel, linear: Posterior
) -> tuple[list[LabelRound], SumModel]:
    """Learn length scales from released labels and sums, and return both with the features that follow.

    ``linear`` is the model before the last round of labels.
    """
    if not sum_model.sums or not can_learn(sum_model.table):
        return list(rounds), sum_model
    learnt = learn_length_scales(
        sum_model.table,
        linear,
        sum_model.limits,
        sum_model.sums,
        [labels.private for labels in rounds],
        start=sum_model.length_scales,
    )
    model = replace(sum_model.with_length_scales(learnt), residual_variance=linear.residual_variance)
    middle = model.limits.middle
    return [
        replace(labels, observation=labels.private.observation(model.table, middle, labels.observation))
        for labels in rounds
    ], model
