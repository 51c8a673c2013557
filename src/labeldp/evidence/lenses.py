"""Lenses, by which outputs are looked at, and events: the sets of outputs that distinguish two labels best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from labeldp._values import Array, Counts
from labeldp.evidence.loss_bounds import loss_at_least

Code = Callable[[NDArray[Any]], NDArray[np.uint64]]
"""From outputs, an array of floats, to one integer each."""


class Lens(Protocol):
    """A way to look at outputs: anything with a ``name`` and a ``fit``.

    An event is a set of codes: a difference that a lens does not see is not detected. Write one for outputs whose
    pattern you suspect.

    Examples
    --------
    >>> import labeldp as ldp, numpy as np
    >>> class Sign:
    ...     name = "sign"
    ...     def fit(self, outputs):
    ...         return lambda z: (z > 0).astype(np.uint64)
    >>> weak = lambda y: y + np.random.default_rng().laplace(0, 1.0, y.size)
    >>> result = ldp.audit(weak, labels=[-1, 1], epsilon=0.5, samples=20_000, lenses=[Sign()])
    >>> result.detected, result.worst.lens
    (True, 'sign')
    """

    @property
    def name(self) -> str:
        """What it looks at, for the report."""

    def fit(self, outputs: list[NDArray[Any]]) -> Code:
        """Return a function from outputs to codes, one integer for each.

        Parameters
        ----------
        outputs : list of arrays
            The first outputs of each label, to learn from; they test nothing later.
        """


def standard_lenses() -> tuple[Lens, ...]:
    """Return the lenses that an audit uses by default: one on the size of a float, the others on its bits.

    Returns
    -------
    tuple of Lens

    Examples
    --------
    >>> from labeldp.evidence import standard_lenses
    >>> [lens.name for lens in standard_lenses()][:4]
    ['size', 'exact value', 'exponent and last 4 bits', 'last 16 bits']
    """
    bits = {
        "exact value": _bits,
        "exponent and last 4 bits": _last_bits,
        "last 16 bits": _last_16_bits,
        "trailing zeros": _trailing_zeros,
    }
    return (QuantileLens(), *(BitLens(name, code) for name, code in bits.items()), GridLens())


@dataclass(frozen=True, slots=True)
class BitLens:
    """A lens that needs to learn nothing."""

    name: str
    code: Code

    def fit(self, outputs: list[NDArray[Any]]) -> Code:
        """Return the function that was given."""
        return self.code


@dataclass(frozen=True, slots=True)
class QuantileLens:
    """The size of an output: between which two of up to ``bins`` quantiles it lies."""

    bins: int = 256
    name: str = "size"

    def fit(self, outputs: list[NDArray[Any]]) -> Code:
        """Return the number of the bin, by quantiles of all first outputs; with few outputs, few bins."""
        pooled = np.concatenate(outputs).astype(np.float64)
        pooled = np.sort(pooled[np.isfinite(pooled)])
        count = int(np.clip(len(pooled) // 24, 4, self.bins))
        places = np.linspace(0, max(len(pooled) - 1, 0), count + 1).astype(np.int64)[1:-1]
        edges = np.unique(pooled[places]) if len(pooled) else np.empty(0)
        # Values that many outputs share get a bin of their own, whichever side of it the others are on.
        edges = np.unique(np.concatenate([edges, np.nextafter(edges, np.inf)]))
        return lambda z: np.searchsorted(edges, z.astype(np.float64), side="right").astype(np.uint64)


@dataclass(frozen=True, slots=True)
class GridLens:
    """The place of an output between the points of a grid: a label added in floating point shifts the grid."""

    name: str = "remainder on the grid"
    pieces: int = 64

    def fit(self, outputs: list[NDArray[Any]]) -> Code:
        """Return the remainder; the grid's step is the smallest distance between two outputs of one label."""
        steps = []
        for part in outputs:
            some = part.astype(np.float64)
            values = np.unique(some[np.isfinite(some)])
            scale = float(np.abs(values).max()) if values.size else 0.0
            gaps = np.diff(values)
            gaps = gaps[gaps > 64 * np.spacing(scale)]  # smaller ones are one point, rounded twice
            steps.append(float(gaps.min()) if gaps.size else 0.0)
        step = max(steps)
        if step == 0:
            return lambda z: np.zeros(z.shape, dtype=np.uint64)

        def code(z: NDArray[Any]) -> NDArray[np.uint64]:
            with np.errstate(all="ignore"):
                place = np.mod(z.astype(np.float64) / step + 0.5 / self.pieces, 1.0) * self.pieces
            return np.asarray(np.clip(np.nan_to_num(place), 0, self.pieces - 1), dtype=np.uint64)

        return code


