"""Exact arithmetic behind every guarantee: rational bounds of e^ε, promises, proofs and channels.

Only integers and fractions decide here. A float is returned at the very end, rounded so that it
never claims more privacy than was proven.

A channel is a public grid of output cells, and for each label the number of the 2^64 words of each cell. Sampling,
the exact proof, moments, debiasing and plotting all read the same integers. A mechanism only chooses the counts.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from labeldp._values import Array, Data, Numbers, as_fraction
from labeldp.errors import ParameterError, PrivacyProofError
from labeldp.exact.word_sources import WordSource

WORDS = 1 << 64
"""The number of equally likely random words; the counts of every row sum to it."""
LARGEST_NUMBER = 1 << 53
"""Larger integers stand on cards as text."""


@lru_cache(maxsize=1024)
def exp_lower(x: Fraction, bits: int = 192) -> Fraction:
    """Return a rational number at most e^x, for x ≥ 0; below e^x by at most n/2^bits of it, for n terms.

    The Taylor series in fixed point; every term is rounded down, and the terms left out are positive. Counts that
    stay within this ratio satisfy ε-DP, whatever a float would round.

    Parameters
    ----------
    x : Fraction
        At least 0; ``Promise.of(epsilon).epsilon`` is one.
    bits : int
        Bits after the binary point. The default is right to 2^-100 for every supported ε.

    Returns
    -------
    Fraction

    Examples
    --------
    >>> from fractions import Fraction
    >>> from labeldp.mechanisms import exp_lower
    >>> float(exp_lower(Fraction(1)))
    2.718281828459045
    """
    if x < 0:
        raise ValueError("exp_lower needs x >= 0")
    term = 1 << bits
    total = 0
    k = 0
    while term:
        total += term
        k += 1
        term = term * x.numerator // (x.denominator * k)
    return Fraction(total, 1 << bits)


def portable(data: Any) -> Any:
    """Return integers above 2^53, alone or in lists, as text: many languages read numbers as doubles.

    Examples
    --------
    >>> portable([7, 1 << 64])
    [7, '18446744073709551616']
    """
    if isinstance(data, list):
        return [portable(item) for item in data]
    return str(data) if isinstance(data, int) and data > LARGEST_NUMBER else data


@dataclass(frozen=True, slots=True)
class Promise:
    """The ε and δ that a channel must satisfy, exactly.

    Parameters
    ----------
    epsilon, delta : Fraction
        Exact amounts; `Promise.of` takes floats.

    Examples
    --------
    >>> from labeldp.mechanisms import Promise
    >>> Promise.of(0.5)
    Promise(epsilon=Fraction(1, 2), delta=Fraction(0, 1))
    >>> 0.1 < Promise.of(0.1).epsilon           # the float 0.1 is above 1/10: the smaller one counts
    False
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def as_data(self) -> list[str]:
        """Return ε and δ as pure data: the text of two fractions."""
        return [str(self.epsilon), str(self.delta)]

    def __post_init__(self) -> None:
        exact = isinstance(self.epsilon, Fraction) and isinstance(self.delta, Fraction)
        if not exact or self.epsilon < 0 or not 0 <= self.delta <= 1:
            raise ParameterError(
                "epsilon must not be negative, and delta must lie in [0, 1], as fractions: use Promise.of(epsilon)"
            )

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, epsilon: float, delta: float = 0.0) -> Promise:
        """Return the promise for floats, however they are read: as written, or as binary numbers.

        Parameters
        ----------
        epsilon, delta : float
            The smaller of both readings is promised.
        """
        return cls(min(as_fraction(epsilon), Fraction(epsilon)), min(as_fraction(delta), Fraction(delta)))


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of an exact proof, given ideal random words.

    Attributes
    ----------
    epsilon, delta : float
        Proven upper bounds: for any two labels and any set of outputs S,
        P(S | y) ≤ e^epsilon · P(S | y') + delta.
    worst_ratio : Fraction or None
        For pure ε: the largest ratio of two rows' word counts at one output, exactly.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from fractions import Fraction
    >>> proof = ldp.Laplace(bounds=(0, 5), epsilon=1.0).verify()
    >>> 0.999 < proof.epsilon <= 1.0, proof.delta
    (True, 0.0)
    >>> proof.worst_ratio < Fraction(2718281828459045236, 10**18)
    True
    """

    epsilon: float
    delta: float
    worst_ratio: Fraction | None = None

    def as_data(self) -> Data:
        """Return the proof as pure data, for a card."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "ratio": None if self.worst_ratio is None else str(self.worst_ratio),
        }


