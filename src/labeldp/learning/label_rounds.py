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

from labeldp._values import Array, Index
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import FREE_SUMMARY, UNIT, LabelSummary, Limits
from labeldp.learning.label_queries import find_range
from labeldp.learning.learner import Ensemble, PrivateRows, fit_ensemble
from labeldp.learning.length_scales import can_learn, learn_length_scales
from labeldp.learning.linear_gaussian import Observation, explained_risk
from labeldp.learning.model_average import Posterior
from labeldp.learning.sum_model import SumModel, fit_mean, fit_sums
from labeldp.learning.threads import limit_libraries
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import UnitNoise
from labeldp.release.label_access import LabelAccess, RowIntervals
from labeldp.release.plan import Plan

Announce = Callable[[str], None]
"""Reports that a step of a fit begins."""

_CELLS = 64
"""The number of values in a distribution of residuals, and of bins in a prior on [0, 1]."""

_BIAS = 0.5
"""The fraction of the variance hidden by clipping that adds to a model's error."""

_HALF_WIDTHS = 0.1 * np.sqrt(2.0) ** np.arange(13)
"""The half widths that are tried, in standard deviations of the residuals."""


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
    def of_variance(cls, variance: float, width: float) -> Residuals:
        """Return an equal mixture of a normal and a Laplace distribution, cut off at ± width or six deviations."""
        limit = min(width, 6 * math.sqrt(variance))
        edges = limit * np.sinh(3 * np.linspace(-1, 1, _CELLS + 1)) / math.sinh(3)
        values = (edges[1:] + edges[:-1]) / 2
        rate = math.sqrt(2 / variance)
        normal = np.exp(-0.5 * values**2 / variance) / math.sqrt(2 * math.pi * variance)
        masses = (0.5 * normal + 0.25 * rate * np.exp(-np.abs(values) * rate)) * np.diff(edges)
        return cls(values, masses / masses.sum())


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
    residuals: Residuals, unit_noise: UnitNoise, risk: Callable[[float, float], float]
) -> ClippingInterval:
    """Return the interval of least risk among several widths.

    Parameters
    ----------
    residuals : Residuals
    unit_noise : function
        Noise variance of the mechanism for labels in [0, 1], by the mean squared distance of labels from 1/2.
    risk : function
        Expected squared error of a model, given the variance of the noise and the variance hidden by clipping.
    """
    deviation = math.sqrt(residuals.masses @ residuals.values**2)
    widths = np.minimum(_HALF_WIDTHS * deviation, residuals.values[-1])
    intervals = [ClippingInterval.of(residuals, half_width) for half_width in widths.tolist()]
    squares = np.array([one.masses @ (one.units - 0.5) ** 2 for one in intervals])  # distances from the middle
    scales = np.array([2 * one.half_width * one.slope for one in intervals])
    noises = scales**2 * unit_noise(squares)
    risks = [risk(noise, one.hidden) for noise, one in zip(noises.tolist(), intervals, strict=True)]
    return intervals[int(np.argmin(risks))]


def learner_risk(noise: float, hidden: float, *, spectrum: Array, signal: float, rest: float, rows: int) -> float:
    """Return the expected squared error of a linear model that is due to noise and clipping.

    Parameters
    ----------
    noise, hidden : float
        Variance of the noise in a label, and variance of labels hidden by clipping.
    spectrum : array
        Eigenvalues of the public features.
    signal, rest : float
        Estimated variance of labels that the features explain, and that they do not explain.
    rows : int
    """
    unlearnt, strength = explained_risk(spectrum, signal, (noise + rest) / rows), float(spectrum.sum()) * signal
    return unlearnt + _BIAS * hidden * (1 - unlearnt / strength if strength > 0 else 1.0)


