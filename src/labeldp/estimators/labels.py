"""How labels are released in rounds: budget, private mean and prior, intervals, randomising."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from labeldp._checks import EPSILON_RANGE, float_below
from labeldp.channels.noise import DiscreteLaplace
from labeldp.errors import ParameterError
from labeldp.estimators.bayes import explained_risk
from labeldp.estimators.learner import Knowledge, PrivateRows, fit_blend
from labeldp.estimators.progress import Step, quiet
from labeldp.estimators.rounds import Interval, Situation, UnitDesign, best_unit_mechanism, design_interval
from labeldp.estimators.table import FeatureTable
from labeldp.ledger import Budget
from labeldp.mechanisms import Mechanism
from labeldp.mechanisms.base import fingerprint
from labeldp.randomness import WordSource

__all__ = ["Drawn", "LabelBudget", "count_between", "draw_labels", "private_mean"]

Array = NDArray[np.float64]

GRID = 1 << 20
"""A label range has this many steps where labels are summed as integers."""

_CELLS = 64
_COUNTED = 800
"""A prior is counted if rows · its ε is at least this: else its bins would be noise."""

_RESIDUAL_CELLS = 40


@dataclass(frozen=True, slots=True)
class LabelBudget:
    """How ε is split, by what is public: the mean, the prior, and what is left for labels."""

    mean: Fraction
    prior: Fraction
    labels: Fraction

    @classmethod
    def plan(cls, epsilon: Fraction, rows: int, spectrum: Array, trust: str) -> LabelBudget:
        """Return the split of least expected risk, for labels of a usual spread in their range.

        The mean must be good enough that nothing is worse than the private constant; a coarse prior is
        worth a twentieth where it is not all noise, and is not made elsewhere.
        """
        if trust == "local":
            return cls(Fraction(0), Fraction(0), epsilon)
        total = float(epsilon)
        prior = total / 20 if total / 20 * rows >= _COUNTED else 0.0
        best = (math.inf, 0.0)
        for share in (0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97):
            left = total * (1 - share) - prior
            if left < EPSILON_RANGE[0]:
                continue
            noise = (0.52 / math.tanh(left / 2)) ** 2 / 4
            risk = 2 / (rows * share * total) ** 2 + explained_risk(spectrum, 0.02, (noise + 0.02) / rows)
            best = min(best, (risk, share))
        if best[1] == 0:
            raise ParameterError(f"epsilon={total} is too small to be split; give at least 0.002")
        mean, before = Fraction(f"{best[1] * total:.4g}"), Fraction(f"{prior:.4g}")
        return cls(mean, before, epsilon - mean - before)

    def mean_noise(self) -> DiscreteLaplace:
        """Return the noise of the sum behind the mean: one label moves it by at most `GRID` steps."""
        return DiscreteLaplace.calibrated(sensitivity=GRID, epsilon=self.mean)

    def prior_noise(self) -> DiscreteLaplace:
        """Return the noise of the prior's counts: one label moves two of them by one."""
        return DiscreteLaplace.calibrated(sensitivity=2, epsilon=self.prior)

    def mechanisms(self, drawn: list[Drawn]) -> dict[str, str]:
        """Return what each part was spent on, for the ledger."""
        prints = [fingerprint(piece.mechanism.channel) for piece in drawn]
        labels = prints[0] if len(prints) == 1 else "; ".join(f"round {k + 1}: {p}" for k, p in enumerate(prints))
        found = {"labels": labels}
        if self.mean:
            found["mean"] = str(self.mean_noise())
        if self.prior:
            found["prior"] = str(self.prior_noise())
        return found

    def parts(self) -> dict[str, Budget]:
        """Return what is paid for."""
        named = {"labels": self.labels, "mean": self.mean, "prior": self.prior}
        return {what: Budget(epsilon) for what, epsilon in named.items() if epsilon}


def private_mean(
    labels: Array, bounds: tuple[float, float], noise: DiscreteLaplace, source: WordSource
) -> tuple[float, float]:
    """Return the labels' mean with noise, and the noise's variance.

    Labels are rounded to a public grid of integers, so that their sum and its noise are exact: one label
    moves the sum by at most `GRID`.
    """
    low, high = bounds
    steps = np.rint((np.clip(labels, low, high) - low) / (high - low) * GRID).astype(np.int64)
    total = int(steps.sum()) + int(noise.sample(1, source)[0])
    unit = (high - low) / GRID / labels.size
    return float(np.clip(low + total * unit, low, high)), noise.variance() * unit**2


def count_between(values: Array, edges: Array) -> NDArray[np.int64]:
    """Return how many values lie in each bin, ends included, by comparisons that take the same time for all."""
    above = [values.size, *(int(np.count_nonzero(values >= edge)) for edge in edges[1:-1]), 0]
    return np.array([here - there for here, there in pairwise(above)], dtype=np.int64)


