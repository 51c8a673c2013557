"""Many columns, or sparse ones, projected on a few leading directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.extmath import randomized_svd

from labeldp._values import Array
from labeldp.learning.exact_products import ordered_product

_DIRECTIONS = 100
_SAMPLE = 10_000
"""Directions, and rows at random by which they are found: more would hardly change them."""


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

    def apply(self, X: Any, *, exact: bool = False) -> Array:
        """Return the projection of some rows."""
        projected = ordered_product(self.matrix, X.T).T if exact else X @ self.matrix
        return np.asarray(projected - self.shift)


def varies(deviation: Array, center: Array) -> Any:
    """Return which columns vary by more than a rounding error."""
    return deviation > 1e-12 * (np.abs(center) + 1e-300)
