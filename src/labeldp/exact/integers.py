"""Exact integer noise for a curator's integer statistics: counts, and sums on a public grid.

Every number is decided by comparing uniform integers (see `Coins`), so the distribution is exact for any rational
scale and there is no floating point to attack. The words and steps that a draw takes do not depend on the draw:
see docs/proofs/noise.md.

Examples
--------
>>> from labeldp.exact import SecureWords
>>> noise = DiscreteLaplace(Fraction(2)).sample(3, SecureWords())
>>> noise.dtype
dtype('int64')
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np

from labeldp._values import Counts, Data, Mask, Words
from labeldp.errors import ParameterError, UncheckableError
from labeldp.exact.probabilities import COIN_BITS, COIN_WORDS, Probability, bit_probability, thresholds
from labeldp.exact.word_sources import WordSource

_MAX_SCALE = 1 << 52
"""Noise of larger scales may not fit 63 bits."""

_COINS_AT_A_TIME = 1 << 15


def _is_below(numbers: Words, thresholds: Words) -> Mask:
    """Return where numbers are less than thresholds; the first axis has their words, the highest first."""
    below: Mask = numbers[-1] < thresholds[-1]
    for number, threshold in zip(numbers[-2::-1], thresholds[-2::-1], strict=True):
        below = (number < threshold) | ((number == threshold) & below)
    return below


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
    >>> from labeldp.exact import SecureWords
    >>> Coins(SecureWords()).laplace(Fraction(5, 2), 3).shape
    (3,)
    """

    def __init__(self, source: WordSource) -> None:
        self._source = source

    def _words(self, *shape: int) -> Words:
        words = np.zeros(math.prod(shape), dtype=np.uint64)
        self._source.fill(words)
        return words.reshape(shape)

    def toss(self, probability: Probability, words: Words | None = None) -> bool:
        """Return True with a probability, exactly.

        A uniform number is compared with it, which starts with `COIN_BITS` bits: ``words``, or fresh ones.
        """
        number = _number(self._words(COIN_WORDS) if words is None else words)
        bits = COIN_BITS
        low, high = probability(bits)
        while low <= number < high:
            number = (number << 64) | _number(self._words(1))
            bits += 64
            low, high = probability(bits)
        return number < low

    def _geometric(self, scale: Fraction, size: int) -> Counts:
        """Return integers x ≥ 0 with probability in proportion to e^(−x/scale): their bits are independent."""
        low, high = thresholds(scale)
        count = low.shape[-1] - 1
        words = self._words(COIN_WORDS, size, count + 1)
        bits = _is_below(words, low)
        for draw, bit in np.argwhere(bits != _is_below(words, high)).tolist():
            bits[draw, bit] = self.toss(partial(bit_probability, scale, bit), words[:, draw, bit])
        numbers = np.asarray(bits[:, :count] @ (1 << np.arange(count)))
        for draw in np.flatnonzero(bits[:, count]).tolist():
            high_part = 1
            while self.toss(partial(bit_probability, scale, count)):
                high_part += 1
            numbers[draw] += high_part << count
        return numbers

    def laplace(self, scale: Fraction, size: int) -> Counts:
        """Return integers x with probability in proportion to e^(−|x|/scale): differences of geometric numbers."""
        noise = np.zeros(size, dtype=np.int64)
        step = _COINS_AT_A_TIME // (2 * thresholds(scale).shape[-1])
        for start in range(0, size, step):
            piece = noise[start : start + step]
            numbers = self._geometric(scale, 2 * piece.size)
            piece[:] = numbers[: piece.size] - numbers[piece.size :]
        return noise


