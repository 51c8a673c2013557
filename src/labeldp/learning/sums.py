"""What a curator releases before any label: where labels lie, and noisy sums over groups of rows.

First a range: public bounds may be far too wide, and noise grows with them. Then sums over groups of similar rows;
then, with enough rows, sums of what is left after a first model, clipped. Every statistic is an exact integer that
one label moves by no more than its noise is calibrated to (docs/proofs/regressors.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.special import erf

from labeldp._values import Array, Index, Sums
from labeldp.exact.integers import DiscreteLaplace
from labeldp.exact.word_sources import WordSource
from labeldp.learning.bayes import EXPLAINED, MEAN_VARIANCE, Observations, Posterior, fit_linear, unknown_variance
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import SumBudget
from labeldp.learning.groups import Geometry, Groups
from labeldp.learning.runtime import Step, quiet
from labeldp.release.curator import half_windows, largest_window, narrowest_level

Range = tuple[float, float]

STEPS = 1 << 16
"""Labels are integers from 0 to this where they are summed."""

_LEVELS = 12
CELLS = 2 << _LEVELS
"""Labels are counted in so many cells of the bounds, none of which is released, to find their range."""

_LOOSE = 3
_COVER, _SUSPECT = 0.8, 0.72
"""Bounds are loose if a window 2^−3 as wide holds the first part of the labels; the range is then about the
narrowest such window that is found, what lies next to it, and a window on either side. At little power, where that
cannot be found, the second part is enough to suspect it."""

_OCTAVES = 14
_MEASURED = 500
"""From this many rows · ε on, distances of labels from the first model are counted."""

_RANGE_ROWS = 200
"""With less than this many rows · ε a range could not be found, and is not looked for."""

_GROUPED = 60
"""From this many rows · ε on there are sums of groups, in two stages, unless bounds seem loose and no range can be
found: then, as below, the mean of all labels takes all of the budget, and is as good as it can be."""

_SIGNAL = 0.0133
_BLOCKS = np.array([0.35, 0.3, 0.2, 0.15])
_REST = 0.02
"""Guesses before any release, in squared ranges: what blocks of features explain, and what they do not."""


def first_prior(table: FeatureTable, width: float) -> Array:
    """Return the prior variance of each weight before any release."""
    return np.append(_SIGNAL * _BLOCKS[table.public.block] * width**2, MEAN_VARIANCE * width**2)


def find_range(
    count_labels: Callable[[], Sums], bounds: Range, budget: SumBudget, source: WordSource
) -> Range | None:
    """Return where labels lie, inside the bounds; the bounds themselves unless they are far too wide.

    None where the budget is too small to find it, and bounds seem loose or cannot even be tested: then nothing but
    the mean of all labels is worth asking for.

    First a small test whether bounds are loose, which costs next to nothing. If they are, the narrowest window,
    among widths halved again and again, that holds most labels: a search by halves for its width, each step with
    noise on the largest count of any window of that width, which one label moves by one at most; then noisy counts
    that place it.

    Parameters
    ----------
    count_labels : callable
        Returns how many labels lie in each of `CELLS` cells of the bounds, exactly; called only if that is used.
    bounds : (lo, hi)
    budget : SumBudget
    source : source of words
    """
    low, high = bounds
    if budget.power < _GROUPED:
        return None
    counts = count_labels()

    def holds_most(level: int, epsilon: Fraction, most: float = _COVER) -> bool:
        largest = largest_window(counts, level)
        noisy = budget.release(largest, epsilon, source, kind="largest count", what="largest count of a window")
        return bool(noisy[0] >= most * budget.rows)

    if budget.power < _RANGE_ROWS:
        return None if holds_most(_LOOSE, budget.part(0.12, 16), _SUSPECT) else bounds
    if not holds_most(_LOOSE, budget.part(0.05, 40)):
        return bounds
    epsilon = budget.part(0.2, 200) / math.ceil(math.log2(_LEVELS - _LOOSE + 1))
    level = narrowest_level(partial(holds_most, epsilon=epsilon), _LOOSE, _LEVELS)
    halves = half_windows(counts, level)
    epsilon = budget.part(0.25, 100)
    noisy = budget.release(halves, epsilon, source, kind="counts", what="counts of windows")
    pairs = noisy[1:] + noisy[:-1]
    if pairs.max() < budget.rows / 2:  # lost in noise
        return bounds
    first = last = int(np.argmax(pairs))
    last += 1
    some = max(0.02 * budget.rows, 6 / float(epsilon))  # more than noise would give a cell
    while first > 0 and noisy[first - 1] > some:
        first -= 1
    while last < noisy.size - 1 and noisy[last + 1] > some:
        last += 1
    half = (high - low) / 2**level / 2
    return max(low, low + half * (first - 2)), min(high, low + half * (last + 3))


@dataclass(frozen=True, slots=True)
class Stage:
    """What is summed of each label: its place in a range, or its clipped distance from a guess.

    Or, with ``octaves``, how many labels are how far from their guesses.

    Attributes
    ----------
    range : (lo, hi)
        To which labels are clipped.
    group : array of int or None
        The sum to which each row belongs; None if all belong to one.
    count : int
        The number of sums.
    guess : array or None
        Of every row.
    reach : float
        How far from its guess a label counts.
    octaves : bool
        Whether labels are counted by their distance: up to the reach, half of it, a quarter, and so on.
    """

    range: Range
    group: Index | None = field(default=None, repr=False)
    count: int = 1
    guess: Array | None = field(default=None, repr=False)
    reach: float = 0.0
    octaves: bool = False

    @property
    def width(self) -> float:
        """The range of what is summed."""
        return self.range[1] - self.range[0] if self.guess is None else 2 * self.reach

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def sums(self, labels: Array, rows: Index | None = None) -> Sums:
        """Return exact sums, of some rows or of all; sums of parts add up."""
        values = np.clip(labels, *self.range)
        if self.guess is None:
            values = values - self.range[0]
        else:
            guess = self.guess if rows is None else self.guess[rows]
            gaps = np.clip(values - guess, -self.reach, self.reach)
            if self.octaves:
                return self._octaves(np.abs(gaps))
            values = gaps + self.reach
        steps = np.clip(np.rint(values / self.width * STEPS), 0, STEPS).astype(np.int64)
        if self.group is None:
            return np.asarray(steps.sum(keepdims=True))
        sums = np.zeros(self.count, dtype=np.int64)
        np.add.at(sums, self.group if rows is None else self.group[rows], steps)
        return sums

    def _octaves(self, distances: Array) -> Sums:
        """Return the counts by comparisons, the same for all distances: a logarithm's time would leak them."""
        within = np.zeros(_OCTAVES + 1, dtype=np.int64)
        for k in range(_OCTAVES):
            np.sum(distances <= self.reach / 2**k, dtype=np.int64, out=within[k : k + 1], keepdims=True)
        return np.asarray(within[:-1] - within[1:])

    def variance(self, epsilon: Fraction) -> float:
        """Return the variance of the noise of a sum, in squared units of what is summed."""
        noise = DiscreteLaplace.calibrated(sensitivity=STEPS, epsilon=epsilon)
        return noise.variance() * (self.width / STEPS) ** 2

    def release(self, sums: Sums, epsilon: Fraction, budget: SumBudget, source: WordSource) -> Array:
        """Return sums with noise, as numbers: one label moves one sum, by at most `STEPS`."""
        noisy = budget.release(sums, epsilon, source, kind="sums", what=f"{self.count:,} sums", steps=STEPS)
        return np.asarray(noisy * (self.width / STEPS))