LEAST_WIDTH = 1e-6
"""The least width of an interval, as a fraction of the labels' range; narrower ones would be rounding errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPart:
    """The private labels of one round, and how each was randomised.

    Attributes
    ----------
    private : PrivateRows
    mechanism : Mechanism
    low, high : arrays
        The interval of each row.
    unit : array
        The unbiased position of each label in its interval, as a fraction of the width.
    offset, scale : arrays
        The private label is offset + scale · unit.
    noise : array
        Variance of the noise in each private label, under the assumed distribution of residuals.
    hidden : float
        Variance of labels hidden by clipping, under the same distribution.
    """

    private: PrivateRows
    mechanism: Mechanism
    unit: Array
    low: Array
    high: Array
    offset: Array
    scale: Array
    noise: Array
    hidden: float


@dataclass(frozen=True, slots=True)
class Round:
    """The plan of a round, decided before its labels are read.

    Attributes
    ----------
    number : int
    rows : array of int
    interval : ClippingInterval
    mechanism : Mechanism
    label_summary : LabelSummary
    """

    number: int
    rows: Index
    interval: ClippingInterval
    mechanism: Mechanism
    label_summary: LabelSummary


@dataclass(frozen=True, slots=True)
class SumResults:
    """The model fitted to noisy sums, before labels are released one by one.

    Attributes
    ----------
    table : FeatureTable
        The features of the rows, with interactions if length scales were learnt.
    label_summary : LabelSummary
    sums : SumModel or None
        None under local trust.
    linear : Posterior or None
        The linear model before the last round of labels; None before any round.
    """

    table: FeatureTable
    label_summary: LabelSummary
    sums: SumModel | None = None
    linear: Posterior | None = None

    @property
    def observations(self) -> list[Observation]:
        """The released sums, as a linear model takes them."""
        return [] if self.sums is None else self.sums.observations

    def ensemble(self) -> Ensemble:
        """Return the model; a constant if there are no sums."""
        label_summary = self.label_summary
        if self.sums is not None:
            linear = self.sums.linear
            return Ensemble(linear, None, 0.0, linear.residual_variance, self.sums.spread, label_summary)
        rest = label_summary.variance / 2
        constant = Posterior(
            np.zeros(self.table.public.size, dtype=np.float32), label_summary.middle, 0.0, rest, ()
        )
        return Ensemble(constant, None, 0.0, rest, label_summary.variance, label_summary)


@limit_libraries()
def release_sums(table: FeatureTable, access: LabelAccess, plan: Plan, announce: Announce) -> SumResults:
    """Release the range of labels, noisy sums, and the spread of labels around the model fitted to the sums.

    Under local trust nothing is computed from all labels, and nothing is released here.
    """
    if not plan.for_sums:
        return SumResults(table, FREE_SUMMARY)
    announce("range")
    found = find_range(access, UNIT)
    limits = Limits(*(found or UNIT))
    announce("sums")
    is_measured = found is not None
    sums = fit_sums(table, limits, access, plan.labels_share) if is_measured else fit_mean(table, limits, access)
    variance = sums.linear.signal_variance + sums.linear.residual_variance
    return SumResults(sums.table, LabelSummary(*limits, variance, sums=sums.sums), sums)


@limit_libraries()
def draw_rounds(
    access: LabelAccess, sum_results: SumResults, plan: Plan, noise: UnitNoise, ends: Array, announce: Announce
) -> tuple[list[RowPart], SumResults]:
    """Release every label exactly once, in rounds with these boundaries; raise if that failed.

    Also returned are the results from sums, with the linear model that the last round was centred on.
    """
    label_summary, ensemble, table = sum_results.label_summary, sum_results.ensemble(), sum_results.table
    parts: list[RowPart] = []
    for number, rows in enumerate(round_rows(ends, table.rows)):
        announce(f"round {number + 1} of {ends.size - 1}")
        if parts:
            ensemble = ensemble_of(parts, sum_results, quick=True)
        if parts or sum_results.sums is not None:
            residuals = Residuals.of_variance(ensemble.error, label_summary.width)
        else:
            residuals = Residuals.uniform(label_summary.width)
        signal, rest = label_summary.variance / 2, ensemble.rest
        risk = partial(learner_risk, spectrum=table.spectrum, signal=signal, rest=rest, rows=table.rows)
        interval = design_interval(residuals, noise, risk)
        mechanism = plan.request.design(interval.unit_prior(), plan.epsilon, access.rows)
        if rows.size:
            now = Round(number, rows, interval, mechanism, label_summary)
            parts.append(draw_part(access, now, ensemble.predict(table, rows)))
    access.require_all_randomized()
    return parts, replace(sum_results, linear=ensemble.linear)


def round_rows(ends: Array, rows: int) -> list[Index]:
    """Return the rows of each round, in a public random order of all rows."""
    order = np.random.default_rng(0).permutation(rows)
    places = np.rint(ends * rows).astype(np.int64).tolist()
    return [np.sort(order[start:end]) for start, end in pairwise(places)]


def ensemble_of(parts: Sequence[RowPart], sum_results: SumResults, *, quick: bool = False) -> Ensemble:
    """Fit the model to all labels and sums that were released so far."""
    return fit_ensemble(
        sum_results.table,
        [part.private for part in parts],
        sum_results.label_summary,
        sums=sum_results.observations,
        quick=quick,
    )


def learn_interactions(parts: Sequence[RowPart], sum_results: SumResults) -> SumResults:
    """Learn the length scales of columns from released labels and sums, and return the results with them."""
    sums, table, private = sum_results.sums, sum_results.table, [part.private for part in parts]
    linear = sum_results.linear
    if sums is None or linear is None or not can_learn(table):
        return sum_results
    learnt = learn_length_scales(
        table, linear, sum_results.label_summary.limits, sums.released, private, start=sums.length_scales
    )
    sums = sums.with_length_scales(learnt, linear.residual_variance)
    return replace(sum_results, table=sums.table, sums=sums)


def draw_part(access: LabelAccess, plan: Round, centre: Array) -> RowPart:
    """Randomise labels, each clipped to an interval around its centre and inside the range."""
    interval, mechanism, label_summary = plan.interval, plan.mechanism, plan.label_summary
    least = LEAST_WIDTH * label_summary.width  # that much of an interval stays inside the bounds
    low = np.clip(centre - interval.half_width, label_summary.low, label_summary.high - least)
    high = np.clip(centre + interval.half_width, low + least, label_summary.high)
    width = high - low
    channel = mechanism.channel
    intervals = RowIntervals(plan.rows, low, width, label_summary.limits)
    unit = channel.debias(access.randomize(mechanism, intervals).values)
    offset, scale = centre + interval.slope * (low - centre), interval.slope * width
    private = offset + scale * unit
    prior = interval.unit_prior()
    spread = float(prior.masses @ channel.variance(prior.centers)) / channel.slope() ** 2
    noise = np.asarray(spread * scale**2)
    return RowPart(
        private=PrivateRows(plan.rows, np.asarray(private), float(noise.mean()), plan.number),
        mechanism=mechanism,
        unit=np.asarray(unit),
        low=low,
        high=high,
        offset=offset,
        scale=scale,
        noise=noise,
        hidden=interval.hidden,
    )
