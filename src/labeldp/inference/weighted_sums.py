"""Measurements for a regression table; the only code of this package that reads labels.

Labels are scaled to [0, 1]. A measurement is a list of integers, sums over rows, with noise. Its weights and
intervals follow from public columns and from earlier measurements. docs/proofs/ols.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from labeldp._values import Array, Index, Sums
from labeldp.errors import PrivacyProofError
from labeldp.exact.word_sources import WordSource
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.fit_plan import Pair
from labeldp.learning.label_queries import CELLS, find_range
from labeldp.release.curator import count

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

    def row_totals(self) -> Array:
        """Return the effect of each label on all sums together, in steps of the grid."""
        labels, clipped, squares, linear = (np.abs(weights).sum(axis=1) for weights in self._all)
        return np.asarray(labels + np.maximum(clipped + linear, squares))

    def exact_sums(self, labels: Array, window: ClipWindow) -> Sums:
        """Return the sums over all rows, as integers on the grid."""
        total = np.zeros(sum(weights.shape[1] for weights in self._all[:3]), dtype=np.int64)
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
class PrivateLabels:
    """The labels of a regression, the budget that pays for measurements, and the source of their noise.

    Attributes
    ----------
    units : array
        Labels in [0, 1].
    budget : SumBudget
    source : source of words
    """

    units: Array = field(repr=False)
    budget: SumBudget
    source: WordSource

    @property
    def epsilon(self) -> Fraction:
        """The budget that is left."""
        return self.budget.left

    def range(self) -> Pair:
        """Return a range that holds the labels, or the bounds."""
        cells = partial(count, self.units, UNIT, CELLS)
        return find_range(cells, UNIT, self.budget, self.source) or UNIT

    def count_distances(self, center: Array, epsilon: Fraction) -> tuple[Array, float]:
        """Return noisy counts of labels by their distance from a center, and of those within all `DISTANCES`.

        The first are those above the center and those below, between `DISTANCES` and from the largest on.
        """
        distances = self.units - center
        pairs = product((distances, -distances), DISTANCES.tolist())
        tails = [np.sum(side > limit, dtype=np.int64, keepdims=True) for side, limit in pairs]
        octaves = np.diff(np.reshape(tails, (2, -1)), prepend=0).ravel()
        exact = np.append(octaves, center.size - octaves.sum())
        counts = self.budget.release(exact, epsilon, self.source, kind="counts", what="counts of distances")
        return counts[:-1].reshape(2, -1).astype(np.float64), float(counts[-1])

    def pair_products(self, window: ClipWindow, people: People, epsilon: Fraction) -> tuple[float, float]:
        """Return a noisy sum of products of clipped distances from the center, and the scale of its noise.

        The sum is over all pairs of rows of one person. docs/proofs/glm.md has the proof.
        """
        steps = math.isqrt((1 << 31) // max(people.most_rows - 1, 1))
        with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
            distances = np.clip((self.units - window.center) / window.half_width, -1, 1)
            values = np.clip(np.rint(distances * steps), -steps, steps)
            totals, integers = np.bincount(people.codes, values).astype(np.int64), values.astype(np.int64)
            exact = np.array([(totals @ totals - integers @ integers) // 2])
        noisy = self.budget.release(
            exact,
            epsilon,
            self.source,
            kind="weighted sums",
            what="products of distances of one person",
            steps=(GRID + 1) * MAX_ROW_WEIGHT,
        )
        unit = (window.half_width / steps) ** 2
        return float(noisy[0]) * unit, (GRID + 1) * MAX_ROW_WEIGHT / float(epsilon) * unit

    def weighted_sums(self, window: ClipWindow, weights: SumWeights, epsilon: Fraction) -> tuple[Array, Array]:
        """Return noisy weighted sums of labels, and of squared distances from the window's center.

        Raises
        ------
        PrivacyProofError
            If the weights of a row are larger than the proof allows; then nothing is released.
        """
        if not (weights.row_totals() <= MAX_ROW_WEIGHT).all():  # NaN is refused, too
            raise PrivacyProofError(f"the weights of a row add up to more than {MAX_ROW_WEIGHT}")
        exact = weights.exact_sums(self.units, window)
        steps = (GRID + 1) * MAX_ROW_WEIGHT
        description = f"{exact.size:,} weighted sums"
        noisy = self.budget.release(
            exact, epsilon, self.source, kind="weighted sums", what=description, steps=steps
        )
        return weights.in_units(noisy, window)
