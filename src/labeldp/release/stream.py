"""Labels that come in batches, from a file or a cluster: the same plan, charges, prior and channel as `privatize`.

Labels are read twice: once to be counted, once to be released. Between the two, the ledger is charged; what was
counted before stays in memory until it is paid for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from labeldp._values import Array, Counts, Interval, Labels, float_below
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError, LabelError, ParameterError
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.curator import FINE, adaptive_histogram, count
from labeldp.release.local import Reports
from labeldp.release.plan import Request, prepare

Batches = Callable[[], Iterable[Any]]


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """How many labels there are, and how many lie in each cell of a fine grid; parts add up.

    These are exact counts of private labels: they never leave the curator without noise.
    """

    rows: int
    fine: Counts

    @classmethod
    def none(cls) -> LabelCounts:
        """Return the count of no labels."""
        return cls(0, np.zeros(FINE, dtype=np.int64))

    @classmethod
    def of(cls, labels: Any, bounds: Interval | None) -> LabelCounts:
        """Count a batch of labels, which may be empty; without bounds, only its rows."""
        array = Labels.parse(labels, allow_empty=True).values.reshape(-1)
        fine = np.zeros(FINE, dtype=np.int64) if bounds is None else count(array, bounds, FINE)
        return cls(array.size, fine)

    def __add__(self, other: LabelCounts) -> LabelCounts:
        return LabelCounts(self.rows + other.rows, self.fine + other.fine)

    def __repr__(self) -> str:
        return f"<{self.rows:,} labels, counted>"


def prepare_counts(
    request: Request,
    counts: LabelCounts,
    *,
    ledger: Ledger,
    source: WordSource,
    reports: Callable[[Reports], Counts],
) -> Terms:
    """Do as `prepare` does where labels are not at hand: from their counts, or reports that they were turned into.

    Parameters
    ----------
    request : Request
    counts : LabelCounts
    ledger : Ledger
    source : source of words
        For the prior's noise.
    reports : callable
        Randomises every label with ``Reports.mechanism`` and returns the sum of ``Reports.count``; called with
        ``trust="local"`` only.
    """
    if counts.rows == 0:
        raise LabelError("there are no labels: give at least one")
    plan = request.plan(counts.rows)

    def estimate() -> Histogram:
        if request.trust == "curator":
            return adaptive_histogram(counts.fine, plan.for_prior, request.bounds, source)
        local = Reports(float_below(plan.for_prior), request.bounds, counts.rows)
        return local.histogram(reports(local))

    return prepare(plan, ledger=ledger, source=source, estimate_prior=estimate)


class LabelStream:
    """Private labels, batch by batch.

    Parameters
    ----------
    batches : callable
        Returns the labels from the start, in batches of any length; called once, or twice where nobody is
        trusted. Its labels must be the ones later passed to `release`, in any order.
    request : Request
    ledger : Ledger, optional
        Is charged once all labels are counted: one opened with ``create="late"`` has no file before.
    random_state : None, int or source of words
        Leave it out for a release.

    Attributes
    ----------
    terms : Terms
        What was decided and paid for.

    Examples
    --------
    >>> labels = np.linspace(1, 4, 5000)
    >>> stream = LabelStream(lambda: np.split(labels, 5), Request(epsilon=1.0, bounds=(0, 5)))
    >>> private = [stream.release(batch) for batch in np.split(labels, 5)]
    >>> stream.finish().cost
    Budget(epsilon=1.0)
    """

    def __init__(
        self,
        batches: Batches,
        request: Request,
        *,
        ledger: Ledger | None = None,
        random_state: int | WordSource | None = None,
    ) -> None:
        self._source = resolve_source(random_state)
        counts, bounds = LabelCounts.none(), request.bounds if request.counts_labels() else None
        for batch in batches():
            counts += LabelCounts.of(batch, bounds)

        def reports(local: Reports) -> Counts:
            randomize = local.mechanism.randomize
            full = (labels for batch in batches() if (labels := Labels.parse(batch, allow_empty=True).values).size)
            parts = [local.count(randomize(labels, random_state=self._source)) for labels in full]
            return np.asarray(np.sum(parts, axis=0))

        self.terms = prepare_counts(
            request, counts, ledger=ledger or Ledger(), source=self._source, reports=reports
        )
        self._left = counts.rows
        self._owner = os.getpid()
        self._lock = threading.Lock()

    @property
    def mechanism(self) -> Mechanism:
        """What each label is randomised with."""
        return self.terms.mechanisms[0]

    def release(self, labels: Any) -> Array:
        """Return the private labels of a batch. Each label may be passed once."""
        if self._owner != os.getpid():
            raise ParameterError(
                "a stream releases its labels once, in the process that started it: start it there"
            )
        array = Labels.parse(labels, allow_empty=True).values  # once: what is released is what is counted
        if array.size == 0:
            return np.zeros(0)
        with self._lock:
            self._left -= array.size
            left = self._left
        if left < 0:
            raise DataError("there are more labels now than were counted: the table changed while it was read")
        return self.mechanism.randomize_checked(array.reshape(-1), self._source).reshape(array.shape)

    def finish(self) -> Terms:
        """Return the terms, if all labels that were paid for were released."""
        if self._left:
            raise DataError("there are fewer labels now than were counted: the table changed while it was read")
        return self.terms

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream cannot be copied or pickled: a copy would release the labels again at no cost")
