"""Exact integer noise for a curator's integer statistics: counts, and sums on a public grid.

Every number is decided by comparing uniform integers (see `Coins`), so the distribution is exact for any rational
scale and there is no floating point to attack. The words and steps that a draw takes do not depend on the draw:
see docs/proofs/noise.md.

Examples
--------
>>> from labeldp.randomness import SecureWords
>>> noise = DiscreteLaplace(Fraction(2)).sample(3, SecureWords())
>>> noise.dtype
dtype('int64')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from labeldp._arrays import Words
from labeldp.errors import ParameterError
from labeldp.noise.probabilities import COIN_BITS, COIN_WORDS, Bounds, place_bounds, thresholds
from labeldp.randomness import WordSource

_LARGEST = 1 << 52
"""Scales up to this give noise below 2^63, but once in e^96."""

_BLOCK = 1 << 15
"""Coins that are tossed at a time."""


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

    A coin compares a uniform number with its probability. It takes 192 bits of both, always, and more only if
    these are equal, which happens once in 2^191. So a coin is exact, though its probability may be irrational, and
    takes the same words and the same steps whatever it shows.

    Parameters
    ----------
    source : source of words

    Examples
    --------
    >>> from labeldp.randomness import SecureWords
    >>> Coins(SecureWords()).laplace(Fraction(5, 2), 3).shape
    (3,)
    """

    def __init__(self, source: WordSource) -> None:
        self._source = source

    def _words(self, *shape: int) -> Words:
        words = np.zeros(math.prod(shape), dtype=np.uint64)
        self._source.fill(words)
        return words.reshape(shape)

    def toss(self, bounds: Bounds) -> bool:
        """Return True with the probability that ``bounds`` are of, exactly."""
        return self._decide(_number(self._words(COIN_WORDS)), bounds)

    def _decide(self, number: int, bounds: Bounds) -> bool:
        """Return whether a uniform number with these first `COIN_BITS` bits is below the probability."""
        bits = COIN_BITS
        low, high = bounds(bits)
        while low <= number < high:
            number = (number << 64) | _number(self._words(1))
            bits += 64
            low, high = bounds(bits)
        return number < low

    def _geometric(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers x ≥ 0 with probability in proportion to e^(−x/scale): their bits are independent."""
        low, high = thresholds(scale)
        places = low.shape[-1] - 1
        words = self._words(COIN_WORDS, size, places + 1)
        ones = _less(words, low)
        for draw, place in np.argwhere(ones != _less(words, high)).tolist():
            ones[draw, place] = self._decide(_number(words[:, draw, place]), partial(place_bounds, scale, place))
        numbers = np.asarray(ones[:, :places] @ (1 << np.arange(places)))
        for draw in np.flatnonzero(ones[:, places]).tolist():
            more = 1
            while self.toss(partial(place_bounds, scale, places)):
                more += 1
            numbers[draw] += more << places
        return numbers

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return integers x with probability in proportion to e^(−|x|/scale): differences of geometric numbers."""
        noise = np.zeros(size, dtype=np.int64)
        step = _BLOCK // (2 * thresholds(scale).shape[-1])
        for start in range(0, size, step):
            piece = noise[start : start + step]
            numbers = self._geometric(scale, 2 * piece.size)
            piece[:] = numbers[: piece.size] - numbers[piece.size :]
        return noise


# ---- noise --------------------------------------------------------------------------------------------


class IntegerNoise:
    """How an exact statistic leaves: with noise on each of its integers, and no other way."""

    __slots__ = ()

    def sample(self, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return ``size`` integers of noise."""
        raise NotImplementedError

    def release(self, exact: NDArray[np.int64], source: WordSource) -> NDArray[np.int64]:
        """Return integers with fresh noise added to each.

        This is the one door for a curator's sums and counts: what is computed from the result is post-processing.

        Parameters
        ----------
        exact : array of int64, one-dimensional
            What a change of one label moves by no more than the noise was calibrated to.
        source : source of words

        Examples
        --------
        >>> from labeldp.randomness import SecureWords
        >>> DiscreteLaplace(Fraction(2)).release(np.array([5, 8]), SecureWords()).shape
        (2,)
        """
        return np.asarray(exact + self.sample(exact.size, source), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(IntegerNoise):
    """Two-sided geometric noise: P(x) ∝ e^(−|x|/scale) on the integers.

    Added to integers that a change of one label moves by at most Δ in sum, it is differentially private with
    ε = Δ/scale, exactly.

    Parameters
    ----------
    scale : Fraction
    """

    scale: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction) or not 0 < self.scale <= _LARGEST:
            raise ParameterError(
                f"scale must be a positive Fraction of at most 2^52, got {self.scale!r}: use a larger epsilon"
            )

    @classmethod
    def calibrated(cls, *, sensitivity: int, epsilon: Fraction) -> DiscreteLaplace:
        """Return the noise for a statistic of this L1 sensitivity and budget."""
        return _calibrated(sensitivity, epsilon)

    def variance(self) -> float:
        """Return the variance of one draw."""
        r = float(np.exp(-1 / float(self.scale)))
        return 2 * r / float(np.expm1(-1 / float(self.scale))) ** 2

    def sample(self, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return ``size`` independent draws."""
        return Coins(source).laplace(self.scale, size)


@lru_cache(maxsize=256)
def _calibrated(sensitivity: int, epsilon: Fraction) -> DiscreteLaplace:
    return DiscreteLaplace(sensitivity / epsilon)
