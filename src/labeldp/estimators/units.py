"""Labels in units of their bounds: all that learns works on [0, 1], so no result depends on the label's unit."""

from __future__ import annotations

import numpy as np

from labeldp._arrays import Array
from labeldp._values import Bounds

Pair = tuple[float, float]

UNIT = Bounds((0.0, 1.0))
"""The bounds of labels in their units."""


def in_units(values: Array, bounds: Pair) -> Array:
    """Return values in units of the bounds; those outside of the bounds lie outside of [0, 1].

    Examples
    --------
    >>> in_units(np.array([1000.0, 2500.0]), (1000.0, 2000.0))
    array([0. , 1.5])
    """
    low, high = bounds
    return np.asarray((values - low) / (high - low))


@np.errstate(all="ignore")  # a warning that depends on labels would leak them
def unit_labels(labels: Array, bounds: Pair) -> Array:
    """Return labels, clipped to their bounds, in units of these: from 0 to 1."""
    return in_units(np.clip(labels, *bounds), bounds)


def from_units(values: Array | float, bounds: Pair) -> Array:
    """Return what `in_units` was given, in the same order; from 0 to 1 it lies inside the bounds, and ends there.

    Examples
    --------
    >>> from_units(np.array([0.0, 0.25, 1.0]), (0.1, 0.3)).tolist()
    [0.1, 0.15, 0.3]
    """
    low, high = bounds
    units = np.asarray(values, dtype=np.float64)
    result = low + (high - low) * units  # 1 may miss the upper bound by a rounding error
    beyond = np.where(units > 1, np.maximum(result, high), high)
    return np.where(units < 1, np.minimum(result, high), beyond)
