"""Queries of a regression table on labels that are scaled to [0, 1].

An answer is a list of integers, sums over rows. Weights and intervals follow from public columns and from earlier
measurements. docs/proofs/ols.md and docs/proofs/glm.md have the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from labeldp._values import Array, Index, Sums
from labeldp.errors import PrivacyProofError
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import CountQuery, Query

GRID = (1 << 20) - 1
"""For weighted sums, labels are rounded to integers from 0 to this."""

MAX_ROW_WEIGHT = 1 << 12
"""The largest sum of the absolute integer weights of one row."""

DISTANCES = 2.0 ** -np.arange(1, 11)
"""Distances from a center beyond which labels are counted."""

ASSUMED_DEVIATION = 0.1
"""Assumed standard deviation of labels around the model, as a fraction of the bounds' width."""

_BLOCK_ROWS = 1 << 20
"""Over this many rows, products of integers add up to less than 2^52, so that floats are exact."""

_PAIR_SENSITIVITY = 1 << 32
"""The largest sensitivity of the products of one person."""


class ClipWindow(NamedTuple):
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

    center: Array
    half_width: float
    residual_variance: float = ASSUMED_DEVIATION**2
    clipped_total: float = 0.0
    rough_fit: Array | None = None
    square_factor: int = 1

    @property
    def width(self) -> float:
        """The range of clipped distances."""
        return 2 * self.half_width

    @property
    def square_unit(self) -> float:
        """The squared distance of one grid of squares."""
        return self.width**2 / self.square_factor


@dataclass(frozen=True, slots=True, repr=False)
class WeightedSums(Query):
    """Weighted sums of labels, and of squared distances from a window's center.

    Attributes
    ----------
    window : ClipWindow
    labels : array, rows × sums
        Integer weights of labels that are not clipped.
    clipped : array, rows × sums
        Integer weights of clipped labels.
    squares : array, rows × sums
        Integer weights of squared distances from the center.
    linear : array, as ``squares``
        Integer weights of clipped labels that are subtracted from sums of squares: they move the center of the
        squares.
    """

    window: ClipWindow
    labels: Array
    clipped: Array
    squares: Array
    linear: Array
    kind = "weighted sums"

    @property
    def _weights(self) -> tuple[Array, Array, Array, Array]:
        return self.labels, self.clipped, self.squares, self.linear

    @property
    def description(self) -> str:
        """The sums in words."""
        return f"{self.size:,} weighted sums"

    @property
    def size(self) -> int:
        """The number of sums."""
        return sum(weights.shape[1] for weights in self._weights[:3])

    @property
    def sensitivity(self) -> int:
        """The largest total weight of a row times 2^20, by which a label on its grid moves, and its square."""
        labels, clipped, squares, linear = (np.abs(weights).sum(axis=1) for weights in self._weights)
        totals = labels + np.maximum(clipped + linear, squares)
        if not (totals <= MAX_ROW_WEIGHT).all():  # NaN is refused, too
            raise PrivacyProofError(f"the weights of a row add up to more than {MAX_ROW_WEIGHT}")
        return math.ceil(float(totals.max(initial=0))) * (GRID + 1)

    def answer(self, labels: Array) -> Sums:
        """Return the exact sums of these rows, on the grid."""
        total = np.zeros(self.size, dtype=np.int64)
        for start in range(0, labels.size, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            total += self._block_sums(rows, labels[rows]).astype(np.int64)
        return total[None]

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def _block_sums(self, rows: slice, labels: Array) -> Array:
        """Return the exact sums of some rows."""
        window = self.window
        for_labels, for_clipped, for_squares, linear = (np.trunc(weights[rows]) for weights in self._weights)
        distances = np.clip(labels - window.center[rows], -window.half_width, window.half_width)
        clipped = _on_grid(distances / window.width + 0.5)
        squares = grid_squares(clipped, window.square_factor) @ for_squares
        return np.concatenate([_on_grid(labels) @ for_labels, clipped @ for_clipped, squares - clipped @ linear])

    def measure(self, access: LabelAccess, epsilon: Fraction) -> tuple[Array, Array]:
        """Return noisy weighted sums of labels, and of squared distances from the window's center.

        Raises
        ------
        PrivacyProofError
            If the weights of a row are larger than the proof allows; then nothing is released.
        """
        sizes = np.cumsum([self.labels.shape[1], self.clipped.shape[1]])
        labels, clipped, squares = np.split(access.measure(self, epsilon).values / GRID, sizes)
        clipped = self.window.width * (clipped - self.clipped.sum(axis=0) / 2) + self.window.center @ self.clipped
        return np.append(labels, clipped), self.window.square_unit * (squares + self.linear.sum(axis=0) / 2)


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


@dataclass(frozen=True, slots=True, repr=False)
class SideCounts(CountQuery):
    """Counts of labels by their distance from a center: above it, below it, and within all `DISTANCES`.

    Attributes
    ----------
    center : array
    """

    center: Array
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


class PersonRows(NamedTuple):
    """The person of each row.

    Attributes
    ----------
    codes : array of int
    most_rows : int
        The largest number of rows of one person.
    """

    codes: Index
    most_rows: int

    def pairs(self, values: Array) -> float:
        """Return the sum of products over all pairs of rows of one person."""
        totals = np.bincount(self.codes, values)
        return float(totals @ totals - values @ values) / 2


@dataclass(frozen=True, slots=True, repr=False)
class PersonProducts(Query):
    """The sum of products of clipped distances from the center, over all pairs of rows of one person.

    Attributes
    ----------
    window : ClipWindow
    people : PersonRows
    """

    window: ClipWindow
    people: PersonRows
    kind = "weighted sums"
    description = "products of distances of one person"
    size = 1

    @property
    def steps(self) -> int:
        """The integer of the largest distance."""
        return math.isqrt(_PAIR_SENSITIVITY // 2 // max(self.people.most_rows - 1, 1))

    @property
    def sensitivity(self) -> int:
        """A distance moves by two times the largest integer, and meets those of a person's other rows."""
        return 2 * self.steps**2 * (int(np.bincount(self.people.codes).max(initial=1)) - 1)

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def answer(self, labels: Array) -> Sums:
        """Return the exact sum; all rows of a person must be there."""
        distances = np.clip((labels - self.window.center) / self.window.half_width, -1, 1)
        values = np.clip(np.rint(distances * self.steps), -self.steps, self.steps)
        totals, integers = np.bincount(self.people.codes, values).astype(np.int64), values.astype(np.int64)
        return np.array([[(totals @ totals - integers @ integers) // 2]])

    def measure(self, access: LabelAccess, epsilon: Fraction) -> tuple[float, float]:
        """Return the noisy sum of products of distances, and the scale of its noise."""
        measurement = access.measure(self, epsilon)
        unit = (self.window.half_width / self.steps) ** 2
        return float(measurement.values[0]) * unit, float(measurement.noise.noise.scale) * unit
