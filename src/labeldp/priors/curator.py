"""What a curator makes of exact counts and sums of labels, with noise on them: one private mean, counts, a prior.

Sums and counts of parts add up before any noise is drawn, so a table may lie in one array, in batches of a file,
or on many machines: what is released is the same.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.channels.sampling import CHUNK, Domain, pieces
from labeldp.histogram import Histogram
from labeldp.noise import DiscreteLaplace
from labeldp.priors.origin import Origin, counts_of_labels
from labeldp.randomness import WordSource

__all__ = [
    "FEW_BINS",
    "FINE",
    "GRID",
    "adaptive_histogram",
    "bins_for",
    "count",
    "count_noise",
    "curator_histogram",
    "grid_sum",
    "mean_noise",
    "noisy_counts",
    "noisy_mean",
]

FINE = 1 << 16
"""Cells of the fine grid: what `adaptive_histogram` needs to know of labels is how many lie in each."""

GRID = 1 << 20
"""A range has this many steps where values in it are summed as integers."""

FEW_BINS = 64
"""Up to this many bins are counted by comparisons, the same for all values; a table is looked up by the value."""

Counts = NDArray[np.int64]


def count(values: NDArray[Any], bounds: tuple[float, float], bins: int) -> Counts:
    """Return how many values lie in each of equally wide bins; those outside count as the ends."""
    domain = Domain(*bounds, bins)
    counts = np.zeros(bins, dtype=np.int64)
    scratch = np.empty(min(CHUNK, values.size))
    with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
        for piece in pieces(values.size):
            some = values[piece]
            cells = domain.piece(some, scratch[: some.size])
            counts += np.bincount(cells, minlength=bins) if bins > FEW_BINS else _compared(cells, bins)
    return counts


def _compared(cells: Counts, bins: int) -> Counts:
    """Return how many cells are each bin, in arrays: the time of Python integers depends on their size."""
    above = np.zeros(bins + 1, dtype=np.int64)
    for bin in range(bins):
        np.sum(cells >= bin, dtype=np.int64, out=above[bin : bin + 1], keepdims=True)
    return above[:-1] - above[1:]


def count_noise(epsilon: Fraction) -> DiscreteLaplace:
    """Return the noise of counts: changing one label moves one of them down and one up."""
    return DiscreteLaplace.calibrated(sensitivity=2, epsilon=epsilon)


def noisy_counts(counts: Counts, epsilon: Fraction, source: WordSource) -> NDArray[np.float64]:
    """Return counts with noise for ε."""
    return count_noise(epsilon).release(counts, source).astype(np.float64)


def grid_sum(values: NDArray[np.float64], bounds: tuple[float, float]) -> Counts:
    """Return the sum of the values' places in a range, as an array of one integer.

    One value moves it by at most `GRID`. It is never a Python integer, whose time depends on its size.
    """
    low, high = bounds
    with np.errstate(all="ignore"):
        steps = np.rint((np.clip(values, low, high) - low) / (high - low) * GRID).astype(np.int64)
    return np.asarray(steps.sum(keepdims=True))


def mean_noise(epsilon: Fraction) -> DiscreteLaplace:
    """Return the noise of a sum of places."""
    return DiscreteLaplace.calibrated(sensitivity=GRID, epsilon=epsilon)


def noisy_mean(
    total: Counts, rows: int, bounds: tuple[float, float], epsilon: Fraction, source: WordSource
) -> tuple[float, float]:
    """Return the mean from what `grid_sum` gave, with noise for ε and not clipped, and the noise's variance."""
    low, high = bounds
    noise = mean_noise(epsilon)
    unit = (high - low) / GRID / rows
    return low + int(noise.release(total, source)[0]) * unit, noise.variance() * unit**2


# ---- histograms -----------------------------------------------------------------------------------


def bins_for(rows: int, epsilon: float) -> int:
    """Return how many bins to count, from what is public: ten times a power of two.

    Noise in k bins adds up to k/(nε) of the mass, bins hide about 1/k of it: k near √(nε) balances.

    Examples
    --------
    >>> bins_for(20_000, 0.1), bins_for(20_000, 1.0)
    (40, 160)
    """
    ideal = 1.2 * math.sqrt(rows * epsilon) / 10
    return 10 << int(np.clip(round(math.log2(max(ideal, 1.0))), 0, 10))


def curator_histogram(
    labels: NDArray[Any],
    epsilon: Fraction,
    bounds: tuple[float, float],
    source: WordSource,
    *,
    method: str = "adaptive",
    bins: int | None = None,
) -> Histogram:
    """Return the private histogram of checked, paid-for labels: `adaptive_histogram`, or counts in equal bins."""
    if method == "adaptive":
        return adaptive_histogram(count(labels, bounds, FINE), epsilon, bounds, source)
    counts = count(labels, bounds, bins or bins_for(labels.size, float(epsilon)))
    noisy = noisy_counts(counts, epsilon, source)
    heights = _onto_simplex(noisy, int(counts.sum()))
    origin = Origin((counts_of_labels("bins of one width", counts.size, epsilon),))
    return Histogram(np.linspace(*bounds, counts.size + 1), heights, origin)


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
    second = epsilon - first
    parts = np.linspace(0.0, places[-1], bins_for(rows, float(second)) + 1)
    nodes = np.unique(np.rint(np.interp(parts, places, cells)).astype(np.int64))
    nodes[0], nodes[-1] = 0, FINE
    noisy = noisy_counts(np.add.reduceat(fine, nodes[:-1]), second, source)
    masses = _without_empty_ends(noisy, float(second), rows)
    low, high = bounds
    origin = Origin((
        counts_of_labels("bins of one width", bins, first),
        counts_of_labels("bins of about equal mass", masses.size, second),
    ))  # fmt: skip
    return Histogram(low + nodes / FINE * (high - low), masses, origin)


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
    inner = slice(left, noisy.size - right)
    result = np.zeros(noisy.size)
    result[inner] = _onto_simplex(noisy[inner], total)
    return result


def _onto_simplex(counts: NDArray[np.float64], total: int) -> NDArray[np.float64]:
    """Return the nearest counts that are not negative and sum to ``total``, which is public."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    used = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(counts - excess[used], 0.0))
