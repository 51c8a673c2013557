"""Coins whose probability is a power of e, and integers from them: exact, and in work that tells nothing.

A coin compares a uniform number with its probability. It takes 192 bits of both, always, and more only if these
are equal, which happens once in 2^191. So a coin is exact, though its probability may be irrational, and takes the
same words and the same steps whatever it shows. See docs/proofs/noise.md.

Examples
--------
>>> from labeldp.randomness import SecureWords
>>> Coins(SecureWords()).laplace(Fraction(5, 2), 3).shape
(3,)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from labeldp.randomness import WordSource

__all__ = ["Coins", "bit_bounds", "exp_minus_bounds", "root_bounds"]

Words = NDArray[np.uint64]
Rate = Callable[[int], int]
"""Gives, for any number of bits, an integer n with n ≤ γ·2^bits ≤ n + 2, or −1 where γ is 0."""

Bounds = Callable[[int], tuple[int, int]]
"""Gives, for any number of bits, two integers with low ≤ p·2^bits ≤ high."""

_WORDS = 3
_BITS = 64 * _WORDS

_GUARD = 38
"""More bits to compute with. The numbers of 230 bits in `exp_minus_bounds` are 20 bits into a digit of 30 bits, as
Python stores them: far enough from either end for their number of digits to be the same for all rates."""

_REACH = 96
"""A draw needs more than the usual number of bits if it is above this many times its scale."""

_BLOCK = 1 << 15
"""Coins that are tossed at a time."""


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


def root_bounds(square: int, bits: int) -> tuple[Fraction, Fraction]:
    """Return two fractions around √square, 2^(−bits) apart."""
    root = math.isqrt(square << (2 * bits))
    return Fraction(root, 1 << bits), Fraction(root + 1, 1 << bits)


# ---- the bits of a geometric number -----------------------------------------------------------------------


def _places(scale: Fraction) -> int:
    """Return how many bits hold a geometric number of this scale, but once in e^`_REACH`."""
    return max(0, math.ceil(_REACH * scale) - 1).bit_length()


def _place_bounds(scale: Fraction, place: int, bits: int) -> tuple[int, int]:
    """Return bounds of the probability that a bit is 1; after the last bit, that there is more."""
    bounds = bit_bounds if place < _places(scale) else exp_minus_bounds
    return bounds(lambda work: (scale.denominator << (work + place)) // scale.numerator, bits)


@lru_cache(maxsize=256)
def _thresholds(scale: Fraction) -> Words:
    """Return the bounds of all places, as words: low and high, × words, × 1, × places."""
    both = np.array([_place_bounds(scale, place, _BITS) for place in range(_places(scale) + 1)], dtype=object)
    words = np.stack([(both.T >> (64 * k)) % (1 << 64) for k in reversed(range(_WORDS))], axis=1)
    thresholds = words[:, :, None].astype(np.uint64)
    thresholds.flags.writeable = False
    return thresholds


def _less(words: Words, threshold: Words) -> NDArray[np.bool_]:
    """Return where numbers are less than thresholds; the first axis has their words, the highest first."""
    less: NDArray[np.bool_] = words[-1] < threshold[-1]
    for word, other in zip(words[-2::-1], threshold[-2::-1], strict=True):
        less = (word < other) | ((word == other) & less)
    return less


def _number(words: Words) -> int:
    return int.from_bytes(words.astype(">u8").tobytes())


class Coins:
    """Coins and integers from 64-bit words.

    Parameters
    ----------
    source : source of words
    """

    def __init__(self, source: WordSource) -> None:
        self._source = source

    def _words(self, *shape: int) -> Words:
        words = np.zeros(math.prod(shape), dtype=np.uint64)
        self._source.fill(words)
        return words.reshape(shape)

    def toss(self, bounds: Bounds) -> bool:
        """Return True with the probability that ``bounds`` are of, exactly."""
        return self._decide(_number(self._words(_WORDS)), bounds)

    def _decide(self, number: int, bounds: Bounds) -> bool:
        """Return whether a uniform number with these first `_BITS` bits is below the probability."""
        bits = _BITS
        low, high = bounds(bits)
        while low <= number < high:
            number = (number << 64) | _number(self._words(1))
            bits += 64
            low, high = bounds(bits)
        return number < low

    def _geometric(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers x ≥ 0 with probability in proportion to e^(−x/scale): their bits are independent."""
        low, high = _thresholds(scale)
        places = low.shape[-1] - 1
        words = self._words(_WORDS, size, places + 1)
        ones = _less(words, low)
        for draw, place in np.argwhere(ones != _less(words, high)).tolist():
            ones[draw, place] = self._decide(_number(words[:, draw, place]), partial(_place_bounds, scale, place))
        numbers = np.asarray(ones[:, :places] @ (1 << np.arange(places)))
        for draw in np.flatnonzero(ones[:, places]).tolist():
            more = 1
            while self.toss(partial(_place_bounds, scale, places)):
                more += 1
            numbers[draw] += more << places
        return numbers

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers x with probability in proportion to e^(−|x|/scale): differences of geometric numbers."""
        noise = np.zeros(size, dtype=np.int64)
        step = _BLOCK // (2 * _places(scale) + 2)
        for start in range(0, size, step):
            piece = noise[start : start + step]
            numbers = self._geometric(scale, 2 * piece.size)
            piece[:] = numbers[: piece.size] - numbers[piece.size :]
        return noise

    def gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers x with probability in proportion to e^(−x²/(2·variance)).

        A Laplace draw y of scale t, which is √variance or a little more, is kept with probability
        e^(−(|y| − variance/t)²/(2·variance)).
        """
        top, bottom = variance.numerator, variance.denominator
        t = math.isqrt(top // bottom) + 1
        divisor = 2 * t * t * top * bottom

        def keep(distance: int) -> bool:
            square = (distance * t * bottom - top) ** 2
            return self.toss(partial(exp_minus_bounds, lambda work: (square << work) // divisor))

        noise: list[int] = []
        while len(noise) < size:
            proposals = self.laplace(Fraction(t), size - len(noise))
            noise += proposals[[keep(distance) for distance in np.abs(proposals).tolist()]].tolist()
        return np.array(noise, dtype=np.int64)

    def norm(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return an integer vector x with probability in proportion to e^(−‖x‖₂/scale).

        Independent Laplace draws of scale · q, with q ≥ √size, are kept with probability
        e^(−(‖x‖₂ − ‖x‖₁/q)/scale), which is at most 1 since ‖x‖₁ ≤ √size · ‖x‖₂.
        """
        top, bottom = scale.numerator, scale.denominator
        q = root_bounds(size, 32)[1]
        steps, wide = int(q * (1 << 32)), q * scale
        more = 32 + bottom.bit_length()

        def keep(sizes: list[int]) -> bool:
            square, total = sum(x * x for x in sizes), sum(sizes) << 32

            def rate(work: int) -> int:
                root = min(square, 1) * math.isqrt(max(square, 1) << 2 * (work + more))  # no shortcut for 0
                return (root * steps - (total << (work + more))) * bottom // (top * steps << more)

            return self.toss(partial(exp_minus_bounds, rate))

        while True:
            proposal = self.laplace(wide, size)
            if keep(np.abs(proposal).tolist()):
                return proposal
