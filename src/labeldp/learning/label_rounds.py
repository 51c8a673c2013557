"""Labels released in rounds: each row randomised once, around what earlier rounds predict for it.

Noise falls with the square of an interval's width, so a prediction made from earlier private labels, and free to
use, buys accuracy. The rounds are the same wherever the rows are, in memory or on a cluster: `LabelRows` is what
they must offer.

Labels outside an interval are clipped to its ends. The design tries intervals of several widths and takes the one
from which a learner is expected to learn most. They are symmetric: even if it were known exactly which side has
the longer tail, that would not pay (benchmarks/ablation.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from labeldp._values import Array, Index, Sums
from labeldp.accounts.statistic import Statistic
from labeldp.errors import PrivacyProofError
from labeldp.exact.word_sources import WordSource
from labeldp.learning.bayes import Observations, Posterior, explained_risk
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import UNIT, LabelSummary, Limits
from labeldp.learning.label_queries import CELLS, Query, find_range
from labeldp.learning.learner import Ensemble, PrivateRows, fit_ensemble
from labeldp.learning.relevance import can_learn, learn_lengths
from labeldp.learning.sum_model import SumModel, fit_mean, fit_sums
from labeldp.learning.threads import Step
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import UnitNoise
from labeldp.release.curator import count
from labeldp.release.plan import Plan

_CELLS = 64
"""Values of a distribution of residuals, and bins of a prior on [0, 1]."""

_BIAS = 0.5
"""How much of the variance that clipping hides is lost to a learner; the rest its slope brings back."""

_HALF_WIDTHS = 0.1 * np.sqrt(2.0) ** np.arange(13)
"""Widths that are tried on either side, from a tenth of a standard deviation of the residuals to more than six."""


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
        """Return residuals of which nothing is known but that they lie within half a width."""
        return cls(width * np.linspace(-0.5, 0.5, _CELLS), np.full(_CELLS, 1 / _CELLS))

    @classmethod
    def of_variance(cls, variance: float, width: float) -> Residuals:
        """Return residuals of half a normal and half a Laplace distribution, none beyond the width."""
        limit = min(width, 6 * math.sqrt(variance))
        edges = limit * np.sinh(3 * np.linspace(-1, 1, _CELLS + 1)) / math.sinh(3)
        values = (edges[1:] + edges[:-1]) / 2
        rate = math.sqrt(2 / variance)
        normal = np.exp(-0.5 * values**2 / variance) / math.sqrt(2 * math.pi * variance)
        masses = (0.5 * normal + 0.25 * rate * np.exp(-np.abs(values) * rate)) * np.diff(edges)
        return cls(values, masses / masses.sum())


@dataclass(frozen=True, slots=True)
class Interval:
    """Where labels, minus their prediction, are distinguished in a round.

    The unbiased label of the clipped residual c is mapped to slope · c, the best multiple for the residual itself
    under what is known of it: that takes out most of the bias of clipping.

    Attributes
    ----------
    half_width, slope : float
    hidden : float
        Variance of the residual around slope · c: what clipping hides.
    units, masses : arrays
        Clipped residuals, from 0 to 1 in the interval, and their probabilities.
    """

    half_width: float
    slope: float
    hidden: float
    units: Array
    masses: Array

    @classmethod
    def of(cls, residuals: Residuals, half_width: float) -> Interval:
        """Return an interval with its slope."""
        values, masses = residuals.values, residuals.masses
        clipped = np.clip(values, -half_width, half_width)
        slope = float(masses @ (values * clipped) / (masses @ clipped**2))
        hidden = float(masses @ (values - slope * clipped) ** 2)
        return cls(half_width, slope, hidden, 0.5 + clipped / (2 * half_width), masses)

    def unit_prior(self) -> Histogram:
        """Return clipped residuals as a prior on [0, 1]."""
        heights, nodes = np.histogram(self.units, _CELLS, (0.0, 1.0), weights=self.masses)
        return Histogram.of(nodes, heights)


def design_interval(
    residuals: Residuals, unit_noise: UnitNoise, risk: Callable[[float, float], float]
) -> Interval:
    """Return the interval of least risk.

    Parameters
    ----------
    residuals : Residuals
    unit_noise : function
        Variance of the unbiased label on [0, 1] of the mechanism that will be used.
    risk : function
        Expected error of a learner, by the variances of the noise in a label and of what clipping hides of it.
    """
    deviation = math.sqrt(residuals.masses @ residuals.values**2)
    widths = np.minimum(_HALF_WIDTHS * deviation, residuals.values[-1])
    intervals = [Interval.of(residuals, half_width) for half_width in widths.tolist()]
    squares = np.array([one.masses @ (one.units - 0.5) ** 2 for one in intervals])  # distances from the middle
    scales = np.array([2 * one.half_width * one.slope for one in intervals])
    noises = scales**2 * unit_noise(squares)
    risks = [risk(noise, one.hidden) for noise, one in zip(noises.tolist(), intervals, strict=True)]
    return intervals[int(np.argmin(risks))]


def learner_risk(noise: float, hidden: float, *, spectrum: Array, signal: float, rest: float, rows: int) -> float:
    """Return the squared error that a linear learner is expected to have because of noise and clipping.

    Parameters
    ----------
    noise, hidden : float
        Variances of the noise in a label, and of what clipping hides of it.
    spectrum : array
        Eigenvalues of the public features.
    signal, rest : float
        Guessed variance that the features explain, and what they do not.
    rows : int
    """
    unlearnt, strength = explained_risk(spectrum, signal, (noise + rest) / rows), float(spectrum.sum()) * signal
    return unlearnt + _BIAS * hidden * (1 - unlearnt / strength if strength > 0 else 1.0)


_LEAST_WIDTH = 1e-6
"""Of an interval, in ranges: below it floating point would decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one round, randomised.

    Attributes
    ----------
    private : PrivateRows
        Those in the table.
    mechanism : Mechanism
    observed : Observations or None
        Statistics of all rows of the round, where the table has only a sample of them.
    """

    private: PrivateRows
    mechanism: Mechanism
    observed: Observations | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPart(Part):
    """Rows of one round, all of them in the table, and how each was randomised.

    Attributes
    ----------
    low, high : arrays
        The interval of each row.
    unit : array
        The unbiased place in the unit interval.
    offset, scale : arrays
        The map from there to the private label.
    noise : array
        Variance of the noise in each private label, by what was known.
    hidden : float
        Variance of labels that clipping hides, by what was known.
    """

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
    share : (start, end)
        Which part of all rows, in an order that is public.
    interval : Interval
    mechanism : Mechanism
    knowledge : LabelSummary
    ensemble : Ensemble
        Predicts what the interval is centred on.
    """

    number: int
    share: tuple[float, float]
    interval: Interval
    mechanism: Mechanism
    knowledge: LabelSummary
    ensemble: Ensemble


