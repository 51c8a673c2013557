"""Rows cut by their number, so that no end of a block, batch, row group or file shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from labeldp._arrow import arrow

__all__ = ["CELLS", "cut", "rows_of"]

CELLS, CELLS_OF_ANY_LENGTH = 1 << 20, 1 << 18
"""Values in a piece, about: wide tables come in short pieces, and so do those with text."""


def cut(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield the rows of batches in pieces of so many rows, the last one shorter: no end of a batch shows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batches = [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3, 4, 5]})]
    >>> [piece.column(0).to_pylist() for piece in cut(batches, 4)]
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
                yield _joined(pieces)
                pieces, missing = [], rows
    if pieces:
        yield _joined(pieces)


def _joined(pieces: list[Any]) -> Any:
    return pieces[0] if len(pieces) == 1 else arrow().core.concat_batches(pieces)


def rows_of(schema: Any) -> int:
    """Return how many rows a piece has: by the number of columns, and whether their values may be long."""
    types = arrow().core.types
    checks = (types.is_primitive, types.is_decimal, types.is_dictionary, types.is_fixed_size_binary)
    fixed = all(any(check(kind) for check in checks) for kind in schema.types)
    return max(1024, (CELLS if fixed else CELLS_OF_ANY_LENGTH) // max(8, len(schema.names)))
