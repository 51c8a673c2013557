"""From a label to its row, and from a word to its cell: shared by all samplers, and read back by proofs.

Labels are clipped to a public interval that is cut into equal steps; the row is one of their ends, or a step.

A row of counts that sum to 2^64 is sampled with one word, by an alias table in exact integers: over 2^k columns it
gives each column 2^(64−k) words. A word's first k bits name the column, the others are compared with the column's
threshold: below it the column itself is the result, else its alias. Threshold and alias are packed into one 64-bit
entry, so a draw is one look-up. Nothing is rounded: `recount` gives back the very counts that went in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeldp._values import Array, Bounds, Index, Mask, Numbers, Words
from labeldp.errors import PrivacyProofError
from labeldp.exact.proof import WORDS
from labeldp.exact.word_sources import CHUNK, WordSource

TOP = 2.0**52
"""Above, floats are integers."""

TOP_BITS = np.int64(0x4330000000000000)
"""The bits of 2^52 as a float."""

MAX_STEPS = 1 << 51
"""With more steps, positions of labels two widths away would not be exact above 2^52."""

MAX_BITS = 17
"""Rows of at most 2^17 columns: larger tables leave the cache."""


def pieces(size: int) -> Iterator[slice]:
    """Cut ``range(size)`` into slices of at most `CHUNK`."""
    for start in range(0, size, CHUNK):
        yield slice(start, min(start + CHUNK, size))


def frozen_copy(array: Numbers) -> Numbers:
    """Return a copy that is read-only for good: NumPy never lets memory of ``bytes`` be written to.

    Examples
    --------
    >>> copy = frozen_copy(np.array([1, 2]))
    >>> copy.flags.writeable = True
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    plain = np.array(array)
    return np.frombuffer(plain.tobytes(), plain.dtype).reshape(plain.shape)


class Grid(NamedTuple):
    """Outputs that are equally spaced: cell c, from ``first`` to ``last``, is released as start + c · step."""

    start: float
    step: float
    first: int
    last: int

    def release(self, cell: Index, out: Array) -> None:
        """Write the output of each cell into ``out``."""
        np.multiply(cell, self.step, out=out)
        out += self.start

    def nearest(self, values: Array) -> Array:
        """Return the output nearest to each value."""
        cell = np.clip(np.rint((values - self.start) / self.step), self.first, self.last)
        return np.asarray(cell * self.step + self.start)


def nearest_of(candidates: Array, values: Array) -> Array:
    """Return the candidate nearest to each value."""
    candidates = np.sort(candidates)
    last = candidates.size - 1
    index = np.searchsorted(candidates, values).clip(min(1, last), last)
    above = candidates[index]
    below = candidates[np.maximum(index - 1, 0)]
    return np.asarray(np.where(values - below < above - values, below, above))


def select(condition: Mask, yes: Words, no: Words) -> Words:
    """Return ``no``, overwritten by ``yes`` where the condition holds, by masks: the same time for every word."""
    mask = np.negative(condition.view(np.int8)).astype(np.int64).view(np.uint64)
    yes ^= no
    yes &= mask
    no ^= yes
    return no


