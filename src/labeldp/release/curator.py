"""Priors from a curator's exact counts of labels, with noise on the counts.

Counts of batches add up before any noise is drawn, so a table may lie in one array, in batches of a file, or on
many machines: the release is the same.

Bounds may be far too wide, so first a search finds the place and the scale of labels. A window is one of
overlapping ranges, each a power of two times narrower than the bounds and half a window apart. One label moves the
count of any window by one at most, and so the largest of all counts: its noise is small for any number of windows.
Then labels are counted in equal bins there, and in bins that double in width from there to the bounds. The prior
is the posterior mean of the histogram given the noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from labeldp._values import Array, Counts, Interval, Numbers
from labeldp.accounts.statistic import Origin
from labeldp.exact.integers import DiscreteLaplace, Statistic
from labeldp.exact.sampling import Domain, pieces
from labeldp.exact.word_sources import CHUNK, WordSource
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.tails import onto_simplex, posterior_masses

FINE = 1 << 16
"""Cells of the fine grid: `adaptive_histogram` needs the exact count of labels in each."""

GRID = 1 << 20
"""A range has this many steps where values in it are summed as integers."""

MAX_LEVEL = 12
"""Windows are up to 2^12 times narrower than the bounds: four steps at most find one of 13 widths."""

WINDOW_SHARE = 0.6
"""The narrowest window that holds this share of the labels gives place and scale."""

MIN_BUDGET_SEARCH = 200
"""With less than this rows · ε there is no search for place and scale: nothing would be found."""

STEP_SHARE = 0.08
"""The share of ε that a step of the search costs at most."""

STEP_BUDGET = 40
"""The rows · ε that a step of the search costs at most."""

PLACE_SHARE = 0.15
"""The share of ε that placing the window costs at most."""

PLACE_BUDGET = 100
"""The rows · ε that placing the window costs at most."""


def count(values: Numbers, bounds: Interval, bins: int) -> Counts:
    """Return the number of values in each of equally wide bins; values outside count as the ends."""
    domain = Domain(*bounds, bins)
    counts = np.zeros(bins, dtype=np.int64)
    scratch = np.empty(min(CHUNK, values.size))
    with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
        for piece in pieces(values.size):
            chunk = values[piece]
            cells = domain.piece(chunk, scratch[: chunk.size])
            counts += np.bincount(cells, minlength=bins)
    return counts


def mean_variance(epsilon: Fraction, rows: int, bounds: Interval) -> float:
    """Return the variance of the noise in a mean of all labels, where ε buys nothing else."""
    noise = DiscreteLaplace.calibrated(sensitivity=GRID, epsilon=epsilon)
    step = (bounds[1] - bounds[0]) / GRID / rows
    return noise.variance() * step**2


def bins_for(rows: int, epsilon: float) -> int:
    """Return the number of bins to count, from public numbers: ten times a power of two.

    Noise in k bins adds up to k/(nε) of the mass, bins hide about 1/k of it: k near √(nε) balances.

    Examples
    --------
    >>> bins_for(20_000, 0.1), bins_for(20_000, 1.0)
    (40, 160)
    """
    ideal = 1.2 * math.sqrt(rows * epsilon) / 10
    return 10 << _nearest_power(ideal, 10)


def _nearest_power(number: float, largest: int) -> int:
    """Return the exponent of the power of two nearest to a number, from 0 to the largest."""
    return int(np.clip(round(math.log2(max(1.0, number))), 0, largest))


def equal_bins_histogram(labels: Numbers, epsilon: Fraction, bounds: Interval, source: WordSource) -> Histogram:
    """Return the private histogram of checked, paid-for labels in equally wide bins."""
    statistic = _counts("bins of one width", bins_for(labels.size, float(epsilon)), epsilon)
    noisy = _released(statistic, count(labels, bounds, statistic.size), source)
    nodes = np.linspace(*bounds, statistic.size + 1)
    return Histogram(nodes, onto_simplex(noisy, labels.size), Origin((statistic,)))


def adaptive_histogram(fine: Counts, epsilon: Fraction, bounds: Interval, source: WordSource) -> Histogram:
    """Return the posterior mean of the histogram, for ε, from exact counts in many fine cells of the bounds.

    The bounds stay the same. Bins are fine where noisy counts show labels, and wide elsewhere.
    """
    rows = int(fine.sum())
    location = _locate(fine, epsilon, source)
    remaining = epsilon - sum(statistic.epsilon for statistic in location.statistics)
    edges = _bin_edges(location, fine.size, rows * float(remaining))
    counts = _counts("bins about where they lie", edges.size - 1, remaining)
    noisy = _released(counts, np.add.reduceat(fine, edges[:-1]), source)
    deviation = math.sqrt(counts.noise.variance())
    nodes, masses = posterior_masses(edges.astype(np.float64), noisy, rows, deviation)
    low, high = bounds
    origin = Origin((*location.statistics, counts))
    return Histogram.of(low + nodes / fine.size * (high - low), masses, origin)


def _counts(where: str, size: int, epsilon: Fraction) -> Statistic:
    return Statistic(f"counts of labels in {where}", "counts", size, 1, epsilon, "prior")


def _released(statistic: Statistic, exact: Counts, source: WordSource) -> Array:
    return statistic.noise.release(exact, source).astype(np.float64)


# ---- place and scale ----------------------------------------------------------------------------------


class Location(NamedTuple):
    """The fine cells between which most labels lie, and the statistics that were released to find them."""

    first: int
    last: int
    statistics: tuple[Statistic, ...]


def _locate(fine: Counts, epsilon: Fraction, source: WordSource) -> Location:
    """Return the location of most labels; all cells where the bounds are about right, or rows are few."""
    rows, cells = int(fine.sum()), fine.size
    if rows * epsilon < MIN_BUDGET_SEARCH:
        return Location(0, cells, ())
    windows = [largest_window(fine, level) for level in range(MAX_LEVEL + 1)]
    cost = _cost(epsilon, rows, STEP_SHARE, STEP_BUDGET)
    largest = Statistic("largest count of labels in a window", "largest count", 1, 1, cost, "prior")
    level, queries = narrowest_level(windows, partial(largest.noise.release, source=source), WINDOW_SHARE * rows)
    steps = (largest,) * queries
    if level <= 1:
        return Location(0, cells, steps)
    halves = _counts("halves of windows", 2 << level, _cost(epsilon, rows, PLACE_SHARE, PLACE_BUDGET))
    noisy = halves.noise.release(half_windows(fine, level), source)
    half = cells >> (level + 1)
    middle = half * (1 + int(np.argmax(noisy[1:] + noisy[:-1])))
    first = max(0, middle - 2 * half)
    last = min(cells, middle + 2 * half)
    return Location(first, last, (*steps, halves))


def _cost(epsilon: Fraction, rows: int, share: float, budget: float) -> Fraction:
    """Return the ε of a step: a share of all of ε, or a budget of rows · ε, the smaller one."""
    return Fraction(f"{min(share * float(epsilon), budget / rows):.4g}")


def _bin_edges(location: Location, cells: int, budget: float) -> Counts:
    """Return edges of equal bins in the location, and on either side of bins that double in width.

    The number of equal bins follows from rows · ε: noise in them adds up, and wide ones hide where labels lie.
    """
    first, last, _ = location
    bins = 8 << _nearest_power(math.sqrt(budget) / 20, 7)
    middle, half_width = (first + last) / 2, (last - first) / 2
    distances = half_width * 2.0 ** np.arange(1, 20)
    outer = np.clip(np.concatenate([middle - distances, middle + distances]), 0, cells)
    edges = np.concatenate([np.linspace(first, last, bins + 1), outer, [0, cells]])
    return np.unique(np.rint(edges).astype(np.int64))


def half_windows(counts: Counts, level: int) -> Counts:
    """Return the counts in cells half as wide as a window, of which the bounds have 2^level."""
    return np.asarray(counts.reshape(2 << level, -1).sum(axis=1))


def largest_window(counts: Counts, level: int) -> Counts:
    """Return the largest count of any window, as an array of one integer."""
    halves = half_windows(counts, level)
    return np.asarray(np.max(halves[1:] + halves[:-1], keepdims=True))


def narrowest_level(
    windows: Sequence[Counts], release: Callable[[Counts], Counts], enough: float, wide: int = 0
) -> tuple[int, int]:
    """Return the level of the narrowest windows of which one holds most labels, and the number of counts released.

    Parameters
    ----------
    windows : sequence of arrays
        The largest count of any window of each level.
    release : callable
        Returns a count with noise; called at most ⌈log₂(levels − wide)⌉ times.
    enough : float
        A count from which on a window holds most labels.
    wide : int
        Windows of this level are taken to hold most labels.
    """
    narrow, queries = len(windows) - 1, 0
    while wide < narrow:
        middle = (wide + narrow + 1) // 2
        queries += 1
        if release(windows[middle])[0] >= enough:
            wide = middle
        else:
            narrow = middle - 1
    return wide, queries
