"""A table's columns in memory, if they fit."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from labeldp.errors import DataError
from labeldp.tables.arrow import arrow

_COPIES = 4
"""A fit holds a table about this many times: as it was read, as numbers, and as what the model learns from."""

_UNKNOWN = 1 << 32
"""What is taken for granted where the system does not say."""


def free_memory() -> int:
    """Return how many bytes may be used on Linux, how many there are on macOS, and a guess elsewhere."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if sys.platform == "darwin" else _UNKNOWN


def read_columns(table: Any, names: Sequence[str], count: Callable[[int], None]) -> Any:
    """Return some columns of an open table as one Arrow table; ``count`` is called with how many rows are read.

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
    most = free_memory()
    if size * _COPIES > most:
        raise DataError(
            f"the table is too large to learn from in {most / 2**30:.3g} GiB of memory: choose fewer columns, "
            "fewer rows, or use a larger machine"
        )
