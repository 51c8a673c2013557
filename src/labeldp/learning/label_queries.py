"""Queries of a fit, and the search for the range of labels.

`GroupSums` adds up labels, or residuals, by groups of rows. `DistanceCounts` counts distances of labels from
predictions. Groups and predictions are public functions of a row's features and of noisy values that were
released before. So a query can be answered on any machine, and the answers of parts of the rows are added up. The
proof is in docs/proofs/regressors.md.

Noise grows with the range of labels, and public bounds may be far too wide. So the first query estimates the
range: the bounds are cut into overlapping windows, narrower than the bounds by a power of two, and one label
changes the largest count of any window by at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from labeldp._values import Array, Index, Interval, Sums
from labeldp.exact.integers import DiscreteLaplace
from labeldp.learning import epsilon_split as split
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import Limits
from labeldp.learning.groups import PREDICTION_UNIT, Grouping, Groups, NoisySums, Predictor
from labeldp.release.curator import narrowest_level
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import BinCounts, Cells, CountQuery, IntegerQuery, LargestWindow

LOOSE_LEVEL = 3
"""Bounds are too wide if a window 2⁻³ as wide as they are holds most labels."""

NARROWEST_LEVEL = 12
"""Windows are at least 2⁻¹² as wide as the bounds."""

CELLS = 2 << NARROWEST_LEVEL
"""The number of cells in which labels are counted; each is half a window of the narrowest level."""

MOST_LABELS = 0.8
"""A window holds most labels if it has at least this share of them."""

MOST_SUSPECTED = 0.72
"""The same share, where rows · ε is too small to estimate a range."""

NEXT_TO = 0.02
"""The range is extended by a neighbouring half window that has more than this share of the rows, and more than
noise explains."""

WIDER = 4
"""Before a narrow window is used, labels are counted in a window that is wider by this power of two, or half of
the bounds."""

NEARLY_ALL = 0.99
"""It must have at least this share of the rows, less what noise explains. With fewer, most labels are one value,
as where a yes is rare, and the others are what there is to learn."""

MOST_LACKING = 7
"""Labels are counted again in that window unless so many scales of noise are lacking, as once in 2,000 times by
noise alone."""


def find_range(access: LabelAccess, bounds: Interval) -> Interval | None:
    """Return the range of labels: the bounds, or a part of them if the bounds are far too wide.

    Returns
    -------
    (lo, hi) or None
        None if ε is too small to estimate the range, and bounds seem too wide or cannot even be tested: then only
        the mean of all labels is worth releasing.
    """
    if access.rows_epsilon < split.FEWEST_FOR_GROUPS:
        return None
    cells = Cells(bounds, CELLS)

    def is_filled(level: int, epsilon: Fraction, min_share: float = MOST_LABELS) -> bool:
        """Return whether a window of this level holds most labels, by a noisy count."""
        return _count_share(cells, level, access, epsilon) >= min_share

    if access.rows_epsilon < split.FEWEST_FOR_RANGE:
        epsilon = split.BOUNDS_SUSPECTED.of(access)
        return None if is_filled(LOOSE_LEVEL, epsilon, MOST_SUSPECTED) else bounds
    if not is_filled(LOOSE_LEVEL, split.BOUNDS_TESTED.of(access)):
        return bounds
    searches = math.ceil(math.log2(NARROWEST_LEVEL - LOOSE_LEVEL + 1))
    epsilon = split.RANGE_WIDTH.of(access) / searches
    level = narrowest_level(partial(is_filled, epsilon=epsilon), LOOSE_LEVEL, NARROWEST_LEVEL)
    if not _has_nearly_all(cells, max(level - WIDER, 1), access):
        return bounds
    return _place_range(BinCounts.equal(cells, 2 << level, "counts of windows"), access)


def _count_share(cells: Cells, level: int, access: LabelAccess, epsilon: Fraction) -> float:
    """Return the share of labels in the fullest window of a level, by a noisy count."""
    query = LargestWindow(cells, level, "largest count of a window")
    return float(access.measure(query, epsilon).values[0]) / access.rows


def _has_nearly_all(cells: Cells, level: int, access: LabelAccess) -> bool:
    """Return whether a window of this level holds nearly all labels; it is counted again if noise may empty it."""
    share, scales = (split.RANGE_POSITION, 3) if level >= LOOSE_LEVEL else (split.BOUNDS_TESTED, 5)
    epsilon = share.of(access)
    noise = 1 / (access.rows * float(epsilon))
    lacking = (NEARLY_ALL - _count_share(cells, level, access, epsilon)) / noise
    if scales < lacking <= MOST_LACKING:
        return _count_share(cells, level, access, epsilon) >= NEARLY_ALL - (scales - 1) * noise
    return lacking <= scales


def _place_range(halves: BinCounts, access: LabelAccess) -> Interval:
    """Return the window with the largest noisy count, with filled neighbours and a window on either side."""
    low, high = halves.cells.bounds
    epsilon = split.RANGE_POSITION.of(access)
    noisy = access.measure(halves, epsilon).values
    windows = noisy[1:] + noisy[:-1]
    if windows.max() < access.rows / 2:  # noise hides where labels are
        return low, high
    first = int(np.argmax(windows))
    last = first + 1
    filled = noisy > max(NEXT_TO * access.rows, 6 / float(epsilon))
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

    def without_rows(self) -> RowRules:
        """Return the rules without the rows of the table."""
        return RowRules(self.grouping, self.predictor)

    def on(self, X: Array) -> RowRules:
        """Return the rules applied to these rows; the bits of a row do not depend on the rows beside it."""

        def apply(rule: Grouping | Predictor | None) -> Any:
            return None if rule is None else rule.of(FeatureTable(rule.public, X))

        return replace(self, group=apply(self.grouping), prediction=apply(self.predictor))


@dataclass(frozen=True, slots=True)
class GroupSums(IntegerQuery):
    """Sums of labels by group, or of residuals where rows have predictions: each row is in one group.

    Public sums beside them are the number of rows of each group, and the sum of their predictions.

    Attributes
    ----------
    limits : (lo, hi)
        Labels are clipped to them.
    row_rules : RowRules
    groups : int
        The number of groups.
    residual_limit : float
        Residuals are clipped to ± this.
    """

    limits: Limits
    row_rules: RowRules = RowRules()
    groups: int = 1
    residual_limit: float = 0.0
    kind = "sums"
    largest = STEPS

    @property
    def description(self) -> str:
        """The sums in words."""
        return f"{self.groups:,} sums"

    @property
    def size(self) -> int:
        """The number of groups."""
        return self.groups

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of an answer."""
        return 3, self.groups

    @property
    def width(self) -> float:
        """The sensitivity of a sum, in the label's unit."""
        return self.limits.width if self.row_rules.prediction is None else 2 * self.residual_limit

    def integers(self, labels: Array) -> Array:
        """Return each label, or residual, as an integer from 0 to `STEPS`."""
        values = np.clip(labels, *self.limits)
        if self.row_rules.prediction is None:
            values = values - self.limits.low
        else:
            residuals = np.clip(values - self.row_rules.prediction, -self.residual_limit, self.residual_limit)
            values = residuals + self.residual_limit
        return np.rint(values / self.width * STEPS)

    def add_up(self, integers: Sums) -> Sums:
        """Return the sums of each group, its number of rows and the sum of its predictions, exactly."""
        group, prediction = self.row_rules.group, self.row_rules.prediction
        group = np.zeros(integers.size, dtype=np.int64) if group is None else group
        result = np.zeros((3, self.groups), dtype=np.int64)
        np.add.at(result[0], group, integers)
        np.add.at(result[1], group, 1)
        if prediction is not None:
            np.add.at(result[2], group, np.rint(prediction * PREDICTION_UNIT).astype(np.int64))
        return result

    def noise_variance(self, epsilon: Fraction) -> float:
        """Return the variance of the noise of a sum, in squared units of the label."""
        noise = DiscreteLaplace.calibrated(sensitivity=self.sensitivity, epsilon=epsilon)
        return noise.variance() * (self.width / STEPS) ** 2

    def measure(self, access: LabelAccess, groups: Groups, epsilon: Fraction) -> NoisySums:
        """Return noisy sums of labels minus the middle of their limits."""
        measurement = access.measure(self, epsilon)
        sizes, predictions = measurement.public_sums
        sums = measurement.values * (self.width / STEPS)
        groups = replace(groups, sizes=np.maximum(sizes, 1.0))
        middle = self.limits.middle
        if self.row_rules.prediction is None:
            sums = sums - groups.sizes * (middle - self.limits.low)
        else:
            sums = sums + predictions / PREDICTION_UNIT - groups.sizes * (self.residual_limit + middle)
        return NoisySums(groups, sums, self.noise_variance(epsilon))


@dataclass(frozen=True, slots=True)
class DistanceCounts(CountQuery):
    """Counts of labels by their distance from predictions, in octaves of the width of the limits.

    Attributes
    ----------
    limits : (lo, hi)
        Labels are clipped to them.
    row_rules : RowRules
    description : str
    """

    limits: Limits
    row_rules: RowRules
    description: str = "counts of distances"
    largest = OCTAVES - 1

    def integers(self, labels: Array) -> Any:
        """Return the octave of each distance: 0 above half of the width, 1 above a quarter, and so on.

        By comparisons, the same for all distances: the time of a logarithm would leak them.
        """
        residuals = np.clip(labels, *self.limits) - np.asarray(self.row_rules.prediction)
        distances = np.abs(residuals)
        octaves = np.zeros(labels.size, dtype=np.int8)
        for k in range(1, OCTAVES):
            octaves += distances <= self.limits.width / 2**k
        return octaves
