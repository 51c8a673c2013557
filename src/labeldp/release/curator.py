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
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from labeldp._values import Counts, Interval
from labeldp.accounts.statistic import Origin
from labeldp.exact.integers import DiscreteLaplace
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import BinCounts, Cells, LargestWindow
from labeldp.release.tails import onto_simplex, posterior_masses

FINE = 1 << 16
"""Cells of the fine grid: `adaptive_histogram` counts labels in each."""

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


def equal_bins_histogram(access: LabelAccess, epsilon: Fraction, bounds: Interval) -> Histogram:
    """Return the private histogram of labels in equally wide bins."""
    bins = bins_for(access.rows, float(epsilon))
    counts = access.measure(
        BinCounts.equal(Cells(bounds, bins), bins, "counts of labels in bins of one width"), epsilon
    )
    nodes = np.linspace(*bounds, bins + 1)
    masses = onto_simplex(counts.values.astype(np.float64), access.rows)
    return Histogram(nodes, masses, Origin(tuple(access.statistics)))


def adaptive_histogram(access: LabelAccess, epsilon: Fraction, bounds: Interval) -> Histogram:
    """Return the posterior mean of the histogram of labels, for ε.

    The bounds stay the same. Bins are fine where noisy counts show labels, and wide elsewhere.
    """
    cells, rows, earlier = Cells(bounds, FINE), access.rows, access.remaining
    first, last = _locate(access, cells, epsilon)
    remaining = epsilon - (earlier - access.remaining)
    edges = _bin_edges(first, last, rows * float(remaining))
    query = BinCounts(cells, tuple(edges[:-1].tolist()), "counts of labels in bins about where they lie")
    counts = access.measure(query, remaining)
    deviation = math.sqrt(counts.noise.noise.variance())
    nodes, masses = posterior_masses(edges.astype(np.float64), counts.values.astype(np.float64), rows, deviation)
    low, high = bounds
    return Histogram.of(low + nodes / FINE * (high - low), masses, Origin(tuple(access.statistics)))


# ---- place and scale ----------------------------------------------------------------------------------


def _locate(access: LabelAccess, cells: Cells, epsilon: Fraction) -> tuple[int, int]:
    """Return the fine cells between which most labels lie; all where bounds are about right, or rows are few."""
    rows, all_cells = access.rows, (0, cells.number)
    if rows * epsilon < MIN_BUDGET_SEARCH:
        return all_cells
    cost = _cost(epsilon, rows, STEP_SHARE, STEP_BUDGET)

    def is_filled(level: int) -> bool:
        """Return whether a window of this level holds most labels, by a noisy count."""
        query = LargestWindow(cells, level, "largest count of labels in a window")
        return bool(access.measure(query, cost).values[0] >= WINDOW_SHARE * rows)

    level = narrowest_level(is_filled, 0, MAX_LEVEL)
    if level <= 1:
        return all_cells
    halves = BinCounts.equal(cells, 2 << level, "counts of labels in halves of windows")
    noisy = access.measure(halves, _cost(epsilon, rows, PLACE_SHARE, PLACE_BUDGET)).values
    half = cells.number >> (level + 1)
    middle = half * (1 + int(np.argmax(noisy[1:] + noisy[:-1])))
    return max(0, middle - 2 * half), min(cells.number, middle + 2 * half)


def _cost(epsilon: Fraction, rows: int, share: float, budget: float) -> Fraction:
    """Return the ε of a step: a share of all of ε, or a budget of rows · ε, the smaller one."""
    return Fraction(f"{min(share * float(epsilon), budget / rows):.4g}")


def _bin_edges(first: int, last: int, budget: float) -> Counts:
    """Return edges of equal bins between two fine cells, and on either side of bins that double in width.

    The number of equal bins follows from rows · ε: noise in them adds up, and wide ones hide where labels lie.
    """
    bins = 8 << _nearest_power(math.sqrt(budget) / 20, 7)
    middle, half_width = (first + last) / 2, (last - first) / 2
    distances = half_width * 2.0 ** np.arange(1, 20)
    outer = np.clip(np.concatenate([middle - distances, middle + distances]), 0, FINE)
    edges = np.concatenate([np.linspace(first, last, bins + 1), outer, [0, FINE]])
    return np.unique(np.rint(edges).astype(np.int64))


def narrowest_level(is_filled: Callable[[int], bool], wide: int, narrow: int) -> int:
    """Return the level of the narrowest windows of which one holds most labels, by bisection.

    Parameters
    ----------
    is_filled : callable
        Whether a window of a level holds most labels; called at most ⌈log₂(narrow − wide + 1)⌉ times.
    wide : int
        Windows of this level are taken to hold most labels.
    narrow : int
        The level of the narrowest windows.
    """
    while wide < narrow:
        middle = (wide + narrow + 1) // 2
        wide, narrow = (middle, narrow) if is_filled(middle) else (wide, middle - 1)
    return wide
