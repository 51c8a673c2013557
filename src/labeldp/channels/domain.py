"""From labels to rows: the public interval that labels are clipped to, cut into equal steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHUNK", "Domain", "pieces", "select"]

CHUNK = 1 << 15
"""Labels are handled in pieces of this many, so that all scratch arrays stay in the cache."""


def pieces(size: int) -> Iterator[slice]:
    """Cut ``range(size)`` into slices of at most `CHUNK`."""
    for start in range(0, size, CHUNK):
        yield slice(start, min(start + CHUNK, size))


def select(
    chosen: NDArray[np.bool_], yes: NDArray[np.uint64], no: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Write ``yes`` over ``no`` where chosen, by masks: no branch, the same time for every word."""
    mask = np.negative(chosen.view(np.int8)).astype(np.int64).view(np.uint64)
    yes ^= no
    yes &= mask
    no ^= yes
    return no


@dataclass(frozen=True, slots=True)
class Domain:
    """The interval [low, high] with ``steps`` equal steps; a label's place is in [0, steps].

    Labels outside are clipped, as far outside as they may be. Arithmetic starts one width away from
    the interval, so that a label that is a subnormal number never reaches a multiplication, whose
    time would tell.
    """

    low: float
    high: float
    steps: int

    @property
    def step(self) -> float:
        """The distance between two neighbouring rows, in units of the label."""
        return (self.high - self.low) / self.steps

    def place(self, labels: NDArray[Any], out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each label's place in [0, steps], up to rounding."""
        width = self.high - self.low
        np.clip(labels, np.float64(self.low), np.float64(self.high), out=out)
        out -= self.low - width
        out *= self.steps / width
        out -= self.steps
        return out

    def nearest(self, labels: NDArray[Any], scratch: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the nearest row of each label; whatever floats did, a row that exists."""
        place = self.place(labels, scratch)
        place += 0.5
        rows = place.astype(np.int64)
        return np.clip(rows, 0, self.steps, out=rows)

    def rounded(
        self, labels: NDArray[Any], bits: NDArray[np.uint32], scratch: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return one of the two neighbouring rows, at random so that the mean is the label's place."""
        place = self.place(labels, scratch)
        place += bits * 2.0**-32
        rows = place.astype(np.int64)
        return np.clip(rows, 0, self.steps, out=rows)

    def split(self, labels: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the lower neighbouring row, and the probability of rounding up from it."""
        place = np.clip(self.place(labels, np.empty(labels.shape)), 0.0, float(self.steps))
        rows = np.minimum(place.astype(np.int64), self.steps - 1)
        return rows, place - rows
