"""Exact integer noise for a curator's integer statistics: counts, and sums on a public grid.

Every number is decided by comparing uniform integers (see `coins`), so the distribution is exact for any rational
scale and there is no floating point to attack. The words and steps that a draw takes do not tell the draw: see
docs/proofs/noise.md.

Examples
--------
>>> from labeldp.randomness import SecureWords
>>> noise = DiscreteLaplace(Fraction(2)).sample(3, SecureWords())
>>> noise.dtype
dtype('int64')
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import ParameterError
from labeldp.noise.coins import Coins, root_bounds
from labeldp.noise.concentrated import rho_for
from labeldp.randomness import WordSource

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "IntegerNoise", "LatticeNorm"]

_LARGEST = 1 << 52
"""Scales up to this give noise below 2^63, but once in e^96."""

MOST_COORDINATES = 17
"""Of a vector with K-norm noise: docs/proofs/noise.md bounds what its rejections tell up to this."""


def _positive(value: Fraction, name: str, largest: int | None = None) -> None:
    if not isinstance(value, Fraction) or value <= 0:
        raise ParameterError(f"{name} must be a positive Fraction, got {value!r}")
    if largest is not None and value > largest:
        raise ParameterError(f"{name} must be at most 2^{largest.bit_length() - 1}: use a larger epsilon")


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
        _positive(self.scale, "scale", _LARGEST)

    @classmethod
    def calibrated(cls, *, sensitivity: int, epsilon: Fraction) -> DiscreteLaplace:
        """Return the noise for a statistic of this L1 sensitivity and budget."""
        _positive(epsilon, "epsilon")
        return cls(Fraction(sensitivity) / epsilon)

    def variance(self, size: int = 1) -> float:
        """Return the variance of one draw, of however many."""
        r = float(np.exp(-1 / float(self.scale)))
        return 2 * r / float(np.expm1(-1 / float(self.scale))) ** 2

    def sample(self, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return ``size`` independent draws."""
        return Coins(source).laplace(self.scale, size)


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
        _positive(self.sigma_squared, "sigma_squared", _LARGEST**2)

    @classmethod
    def calibrated(cls, *, squared_sensitivity: int, epsilon: Fraction, delta: Fraction) -> DiscreteGaussian:
        """Return the noise for a statistic of this squared Euclidean sensitivity, and a budget with δ > 0."""
        return cls(Fraction(squared_sensitivity) / (2 * rho_for(epsilon, delta)))

    def variance(self, size: int = 1) -> float:
        """Return an upper bound of the variance of one draw, close to it from a σ of 1 on."""
        return float(self.sigma_squared)

    def sample(self, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return ``size`` independent draws."""
        return Coins(source).gaussian(self.sigma_squared, size)


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
        _positive(self.scale, "scale", _LARGEST)

    @classmethod
    def calibrated(cls, *, squared_sensitivity: int, epsilon: Fraction) -> LatticeNorm:
        """Return the noise for a statistic whose squared Euclidean sensitivity is an integer."""
        _positive(epsilon, "epsilon")
        return cls(root_bounds(squared_sensitivity, 32)[1] / epsilon)

    def variance(self, size: int) -> float:
        """Return the variance of one coordinate, for a scale well above 1."""
        return (size + 1) * float(self.scale) ** 2

    def sample(self, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return one vector of ``size`` coordinates; the time grows steeply with their number."""
        if size > MOST_COORDINATES:
            raise ParameterError(
                f"LatticeNorm draws at most {MOST_COORDINATES} coordinates, got {size}: use DiscreteGaussian"
            )
        return Coins(source).norm(self.scale, size)
