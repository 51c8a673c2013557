"""Search for the interval to which labels are clipped: a range, a rough fit, and counts of distances from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from labeldp._values import Array
from labeldp.inference.design import Design
from labeldp.inference.label_weights import WeightCandidates, integer_weights, relative_noise
from labeldp.inference.weighted_sums import DISTANCES, MAX_ROW_WEIGHT, ClipWindow, SideCounts, WeightedSums
from labeldp.learning.epsilon_split import Share
from labeldp.learning.fit_plan import UNIT
from labeldp.learning.label_queries import find_range
from labeldp.release.label_access import LabelAccess

_ROUGH_FIT_SHARE = 0.1
"""The largest fraction of ε for a rough fit."""

_MAX_ROUGH_ERROR = 0.04
"""No rough fit is made if the error of predictions would be above this fraction of the range."""

_ROUGH_ERROR_GOAL = 0.01
"""Less ε is spent if the error of predictions would be below this fraction of the range."""

_COUNTS_SHARE = 0.2
"""The largest fraction of ε for counts of distances."""

_COUNTS_PER_ROOT_ROW = 30
"""Counts of distances cost at most the ε for which rows · ε is this times √rows."""

_MIN_TAIL_POWER = 1.6
"""Labels are not clipped if the tail falls with a smaller power of the distance."""

_CLIPPING_WEIGHT = 2.0
"""The weight of the total clipped amount, relative to noise, in the choice of the half width."""

_SLOPE_NOISE = 1.5
"""The error of a slope's sum from noise, in ranges over ε and in mean absolute weights of a row."""

_NO_CLIPPING_NOISE = 1.05
"""Noise without clipping counts this much, because squares are less noisy around a rough fit."""

_MAX_HALF_WIDTH = 0.5
"""The largest half width of a window, in widths of the bounds."""

_HALF_WIDTHS = (_MAX_HALF_WIDTH * 2.0 ** (-np.arange(15) / 2)).tolist()
"""Half widths of a window to try."""

_BINARY_VARIANCE = 0.15
"""The assumed variance of labels of 0 and 1 around the model: of a probability of 0.2 or 0.8."""

_MAX_TAIL = 0.5
"""Labels are not clipped if more labels may lie beyond half the limit than this fraction of the number of rows
behind one coefficient."""

WindowSearch = Callable[[WeightCandidates, LabelAccess], ClipWindow]
"""A search for the interval to which labels are clipped; it may spend a part of the budget."""


def keep_bounds(candidates: WeightCandidates, access: LabelAccess) -> ClipWindow:
    """Return the window for labels of 0 and 1: all of the bounds."""
    return ClipWindow(np.full(access.rows, 0.5), 0.5, _BINARY_VARIANCE)


def find_upper_limit(candidates: WeightCandidates, access: LabelAccess) -> ClipWindow:
    """Return the window from the lower bound, 0, to the limit of counts with the least error."""
    window = _clipped_window(candidates.design, access, np.zeros(access.rows), sides=1)
    if window is None:
        return ClipWindow(np.full(access.rows, 0.5), 0.5)
    half = window.half_width / 2
    return window._replace(center=window.center + half, half_width=half)


def find_window(candidates: WeightCandidates, access: LabelAccess) -> ClipWindow:
    """Return the window around a rough fit or a range, or all of the bounds if neither is narrower."""
    low, high = label_range = find_range(access, UNIT) or UNIT
    middle = ClipWindow(np.full(access.rows, (low + high) / 2), (high - low) / 2)
    rough_fit = _rough_fit(candidates, access, middle)
    if rough_fit is None and label_range == UNIT:
        return middle
    center = middle.center if rough_fit is None else np.clip(rough_fit, *UNIT)
    window = _clipped_window(candidates.design, access, center)
    if window is None:
        return ClipWindow(np.full(access.rows, 0.5), 0.5, rough_fit=rough_fit)
    return window._replace(rough_fit=rough_fit, square_factor=1 if rough_fit is None else 2)


def _rough_fit(candidates: WeightCandidates, access: LabelAccess, window: ClipWindow) -> Array | None:
    """Return predictions for all rows for a small part of ε, or None if they would be too noisy."""
    epsilon = _ROUGH_FIT_SHARE * float(access.remaining)
    matrix = candidates.design.matrix
    candidate = candidates.choose(relative_noise(epsilon), allowed_bias=math.inf)
    integers = integer_weights(candidate.shares(candidates.design))
    predictors = matrix @ np.linalg.inv(integers.T @ matrix)  # of sums
    error = MAX_ROW_WEIGHT / epsilon * math.sqrt(2 * float((predictors**2).sum(axis=1).mean()))  # in widths
    if error > _MAX_ROUGH_ERROR:
        return None
    epsilon *= min(1, error / _ROUGH_ERROR_GOAL)
    none = integers[:, :0]
    query = WeightedSums(window, labels=none, clipped=integers, squares=none, linear=none)
    return predictors @ query.measure(access, Fraction(f"{epsilon:.2g}"))[0]


