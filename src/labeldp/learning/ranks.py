"""Ranks of values among the quantiles of their columns, from 0 to 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp._values import Array, Small

Codes = NDArray[np.uint8]
"""Of each value, how many quantiles of its column are no larger: for ranks, and as bins for trees."""

_GRID = np.linspace(0.0, 1.0, 201)
"""Quantiles, in steps of half a percent of the rows: their codes fit into a byte."""


def quantiles(values: Array) -> Array:
    """Return 201 quantiles of each column of values, rows × columns; grid × columns."""
    ordered = np.sort(np.ascontiguousarray(values.T), axis=1)
    last = ordered.shape[1] - 1
    position = _GRID * last
    below = position.astype(np.int64)
    low = ordered[:, below]
    high = ordered[:, np.minimum(below + 1, last)]
    return np.asarray((low + (high - low) * (position - below)).T)


@dataclass(frozen=True, slots=True)
class RankMap:
    """The rank of a value, by interpolation between the quantiles of its column.

    Attributes
    ----------
    quantiles : array, columns × quantiles
    reached : array, columns × codes
        The last quantile that values of a code reach.
    slope : array, columns × codes
        How the rank grows from there.
    tied_rank : array, columns × codes
        The rank of the quantile itself: if several are equal, their middle.
    tolerance : array, columns × 1
        A value no further from a quantile is equal to it.
    """

    quantiles: Array
    reached: Array
    slope: Array
    tied_rank: Array
    tolerance: Array

    @classmethod
    def of(cls, quantiles: Array, tolerance: Array) -> RankMap:
        """Return the map of quantiles, grid × columns, with a tolerance for each column."""
        known = np.ascontiguousarray(quantiles.T)
        last = known.shape[1] - 1
        reached = np.concatenate([known[:, :1], known], axis=1)
        with np.errstate(all="ignore"):  # columns of any size
            slope = np.nan_to_num(1 / (last * np.diff(reached, axis=1, append=np.inf)), posinf=0.0)
        first = np.array([np.searchsorted(*each) for each in zip(known, reached, strict=True)])
        tied_rank = np.maximum(first + np.arange(last + 2) - 1, 0) / 2 / last
        return cls(known, reached, slope, tied_rank, tolerance[:, None])

    def codes(self, values: Array) -> Codes:
        """Return the code of each value, columns × rows."""
        codes = np.empty(values.shape, dtype=np.uint8)
        for j, (column, known) in enumerate(zip(values + self.tolerance, self.quantiles, strict=True)):
            codes[j] = np.searchsorted(known, column, side="right")
        return codes

    def ranks(self, values: Array, codes: Codes) -> Small:
        """Return the rank of each value by its code, columns × rows."""
        at = codes + np.arange(0, self.reached.size, self.reached.shape[1])[:, None]
        beyond = values - self.reached.ravel()[at]
        last = self.quantiles.shape[1] - 1
        between = (np.maximum(codes, 1) - 1) / last + beyond * self.slope.ravel()[at]
        ranks = np.where(np.abs(beyond) <= self.tolerance, self.tied_rank.ravel()[at], between)
        return np.asarray(np.clip(ranks, 0.0, 1.0), dtype=np.float32)
