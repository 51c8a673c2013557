"""Rows in batches: cut by their number, selected, read ahead, and shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from labeldp.exact.word_sources import WordSource

CELLS, CELLS_OF_ANY_LENGTH = 1 << 20, 1 << 18
"""Values in a batch, about: wide tables come in short batches, and so do those with text."""

T = TypeVar("T")


def cut(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield the rows in batches of so many, the last one shorter: no end of a block, row group or file shows.

    Examples
    --------
    >>> batches = [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3, 4, 5]})]
    >>> [batch.column(0).to_pylist() for batch in cut(batches, 4)]
    [[1, 2, 3, 4], [5]]
    """
    pieces: list[Any] = []
    missing = rows
    for batch in batches:
        place = 0
        while place < batch.num_rows:
            pieces.append(batch.slice(place, missing))
            place += pieces[-1].num_rows
            missing -= pieces[-1].num_rows
            if not missing:
                yield _join(pieces)
                pieces, missing = [], rows
    if pieces:
        yield _join(pieces)


def _join(pieces: list[Any]) -> Any:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)


def rows_per_batch(schema: Any) -> int:
    """Return how many rows a batch has: by the number of columns, and whether their values may be long."""
    checks = (types.is_primitive, types.is_decimal, types.is_fixed_size_binary)
    fixed = all(any(check(kind) for check in checks) for kind in schema.types)
    return max(1024, (CELLS if fixed else CELLS_OF_ANY_LENGTH) // max(8, len(schema.names)))


def read_ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield items that a thread fetches, one of them ahead of its use.

    Examples
    --------
    >>> list(read_ahead(range(5)))
    [0, 1, 2, 3, 4]
    """
    source = ([item] for item in items)
    end: list[T] = []
    with ThreadPoolExecutor(1, "labeldp-ahead") as thread:
        future = thread.submit(next, source, end)
        while wait([future]) and (item := future.result()):  # waits first: one traceback, whoever was quicker
            future = thread.submit(next, source, end)
            yield item[0]


def size_of(batch: Any) -> int:
    """Return how many bytes the values of a batch have, about: the same however they came into memory.

    Examples
    --------
    >>> size_of(pa.record_batch({"a": [1, 2, 3], "b": ["x", None, "yz"]}).slice(1))
    18
    """
    return sum(_size(column) for column in batch.columns)


def _size(array: Any) -> int:
    kind = array.type
    if types.is_null(kind):
        return 0
    if types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind):
        return int(len(array) * kind.bit_width // 8)
    return int(pc.sum(pc.binary_length(array)).as_py() or 0)


# ---- a random order -------------------------------------------------------------------------------------------

MOST_SHUFFLED = 1 << 30
"""Bytes of a table that is shuffled, in memory."""

SHUFFLED_ROWS = 1 << 17


def shuffle_rows(batches: Iterable[Any], source: WordSource) -> Iterator[Any]:
    """Yield all rows in a uniformly random order; only rows whose label is private already may come here."""
    table = pa.Table.from_batches(list(batches))
    order = np.argsort(draw_words(table.num_rows, source))
    for first in range(0, order.size, SHUFFLED_ROWS):
        (batch,) = table.take(pa.array(order[first : first + SHUFFLED_ROWS])).combine_chunks().to_batches()
        yield batch


def draw_words(count: int, source: WordSource) -> NDArray[np.uint64]:
    """Return so many random words."""
    words = np.empty(count, dtype=np.uint64)
    source.fill(words)
    return words
