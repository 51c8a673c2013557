"""`LabelAccess`, which alone holds labels, and `Measurement`, which alone comes out of it.

Labels leave in two ways. A query's integer sums over rows get exact noise (`LabelAccess.measure`), or labels are
randomised by the channel of a mechanism (`LabelAccess.randomize`). Each measurement is planned from public values
and earlier measurements, and spends ε that the ledger was charged for before. All noise is drawn by
`LabelAccess._draw`: tests replay and audit there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from labeldp._values import Array, Counts, Index, Interval, Numbers, Sums
from labeldp.accounts.budget import Charge, Purpose
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scope import Scope
from labeldp.accounts.statistic import Statistic, proven_cost
from labeldp.errors import PrivacyProofError
from labeldp.exact.word_sources import SecureWords, WordSource
from labeldp.mechanisms.base import Mechanism
from labeldp.release.queries import CellQuery, Cells, Query

Noise = TypeVar("Noise", Statistic, Mechanism)


@dataclass(frozen=True, slots=True)
class RowIntervals:
    """Rows, and the interval of each, in which a label is randomised as a position from 0 to 1.

    Attributes
    ----------
    rows : array of int
    low, width : arrays
        The interval of each row.
    limits : (lo, hi)
        Labels are clipped to them first.
    """

    rows: Index = field(repr=False)
    low: Array = field(repr=False)
    width: Array = field(repr=False)
    limits: Interval

    def positions(self, labels: Array) -> Array:
        """Return the positions of these rows' labels; a channel clips them to its domain."""
        return (np.clip(labels[self.rows], *self.limits) - self.low) / self.width


@dataclass(frozen=True, slots=True)
class Measurement(Generic[Noise]):
    """Numbers that were released about labels, and all that is public about them.

    Attributes
    ----------
    values : array
        Sums with noise; or a private value for each row.
    public_map : Query, RowIntervals or None
        The public function of labels that was measured; None for the labels themselves.
    noise : Statistic or Mechanism
        The exact distribution of the noise, with its ε.
    public_sums : sequence of arrays
        Sums over the same rows that no label enters.
    """

    values: Any = field(repr=False)
    public_map: Query | RowIntervals | None
    noise: Noise
    public_sums: Sequence[Sums] = field(default=(), repr=False)