@dataclass(frozen=True, slots=True)
class DiscriminantLens:
    """All numbers of an output at once: the size of a weighted sum that distinguishes two cases best."""

    name: ClassVar[str] = "all numbers together"

    def fit(self, outputs: list[NDArray[Any]]) -> Code:
        """Return the bin of the weighted sum; its weights are a linear discriminant, column by column."""
        one, other = (_finite(part) for part in outputs)
        spread = one.var(axis=0) + other.var(axis=0)
        gap = one.mean(axis=0) - other.mean(axis=0)
        weights = np.where(spread > 0, gap / np.where(spread > 0, spread, 1.0), np.sign(gap) * 1e3)
        code = QuantileLens().fit([part @ weights for part in (one, other)])
        return lambda z: code(_finite(z) @ weights)


def _finite(outputs: NDArray[Any]) -> Array:
    return np.nan_to_num(outputs.astype(np.float64), posinf=1e100, neginf=-1e100)


def _bits(z: NDArray[Any]) -> NDArray[np.uint64]:
    """Return all bits of each float, at the width that it was released with."""
    if z.dtype == np.float32:
        return z.view(np.uint32).astype(np.uint64)
    return np.ascontiguousarray(z, dtype=np.float64).view(np.uint64)


def _mantissa(z: NDArray[Any]) -> np.uint64:
    return np.uint64(23 if z.dtype == np.float32 else 52)


def _last_bits(z: NDArray[Any]) -> NDArray[np.uint64]:
    bits = _bits(z)
    return bits >> _mantissa(z) << np.uint64(4) | bits & np.uint64(15)


def _last_16_bits(z: NDArray[Any]) -> NDArray[np.uint64]:
    return _bits(z) & np.uint64(0xFFFF)


def _trailing_zeros(z: NDArray[Any]) -> NDArray[np.uint64]:
    """Return sign and exponent, and how many of the last bits are zero: of which 2^k it is a multiple."""
    bits = _bits(z)
    width = _mantissa(z)
    fraction = bits & ((np.uint64(1) << width) - np.uint64(1))
    lowest = fraction & (~fraction + np.uint64(1))
    zeros = np.where(fraction == 0, width, np.bitwise_count(lowest - np.uint64(1)).astype(np.uint64))
    return bits >> width << np.uint64(6) | zeros


MOST_CUTS = 256


@dataclass(frozen=True, slots=True)
class View:
    """Outputs through a lens: one column of them, or all (None), and the numbers that the lens gave.

    ``numbers``, sorted, occurred at least twice while ranking; any other counts as one, the last. ``ranking`` says
    how often each occurred then: cases × (numbers + 1).
    """

    name: str
    column: int | None
    code: Code
    numbers: NDArray[np.uint64]
    ranking: Counts

    def count(self, outputs: NDArray[Any]) -> Counts:
        """Return how often each of the numbers, and any other, occurs in ``outputs``."""
        return _tally(self.code(_column(outputs, self.column)), self.numbers)

    def event(
        self, case: int, other: int, cut: Counts, trials: int, delta: float, level: float
    ) -> NDArray[np.bool_]:
        """Return the numbers that speak for one case against another, as a mask.

        Those with the largest ratio while ranking; as many of them as give the best bound on ``cut``, counts of
        ``trials`` fresh outputs.
        """
        ratio = (self.ranking[case] + 0.5) / (self.ranking[other] + 0.5)
        order = np.argsort(-ratio, kind="stable")
        hits, others = np.cumsum(cut[case][order]), np.cumsum(cut[other][order])
        cuts = np.unique(np.linspace(0, order.size - 1, min(MOST_CUTS, order.size)).astype(np.int64))
        masses = np.searchsorted(hits + others, np.linspace(0, 2 * trials, MOST_CUTS))
        cuts = np.unique(np.concatenate([cuts, np.minimum(masses, order.size - 1)]))
        bounds = loss_at_least(hits[cuts], others[cuts], trials, delta, level)
        best = int(cuts[np.argmax(bounds)]) if bounds.max() > 0 else int(np.argmax(hits - others))
        mask = np.zeros(order.size, dtype=np.bool_)
        mask[order[: best + 1]] = True
        return mask


def fit_view(lens: Lens, column: int | None, name: str, outputs: list[NDArray[Any]]) -> View:
    """Return the view through a lens, after the first outputs of each case."""
    parts = [_column(part, column) for part in outputs]
    code = lens.fit(parts)
    numbers = [code(part) for part in parts]
    values, counts = np.unique(np.concatenate(numbers), return_counts=True)
    repeated = values[counts > 1]
    return View(name, column, code, repeated, np.array([_tally(part, repeated) for part in numbers]))


def _column(outputs: NDArray[Any], column: int | None) -> NDArray[Any]:
    return outputs if column is None else outputs[:, column]


def _tally(numbers: NDArray[np.uint64], known: NDArray[np.uint64]) -> Counts:
    if not known.size:
        return np.array([numbers.size])
    place = np.minimum(np.searchsorted(known, numbers), known.size - 1)
    place[known[place] != numbers] = known.size
    return np.bincount(place, minlength=known.size + 1)
