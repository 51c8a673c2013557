"""What the owner should look at before a file is released.

`Identifiers` points out public columns that single out rows, and may be shown anywhere. `HintSampler` finds
columns, or an order, that give labels away: these hints follow from true labels without any noise. They are for
the owner's screen, and never go into a file, a card or an exit code.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from labeldp.errors import Message, Setting
from labeldp.exact.word_sources import WordSource
from labeldp.tables.batches import draw_words, is_text, size_of

SAMPLE = 4096
FEWEST = 50
"""With fewer rows chance alone could look like a rule."""

CLOSE = 0.1
"""A column that explains nine tenths of the labels' variance by itself nearly determines them."""


class HintSampler:
    """Keeps a uniform sample of the rows of a stream, in their order; ``schema`` includes the label column."""

    def __init__(self, schema: Any, label: str, source: WordSource) -> None:
        self._label, self._source = label, source
        public = schema.remove(schema.get_field_index(label))
        added = [pa.field("label", pa.float64()), pa.field("key", pa.uint64())]
        self._rows = pa.schema([*public, *added]).empty_table()

    def update(self, public: list[Any], labels: NDArray[np.float64]) -> None:
        """Add the next rows; of all rows so far, those with the smallest random keys are kept."""
        added = [pa.array(labels), pa.array(draw_words(labels.size, self._source))]
        rows = pa.RecordBatch.from_arrays([*public, *added], schema=self._rows.schema)
        together = pa.concat_tables([self._rows, pa.Table.from_batches([rows])])
        smallest = np.argsort(together.column(together.num_columns - 1).to_numpy())[:SAMPLE]
        self._rows = together.take(np.sort(smallest))

    def hints(self, *, ordered: bool) -> list[Message]:
        """Return a sentence for each thing that gives labels away, the order of rows if they keep it."""
        *columns, labels, _ = self._rows.columns
        if len(labels) < FEWEST:
            return []
        labels = _ranks(labels).astype(np.float64)  # so that a few huge labels do not count for all
        hints = []
        if ordered and instability(labels) < CLOSE:
            hints.append(
                Message(
                    f"The rows are in an order in which neighbours have nearly the same {self._label!r}, as if "
                    "sorted by it: the order is kept, and gives labels away. Write a random order with ",
                    Setting("shuffle", True),
                )
            )
        for name, column in zip(self._rows.column_names, columns, strict=False):
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


def _codes(column: Any) -> NDArray[np.int64]:
    """Return integers in the order of the values, the same for the same value; missing ones last."""
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):  # numbers as text are numbers
        column = column.cast(pa.float64())
    return np.zeros(len(column), dtype=np.int64) if types.is_null(column.type) else _ranks(column, "dense")


def _ranks(column: Any, ties: str = "min") -> NDArray[np.int64]:
    return np.asarray(pc.rank(column, sort_keys="ascending", tiebreaker=ties)).astype(np.int64)


# ---- columns that single out rows -----------------------------------------------------------------------------

MOST_ROWS, MOST_BYTES = 1 << 16, 1 << 26
"""What is looked at for identifiers, from the first row on."""

FEWEST_VALUES = 20
"""With fewer values chance alone could make all of them differ."""


class Identifiers:
    """Finds public columns of a stream of rows whose values all differ.

    Examples
    --------
    >>> rows = range(40)
    >>> identifiers = Identifiers()
    >>> identifiers.update(pa.record_batch({"id": list(rows), "town": [str(row % 2) for row in rows]}))
    >>> identifiers.unique
    ('id',)
    """

    def __init__(self) -> None:
        self._batches: list[Any] = []
        self._rows = self._size = 0

    def update(self, public: Any) -> None:
        """Add the public columns of the next rows."""
        if self._rows < MOST_ROWS and self._size < MOST_BYTES:
            self._batches.append(public.slice(0, MOST_ROWS - self._rows))
            self._rows += self._batches[-1].num_rows
            self._size += size_of(self._batches[-1])

    @property
    def unique(self) -> tuple[str, ...]:
        """The columns of text, numbers and times whose values all differ, as names and customer numbers do."""
        table = pa.Table.from_batches(self._batches) if self._batches else pa.table({})
        return tuple(name for name in table.column_names if _is_unique(table.column(name)))

    def hints(self) -> list[Message]:
        """Return what to say of such columns."""
        if not (unique := list(self.unique)):
            return []
        advice = "as names and customer numbers do: unless they must be shared, leave them out with "
        return [Message(f"All values of {', '.join(map(repr, unique))} differ, {advice}", Setting("drop", unique))]


def _is_unique(column: Any) -> bool:
    if not (is_text(column.type) or types.is_primitive(column.type)):
        return False
    values = column.drop_null()
    values = values.filter(pc.not_equal(values, "")) if is_text(column.type) else values
    return len(values) >= FEWEST_VALUES and pc.count_distinct(values).as_py() == len(values)
