"""Events: which outputs to bet on. Ranked on one quarter of the samples, cut on the next, tested on the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.audit.bounds import loss_at_least
from labeldp.audit.lenses import Code, Lens

__all__ = ["View", "fit_view"]

MOST_CUTS = 256


@dataclass(frozen=True, slots=True)
class View:
    """Outputs through a lens: one column of them, and the numbers that the lens gave for it.

    Attributes
    ----------
    name : str
    column : int or None
        None for a lens on all of them.
    numbers : sorted array
        Those that occurred at least twice while ranking; any other counts as one, the last.
    ranking : array of cases × (numbers + 1)
        How often each occurred while ranking.
    """

    name: str
    column: int | None
    code: Code
    numbers: NDArray[np.uint64]
    ranking: NDArray[np.int64]

    def count(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """Return how often each of the numbers, and any other, occurs in ``outputs``."""
        return _tally(self.code(_column(outputs, self.column)), self.numbers)

    def event(
        self, case: int, other: int, cut: NDArray[np.int64], trials: int, delta: float, level: float
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
    listed, counts = np.unique(np.concatenate(numbers), return_counts=True)
    known = listed[counts > 1]
    return View(name, column, code, known, np.array([_tally(part, known) for part in numbers]))


def _column(outputs: NDArray[Any], column: int | None) -> NDArray[Any]:
    return outputs if column is None else outputs[:, column]


def _tally(numbers: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.int64]:
    if not known.size:
        return np.array([numbers.size])
    place = np.minimum(np.searchsorted(known, numbers), known.size - 1)
    place[known[place] != numbers] = known.size
    return np.bincount(place, minlength=known.size + 1)
