"""What a curator makes of exact counts of labels, with noise on them: a prior.

Counts of parts add up before any noise is drawn, so a table may lie in one array, in batches of a file,
or on many machines: what is released is the same.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._arrays import Counts
from labeldp.channels.sampling import Domain, pieces
from labeldp.histogram import Histogram
from labeldp.noise import DiscreteLaplace
from labeldp.priors.adaptive import adaptive_histogram, onto_simplex
from labeldp.priors.origin import Origin, counts_of_labels
from labeldp.randomness.word_sources import CHUNK, WordSource

FINE = 1 << 16
"""Cells of the fine grid: what `adaptive_histogram` needs to know of labels is how many lie in each."""

GRID = 1 << 20
"""A range has this many steps where values in it are summed as integers."""

FEW_BINS = 64
"""Up to this many bins are counted by comparisons, the same for all values; a table is looked up by the value."""


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


def noisy_counts(counts: Counts, epsilon: Fraction, source: WordSource) -> NDArray[np.float64]:
    """Return counts with noise for ε: changing one label moves one of them down and one up."""
    return DiscreteLaplace.calibrated(sensitivity=2, epsilon=epsilon).release(counts, source).astype(np.float64)


def mean_variance(epsilon: Fraction, rows: int, bounds: tuple[float, float]) -> float:
    """Return the variance of the noise in a mean of all labels, of which nothing else leaves."""
    noise = DiscreteLaplace.calibrated(sensitivity=GRID, epsilon=epsilon)
    return noise.variance() * ((bounds[1] - bounds[0]) / GRID / rows) ** 2


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
    heights = onto_simplex(noisy, int(counts.sum()))
    origin = Origin((counts_of_labels("bins of one width", counts.size, epsilon),))
    return Histogram(np.linspace(*bounds, counts.size + 1), heights, origin)
