"""Public features: fixed functions of X, made without any label, so they cost nothing.

Blocks, each scaled to one unit of variance a row: the standardised columns; waves of each column's rank
(additive shapes); products of such waves for pairs of columns or leading directions; random Fourier
features (smooth functions of everything). A linear model on them, shrunk block by block, reaches from a
constant over ridge to kernel ridge.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.extmath import randomized_svd

from labeldp.estimators.bayes import Observations, Posterior

__all__ = ["PIECE", "FeatureTable", "PublicFeatures"]

Array = NDArray[np.float64]
Small = NDArray[np.float32]
Index = NDArray[np.int64]

_PAIRED = 8
_ALL_PAIRS = 12
"""With more columns, leading directions are paired instead of columns."""

_FOURIER = 300
_CLIP = 5.0
PIECE = 1 << 14

CACHE_BYTES = 1 << 32
"""Feature tables of up to this many bytes stay in memory, if a quarter of what is free holds them."""

_WIDE = 300
"""Tables with more columns are narrowed first: the work grows with the cube of the columns."""

_NARROW = 100
_SAMPLE = 20_000


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

    def apply(self, X: Any) -> Array:
        """Return the directions of some rows."""
        return np.asarray(X @ self.matrix - self.shift)


@dataclass(frozen=True, slots=True)
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
        The block of each feature: 0 linear, 1 additive, 2 pairs, 3 Fourier.
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
    block: NDArray[np.int64]
    narrowing: Narrowing | None = None

    @classmethod
    def fit(cls, X: Any, seed: int = 0) -> PublicFeatures:
        """Return the maps for public rows ``X``; the seed is public too."""
        rng = np.random.default_rng(seed)
        if issparse(X) or X.shape[1] > _WIDE:
            narrowing = Narrowing.fit(X, rng)
            return replace(cls.fit(narrowing.apply(X), seed), narrowing=narrowing)
        columns = X.shape[1]
        center = X.mean(axis=0)
        scale = X.std(axis=0)
        scale = np.where(scale > 1e-12 * (np.abs(center) + 1e-300), scale, 1.0)
        standard = np.clip((X - center) / scale, -_CLIP, _CLIP)
        grid = np.linspace(0.0, 1.0, 201)
        directions = direction_ranks = None
        if columns > _ALL_PAIRS:
            sample = standard[rng.permutation(len(X))[:20_000]]
            directions = np.linalg.svd(sample, full_matrices=False)[2][:_PAIRED].T
            direction_ranks = np.quantile(standard @ directions, grid, axis=0)
        heavy = 1 / np.sqrt(rng.chisquare(3, _FOURIER) / 3)  # lengths of all sizes
        draft = cls(
            center=center,
            scale=scale,
            ranks=np.quantile(X, grid, axis=0),
            directions=directions,
            direction_ranks=direction_ranks,
            weights=rng.normal(size=(columns, _FOURIER)) / np.sqrt(columns) * heavy,
            phases=rng.uniform(0, 2 * np.pi, _FOURIER),
            waves=14 if columns <= 20 else 3,
            means=np.zeros(1),
            norms=np.ones(1),
            block=np.zeros(0, dtype=np.int64),
        )
        blocks = draft._blocks(X[rng.permutation(len(X))[:50_000]])
        means = np.concatenate([part.mean(axis=0) for part in blocks])
        spread = [float(np.sqrt(part.var(axis=0).sum())) for part in blocks]
        norms = np.concatenate(
            [np.full(part.shape[1], s if s > 0 else 1.0) for part, s in zip(blocks, spread, strict=True)]
        )
        block = np.concatenate([np.full(part.shape[1], k) for k, part in enumerate(blocks)])
        fields = {name: getattr(draft, name) for name in draft.__dataclass_fields__}
        return cls(**{**fields, "means": means, "norms": norms, "block": block})

    @property
    def size(self) -> int:
        """The number of features, with the last one that is 1."""
        return self.block.size + 1

    def codes(self, X: Any) -> Array:
        """Return each column as a few integers, its place among quantiles, so that trees bin it at once."""
        X = self._columns(X)
        codes = [np.searchsorted(self.ranks[:, j], X[:, j], side="right") for j in range(X.shape[1])]
        return np.column_stack(codes).astype(np.float64)

    def _columns(self, X: Any) -> Array:
        return np.asarray(X) if self.narrowing is None else self.narrowing.apply(X)

    def transform(self, X: Any) -> Small:
        """Return all features of rows ``X``, and a last one that is 1."""
        result = np.ones((X.shape[0], self.size), dtype=np.float32)
        for start in range(0, X.shape[0], PIECE):
            piece = slice(start, start + PIECE)
            features = np.concatenate(self._blocks(self._columns(X[piece])), axis=1)
            features -= self.means
            features /= self.norms
            result[piece, :-1] = features
        return result

    def spectrum(self, features: Small) -> Array:
        """Return the leading eigenvalues of the features' covariance, blocks weighted by experience."""
        weight = np.sqrt(np.array([0.4, 0.3, 0.2, 0.1])[self.block]).astype(np.float32)
        weighted = features[:, :-1] * weight
        values = np.linalg.eigvalsh((weighted.T @ weighted / len(features)).astype(np.float64))
        return np.asarray(np.maximum(values[::-1][:400], 0.0))

    def _blocks(self, X: Array) -> list[Array]:
        standard = np.clip((X - self.center) / self.scale, -_CLIP, _CLIP)
        rank = _ranks(X, self.ranks)
        paired = rank if self.directions is None else _ranks(standard @ self.directions, self.direction_ranks)
        products = 4 if paired.shape[1] <= _PAIRED else 2
        waves = _waves(rank, self.waves)
        few = _waves(paired, products)
        pairs = [
            few[a][:, i] * few[b][:, j]
            for i, j in combinations(range(paired.shape[1]), 2)
            for a in range(products)
            for b in range(products)
        ]
        fourier = np.cos(np.clip(standard, -3, 3) @ self.weights + self.phases)
        return [
            standard,
            np.concatenate(waves, axis=1),
            np.array(pairs).T if pairs else np.zeros((len(X), 1)),
            fourier,
        ]


