"""Waves of ranks: the functions of which additive features, pairs and interactions are made."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from labeldp._values import Array, Small
from labeldp.learning.exact_products import fill_product

FREQUENCIES = 150
"""Of the interactions: each has a cosine and a sine."""


def fill_waves(ranks: Small, result: Small) -> None:
    """Write cos(πkr)/k for k = 1, 2, … of ranks r into waves × columns × rows."""
    np.cos(ranks * np.float32(np.pi), out=result[0])
    twice = 2 * result[0]
    for k in range(1, len(result)):  # cos kt = 2 cos t cos (k−1)t − cos (k−2)t
        np.multiply(twice, result[k - 1], out=result[k])
        result[k] -= result[k - 2] if k > 1 else np.float32(1)
    result /= np.arange(1, len(result) + 1, dtype=np.float32)[:, None, None]


def fill_pairs(waves: Small, result: Small) -> None:
    """Write the products of any two columns' waves; zeros if there is one column only."""
    count, columns, rows = waves.shape
    if columns == 1:
        result[:] = 0
    pairs = list(combinations(range(columns), 2))
    products = result[: len(pairs) * count**2].reshape(len(pairs), count, count, rows)
    for product, (i, j) in zip(products, pairs, strict=True):
        np.multiply(waves[:, None, i], waves[None, :, j], out=product)


def frequencies(columns: int) -> Array:
    """Return public random frequencies for lengths of 1, columns × frequencies."""
    rng = np.random.default_rng(1)
    heavy = 1 / np.sqrt(rng.chisquare(5, FREQUENCIES) / 5)
    return np.asarray(rng.normal(size=(columns, FREQUENCIES)) * heavy)


def interaction_waves(turns: Array, ranks: Small, *, exact: bool = False) -> Small:
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
