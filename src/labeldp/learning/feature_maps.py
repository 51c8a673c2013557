"""Building blocks of public features: exact products, ranks, principal components, and cosines of ranks.

BLAS adds in an order that depends on the shape of its matrices. Where the group or the prediction of a row must be
the same on one machine and on a cluster, products are made of integers, or added in a fixed order: then the bits
for a row do not depend on the rows beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.extmath import randomized_svd

from labeldp._values import Array, Small

BLOCKS = 5
"""The number of blocks of features."""

INTERACTIONS = BLOCKS - 1
"""The position of the last block, which is empty until length scales are learnt."""

_TILE = 256
"""Rows that are multiplied at once: they fit into a processor's cache."""

_VALUE_LIMIT = 32
"""Values are clipped to ± this."""

_VALUE_STEPS = 2.0**16
"""Values are rounded to this number of steps a unit."""

_WEIGHT_BITS = 31
"""Weights are rounded so that those of a column add up to about 2³¹ steps."""

Codes = NDArray[np.uint8]
"""Numbers of quantiles of a column that are no larger than each value: for ranks, and as bins for trees."""

_GRID = np.linspace(0.0, 1.0, 201)
"""Quantiles, in steps of half a percent of the rows: their codes fit into a byte."""

_DIRECTIONS = 100
"""The largest number of directions of a projection."""

_SAMPLE = 10_000
"""The largest number of rows, at random, by which directions are found."""

FREQUENCIES = 150
"""Of the interactions: each has a cosine and a sine."""


# ---- products --------------------------------------------------------------------------------------------


def exact_product(weights: Array, values: Array | Small) -> Array:
    """Return weightsᵀ @ values, columns × rows, from rounded weights and values.

    All partial sums are integers below 2⁵³, so they are exact in any order.
    """
    total = np.abs(weights).sum(axis=0)
    step = 2.0 ** (np.frexp(total)[1] - float(_WEIGHT_BITS))[:, None]
    integer_weights = np.rint(weights.T / step)
    result = np.empty((weights.shape[1], values.shape[1]))
    limit = values.dtype.type(_VALUE_LIMIT * _VALUE_STEPS)
    for start in range(0, values.shape[1], _TILE):
        tile = slice(start, start + _TILE)
        steps = values[:, tile] * values.dtype.type(_VALUE_STEPS)
        np.clip(np.rint(steps, out=steps), -limit, limit, out=steps)
        np.matmul(integer_weights, steps.astype(np.float64), out=result[:, tile])
    result *= step / _VALUE_STEPS
    return result


def ordered_product(weights: Array, values: Array) -> Array:
    """Return weightsᵀ @ values, columns × rows, added in the order of columns."""
    result = np.zeros((weights.shape[1], values.shape[1]))
    for start in range(0, values.shape[1], _TILE):
        tile = slice(start, start + _TILE)
        for weight, value in zip(weights, values[:, tile], strict=True):
            result[:, tile] += weight[:, None] * value
    return result


def fill_product(weights: Array, values: Small, result: Small, *, exact: bool) -> None:
    """Write weightsᵀ @ values into ``result``, columns × rows; by BLAS unless it must be exact."""
    if exact:
        result[:] = exact_product(weights, values)
    else:
        np.matmul(weights.T.astype(np.float32), values, out=result)


# ---- ranks -----------------------------------------------------------------------------------------------


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
        grid = np.ascontiguousarray(quantiles.T)
        last = grid.shape[1] - 1
        reached = np.concatenate([grid[:, :1], grid], axis=1)
        with np.errstate(all="ignore"):  # columns of any size
            slope = np.nan_to_num(1 / (last * np.diff(reached, axis=1, append=np.inf)), posinf=0.0)
        first = np.array([np.searchsorted(*pair) for pair in zip(grid, reached, strict=True)])
        tied_rank = np.maximum(first + np.arange(last + 2) - 1, 0) / 2 / last
        return cls(grid, reached, slope, tied_rank, tolerance[:, None])

    def codes(self, values: Array) -> Codes:
        """Return the code of each value, columns × rows."""
        codes = np.empty(values.shape, dtype=np.uint8)
        for j, (column, grid) in enumerate(zip(values + self.tolerance, self.quantiles, strict=True)):
            codes[j] = np.searchsorted(grid, column, side="right")
        return codes

    def ranks(self, values: Array, codes: Codes) -> Small:
        """Return the rank of each value by its code, columns × rows."""
        at = codes + np.arange(0, self.reached.size, self.reached.shape[1])[:, None]
        distance = values - self.reached.ravel()[at]
        last = self.quantiles.shape[1] - 1
        between = (np.maximum(codes, 1) - 1) / last + distance * self.slope.ravel()[at]
        ranks = np.where(np.abs(distance) <= self.tolerance, self.tied_rank.ravel()[at], between)
        return np.asarray(np.clip(ranks, 0.0, 1.0), dtype=np.float32)


