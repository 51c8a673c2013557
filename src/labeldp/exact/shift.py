"""The shift channel: additive noise, one row of counts shared by all labels.

Labels live on a grid of ``steps`` + 1 rows (between two rows they are rounded to one at random), the
noise is an integer number of steps, and the released step is clamped to ``margin`` steps outside the
interval. Row k's counts are the noise's counts, shifted by k and clamped: a table that is never
written out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from labeldp._values import Array, Data, Numbers, Words
from labeldp.errors import NotUnbiasedError, PrivacyProofError
from labeldp.exact.proof import (
    WORDS,
    Channel,
    Promise,
    Proof,
    exp_lower,
    float_above,
    portable,
    prove_pure,
)
from labeldp.exact.sampling import Domain, Grid, alias_tables, draw, frozen_copy, recount, verified_counts
from labeldp.exact.word_sources import WordSource

UNBIASED = 1e-5
"""A clamping bias this small, in units of the noise's deviation, counts as unbiased."""


@dataclass(frozen=True, slots=True)
class ShiftChannel(Channel):
    """Additive integer noise on a public grid.

    Parameters
    ----------
    low, high : float
        Labels are clipped to this interval; both ends are on the grid.
    steps : int
        Grid steps between low and high.
    margin : int
        Outputs are clamped to this many steps outside the interval.
    reach : int
        The noise lies in −reach … reach.
    table : array of uint64
        Packed alias table of the noise, as built by `ShiftChannel.from_counts`.
    promise : Promise
        The (ε, δ) that `verify` compares the counts with.
    rule : mapping, optional
        The rule of the counts that a card states, see ``docs/formats.md``; by default a card lists them.

    Examples
    --------
    Noise of −2 … 2 steps on a grid of one step from 0 to 1, with counts that halve with each step: outputs from
    −1 to 2, and ends that take their tails.

    >>> import math
    >>> from labeldp.mechanisms import WORDS, Promise, ShiftChannel
    >>> unit = WORDS // 12
    >>> counts = [2 * unit, 2 * unit, WORDS - 8 * unit, 2 * unit, 2 * unit]
    >>> channel = ShiftChannel.from_counts(0.0, 1.0, 1, 1, counts, Promise.of(math.log(2) + 1e-9))
    >>> round(channel.verify().epsilon, 6)
    0.693147
    """

    low: float
    high: float
    steps: int
    margin: int
    reach: int
    table: Words
    promise: Promise
    rule: Mapping[str, Any] | None = None
    _by_row: tuple[Array, Array] = field(init=False, repr=False, compare=False)

    @classmethod
    def from_counts(
        cls,
        low: float,
        high: float,
        steps: int,
        margin: int,
        counts: Sequence[int],
        promise: Promise,
        rule: Mapping[str, Any] | None = None,
    ) -> ShiftChannel:
        """Build the channel from plain integer counts of the noise −reach … reach.

        Parameters
        ----------
        low, high : float
            Labels are clipped to this interval; both ends are on the grid.
        steps : int
            Grid steps between low and high.
        margin : int
            Outputs are clamped to this many steps outside the interval.
        counts : sequence of int
            The number of the 2^64 words of each noise value; an odd number of counts.
        promise : Promise
            The ε and δ that the counts must satisfy.
        rule : mapping, optional
            The rule of the counts that a card states.

        Raises
        ------
        PrivacyProofError
            If the counts break the promise.
        """
        reach = len(counts) // 2
        return cls(low, high, steps, margin, reach, alias_tables([counts])[0], promise, rule)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", frozen_copy(self.table))
        object.__setattr__(self, "_proof", self.verify())
        object.__setattr__(self, "_by_row", self._row_moments())

    @property
    def _domain(self) -> Domain:
        return Domain(self.low, self.high, self.steps)

    def counts(self) -> Words:
        """Return the words of each noise value, read back from the table that `sample` uses."""
        return recount(self.table)[: 2 * self.reach + 1]

    def as_data(self) -> Data:
        """Return the integers as pure data, for a card; long counts by the rule that they follow from."""
        counts = self.counts().tolist()
        rule = self.rule or {"rule": "listed", "listed": portable(counts)}
        return {
            "kind": "shift",
            **{name: getattr(self, name) for name in ("low", "high", "steps", "margin", "reach")},
            "promise": self.promise.as_data(),
            "counts": {name: str(value) if isinstance(value, Fraction) else value for name, value in rule.items()},
            "counts_sha256": hashlib.sha256(",".join(map(str, counts)).encode()).hexdigest(),
        }

    # ---- proof --------------------------------------------------------------------------------

    def verify(self) -> Proof:
        """Prove (ε, δ) from the table that `sample` uses.

        For δ = 0: at every output the largest and the smallest count over all rows are compared,
        which covers every pair of rows. For δ > 0: the exact δ at the promised ε, for every shift.

        Raises
        ------
        PrivacyProofError
            If the counts break the promise.
        """
        integers = all(type(n) is int for n in (self.steps, self.margin, self.reach))
        if not (integers and self.steps >= 1 and self.reach >= 1 and 0 <= self.margin <= self.reach):
            raise PrivacyProofError("steps and reach must be positive integers, margin one between 0 and reach")
        self._domain.verify()
        counts = verified_counts(self.table, 1, 2 * self.reach + 1)
        return self._prove_delta(counts) if self.promise.delta else self._prove_ratios(counts)

    def _prove_ratios(self, counts: Words) -> Proof:
        farthest = self.steps + self.margin
        if self.reach < farthest:
            raise PrivacyProofError("the noise does not reach every output from every label")
        # Output o, unclamped, has counts[o − k] under row k: slide a window over the noise.
        inner = counts[self.reach - farthest + 1 : self.reach + farthest]
        largest = _sliding(np.maximum, inner, self.steps + 1)
        smallest = _sliding(np.minimum, inner, self.steps + 1)
        pairs = list(zip(largest.tolist(), smallest.tolist(), strict=True))
        for tail in (counts, counts[::-1]):  # the two clamped outputs take whole tails
            start = self.reach - farthest
            ends = np.cumsum(tail)[start : start + self.steps + 1].tolist()
            pairs.append((max(ends), min(ends)))
        return prove_pure(pairs, self.promise)

    def _prove_delta(self, counts: Words) -> Proof:
        bound, worst = exp_lower(self.promise.epsilon), Fraction(0)
        directions = [counts] if np.array_equal(counts, counts[::-1]) else [counts, counts[::-1]]
        widest = min(self.steps, counts.size)  # from there on nothing overlaps, and all shifts are as bad
        # the widest shift is mostly the worst, and most others are below it
        for noise, shift in product(directions, range(widest, 0, -1)):
            if _hockey_stick_below(noise, shift, bound) >= worst:
                worst = max(worst, _hockey_stick(noise, shift, bound))
            if worst > self.promise.delta:
                raise PrivacyProofError(
                    f"delta is {float(worst):.6g} at epsilon={float(self.promise.epsilon)}, above the "
                    f"promised {float(self.promise.delta)}: this channel must not be used"
                )
        return Proof(float_above(self.promise.epsilon), float_above(worst))

    # ---- sampling -----------------------------------------------------------------------------

    def sample(self, labels: Numbers, source: WordSource, out: Array) -> None:
        """Randomise ``labels`` (1-D, finite) into ``out``: one word a label, and half a word to round."""
        outputs = self._outputs
        for piece, cell, word in self._domain.rounded_pieces(labels, source):
            np.add(cell, draw(self.table, None, word), out=cell)
            np.clip(cell, outputs.first, outputs.last, out=cell)
            outputs.release(cell, out[piece])

    @property
    def _outputs(self) -> Grid:
        step, middle = self._domain.step, self.reach
        return Grid(self.low - middle * step, step, middle - self.margin, middle + self.steps + self.margin)

    def nearest_output(self, values: Array) -> Array:
        """Return the output nearest to each value."""
        return self._outputs.nearest(values)

    # ---- moments ------------------------------------------------------------------------------

    def _row_moments(self) -> tuple[Array, Array]:
        """Return mean shift and variance of each row's output, in steps.

        Clamping replaces noise beyond the margin by the distance to it: a correction by tails.
        """
        share = self.counts().astype(np.float64) / WORDS
        noise = np.arange(-self.reach, self.reach + 1, dtype=np.float64)
        powers = noise ** np.arange(3)[:, None]
        rows = np.arange(self.steps + 1)
        first = np.full(rows.size, share @ noise)
        second = np.full(rows.size, share @ noise**2)
        for side, room in ((1, self.margin + self.steps - rows), (-1, self.margin + rows)):
            reversed_moments = (share[::side] * powers)[:, ::-1]
            tails = np.cumulative_sum(reversed_moments, axis=1, include_initial=True)
            mass, weighted, squared = tails[:, np.maximum(self.reach + 1 - room, 0)]
            first -= side * (weighted - room * mass)
            second -= squared - room**2 * mass
        return first, second - first**2

    def moments(self, labels: Numbers) -> tuple[Array, Array]:
        """Return mean and variance of the released value for each label, rounding included."""
        bias, variance = self._by_row
        step = self._domain.step
        mean, variance = self._domain.mixed_moments(labels, np.arange(self.steps + 1) + bias, variance)
        return np.asarray(self.low + step * mean), np.asarray(step**2 * variance)

    @property
    def unbiased(self) -> bool:
        """True if clamping moves no row's mean by more than a trace of the noise."""
        bias, variance = self._by_row
        return bool(np.abs(bias).max() <= UNBIASED * np.sqrt(variance.min()))

    def slope(self) -> float:
        """Return 1, the slope of E[z|y], or raise if outputs are biased."""
        if not self.unbiased:
            raise NotUnbiasedError("the noise is clamped so closely that outputs are biased")
        return 1.0

    def cumulative(self, label: float, points: Array) -> Array:
        """Return P(z ≤ point | label)."""
        (row,), (up,) = self._domain.split(np.array([label]))
        below = np.cumulative_sum(self.counts().astype(np.float64) / WORDS, include_initial=True)
        grid = self._outputs
        released = np.arange(grid.first, grid.last + 1) * grid.step + grid.start
        outputs = np.searchsorted(released, points, side="right")  # at or below each point
        cells = outputs + grid.first
        lower = below[np.clip(cells - row, 0, 2 * self.reach + 1)]
        upper = below[np.clip(cells - row - 1, 0, 2 * self.reach + 1)]
        result = (1 - up) * lower + up * upper
        return np.where(outputs == 0, 0.0, np.where(outputs == released.size, 1.0, result))