def epsilon_of(ratio: Fraction) -> float:
    """Return the smallest float ε that provably satisfies ratio ≤ e^ε.

    Examples
    --------
    >>> epsilon_of(Fraction(3)) >= math.log(3)
    True
    >>> epsilon_of(Fraction(1))
    0.0
    """
    if ratio <= 1:
        return 0.0
    guess = math.log1p(float(ratio - 1))
    for _ in range(4):
        guess = math.nextafter(guess, 0.0)
    while exp_lower(Fraction(guess)) < ratio:
        guess = math.nextafter(guess, math.inf)
    return guess


def float_above(value: Fraction) -> float:
    """Return the smallest float that is at least ``value``.

    Examples
    --------
    >>> Fraction(float_above(Fraction(1, 3))) > Fraction(1, 3) > Fraction(1 / 3)
    True
    """
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)


def prove_pure(counts: Iterable[tuple[int, int]], promise: Promise) -> Proof:
    """Compare the largest and the smallest count of each output, and the worst ratio with the promise, exactly."""
    worst = Fraction(1)
    for largest, smallest in counts:
        if smallest == 0 < largest:
            raise PrivacyProofError("an output is possible under one label and not under another")
        if largest * worst.denominator > worst.numerator * smallest:
            worst = Fraction(largest, smallest)
    if worst > exp_lower(promise.epsilon):
        raise PrivacyProofError(
            f"the counts reach a ratio of e^{epsilon_of(worst):.9g}, above the promised "
            f"epsilon={float(promise.epsilon)}: this channel must not be used"
        )
    return Proof(epsilon_of(worst), 0.0, worst)


# ---- channels -----------------------------------------------------------------------------------------


class Channel(ABC):
    """The interface of all channels; labels are finite 1-D arrays."""

    __slots__ = ("_fingerprint", "_proof")
    low: float
    high: float
    promise: Promise
    _fingerprint: str
    _proof: Proof

    @property
    def proof(self) -> Proof:
        """The result of `verify`, computed once: a channel does not change."""
        if not hasattr(self, "_proof"):
            object.__setattr__(self, "_proof", self.verify())
        return self._proof

    @property
    def fingerprint(self) -> str:
        """The hash of a channel as it stands on a card: that of the canonical text of its integers."""
        if not hasattr(self, "_fingerprint"):
            text = json.dumps(self.as_data(), sort_keys=True, separators=(",", ":"), allow_nan=False)
            object.__setattr__(self, "_fingerprint", "sha256:" + hashlib.sha256(text.encode()).hexdigest())
        return self._fingerprint

    @abstractmethod
    def as_data(self) -> Data:
        """Return all that `sample` and `verify` use as pure data, for a card."""

    @abstractmethod
    def sample(self, labels: Numbers, source: WordSource, out: Array) -> None:
        """Randomise ``labels`` into ``out``."""

    @abstractmethod
    def verify(self) -> Proof:
        """Prove the promise from the integers that `sample` uses, or raise `PrivacyProofError`."""

    @abstractmethod
    def moments(self, labels: Numbers) -> tuple[Array, Array]:
        """Return mean and variance of the released value for each label."""

    @abstractmethod
    def slope(self) -> float:
        """Return dE[z|y]/dy where it is the same for all labels in the domain, or raise."""

    @abstractmethod
    def nearest_output(self, values: Array) -> Array:
        """Return the output nearest to each value; of infinite values, the first or the last output."""

    @abstractmethod
    def cumulative(self, label: float, points: Array) -> Array:
        """Return P(z ≤ point | label)."""

    def mean(self, labels: Numbers) -> Array:
        """Return the mean of the released value for each label."""
        return self.moments(labels)[0]

    def variance(self, labels: Numbers) -> Array:
        """Return the variance of the released value for each label."""
        return self.moments(labels)[1]

    def debias(self, outputs: Array) -> Array:
        """Return unbiased labels, or raise: E[z|y] is a straight line in the clipped label; undo it."""
        slope = self.slope()
        if slope == 1:
            return outputs.copy()
        at_low = float(self.mean(np.array([self.low]))[0])
        return np.asarray(self.low + (outputs - at_low) / slope)
