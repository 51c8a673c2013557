"""What a curator makes of exact counts of labels, with noise on them: a prior.

Counts of parts add up before any noise is drawn, so a table may lie in one array, in batches of a file, or on many
machines: what is released is the same.

Bounds may be far too wide, so first a search finds about where labels lie and how far they spread. A window is
one of overlapping ranges, each a power of two times narrower than the bounds and half a window apart. One label
moves the count of any window by one at most, and so the largest of all counts: its noise is small however many
windows there are. Then labels are counted in equal bins there, and in bins that double in width from there to
the bounds. What is made of the noisy counts is an expectation, not the counts as if they were true: where they
rise above their noise they stand; from there outwards a tail of one form is fitted to them, with all scales that
the noise cannot rule out. Designs need no more than that, because the risk of clipping is linear in the masses
of a prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from labeldp._values import Array, Counts, Interval, Numbers
from labeldp.accounts.statistic import Origin
from labeldp.exact.integers import DiscreteLaplace, Statistic
from labeldp.exact.sampling import Domain, pieces
from labeldp.exact.word_sources import CHUNK, WordSource
from labeldp.mechanisms.histogram import Histogram

FINE = 1 << 16
"""Cells of the fine grid: what `adaptive_histogram` needs to know of labels is how many lie in each."""

GRID = 1 << 20
"""A range has this many steps where values in it are summed as integers."""

FEW_BINS = 64
"""Up to this many bins are counted by comparisons, the same for all values; a table is looked up by the value."""

_LEVELS = 12
"""Windows are up to 2^12 times narrower than the bounds: four steps at most find one of 13 widths."""

_COVER = 0.6
"""The narrowest window that holds this part of the labels gives place and scale."""

_SEARCHED = 200
"""With less than this many rows · ε place and scale could not be found, and are not looked for."""

_PER_STEP, _PER_PLACE = (0.08, 40), (0.15, 100)
"""What each step of the search and placing the window may cost: a part of ε, or as much as is worth so many rows,
whichever is less."""

_SEEN, _MOST = (12, 16, 24), 0.2
"""Counts stand up to where so many standard deviations of the noise lie beyond, or this part of all labels; what
is beyond is a tail. Averaged over several of them, so that noise in one count does not decide where it begins."""

_CLEAR = 10
"""In a tail, a count so many standard deviations of the noise above it stands as well: a far group, say."""

_TAIL = 3
"""Beyond a distance of x scales lies a part (1 + x/3)^−3 of a tail: heavy, with a variance, and without more."""

_SCALES, _SIZES, _PARTS = 24, 200, 8
"""How many scales and sizes of a tail are weighed, and into how many parts its bins are cut: designs end at parts,
and with fewer of them the next one is far away. A power of two, so that parts of different tails agree exactly."""

_CUT = 40
"""With fewer labels than so many standard deviations of the noise, bins are not cut: ends would follow noise."""


def count(values: Numbers, bounds: Interval, bins: int) -> Counts:
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


def mean_variance(epsilon: Fraction, rows: int, bounds: Interval) -> float:
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


def equal_bins_histogram(labels: Numbers, epsilon: Fraction, bounds: Interval, source: WordSource) -> Histogram:
    """Return the private histogram of checked, paid-for labels in equally wide bins."""
    statistic = _counts("bins of one width", bins_for(labels.size, float(epsilon)), epsilon)
    noisy = statistic.noise.release(count(labels, bounds, statistic.size), source).astype(np.float64)
    nodes = np.linspace(*bounds, statistic.size + 1)
    return Histogram(nodes, onto_simplex(noisy, labels.size), Origin((statistic,)))


# ---- bounds that may be far too wide -----------------------------------------------------------------


def adaptive_histogram(fine: Counts, epsilon: Fraction, bounds: Interval, source: WordSource) -> Histogram:
    """Return the expected histogram of labels, for ε, from exact counts in many fine cells of the bounds.

    The bounds stay what they are: they are narrowed only as far as noisy counts show where labels lie.
    """
    rows, cells = int(fine.sum()), fine.size
    is_searched = rows * epsilon >= _SEARCHED
    first, last, spent = _place(fine, epsilon, source) if is_searched else (0, cells, [])
    left = epsilon - sum(one.epsilon for one in spent)
    nodes = _nodes(first, last, cells, _bins(rows * float(left)))
    counts = _counts("bins about where they lie", nodes.size - 1, left)
    noisy = counts.noise.release(np.add.reduceat(fine, nodes[:-1]), source).astype(np.float64)
    deviation = math.sqrt(counts.noise.variance())
    places, masses = expected_masses(nodes.astype(np.float64), noisy, rows, deviation)
    low, high = bounds
    return Histogram.of(low + places / cells * (high - low), masses, Origin((*spent, counts)))


# ---- place and scale ----------------------------------------------------------------------------------


def _place(fine: Counts, epsilon: Fraction, source: WordSource) -> tuple[int, int, list[Statistic]]:
    """Return the cells between which most labels lie, all where bounds are about right, and what was released."""
    rows, cells = int(fine.sum()), fine.size
    windows = [largest_window(fine, level) for level in range(_LEVELS + 1)]
    each = _part(epsilon, rows, *_PER_STEP)
    largest = Statistic("largest count of labels in a window", "largest count", 1, 1, each, "prior")
    level, asked = narrowest_level(windows, partial(largest.noise.release, source=source), _COVER * rows)
    if level <= 1:
        return 0, cells, [largest] * asked
    halves = _counts("halves of windows", 2 << level, _part(epsilon, rows, *_PER_PLACE))
    noisy = halves.noise.release(half_windows(fine, level), source)
    half = cells >> (level + 1)
    middle = half * (1 + int(np.argmax(noisy[1:] + noisy[:-1])))
    return max(0, middle - 2 * half), min(cells, middle + 2 * half), [*[largest] * asked, halves]


def _counts(where: str, size: int, epsilon: Fraction) -> Statistic:
    return Statistic(f"counts of labels in {where}", "counts", size, 1, epsilon, "prior")


def _part(epsilon: Fraction, rows: int, share: float, most: float) -> Fraction:
    return Fraction(f"{min(share * float(epsilon), most / rows):.4g}")


def _bins(power: float) -> int:
    """Return the number of equal bins, by rows · ε: noise in them adds up, and wide ones hide where labels lie."""
    return 8 << int(np.clip(round(math.log2(max(1.0, math.sqrt(power) / 20))), 0, 7))


def _nodes(first: int, last: int, cells: int, bins: int) -> Counts:
    """Return equal bins between two cells, and on either side bins to twice the distance from the middle."""
    middle, half = (first + last) / 2, (last - first) / 2
    steps = half * 2.0 ** np.arange(1, 20)
    ends = np.clip(np.concatenate([middle - steps, middle + steps]), 0, cells)
    nodes = np.concatenate([np.linspace(first, last, bins + 1), ends, [0, cells]])
    return np.unique(np.rint(nodes).astype(np.int64))


# ---- what noisy counts lead to expect -----------------------------------------------------------------


def expected_masses(nodes: Array, noisy: Array, rows: int, deviation: float) -> tuple[Array, Array]:
    """Return places and masses that noisy counts lead to expect; the bins of tails come out in parts.

    Parameters
    ----------
    nodes : array
        Edges of the bins.
    noisy : array
        Counts with noise.
    rows : int
        How many labels there are.
    deviation : float
        Standard deviation of the noise of a count.
    """
    each = [_with_tails(nodes, noisy, rows, deviation, seen) for seen in _SEEN]
    places = np.unique(np.concatenate([own for own, _ in each]))
    below = [np.interp(places, own, np.append(0.0, np.cumsum(masses / masses.sum()))) for own, masses in each]
    return places, rows * np.diff(np.mean(below, axis=0))


def _with_tails(nodes: Array, noisy: Array, rows: int, deviation: float, least: float) -> tuple[Array, Array]:
    """Return places and masses where tails begin ``least`` standard deviations from the ends."""
    bins = noisy.size
    seen = np.clip(least * deviation * np.sqrt(np.arange(1, bins + 1)), 0.01 * rows, _MOST * rows)
    middle = int(np.argmax(np.cumsum(noisy) >= noisy.sum() / 2))

    def first_seen(counts: Array, middle: int) -> int:
        return int(np.argmax(np.append(np.cumsum(counts)[:middle] >= seen[:middle], True)))

    left, right = first_seen(noisy, middle), bins - 1 - first_seen(noisy[::-1], bins - 1 - middle)
    if left == right:  # the one bin that stands is part of no tail
        left, right = left - 1, right + 1
    parts = _PARTS if rows > _CUT * deviation else 1
    below, lower = _tail((nodes[left + 1] - nodes[: left + 2])[::-1], noisy[: left + 1][::-1], deviation, parts)
    above, upper = _tail(nodes[right:] - nodes[right], noisy[right:], deviation, parts)
    rest = max(rows - lower.sum() - upper.sum(), 0.1 * rows)
    inner = noisy[left + 1 : right]
    if inner.size:
        inner = onto_simplex(inner, rest)
    places = np.concatenate([(nodes[left + 1] - below)[::-1], nodes[left + 2 : right], nodes[right] + above])
    return np.unique(places), np.concatenate([lower[::-1], inner, upper])


def _tail(edges: Array, noisy: Array, deviation: float, parts: int) -> tuple[Array, Array]:
    """Return distances and expected masses of a tail, from noisy counts in bins between distances from its start.

    Its size is anything from 0 on and its scale anything from a quarter of the first bin to the end, all equally
    likely before; the likelihood is that of the noise, which is sometimes far out. A count far above its tail
    stands as it is. Bins are cut into ``parts``.
    """
    if not noisy.size:
        return edges, noisy
    widths = np.diff(edges)
    cuts = edges[:-1, None] + widths[:, None] * np.arange(parts) / parts
    places = np.append(cuts, edges[-1])
    scales = np.geomspace(widths[0] / 4, edges[-1], _SCALES)
    shares = -np.diff((1 + places / (_TAIL * scales[:, None])) ** -_TAIL, axis=1)
    shares /= shares.sum(axis=1, keepdims=True)
    shapes = shares.reshape(_SCALES, -1, parts).sum(axis=2)
    sizes = np.linspace(0.0, np.abs(noisy).sum() + 8 * deviation, _SIZES)
    misfit = np.abs(noisy - sizes[:, None, None] * shapes).sum(axis=2) * math.sqrt(2) / deviation
    weight = np.exp(misfit.min() - misfit)
    masses = sizes @ (weight / weight.sum()) @ shares
    stands = noisy - masses.reshape(-1, parts).sum(axis=1) > _CLEAR * deviation
    return places, np.where(np.repeat(stands, parts), np.repeat(noisy / parts, parts), masses)


def onto_simplex(counts: Array, total: float) -> Array:
    """Return the nearest counts that are not negative and have this sum."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    used = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(counts - excess[used], 0.0))


