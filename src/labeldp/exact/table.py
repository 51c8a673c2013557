"""The table channel: one row of counts for each of equally spaced labels.

A label between two rows is first rounded to one of them at random, so that the mean of the rounded
label is the label; the row's counts do the rest. A label's distribution is then a mixture of two
neighbouring rows, and what holds for every pair of rows holds for every pair of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from labeldp._values import Array, Data, Numbers, Words
from labeldp.errors import NotUnbiasedError, PrivacyProofError
from labeldp.exact.proof import WORDS, Channel, Promise, Proof, portable, prove_pure
from labeldp.exact.sampling import (
    Domain,
    alias_tables,
    bits_of,
    draw,
    frozen_copy,
    nearest_of,
    recount,
    verified_counts,
)
from labeldp.exact.word_sources import WordSource

UNBIASED = 1e-9
"""Row means this close to their labels, in units of the label range, count as unbiased."""


@dataclass(frozen=True, slots=True)
class TableChannel(Channel):
    """Rows of integer counts that sum to 2^64.

    Parameters
    ----------
    low, high : float
        The labels of the first and the last row; labels outside are clipped.
    values : array of float
        The released value of each output.
    table : array of uint64, rows × 2^k
        Packed alias tables, as built by `TableChannel.from_counts`.
    promise : Promise
        The ε that `verify` compares the counts with.

    Examples
    --------
    Randomised response on two outputs, for ε = log 3: three words of four lead to the true end.

    >>> import numpy as np
    >>> from labeldp.mechanisms import WORDS, Promise, TableChannel
    >>> quarter = WORDS // 4
    >>> counts = [[3 * quarter, quarter], [quarter, 3 * quarter]]
    >>> channel = TableChannel.from_counts(0.0, 5.0, [-2.5, 7.5], counts, Promise.of(1.0987))
    >>> channel.verify().worst_ratio
    Fraction(3, 1)
    >>> channel.mean(np.array([0.0, 1.0, 5.0])).round(9).tolist()            # unbiased
    [0.0, 1.0, 5.0]
    """

    low: float
    high: float
    values: Array
    table: Words
    promise: Promise
    _by_row: tuple[Array, Array] = field(init=False, repr=False, compare=False)

    @classmethod
    def from_counts(
        cls,
        low: float,
        high: float,
        values: Sequence[float] | Array,
        counts: Sequence[Sequence[int]],
        promise: Promise,
    ) -> TableChannel:
        """Build the channel from plain integer counts, one row for each label.

        Parameters
        ----------
        low, high : float
            The labels of the first and the last row.
        values : sequence of float
            The released value of each output.
        counts : sequence of sequences of int
            For each of equally spaced labels, the number of the 2^64 words of each output.
        promise : Promise
            The ε that the counts must satisfy.

        Raises
        ------
        PrivacyProofError
            If the counts break the promise.
        """
        return cls(low, high, np.array(values, dtype=np.float64), alias_tables(counts), promise)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen_copy(self.values))
        object.__setattr__(self, "table", frozen_copy(self.table))
        object.__setattr__(self, "_proof", self.verify())
        object.__setattr__(self, "_by_row", self._row_moments())

    @property
    def _domain(self) -> Domain:
        return Domain(self.low, self.high, len(self.table) - 1)

    def counts(self) -> Words:
        """Return rows × outputs: the word counts, read back from the tables that `sample` uses."""
        return recount(self.table)[:, : self.values.size]

    def as_data(self) -> Data:
        """Return the integers as pure data, for a card."""
        return {
            "kind": "table",
            "low": self.low,
            "high": self.high,
            "promise": self.promise.as_data(),
            "values": self.values.tolist(),
            "counts": portable(self.counts().tolist()),
        }

    def verify(self) -> Proof:
        """Prove ε from the tables that `sample` uses: every output, every pair of rows.

        Raises
        ------
        PrivacyProofError
            If the counts break the promise.
        """
        counts = verified_counts(self.table, 2, self.values.size)
        if len(self.table) < 2:
            raise PrivacyProofError("a table channel needs two rows")
        self._domain.verify()
        pairs = zip(counts.max(axis=0).tolist(), counts.min(axis=0).tolist(), strict=True)
        return prove_pure(pairs, self.promise)

    def sample(self, labels: Numbers, source: WordSource, out: Array) -> None:
        """Randomise ``labels`` (1-D, finite) into ``out``: one word a label, and half a word to round."""
        row_bits = bits_of(self.table)
        for piece, rows, word in self._domain.rounded_pieces(labels, source):
            np.left_shift(rows, row_bits, out=rows)
            self.values.take(draw(self.table, rows, word), out=out[piece], mode="clip")

    def nearest_output(self, values: Array) -> Array:
        """Return the output nearest to each value."""
        return nearest_of(self.values, values)

    # ---- moments ------------------------------------------------------------------------------

    def _row_moments(self) -> tuple[Array, Array]:
        """Return mean (minus `low`) and variance of each row."""
        probability = self.counts().astype(np.float64) / WORDS
        values = self.values - self.low
        mean = probability @ values
        variance = np.einsum("ro,ro->r", probability, (values[None, :] - mean[:, None]) ** 2)
        return mean, variance

    def moments(self, labels: Numbers) -> tuple[Array, Array]:
        """Return mean and variance of the released value for each label, rounding included."""
        mean, variance = self._domain.mixed_moments(labels, *self._by_row)
        return np.asarray(self.low + mean), variance

    def slope(self) -> float:
        """Return 1, the slope of E[z|y], or raise if rows do not average to their labels."""
        mean, _ = self._by_row
        width = self.high - self.low
        rounding = 4 * float(np.spacing(np.abs(self.values).max()))
        if np.abs(mean - np.linspace(0, width, mean.size)).max() > UNBIASED * width + rounding:
            raise NotUnbiasedError("the rows of this table do not average to their labels")
        return 1.0

    def cumulative(self, label: float, points: Array) -> Array:
        """Return P(z ≤ point | label)."""
        (row,), (up,) = self._domain.split(np.array([label]))
        lower, upper = self.counts()[row : row + 2].astype(np.float64) / WORDS
        order = np.argsort(self.values, kind="stable")
        total = np.cumulative_sum(((1 - up) * lower + up * upper)[order], include_initial=True)
        return total[np.searchsorted(self.values[order], points, side="right")]
