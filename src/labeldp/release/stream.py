"""Labels that come in batches, from a file or a cluster: the same plan, charges, prior and channel as `privatize`.

Labels are read twice: once to be counted, once to be released. Between the two, the ledger is charged;
exact counts stay in memory until they are paid for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from labeldp._values import Array, Labels, Numbers
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError, LabelError, ParameterError
from labeldp.exact.word_sources import RandomState, resolve_source
from labeldp.mechanisms.base import Mechanism
from labeldp.release.curator import FINE
from labeldp.release.label_access import LabelAccess
from labeldp.release.plan import Request, prepare
from labeldp.release.queries import Cells

Batches = Callable[[], Iterable[Any]]


class LabelStream(LabelAccess):
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
        random_state: RandomState = None,
    ) -> None:
        super().__init__(np.zeros(0), resolve_source(random_state), "prior")
        self._read, self._left = batches, 0
        if request.counts_labels():
            cells = Cells(request.bounds, FINE)
            self._counts[cells] = np.zeros(cells.number, dtype=np.int64)
        for labels in self._batches():
            self._left += labels.size
            for cells in self._counts:
                self._counts[cells] += cells.answer(labels)
        self._rows = self._left
        if not self._rows:
            raise LabelError("there are no labels: give at least one")
        if request.scope.for_rows(self._rows) is not request.scope:
            raise ParameterError(
                "a stream releases all of its labels: leave out rows of people with too many first"
            )
        self.terms = prepare(request.plan(self._rows), ledger or Ledger(), self)
        self._owner = os.getpid()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    def _batches(self) -> Iterator[Numbers]:
        for batch in self._read():
            labels = Labels.parse(batch, allow_empty=True).values.reshape(-1)
            if labels.size:
                yield labels

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
        return self._randomize(None, self.mechanism, array.reshape(-1)).reshape(array.shape)

    def finish(self) -> Terms:
        """Return the terms, if all labels that were paid for were released."""
        if self._left:
            raise DataError("there are fewer labels now than were counted: the table changed while it was read")
        return self.terms
