"""Rows in batches: cut by their number, selected, and read ahead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

__all__ = ["CELLS", "cut", "read_ahead", "rows_per_batch", "take_rows"]

CELLS, CELLS_OF_ANY_LENGTH = 1 << 20, 1 << 18
"""Values in a batch, about: wide tables come in short batches, and so do those with text."""

SOLID = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""Types of views, and those of their values in one piece: Arrow cannot do all with views."""

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
    checks = (types.is_primitive, types.is_decimal, types.is_dictionary, types.is_fixed_size_binary)
    fixed = all(any(check(kind) for check in checks) for kind in schema.types)
    return max(1024, (CELLS if fixed else CELLS_OF_ANY_LENGTH) // max(8, len(schema.names)))


def take_rows(batch: Any, places: NDArray[np.int64]) -> Any:
    """Return the rows at some places, in that order.

    Arrow cannot take rows of every type that it can read and write; those are put together one by one.

    Examples
    --------
    >>> batch = pa.record_batch({"a": pa.array(["x", "y", "z"], pa.string_view())})
    >>> take_rows(batch, np.array([2, 0])).to_pydict()
    {'a': ['z', 'x']}
    """
    return pa.RecordBatch.from_arrays([_take(column, places) for column in batch.columns], schema=batch.schema)


def _take(column: Any, places: NDArray[np.int64]) -> Any:
    if column.type in SOLID:
        return _take(column.cast(SOLID[column.type]), places).cast(column.type)
    try:
        return column.take(pa.array(places, pa.int64()))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        pieces = [column.slice(place, 1) for place in places.tolist()]
    return pa.concat_arrays(pieces) if pieces else column.slice(0, 0)


def read_ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield items that a thread fetches, one of them before it is asked for.

    Examples
    --------
    >>> list(read_ahead(range(5)))
    [0, 1, 2, 3, 4]
    """
    source = ([item] for item in items)
    end: list[T] = []
    with ThreadPoolExecutor(1, "labeldp-ahead") as thread:
        coming = thread.submit(next, source, end)
        while wait([coming]) and (item := coming.result()):  # waits first: one traceback, whoever was quicker
            coming = thread.submit(next, source, end)
            yield item[0]
