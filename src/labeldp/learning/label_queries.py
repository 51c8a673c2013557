"""Queries on labels: exact integers of known sensitivity, to which noise is added.

`SumQuery` adds up labels, or residuals, by groups of rows. `DistanceQuery` counts how far labels are from
predictions. Groups and predictions are public functions of a row's features and of noisy values that were
released before. So a query can be answered on any machine, and the answers of parts of the rows are added up. The
proof is in docs/proofs/regressors.md.

Noise grows with the range of labels, and public bounds may be far too wide. So the first query estimates the
range: the bounds are cut into overlapping windows, narrower than the bounds by a power of two, and one label
changes the largest count of any window by at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from labeldp._values import Array, Index, Sums
from labeldp.exact.integers import DiscreteLaplace
from labeldp.exact.word_sources import WordSource
from labeldp.learning import epsilon_split as split
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import Limits, Pair
from labeldp.learning.groups import PREDICTION_UNIT, Grouping, Groups, NoisySums, Predictor
from labeldp.release.curator import half_windows, largest_window, narrowest_level

LOOSE_LEVEL, NARROWEST_LEVEL = 3, 12
"""Bounds are too wide if a window 2⁻³ as wide as they are holds most labels; windows are 2⁻¹² as wide at least."""

CELLS = 2 << NARROWEST_LEVEL
"""The number of cells in which labels are counted; each is half a window of the narrowest level."""

MOST_LABELS, MOST_SUSPECTED = 0.8, 0.72
"""A window holds most labels if it has at least the first share of them; the second share is used where rows · ε
is too small to estimate a range."""

NEXT_TO = 0.02
"""The range is extended by a neighbouring half window that has more than this share of the rows, and more than
noise explains."""


def find_range(
    count_labels: Callable[[], Sums], bounds: Pair, budget: SumBudget, source: WordSource
) -> Pair | None:
    """Return the range of labels: the bounds, or a part of them if the bounds are far too wide.

    Parameters
    ----------
    count_labels : callable
        Returns the exact number of labels in each of `CELLS` cells of the bounds; called only if it is needed.
    bounds : (lo, hi)
    budget : SumBudget
    source : source of words

    Returns
    -------
    (lo, hi) or None
        None if ε is too small to estimate the range, and bounds seem too wide or cannot even be tested: then only
        the mean of all labels is worth releasing.
    """
    if budget.rows_epsilon < split.FEWEST_FOR_GROUPS:
        return None
    counts = count_labels()

    def release_largest(largest: Sums, epsilon: Fraction) -> Sums:
        return budget.release(largest, epsilon, source, kind="largest count", what="largest count of a window")

    def bounds_are_wide(epsilon: Fraction, most: float) -> bool:
        """Return whether a window much narrower than the bounds holds most labels, by a noisy count."""
        noisy = release_largest(largest_window(counts, LOOSE_LEVEL), epsilon)
        return bool(noisy[0] >= most * budget.rows)

    if budget.rows_epsilon < split.FEWEST_FOR_RANGE:
        suspected = bounds_are_wide(budget.part(*split.BOUNDS_SUSPECTED), MOST_SUSPECTED)
        return None if suspected else bounds
    if not bounds_are_wide(budget.part(*split.BOUNDS_TESTED), MOST_LABELS):
        return bounds
    searches = math.ceil(math.log2(NARROWEST_LEVEL - LOOSE_LEVEL + 1))
    each = budget.part(*split.RANGE_WIDTH) / searches
    windows = [largest_window(counts, level) for level in range(NARROWEST_LEVEL + 1)]
    release = partial(release_largest, epsilon=each)
    level, _ = narrowest_level(windows, release, MOST_LABELS * budget.rows, LOOSE_LEVEL)
    return _place_range(half_windows(counts, level), bounds, budget, source)


def _place_range(halves: Sums, bounds: Pair, budget: SumBudget, source: WordSource) -> Pair:
    """Return the window with the largest noisy count, with filled neighbours and a window on either side."""
    low, high = bounds
    epsilon = budget.part(*split.RANGE_POSITION)
    noisy = budget.release(halves, epsilon, source, kind="counts", what="counts of windows")
    windows = noisy[1:] + noisy[:-1]
    if windows.max() < budget.rows / 2:  # noise hides where labels are
        return bounds
    first = int(np.argmax(windows))
    last = first + 1
    filled = noisy > max(NEXT_TO * budget.rows, 6 / float(epsilon))
    while first > 0 and filled[first - 1]:
        first -= 1
    while last < noisy.size - 1 and filled[last + 1]:
        last += 1
    half = (high - low) / halves.size
    return max(low, low + half * (first - 2)), min(high, low + half * (last + 3))


STEPS = 1 << 16
"""Labels are integers from 0 to this where they are summed; it is the sensitivity of a sum."""

OCTAVES = 14
"""The number of distances at which labels are counted: the range, halved again and again."""


@dataclass(frozen=True, slots=True)
class RowRules:
    """The group and the prediction of each row.

    Attributes
    ----------
    grouping, predictor : Grouping, Predictor or None
        Functions of features that give both. None if all rows are in one group, or if there are no predictions.
    group, prediction : arrays or None
        The values for the rows of a table.
    """

    grouping: Grouping | None = None
    predictor: Predictor | None = None
    group: Index | None = field(default=None, repr=False)
    prediction: Array | None = field(default=None, repr=False)

    def alone(self) -> RowRules:
        """Return the rules without the rows of the table."""
        return RowRules(self.grouping, self.predictor)

    def on(self, X: Array) -> RowRules:
        """Return the rules applied to these rows; the bits of a row do not depend on the rows beside it."""

        def apply(rule: Grouping | Predictor | None) -> Any:
            return None if rule is None else rule.of(FeatureTable(rule.public, X))

        return replace(self, group=apply(self.grouping), prediction=apply(self.predictor))


@dataclass(frozen=True, slots=True)
class SumQuery:
    """Sums of labels by group, or of residuals where rows have predictions.

    Attributes
    ----------
    limits : (lo, hi)
        Labels are clipped to them.
    rows : RowRules
    groups : int
        The number of groups.
    residual_limit : float
        Residuals are clipped to ± this.
    """

    limits: Limits
    rows: RowRules = RowRules()
    groups: int = 1
    residual_limit: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of an answer."""
        return 3, self.groups

    @property
    def width(self) -> float:
        """The sensitivity of a sum, in the label's unit."""
        return self.limits.width if self.rows.prediction is None else 2 * self.residual_limit

    def answer(self, labels: Array) -> Sums:
        """Return the sums of each group, its number of rows and the sum of its predictions, exactly.

        Only the first row of the answer depends on labels; it must get noise.
        """
        group = np.zeros(labels.size, dtype=np.int64) if self.rows.group is None else self.rows.group
        result = np.zeros(self.shape, dtype=np.int64)
        np.add.at(result[0], group, self._steps(labels))
        np.add.at(result[1], group, 1)
        if self.rows.prediction is not None:
            np.add.at(result[2], group, np.rint(self.rows.prediction * PREDICTION_UNIT).astype(np.int64))
        return result

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def _steps(self, labels: Array) -> Sums:
        """Return each label, or residual, as an integer from 0 to `STEPS`."""
        values = np.clip(labels, *self.limits)
        if self.rows.prediction is None:
            values = values - self.limits.low
        else:
            residuals = np.clip(values - self.rows.prediction, -self.residual_limit, self.residual_limit)
            values = residuals + self.residual_limit
        return np.clip(np.rint(values / self.width * STEPS), 0, STEPS).astype(np.int64)

    def noise_variance(self, epsilon: Fraction) -> float:
        """Return the variance of the noise of a sum, in squared units of the label."""
        noise = DiscreteLaplace.calibrated(sensitivity=STEPS, epsilon=epsilon)
        return noise.variance() * (self.width / STEPS) ** 2

    def release(self, exact: Sums, epsilon: Fraction, budget: SumBudget, source: WordSource) -> Array:
        """Return sums with noise, in the label's unit: one label moves one of them, by at most `STEPS`."""
        noisy = budget.release(exact, epsilon, source, kind="sums", what=f"{self.groups:,} sums", steps=STEPS)
        return np.asarray(noisy * (self.width / STEPS))

    def release_centred(
        self, groups: Groups, epsilon: Fraction, budget: SumBudget, add_up: AddUp, source: WordSource
    ) -> NoisySums:
        """Return noisy sums of labels minus the middle of their limits."""
        exact, sizes, predictions = add_up(self)
        sums = self.release(exact, epsilon, budget, source)
        groups = replace(groups, sizes=np.maximum(sizes, 1.0))
        middle = self.limits.middle
        if self.rows.prediction is None:
            sums = sums - groups.sizes * (middle - self.limits.low)
        else:
            sums = sums + predictions / PREDICTION_UNIT - groups.sizes * (self.residual_limit + middle)
        return NoisySums(groups, sums, self.noise_variance(epsilon))


@dataclass(frozen=True, slots=True)
class DistanceQuery:
    """Counts of labels by their distance from predictions, in octaves of the width of the limits.

    Attributes
    ----------
    limits : (lo, hi)
        Labels are clipped to them.
    rows : RowRules
    """

    limits: Limits
    rows: RowRules

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of an answer."""
        return 1, OCTAVES

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def answer(self, labels: Array) -> Sums:
        """Return the counts: up to the width, up to half of it, a quarter, and so on; one label moves two of them.

        By comparisons, the same for all distances: the time of a logarithm would leak them.
        """
        residuals = np.clip(labels, *self.limits) - np.asarray(self.rows.prediction)
        distances = np.minimum(np.abs(residuals), self.limits.width)
        within = np.zeros(OCTAVES + 1, dtype=np.int64)
        for k in range(OCTAVES):
            np.sum(distances <= self.limits.width / 2**k, dtype=np.int64, out=within[k : k + 1], keepdims=True)
        return np.asarray(within[None, :-1] - within[None, 1:])


Query = SumQuery | DistanceQuery

AddUp = Callable[[Query], Sums]
"""Answers a query over all rows, in memory or on a cluster."""