def _clipped_window(design: Design, access: LabelAccess, center: Array, sides: int = 2) -> ClipWindow | None:
    """Return the window with the least error around a center; None if distances are too large to be clipped.

    With one side, all labels are above the center, and the window is half as wide.
    """
    epsilon = Share(_COUNTS_SHARE, _COUNTS_PER_ROOT_ROW * math.sqrt(center.size)).of(access)
    *farther, nearest = access.measure(SideCounts(center), epsilon).values.astype(float)
    octaves = np.reshape(farther, (2, -1))
    tails = np.cumsum(octaves, axis=1)
    errors = 2 / float(epsilon) * np.sqrt(2.0 * np.arange(1, DISTANCES.size + 1))
    noise = _SLOPE_NOISE * float(np.abs(design.whitened).sum(axis=1).mean()) / float(access.remaining)
    half_width, clipped_total = _best_half_width(tails[:sides], errors, noise)
    beyond_half = (tails + errors)[:, np.argmax(half_width / 2 >= DISTANCES)].sum()
    if half_width > _MAX_HALF_WIDTH or beyond_half > _MAX_TAIL * _effective_rows(design):
        return None
    counts = np.append(octaves.sum(axis=0), nearest)[1:]
    return ClipWindow(center, half_width, _variance_within(half_width, counts), clipped_total)


def _variance_within(half_width: float, counts: Array) -> float:
    """Return the variance of distances up to a half width, by noisy counts in octaves."""
    within = counts.clip(0) * (half_width >= DISTANCES)
    variance = float(within @ (0.75 * DISTANCES) ** 2 / max(within.sum(), 1))
    return min(max(variance, 1e-9), 0.25)


def _effective_rows(design: Design) -> float:
    """Return the smallest number of rows behind one coefficient, (Σw²)²/Σw⁴ for weights w of least squares."""
    squares = design.least_squares_weights() ** 2
    return float((squares.sum(axis=0) ** 2 / (squares**2).sum(axis=0)).min())


def _best_half_width(tails: Array, errors: Array, noise: float) -> tuple[float, float]:
    """Return the half width with the least error, and the total clipped amount; 1 and 0 for no clipping.

    Parameters
    ----------
    tails : array, sides × distances
        Noisy numbers of labels beyond each of `DISTANCES`, above and below the center, or above alone.
    errors : array
        Standard deviations of their noise.
    noise : float
        The error from noise for labels that are clipped to a range of 1.
    """
    sides = len(tails)
    choices = [(_NO_CLIPPING_NOISE * noise, 1.0, 0.0)]
    for half_width in _HALF_WIDTHS:
        clipped = sum(_clipped_amount(half_width, tail, errors, sides) for tail in tails)
        choices.append((math.hypot(sides * half_width * noise, _CLIPPING_WEIGHT * clipped), half_width, clipped))
    return min(choices)[1:]


def _clipped_amount(half_width: float, tail: Array, errors: Array, sides: int) -> float:
    """Return a cautious estimate of the total amount that clipping removes on one side.

    Counts at large distances are mostly noise, so the tail is extrapolated from nearer ones: as a power of the
    distance that grows with each factor of 2 as it did in the last one. This fits power laws and log-normal
    errors, and overestimates lighter tails. The result is the least over all starting distances. The tail of
    counts, on one side alone, may get heavier farther out, where noise hides it: there it is their geometric mean.
    """
    largest = np.maximum(tail, 0) + errors
    smallest = np.maximum(tail - errors, 1)
    powers = np.log2(smallest[1:-1] / largest[:-2])
    next_powers = np.log2(np.maximum(largest[2:] / smallest[1:-1], 1))
    octaves = np.log2(half_width / DISTANCES[:-2])
    usable = (octaves >= 0) & (powers > _MIN_TAIL_POWER)
    if not usable.any():
        return math.inf
    power, octave = powers[usable], octaves[usable]
    growth = np.maximum(power - next_powers[usable], 0)
    numbers = largest[:-2][usable] * 2 ** -(octave * (power + growth * (octave + 1) / 2))
    amounts = numbers * half_width / (power + growth * (octave + 0.5) - 1)
    return float(amounts.min() if sides == 2 else np.exp(np.log(amounts).mean()))
