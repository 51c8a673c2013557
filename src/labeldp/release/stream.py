"""Labels that come in batches, from a file or a cluster: the same plan, charges, prior and channel as `privatize`.

Labels are read twice: once to be counted, once to be released. Between the two, the ledger is charged;
exact counts stay in memory until they are paid for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from labeldp._values import Array, Labels, Numbers
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError, LabelError, ParameterError
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.curator import FINE, adaptive_histogram, count
from labeldp.release.local import SquareWaveCounts
from labeldp.release.plan import Request, prepare

Batches = Callable[[], Iterable[Any]]


class LabelStream:
    """Private labels, batch by batch.

    Parameters
    ----------
    batches : callable
        Returns the labels from the start, in batches of any length; called once, or twice where nobody is
        trusted. Its labels must be the ones later passed to `release`, in any order.
    request : Request
    ledger : Ledger, optional
        Is charged once all labels are counted: one of `Ledger.prepare` has no file before.
    random_state : None, int or source of words
        Leave it out for a release.

    Attributes
    ----------
    terms : Terms
        The plan and its charges.

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
        source = resolve_source(random_state)
        rows, fine = 0, np.zeros(FINE, dtype=np.int64)  # exact counts, which never leave without noise
        is_counted = request.counts_labels()
        for labels in _parsed(batches()):
            rows += labels.size
            if is_counted:
                fine += count(labels, request.bounds, FINE)
        if not rows:
            raise LabelError("there are no labels: give at least one")
        plan = request.plan(rows)

        def estimate() -> Histogram:
            if request.trust == "curator":
                return adaptive_histogram(fine, plan.for_prior, request.bounds, source)
            reports = SquareWaveCounts(plan.for_prior, request.bounds, rows)
            counts = [reports.count(labels, source) for labels in _parsed(batches()) if labels.size]
            return reports.histogram(np.asarray(np.sum(counts, axis=0)))

        self.terms = prepare(plan, ledger=ledger or Ledger(), source=source, estimate_prior=estimate)
        self._source, self._left = source, rows
        self._owner = os.getpid()
        self._lock = threading.Lock()

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of each label."""
        return self.terms.mechanisms[0]

    def release(self, labels: Any) -> Array:
        """Return the private labels of a batch. Each label may be passed once."""
        if self._owner != os.getpid():
            raise ParameterError(
                "a stream releases its labels once, in the process that started it: start it there"
            )
        array = Labels.parse(
            labels, allow_empty=True
        ).values  # once: the very labels that are counted are released
        if array.size == 0:
            return np.zeros(0)
        with self._lock:
            self._left -= array.size
            remaining = self._left
        if remaining < 0:
            raise DataError("there are more labels now than were counted: the table changed while it was read")
        return self.mechanism.randomize_checked(array.reshape(-1), self._source).reshape(array.shape)

    def finish(self) -> Terms:
        """Return the terms, if all labels that were paid for were released."""
        if self._left:
            raise DataError("there are fewer labels now than were counted: the table changed while it was read")
        return self.terms

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream cannot be copied or pickled: a copy would release the labels again at no cost")


def _parsed(batches: Iterable[Any]) -> Iterator[Numbers]:
    """Yield the labels of each batch."""
    for batch in batches:
        yield Labels.parse(batch, allow_empty=True).values.reshape(-1)
