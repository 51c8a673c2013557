"""Where labels lie inside public bounds, which may be far too wide: noise grows with the range of labels.

The bounds are cut into overlapping windows, each a power of two times narrower than the bounds. One label moves
the count of a window by one at most, and so the largest count of any window.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from labeldp._values import Sums
from labeldp.exact.word_sources import WordSource
from labeldp.learning import epsilon_split as split
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.label_units import Pair
from labeldp.release.curator import half_windows, largest_window, narrowest_level

LOOSE_LEVEL, NARROWEST_LEVEL = 3, 12
"""Bounds are too wide if a window 2⁻³ as wide as they are holds most labels; windows are 2⁻¹² as wide at least."""

CELLS = 2 << NARROWEST_LEVEL
"""Labels are counted in so many cells of the bounds: half a window of the narrowest ones."""

MOST_LABELS, MOST_SUSPECTED = 0.8, 0.72
"""The share of labels that is most of them, and that is enough to suspect it where no range can be found."""

NEXT_TO = 0.02
"""Half a window next to the range belongs to it if it has more than this share of the rows, and than noise has."""


def find_range(
    count_labels: Callable[[], Sums], bounds: Pair, budget: SumBudget, source: WordSource
) -> Pair | None:
    """Return where labels lie: the bounds, or a part of them if the bounds are far too wide.

    Parameters
    ----------
    count_labels : callable
        Returns how many labels lie in each of `CELLS` cells of the bounds, exactly; called only if that is used.
    bounds : (lo, hi)
    budget : SumBudget
    source : source of words

    Returns
    -------
    (lo, hi) or None
        None if ε is too small to find the range, and bounds seem too wide or cannot even be tested: then nothing
        but the mean of all labels is worth asking for.
    """
    if budget.rows_epsilon < split.FEWEST_FOR_GROUPS:
        return None
    counts = count_labels()

    def holds_most(level: int, epsilon: Fraction, most: float = MOST_LABELS) -> bool:
        """Return whether a window of this level holds most labels, by a noisy count."""
        largest = largest_window(counts, level)
        noisy = budget.release(largest, epsilon, source, kind="largest count", what="largest count of a window")
        return bool(noisy[0] >= most * budget.rows)

    if budget.rows_epsilon < split.FEWEST_FOR_RANGE:
        suspected = holds_most(LOOSE_LEVEL, budget.part(*split.BOUNDS_SUSPECTED), MOST_SUSPECTED)
        return None if suspected else bounds
    if not holds_most(LOOSE_LEVEL, budget.part(*split.BOUNDS_TESTED)):
        return bounds
    searches = math.ceil(math.log2(NARROWEST_LEVEL - LOOSE_LEVEL + 1))
    each = budget.part(*split.RANGE_WIDTH) / searches
    level = narrowest_level(partial(holds_most, epsilon=each), LOOSE_LEVEL, NARROWEST_LEVEL)
    return _place_range(half_windows(counts, level), bounds, budget, source)


def _place_range(halves: Sums, bounds: Pair, budget: SumBudget, source: WordSource) -> Pair:
    """Return the fullest window, with what lies next to it and a window on either side, by noisy counts."""
    low, high = bounds
    epsilon = budget.part(*split.RANGE_POSITION)
    noisy = budget.release(halves, epsilon, source, kind="counts", what="counts of windows")
    windows = noisy[1:] + noisy[:-1]
    if windows.max() < budget.rows / 2:  # noise hides where labels are
        return bounds
    first = int(np.argmax(windows))
    last = first + 1
    filled = noisy > max(NEXT_TO * budget.rows, 6 / float(epsilon))
    while first > 0 and filled[first - 1]:
        first -= 1
    while last < noisy.size - 1 and filled[last + 1]:
        last += 1
    half = (high - low) / halves.size
    return max(low, low + half * (first - 2)), min(high, low + half * (last + 3))
