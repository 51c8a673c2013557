"""Measurements for a regression table: queries on labels that are scaled to [0, 1].

A measurement is a list of integers, sums over rows, with noise. Its weights and
intervals follow from public columns and from earlier measurements. docs/proofs/ols.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from labeldp._values import Array, Index, Sums
from labeldp.errors import PrivacyProofError
from labeldp.learning.fit_plan import Pair
from labeldp.learning.label_queries import find_range
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import CountQuery, Query

GRID = (1 << 20) - 1
"""For weighted sums, labels are rounded to integers from 0 to this."""

MAX_ROW_WEIGHT = 1 << 12
"""The largest sum of the absolute integer weights of one row."""

DISTANCES = 2.0 ** -np.arange(1, 11)
"""Distances from predictions beyond which labels are counted."""

UNIT = (0.0, 1.0)
"""The bounds of scaled labels."""

_BLOCK_ROWS = 1 << 20
"""Over this many rows, products of integers add up to less than 2^52, so that floats are exact."""


@dataclass(frozen=True, slots=True)
class ClipWindow:
    """The interval to which the label of each row is clipped.

    Attributes
    ----------
    center : array
        The middle of each row's interval.
    half_width : float
        Distances from the center are clipped to ± this.
    residual_variance : float
        The expected variance of labels around the model.
    clipped_total : float
        An upper limit of the total amount that clipping removes.
    rough_fit : array, optional
        Predictions of a rough fit, if there is one; they may lie outside the bounds.
    square_factor : {1, 2}
        The factor of squares in `grid_squares`: 2 if labels are known to lie near the rough fit.
    """

    center: Array = field(repr=False)
    half_width: float
    residual_variance: float
    clipped_total: float = 0.0
    rough_fit: Array | None = field(default=None, repr=False)
    square_factor: int = 1

    @property
    def width(self) -> float:
        """The range of clipped distances."""
        return 2 * self.half_width

    def square_noise(self, epsilon: float) -> float:
        """Return the scale of the noise of a sum of squares, for integer weights."""
        return self.width**2 / self.square_factor / epsilon * MAX_ROW_WEIGHT


@dataclass(frozen=True, slots=True)
class SumWeights:
    """Integer weights of the rows in a measurement, rows × sums each.

    Attributes
    ----------
    labels : array
        Weights of labels that are not clipped.
    clipped : array
        Weights of clipped labels.
    squares : array
        Weights of squared distances from the center.
    linear : array, as many sums
        Weights of clipped labels that are subtracted from sums of squares: they move the center of the squares.
    """

    labels: Array
    clipped: Array
    squares: Array
    linear: Array

    @property
    def _all(self) -> tuple[Array, Array, Array, Array]:
        return self.labels, self.clipped, self.squares, self.linear

    @property
    def size(self) -> int:
        """The number of sums."""
        return sum(int(weights.shape[1]) for weights in self._all[:3])

    def row_totals(self) -> Array:
        """Return the effect of each label on all sums together, in steps of the grid."""
        labels, clipped, squares, linear = (np.abs(weights).sum(axis=1) for weights in self._all)
        return np.asarray(labels + np.maximum(clipped + linear, squares))

    def exact_sums(self, labels: Array, window: ClipWindow) -> Sums:
        """Return the sums over all rows, as integers on the grid."""
        total = np.zeros(self.size, dtype=np.int64)
        for start in range(0, labels.size, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            for_labels, for_clipped, for_squares, linear = (np.trunc(weights[rows]) for weights in self._all)
            with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
                unclipped = _on_grid(labels[rows])
                distances = np.clip(labels[rows] - window.center[rows], -window.half_width, window.half_width)
                clipped = _on_grid(distances / window.width + 0.5)
                squares = grid_squares(clipped, window.square_factor)
                sums = unclipped @ for_labels, clipped @ for_clipped, squares @ for_squares - clipped @ linear
                total += np.concatenate(sums).astype(np.int64)
        return total

    def in_units(self, sums: Sums, window: ClipWindow) -> tuple[Array, Array]:
        """Return weighted sums of labels, and of squared distances from the center, from sums on the grid."""
        sizes = np.cumsum([self.labels.shape[1], self.clipped.shape[1]])
        labels, clipped, squares = np.split(sums / GRID, sizes)
        clipped = window.width * (clipped - self.clipped.sum(axis=0) / 2) + window.center @ self.clipped
        unit = window.width**2 / window.square_factor
        return np.append(labels, clipped), unit * (squares + self.linear.sum(axis=0) / 2)


def _on_grid(units: Array) -> Array:
    return np.clip(np.rint(units * GRID), 0, GRID)


def grid_squares(positions: Array, factor: int) -> Array:
    """Return factor · (distance from the middle)² / G as an integer, rounded down, up to a limit.

    No quotient is an integer, so floats are near enough to be exact. The time of an integer division depends on
    the quotient, and would depend on labels.
    """
    twice = 2 * positions - GRID
    squares = np.floor(twice * twice * (factor / (4 * GRID)))
    return np.minimum(squares, math.floor(GRID * (0.5 - 0.25 / factor)))


@dataclass(frozen=True, slots=True)
class People:
    """The person of each row.

    Attributes
    ----------
    codes : array of int
    most_rows : int
        The largest number of rows of one person.
    """

    codes: Index = field(repr=False)
    most_rows: int

    def squared_totals(self, values: Array) -> float:
        """Return the sum over people of squared totals."""
        totals = np.bincount(self.codes, values)
        return float(totals @ totals)

    def pairs(self, values: Array) -> float:
        """Return the sum of products over all pairs of rows of one person."""
        return (self.squared_totals(values) - float(values @ values)) / 2


@dataclass(frozen=True, slots=True)
class WeightedSums(Query):
    """Weighted sums of labels, and of squared distances from a window's center.

    Attributes
    ----------
    window : ClipWindow
    weights : SumWeights
    """

    window: ClipWindow
    weights: SumWeights
    kind = "weighted sums"

    @property
    def description(self) -> str:
        """The sums in words."""
        return f"{self.size:,} weighted sums"

    @property
    def size(self) -> int:
        """The number of sums."""
        return self.weights.size

    @property
    def sensitivity(self) -> int:
        """The largest total weight of a row times 2^20, by which a label on its grid moves, and its square."""
        totals = self.weights.row_totals()
        if not (totals <= MAX_ROW_WEIGHT).all():  # NaN is refused, too
            raise PrivacyProofError(f"the weights of a row add up to more than {MAX_ROW_WEIGHT}")
        return math.ceil(float(totals.max(initial=0))) * (GRID + 1)

    def answer(self, labels: Array) -> Sums:
        """Return the exact sums of these rows, on the grid."""
        return self.weights.exact_sums(labels, self.window)[None]


@dataclass(frozen=True, slots=True)
class SideCounts(CountQuery):
    """Counts of labels by their distance from a center: above it, below it, and within all `DISTANCES`.

    Attributes
    ----------
    center : array
    """

    center: Array = field(repr=False)
    description = "counts of distances"
    largest = 2 * DISTANCES.size

    def integers(self, labels: Array) -> Array:
        """Return the place of each distance: from the largest on, and so on, above the center, then below."""
        above, below = np.zeros((2, labels.size), dtype=np.int8)
        distances = labels - self.center
        for limit in DISTANCES.tolist():
            above += distances <= limit
            below += -distances <= limit
        return np.where(above < DISTANCES.size, above, DISTANCES.size + below)


@dataclass(frozen=True, slots=True)
class PersonProducts(Query):
    """The sum of products of clipped distances from the center, over all pairs of rows of one person.

    Attributes
    ----------
    window : ClipWindow
    people : People
    """

    window: ClipWindow
    people: People
    kind = "weighted sums"
    description = "products of distances of one person"
    size = 1

    @property
    def steps(self) -> int:
        """The integer of the largest distance."""
        return math.isqrt((1 << 31) // max(self.people.most_rows - 1, 1))

    @property
    def sensitivity(self) -> int:
        """A distance moves by two times the largest integer, and meets those of a person's other rows."""
        others = int(np.bincount(self.people.codes).max(initial=1)) - 1
        return 2 * self.steps**2 * others

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def answer(self, labels: Array) -> Sums:
        """Return the exact sum; all rows of a person must be there."""
        distances = np.clip((labels - self.window.center) / self.window.half_width, -1, 1)
        values = np.clip(np.rint(distances * self.steps), -self.steps, self.steps)
        totals, integers = np.bincount(self.people.codes, values).astype(np.int64), values.astype(np.int64)
        return np.array([[(totals @ totals - integers @ integers) // 2]])


@dataclass(frozen=True, slots=True)
class PrivateLabels:
    """The labels of a regression, in [0, 1].

    Attributes
    ----------
    access : LabelAccess
    """

    access: LabelAccess

    @property
    def epsilon(self) -> Fraction:
        """The budget that is left."""
        return self.access.remaining

    def range(self) -> Pair:
        """Return a range that holds the labels, or the bounds."""
        return find_range(self.access, UNIT) or UNIT

    def count_distances(self, center: Array, epsilon: Fraction) -> tuple[Array, float]:
        """Return noisy counts of labels by their distance from a center, and of those within all `DISTANCES`.

        The first are those above the center and those below, between `DISTANCES` and from the largest on.
        """
        counts = self.access.measure(SideCounts(center), epsilon).values
        return counts[:-1].reshape(2, -1).astype(np.float64), float(counts[-1])

    def pair_products(self, window: ClipWindow, people: People, epsilon: Fraction) -> tuple[float, float]:
        """Return a noisy sum of products of clipped distances from the center, and the scale of its noise.

        The sum is over all pairs of rows of one person. docs/proofs/glm.md has the proof.
        """
        query = PersonProducts(window, people)
        measurement = self.access.measure(query, epsilon)
        unit = (window.half_width / query.steps) ** 2
        return float(measurement.values[0]) * unit, float(measurement.noise.noise.scale) * unit

    def weighted_sums(self, window: ClipWindow, weights: SumWeights, epsilon: Fraction) -> tuple[Array, Array]:
        """Return noisy weighted sums of labels, and of squared distances from the window's center.

        Raises
        ------
        PrivacyProofError
            If the weights of a row are larger than the proof allows; then nothing is released.
        """
        return weights.in_units(self.access.measure(WeightedSums(window, weights), epsilon).values, window)
