"""The features of all rows: in memory if they are small, else computed again piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.estimators.bayes import Observations, Posterior
from labeldp.estimators.features import PublicFeatures

__all__ = ["FeatureTable"]

Array = NDArray[np.float64]
Small = NDArray[np.float32]
Index = NDArray[np.int64]

CACHE_BYTES = 1 << 32
"""Feature tables of up to this many bytes stay in memory, if a quarter of what is free holds them."""

PIECE = 1 << 14


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
        size = X.shape[0] * (public.block.size + 1) * 4
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

    def columns(self, rows: Index) -> Array:
        """Return the standardised columns of some rows."""
        return self.public.standardised(self.X[rows])

    def observations(self, rows: Index, centred: Array, noise: float) -> Observations:
        """Return the statistics of single rows with private labels, minus their mean."""
        size = self.public.block.size + 1
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
        """Return the leading eigenvalues of the features' covariance, from at most 20,000 rows."""
        step = max(1, self.rows // 20_000)
        sample = np.arange(0, self.rows, step)
        features = np.concatenate([part for _, part in self.pieces(sample)])
        return self.public.spectrum(features)
