"""A curator's prior: a histogram from exact counts of labels, with noise on them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp.histogram import Histogram
from labeldp.priors.statistics import noisy_counts
from labeldp.randomness import WordSource

__all__ = ["FINE", "adaptive_histogram", "bins_for", "equal_histogram"]

FINE = 1 << 16
"""Cells of the fine grid: what `adaptive_histogram` needs to know of labels is how many lie in each."""

Counts = NDArray[np.int64]


def bins_for(rows: int, epsilon: float) -> int:
    """Return how many bins to count, from what is public: ten times a power of two.

    Noise in k bins adds up to k/(nε) of the mass, bins hide about 1/k of it: k near √(nε) balances.

    Examples
    --------
    >>> bins_for(20_000, 0.1), bins_for(20_000, 1.0)
    (40, 160)
    """
    wish = 1.2 * math.sqrt(rows * epsilon) / 10
    return 10 << int(np.clip(round(math.log2(max(wish, 1.0))), 0, 10))


def equal_histogram(
    counts: Counts, epsilon: Fraction, bounds: tuple[float, float], source: WordSource
) -> Histogram:
    """Return the private histogram of counts in equally wide bins."""
    noisy = noisy_counts(counts, epsilon, source)
    return Histogram.from_counts(_onto_simplex(noisy, int(counts.sum())), bounds)


def adaptive_histogram(
    fine: Counts, epsilon: Fraction, bounds: tuple[float, float], source: WordSource
) -> Histogram:
    """Return a private histogram with bins of about equal mass, from counts in `FINE` cells.

    Noise is added twice: to coarse bins, to find where labels are, then to bins of about equal mass. So loose
    bounds, a hundred times wider than the labels, do little harm.
    """
    rows = int(fine.sum())
    first = epsilon / 3
    bins = bins_for(rows, float(first))
    cells = np.linspace(0, FINE, bins + 1).astype(np.int64)
    coarse = _without_empty_ends(
        noisy_counts(np.add.reduceat(fine, cells[:-1]), first, source), float(first), rows
    )
    # Equally likely bins, with a little mass everywhere and next to where it was seen.
    blurred = np.convolve(coarse, [0.25, 0.5, 0.25], mode="same")
    blurred = 0.95 * blurred / blurred.sum() + 0.05 / bins
    places = np.concatenate([[0.0], np.cumsum(blurred)])
    rest = epsilon - first
    parts = np.linspace(0.0, places[-1], bins_for(rows, float(rest)) + 1)
    nodes = np.unique(np.rint(np.interp(parts, places, cells)).astype(np.int64))
    nodes[0], nodes[-1] = 0, FINE
    noisy = noisy_counts(np.add.reduceat(fine, nodes[:-1]), rest, source)
    masses = _without_empty_ends(noisy, float(rest), rows)
    low, high = bounds
    return Histogram(low + nodes / FINE * (high - low), masses)


def _without_empty_ends(noisy: NDArray[np.float64], epsilon: float, total: int) -> NDArray[np.float64]:
    """Return consistent counts with the ends set to zero where nothing but noise is seen.

    The walk of counts less two thirds of a standard deviation each falls through empty bins and rises where
    labels are; the end is cut where it is lowest.
    """
    drift = 0.65 * math.sqrt(8) / epsilon
    left = int(np.argmin(np.cumsum(np.concatenate([[0.0], noisy - drift]))))
    right = int(np.argmin(np.cumsum(np.concatenate([[0.0], noisy[::-1] - drift]))))
    if left + right >= noisy.size:
        left = right = 0
    kept = slice(left, noisy.size - right)
    result = np.zeros(noisy.size)
    result[kept] = _onto_simplex(noisy[kept], total)
    return result


def _onto_simplex(counts: NDArray[np.float64], total: int) -> NDArray[np.float64]:
    """Return the nearest counts that are not negative and sum to ``total``, which is public."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    used = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(counts - excess[used], 0.0))