def _sliding(extreme: np.ufunc, values: Words, width: int) -> Words:
    """Return the extreme of each window of ``width`` values, by doubling."""
    result, span = values, 1
    while span < width:
        hop = min(span, width - span)
        result = extreme(result[:-hop], result[hop:])
        span += hop
    return result


def _hockey_stick_below(counts: Words, shift: int, bound: Fraction) -> Fraction:
    """Return an upper bound of `_hockey_stick`, from floats and their largest errors.

    Both summands of a term are wrong by less than 2^-51 of themselves, and those of all terms sum to 2^64 and to
    bound · 2^64. Adding n terms that are not negative is wrong by less than n · 2^-52 of their sum.
    """
    floats = counts.astype(np.float64)
    gaps = floats[shift:] - floats[:-shift] * float(bound)
    positive = np.maximum(gaps, 0.0, out=gaps)
    total = Fraction(float(floats[:shift].sum() + positive.sum()))
    error_of_sum = total * Fraction(counts.size + 4, 1 << 52)
    error_of_terms = (1 + bound) * (1 << 13)
    return (total + error_of_sum + error_of_terms) / WORDS


def _hockey_stick(counts: Words, shift: int, bound: Fraction) -> Fraction:
    """Return Σ max(0, P(o) − bound·P(o − shift)), exactly, over all outputs o, in Python's integers."""
    counts = counts.astype(object)
    shifted = np.append([0] * shift, counts)[: counts.size]
    excess = counts * bound.denominator - shifted * bound.numerator
    return Fraction(np.maximum(excess, 0).sum(), bound.denominator * WORDS)