# ---- noise --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Two-sided geometric noise: P(x) ∝ e^(−|x|/scale) on the integers.

    Added to integers that a change of one label moves by at most Δ in sum, it is differentially private with
    ε = Δ/scale, exactly.

    Parameters
    ----------
    scale : Fraction
    """

    scale: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction) or not 0 < self.scale <= _MAX_SCALE:
            raise ParameterError(
                f"scale must be a positive Fraction of at most 2^52, got {self.scale!r}: use a larger epsilon"
            )

    @classmethod
    def calibrated(cls, *, sensitivity: int, epsilon: Fraction) -> DiscreteLaplace:
        """Return the noise for a statistic of this L1 sensitivity and budget."""
        return cls(sensitivity / epsilon)

    def variance(self) -> float:
        """Return the variance of one draw."""
        r = float(np.exp(-1 / float(self.scale)))
        return 2 * r / float(np.expm1(-1 / float(self.scale))) ** 2

    def sample(self, size: int, source: WordSource) -> Counts:
        """Return ``size`` independent draws."""
        return Coins(source).laplace(self.scale, size)

    def release(self, exact: Counts, source: WordSource) -> Counts:
        """Return integers with fresh noise added to each.

        All of a curator's sums and counts pass here: all that follows from the result is post-processing.

        Parameters
        ----------
        exact : array of int64, one-dimensional
            Integers whose sensitivity is at most that of the calibration.
        source : source of words

        Examples
        --------
        >>> from labeldp.exact import SecureWords
        >>> DiscreteLaplace(Fraction(2)).release(np.array([5, 8]), SecureWords()).shape
        (2,)
        """
        return np.asarray(exact + self.sample(exact.size, source), dtype=np.int64)


# ---- statistics ----------------------------------------------------------------------------------------

NOISE = "discrete Laplace"


class Rule(NamedTuple):
    """The sensitivity of a kind of statistic: ``factor`` times its steps, and the reason.

    ``steps`` maps a number of integers to the number of steps; 0 stands for any number of integers.
    """

    factor: int
    reason: str
    steps: Mapping[int, int]


RULES = {
    "counts": Rule(2, "another label takes 1 from one count and adds 1 to another", {0: 1}),
    "largest count": Rule(1, "another label moves every count by 1 at most, and so the largest of them", {1: 1}),
    "sums": Rule(1, "each label is in one sum, as an integer from 0 to the number of steps", {0: 1 << 16}),
    "weighted sums": Rule(
        1,
        "a row's integer weights add up to 2^12 at most, and its label and the curve of it move by 2^20 at most",
        {0: 1 << 32},
    ),
    "score": Rule(
        1,
        "another label moves all sums of errors, or of labels, by as many steps together",
        {1: 1 << 36, 2: 1 << 36, 3: 1 << 37, 4: 1 << 37},
    ),
}
"""Each kind of statistic; docs/proofs/regressors.md, ols.md and scores.md have the proofs."""


@dataclass(frozen=True)
class Statistic:
    """Integers of all rows that are released with two-sided geometric noise on each.

    Attributes
    ----------
    description : str
        The sums in words, for people.
    kind : str
        The key of `RULES` that states their sensitivity.
    size : int
        Number of integers.
    steps : int
        The largest integer that one label adds; 1 for counts. Of a score, the most that its sums move in all.
    epsilon : Fraction
        Their cost.
    purpose : str
        The purpose of the charge that paid for them.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from labeldp.accounts import Statistic
    >>> counts = Statistic("counts of windows", "counts", 16, 1, Fraction(1, 10))
    >>> counts.sensitivity, counts.noise.scale
    (2, Fraction(20, 1))
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("sensitivity", "noise", "scale")
    description: str
    kind: str
    size: int
    steps: int
    epsilon: Fraction
    purpose: str = "sums"

    def __post_init__(self) -> None:
        steps = RULES[self.kind].steps
        fits = 1 <= self.size < 1 << 63 and self.steps == steps.get(self.size, steps.get(0))
        if not fits or self.epsilon <= 0:
            raise ParameterError(
                f"a statistic of the kind {self.kind!r} and epsilon {self.epsilon} does not hold {self.size:,} "
                f"integers of {self.steps} steps"
            )

    def __str__(self) -> str:
        return f"{self.description}: {NOISE} noise of scale {self.noise.scale}"

    @property
    def sensitivity(self) -> int:
        """The most that one label moves the integers, in the sum of absolute values."""
        return RULES[self.kind].factor * self.steps

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The noise on each integer."""
        return DiscreteLaplace.calibrated(sensitivity=self.sensitivity, epsilon=self.epsilon)

    @cached_property
    def derived(self) -> Data:
        """The members of a card's entry that follow from its fields."""
        return {"sensitivity": self.sensitivity, "noise": NOISE, "scale": self.noise.scale}

    @classmethod
    def refuse_unknown(cls, data: Data) -> None:
        """Refuse a kind or noise that another version may know."""
        kind, noise = data.get("kind"), data.get("noise", NOISE)
        if isinstance(kind, str) and isinstance(noise, str) and (kind not in RULES or noise != NOISE):
            raise UncheckableError(
                f"the card has a statistic of the kind {kind[:60]!r} with {noise[:60]!r} noise, "
                "which this version does not know, so it cannot verify the card"
            )
