"""Lenses, by which outputs are looked at, and events: the sets of outputs that distinguish two labels best.

A lens learns from the first outputs of each label, which test nothing later, and returns a function from outputs
to codes, one integer for each. An event is a set of codes: a difference that no lens sees is not detected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._values import Array, Counts, Index, Mask, Words
from labeldp.evidence.loss_bounds import loss_at_least

Outputs = NDArray[Any]
Code = Callable[[Outputs], Words]
Lens = Callable[[list[Outputs]], Code]

_MAX_BINS = 256
"""Bins of the sizes of outputs."""

_MIN_PER_BIN = 24
"""Fewer outputs in a bin say nothing of their probability."""

_REMAINDERS = 64
"""Parts of a grid's step."""

_MAX_CUTS = 256
"""Sizes of an event that are tried."""


def _bins(outputs: list[Outputs]) -> Code:
    """Return the number of the bin of an output, between quantiles of all first outputs."""
    pooled = np.concatenate(outputs).astype(np.float64)
    pooled = np.sort(pooled[np.isfinite(pooled)])
    if not pooled.size:
        return _zeros
    count = int(np.clip(pooled.size // _MIN_PER_BIN, 4, _MAX_BINS))
    ranks = np.linspace(0, pooled.size - 1, count + 1).astype(np.int64)
    edges = pooled[ranks[1:-1]]
    # Values that many outputs share get a bin of their own, whichever side of it the others are on.
    edges = np.unique(np.concatenate([edges, np.nextafter(edges, np.inf)]))
    return lambda z: np.searchsorted(edges, z.astype(np.float64), side="right").astype(np.uint64)


def _zeros(z: Outputs) -> Words:
    return np.zeros(z.shape, dtype=np.uint64)


def _remainder(outputs: list[Outputs]) -> Code:
    """Return the remainder of an output on a grid: a label added in floating point shifts the grid.

    The grid's step is the smallest distance between two outputs of one label.
    """
    step = max(map(_smallest_gap, outputs))
    if step == 0:
        return _zeros

    def code(z: Outputs) -> Words:
        with np.errstate(all="ignore"):
            steps = z.astype(np.float64) / step
            remainder = np.mod(steps + 0.5 / _REMAINDERS, 1.0) * _REMAINDERS
        return np.asarray(np.nan_to_num(remainder), dtype=np.uint64)

    return code


def _smallest_gap(outputs: Outputs) -> float:
    values = np.unique(outputs[np.isfinite(outputs)].astype(np.float64))
    gaps = np.diff(values)
    # Smaller gaps are one point, rounded twice.
    gaps = gaps[gaps > 64 * np.spacing(np.abs(values).max(initial=0.0))]
    return float(gaps.min()) if gaps.size else 0.0


def _bits(z: Outputs) -> Words:
    """Return all bits of each float, at the width that it was released with."""
    if z.dtype == np.float32:
        return z.view(np.uint32).astype(np.uint64)
    return np.ascontiguousarray(z, dtype=np.float64).view(np.uint64)


def _mantissa(z: Outputs) -> np.uint64:
    return np.uint64(23 if z.dtype == np.float32 else 52)


def _last_bits(z: Outputs) -> Words:
    bits = _bits(z)
    return bits >> _mantissa(z) << np.uint64(4) | bits & np.uint64(15)


def _last_16_bits(z: Outputs) -> Words:
    return _bits(z) & np.uint64(0xFFFF)


def _trailing_zeros(z: Outputs) -> Words:
    """Return sign, exponent and the lowest bit that is set: the power of two that a float is a multiple of."""
    bits = _bits(z)
    width = _mantissa(z)
    fraction = bits & ((np.uint64(1) << width) - np.uint64(1))
    lowest = fraction & (~fraction + np.uint64(1))
    return bits >> width << np.uint64(7) | np.bitwise_count(lowest - np.uint64(1))


LENSES: dict[str, Lens] = {
    "size": _bins,
    "exact value": lambda _: _bits,
    "exponent and last 4 bits": lambda _: _last_bits,
    "last 16 bits": lambda _: _last_16_bits,
    "trailing zeros": lambda _: _trailing_zeros,
    "remainder on the grid": _remainder,
}
"""Lenses on one number of an output."""

ALL_NUMBERS = "all numbers together"


def _discriminant(outputs: list[Outputs]) -> Code:
    """Return the size of the weighted sum of an output's numbers that distinguishes two cases best."""
    first, second = map(_finite, outputs)
    variance = first.var(axis=0) + second.var(axis=0)
    gap = first.mean(axis=0) - second.mean(axis=0)
    weights = np.sign(gap) * 1e3
    np.divide(gap, variance, out=weights, where=variance > 0)
    code = _bins([first @ weights, second @ weights])
    return lambda z: code(_finite(z) @ weights)


def _finite(outputs: Outputs) -> Array:
    return np.nan_to_num(outputs.astype(np.float64), posinf=1e100, neginf=-1e100)


@dataclass(frozen=True, slots=True)
class View:
    """Outputs through a lens: one column of them, or all, and the codes that the lens gave.

    ``codes``, sorted, occurred at least twice while ranking; all others count as one, the last. ``ranking`` has
    their counts then: cases × (codes + 1).
    """

    name: str
    column: int | slice
    code: Code
    codes: Words
    ranking: Counts

    @classmethod
    def fit(cls, name: str, lens: Lens, column: int | slice, outputs: list[Outputs]) -> View:
        """Return the view through a lens, after the first outputs of each case."""
        numbers = [rows[:, column] for rows in outputs]
        code = lens(numbers)
        codes = list(map(code, numbers))
        values, counts = np.unique(np.concatenate(codes), return_counts=True)
        repeated = values[counts > 1]
        return cls(name, column, code, repeated, np.array([_tally(case, repeated) for case in codes]))

    def count(self, outputs: Outputs) -> Counts:
        """Return the counts of the codes, and of all others together, in ``outputs``."""
        return _tally(self.code(outputs[:, self.column]), self.codes)

    def event(self, likely: int, unlikely: int, cut: Counts, trials: int, delta: float, level: float) -> Mask:
        """Return the codes that are likelier in one case than in another, as a mask.

        Those with the largest ratio while ranking; as many of them as give the best bound on ``cut``, counts of
        ``trials`` fresh outputs.
        """
        ratio = (self.ranking[likely] + 0.5) / (self.ranking[unlikely] + 0.5)
        order = np.argsort(-ratio, kind="stable")
        hits = np.cumsum(cut[likely][order])
        false_hits = np.cumsum(cut[unlikely][order])
        cuts = _candidate_cuts(hits + false_hits, trials)
        bounds = loss_at_least(hits[cuts], false_hits[cuts], trials, delta, level)
        best = cuts[np.argmax(bounds)] if bounds.max() > 0 else np.argmax(hits - false_hits)
        mask = np.zeros(order.size, dtype=np.bool_)
        mask[order[: int(best) + 1]] = True
        return mask


def _candidate_cuts(hits: Counts, trials: int) -> Index:
    """Return sizes of an event, evenly spaced by codes and by outputs."""
    last = hits.size - 1
    by_code = np.linspace(0, last, min(_MAX_CUTS, hits.size)).astype(np.int64)
    by_output = np.searchsorted(hits, np.linspace(0, 2 * trials, _MAX_CUTS))
    return np.unique(np.concatenate([by_code, np.minimum(by_output, last)]))


def fit_views(names: tuple[str, ...], outputs: list[Outputs]) -> list[View]:
    """Return outputs through each lens, column by column; several columns of two cases together, too."""
    width = outputs[0].shape[1]
    views = []
    for column in range(width):
        prefix = f"number {column + 1}, " if width > 1 else ""
        views += [View.fit(f"{prefix}{name}", LENSES[name], column, outputs) for name in names]
    if width > 1 and len(outputs) == 2:
        views.append(View.fit(ALL_NUMBERS, _discriminant, slice(None), outputs))
    return views


def _tally(codes: Words, values: Words) -> Counts:
    """Return the counts of some values among codes, and of all other codes together."""
    if not values.size:
        return np.array([codes.size])
    index = np.minimum(np.searchsorted(values, codes), values.size - 1)
    index[values[index] != codes] = values.size
    return np.bincount(index, minlength=values.size + 1)