class LabelRows(Protocol):
    """Private labels of public rows, wherever they are; sums and rounds have them in units of their bounds."""

    @property
    def count(self) -> int:
        """How many rows there are."""

    @property
    def table(self) -> FeatureTable:
        """The features of all rows, or of a sample."""

    def counts(self) -> Sums:
        """Return how many labels lie in each of `CELLS` cells of the bounds, exactly."""

    def add_up(self, query: Query) -> Sums:
        """Return the exact answer of a query over all rows."""

    def draw(self, plan: Round, table: FeatureTable) -> Part | None:
        """Randomise the round's labels around predictions from these features; None if it has no rows."""

    def announce(self, step: str) -> None:
        """Show which step of the fit begins."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was learnt before labels are released one by one, and the statistics that it took.

    Features are those of the rows, with interactions if the lengths of these were learnt. ``linear`` is the latest
    model of rounds of labels.
    """

    table: FeatureTable
    knowledge: LabelSummary
    sums: SumModel | None = None
    noise: Sequence[Statistic] = ()
    linear: Posterior | None = None

    @property
    def observations(self) -> list[Observations]:
        """The statistics of sums."""
        return [] if self.sums is None else self.sums.observations

    def ensemble(self) -> Ensemble:
        """Return the model so far."""
        knowledge = self.knowledge
        if self.sums is not None:
            linear = self.sums.linear
            return Ensemble(linear, None, 0.0, linear.rest, self.sums.spread, knowledge)
        rest = knowledge.variance / 2
        constant = Posterior(np.zeros(self.table.public.size, dtype=np.float32), knowledge.middle, 0.0, rest, ())
        return Ensemble(constant, None, 0.0, rest, knowledge.variance, knowledge)


def measure(rows: LabelRows, plan: Plan, source: WordSource) -> Measured:
    """Return what was paid for before labels: a range, noisy sums and the spread around their model.

    Under local trust nothing was, and no sum, count or range is taken.
    """
    if not plan.for_sums:
        return Measured(rows.table, LabelSummary(*UNIT, variance=1 / 20))
    budget = SumBudget(plan.for_sums, rows.count)
    rows.announce("range")
    found = find_range(rows.counts, UNIT, budget, source)
    limits = Limits(*(found or UNIT))
    rows.announce("sums")
    fit = fit_mean if found is None else fit_sums
    sums = fit(rows.table, limits, budget, rows.add_up, source)
    variance = sums.linear.explained + sums.linear.rest
    return Measured(sums.table, LabelSummary(*limits, variance, sums=sums.sums), sums, budget.noise)


