"""Public features: fixed functions of X, made without any label, so they cost nothing.

Blocks, each scaled to one unit of variance a row: the standardised columns; waves of each column's rank
(additive shapes); products of such waves for pairs of columns or leading directions; random Fourier
features (smooth functions of everything). A linear model on them, shrunk block by block, reaches from a
constant over ridge to kernel ridge.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.extmath import randomized_svd

from labeldp._values import Array, Index, Small
from labeldp.learning.bayes import BLOCKS, Observations, Posterior

Codes = NDArray[np.uint8]
"""Of each value, how many quantiles of its column it reaches: for ranks, and for trees."""

_GRID = np.linspace(0.0, 1.0, 201)
"""Places of quantiles: half a percent of the rows each, and their codes fit into a byte."""

PAIRED = 8
ALL_PAIRS = 12
"""With more columns than the second, so many leading directions are paired instead of columns."""

FOURIER = 300
FREQUENCIES = 150
"""Of the Fourier block, and of the interactions: each has a cosine and a sine."""

WAVES = 14
"""Of each column, if there are few: shapes down to a 14th of the rows."""

_CLIP = 5.0
"""Standard deviations to which columns are clipped, so that no outlier rules a linear model."""

PIECE = 1 << 12
"""Rows whose features are in memory at once: features are made again whenever they are needed, which takes less
time than to multiply them with each other, and far less memory than to keep them."""

WIDE = 300
"""Tables with more columns are narrowed first: the work grows with the cube of the columns."""

_NARROW = 100
"""Leading directions that stand for them."""

_SAMPLE = 10_000
_MAP_ROWS = 100_000
"""Rows at most, evenly spread, by which maps are fitted: more would hardly change them."""

_TILE = 256
"""Rows whose exact products are made at once: they fit into a processor's cache."""

_TIED = 1e-9
"""Values of a direction, which are sums of about 1, are equal if they differ by no more."""

