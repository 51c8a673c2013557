"""A private search for the place and the scale of labels in bounds that may be far too wide.

A window is one of overlapping ranges, each a power of two times narrower than the bounds and half a window apart.
One label moves the count of any window by one at most, and so the largest of all counts: its noise is small
however many windows there are. Widths are searched by halves, so that few steps lead to any scale.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labeldp._arrays import Counts


def half_windows(counts: Counts, level: int) -> Counts:
    """Return the counts in cells half as wide as a window, of which the bounds have 2^level."""
    return np.asarray(counts.reshape(2 << level, -1).sum(axis=1))


def largest_window(counts: Counts, level: int) -> Counts:
    """Return the largest count of any window, as an array of one integer."""
    halves = half_windows(counts, level)
    return np.asarray(np.max(halves[1:] + halves[:-1], keepdims=True))


def narrowest_level(holds_most: Callable[[int], bool], wide: int, narrow: int) -> int:
    """Return the level of the narrowest windows of which one holds most labels, by halves.

    Parameters
    ----------
    holds_most : callable
        Whether some window of a level holds most labels, by a noisy count; called at most
        ⌈log₂(narrow − wide + 1)⌉ times.
    wide, narrow : int
        Levels between which to search; those that are wider than ``wide`` are taken to hold most labels.
    """
    while wide < narrow:
        middle = (wide + narrow + 1) // 2
        if holds_most(middle):
            wide = middle
        else:
            narrow = middle - 1
    return wide
