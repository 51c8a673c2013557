"""What `private_ols` asks of the labels: where they lie, and weighted sums of them and of their squares.

Labels are in units of their bounds, from 0 to 1. What is asked are integers that add up over rows, so rows may lie
in one array or on many machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from labeldp._values import Array, Sums
from labeldp.errors import PrivacyProofError
from labeldp.exact.word_sources import WordSource
from labeldp.learning.fit_plan import SumBudget
from labeldp.learning.ols_design import GUESS, WEIGHT, Design
from labeldp.learning.sums import CELLS, Range, find_range
from labeldp.release.curator import count

Count = Callable[[Array, Any], Sums]
"""From some labels, and the slice or the positions of their rows, to integers that add up over rows."""

AddUp = Callable[[Count], Sums]
"""Returns the sum of integers over all labels."""

GRID = (1 << 20) - 1
"""Labels are integers from 0 to this where they are summed with weights."""

_BLOCK = 1 << 20
"""Rows whose products of integers add up below 2^52, so that doubles are exact."""

_ROUGH, _ROUGH_ERROR, _ENOUGH = 0.1, 0.04, 0.01
"""At most this part of ε for a rough fit, if its predictions are off by less than this part of the range; less of
ε where predictions would be off by less than the last."""

_DISTANCES = 2.0 ** (-np.arange(1, 21) / 2)
_BEYOND, _WIDEST, _FEW = 0.5, 0.25, 0.06
"""Labels are clipped at twice a distance beyond which there are at most 0.3·rows^(3/4), or so few that noise hides
them: exponential errors then move a mean by a tenth of its standard error. If all that lie beyond it were among
the rows that one coefficient depends on, they must still be no more than the first part of these. At the widest
distance next to nothing is clipped, and more than the last part of all rows must lie beyond it to refuse it."""

NEAR = 2
"""The factor of squares where labels lie near a rough fit."""


def add_up_array(labels: Array) -> AddUp:
    """Return what adds up integers over labels in an array, in blocks."""

    def add_up(count: Count) -> Sums:
        blocks = [slice(start, start + _BLOCK) for start in range(0, labels.size, _BLOCK)]
        return np.asarray(sum(count(labels[block], block) for block in blocks))

    return add_up


# ---- weighted sums --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Center:
    """Where labels lie.

    Attributes
    ----------
    guess : array
        For each row, what its label is measured from.
    reach : float
        Distances from it are clipped to this.
    variance : float
        Of labels around the model, a guess.
    rough : array, optional
        Rough predictions, if there are any.
    """

    guess: Array = field(repr=False)
    reach: float
    variance: float
    rough: Array | None = field(default=None, repr=False)

    @property
    def width(self) -> float:
        """The range of what is summed."""
        return 2 * self.reach

    @property
    def near(self) -> bool:
        """Whether labels are known to lie near rough predictions."""
        return self.guess is self.rough

    @property
    def factor(self) -> int:
        """Of squares; see `curve_of`."""
        return NEAR if self.near else 1

    def release(
        self,
        add_up: AddUp,
        weights: Array,
        curve: Array,
        budget: SumBudget,
        epsilon: Fraction,
        source: WordSource,
        *,
        whole: bool = False,
    ) -> tuple[Array, Array]:
        """Return noisy weighted sums of labels, clipped around the guess, and of squared distances from it.

        Parameters
        ----------
        add_up : AddUp
        weights, curve : arrays of integers, rows × sums
            Of labels and of squares.
        budget, epsilon, source
            What pays for it, with which part, and where noise comes from.
        whole : bool
            Whether the first sum is of labels that are not clipped.
        """
        first = int(whole)
        both = np.abs(weights[:, first:]).sum(axis=1), np.abs(curve).sum(axis=1)
        in_all = np.abs(weights[:, :first]).sum(axis=1) + np.maximum(*both)
        if not (in_all <= WEIGHT).all():  # nor is what is not a number
            raise PrivacyProofError(f"the weights of a row add up to more than {WEIGHT}")
        weights, curve = weights.astype(np.int16), curve.astype(np.int16)
        guess, reach, width, factor = self.guess, self.reach, self.width, self.factor

        def weighted(labels: Array, rows: Any) -> Sums:
            linear, bent = weights[rows].astype(np.float64), curve[rows].astype(np.float64)
            with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
                near = np.clip(labels - guess[rows], -reach, reach) / width + 0.5
                places, plain = (np.clip(np.rint(units * GRID), 0, GRID) for units in (near, labels))
                parts = [plain @ linear[:, :first], places @ linear[:, first:], curve_of(places, factor) @ bent]
                return np.concatenate(parts).astype(np.int64)

        sums = add_up(weighted)
        what = f"{sums.size:,} weighted sums"
        noisy = budget.release(sums, epsilon, source, kind="weighted sums", what=what, steps=(GRID + 1) * WEIGHT)
        linear, squares = np.split(noisy / GRID, [weights.shape[1]])
        linear[first:] = (width * (linear - weights.sum(axis=0) / 2) + guess @ weights)[first:]
        return linear, width**2 / factor * squares


def curve_of(places: Array, factor: int) -> Array:
    """Return squared distances from the middle, times a factor, over G, down to integers and up to a limit.

    No quotient is an integer, so floats are near enough to be exact. A division with rest would take longer the
    larger the quotient is, and so depend on labels.
    """
    twice = 2 * places - GRID
    squares = np.floor(twice * twice * (factor / (4 * GRID)))
    return np.asarray(np.minimum(squares, math.floor(GRID * (0.5 - 0.25 / factor))))


# ---- where labels lie -----------------------------------------------------------------------------------


def find_center(design: Design, add_up: AddUp, budget: SumBudget, source: WordSource, origin: float) -> Center:
    """Return where labels lie, by a range and a rough fit; the middle of the bounds if that cannot be found.

    Without an intercept there is no range: clipped errors have a mean that no intercept would take up. A label of
    0 counts as ``origin``.
    """
    middle = np.full(budget.rows, 0.5)
    cells = lambda: add_up(lambda labels, _: count(labels, (0.0, 1.0), CELLS))  # noqa: E731
    low, high = (design.intercept and find_range(cells, (0.0, 1.0), budget, source)) or (0.0, 1.0)
    rough = _rough_fit(design, add_up, (low, high), budget, source, origin)
    if rough is None and (low, high) == (0.0, 1.0):
        return Center(middle, 0.5, GUESS**2)
    guess = np.full(budget.rows, (low + high) / 2) if rough is None else rough
    limits = _limits(design, guess, add_up, budget, source)
    return Center(middle, 0.5, GUESS**2, rough) if limits is None else Center(guess, *limits, rough)


def _rough_fit(
    design: Design, add_up: AddUp, limits: Range, budget: SumBudget, source: WordSource, origin: float
) -> Array | None:
    """Return predictions for all rows from sums for a small part of ε; None if they would be too noisy."""
    low, high = limits
    width, most = high - low, _ROUGH * float(budget.left)
    weights = design.weights(2 * (width / most) ** 2 / (GUESS * width) ** 2, rough=True)
    noise = design.standard(weights.noise_scales(1 / most))
    error = math.sqrt(2 * float((noise**2).sum(axis=1).mean()))  # in widths
    if error > _ROUGH_ERROR:
        return None
    part = Fraction(f"{most * min(1, error / _ENOUGH):.2g}")
    center = Center(np.full(budget.rows, (low + high) / 2), width / 2, GUESS**2)
    sums, _ = center.release(add_up, weights.rows, weights.rows[:, :0], budget, part, source)
    values = weights.solve @ (sums + origin * weights.rows.sum(axis=0))
    return np.clip(design.standard(values) - origin, 0.0, 1.0)


def _limits(
    design: Design, guess: Array, add_up: AddUp, budget: SumBudget, source: WordSource
) -> tuple[float, float] | None:
    """Return where to clip distances from a guess, and their variance, by noisy counts; None if too far."""

    def count_distances(labels: Array, rows: Any) -> Sums:
        distances = np.abs(labels - guess[rows])
        beyond = np.zeros(_DISTANCES.size + 2, dtype=np.int64)
        for k, distance in enumerate(_DISTANCES):
            np.sum(distances > distance, dtype=np.int64, out=beyond[k + 1 : k + 2], keepdims=True)
        beyond[-1] = labels.size
        return np.diff(beyond)

    rows = budget.rows
    epsilon = budget.part(0.05, 20 * math.sqrt(rows))
    exact = add_up(count_distances)
    counts = budget.release(exact, epsilon, source, kind="counts", what="counts of distances")
    noise = 2 / float(epsilon)
    far = np.cumsum(counts)[:-1]
    unsure = noise * np.sqrt(2.0 * np.arange(1, far.size + 1))
    few = np.where(_DISTANCES < _WIDEST, 0.3 * rows**0.75, max(0.3 * rows**0.75, _FEW * rows))
    near = (far <= np.maximum(few, 1.5 * unsure)) & (far + unsure <= _BEYOND * design.fewest_rows())
    clipped = np.append([0.0, 0.0], far[:-2] - 2.5 * unsure[:-2])  # beyond twice the distance
    near &= clipped <= 0.5 * math.sqrt(rows)
    last = int(np.argmin(np.append(near, False)))  # the first distance that many labels lie beyond
    if last == 0 or _DISTANCES[last - 1] > _WIDEST:
        return None
    last = last if design.intercept else int(np.argmax(_DISTANCES <= _WIDEST)) + 1
    limit = float(_DISTANCES[last - 1])
    middles = (np.append(1.0, _DISTANCES) + np.append(_DISTANCES, 0.0)) / 2
    inner = counts[last:].clip(0)
    variance = float(inner @ middles[last:] ** 2 / max(inner.sum(), 1))
    return 2 * limit, min(max(variance, 1e-9), 0.25)
