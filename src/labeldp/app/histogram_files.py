"""Histograms in CSV files: about where answers lie, for the design of a card."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from labeldp._atomic import StrPath, atomic_file, read_regular
from labeldp.errors import ParameterError
from labeldp.mechanisms.histogram import Histogram

COLUMNS = ["low", "high", "share"]
"""The columns of a file."""

MAX_BYTES = 1 << 20
"""Bytes of a file that is read."""


def write_histogram(histogram: Histogram, path: StrPath, *, force: bool = False) -> None:
    """Write the bins of a histogram."""
    lines = [",".join(COLUMNS)]
    for low, high, share in zip(histogram.nodes[:-1], histogram.nodes[1:], histogram.masses, strict=True):
        lines.append(f"{float(low)!r},{float(high)!r},{float(share):.6g}")
    with atomic_file(path, public=True, replace=force) as draft:
        draft.write_text("\n".join(lines) + "\n", encoding="ascii", newline="\n")


def read_histogram(path: StrPath) -> Histogram:
    """Return the histogram in a file with the columns low, high and share, or count, of bins side by side."""
    text = read_regular(path, MAX_BYTES).decode("utf-8-sig", "replace")
    header, *records = [record for record in csv.reader(text.splitlines()) if record] or [[]]
    names = [name.strip().lower() for name in header]
    if names not in (COLUMNS, [*COLUMNS[:2], "count"]) or not records:
        raise _no_histogram(path, "must have the columns low, high and share, and a line for each bin")
    try:
        low, high, share = np.array(records, dtype=np.float64).T
    except ValueError:
        raise _no_histogram(path, "must have three numbers in each line") from None
    if (low[1:] != high[:-1]).any():
        raise _no_histogram(path, "has gaps: each bin begins where the one before it ends")
    return Histogram([low[0], *high], share)


def _no_histogram(path: StrPath, reason: str) -> ParameterError:
    return ParameterError(f"{Path(path).name} {reason}", option="prior")
