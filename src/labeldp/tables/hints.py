"""Hints to the owner before a file is released.

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
from pyarrow import types

from labeldp._values import Array, Index, Interval, LabelBounds
from labeldp.errors import Message, Setting
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.tables.batches import draw_words, is_text, size_of
from labeldp.tables.dialect import Dialect
from labeldp.tables.text_types import parse_labels

SAMPLE = 4096
FEWEST = 50
"""The fewest rows to look for a rule in: with fewer, chance alone could look like one."""

CLOSE = 0.1
"""A column that explains nine tenths of the labels' variance by itself nearly determines them."""

COPIED = 0.3
"""A column that equals the label in so many more rows than chance would is a copy of it, with gaps or changes."""


_MOST_OUTSIDE = 0.5
"""The share of labels outside the bounds from which another unit is likely."""

_NARROW = 0.01
"""The part of the bounds' width in which nearly all labels lie if the unit is another one."""

_TAIL = 0.02
"""The share of labels on either side that "nearly all" leaves out."""


class HintSampler:
    """Uniform sample of the rows of a stream, in their order.

    Parameters
    ----------
    public : pyarrow.Schema
        Of the public columns.
    label : str
    source : WordSource
    dialect : Dialect
        Marks in numbers of text columns.
    """

    def __init__(self, public: Any, label: str, source: WordSource, dialect: Dialect) -> None:
        self._label, self._source, self._dialect = label, source, dialect
        added = [pa.field("label", pa.float64()), pa.field("key", pa.uint64())]
        self._rows = pa.schema([*public, *added]).empty_table()

    def update(self, public: list[Any], labels: Array) -> None:
        """Add the next rows; of all rows so far, those with the smallest random keys are kept."""
        added = [pa.array(labels), pa.array(draw_words(labels.size, self._source))]
        rows = pa.RecordBatch.from_arrays([*public, *added], schema=self._rows.schema)
        candidates = pa.concat_tables([self._rows, pa.Table.from_batches([rows])])
        smallest = np.argsort(candidates.column(candidates.num_columns - 1).to_numpy())[:SAMPLE]
        self._rows = candidates.take(np.sort(smallest))

    def hints(self, *, ordered: bool, option: str = "drop", bounds: Interval | None = None) -> list[Message]:
        """Return a sentence for each thing that gives labels away, and for bounds of another unit.

        Parameters
        ----------
        ordered : bool
            Whether the order of rows is kept in the output.
        option : str
            The option that leaves a column out.
        bounds : (lo, hi), optional
        """
        *columns, labels, _ = self._rows.columns
        if len(labels) < FEWEST:
            return []
        hints = [] if bounds is None else self.bound_hints(bounds)
        ranks = _ranks(labels).astype(np.float64)  # so that a few huge labels do not count for all
        if ordered and instability(ranks) < CLOSE:
            hints.append(
                Message(
                    f"The rows are in an order in which neighbours have nearly the same {self._label!r}, as if "
                    "sorted by it: the order is kept, and gives labels away. Write a random order with ",
                    Setting("shuffle", True),
                )
            )
        for name, column in zip(self._rows.column_names, columns, strict=False):
            numbers = _numbers(column, self._dialect)
            order = np.lexsort((draw_words(ranks.size, self._source), _codes(column, numbers)))
            if instability(ranks[order]) < CLOSE:
                problem = f"nearly determines {self._label!r}"
            elif agreement(labels.to_numpy(), numbers) > COPIED:
                problem = f"is {self._label!r} in many rows"
            else:
                continue
            remedy = Setting(option, [name]) if option == "drop" else Setting(option)
            hints.append(
                Message(
                    f"The column {name!r} {problem}: whoever has the file can read labels off it. Unless it is "
                    "public anyway, leave it out with ",
                    remedy,
                )
            )
        return hints

    def bound_hints(self, bounds: Interval) -> list[Message]:
        """Return a sentence if bounds seem to be in another unit than the labels."""
        labels = self._rows.column("label").to_numpy()
        if labels.size < FEWEST:
            return []
        bounds = LabelBounds(bounds)
        width = bounds[1] - bounds[0]
        outside = float(np.mean((labels < bounds[0]) | (labels > bounds[1])))
        clipped = np.clip(labels, bounds[0] - width, bounds[1] + width)  # huge ones would overflow, and warn
        low, high = np.quantile(clipped, [_TAIL, 1 - _TAIL])
        if outside > _MOST_OUTSIDE:
            problem = f"About {100 * outside:.0f} % of {self._label!r} lie outside the bounds"
        elif 0 < high - low < _NARROW * width:
            problem = f"Nearly all of {self._label!r} lie within a hundredth of the bounds’ width"
        else:
            return []
        advice = ", which come from the form or the law, and not from the data"
        return [Message(problem, ": check that values have the same unit as ", Setting("bounds"), advice)]