# ---- projection ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Projection:
    """``X @ matrix − shift``."""

    matrix: Array
    shift: Array

    @classmethod
    def fit(cls, X: Any, rng: np.random.Generator) -> Projection:
        """Return the leading directions of columns of unit size; those of sparse tables are not centred."""
        sample = X[np.sort(rng.permutation(X.shape[0])[:_SAMPLE])]
        if issparse(sample):
            center = np.zeros(X.shape[1])
            size = np.sqrt(np.asarray(sample.multiply(sample).mean(axis=0)).reshape(-1))
        else:
            center = sample.mean(axis=0)
            size = sample.std(axis=0)
        weight = np.where(varies(size, center), 1 / np.where(size > 0, size, 1.0), 0.0)
        scaled = sample.multiply(weight).tocsr() if issparse(sample) else (sample - center) * weight
        count = max(1, min(_DIRECTIONS, *sample.shape))
        directions = randomized_svd(scaled, count, random_state=0)[2].T
        matrix = weight[:, None] * directions
        return cls(matrix, center @ matrix)

    def apply(self, X: Any, *, exact: bool) -> Array:
        """Return the projection of some rows; that of sparse rows is never exact."""
        is_ordered = exact and not issparse(X)
        projected = ordered_product(self.matrix, X.T).T if is_ordered else X @ self.matrix
        return projected - self.shift


def varies(deviation: Array, center: Array) -> Any:
    """Return which columns vary by more than a rounding error."""
    return deviation > 1e-12 * (np.abs(center) + 1e-300)


# ---- waves -----------------------------------------------------------------------------------------------


def fill_waves(ranks: Small, result: Small) -> None:
    """Write cos(πkr)/k for k = 1, 2, … of ranks r into waves × columns × rows."""
    np.cos(ranks * np.float32(np.pi), out=result[0])
    twice = 2 * result[0]
    for k in range(1, len(result)):  # cos kt = 2 cos t cos (k−1)t − cos (k−2)t
        np.multiply(twice, result[k - 1], out=result[k])
        result[k] -= result[k - 2] if k > 1 else np.float32(1)
    result /= np.arange(1, len(result) + 1, dtype=np.float32)[:, None, None]


def fill_pairs(waves: Small, result: Small) -> None:
    """Write the products of any two columns' waves; zeros if there are no two columns."""
    count, columns, rows = waves.shape
    if columns < 2:
        result[:] = 0
    pairs = list(combinations(range(columns), 2))
    products = result[: len(pairs) * count**2].reshape(len(pairs), count, count, rows)
    for product, (i, j) in zip(products, pairs, strict=True):
        np.multiply(waves[:, None, i], waves[None, :, j], out=product)


def frequencies(columns: int) -> Array:
    """Return public random frequencies of the interactions for length scales of 1, columns × frequencies."""
    return matern_frequencies(np.random.default_rng(1), (columns, FREQUENCIES), smoothness=2.5)


def matern_frequencies(
    rng: np.random.Generator, shape: tuple[int, int], *, smoothness: float, length_scale: float = 1.0
) -> Array:
    """Return random frequencies whose cosines have a Matérn kernel on average, columns × frequencies.

    Its spectral density is a multivariate t distribution with 2 · smoothness degrees of freedom (Rasmussen and
    Williams, Gaussian Processes for Machine Learning, section 4.2).

    Examples
    --------
    >>> frequencies = matern_frequencies(np.random.default_rng(0), (2, 100_000), smoothness=1.5)
    >>> kernel = (1 + 3**0.5) * np.exp(-(3**0.5))    # at a distance of 1
    >>> bool(abs(np.cos([0.6, 0.8] @ frequencies).mean() - kernel) < 0.01)
    True
    """
    heavy = 1 / np.sqrt(rng.chisquare(2 * smoothness, shape[1]) / (2 * smoothness))
    return rng.normal(size=shape) / length_scale * heavy


def interaction_waves(turns: Array, ranks: Small, *, exact: bool) -> Small:
    """Return cosines and sines of waves over the ranks of all columns, 2 · frequencies × rows.

    Parameters
    ----------
    turns : array, columns × frequencies
        Frequencies over the length of each column.
    ranks : array, columns × rows
    exact : bool
        Whether the bits of a row must be the same in any batch.
    """
    half = turns.shape[1]
    result = np.empty((2 * half, ranks.shape[1]), dtype=np.float32)
    fill_product(turns, ranks - np.float32(0.5), result[half:], exact=exact)
    np.cos(result[half:], out=result[:half])
    np.sin(result[half:], out=result[half:])
    return result
