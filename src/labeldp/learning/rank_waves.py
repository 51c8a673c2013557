"""Ranks of values among a column's quantiles, and waves of ranks; arrays are columns × rows, which is fast.

A search among quantiles takes longest, so its result, one small integer for each value, is made once, and serves
trees as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from labeldp._values import Array, Small

Codes = NDArray[np.uint8]

_GRID = np.linspace(0.0, 1.0, 201)


def quantiles(values: Array) -> Array:
    """Return 201 quantiles of each column of values, rows × columns; grid × columns."""
    ordered = np.sort(np.ascontiguousarray(values.T), axis=1)
    place = _GRID * (ordered.shape[1] - 1)
    below = place.astype(np.int64)
    low, high = ordered[:, below], ordered[:, np.minimum(below + 1, ordered.shape[1] - 1)]
    return np.asarray((low + (high - low) * (place - below)).T)


@dataclass(frozen=True, slots=True)
class RankMap:
    """Places of values among quantiles: for a code k, the number of quantiles that a value reaches, what is there.

    Attributes
    ----------
    grid : array, columns × quantiles
    low : array, columns × codes
        The last quantile that is reached.
    rate : array, columns × codes
        How the rank grows from there.
    middle : array, columns × codes
        The rank of the quantile itself: if several are equal, their middle.
    """

    grid: Array
    low: Array
    rate: Array
    middle: Array

    @classmethod
    def of(cls, quantiles: Array) -> RankMap:
        """Return the map of quantiles, grid × columns."""
        grid = np.ascontiguousarray(quantiles.T)
        last = grid.shape[1] - 1
        low = np.concatenate([grid[:, :1], grid], axis=1)
        with np.errstate(all="ignore"):  # columns of any size
            rate = np.nan_to_num(1 / (last * np.diff(low, axis=1, append=np.inf)), posinf=0.0)
        first = np.array([np.searchsorted(column, known) for column, known in zip(grid, low, strict=True)])
        middle = np.maximum(first + np.arange(low.shape[1]) - 1, 0) / 2 / last
        return cls(grid, low, rate, middle)

    def search(self, values: Array) -> Codes:
        """Return the code of each value."""
        codes = np.empty(values.shape, dtype=np.uint8)
        for j, (column, known) in enumerate(zip(values, self.grid, strict=True)):
            codes[j] = np.searchsorted(known, column, side="right")
        return codes

    def ranks(self, values: Array, codes: Codes) -> Small:
        """Return the rank of each value, 0 to 1, by its code."""
        at = codes + np.arange(0, self.low.size, self.low.shape[1])[:, None]
        beyond = values - self.low.ravel()[at]
        last = self.grid.shape[1] - 1
        inside = (np.maximum(codes, 1) - 1) / last + beyond * self.rate.ravel()[at]
        ranks = np.where(beyond == 0, self.middle.ravel()[at], inside)
        return np.asarray(np.clip(ranks, 0.0, 1.0), dtype=np.float32)


def fill_waves(ranks: Small, result: Small) -> None:
    """Write cos(πkr)/k for k = 1, 2, … into waves × columns × rows."""
    np.cos(ranks * np.float32(np.pi), out=result[0])
    twice = 2 * result[0]
    for k in range(1, len(result)):  # cos kt = 2 cos t cos (k−1)t − cos (k−2)t
        np.multiply(twice, result[k - 1], out=result[k])
        result[k] -= result[k - 2] if k > 1 else np.float32(1)
    result /= np.arange(1, len(result) + 1, dtype=np.float32)[:, None, None]


def fill_pairs(waves: Small, result: Small) -> None:
    """Write the products of any two columns' waves; zeros if there is one column only."""
    count, columns, rows = waves.shape
    result[:] = 0 if columns == 1 else result
    for place, (i, j) in enumerate(combinations(range(columns), 2)):
        products = result[place * count**2 : (place + 1) * count**2].reshape(count, count, rows)
        np.multiply(waves[:, None, i], waves[None, :, j], out=products)
