"""Numbers for people: few digits, never rounded to the comfortable side; and how far ε lets odds move."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

LARGE = 1e6
"""Factors beyond this protect nobody, and are not worth their digits."""


def number(value: float, digits: int = 4) -> str:
    """Return a number with a few significant digits, without an exponent where it is of a common size.

    Examples
    --------
    >>> number(164512.3), number(0.00123456), number(-3.0), number(1.5e12), number(48.83)
    ('164,500', '0.001235', '−3', '1.5e+12', '48.83')
    """
    size = abs(value)
    if not math.isfinite(size) or (size and not 1e-4 <= size < 1e9):
        text = f"{size:.{digits}g}"
    else:
        rounded = float(f"{size:.{digits}g}")
        text = f"{rounded:,.0f}" if rounded >= 10 ** (digits - 1) else f"{rounded:.{digits}g}"
    return f"−{text}" if value < 0 and text != "0" else text


def tick(value: float) -> str:
    """Return a number for an axis, where room is scarce.

    Examples
    --------
    >>> tick(-2_000_000), tick(150_000), tick(0.25)
    ('−2M', '150k', '0.25')
    """
    if 1e6 <= abs(value) < 1e9:
        return f"{number(value / 1e6)}M"
    return f"{number(value / 1e3)}k" if 1e4 <= abs(value) < 1e6 else number(value)


def factor(epsilon: float) -> float:
    """Return e^ε, or infinity where a float cannot hold it."""
    return math.exp(epsilon) if epsilon < 700 else math.inf


def at_most(guess: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return how certain of something one can become at most who was this certain before.

    Odds p/(1 − p) grow by at most e^ε. With −ε it is how uncertain one can become.

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


def times(epsilon: float) -> str:
    """Return e^ε for people, rounded up: never less than it is.

    Examples
    --------
    >>> times(1.0), times(0.1), times(5.0), times(50)
    ('2.72×', '1.11×', '149×', 'over a million ×')
    """
    value = factor(epsilon)
    if value > LARGE:
        return "over a million ×"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    scale = 10**digits
    return f"{math.ceil(value * scale - 1e-9) / scale:,.{digits}f}×"


def percent(share: float) -> str:
    """Return a share for people.

    Examples
    --------
    >>> percent(0.7311), percent(0.027), percent(0.99995), percent(1.0)
    ('73 %', '2.7 %', 'over 99.9 %', '100 %')
    """
    if 0.999 < share < 1:
        return "over 99.9 %"
    if 0 < share < 0.001:
        return "under 0.1 %"
    digits = 1 if share < 0.0995 or share > 0.9905 else 0
    return f"{100 * share:.{digits}f} %".replace(".0 %", " %")