@dataclass(frozen=True, slots=True)
class Domain:
    """The interval [low, high] cut into ``steps`` equal steps: rows 0 … steps.

    Labels outside are clipped. Arithmetic starts a width or two away from the interval, so that a subnormal
    label never reaches a multiplication, whose time would leak it. It ends with a clip to rows that exist, so
    that no rounding error can break a proof.
    """

    low: float
    high: float
    steps: int

    def verify(self) -> None:
        """Refuse an interval or steps that would give a label a row that does not exist.

        Raises
        ------
        ParameterError
            If low and high are no interval: a position that is not a number has bits too.
        PrivacyProofError
            If there are no steps, or too many.
        """
        Bounds((self.low, self.high), "low and high")
        if type(self.steps) is not int or not 1 <= self.steps <= MAX_STEPS:
            raise PrivacyProofError("steps must be an integer from 1 to 2^51")

    @property
    def step(self) -> float:
        """The distance between two neighbouring rows, in units of the label."""
        return (self.high - self.low) / self.steps

    @property
    def _lead(self) -> int:
        """The number of widths below the interval at which arithmetic starts: not at zero."""
        width = self.high - self.low
        return 2 if abs(self.low - width) < width / 2 else 1

    def _position(self, labels: Numbers, out: Array) -> Array:
        """Return the position of each label in steps, too large by the lead, and clipped a width or more away."""
        width = self.high - self.low
        np.subtract(labels, np.float64(self.low - self._lead * width), out=out)
        np.clip(out, 0.0, (self._lead + 2) * width, out=out)  # NumPy takes time over an overflow
        out *= self.steps / width
        return out

    def _round(self, position: Array, offset: float) -> Index:
        """Return the integer nearest to position − lead − offset, clipped to rows that exist.

        Above 2^52 floats are integers: adding 2^52 rounds, and the low bits are the result. That is
        several times faster than a conversion. Bits are clipped, not floats: they are in the floats' order, those
        of negative ones below, and NaN passes no clip of integers.
        """
        position += TOP - self._lead * self.steps - offset
        rows = position.view(np.int64)
        np.clip(rows, TOP_BITS, TOP_BITS + self.steps, out=rows)
        rows -= TOP_BITS
        return rows

    def nearest(self, labels: Numbers, scratch: Array) -> Index:
        """Return the nearest row of each label, in ``scratch``'s memory."""
        return self._round(self._position(labels, scratch), 0.0)

    def rounded(self, labels: Numbers, bits: NDArray[np.uint32], scratch: Array) -> Index:
        """Return one of the two neighbouring rows, at random so that the mean is the label's position."""
        position = self._position(labels, scratch)
        position += bits * 2.0**-32
        return self._round(position, 0.5)

    def rounded_pieces(self, labels: Numbers, source: WordSource) -> Iterator[tuple[slice, Index, Words]]:
        """Yield piece by piece where its labels are, their rows, rounded at random, and a word for each."""
        size = min(CHUNK, labels.size)
        words = np.empty(size + (size + 1) // 2, dtype=np.uint64)
        scratch = np.empty(size)
        for piece in pieces(labels.size):
            count = piece.stop - piece.start
            word = words[: count + (count + 1) // 2]
            source.fill(word)
            rounding = word[count:].view(np.uint32)[:count]
            yield piece, self.rounded(labels[piece], rounding, scratch[:count]), word[:count]

    def piece(self, labels: Numbers, scratch: Array) -> Index:
        """Return the step that each label lies in, 0 … steps − 1."""
        position = self._position(labels, scratch)
        position += 2.0**-20  # a label on an edge belongs to the step above, not to the even one
        rows = self._round(position, 0.5)
        return np.minimum(rows, self.steps - 1, out=rows)

    def split(self, labels: Numbers) -> tuple[Index, Array]:
        """Return the lower neighbouring row, and the probability of rounding up from it."""
        position = self._position(labels, np.empty(labels.shape)) - self._lead * self.steps
        np.clip(position, 0.0, float(self.steps), out=position)
        rows = np.minimum(position.astype(np.int64), self.steps - 1)
        return rows, position - rows

    def mixed_moments(self, labels: Numbers, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return mean and variance for labels rounded at random to rows with these: rounding included."""
        row, up = self.split(labels)
        between = up * (1 - up) * (mean[row + 1] - mean[row]) ** 2
        within = (1 - up) * variance[row] + up * variance[row + 1]
        return (1 - up) * mean[row] + up * mean[row + 1], within + between


# ---- alias tables -----------------------------------------------------------------------------


def alias_tables(rows: Sequence[Sequence[int]]) -> Words:
    """Return the packed table of each row.

    Parameters
    ----------
    rows : sequence of sequences of int
        Words for each output; those of a row must sum to 2^64.
    """
    for counts in rows:
        if set(map(type, counts)) != {int} or sum(counts) != WORDS or min(counts) < 0:
            raise PrivacyProofError("a row's counts must be non-negative integers that sum to 2^64")
        if len(counts) > 1 << MAX_BITS:
            raise PrivacyProofError(f"a row has {len(counts)} outputs; at most 2^{MAX_BITS} are possible")
    return np.array([_alias_table(counts) for counts in rows])


def _alias_table(counts: Sequence[int]) -> Words:
    """Return the packed table of a row, by Vose's method, in integers."""
    bits = max(1, (len(counts) - 1).bit_length())
    capacity = WORDS >> bits
    words = [*counts, *[0] * ((1 << bits) - len(counts))]
    packed = list(range(len(words)))  # a full column is its own alias, and its threshold does not matter
    small = [column for column, count in enumerate(words) if count < capacity]
    large = [column for column, count in enumerate(words) if count > capacity]
    for column in small:  # grows while we walk: a large column ends up small
        donor = large[-1]  # there is one: columns not yet filled hold as much as they can, together
        packed[column] = (words[column] << bits) | donor
        words[donor] -= capacity - words[column]
        if words[donor] <= capacity:
            large.pop()
            if words[donor] < capacity:
                small.append(donor)
    return np.array(packed, dtype=np.uint64)


def bits_of(table: Words) -> int:
    """Return k for a table of rows of 2^k entries."""
    return int(table.shape[-1]).bit_length() - 1


def recount(table: Words) -> Words:
    """Return the number of words that `draw` maps to each column, from the table itself: a row, or all."""
    width, bits = table.shape[-1], bits_of(table)
    capacity = np.uint64(WORDS >> bits)
    alias = table & np.uint64(width - 1)
    threshold = table >> np.uint64(bits)
    counts = threshold.copy()
    first_of_row = np.arange(0, table.size, width)[:, None]
    index = alias.astype(np.int64).reshape(-1, width) + first_of_row
    above = (capacity - threshold).reshape(-1)  # of a column that is its own alias, with the threshold all of it
    np.add.at(counts.reshape(-1), index.reshape(-1), above)
    return counts


def verified_counts(table: Words, dimensions: int, outputs: int) -> Words:
    """Return the counts of `recount`, if `draw` can read the table and each word leads to one of the outputs."""
    width = table.shape[-1] if table.ndim == dimensions else 0
    if width < 2 or width & (width - 1) or table.dtype != np.uint64:
        rows = "one row" if dimensions == 1 else "rows"
        raise PrivacyProofError(f"a channel of this kind is packed as {rows} of 2, 4, 8 … 64-bit entries")
    counts = recount(table)[..., :outputs]
    if not 0 < outputs <= width or any(sum(row) != WORDS for row in counts.reshape(-1, outputs).tolist()):
        raise PrivacyProofError("counts do not sum to 2^64: words lead to an output that does not exist")
    return counts


def draw(table: Words, row_start: Index | None, word: Words) -> Index:
    """Return a column for each word; overwrites ``word``.

    Parameters
    ----------
    table : array of rows of 2^k entries
    row_start : array of int or None
        Where each word's row starts in the flattened table; None if there is only one row.
    """
    bits = bits_of(table)
    mask = np.uint64(table.shape[-1] - 1)
    column = word >> np.uint64(64 - bits)
    entry_index = column.view(np.int64)
    if row_start is not None:
        entry_index = entry_index + row_start
    entry = table.reshape(-1).take(entry_index, mode="clip")
    word <<= np.uint64(bits)
    word |= mask
    below = word < entry
    entry &= mask
    return select(below, column, entry).view(np.int64)