_GRAMS = 8
"""How many sums of products a table remembers: those of the rounds of a fit, and of a sample."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Many columns, or sparse ones, as a few leading directions: ``X @ matrix − shift``."""

    matrix: Array
    shift: Array

    @classmethod
    def fit(cls, X: Any, rng: np.random.Generator) -> Narrowing:
        """Return the leading directions of columns of unit size; those of sparse tables are not centred."""
        sample = X[np.sort(rng.permutation(X.shape[0])[:_SAMPLE])]
        if issparse(sample):
            center = np.zeros(X.shape[1])
            size = np.sqrt(np.asarray(sample.multiply(sample).mean(axis=0)).reshape(-1))
        else:
            center, size = sample.mean(axis=0), sample.std(axis=0)
        weight = np.divide(1.0, size, out=np.zeros_like(size), where=size > 1e-12 * (np.abs(center) + 1e-300))
        scaled = sample.multiply(weight).tocsr() if issparse(sample) else (sample - center) * weight
        count = max(1, min(_NARROW, *sample.shape))
        axes = randomized_svd(scaled, count, random_state=0)[2].T
        matrix = weight[:, None] * axes
        return cls(matrix, center @ matrix)

    def apply(self, X: Any, *, exact: bool = False) -> Array:
        """Return the directions of some rows."""
        return np.asarray((ordered_product(self.matrix, X.T).T if exact else X @ self.matrix) - self.shift)


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
    tied : array, columns × 1
        How far from a quantile a value is equal to it.
    """

    grid: Array
    low: Array
    rate: Array
    middle: Array
    tied: Array

    @classmethod
    def of(cls, quantiles: Array, tied: Array) -> RankMap:
        """Return the map of quantiles, grid × columns."""
        grid = np.ascontiguousarray(quantiles.T)
        last = grid.shape[1] - 1
        low = np.concatenate([grid[:, :1], grid], axis=1)
        with np.errstate(all="ignore"):  # columns of any size
            rate = np.nan_to_num(1 / (last * np.diff(low, axis=1, append=np.inf)), posinf=0.0)
        first = np.array([np.searchsorted(column, known) for column, known in zip(grid, low, strict=True)])
        middle = np.maximum(first + np.arange(low.shape[1]) - 1, 0) / 2 / last
        return cls(grid, low, rate, middle, tied[:, None])

    def search(self, values: Array) -> Codes:
        """Return the code of each value."""
        codes = np.empty(values.shape, dtype=np.uint8)
        for j, (column, known) in enumerate(zip(values + self.tied, self.grid, strict=True)):
            codes[j] = np.searchsorted(known, column, side="right")
        return codes

    def ranks(self, values: Array, codes: Codes) -> Small:
        """Return the rank of each value, 0 to 1, by its code."""
        at = codes + np.arange(0, self.low.size, self.low.shape[1])[:, None]
        beyond = values - self.low.ravel()[at]
        last = self.grid.shape[1] - 1
        inside = (np.maximum(codes, 1) - 1) / last + beyond * self.rate.ravel()[at]
        ranks = np.where(np.abs(beyond) <= self.tied, self.middle.ravel()[at], inside)
        return np.asarray(np.clip(ranks, 0.0, 1.0), dtype=np.float32)


@dataclass(frozen=True)
class PublicFeatures:
    """Feature maps fitted on public rows.

    Attributes
    ----------
    center, scale : arrays
        Of the columns.
    ranks : array, grid × columns
        Quantiles of each column, for its rank.
    directions : array, columns × directions
        Leading directions, whose ranks are paired if there are many columns.
    direction_ranks : array
    weights, phases : arrays
        Of the Fourier features.
    waves : int
        How many waves a column gets.
    means, norms : arrays
        That centre features, and scale blocks.
    block : array of int
        The block of each feature: 0 linear, 1 additive, 2 pairs, 3 Fourier, 4 interactions.
    turns : array, columns × frequencies, or None
        Frequencies of the interactions' waves over ranks, over the length of each column; None before lengths are
        learnt.
    narrowing : Narrowing or None
        What stands for the columns if there are very many, or if they are sparse.
    """

    center: Array
    scale: Array
    ranks: Array
    directions: Array | None
    direction_ranks: Array | None
    weights: Array
    phases: Array
    waves: int
    means: Array
    norms: Array
    block: Index
    turns: Array | None = None
    narrowing: Narrowing | None = None

    @classmethod
    def fit(cls, X: Any) -> PublicFeatures:
        """Return the maps for public rows ``X``; the seed is public too."""
        rng = np.random.default_rng(0)
        X = X[even_rows(X.shape[0], _MAP_ROWS)]
        if issparse(X) or X.shape[1] > WIDE:
            narrowing = Narrowing.fit(X, rng)
            return replace(cls.fit(narrowing.apply(X)), narrowing=narrowing)
        columns = X.shape[1]
        center = X.mean(axis=0)
        scale = X.std(axis=0)
        scale = np.where(scale > 1e-12 * (np.abs(center) + 1e-300), scale, 1.0)
        directions = direction_ranks = None
        if columns > ALL_PAIRS:
            standard = np.clip((X - center) / scale, -_CLIP, _CLIP)
            sample = standard[rng.permutation(len(X))[:_SAMPLE]]
            directions = np.linalg.svd(sample, full_matrices=False)[2][:PAIRED].T
            direction_ranks = quantiles(standard @ directions)
        heavy = 1 / np.sqrt(rng.chisquare(3, FOURIER) / 3)  # lengths of all sizes
        unscaled = cls(
            center=center,
            scale=scale,
            ranks=quantiles(X),
            directions=directions,
            direction_ranks=direction_ranks,
            weights=rng.normal(size=(columns, FOURIER)) / np.sqrt(columns) * heavy,
            phases=rng.uniform(0, 2 * np.pi, FOURIER),
            waves=wave_count(columns),
            means=np.zeros(1),
            norms=np.ones(1),
            block=np.zeros(0, dtype=np.int64),
        )
        block = np.repeat(np.arange(BLOCKS), unscaled.block_sizes())
        unscaled = replace(unscaled, means=np.zeros(block.size), norms=np.ones(block.size), block=block)
        means, squares = np.zeros(block.size), np.zeros(block.size)
        table = FeatureTable(unscaled, X[even_rows(len(X), 2 * PIECE)])
        for _, features in table.pieces(np.arange(table.rows)):
            raw = features[:, :-1].T.astype(np.float64)
            means += raw.sum(axis=1) / table.rows
            squares += np.einsum("ij,ij->i", raw, raw) / table.rows
        spread = np.sqrt(np.bincount(block, np.maximum(squares - means**2, 0.0), BLOCKS))
        return replace(unscaled, means=means, norms=np.where(spread > 1e-6, spread, 1.0)[block])

    def with_lengths(self, lengths: Array, ranks: Small) -> PublicFeatures:
        """Return the maps with interactions on a length a column; ``ranks`` are those of some rows."""
        turns = frequencies(len(lengths)) / lengths[:, None]
        waves = np.empty((2 * FREQUENCIES, ranks.shape[1]), dtype=np.float32)
        fill_interactions(turns, ranks, waves)
        means, norm = waves.mean(axis=1, dtype=np.float64), math.sqrt(max(float(waves.var(axis=1).sum()), 1e-12))
        fixed = self.block < BLOCKS - 1
        return replace(
            self,
            means=np.append(self.means[fixed], means),
            norms=np.append(self.norms[fixed], np.full(means.size, norm)),
            block=np.append(self.block[fixed], np.full(means.size, BLOCKS - 1)),
            turns=turns,
        )

    @property
    def size(self) -> int:
        """The number of features, with the last one that is 1."""
        return self.block.size + 1

    @cached_property
    def _rank_map(self) -> RankMap:
        """Ranks of columns, and of directions if those are paired."""
        known = [self.ranks] if self.direction_ranks is None else [self.ranks, self.direction_ranks]
        tied = np.repeat([0.0, _TIED][: len(known)], [each.shape[1] for each in known])
        return RankMap.of(np.concatenate(known, axis=1), tied)

    def locate(self, X: Any, *, exact: bool = False) -> tuple[Array, Codes]:
        """Return the columns of rows and the codes of their values, for `transform` and for trees."""
        columns = np.asarray(X) if self.narrowing is None else self.narrowing.apply(X, exact=exact)
        codes = np.empty((len(self._rank_map.grid), len(columns)), dtype=np.uint8)
        for start in range(0, len(columns), PIECE):
            piece = slice(start, start + PIECE)
            codes[:, piece] = self._rank_map.search(self._ranked(columns[piece], exact=exact))
        return columns, codes

    def _standardise(self, columns: Array) -> Array:
        """Return columns of unit size, without outliers; columns × rows."""
        return np.clip((columns - self.center) / self.scale, -_CLIP, _CLIP).T

    def _ranked(self, columns: Array, *, exact: bool = False) -> Array:
        """Return the values that have ranks, columns and the directions that are paired; × rows."""
        if self.directions is None:
            return columns.T
        standard = self._standardise(columns)
        directions = ordered_product(self.directions, standard) if exact else self.directions.T @ standard
        return np.concatenate([columns.T, directions])

    def ranks_of(self, columns: Array, codes: Codes) -> Small:
        """Return the ranks of columns, and of the directions that are paired."""
        return self._rank_map.ranks(self._ranked(columns), codes)

    def transform(self, columns: Array, codes: Codes, *, exact: bool = False) -> Small:
        """Return all features of some rows, and a last one that is 1; ``exact`` ones are the same in any batch."""
        standard = self._standardise(columns)
        ranks = self._rank_map.ranks(self._ranked(columns, exact=exact), codes)
        edges, rows = np.cumsum([0, *self.block_sizes()]), len(columns)
        result = np.empty((self.size, rows), dtype=np.float32)
        linear, additive, pairs, fourier, interactions = (result[a:b] for a, b in pairwise(edges))
        linear[:] = standard
        waves = additive.reshape(self.waves, -1, rows)
        fill_waves(ranks[: len(standard)], waves)
        few = waves[: self._products]
        if self.directions is not None:
            few = np.empty((self._products, self._paired, rows), dtype=np.float32)
            fill_waves(ranks[len(standard) :], few)
        fill_pairs(few, pairs)
        fill_product(self.weights, np.clip(linear, -3, 3), fourier, exact=exact)
        fourier += self.phases.astype(np.float32)[:, None]
        np.cos(fourier, out=fourier)
        if self.turns is not None:
            fill_interactions(self.turns, ranks[: len(standard)], interactions, exact=exact)
        result[-1] = 1
        result[:-1] -= self.means.astype(np.float32)[:, None]
        result[:-1] /= self.norms.astype(np.float32)[:, None]
        return result.T

    def interactions(self, ranks: Small) -> Small:
        """Return the interactions alone of some rows, by the ranks of their columns."""
        if self.turns is None:
            return np.zeros((ranks.shape[1], 0), dtype=np.float32)
        result = np.empty((2 * self.turns.shape[1], ranks.shape[1]), dtype=np.float32)
        fill_interactions(self.turns, ranks, result)
        result -= self.means[self.fixed :].astype(np.float32)[:, None]
        result /= self.norms[self.fixed :].astype(np.float32)[:, None]
        return result.T

    @property
    def fixed(self) -> int:
        """How many features do not depend on lengths; interactions follow."""
        return sum(self.block_sizes()[:-1])

    @property
    def _products(self) -> int:
        """How many waves of each column of a pair are multiplied."""
        return 4 if self._paired <= PAIRED else 2

    @property
    def _paired(self) -> int:
        return len(self.center) if self.directions is None else self.directions.shape[1]

    def block_sizes(self) -> list[int]:
        """Return the number of features in each block; a single column has no pairs, but a zero."""
        columns, pairs = len(self.center), self._paired * (self._paired - 1) // 2
        products = max(1, pairs * self._products**2)
        interactions = 0 if self.turns is None else 2 * self.turns.shape[1]
        return [columns, columns * self.waves, products, len(self.phases), interactions]


def quantiles(values: Array) -> Array:
    """Return 201 quantiles of each column of values, rows × columns; grid × columns."""
    ordered = np.sort(np.ascontiguousarray(values.T), axis=1)
    place = _GRID * (ordered.shape[1] - 1)
    below = place.astype(np.int64)
    low, high = ordered[:, below], ordered[:, np.minimum(below + 1, ordered.shape[1] - 1)]
    return np.asarray((low + (high - low) * (place - below)).T)


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


def frequencies(columns: int) -> Array:
    """Return public random frequencies for lengths of 1, columns × frequencies."""
    rng = np.random.default_rng(1)
    heavy = 1 / np.sqrt(rng.chisquare(5, FREQUENCIES) / 5)
    return np.asarray(rng.normal(size=(columns, FREQUENCIES)) * heavy)


def fill_interactions(turns: Array, ranks: Small, result: Small, *, exact: bool = False) -> None:
    """Write cosines and sines of waves over all columns' ranks, columns × rows."""
    half = turns.shape[1]
    fill_product(turns, ranks - np.float32(0.5), result[half:], exact=exact)
    np.cos(result[half:], out=result[:half])
    np.sin(result[half:], out=result[half:])


