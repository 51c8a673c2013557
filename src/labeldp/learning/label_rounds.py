"""Labels released in rounds: each row randomised once, around what earlier rounds predict for it.

Noise falls with the square of an interval's width, so a prediction made from earlier private labels, and free to
use, buys accuracy. The rounds are the same wherever the rows are, in memory or on a cluster: `LabelRows` is what
they must offer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from labeldp._values import Array, Index, Sums
from labeldp.accounts.statistic import Statistic
from labeldp.errors import PrivacyProofError
from labeldp.exact.word_sources import WordSource
from labeldp.learning.bayes import Posterior
from labeldp.learning.bayes_solvers import Observations
from labeldp.learning.ensemble import Ensemble, PrivateRows
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.interval_design import Interval, Residuals, design_interval, learner_risk
from labeldp.learning.label_queries import Query
from labeldp.learning.label_range import find_range
from labeldp.learning.label_units import UNIT, LabelSummary, Limits
from labeldp.learning.learner import fit_ensemble, quick_linear
from labeldp.learning.relevance import can_learn, learn_lengths
from labeldp.learning.sum_model import SumModel, fit_mean, fit_sums
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.interval import UnitNoise
from labeldp.release.plan import Plan

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

    Features are those of the rows, with interactions if the lengths of these were learnt.
    """

    table: FeatureTable
    knowledge: LabelSummary
    sums: SumModel | None = None
    noise: Sequence[Statistic] = ()

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


def draw_rounds(rows: LabelRows, measured: Measured, plan: Plan, noise: UnitNoise, ends: Array) -> list[Any]:
    """Return all rows, released once each, in rounds with the given ends; if one was not, nothing is."""
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
        mechanism = plan.request.design(interval.unit_prior(), 0, plan.epsilon, rows.count)
        part = rows.draw(Round(number, share, interval, mechanism, knowledge, ensemble), table)
        if part is not None:
            parts.append(part)
    _refuse_unless_once(rows, parts)
    return parts


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
    if sums is None or not can_learn(table) or any(part.observed is not None for part in parts):
        return measured
    linear = quick_linear(table, private, measured.knowledge, sums=measured.observations)
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