def table_hints(
    public: Any,
    labels: Array,
    label: str,
    dialect: Dialect,
    option: str,
    bounds: Interval | None = None,
) -> list[Message]:
    """Return hints on the columns of a table in memory, with the option that leaves a column out."""
    sampler = HintSampler(public.schema, label, resolve_source(None), dialect)
    start = 0
    for batch in public.to_batches():
        sampler.update(batch.columns, labels[start : start + batch.num_rows])
        start += batch.num_rows
    return sampler.hints(ordered=False, option=option, bounds=bounds)


def agreement(labels: Array, values: Array) -> float:
    """Return Cohen's κ of two columns: 1 where they are equal in all rows, 0 where no more than by chance.

    Examples
    --------
    >>> labels = np.arange(100.0)
    >>> agreement(labels, np.where(labels < 40, labels, -1)).__round__(2)
    0.4
    """
    observed = float(np.mean(labels == values))
    label_values, label_counts = np.unique(labels, return_counts=True)
    column_values, column_counts = np.unique(values, return_counts=True)
    _, first, second = np.intersect1d(label_values, column_values, assume_unique=True, return_indices=True)
    expected = float(label_counts[first] @ column_counts[second]) / labels.size**2
    return 0.0 if expected >= 1 else (observed - expected) / (1 - expected)


def instability(labels: Array) -> float:
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


def _codes(column: Any, numbers: Array) -> Index:
    """Return integers in the order of the values, of numbers if most are; missing ones last."""
    if 2 * np.count_nonzero(np.isfinite(numbers)) > numbers.size:
        return _ranks(pa.array(numbers, from_pandas=True), "dense")
    return np.zeros(len(column), dtype=np.int64) if types.is_null(column.type) else _ranks(column, "dense")


def _numbers(column: Any, dialect: Dialect) -> Array:
    """Return a column as numbers, also of text; NaN where a value is none."""
    if is_text(column.type):
        column, _ = parse_labels(column, dialect)
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    return np.full(len(column), np.nan)


def _ranks(column: Any, ties: str = "min") -> Index:
    return np.asarray(pc.rank(column, sort_keys="ascending", tiebreaker=ties)).astype(np.int64)


# ---- columns that single out rows -----------------------------------------------------------------------------

MAX_ROWS = 1 << 16
"""First rows that are searched for identifiers."""

MAX_BYTES = 1 << 26
"""Size of these rows."""

FEWEST_VALUES = 20
"""The fewest values that must differ: with fewer, chance alone could make all of them differ."""


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
        if self._rows < MAX_ROWS and self._size < MAX_BYTES:
            self._batches.append(public.slice(0, MAX_ROWS - self._rows))
            self._rows += self._batches[-1].num_rows
            self._size += size_of(self._batches[-1])

    @property
    def unique(self) -> tuple[str, ...]:
        """The columns of text, numbers and times whose values all differ, as names and customer numbers do."""
        table = pa.Table.from_batches(self._batches) if self._batches else pa.table({})
        return tuple(name for name in table.column_names if _is_unique(table.column(name)))

    def hints(self) -> list[Message]:
        """Return a hint that names such columns."""
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