class LabelAccess:
    """Labels in memory, of which measurements are taken; ``repr`` shows none of them.

    Parameters
    ----------
    labels : array
        Checked labels.
    source : source of words
    purpose : str
        The purpose of the charge that pays for sums.

    Attributes
    ----------
    remaining : Fraction
        The ε that is left for measurements of all rows.
    for_labels : Fraction
        The ε for randomising each label once.
    statistics : list of Statistic
        The sums that were released, for a card.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts.budget import new_charge
    >>> from labeldp.exact import SecureWords
    >>> from labeldp.release.queries import BinCounts, Cells
    >>> access = LabelAccess(np.full(1000, 0.3), SecureWords())
    >>> charge = new_charge("counts", ldp.Budget(1), purpose="sums")
    >>> access.charge(ldp.Ledger(), [charge], epsilon=Fraction(1))
    >>> query = BinCounts.equal(Cells((0.0, 1.0), 4), 4, "counts of quarters")
    >>> counts = access.measure(query, Fraction(1, 2))
    >>> bool(counts.values[1] > 900), counts.noise.sensitivity, access.remaining
    (True, 2, Fraction(1, 2))
    """

    def __init__(self, labels: Numbers, source: WordSource, purpose: Purpose = "sums") -> None:
        self._labels, self._source, self._purpose = labels, source, purpose
        self._counts: dict[Cells, Counts] = {}
        self._is_randomized = np.zeros(labels.size, dtype=np.bool_)
        self._lock = threading.Lock()
        self.remaining = self.for_labels = Fraction(0)
        self.statistics: list[Statistic] = []

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._labels.size)

    @property
    def rows_epsilon(self) -> float:
        """Rows times the remaining ε: a noisy count of all rows has a relative error of about its inverse."""
        return self.rows * float(self.remaining)

    @property
    def is_secure(self) -> bool:
        """False if noise comes from a seed."""
        return isinstance(self._source, SecureWords)

    def charge(
        self,
        ledger: Ledger,
        charges: Sequence[Charge],
        scope: Scope | None = None,
        *,
        epsilon: Fraction,
        for_labels: Fraction = Fraction(0),
    ) -> None:
        """Charge a ledger, and allow measurements for that.

        Parameters
        ----------
        ledger : Ledger
        charges : sequence of Charge
            The cost of these labels beyond earlier charges for them, as for rows that a fit left out.
        scope : Scope, optional
            As for `Ledger.charge_all`.
        epsilon, for_labels : Fraction
            The ε of one label in measurements of all rows, and where it is randomised.
        """
        ledger.charge_all(charges, scope)
        self.remaining += epsilon
        self.for_labels += for_labels

    def give_to_labels(self) -> None:
        """Give the ε that is left to the randomisation of labels."""
        self.for_labels += self.remaining
        self.remaining = Fraction(0)

    # ---- measurements -----------------------------------------------------------------------------

    def count_ahead(self, cells: Cells) -> None:
        """Count labels in cells, and keep the exact counts here: what fails then costs nothing."""
        if cells not in self._counts:
            self._counts[cells] = self._add_up(cells)

    def measure(self, query: Query, epsilon: Fraction) -> Measurement[Statistic]:
        """Return a query's sums over all rows, with noise, for ε.

        Raises
        ------
        PrivacyProofError
            If less ε is left, or one label could move the sums by more than the noise is for; then no label is
            read.
        """
        statistic = query.statistic(epsilon, self._purpose)
        self._spend(epsilon, statistic.description)
        exact, *public = self._answer(query)
        values = self._draw(query, statistic, exact)
        self.statistics.append(statistic)
        return Measurement(values, query, statistic, public)

    def randomize(self, mechanism: Mechanism, intervals: RowIntervals | None = None) -> Measurement[Mechanism]:
        """Return the values that a mechanism draws for labels, each of which may be randomised once.

        Parameters
        ----------
        mechanism : Mechanism
        intervals : RowIntervals, optional
            Some rows, whose positions are randomised; by default, all labels as they are.

        Raises
        ------
        PrivacyProofError
            If the mechanism costs more than there is, or a label was randomised before; then nothing is released.
        """
        self._mark_rows(None if intervals is None else intervals.rows)
        labels = self._labels if intervals is None else intervals.positions(self._labels)
        return Measurement(self._randomize(intervals, mechanism, labels), intervals, mechanism)

    def report(self, mechanism: Mechanism) -> Iterator[Array]:
        """Yield the values that a mechanism draws for all labels, batch by batch, for a statistic of them."""
        self._spend(proven_cost(mechanism).exact_epsilon, "reports")
        for labels in self._batches():
            yield self._draw(None, mechanism, labels)

    def require_all_randomized(self) -> None:
        """Raise unless every label was randomised."""
        if not self._is_randomized.all():
            raise PrivacyProofError(
                "not every row was drawn exactly once: a fault of the program, so nothing was released"
            )

    # ---- labels -------------------------------------------------------------------------------------

    def _batches(self) -> Iterator[Numbers]:
        """Yield all labels."""
        yield self._labels

    def _add_up(self, query: Query | Cells) -> Sums:
        """Return the exact answer of a query over all rows."""
        return sum((query.answer(labels) for labels in self._batches()), np.zeros((), dtype=np.int64))

    def _answer(self, query: Query) -> Sums:
        """Return the exact answer of a query, from counts in cells where it needs no more."""
        if not isinstance(query, CellQuery):
            return self._add_up(query)
        self.count_ahead(query.cells)
        return query.of_counts(self._counts[query.cells])

    def _draw(self, public_map: Query | RowIntervals | None, noise: Statistic | Mechanism, exact: Any) -> Any:
        """Return integers with noise, or randomised labels: all that leaves passes here."""
        if isinstance(noise, Statistic):
            return noise.noise.release(exact, self._source)
        return noise.randomize_checked(exact, self._source)

    def _randomize(self, intervals: RowIntervals | None, mechanism: Mechanism, labels: Numbers) -> Array:
        """Return values that a mechanism draws, if it costs no more than the ε paid for labels."""
        if proven_cost(mechanism).exact_epsilon > self.for_labels:
            raise PrivacyProofError("labels would cost more than was paid for them, so nothing was released")
        values: Array = self._draw(intervals, mechanism, labels)
        return values

    # ---- accounts -----------------------------------------------------------------------------------

    def _spend(self, epsilon: Fraction, description: str) -> None:
        with self._lock:
            if not 0 < epsilon <= self.remaining:
                raise PrivacyProofError(
                    f"{description}: more than is left would be spent, so nothing was released"
                )
            self.remaining -= epsilon

    def _mark_rows(self, rows: Index | None) -> None:
        """Note that rows are randomised; refuse a row that was before, or is there twice, or not at all."""
        with self._lock:
            size = self._is_randomized.size
            times = np.ones(size, np.int64) if rows is None else np.bincount(rows, minlength=size)
            if times.size != size or (times + self._is_randomized > 1).any():
                raise PrivacyProofError(
                    "not every row was drawn exactly once: a fault of the program, so nothing was released"
                )
            self._is_randomized |= times > 0

    def __reduce__(self) -> NoReturn:
        raise TypeError("labels cannot be copied or pickled: a copy would release them again at no cost")
