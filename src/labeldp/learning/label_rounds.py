"""Labels released in rounds: each row randomised once, around what earlier rounds predict for it.

The rounds are the same wherever the rows are, in memory or on a cluster: `LabelRows` is what they must offer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from labeldp._values import Array, Index, Sums
from labeldp.accounts.statistic import Statistic
from labeldp.errors import PrivacyProofError
from labeldp.exact.word_sources import WordSource
from labeldp.learning.bayes import Observations, Posterior
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import UNIT, LabelSummary, SumBudget, round_cuts
from labeldp.learning.learner import Ensemble, PrivateRows, fit_ensemble
from labeldp.learning.round_design import Interval, Situation, design_interval
from labeldp.learning.runtime import Step, quiet
from labeldp.learning.sums import CELLS, Stage, SumModel, find_range, fit_sums
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.interval import UnitNoise
from labeldp.release.curator import count
from labeldp.release.plan import Plan

_RESIDUAL_CELLS = 40
_FLAT_CELLS = 64


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

    def centre(self, table: FeatureTable, rows: Index) -> Array:
        """Return what the interval of each row is centred on."""
        return self.ensemble.predict(table, rows)


P_co = TypeVar("P_co", bound=Part, covariant=True)


class LabelRows(Protocol[P_co]):
    """Private labels of public rows, wherever they are; sums and rounds have them in units of their bounds."""

    @property
    def count(self) -> int:
        """How many rows there are."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The labels' public bounds."""

    @property
    def table(self) -> FeatureTable:
        """The features of all rows, or of a sample."""

    @property
    def all_here(self) -> bool:
        """Whether the table has all rows, which sums over groups need; else it is a sample."""

    def counts(self) -> Sums:
        """Return how many labels lie in each of `CELLS` cells of the bounds, exactly."""

    def add_up(self, stage: Stage) -> Sums:
        """Return a stage's exact sums over all labels."""

    def draw(self, plan: Round) -> P_co | None:
        """Randomise the round's labels; None if it has no rows."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was learnt before labels are released one by one, and the statistics that it took."""

    knowledge: LabelSummary
    sums: SumModel | None = None
    noise: Sequence[Statistic] = ()

    @property
    def observations(self) -> list[Observations]:
        """The statistics of sums."""
        return [] if self.sums is None else self.sums.observations

    def ensemble(self, table: FeatureTable) -> Ensemble:
        """Return the model so far."""
        knowledge = self.knowledge
        if self.sums is not None:
            linear = self.sums.linear
            return Ensemble(linear, None, 0.0, linear.rest, self.sums.spread, knowledge)
        rest = knowledge.variance / 2
        constant = Posterior(np.zeros(table.public.size, dtype=np.float32), knowledge.middle, 0.0, rest, ())
        return Ensemble(constant, None, 0.0, rest, knowledge.variance, knowledge)


def measure(rows: LabelRows[Part], plan: Plan, source: WordSource, step: Step = quiet) -> Measured:
    """Return what was paid for before labels: a range, noisy sums and the spread around their model.

    Under local trust nothing was, and no sum, count or range is taken.
    """
    if not plan.for_sums:
        return Measured(LabelSummary(*UNIT, variance=1 / 20))
    budget = SumBudget(plan.for_sums, rows.count)
    step("range")
    found = find_range(rows.counts, UNIT, budget, source)
    low, high = found or UNIT
    sums = fit_sums(
        rows.table,
        (low, high),
        budget,
        rows.add_up,
        source,
        grouped=rows.all_here and found is not None,
        step=step,
    )
    variance = sums.linear.explained + sums.linear.rest
    return Measured(LabelSummary(low, high, variance, sums=sums.sums), sums, budget.noise)


def draw_rounds(
    rows: LabelRows[P_co],
    measured: Measured,
    plan: Plan,
    noise: UnitNoise,
    fractions: Sequence[float],
    spectrum: Array,
    step: Step = quiet,
) -> list[P_co]:
    """Return all rows, released once each, in rounds of the given sizes; if one was not, nothing is."""
    knowledge, ensemble = measured.knowledge, measured.ensemble(rows.table)
    cuts, epsilon = round_cuts(fractions), plan.epsilon
    parts: list[P_co] = []
    for number in range(len(fractions)):
        step(f"round {number + 1} of {len(fractions)}")
        if parts:
            ensemble = ensemble_of(rows.table, parts, measured, spectrum, quick=True)
        if parts or measured.sums is not None:
            values, masses = _residual_prior(ensemble.error, knowledge.width)
        else:  # all labels are equally likely
            values = knowledge.width * np.linspace(-0.5, 0.5, _FLAT_CELLS)
            masses = np.full(_FLAT_CELLS, 1 / _FLAT_CELLS)
        situation = Situation(spectrum, knowledge.variance / 2, ensemble.rest, rows.count, noise)
        interval = design_interval(values, masses, situation)
        mechanism = plan.request.design(interval.unit_prior, 0, epsilon, rows.count)
        share = (float(cuts[number]), float(cuts[number + 1]))
        part = rows.draw(Round(number, share, interval, mechanism, knowledge, ensemble))
        if part is not None:
            parts.append(part)
    _refuse_unless_once(rows, parts)
    return parts


