"""What ε means for a guess: how far odds can move, in figures that people can check."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["at_most", "factor"]


def factor(epsilon: float) -> float:
    """Return e^ε, or infinity where a float cannot hold it."""
    return math.exp(epsilon) if epsilon < 700 else math.inf


def at_most(guess: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return how sure of something one can become at most who was this sure before.

    Odds p/(1 − p) grow by at most e^ε. With −ε it is how unsure one can become.

    Examples
    --------
    >>> at_most([0.5, 0.01], 1.0).round(3).tolist()
    [0.731, 0.027]
    """
    before = np.asarray(guess, dtype=np.float64)
    shrunk = math.exp(-min(abs(epsilon), 700.0))  # never overflows
    up = before / (before + (1 - before) * shrunk)
    down = before * shrunk / (before * shrunk + (1 - before))
    return np.asarray(up if epsilon >= 0 else down)