def fill_product(weights: Array, values: Small, result: Small, *, exact: bool) -> None:
    """Write weightsᵀ @ values, columns × rows."""
    if exact:
        result[:] = exact_product(weights, values)
    else:
        np.matmul(weights.T.astype(np.float32), values, out=result)


def exact_product(weights: Array, values: Array | Small) -> Array:
    """Return weightsᵀ @ values, columns × rows, whose bits for a row are the same in any batch.

    Values are clipped to ±32 and rounded to 2⁻¹⁶; weights to a step that is about 2⁻³¹ of what those of a column
    add up to. All partial sums are integers below 2⁵³, so that they are exact, in any order.
    """
    step = 2.0 ** (np.frexp(np.abs(weights).sum(axis=0))[1] - 31.0)[:, None]
    whole, result = np.rint(weights.T / step), np.empty((weights.shape[1], values.shape[1]))
    for start in range(0, values.shape[1], _TILE):
        tile = np.clip(values[:, start : start + _TILE], -32, 32, dtype=np.float64)
        result[:, start : start + _TILE] = whole @ np.rint(tile * 2.0**16)
    return np.asarray(result * (step * 2.0**-16))


def ordered_product(weights: Array, values: Array) -> Array:
    """Return weightsᵀ @ values, columns × rows, added up in the order of columns: the same bits in any batch."""
    result = np.zeros((weights.shape[1], values.shape[1]))
    for start in range(0, values.shape[1], _TILE):
        tile = slice(start, start + _TILE)
        for weight, value in zip(weights, values[:, tile], strict=True):
            result[:, tile] += weight[:, None] * value
    return result


