"""What a curator releases before any label: where labels lie, and noisy sums over groups of rows.

First a range: public bounds may be far too wide, and noise grows with them. Then sums over groups of similar rows;
then, with enough rows, sums of what is left after a first model, clipped. Every statistic is an exact integer that
one label moves by no more than its noise is calibrated to (docs/proofs/regressors.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.special import erf

from labeldp._values import Array, Index, Sums
from labeldp.exact.integers import DiscreteLaplace
from labeldp.exact.word_sources import WordSource
from labeldp.learning.bayes import EXPLAINED, MEAN_VARIANCE, Observations, Posterior, fit_linear, unknown_variance
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import LabelSummary, SumBudget
from labeldp.learning.groups import FINE, Geometry, Grouping, Groups, Guess, NoisySums
from labeldp.learning.relevance import Relevance, can_learn, first_lengths, learn_lengths
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

_GROUPED, _RANGE_ROWS, _MEASURED = 60, 200, 500
"""Rows · ε from which on there are sums of groups, a range is looked for, and distances of labels from the first
model are counted. Below the first, or if bounds seem loose and no range can be found, the mean of all labels takes
all of the budget, and is as good as it can be."""

_SUSPECT_PART = (0.12, 16)
_TEST_PART = (0.05, 40)
_WIDTH_PART = (0.2, 200)
_PLACE_PART = (0.25, 100)
_SPREAD_PART = (0.1, 80)
"""The share of what is left of ε for the test whether bounds are loose at little power, for the same with more,
for a range's width, for its place, and for distances; and how many rows · ε are enough for it in any case."""

_NEXT_TO = 0.02
"""A window next to the range belongs to it if it has more of the rows, and more than noise would give it."""

_FIRST_PART, _FIRST_MOST, _FIRST_POWER = 0.3, 0.4, 50
"""The first stage gets this part of ε; up to the second at little power, as much as is worth so many rows."""

_LEARNING = 1000
_STAGES = (0.2, 0.375)
"""Rows · ε from which on lengths of columns are learnt from sums, and the shares of what is left for the first two
of three stages then: groups are formed again after each."""

_OCTAVES = 14
"""Distances are counted by halves of the range, down to 2^−14 of it."""

_SIGNAL = 0.0133
_BLOCKS = np.array([0.35, 0.3, 0.2, 0.15, 0.15])
_REST = 0.02
"""Guesses before any release, in squared ranges: what blocks of features explain, and what they do not."""

_WEAKEST = EXPLAINED[0] / 10
"""What a block counts for at least, in squared ranges, when groups are formed again: less could not be found."""

_REACH = 2.0
"""Residuals are clipped at so many standard deviations where these were measured."""

_GUESSED_REACHES = {1.0: 0.2, 3.0: 0.25, math.inf: 0.3}
"""Where they were not: in ranges, for ε below the key; the less noise there is, the more clipping costs."""

_SECOND_STAGE = 0.95
"""How much of the spread around the first model is left around the second."""


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
        return None if holds_most(_LOOSE, budget.part(*_SUSPECT_PART), _SUSPECT) else bounds
    if not holds_most(_LOOSE, budget.part(*_TEST_PART)):
        return bounds
    epsilon = budget.part(*_WIDTH_PART) / math.ceil(math.log2(_LEVELS - _LOOSE + 1))
    level = narrowest_level(partial(holds_most, epsilon=epsilon), _LOOSE, _LEVELS)
    halves = half_windows(counts, level)
    epsilon = budget.part(*_PLACE_PART)
    noisy = budget.release(halves, epsilon, source, kind="counts", what="counts of windows")
    pairs = noisy[1:] + noisy[:-1]
    if pairs.max() < budget.rows / 2:  # lost in noise
        return bounds
    first = int(np.argmax(pairs))
    last = first + 1
    some = max(_NEXT_TO * budget.rows, 6 / float(epsilon))
    while first > 0 and noisy[first - 1] > some:
        first -= 1
    while last < noisy.size - 1 and noisy[last + 1] > some:
        last += 1
    half = (high - low) / 2**level / 2
    return max(low, low + half * (first - 2)), min(high, low + half * (last + 3))


