"""Private labels for the rows of a table in a file, once they are paid for: given out in the order of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from labeldp._values import Array, Data, Index
from labeldp.accounts.accuracy import round_to, rounding_step, step_below
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError
from labeldp.release.plan import Request
from labeldp.release.stream import LabelStream

if TYPE_CHECKING:
    from labeldp.learning.released_labels import ReleasedColumn

LEAST_STEP = 1e-6
"""The least standard deviation around a model that a rounding step follows from, over the width of the bounds."""

CHANGED = "than were counted: the table changed while it was read"


class StreamedLabels:
    """Labels that a mechanism randomises batch by batch; paid for, in the order of the rows that are used.

    Attributes
    ----------
    step : float or None
        The power of ten that labels are rounded to.
    entries : dict
        Further entries of the card.
    """

    release = None
    """A mechanism alone has no release of a model."""

    def __init__(self, stream: LabelStream, request: Request) -> None:
        """Choose the rounding by the noise."""
        self._stream, self._request = stream, request
        self.step = rounding_step(stream.mechanism)
        self.entries: Data = {"purpose": request.purpose}

    def next_rows(self, labels: Array) -> Array:
        """Return the private labels of the next rows, rounded."""
        private = self._stream.release(labels)
        if private.size:
            private = self._request.labels_of(self._stream.mechanism, private)
        return round_to(private, self.step)

    def finish(self) -> Terms:
        """Return the terms, if all rows that were counted had their labels."""
        return self._stream.finish()


class FittedLabels:
    """Labels that a model gave, all at once; paid for, in the order of the rows that are used.

    Attributes
    ----------
    release : ReleasedColumn
        The release of the model.
    step : float
    entries : dict
        As of `StreamedLabels`.
    """

    def __init__(self, release: ReleasedColumn) -> None:
        """Choose the rounding by the private variance of labels around the model."""
        low, high = release.terms.bounds[0]
        self.release = release
        self.entries: Data = dict(release.entries)
        self.step = step_below(max(math.sqrt(self.entries["residual_variance"]), LEAST_STEP * (high - low)))
        self._done = 0

    def next_rows(self, labels: Array) -> Array:
        """Return the private labels of the next rows, rounded; true labels have no part in them."""
        first, self._done = self._done, self._done + labels.size
        if self._done > self.release.labels.size:
            raise DataError(f"there are more labels now {CHANGED}")
        return round_to(self.release.labels[first : self._done], self.step)

    def finish(self) -> Terms:
        """Return the terms, if all rows that were counted had their labels."""
        if self._done < self.release.labels.size:
            raise DataError(f"there are fewer labels now {CHANGED}")
        return self.release.terms


FileLabels = StreamedLabels | FittedLabels


@dataclass(slots=True)
class UsedRows:
    """The rows of a table that are used, found batch by batch.

    Attributes
    ----------
    indices : array of int, or None
        Their numbers; None where all are used.

    Examples
    --------
    >>> rows = UsedRows(np.array([1, 2]))
    >>> rows.next_rows(2), rows.next_rows(2)
    (array([1]), array([0]))
    """

    indices: Index | None
    _done: int = field(default=0, init=False)

    def next_rows(self, count: int) -> Index | slice:
        """Return the numbers of the rows that are used, among the next rows."""
        first, self._done = self._done, self._done + count
        if self.indices is None:
            return slice(None)
        start, stop = np.searchsorted(self.indices, [first, self._done])
        return self.indices[start:stop] - first


def select_rows(batches: Iterable[Array], indices: Index | None) -> Iterator[Array]:
    """Yield the labels of the rows that are used, batch by batch.

    Examples
    --------
    >>> list(select_rows([np.array([1.0, 2.0]), np.array([3.0, 4.0])], np.array([1, 2])))
    [array([2.]), array([3.])]
    """
    rows = UsedRows(indices)
    for labels in batches:
        yield labels[rows.next_rows(len(labels))]