def first_knowledge(
    labels: Array, bounds: tuple[float, float], budget: LabelBudget, source: WordSource
) -> tuple[Knowledge, Array, Array]:
    """Return mean and variance as privately known, and a prior: values and masses."""
    low, high = bounds
    width = high - low
    values = low + width * (np.arange(_CELLS) + 0.5) / _CELLS
    values[0], values[-1] = low, high
    edges = np.linspace(0.0, 1.0, _CELLS + 1)
    if not budget.mean:  # nobody may look: all labels are equally likely, and their spread a guess
        flat = np.full(_CELLS, 1 / _CELLS)
        return Knowledge(low, high, (low + high) / 2, width**2 / 12, width**2 / 20, counted=False), values, flat
    mean, mean_variance = private_mean(labels, bounds, budget.mean_noise(), source)
    if budget.prior:
        places = (np.clip(labels, low, high) - low) / width
        noisy = (count_between(places, edges) + budget.prior_noise().sample(_CELLS, source)).astype(np.float64)
        if labels.size * float(budget.prior) < 8000:
            noisy = np.convolve(np.pad(noisy, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
        masses = np.maximum(noisy, 0.0) + 1e-12
    else:  # too few labels for a histogram: a bump of usual width around the mean
        middle = float(np.clip((mean - low) / width, 0.05, 0.95))
        sharp = 1 / 0.22 - 1
        masses = np.diff(beta.cdf(edges, middle * sharp, (1 - middle) * sharp))
    masses /= masses.sum()
    variance = float(masses @ (values - masses @ values) ** 2)
    return Knowledge(low, high, mean, mean_variance, variance, counted=bool(budget.prior)), values, masses


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rows of one part of a round, randomised.

    Attributes
    ----------
    private : PrivateRows
    low, high : arrays
        The interval of each row.
    offset, scale : arrays
        The map from the unbiased place in the unit interval to the private label.
    noise : array
        Variance of the noise in each private label, by what was known.
    hidden : float
        Variance of labels that clipping hides, by what was known.
    mechanism : Mechanism
    """

    private: PrivateRows
    low: Array
    high: Array
    offset: Array
    scale: Array
    noise: Array
    hidden: float
    mechanism: Mechanism


def draw_labels(
    table: FeatureTable,
    labels: Array,
    bounds: tuple[float, float],
    budget: LabelBudget,
    fractions: Sequence[float],
    source: WordSource,
    spectrum: Array,
    unit_design: UnitDesign = best_unit_mechanism,
    step: Step = quiet,
) -> tuple[list[Drawn], Knowledge]:
    """Return all rows, released once each, in rounds of the given sizes."""
    known, values, masses = first_knowledge(labels, bounds, budget, source)
    clipped = known.clip(labels)
    order = np.random.default_rng(0).permutation(labels.size)  # public: which row in which round
    cuts = np.rint(np.cumsum([0.0, *fractions]) / sum(fractions) * labels.size).astype(np.int64)
    epsilon = float_below(budget.labels)
    drawn: list[Drawn] = []
    for number in range(len(fractions)):
        rows = np.sort(order[cuts[number] : cuts[number + 1]])
        if not rows.size:
            continue
        step(f"round {number + 1} of {len(fractions)}")
        centre, rest = np.zeros(rows.size), known.variance / 2
        if drawn:
            blend = fit_blend(table, [d.private for d in drawn], known, spectrum, draft=True)
            centre, rest = blend.predict(table, rows), blend.rest
            values, masses = _usual_residuals(blend.error, known.high - known.low)
        now = Situation(spectrum, known.variance / 2, rest, labels.size, epsilon)
        interval = design_interval(values, masses, now)
        mechanism = unit_design(interval.unit_prior, epsilon)
        drawn.append(_draw(rows, clipped[rows], centre, interval, mechanism, known, number, source))
    return drawn, known


def _usual_residuals(variance: float, width: float) -> tuple[Array, Array]:
    """Return values and masses of a distribution between a bell and a double exponential."""
    reach = min(width, 6 * math.sqrt(variance))
    edges = reach * np.sinh(3 * np.linspace(-1, 1, _RESIDUAL_CELLS + 1)) / math.sinh(3)
    values = (edges[1:] + edges[:-1]) / 2
    rate = math.sqrt(2 / variance)
    bell = np.exp(-0.5 * values**2 / variance) / math.sqrt(2 * math.pi * variance)
    masses = (0.5 * bell + 0.25 * rate * np.exp(-np.abs(values) * rate)) * np.diff(edges)
    return values, masses / masses.sum()


def _draw(
    rows: NDArray[np.int64],
    labels: Array,
    centre: Array,
    interval: Interval,
    mechanism: Mechanism,
    known: Knowledge,
    number: int,
    source: WordSource,
) -> Drawn:
    """Randomise labels over an interval around each centre, inside the bounds."""
    low = np.maximum(known.low, centre + interval.low)
    high = np.minimum(known.high, centre + interval.high)
    high = np.maximum(high, low + 1e-6 * (known.high - known.low))
    width = high - low
    unit = mechanism.debias(mechanism.randomize((labels - low) / width, random_state=source))
    offset, scale = centre + interval.shift + interval.slope * (low - centre), interval.slope * width
    private = offset + scale * unit
    spread = float(interval.unit_prior.masses @ mechanism.unbiased_variance(interval.unit_prior.centers))
    noise = np.asarray(spread * scale**2)
    rows_drawn = PrivateRows(rows, np.asarray(private), float(noise.mean()), number)
    return Drawn(rows_drawn, low, high, offset, scale, noise, interval.hidden, mechanism)
