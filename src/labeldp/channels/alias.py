"""Exact integer alias tables: any row of counts that sums to 2^64, sampled with one word.

A row over 2^k columns gives each column 2^(64−k) words. A word's first k bits name the column, the
others are compared with the column's threshold: below it the column itself is the result, else its
alias. Threshold and alias are packed into one 64-bit entry, so a draw is one look-up. Nothing is
rounded: `recount` gives back the very counts that went in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labeldp.channels.domain import select
from labeldp.channels.proof import WORDS
from labeldp.errors import PrivacyProofError

__all__ = ["MAX_BITS", "build", "draw", "recount"]

MAX_BITS = 17
"""Rows of at most 2^17 columns: larger tables leave the cache."""


def build(counts: Sequence[int]) -> NDArray[np.uint64]:
    """Return the packed table of one row (Vose's method, in integers).

    Parameters
    ----------
    counts : sequence of int
        Words for each output; they must sum to 2^64.
    """
    if set(map(type, counts)) != {int} or sum(counts) != WORDS or min(counts) < 0:
        raise PrivacyProofError("a row's counts must be non-negative integers that sum to 2^64")
    bits = max(1, (len(counts) - 1).bit_length())
    if bits > MAX_BITS:
        raise PrivacyProofError(f"a row has {len(counts)} outputs; at most 2^{MAX_BITS} are possible")
    capacity = WORDS >> bits
    left = [*counts, *[0] * ((1 << bits) - len(counts))]
    alias = list(range(len(left)))
    small = [i for i, n in enumerate(left) if n < capacity]
    large = [i for i, n in enumerate(left) if n > capacity]
    for column in small:  # grows while we walk: a large column ends up small
        donor = large[-1]  # there is one: columns not yet filled hold as much as they can, together
        alias[column] = donor
        left[donor] -= capacity - left[column]
        if left[donor] <= capacity:
            large.pop()
            if left[donor] < capacity:
                small.append(donor)
    # A full column needs no alias: it is its own, and its threshold says nothing.
    packed = [(n << bits) | a if a != i else i for i, (n, a) in enumerate(zip(left, alias, strict=True))]
    return np.array(packed, dtype=np.uint64)


def bits_of(table: NDArray[np.uint64]) -> int:
    """Return k for a table of rows of 2^k entries."""
    return int(table.shape[-1]).bit_length() - 1


def recount(table: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return how many of the 2^64 words `draw` maps to each column, from the table itself: a row, or all."""
    width = table.shape[-1] if table.ndim in (1, 2) else 0
    bits = bits_of(table) if width else 0
    if width < 2 or width != 1 << bits or table.dtype != np.uint64:
        raise PrivacyProofError("a packed row has 2, 4, 8 … 64-bit entries")
    capacity = np.uint64(WORDS >> bits)
    alias = table & np.uint64(width - 1)
    threshold = table >> np.uint64(bits)
    counts = threshold.copy()
    place = alias.astype(np.int64).reshape(-1, width) + np.arange(0, table.size, width)[:, None]
    rest = (capacity - threshold).reshape(-1)  # of a column that is its own alias, with the threshold all of it
    np.add.at(counts.reshape(-1), place.reshape(-1), rest)
    return counts


def draw(
    table: NDArray[np.uint64], row_start: NDArray[np.int64] | None, word: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return a column for each word; overwrites ``word``.

    Parameters
    ----------
    table : array of rows of 2^k entries
    row_start : array of int or None
        Where each word's row starts in the flattened table; None if there is only one row.
    """
    bits = bits_of(table)
    mask = np.uint64(table.shape[-1] - 1)
    column = word >> np.uint64(64 - bits)
    entry_index = column.view(np.int64)
    if row_start is not None:
        entry_index = entry_index + row_start
    entry = table.reshape(-1).take(entry_index, mode="clip")
    word <<= np.uint64(bits)
    word |= mask
    below = word < entry
    entry &= mask
    return select(below, column, entry).view(np.int64)