def _ranks(values: Array, quantiles: Array | None) -> Array:
    """Return each value's rank in its column, 0 to 1; ties get their middle."""
    assert quantiles is not None  # noqa: S101 (for the type checker)
    grid = np.linspace(0.0, 1.0, len(quantiles))
    ranks: Array = np.full(values.shape, np.nan)
    for j in range(values.shape[1]):
        column = quantiles[:, j]
        left = np.searchsorted(column, values[:, j], side="left")
        right = np.searchsorted(column, values[:, j], side="right")
        inside = np.interp(values[:, j], column, grid)
        tied = right - left > 1
        ranks[:, j] = np.where(tied, (left + right - 1) / 2 / (len(grid) - 1), inside)
    return np.clip(ranks, 0.0, 1.0)


def _waves(rank: Array, count: int) -> list[Array]:
    return [np.cos(np.pi * k * rank) / k for k in range(1, count + 1)]


def _free() -> int:
    """Return how many bytes of memory are free, as far as the system reports."""
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 1 << 32


class FeatureTable:
    """Public features of public rows.

    Parameters
    ----------
    public : PublicFeatures
    X : array or sparse table, rows × columns
    """

    def __init__(self, public: PublicFeatures, X: Any) -> None:
        self.public = public
        self.X = X
        size = X.shape[0] * public.size * 4
        self._cache: Small | None = public.transform(X) if size <= min(CACHE_BYTES, _free() // 4) else None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def pieces(self, rows: Index) -> Iterator[tuple[slice, Small]]:
        """Yield the features of some rows, piece by piece, and where each piece lies among them."""
        for start in range(0, rows.size, PIECE):
            piece = slice(start, min(start + PIECE, rows.size))
            some = rows[piece]
            yield piece, self._cache[some] if self._cache is not None else self.public.transform(self.X[some])

    def even_rows(self, most: int) -> Small:
        """Return the features of all rows, or of about this many, evenly spread."""
        rows = np.arange(0, self.rows, max(1, self.rows // most))
        return np.concatenate([part for _, part in self.pieces(rows)])

    def codes(self, rows: Index) -> Array:
        """Return the columns of some rows as trees see them."""
        return self.public.codes(self.X[rows])

    def observations(self, rows: Index, centred: Array, noise: float) -> Observations:
        """Return the statistics of single rows with private labels, minus their mean."""
        size = self.public.size
        gram = np.zeros((size, size), dtype=np.float32)
        moment = np.zeros(size)
        for piece, features in self.pieces(rows):
            gram += features.T @ features
            moment += features.T @ centred[piece].astype(np.float32)
        return Observations(gram, moment, float(centred @ centred), rows.size, 1.0, noise)

    def predict(self, model: Posterior, rows: Index) -> Array:
        """Return the linear model's predictions for some rows."""
        result = np.full(rows.size, np.nan)
        for piece, features in self.pieces(rows):
            result[piece] = model.predict(features)
        return result

    def spectrum(self) -> Array:
        """Return the leading eigenvalues of the features' covariance, from at most 20,000 rows or so."""
        return self.public.spectrum(self.even_rows(_SAMPLE))