AddUp = Callable[["Stage"], Sums]
"""Returns what `Stage.totals` does, over all rows, wherever they are."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What is summed of each label: its place in a range, or its clipped distance from a guess.

    Or, with ``octaves``, how many labels are how far from their guesses.

    Attributes
    ----------
    range : (lo, hi)
        To which labels are clipped.
    group : array of int or None
        The sum to which each row of a table belongs; None if all belong to one.
    count : int
        The number of sums.
    guess : array or None
        Of every row of the table.
    reach : float
        How far from its guess a label counts.
    octaves : bool
        Whether labels are counted by their distance: up to the reach, half of it, a quarter, and so on.
    rules : (Grouping or None, Guess or None)
        Of which group and guess follow, for rows elsewhere.
    """

    range: Range
    group: Index | None = field(default=None, repr=False)
    count: int = 1
    guess: Array | None = field(default=None, repr=False)
    reach: float = 0.0
    octaves: bool = False
    rules: tuple[Grouping | None, Guess | None] = (None, None)

    def bare(self) -> Stage:
        """Return the stage without the rows of the table."""
        return replace(self, group=None, guess=None)

    def on(self, X: Array) -> Stage:
        """Return the stage of other rows, by their columns: to the same bits in any batch of them."""
        grouping, guessing = self.rules
        group = None if grouping is None else grouping.of(FeatureTable(grouping.public, X, exact=True))
        guess = None if guessing is None else guessing.of(FeatureTable(guessing.public, X, exact=True))
        return replace(self, group=group, guess=guess)

    @property
    def width(self) -> float:
        """The range of what is summed."""
        return self.range[1] - self.range[0] if self.guess is None else 2 * self.reach

    def totals(self, labels: Array) -> Sums:
        """Return exact sums; below those of groups, in two further rows, their sizes and the sums of guesses.

        The first row has labels in it, and gets noise. The others are public. Those of parts of the rows add up.
        """
        sums = self.sums(labels)[None]
        if self.group is None:
            return sums
        public = np.zeros((2, self.count), dtype=np.int64)
        np.add.at(public[0], self.group, 1)
        if self.guess is not None:
            np.add.at(public[1], self.group, np.rint(self.guess * FINE).astype(np.int64))
        return np.concatenate([sums, public])

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def sums(self, labels: Array) -> Sums:
        """Return exact sums of what labels count for."""
        values = np.clip(labels, *self.range)
        if self.guess is None:
            values = values - self.range[0]
        else:
            gaps = np.clip(values - self.guess, -self.reach, self.reach)
            if self.octaves:
                return self._octaves(np.abs(gaps))
            values = gaps + self.reach
        steps = np.clip(np.rint(values / self.width * STEPS), 0, STEPS).astype(np.int64)
        if self.group is None:
            return np.asarray(steps.sum(keepdims=True))
        sums = np.zeros(self.count, dtype=np.int64)
        np.add.at(sums, self.group, steps)
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

    def release_centred(
        self, groups: Groups, epsilon: Fraction, budget: SumBudget, add_up: AddUp, source: WordSource
    ) -> NoisySums:
        """Return noisy sums of labels, less the middle of their range."""
        exact, *public = add_up(self)
        sums, middle = self.release(exact, epsilon, budget, source), (self.range[0] + self.range[1]) / 2
        if public:
            groups = replace(groups, sizes=np.maximum(public[0], 1.0))
        if self.guess is None:
            sums = sums - groups.sizes * (middle - self.range[0])
        else:
            sums = sums + public[1] / FINE - groups.sizes * (self.reach + middle)
        return NoisySums(groups, sums, self.variance(epsilon))


@dataclass(frozen=True, slots=True)
class SumModel:
    """What is learnt from noisy sums.

    Attributes
    ----------
    linear : Posterior
    released : list of NoisySums
        For models that learn from labels, too.
    start : array
        What the first model predicts for each row.
    spread : float
        Variance of labels around the model, measured or guessed.
    rest : float
        Variance of labels that features do not explain, by which sums are scaled.
    table : FeatureTable
        Features of the rows, with interactions if lengths were learnt.
    relevance : Relevance or None
        These lengths.
    """

    linear: Posterior
    released: list[NoisySums]
    start: Array
    spread: float
    rest: float
    table: FeatureTable
    relevance: Relevance | None = None

    @property
    def observations(self) -> list[Observations]:
        """Their statistics."""
        return [each.observations(self.rest) for each in self.released]

    @property
    def sums(self) -> int:
        """How many sums there are in all."""
        return sum(each.sums.size for each in self.released)

    def with_lengths(self, found: Relevance, rest: float) -> SumModel:
        """Return the same sums on features with other lengths."""
        table = self.table.with_lengths(found.lengths, found.doubt)
        released = [each.on(table) for each in self.released]
        return replace(self, released=released, rest=rest, table=table, relevance=found)


