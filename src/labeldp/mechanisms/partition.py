"""The exact programme behind RR-on-Bins: which labels share an output, and which output."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Partition", "optimal_partition"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Partition:
    """Consecutive labels in bins: where each bin starts, its output, and the expected loss."""

    starts: Indices
    outputs: Array
    loss: float


def optimal_partition(values: Array, masses: Array, epsilon: float, loss: str) -> Partition:
    """Return the partition of least expected loss of randomised response on bins.

    With g = e^ε − 1, a bin B with output v costs Σ_y p_y ℓ(v, y) + g Σ_{y∈B} p_y ℓ(v, y), and d bins
    together lose the sum of their costs over g + d. For each d a dynamic programme over all cuts finds
    the cheapest bins, in O(n²): no shortcut through monotone cuts, which do not hold here. A bin costs
    at least what a constant loses, so d bins lose at least d/(g + d) of that: once this exceeds the best
    loss, no larger d can win.

    Parameters
    ----------
    values, masses : arrays
        Increasing labels, and their positive probabilities.
    """
    gain = math.expm1(epsilon)
    cost, output = _BINS[loss](values, masses, gain)
    n = values.size
    constant = float(cost[0, n]) / (1 + gain)
    best, best_loss = 0, math.inf
    total = np.full(n + 1, np.inf)
    total[0] = 0.0
    came_from: list[Indices] = []
    for d in range(1, n + 1):
        if d * constant / (gain + d) >= best_loss:
            break
        paths = total[:, None] + cost
        came_from.append(paths.argmin(axis=0))
        total = paths[came_from[-1], np.arange(n + 1)]
        if total[n] / (gain + d) < best_loss * (1 - 1e-12):  # of equals, the fewest bins
            best, best_loss = d, float(total[n]) / (gain + d)
    cuts = [n]
    for d in range(best, 0, -1):
        cuts.append(int(came_from[d - 1][cuts[-1]]))
    cuts.reverse()
    starts, ends = np.array(cuts[:-1]), np.array(cuts[1:])
    return Partition(starts, output[starts, ends], best_loss)


def _upper(matrix: Array) -> Array:
    """Forbid empty bins."""
    matrix[np.tril_indices(len(matrix))] = np.inf
    return matrix


def _sums(values: Array) -> Array:
    """Return prefix sums, from 0 on."""
    return np.concatenate([[0.0], np.cumsum(values)])


def _squared(values: Array, masses: Array, gain: float) -> tuple[Array, Array]:
    """Cost of each bin i … j−1, and its output: the mean of all labels, its own g times heavier."""
    middle = float(masses @ values)
    centred = values - middle
    mass, first, second = _sums(masses), _sums(masses * centred), _sums(masses * centred**2)
    own = first[None, :] - first[:, None]
    weight = 1 + gain * np.maximum(mass[None, :] - mass[:, None], 0.0)
    cost = second[-1] + gain * (second[None, :] - second[:, None]) - (gain * own) ** 2 / weight
    return _upper(cost), middle + gain * own / weight


def _absolute(values: Array, masses: Array, gain: float) -> tuple[Array, Array]:
    """Cost of each bin i … j−1, and its output: the median of all labels, its own g times heavier."""
    middle = float(masses @ values)
    values = values - middle  # large offsets would cancel badly
    mass, first = _sums(masses), _sums(masses * values)
    i, j = np.meshgrid(np.arange(mass.size), np.arange(mass.size), indexing="ij")
    extra = gain * (mass[j] - mass[i])
    half = (mass[-1] + extra) / 2
    # Up to label k the weight is mass[k + 1], and g times what of that lies in the bin: the median is
    # before, within or after the bin.
    within = (half + gain * mass[i]) / (1 + gain)
    needed = np.where(half <= mass[i], half, np.where(within <= mass[j], within, half - extra))
    at = np.clip(np.searchsorted(mass, needed * (1 - 1e-15)) - 1, 0, values.size - 1)
    v = values[at]

    def loss(a: Indices | int, b: Indices | int) -> Array:
        """Σ p|v − y| over labels a … b−1."""
        k = np.clip(at, a, b)
        below = v * (mass[k] - mass[a]) - (first[k] - first[a])
        above = (first[b] - first[k]) - v * (mass[b] - mass[k])
        return np.asarray(below + above)

    return _upper(loss(0, values.size) + gain * loss(i, np.maximum(i, j))), v + middle


_BINS = {"squared": _squared, "absolute": _absolute}
