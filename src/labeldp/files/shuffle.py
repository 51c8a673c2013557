"""Rows in a uniformly random order, in constant memory.

Each row goes to a bucket of its own choosing, and each bucket is shuffled when it is read back: the result is a
uniform permutation (Rao 1961, Sandelius 1962). Only rows whose label is private already may come here, because
buckets lie on the disk for a while, in files without a name.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp.errors import DataError
from labeldp.files.batches import take_rows
from labeldp.randomness import WordSource
from labeldp.tabular.memory import size_of

__all__ = ["shuffle_rows"]

BUCKET_BYTES = 1 << 25
MOST_BUCKETS = 256
"""So many files are open at once."""

_BATCH = 1 << 17


def shuffle_rows(
    batches: Iterable[Any], schema: Any, *, rows: int, folder: Path | None, source: WordSource
) -> Iterator[Any]:
    """Yield about so many rows in random order; ``folder`` has space for all of them."""
    with ExitStack() as stack:
        files: list[Any] = []
        writers: list[Any] = []
        for batch in batches:
            if not writers:
                files = [
                    stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(_buckets(batch, rows))
                ]
                writers = [pa.ipc.new_stream(pa.PythonFile(file, mode="w"), schema) for file in files]
            _scatter(batch, writers, source)
        for writer in writers:
            writer.close()
        for file in files:
            file.seek(0)
            with pa.ipc.open_stream(pa.PythonFile(file, mode="r")) as reader:
                table = reader.read_all().unify_dictionaries().combine_chunks()
            pieces = table.to_batches()
            if len(pieces) > 1:  # shuffling each alone would not be uniform
                raise DataError("the table is too large to be shuffled: 2 GiB of text in one of 256 buckets")
            for batch in pieces:
                order = np.argsort(_words(batch.num_rows, source))
                whole = take_rows(batch, order)
                yield from (whole.slice(first, _BATCH) for first in range(0, whole.num_rows, _BATCH))
            file.truncate(0)


def _buckets(batch: Any, rows: int) -> int:
    """Return a power of two, so that a word's lowest bits choose among them evenly."""
    size = rows * size_of(batch) / max(1, batch.num_rows)
    return min(MOST_BUCKETS, 1 << int(np.ceil(np.log2(max(1.0, size / BUCKET_BYTES)))))


def _scatter(batch: Any, writers: list[Any], source: WordSource) -> None:
    chosen = (_words(batch.num_rows, source) & np.uint64(len(writers) - 1)).astype(np.int64)
    sorted_rows = take_rows(batch, np.argsort(chosen, kind="stable"))
    ends = np.cumsum(np.bincount(chosen, minlength=len(writers)))
    for writer, first, end in zip(writers, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        if end > first:
            writer.write_batch(sorted_rows.slice(first, end - first))


def _words(count: int, source: WordSource) -> NDArray[np.uint64]:
    words = np.empty(count, dtype=np.uint64)
    source.fill(words)
    return words
