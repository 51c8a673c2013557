"""What the owner should look at before a file is released: columns, or an order, that give labels away.

These hints follow from true labels without any noise. They are for the owner's screen, and never go into a file, a
card or an exit code.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from labeldp.errors import Message, Setting
from labeldp.exact.word_sources import WordSource
from labeldp.tables.batches import draw_words, take_rows

SAMPLE = 4096
FEWEST = 50
"""With fewer rows chance alone could look like a rule."""

CLOSE = 0.1
"""A column that explains nine tenths of the labels' variance by itself nearly determines them."""


class HintSampler:
    """Takes a uniform sample of rows while they pass by, in their order; the schema has the label's column."""

    def __init__(self, schema: Any, label: str, source: WordSource) -> None:
        self._label = label
        self._schema = schema.remove(schema.get_field_index(label))
        self._source = source
        self._largest = np.uint64(2**64 - 1)
        self._rows: list[Any] = []
        self._labels = np.zeros(0)
        self._keys = np.zeros(0, dtype=np.uint64)

    def see(self, public: list[Any], labels: NDArray[np.float64]) -> None:
        """Look at the public columns and the labels of the next rows."""
        keys = draw_words(labels.size, self._source)
        places = _smallest(keys, np.flatnonzero(keys <= self._largest))
        if not places.size:
            return
        self._rows.append(take_rows(pa.RecordBatch.from_arrays(public, schema=self._schema), places))
        self._labels = np.concatenate([self._labels, labels[places]])
        self._keys = np.concatenate([self._keys, keys[places]])
        if self._keys.size > 2 * SAMPLE:
            self._keep_sample()

    def _keep_sample(self) -> None:
        """Keep the rows with the smallest keys."""
        places = _smallest(self._keys, np.arange(self._keys.size))
        self._rows = [take_rows(pa.concat_batches(self._rows), places)]
        self._labels, self._keys = self._labels[places], self._keys[places]
        self._largest = self._keys.max()

    def hints(self, *, ordered: bool) -> list[Message]:
        """Return a sentence for each thing that gives labels away, the order of rows if they keep it."""
        if self._labels.size < FEWEST:
            return []
        self._keep_sample()
        labels = _ranks(self._labels)
        hints = []
        if ordered and instability(labels) < CLOSE:
            hints.append(
                Message(
                    f"The rows are in an order in which neighbours have nearly the same {self._label!r}, as if "
                    "sorted by it: the order is kept, and gives labels away. Write a random order with ",
                    Setting("shuffle", True),
                )
            )
        table = pa.Table.from_batches(self._rows)
        for name, column in zip(table.column_names, table.columns, strict=True):
            order = np.lexsort((draw_words(labels.size, self._source), _codes(column)))
            if instability(labels[order]) < CLOSE:
                hints.append(
                    Message(
                        f"The column {name!r} nearly determines {self._label!r}: whoever has the file can read "
                        "labels off it. Unless it is public anyway, leave it out with ",
                        Setting("drop", [name]),
                    )
                )
        return hints


def _smallest(keys: NDArray[np.uint64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return those places of a sample's size that have the smallest keys, in order."""
    if places.size <= SAMPLE:
        return places
    return np.sort(places[np.argpartition(keys[places], SAMPLE)[:SAMPLE]])


def instability(labels: NDArray[np.float64]) -> float:
    """Return von Neumann's ratio: about 1 for labels in random order, near 0 if neighbours are alike.

    That is Σ(y_{i+1} − y_i)² / (2 n var y). In the order of a feature it is near 0 where labels are a function of
    the feature, rising or not.

    Examples
    --------
    >>> round(instability(np.arange(100.0)), 3)
    0.001
    """
    spread = 2 * labels.size * float(labels.var())
    return 1.0 if spread == 0 else float(np.sum(np.diff(labels) ** 2)) / spread


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks, so that a few huge labels do not count for all; equal labels share theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts / 2)[place], dtype=np.float64)


def _codes(column: Any) -> NDArray[np.int64]:
    """Return integers in the order of the values, the same for the same value; missing ones last."""
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):  # numbers as text are numbers
        column = column.cast(pa.float64())
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.int64)
    ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks).astype(np.int64)