def _refuse_unless_once(rows: LabelRows[P_co], parts: Sequence[Part]) -> None:
    """Refuse a release in which a row is missing, its entry unwritten, or is there twice, at twice its price."""
    released = np.concatenate([np.zeros(0, dtype=np.int64), *(part.private.rows for part in parts)])
    times = np.bincount(released, minlength=rows.table.rows)
    count = sum(part.private.rows.size if part.observed is None else part.observed.count for part in parts)
    if times.size != rows.table.rows or (times != 1).any() or count != rows.count:
        raise PrivacyProofError(
            "not every row was drawn exactly once: this is a fault of the program, and nothing was released"
        )


def ensemble_of(
    table: FeatureTable, parts: Sequence[Part], measured: Measured, spectrum: Array, *, quick: bool = False
) -> Ensemble:
    """Return the learner for all that was released so far."""
    return fit_ensemble(
        table,
        [part.private for part in parts],
        measured.knowledge,
        spectrum,
        sums=measured.observations,
        quick=quick,
        observed=[part.observed for part in parts if part.observed is not None] or None,
    )


@dataclass(frozen=True, slots=True, repr=False)
class RowsHere:
    """Rows whose labels are in memory, in units of their bounds. Their text form shows no label."""

    table: FeatureTable
    labels: Array = field(repr=False)
    bounds: tuple[float, float]
    source: WordSource

    def __repr__(self) -> str:
        return f"<{self.count:,} private labels>"

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.labels.size)

    @property
    def all_here(self) -> bool:
        """The table has all rows."""
        return True

    def counts(self) -> Sums:
        """Return how many labels lie in each cell of the bounds."""
        return count(self.labels, UNIT, CELLS)

    def add_up(self, stage: Stage) -> Sums:
        """Return a stage's exact sums."""
        return stage.sums(self.labels)

    def draw(self, plan: Round) -> RowPart | None:
        """Randomise the round's labels."""
        order = np.random.default_rng(0).permutation(self.count)  # public: which row in which round
        start, end = np.rint(np.array(plan.share) * self.count).astype(np.int64)
        rows = np.sort(order[start:end])
        if not rows.size:
            return None
        return draw_part(rows, self.labels[rows], plan.centre(self.table, rows), plan, self.source)


def _residual_prior(variance: float, width: float) -> tuple[Array, Array]:
    """Return values and masses of a distribution between a bell and a double exponential."""
    reach = min(width, 6 * math.sqrt(variance))
    edges = reach * np.sinh(3 * np.linspace(-1, 1, _RESIDUAL_CELLS + 1)) / math.sinh(3)
    values = (edges[1:] + edges[:-1]) / 2
    rate = math.sqrt(2 / variance)
    bell = np.exp(-0.5 * values**2 / variance) / math.sqrt(2 * math.pi * variance)
    masses = (0.5 * bell + 0.25 * rate * np.exp(-np.abs(values) * rate)) * np.diff(edges)
    return values, masses / masses.sum()


@np.errstate(all="ignore")  # a warning that depends on labels would leak them
def draw_part(rows: Index, labels: Array, centre: Array, plan: Round, source: WordSource) -> RowPart:
    """Randomise labels over an interval around each centre, inside the bounds."""
    interval, mechanism, knowledge = plan.interval, plan.mechanism, plan.knowledge
    least = 1e-6 * knowledge.width  # of an interval that lies beyond the bounds, that much stays inside
    low = np.clip(centre + interval.low, knowledge.low, knowledge.high - least)
    high = np.clip(centre + interval.high, low + least, knowledge.high)
    width = high - low
    channel = mechanism.channel
    unit = channel.debias(mechanism.randomize_checked((knowledge.clip(labels) - low) / width, source))
    offset, scale = centre + interval.shift + interval.slope * (low - centre), interval.slope * width
    private = offset + scale * unit
    spread = (
        float(interval.unit_prior.masses @ channel.variance(interval.unit_prior.centers)) / channel.slope() ** 2
    )
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
