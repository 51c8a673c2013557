"""Probabilities that are powers of e, between two integers with any number of bits: what coins compare words with.

The number of steps depends on the bits asked for alone. See docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

from labeldp._values import Words

Rate = Callable[[int], int]
"""Gives, for any number of bits, an integer n with n ≤ γ·2^bits ≤ n + 2, or −1 where γ is 0."""

Bounds = Callable[[int], tuple[int, int]]
"""Gives, for any number of bits, two integers with low ≤ p·2^bits ≤ high."""

COIN_WORDS = 3
COIN_BITS = 64 * COIN_WORDS
"""What a coin compares always."""

_GUARD = 38
"""More bits to compute with. The numbers of 230 bits in `exp_minus_bounds` are 20 bits into a digit of 30 bits, as
Python stores them: far enough from either end for their number of digits to be the same for all rates."""

_REACH = 96
"""A draw needs more than the usual number of bits if it is above this many times its scale."""


# ---- probabilities --------------------------------------------------------------------------------------


def _exp(x: int, work: int) -> int:
    """Return e^(x/2^work)·2^work, at most 2 too small, for x up to 2^(work − 7): the Taylor series."""
    total = one = 1 << work
    for k in range(work // 8, 0, -1):
        total = one + (x * total >> work) // k
    return total


@cache
def _exp_of_c(work: int) -> int:
    return _exp(1 << (work - 7), work)


def exp_minus_bounds(rate: Rate, bits: int) -> tuple[int, int]:
    """Return bounds of e^(−γ)·2^bits; the number of steps depends on ``bits`` alone.

    With x = γ/2^s below 2^−8, and c = 2^−7, e^(−γ) is e^(c−x)/e^c, squared s times. The numbers on the way there
    are close to c or 1, times 2^work, so they have one length. What rounding did is below 8·2^s.

    Examples
    --------
    >>> low, high = exp_minus_bounds(lambda bits: 3 << bits, 64)
    >>> low / 2**64, high - low
    (0.049787068367863944, 1)
    """
    work = bits + _GUARD
    squarings = work.bit_length() + 8
    n = min(max(rate(work), 0), work << work)  # above, e^(−γ)·2^work is below 1
    power = (_exp((1 << (work - 7)) - (n >> squarings), work) << work) // _exp_of_c(work)
    for _ in range(squarings):
        power = power * power >> work
    error = 8 << squarings
    return max(power - error, 0) >> _GUARD, -(-(power + error) >> _GUARD)


def bit_bounds(rate: Rate, bits: int) -> tuple[int, int]:
    """Return bounds of 2^bits/(1 + e^γ), which is p/(1 + p) for p = e^(−γ)."""
    low, high = exp_minus_bounds(rate, bits + 8)
    one = 1 << (bits + 8)
    return (low << bits) // (one + low), -((-high << bits) // (one + high))


# ---- the bits of a geometric number -----------------------------------------------------------------------


def _places(scale: Fraction) -> int:
    """Return how many bits hold a geometric number of this scale, but once in e^`_REACH`."""
    return max(0, math.ceil(_REACH * scale) - 1).bit_length()


def place_bounds(scale: Fraction, place: int, bits: int) -> tuple[int, int]:
    """Return bounds of the probability that a bit is 1; after the last bit, that there is more."""
    bounds = bit_bounds if place < _places(scale) else exp_minus_bounds
    return bounds(lambda work: (scale.denominator << (work + place)) // scale.numerator, bits)


@lru_cache(maxsize=256)
def thresholds(scale: Fraction) -> Words:
    """Return the bounds of all places, as words: low and high, × words, × 1, × places."""
    both = np.array([place_bounds(scale, place, COIN_BITS) for place in range(_places(scale) + 1)], dtype=object)
    words = np.stack([(both.T >> (64 * k)) % (1 << 64) for k in reversed(range(COIN_WORDS))], axis=1)
    table = words[:, :, None].astype(np.uint64)
    table.flags.writeable = False
    return table