AddUp = Callable[[Stage], Sums]
"""Returns a stage's exact sums over all rows, wherever their labels are."""


@dataclass(frozen=True, slots=True)
class SumModel:
    """What is learnt from noisy sums.

    Attributes
    ----------
    range : (lo, hi)
    linear : Posterior
    observations : list
        For models that learn from labels, too.
    start : array
        What the first model predicts for each row.
    spread : float
        Variance of labels around the model, measured or guessed.
    """

    range: Range
    linear: Posterior
    observations: list[Observations]
    start: Array
    spread: float

    @property
    def sums(self) -> int:
        """How many sums there are in all."""
        return sum(part.count for part in self.observations)


def fit_sums(
    table: FeatureTable,
    range: Range,
    budget: SumBudget,
    add_up: AddUp,
    source: WordSource,
    *,
    grouped: bool = True,
    step: Step = quiet,
) -> SumModel:
    """Return the linear model learnt from noisy sums, for all of the budget.

    Labels are summed once a stage, by ``add_up``; noise is added here, and what follows sees nothing else. Unless
    ``grouped``, the mean of all labels is the only sum: where the table is a sample of the rows.
    """
    low, high = range
    width, middle = high - low, (low + high) / 2
    choices = unknown_variance(width)

    def learn(observations: list[Observations]) -> Posterior:
        return fit_linear(
            observations, table.public.block, mean=middle, mean_variance=MEAN_VARIANCE * width**2, choices=choices
        )

    epsilon = budget.part(max(0.3, min(0.4, 50 / budget.power)), math.inf) if grouped else budget.left
    step("rough sums" if grouped else "sums")
    prior, rest = first_prior(table, width), _REST * width**2
    noise = Stage(range).variance(epsilon)
    if grouped:
        groups = Geometry.of(table, prior).groups(table, noise=noise, rest=rest)
    else:
        mean = (table.moments[-1:] * budget.rows).astype(np.float32)
        groups = Groups(np.zeros(table.rows, np.int64), np.array([float(budget.rows)]), mean)
    stage = Stage(range, groups.group if grouped else None, groups.sizes.size)
    sums = stage.release(add_up(stage), epsilon, budget, source) - groups.sizes * (middle - low)
    observed = [groups.observations(sums, rest, noise)]
    linear = learn(observed)
    start = np.clip(table.predict(linear, np.arange(table.rows)), low, high)
    spread = linear.rest + linear.explained / 2
    if not grouped:
        return SumModel(range, linear, observed, start, spread)
    measured = budget.power >= _MEASURED
    if measured:
        step("spread")
        stage = Stage(range, guess=start, reach=width, octaves=True)
        epsilon = budget.part(0.1, 80)
        noisy = budget.release(add_up(stage), epsilon, source, kind="counts", what="counts of distances")
        spread = _spread(noisy, float(epsilon), width)
    step("sums of residuals")
    epsilon = budget.left
    unmeasured = 0.2 if epsilon < 1 else 0.25 if epsilon < 3 else 0.3
    reach = min(width, 2 * math.sqrt(spread)) if measured else unmeasured * width
    noise, rest = Stage(range, guess=start, reach=reach).variance(epsilon), min(linear.rest, spread)
    strength = np.maximum(linear.blocks, EXPLAINED[0] / 10 * width**2)  # by what blocks were found to explain
    geometry = Geometry.of(table, np.append(strength[table.public.block], MEAN_VARIANCE * width**2))
    groups = geometry.groups(table, noise=noise, rest=rest, known=observed[0].gram)
    stage = Stage(range, groups.group, groups.sizes.size, start, reach)
    sums = stage.release(add_up(stage), epsilon, budget, source) - groups.sizes * reach
    sums += np.bincount(groups.group, start - middle, groups.sizes.size)
    observed.append(groups.observations(sums, rest, noise))
    linear = learn(observed)
    spread = 0.95 * spread if measured else float(np.clip(linear.rest, spread / 2, spread))
    return SumModel(range, linear, observed, start, spread)


def _spread(noisy: Sums, epsilon: float, width: float) -> float:
    """Return the variance of residuals whose distances, by octaves, fit noisy counts best.

    Residuals are taken to lie between a bell and a double exponential, as where intervals are designed.
    """
    rows = max(1.0, float(noisy.sum()))
    edges = np.append(2.0 ** -np.arange(_OCTAVES), 0.0)  # from far to near, in widths
    best = (math.inf, 0.0)
    for deviation in 2.0 ** (-np.arange(4, 48) / 4):
        t = edges / deviation
        within = 0.5 * erf(t / math.sqrt(2)) + 0.5 * -np.expm1(-math.sqrt(2) * t)
        expected = rows * np.append(1 - within[1], within[1:-1] - within[2:])
        level = 8 / epsilon**2 + expected + (0.03 * rows) ** 2
        best = min(best, (float(np.sum((noisy - expected) ** 2 / level)), float(deviation)))
    return (best[1] * width) ** 2
