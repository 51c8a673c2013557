"""Posterior mean of a histogram, from counts with noise: heavy tails where the noise hides the labels.

Between the tails the noisy counts are projected onto counts that labels can have. In a tail one form is fitted,
with all sizes and scales that the noise cannot rule out. Designs need no more, because the risk of clipping is
linear in the masses of a prior.
"""

from __future__ import annotations

import math

import numpy as np

from labeldp._values import Array

THRESHOLDS = (12, 16, 24)
"""A tail reaches from its end to the bin where the sum of counts exceeds the noise by this factor.

Averaged over several factors, so that the noise of one count does not decide where a tail begins.
"""

MIN_TAIL_SHARE = 0.01
"""A tail with a smaller share of the rows stays a tail, however small the noise."""

MAX_TAIL_SHARE = 0.2
"""A tail with a larger share of the rows ends, however large the noise."""

MIN_INNER_SHARE = 0.1
"""The share of the rows that bins between the tails have at least."""

OUTLIER_DEVIATIONS = 10
"""A count this many standard deviations above the fitted tail keeps its own value: a far group, say."""

TAIL_EXPONENT = 3
"""Beyond a distance of x scales lies a share of (1 + x/3)^−3: heavy, with a variance, and without more."""

SCALES = 24
"""Scales of a tail that are averaged."""

SIZES = 200
"""Sizes of a tail that are averaged."""

SUBDIVISIONS = 8
"""Parts of each bin of a tail, at which designs may end. A power of two, so that edges of several tails agree."""

MIN_ROWS_SUBDIVIDED = 40
"""With fewer labels than this many standard deviations of the noise, bins stay whole: ends would follow noise."""


def posterior_masses(edges: Array, noisy: Array, rows: int, deviation: float) -> tuple[Array, Array]:
    """Return bin edges and expected masses. Bins of tails are subdivided.

    Parameters
    ----------
    edges : array
        Edges of the counted bins.
    noisy : array
        Counts with noise.
    rows : int
        The number of labels.
    deviation : float
        Standard deviation of the noise of a count.
    """
    estimates = [_masses_at(edges, noisy, rows, deviation, threshold) for threshold in THRESHOLDS]
    merged = np.unique(np.concatenate([nodes for nodes, _ in estimates]))
    shares = []
    for nodes, masses in estimates:
        cumulative = np.append(0.0, np.cumsum(masses / masses.sum()))
        shares.append(np.interp(merged, nodes, cumulative))
    return merged, rows * np.diff(np.mean(shares, axis=0))


def _masses_at(edges: Array, noisy: Array, rows: int, deviation: float, threshold: float) -> tuple[Array, Array]:
    """Return bin edges and expected masses for one threshold of tails."""
    last, first = _inner_ends(noisy, rows, deviation, threshold)
    subdivisions = SUBDIVISIONS if rows > MIN_ROWS_SUBDIVIDED * deviation else 1
    start = edges[last + 1]
    stop = edges[first]
    distances_below = (start - edges[: last + 2])[::-1]
    distances_above = edges[first:] - stop
    below, lower = _fit_tail(distances_below, noisy[: last + 1][::-1], deviation, subdivisions)
    above, upper = _fit_tail(distances_above, noisy[first:], deviation, subdivisions)
    inner = noisy[last + 1 : first]
    if inner.size:
        total = rows - lower.sum() - upper.sum()
        inner = onto_simplex(inner, max(total, MIN_INNER_SHARE * rows))
    inner_edges = edges[last + 2 : first]
    nodes = np.concatenate([(start - below)[::-1], inner_edges, stop + above])
    masses = np.concatenate([lower[::-1], inner, upper])
    return np.unique(nodes), masses


def _inner_ends(noisy: Array, rows: int, deviation: float, threshold: float) -> tuple[int, int]:
    """Return the last bin of the lower tail, and the first bin of the upper tail."""
    last = noisy.size - 1
    noise = threshold * deviation * np.sqrt(np.arange(1, noisy.size + 1))
    needed = np.clip(noise, MIN_TAIL_SHARE * rows, MAX_TAIL_SHARE * rows)
    median = int(np.argmax(np.cumsum(noisy) >= noisy.sum() / 2))
    lower_end = _tail_end(noisy[:median], needed)
    upper_end = last - _tail_end(noisy[::-1][: last - median], needed)
    if lower_end == upper_end:  # a single bin is in no tail
        return lower_end - 1, upper_end + 1
    return lower_end, upper_end


def _tail_end(counts: Array, needed: Array) -> int:
    """Return the first bin at which the sum of counts suffices, or the bin behind all."""
    suffices = np.cumsum(counts) >= needed[: counts.size]
    return int(np.argmax(np.append(suffices, True)))


def _fit_tail(edges: Array, noisy: Array, deviation: float, subdivisions: int) -> tuple[Array, Array]:
    """Return edges and expected masses of a tail.

    Its size is anything from 0 on and its scale anything from a quarter of the first bin to the end, all equally
    likely before; the likelihood is that of the noise, which is sometimes far out.

    Parameters
    ----------
    edges : array
        Distances of the bins' edges from the start of the tail.
    noisy : array
        Counts with noise.
    deviation : float
        Standard deviation of the noise of a count.
    subdivisions : int
        Parts of each bin.
    """
    if not noisy.size:
        return edges, noisy
    nodes = _subdivided(edges, subdivisions)
    shares = _tail_shares(nodes, (edges[1] - edges[0]) / 4)
    by_bin = shares.reshape(SCALES, -1, subdivisions).sum(axis=2)
    sizes = np.linspace(0.0, np.abs(noisy).sum() + 8 * deviation, SIZES)
    errors = np.abs(noisy - sizes[:, None, None] * by_bin).sum(axis=2)
    misfit = errors * math.sqrt(2) / deviation
    weights = np.exp(misfit.min() - misfit)
    masses = sizes @ (weights / weights.sum()) @ shares
    fitted = masses.reshape(-1, subdivisions).sum(axis=1)
    is_outlier = noisy - fitted > OUTLIER_DEVIATIONS * deviation
    counted = np.repeat(noisy / subdivisions, subdivisions)
    return nodes, np.where(np.repeat(is_outlier, subdivisions), counted, masses)


def _subdivided(edges: Array, subdivisions: int) -> Array:
    """Return the edges of equal parts of each bin."""
    steps = np.diff(edges)[:, None] * np.arange(subdivisions) / subdivisions
    return np.append(edges[:-1, None] + steps, edges[-1])


def _tail_shares(nodes: Array, smallest: float) -> Array:
    """Return the share of a tail in each bin, for scales from the smallest to the end of the bins."""
    scales = np.geomspace(smallest, nodes[-1], SCALES)
    mass_beyond = (1 + nodes / (TAIL_EXPONENT * scales[:, None])) ** -TAIL_EXPONENT
    shares = -np.diff(mass_beyond, axis=1)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def onto_simplex(counts: Array, total: float) -> Array:
    """Return the nearest counts that are not negative and have this sum."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(counts - excess[last], 0.0))