def draw_rounds(
    rows: LabelRows, measured: Measured, plan: Plan, noise: UnitNoise, ends: Array
) -> tuple[list[Any], Measured]:
    """Return all rows, released once each, in rounds with the given ends; if one was not, nothing is.

    What was measured comes with the linear model before the last round.
    """
    knowledge, ensemble, table = measured.knowledge, measured.ensemble(), measured.table
    parts: list[Part] = []
    for number, share in enumerate(pairwise(ends.tolist())):
        rows.announce(f"round {number + 1} of {ends.size - 1}")
        if parts:
            ensemble = ensemble_of(parts, measured, quick=True)
        if parts or measured.sums is not None:
            residuals = Residuals.of_variance(ensemble.error, knowledge.width)
        else:
            residuals = Residuals.uniform(knowledge.width)
        signal, rest = knowledge.variance / 2, ensemble.rest
        risk = partial(learner_risk, spectrum=table.spectrum, signal=signal, rest=rest, rows=rows.count)
        interval = design_interval(residuals, noise, risk)
        mechanism = plan.request.design(interval.unit_prior(), plan.epsilon, rows.count)
        part = rows.draw(Round(number, share, interval, mechanism, knowledge, ensemble), table)
        if part is not None:
            parts.append(part)
    _refuse_unless_once(rows, parts)
    return parts, replace(measured, linear=ensemble.linear)


def _refuse_unless_once(rows: LabelRows, parts: Sequence[Part]) -> None:
    """Refuse a release in which a row is missing, its entry unwritten, or is there twice, at twice its price."""
    released = np.concatenate([np.zeros(0, dtype=np.int64), *(part.private.rows for part in parts)])
    times = np.bincount(released, minlength=rows.table.rows)
    count = sum(part.private.rows.size if part.observed is None else part.observed.count for part in parts)
    if times.size != rows.table.rows or (times != 1).any() or count != rows.count:
        raise PrivacyProofError(
            "not every row was drawn exactly once: this is a fault of the program, and nothing was released"
        )


def ensemble_of(parts: Sequence[Part], measured: Measured, *, quick: bool = False) -> Ensemble:
    """Return the learner for all that was released so far."""
    return fit_ensemble(
        measured.table,
        [part.private for part in parts],
        measured.knowledge,
        sums=measured.observations,
        quick=quick,
        observed=[part.observed for part in parts if part.observed is not None] or None,
    )


def learn_interactions(parts: Sequence[Part], measured: Measured) -> Measured:
    """Return what was measured, with lengths of columns learnt from released labels and sums.

    Statistics of rows elsewhere are those of features with the lengths before, so these stay.
    """
    sums, table, private = measured.sums, measured.table, [part.private for part in parts]
    linear = measured.linear
    if sums is None or linear is None or not can_learn(table) or any(part.observed is not None for part in parts):
        return measured
    found = learn_lengths(table, linear, measured.knowledge.limits, sums.released, private, known=sums.relevance)
    sums = sums.with_lengths(found, linear.rest)
    return replace(measured, table=sums.table, sums=sums)


@np.errstate(all="ignore")  # a warning that depends on labels would leak them
def draw_part(rows: Index, labels: Array, centre: Array, plan: Round, source: WordSource) -> RowPart:
    """Randomise labels over an interval around each centre, inside the bounds."""
    interval, mechanism, knowledge = plan.interval, plan.mechanism, plan.knowledge
    least = _LEAST_WIDTH * knowledge.width  # that much of an interval stays inside the bounds
    low = np.clip(centre - interval.half_width, knowledge.low, knowledge.high - least)
    high = np.clip(centre + interval.half_width, low + least, knowledge.high)
    width = high - low
    channel = mechanism.channel
    unit = channel.debias(mechanism.randomize_checked((knowledge.clip(labels) - low) / width, source))
    offset, scale = centre + interval.slope * (low - centre), interval.slope * width
    private = offset + scale * unit
    prior = interval.unit_prior()
    spread = float(prior.masses @ channel.variance(prior.centers)) / channel.slope() ** 2
    noise = np.asarray(spread * scale**2)
    return RowPart(
        private=PrivateRows(rows, np.asarray(private), float(noise.mean()), plan.number),
        mechanism=mechanism,
        unit=np.asarray(unit),
        low=low,
        high=high,
        offset=offset,
        scale=scale,
        noise=noise,
        hidden=interval.hidden,
    )


@dataclass(frozen=True, slots=True, repr=False)
class RowsHere:
    """Rows whose labels are in memory, in units of their bounds. Their text form shows no label."""

    table: FeatureTable
    labels: Array
    source: WordSource
    announce: Step

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.labels.size)

    def counts(self) -> Sums:
        """Return how many labels lie in each cell of the bounds."""
        return count(self.labels, UNIT, CELLS)

    def add_up(self, query: Query) -> Sums:
        """Return the exact answer of a query."""
        return query.answer(self.labels)

    def draw(self, plan: Round, table: FeatureTable) -> RowPart | None:
        """Randomise the round's labels."""
        order = np.random.default_rng(0).permutation(self.count)  # public: which row in which round
        start, end = np.rint(np.array(plan.share) * self.count).astype(np.int64)
        rows = np.sort(order[start:end])
        if not rows.size:
            return None
        return draw_part(rows, self.labels[rows], plan.ensemble.predict(table, rows), plan, self.source)
