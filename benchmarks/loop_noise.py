"""The same integer noise from coins that stop early: exact, but its time leaks the noise. For comparison only.

The sampler of Canonne, Kamath and Steinke ("The discrete Gaussian for differential privacy", 2020) as published,
and as the library drew its noise once: a loop that runs ⌊noise/scale⌋ times, and coins that are tossed until the
first one fails. `benchmarks.timing` measures what that tells; tests use it as an oracle of the distribution.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp.exact.integers import DiscreteLaplace
from labeldp.exact.word_sources import WordSource

_BATCH = 1 << 10


class LoopNoise:
    """Draws from the distribution of some noise, in a time that follows the draw."""

    def __init__(self, noise: DiscreteLaplace) -> None:
        self._noise = noise
        self._words: list[int] = []

    def sample(self, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return independent draws."""
        self._words = []
        draws = [self._laplace(self._noise.scale, source) for _ in range(size)]
        return np.array(draws, dtype=np.int64)

    def _below(self, bound: int, source: WordSource) -> int:
        bits = (bound - 1).bit_length()
        while True:
            number = 0
            for _ in range(0, bits, 64):
                if not self._words:
                    words = np.zeros(_BATCH, dtype=np.uint64)
                    source.fill(words)
                    self._words = words.tolist()
                number = (number << 64) | self._words.pop()
            number &= (1 << bits) - 1
            if number < bound:
                return number

    def _exp_minus(self, numerator: int, denominator: int, source: WordSource) -> bool:
        while numerator > denominator:
            if not self._exp_minus(1, 1, source):
                return False
            numerator -= denominator
        k = 1
        while self._below(denominator * k, source) < numerator:
            k += 1
        return k % 2 == 1

    def _laplace(self, scale: Fraction, source: WordSource) -> int:
        t, s = scale.numerator, scale.denominator
        while True:
            u = self._below(t, source)
            if not self._exp_minus(u, t, source):
                continue
            v = 0
            while self._exp_minus(1, 1, source):
                v += 1
            size = (u + t * v) // s
            negative = self._below(2, source) == 1
            if not (negative and size == 0):
                return -size if negative else size
