"""Exact integer noise for a curator's integer statistics: counts, and sums on a public grid.

The samplers of Canonne, Kamath and Steinke ("The discrete Gaussian for differential privacy", 2020):
everything is decided by comparing uniform integers, so the distribution is exact for any rational scale
and there is no floating point to attack. The number of words drawn depends on the noise alone, never on
the statistic.

Examples
--------
>>> from labeldp.randomness import SecureWords
>>> noise = DiscreteLaplace(Fraction(2)).sample(3, SecureWords())
>>> noise.dtype
dtype('int64')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from labeldp.channels.concentrated import rho_for
from labeldp.errors import ParameterError
from labeldp.randomness import WordSource

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "IntegerNoise", "LatticeNorm"]

_BATCH = 1 << 10


class _Coins:
    """Uniform integers and biased coins from 64-bit words."""

    def __init__(self, source: WordSource) -> None:
        self._source = source
        self._buffer = np.empty(_BATCH, dtype=np.uint64)
        self._words: list[int] = []

    def _word(self) -> int:
        if not self._words:
            self._source.fill(self._buffer)
            self._words = self._buffer.tolist()
        return self._words.pop()

    def below(self, bound: int) -> int:
        """Return a uniform integer in 0 … bound − 1, by rejection."""
        bits = (bound - 1).bit_length()
        while True:
            number = 0
            for _ in range(0, bits, 64):
                number = (number << 64) | self._word()
            number &= (1 << bits) - 1
            if number < bound:
                return number

    def exp_minus(self, numerator: int, denominator: int) -> bool:
        """Return True with probability e^(−numerator/denominator), exactly."""
        while numerator > denominator:
            if not self._exp_minus_up_to_one(1, 1):
                return False
            numerator -= denominator
        return self._exp_minus_up_to_one(numerator, denominator)

    def _exp_minus_up_to_one(self, numerator: int, denominator: int) -> bool:
        # The first k at which a coin of probability (n/d)/k fails is odd with probability e^(−n/d).
        k = 1
        while self.below(denominator * k) < numerator:
            k += 1
        return k % 2 == 1

    def exp_minus_root(self, square: int, scale: Fraction, less: Fraction) -> bool:
        """Return True with probability e^(−γ), γ = √square/scale − less ≥ 0, exactly.

        γ may be irrational: it is bracketed, more and more closely, until every comparison is decided.
        """
        whole = _root_bounds(square, 16 + scale.denominator.bit_length())[0] / scale - less
        steps = int(whole)  # e^(−steps) first, then what is left of γ, between 0 and 2
        for _ in range(steps):
            if not self._exp_minus_up_to_one(1, 1):
                return False

        def bracket(bits: int) -> tuple[Fraction, Fraction]:
            low, high = _root_bounds(square, bits)
            return (low / scale - less - steps) / 2, (high / scale - less - steps) / 2

        # e^(−γ) as two coins of e^(−γ/2), with γ/2 below 1.
        return all(self._exp_minus_bracketed(bracket) for _ in range(2))

    def _exp_minus_bracketed(self, bracket: Callable[[int], tuple[Fraction, Fraction]]) -> bool:
        k = 1
        while self._below_bracketed(bracket, k):
            k += 1
        return k % 2 == 1

    def _below_bracketed(self, bracket: Callable[[int], tuple[Fraction, Fraction]], k: int) -> bool:
        """Return whether a uniform real number, drawn bit by bit, is below γ/k."""
        bits, drawn = 0, 0
        while True:
            drawn = (drawn << 64) | self._word()
            bits += 64
            low, high = bracket(bits + 32)
            if Fraction(drawn + 1, 1 << bits) <= low / k:
                return True
            if Fraction(drawn, 1 << bits) >= high / k:
                return False

    def norm_noise(self, scale: Fraction, size: int) -> list[int]:
        """Return an integer vector x with probability in proportion to e^(−‖x‖₂/scale).

        Independent Laplace draws of scale · √size are kept with probability
        e^(−(‖x‖₂/scale − ‖x‖₁/(scale·√size))), which is at most 1 since ‖x‖₁ ≤ √size · ‖x‖₂.
        """
        wide = scale * _root_bounds(size, 32)[1]
        while True:
            x = [self.laplace(wide) for _ in range(size)]
            square, total = sum(v * v for v in x), sum(abs(v) for v in x)
            if self.exp_minus_root(square, scale, total / wide):
                return x

    def laplace(self, scale: Fraction) -> int:
        """Return an integer x with probability in proportion to e^(−|x|/scale)."""
        t, s = scale.numerator, scale.denominator
        while True:
            u = self.below(t)
            if not self.exp_minus(u, t):
                continue
            v = 0
            while self.exp_minus(1, 1):
                v += 1
            size = (u + t * v) // s
            negative = self.below(2) == 1
            if not (negative and size == 0):
                return -size if negative else size

    def gaussian(self, variance: Fraction) -> int:
        """Return an integer x with probability in proportion to e^(−x²/(2·variance))."""
        t = isqrt(variance.numerator // variance.denominator) + 1
        while True:
            y = self.laplace(Fraction(t))
            excess = (abs(y) - variance / t) ** 2 / (2 * variance)
            if self.exp_minus(excess.numerator, excess.denominator):
                return y


def _root_bounds(square: int, bits: int) -> tuple[Fraction, Fraction]:
    """Return two fractions around √square, 2^(−bits) apart."""
    root = isqrt(square << (2 * bits))
    return Fraction(root, 1 << bits), Fraction(root + 1, 1 << bits)


def _positive(value: Fraction, name: str) -> None:
    if not isinstance(value, Fraction) or value <= 0:
        raise ParameterError(f"{name} must be a positive Fraction, got {value!r}")


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

    Added to integers that a change of one label moves by at most Δ in sum, it keeps ε = Δ/scale,
    exactly.

    Parameters
    ----------
    scale : Fraction
    """

    scale: Fraction

    def __post_init__(self) -> None:
        _positive(self.scale, "scale")

    @classmethod
    def calibrated(cls, *, sensitivity: int, epsilon: Fraction) -> DiscreteLaplace:
        """Return the noise for a statistic of this L1 sensitivity and budget."""
        _positive(epsilon, "epsilon")
        return cls(Fraction(sensitivity) / epsilon)

    def epsilon(self, sensitivity: int) -> Fraction:
        """Return the ε that this noise keeps, exactly."""
        return Fraction(sensitivity) / self.scale

    def variance(self, size: int = 1) -> float:
        """Return the variance of one draw, of however many."""
        r = float(np.exp(-1 / float(self.scale)))
        return 2 * r / float(np.expm1(-1 / float(self.scale))) ** 2

    def sample(self, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return ``size`` independent draws."""
        coins = _Coins(source)
        return np.array([coins.laplace(self.scale) for _ in range(size)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(IntegerNoise):
    """Gaussian noise on the integers: P(x) ∝ e^(−x²/(2·sigma²)).

    Added to integers that a change of one label moves by at most Δ in Euclidean length, it is
    Δ²/(2·sigma²)-concentrated differentially private.

    Parameters
    ----------
    sigma_squared : Fraction
    """

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        _positive(self.sigma_squared, "sigma_squared")

    @classmethod
    def calibrated(cls, *, squared_sensitivity: int, epsilon: Fraction, delta: Fraction) -> DiscreteGaussian:
        """Return the noise for a statistic of this squared Euclidean sensitivity, and a budget with δ > 0."""
        return cls(Fraction(squared_sensitivity) / (2 * rho_for(epsilon, delta)))

    def rho(self, squared_sensitivity: Fraction) -> Fraction:
        """Return the ρ of zero-concentrated privacy that this noise keeps, exactly."""
        return squared_sensitivity / (2 * self.sigma_squared)

    def variance(self, size: int = 1) -> float:
        """Return an upper bound of the variance of one draw, close to it from a σ of 1 on."""
        return float(self.sigma_squared)

    def sample(self, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return ``size`` independent draws."""
        coins = _Coins(source)
        return np.array([coins.gaussian(self.sigma_squared) for _ in range(size)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class LatticeNorm(IntegerNoise):
    """K-norm noise on integer vectors: P(x) ∝ e^(−‖x‖₂/scale).

    Added to an integer vector that a change of one label moves by at most Δ in Euclidean length, it keeps
    ε = Δ/scale, exactly, with far less noise in several dimensions than Laplace noise in each.

    Parameters
    ----------
    scale : Fraction
    """

    scale: Fraction

    def __post_init__(self) -> None:
        _positive(self.scale, "scale")

    @classmethod
    def calibrated(cls, *, squared_sensitivity: int, epsilon: Fraction) -> LatticeNorm:
        """Return the noise for a statistic whose squared Euclidean sensitivity is an integer."""
        _positive(epsilon, "epsilon")
        return cls(_root_bounds(squared_sensitivity, 32)[1] / epsilon)

    def variance(self, size: int) -> float:
        """Return the variance of one coordinate, for a scale well above 1."""
        return (size + 1) * float(self.scale) ** 2

    def sample(self, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return one vector of ``size`` coordinates."""
        return np.array(_Coins(source).norm_noise(self.scale, size), dtype=np.int64)
