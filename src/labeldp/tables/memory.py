"""A table's columns in memory, if they fit."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from labeldp.errors import DataError
from labeldp.tables.arrow import arrow

_COPIES = 4
"""Copies of a table in a fit, about: as it was read, as numbers, and as features of the model."""

FIT_BYTES = 1 << 26
"""Memory of any fit."""

KEPT_ROW_BYTES = 3000
"""Memory of a row whose features the model keeps."""

MOST_KEPT_BYTES = 1 << 28
"""Memory of all features that are kept; those of larger tables are not."""

ROW_BYTES = 104
"""Memory of a fit for each row, beside its numbers; measured up to 2,000,000 rows."""

CELL_BYTES = 44
"""Memory of a fit for each number of a row."""

_UNKNOWN = 1 << 32
"""Bytes that are assumed where the system does not say."""


def free_memory() -> int:
    """Return the free bytes of memory on Linux, all bytes on macOS, and an assumption elsewhere."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if sys.platform == "darwin" else _UNKNOWN


def read_columns(table: Any, names: Sequence[str], count: Callable[[int], None] = lambda _: None) -> Any:
    """Return some columns of an open table as one Arrow table; ``count`` is called with the rows so far.

    Raises
    ------
    DataError
        If there are no rows, or too many of them for the memory. It stops reading as soon as that is clear.
    """
    pieces, size, rows = [], 0, 0
    for batch in table.batches(columns=list(names)):
        pieces.append(batch)
        size += max(batch.nbytes, 8 * batch.num_rows * batch.num_columns)
        rows += batch.num_rows
        count(rows)
        refuse_too_large(size)
    if not rows:
        raise DataError("the table has no rows")
    return arrow().Table.from_batches(pieces)


def refuse_too_large(size: int) -> None:
    """Refuse a table of so many bytes that a fit to it would not fit into memory."""
    available = free_memory()
    if size * _COPIES > available:
        raise DataError(
            f"the table is too large to learn from in {available / 2**30:.3g} GiB of memory: choose fewer "
            "columns, fewer rows, or use a larger machine"
        )


def fit_size(rows: int, width: int) -> int:
    """Return the bytes that a fit to rows of so many numbers takes at its peak, about.

    Examples
    --------
    >>> fit_size(2_000_000, 4) >> 20
    854
    """
    row_bytes = min(KEPT_ROW_BYTES * rows, MOST_KEPT_BYTES)
    return FIT_BYTES + row_bytes + rows * (ROW_BYTES + CELL_BYTES * width)


def has_memory(size: int) -> bool:
    """Return whether so many bytes are free."""
    return size <= free_memory()