def fit_sums(
    table: FeatureTable,
    range: Range,
    budget: SumBudget,
    add_up: AddUp,
    source: WordSource,
    *,
    grouped: bool = True,
) -> SumModel:
    """Return the linear model learnt from noisy sums, for all of the budget.

    Labels are summed once a stage, by ``add_up``; noise is added here, and what follows sees nothing else. Unless
    ``grouped``, the mean of all labels is the only sum. The table may be a sample of the rows.
    """
    low, high = range
    width = high - low
    if not grouped:
        return _fit_mean(table, range, budget, add_up, source)
    learning = can_learn(table) and budget.power >= _LEARNING
    shares = _STAGES if learning else (max(_FIRST_PART, min(_FIRST_MOST, _FIRST_POWER / budget.power)),)
    if learning:
        table = table.with_lengths(first_lengths(table.columns), 0.0)
    stage, rest, strength = Stage(range), _REST * width**2, _SIGNAL * _BLOCKS * width**2
    released: list[NoisySums] = []
    starts: list[Array] = []
    found, spread, measured = None, 0.0, False
    for share in (*shares, 1.0):
        epsilon = budget.part(share, math.inf) if share < 1 else budget.left
        geometry = Geometry.of(table, np.append(strength[table.public.block], MEAN_VARIANCE * width**2))
        known = [each.observations(rest).gram for each in released]
        groups = geometry.groups(table, budget.rows, noise=stage.variance(epsilon), rest=rest, known=known)
        rules = groups.rule, stage.rules[1]
        stage = replace(stage, group=groups.group, count=groups.sizes.size, rules=rules)
        released.append(stage.release_centred(groups, epsilon, budget, add_up, source))
        linear = _fit(table, released, rest, range)
        if share < 1:
            guess = Guess(table.public, linear, range)
            starts.append(guess.of(table))
            spread = spread or linear.rest + linear.explained / 2
            stage = Stage(range, guess=starts[-1], reach=width, rules=(None, guess))
            if budget.power >= _MEASURED:
                counts = replace(stage, octaves=True)
                spread, measured = _measured_spread(counts, budget, add_up, source), True
            guessed = next(part for below, part in _GUESSED_REACHES.items() if budget.left < below)
            reach = min(width, _REACH * math.sqrt(spread)) if measured else guessed * width
            stage, rest = replace(stage, reach=reach), min(linear.rest, spread)
        if learning:
            found = learn_lengths(table, linear, LabelSummary(low, high, 0.0), released, [], spread=spread)
            table = table.with_lengths(found.lengths, found.doubt)
            released = [each.on(table) for each in released]
            linear = _fit(table, released, rest, range)
        strength = np.maximum(linear.blocks, _WEAKEST * width**2)  # by what blocks were found to explain
    spread = _SECOND_STAGE * spread if measured else float(np.clip(linear.rest, spread / 2, spread))
    return SumModel(linear, released, starts[0], spread, rest, table, found)


def _fit(table: FeatureTable, released: list[NoisySums], rest: float, range: Range) -> Posterior:
    """Return the model for all sums so far."""
    width = range[1] - range[0]
    return fit_linear(
        [each.observations(rest) for each in released],
        table.public.block,
        mean=(range[0] + range[1]) / 2,
        mean_variance=MEAN_VARIANCE * width**2,
        choices=unknown_variance(width),
        doubt=table.doubt,
    )


def _fit_mean(table: FeatureTable, range: Range, budget: SumBudget, add_up: AddUp, source: WordSource) -> SumModel:
    """Return the model of one sum of all labels, for all of the budget."""
    stage, rest = Stage(range), _REST * (range[1] - range[0]) ** 2
    groups = Groups.of_all(table, budget.rows)
    released = [stage.release_centred(groups, budget.left, budget, add_up, source)]
    linear = _fit(table, released, rest, range)
    start = np.clip(table.predict(linear, np.arange(table.rows)), *range)
    return SumModel(linear, released, start, linear.rest + linear.explained / 2, rest, table)


def _measured_spread(stage: Stage, budget: SumBudget, add_up: AddUp, source: WordSource) -> float:
    """Return the variance of labels around their guesses, by noisy counts of distances."""
    epsilon = budget.part(*_SPREAD_PART)
    noisy = budget.release(add_up(stage)[0], epsilon, source, kind="counts", what="counts of distances")
    return _spread(noisy, float(epsilon), stage.reach)


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