# ---- windows -----------------------------------------------------------------------------------------


def half_windows(counts: Counts, level: int) -> Counts:
    """Return the counts in cells half as wide as a window, of which the bounds have 2^level."""
    return np.asarray(counts.reshape(2 << level, -1).sum(axis=1))


def largest_window(counts: Counts, level: int) -> Counts:
    """Return the largest count of any window, as an array of one integer."""
    halves = half_windows(counts, level)
    return np.asarray(np.max(halves[1:] + halves[:-1], keepdims=True))


def narrowest_level(
    windows: Sequence[Counts], release: Callable[[Counts], Counts], most: float, wide: int = 0
) -> tuple[int, int]:
    """Return the level of the narrowest windows of which one holds most labels, and how many counts that took.

    Parameters
    ----------
    windows : sequence of arrays
        The largest count of any window of each level.
    release : callable
        Returns a count with noise; called at most ⌈log₂(levels − wide)⌉ times.
    most : float
        A count from which on a window holds most labels.
    wide : int
        Windows of this level are taken to hold most labels.
    """
    narrow, asked = len(windows) - 1, 0
    while wide < narrow:
        middle, asked = (wide + narrow + 1) // 2, asked + 1
        if release(windows[middle])[0] >= most:
            wide = middle
        else:
            narrow = middle - 1
    return wide, asked
