"""Probabilities of coins, as bounds with any number of bits; see docs/proofs/noise.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from labeldp._values import Words
from labeldp.exact.proof import exp_lower

Probability = Callable[[int], tuple[int, int]]
"""Returns, for any number of bits, two integers with low ≤ p·2^bits ≤ high."""

COIN_WORDS = 3
"""Words that every coin takes."""

COIN_BITS = 64 * COIN_WORDS

_GUARD_BITS = 32
"""Bits beyond those asked for: a sum of fewer than 2^20 terms, each rounded down, is then right to 12 of them."""

_MAX_DRAW = 96
"""Bits cover draws up to this many times the scale; larger ones have probability e^−96."""


def _bit_count(scale: Fraction) -> int:
    """Return the number of bits that hold a geometric number of this scale, but with probability e^−96."""
    return max(0, math.ceil(_MAX_DRAW * scale) - 1).bit_length()


def bit_probability(scale: Fraction, bit: int, precision: int) -> tuple[int, int]:
    """Return bounds of P(bit = 1) = 1/(1 + e^γ) times 2^precision, for γ = 2^bit/scale.

    After the last bit, return those of e^(−γ): the probability that a number is larger than all bits can hold.
    """
    rate = (1 << bit) / scale
    if rate > precision:  # then e^(−γ)·2^precision is below 1
        return 0, 1
    lower = exp_lower(rate, precision + _GUARD_BITS)
    upper = lower * (1 + Fraction(1, 1 << (precision + 12)))
    odds_of_zero = 1 if bit < _bit_count(scale) else 0
    return (1 << precision) // (odds_of_zero + upper), -(-(1 << precision) // (odds_of_zero + lower))


@lru_cache(maxsize=256)
def thresholds(scale: Fraction) -> Words:
    """Return the bounds of all bits, as words: low and high, × words, × 1, × bits."""
    bounds = [bit_probability(scale, bit, COIN_BITS) for bit in range(_bit_count(scale) + 1)]
    numbers = np.array(bounds, dtype=object).T
    words = [(numbers >> (64 * k)) % (1 << 64) for k in reversed(range(COIN_WORDS))]
    table = np.stack(words, axis=1)[:, :, None].astype(np.uint64)
    table.flags.writeable = False
    return table