def wave_count(columns: int) -> int:
    """Return how many waves a column gets: fewer if there are many columns."""
    return WAVES if columns <= 20 else 3


def even_rows(rows: int, most: int) -> Index:
    """Return all rows, or so many of them, evenly spread."""
    count = min(rows, most)
    return np.arange(count) * rows // max(1, count)


class FeatureTable:
    """Public features of public rows.

    Parameters
    ----------
    public : PublicFeatures
    X : array or sparse table, rows × columns
    exact : bool
        Whether places among quantiles must be the same in any batch.
    """

    def __init__(self, public: PublicFeatures, X: Any, *, exact: bool = False) -> None:
        self.public = public
        self.X = X
        self._columns, self._codes = public.locate(X, exact=exact)
        self.doubt = 0.0
        self._sums: dict[bytes, tuple[Small, Array]] = {}
        self._others: dict[bytes, tuple[Small, Array]] = {}  # those of the same rows with other interactions

    def with_lengths(self, lengths: Array, doubt: float) -> FeatureTable:
        """Return the same rows with interactions of columns on these lengths, which are likely or in doubt."""
        table = copy(self)
        table.__dict__.pop("moments", None)
        table.public = self.public.with_lengths(lengths, self.ranks(even_rows(self.rows, 2 * PIECE)))
        table.doubt, table._sums, table._others = doubt, {}, {**self._others, **self._sums}
        return table

    @property
    def columns(self) -> int:
        """The number of columns, after narrowing."""
        return int(self._columns.shape[1])

    def ranks(self, rows: Index) -> Small:
        """Return the ranks of the columns' values, from 0 to 1; columns × rows."""
        return self.public.ranks_of(self._columns[rows], self._codes[:, rows])[: self._columns.shape[1]]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def pieces(self, rows: Index, *, exact: bool = False) -> Iterator[tuple[slice, Small]]:
        """Yield the features of some rows, piece by piece, and where each piece lies among them."""
        for start in range(0, rows.size, PIECE):
            piece = slice(start, min(start + PIECE, rows.size))
            columns, codes = self._columns[rows[piece]], self._codes[:, rows[piece]]
            yield piece, self.public.transform(columns, codes, exact=exact)

    def codes(self, rows: Index) -> Codes:
        """Return the columns of some rows as trees see them: places among quantiles, so that they are binned."""
        return self._codes[: self._columns.shape[1]].T[rows]

    def observations(self, rows: Index, centred: Array, noise: float) -> Observations:
        """Return the statistics of single rows with private labels, minus their mean."""
        if 3 * rows.size <= self.public.size:
            (_, features), *_ = self.pieces(rows)
            return Observations.of_few(features, centred, 1.0, noise)
        gram, moment = self._moments(rows, centred)
        return Observations(gram, moment, float(centred @ centred), rows.size, 1.0, noise)

    def _moments(self, rows: Index, centred: Array) -> tuple[Small, Array]:
        """Return the sums of products of features with each other and with labels: the last few are remembered."""
        name = hashlib.blake2b(rows.tobytes() + centred.tobytes()).digest()
        if name not in self._sums:
            new = self.public.fixed if name in self._others else 0  # from where on products are not known yet
            total = np.zeros((self.public.size - new, self.public.size), dtype=np.float32)
            moment = np.zeros(self.public.size)
            for piece, features in self.pieces(rows):
                moment += features.T @ centred[piece].astype(np.float32)
                total += features[:, new:].T @ features
            gram = np.concatenate([np.zeros((new, self.public.size), dtype=np.float32), total])
            if new:
                gram[:new, :new], gram[:new, new:] = self._others[name][0][:new, :new], total[:, :new].T
            self._sums = dict([*self._sums.items(), (name, (gram, moment))][-_GRAMS:])
        return self._sums[name]

    def predict(self, model: Posterior, rows: Index) -> Array:
        """Return the linear model's predictions for some rows."""
        result = np.full(rows.size, np.nan)
        for piece, features in self.pieces(rows):
            result[piece] = model.predict(features)
        return result

    def sample_rows(self) -> Index:
        """Return all rows, or 10,000, evenly spread, that stand for all."""
        return even_rows(self.rows, _SAMPLE)

    @cached_property
    def moments(self) -> Array:
        """Mean products of features with each other, over 10,000 rows at most; the last ones are their means."""
        rows = self.sample_rows()
        return self._moments(rows, np.zeros(rows.size))[0].astype(np.float64) / rows.size

    @cached_property
    def spectrum(self) -> Array:
        """The leading eigenvalues of the mean products, blocks weighted by experience."""
        weight = np.sqrt(np.array([0.4, 0.3, 0.2, 0.1, 0.2])[self.public.block])
        values = np.linalg.eigvalsh(self.moments[:-1, :-1] * weight * weight[:, None])
        return np.asarray(np.maximum(values[::-1][:400], 0.0))
