"""Queries: sums over rows of public integer functions of a label, with their sensitivity to one label.

A query turns a label into an integer from 0 to `Query.largest`, and is clipped to that here. So the sensitivity
follows from the integers, whatever the function is. `LabelAccess.measure` adds the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from labeldp._values import Array, Counts, Interval, Numbers, Sums
from labeldp.accounts.statistic import RULES, Statistic
from labeldp.errors import PrivacyProofError
from labeldp.exact.sampling import Domain, pieces
from labeldp.exact.word_sources import CHUNK


class Query:
    """Sums over rows of public integer functions of a label.

    Attributes
    ----------
    kind : str
        The key of `RULES`, whose limit the sensitivity must keep.
    """

    kind: str

    @property
    def description(self) -> str:
        """The sums in words, for a card."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of sums."""
        raise NotImplementedError

    @property
    def sensitivity(self) -> int:
        """The most that one label moves all sums, in absolute values, computed from the integers."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of an answer."""
        return 1, self.size

    def answer(self, labels: Array) -> Sums:
        """Return the exact sums of these rows; rows of the answer after the first are public."""
        raise NotImplementedError

    def statistic(self, epsilon: Fraction, purpose: str) -> Statistic:
        """Return the sums for ε as a card states them, with their noise.

        Raises
        ------
        PrivacyProofError
            If one label could move the sums by more than the noise is for.
        """
        steps = RULES[self.kind].steps
        largest = steps.get(self.size, steps.get(0, 0))
        statistic = Statistic(self.description, self.kind, self.size, largest, epsilon, purpose)
        if self.sensitivity > statistic.sensitivity:
            raise PrivacyProofError(
                f"{self.description}: one label moves them by {self.sensitivity}, and noise hides only "
                f"{statistic.sensitivity}"
            )
        return statistic


class IntegerQuery(Query):
    """Sums of public functions of one integer for each label.

    Attributes
    ----------
    largest : int
        The largest integer.
    """

    largest: int

    def integers(self, labels: Array) -> Any:
        """Return the integer of each label; one outside 0 to `largest` will be clipped."""
        raise NotImplementedError

    @staticmethod
    def columns(integers: Sums) -> Sums:
        """Return the summands of each integer, sums × integers: itself, in one sum."""
        return integers[None]

    @property
    def size(self) -> int:
        """The number of functions."""
        return len(self.columns(np.zeros(1, dtype=np.int64)))

    @property
    def sensitivity(self) -> int:
        """The largest distance between what two integers add."""
        return _largest_distance(self.columns, self.largest)

    def add_up(self, integers: Sums) -> Sums:
        """Return the sums that rows with these integers make."""
        return np.asarray(self.columns(integers).sum(axis=1)[None])

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def answer(self, labels: Array) -> Sums:
        """Return the exact sums of these rows."""
        return self.add_up(np.clip(self.integers(labels).astype(np.int64), 0, self.largest))


class CountQuery(IntegerQuery):
    """The number of rows with each integer: another label takes 1 from one count, and adds 1 to another."""

    kind = "counts"
    sensitivity = 2

    @property
    def size(self) -> int:
        """The number of integers."""
        return self.largest + 1

    def add_up(self, integers: Sums) -> Sums:
        """Return the number of rows with each integer."""
        return np.bincount(integers, minlength=self.size)[None]


@lru_cache(maxsize=16)
def _largest_distance(columns: Callable[[Sums], Sums], largest: int) -> int:
    """Return the largest L1 distance of two columns of a table, by all signs of its rows."""
    table = columns(np.arange(largest + 1))
    signs = np.array(list(product((-1, 1), repeat=len(table))))
    return int(np.ptp(signs @ table, axis=1).max())


# ---- cells of an interval -----------------------------------------------------------------------------


def count(values: Numbers, bounds: Interval, bins: int) -> Counts:
    """Return the number of values in each of equally wide bins; values outside count as the ends."""
    domain = Domain(*bounds, bins)
    counts = np.zeros(bins, dtype=np.int64)
    scratch = np.empty(min(CHUNK, values.size))
    with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
        for piece in pieces(values.size):
            chunk = values[piece]
            cells = domain.piece(chunk, scratch[: chunk.size])
            counts += np.bincount(cells, minlength=bins)
    return counts


@dataclass(frozen=True, slots=True)
class Cells:
    """Equal cells of an interval, in which `LabelAccess` counts labels once for many queries."""

    bounds: Interval
    number: int

    @property
    def shape(self) -> tuple[int]:
        """The shape of an answer."""
        return (self.number,)

    def answer(self, labels: Numbers) -> Counts:
        """Return the exact number of labels in each cell."""
        return count(labels, self.bounds, self.number)


class CellQuery(Query):
    """A query about the numbers of labels in cells, each of which has a label or has not."""

    cells: Cells

    def of_counts(self, counts: Counts) -> Sums:
        """Return the exact sums, from the exact number of labels in each cell."""
        raise NotImplementedError

    def answer(self, labels: Array) -> Sums:
        """Return the exact sums of these rows."""
        return self.of_counts(self.cells.answer(labels))


@dataclass(frozen=True, slots=True)
class BinCounts(CellQuery):
    """The number of labels in each of some bins: another label takes 1 from one count, and adds 1 to another.

    Attributes
    ----------
    cells : Cells
    edges : tuple of int
        The first cell of each bin, from 0 up.
    description : str
    """

    cells: Cells
    edges: tuple[int, ...] = field(repr=False)
    description: str
    kind = "counts"
    sensitivity = 2

    @classmethod
    def equal(cls, cells: Cells, bins: int, description: str) -> BinCounts:
        """Return bins of equally many cells."""
        return cls(cells, tuple(range(0, cells.number, cells.number // bins)), description)

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.edges)

    def of_counts(self, counts: Counts) -> Sums:
        """Return the count of each bin."""
        return np.add.reduceat(counts, self.edges)[None]


@dataclass(frozen=True, slots=True)
class LargestWindow(CellQuery):
    """The largest number of labels in any window: another label moves each by 1 at most, and so the largest.

    Windows are narrower than the interval by a power of two, and half a window apart.

    Attributes
    ----------
    cells : Cells
    level : int
        The logarithm of the interval's width over a window's, in base 2.
    description : str
    """

    cells: Cells
    level: int
    description: str
    kind = "largest count"
    size = sensitivity = 1

    def of_counts(self, counts: Counts) -> Sums:
        """Return the largest sum of two neighbouring half windows."""
        halves = counts.reshape(2 << self.level, -1).sum(axis=1)
        return np.asarray(np.max(halves[1:] + halves[:-1], keepdims=True)[None])
