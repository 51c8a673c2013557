"""The queries of `private_ols` on labels: their range, and weighted sums of them and of their squares.

Labels are in unit scale, from 0 to 1. Answers are integers that add up over rows, so rows may be in one array or
on many machines.
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
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.fit_plan import Pair
from labeldp.learning.label_queries import CELLS, find_range
from labeldp.learning.ols_design import GUESS, WEIGHT, Design
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

_DISTANCES = 2.0 ** -np.arange(1, 11)
"""At which labels are counted on either side of a rough fit."""

_SLOWEST, _CAUTION, _NOISE = 1.6, 2.0, 1.5
"""Where a tail falls with a power of the distance below the first, labels are not clipped; how much more what
clipping cuts off counts than noise where the limit is chosen; and the noise of a slope's sum, in ranges over ε and
in mean absolute weights of a row."""

_BEYOND, _WIDEST, _FEW = 0.5, 0.5, 0.06
"""The part of the rows behind one coefficient that may lie beyond half the limit; the widest limit; and the part
of all rows that may lie beyond half of that."""

NEAR = 2
"""The factor of squares where labels lie near a rough fit."""


def add_up_array(labels: Array) -> AddUp:
    """Return what adds up integers over labels in an array, in blocks whose sums floats hold exactly."""

    def add_up(count: Count) -> Sums:
        blocks = [slice(start, start + _BLOCK) for start in range(0, max(labels.size, 1), _BLOCK)]
        return np.asarray(sum(count(labels[block], block) for block in blocks))

    return add_up


# ---- weighted sums --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Center:
    """The values around which labels are clipped, and how far.

    Attributes
    ----------
    guess : array
        For each row, the value that is subtracted from its label.
    reach : float
        Differences are clipped to ± this.
    variance : float
        The expected variance of labels around the model.
    excess : float
        An upper limit of the total amount by which labels are clipped.
    line : array, optional
        Rough predictions, if there are any; they may lie beyond the bounds.
    near : bool
        Whether labels are known to lie near rough predictions, which are then the guess.
    """

    guess: Array = field(repr=False)
    reach: float
    variance: float
    excess: float = 0.0
    line: Array | None = field(default=None, repr=False)
    near: bool = False

    @property
    def width(self) -> float:
        """The range of what is summed."""
        return 2 * self.reach

    @property
    def factor(self) -> int:
        """Of squares; see `curve_of`."""
        return NEAR if self.near else 1

    def release(
        self,
        add_up: AddUp,
        weights: Array,
        curve: Array,
        tilt: Array,
        budget: SumBudget,
        epsilon: Fraction,
        source: WordSource,
        *,
        whole: bool = False,
    ) -> tuple[Array, Array]:
        """Return noisy weighted sums of labels, clipped around the guess, and of squared distances from it.

        From the squares, ``tilt`` times the distances are subtracted: squares around another center, nearly.

        Parameters
        ----------
        add_up : AddUp
        weights, curve : arrays of integers, rows × sums
            Of labels and of squares.
        tilt : array of integers, rows × sums of squares
            In units of `tilt_unit`.
        budget, epsilon, source
            What pays for it, with which part, and where noise comes from.
        whole : bool
            Whether the first sum is of labels that are not clipped.
        """
        first = int(whole)
        both = np.abs(np.hstack([weights[:, first:], tilt])).sum(axis=1), np.abs(curve).sum(axis=1)
        in_all = np.abs(weights[:, :first]).sum(axis=1) + np.maximum(*both)
        if not (in_all <= WEIGHT).all():  # nor is what is not a number
            raise PrivacyProofError(f"the weights of a row add up to more than {WEIGHT}")
        packed = [integers.astype(np.int16) for integers in (weights, curve, tilt)]
        guess, reach, width, factor = self.guess, self.reach, self.width, self.factor

        def weighted(labels: Array, rows: Any) -> Sums:
            linear, bent, tilted = (integers[rows].astype(np.float64) for integers in packed)
            with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
                near = np.clip(labels - guess[rows], -reach, reach) / width + 0.5
                places, plain = (np.clip(np.rint(units * GRID), 0, GRID) for units in (near, labels))
                squares = curve_of(places, factor) @ bent - places @ tilted
                parts = [plain @ linear[:, :first], places @ linear[:, first:], squares]
                return np.concatenate(parts).astype(np.int64)

        sums = add_up(weighted)
        what = f"{sums.size:,} weighted sums"
        noisy = budget.release(sums, epsilon, source, kind="weighted sums", what=what, steps=(GRID + 1) * WEIGHT)
        linear, squares = np.split(noisy / GRID, [weights.shape[1]])
        linear[first:] = (width * (linear - weights.sum(axis=0) / 2) + guess @ weights)[first:]
        return linear, width**2 / factor * (squares + tilt.sum(axis=0) / 2)


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
    line = _rough_fit(design, add_up, (low, high), budget, source, origin)
    if line is None and (low, high) == (0.0, 1.0):
        return Center(middle, 0.5, GUESS**2)
    guess = np.full(budget.rows, (low + high) / 2) if line is None else np.clip(line, 0.0, 1.0)
    limits = _limits(design, guess, add_up, budget, source)
    if limits is None:
        return Center(middle, 0.5, GUESS**2, line=line)
    return Center(guess, *limits, line=line, near=line is not None)


def _rough_fit(
    design: Design, add_up: AddUp, limits: Pair, budget: SumBudget, source: WordSource, origin: float
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
    none = weights.rows[:, :0]
    sums, _ = center.release(add_up, weights.rows, none, none, budget, part, source)
    values = weights.solve @ (sums + origin * weights.rows.sum(axis=0))
    return design.standard(values) - origin


def _limits(
    design: Design, guess: Array, add_up: AddUp, budget: SumBudget, source: WordSource
) -> tuple[float, float, float] | None:
    """Return where to clip distances from a guess, their variance, and by how much they are clipped in all.

    All are by noisy counts; None if distances are too far.
    """

    def count_distances(labels: Array, rows: Any) -> Sums:
        distances = labels - guess[rows]
        beyond = np.zeros((2, _DISTANCES.size + 1), dtype=np.int64)
        for k, distance in enumerate(_DISTANCES, 1):
            np.sum(distances > distance, dtype=np.int64, out=beyond[0, k : k + 1], keepdims=True)
            np.sum(distances < -distance, dtype=np.int64, out=beyond[1, k : k + 1], keepdims=True)
        return np.append(np.diff(beyond).ravel(), labels.size - beyond[:, -1].sum())

    epsilon = budget.part(0.2, 30 * math.sqrt(budget.rows))
    exact = add_up(count_distances)
    counts = budget.release(exact, epsilon, source, kind="counts", what="counts of distances").astype(np.float64)
    sides = counts[:-1].reshape(2, -1)
    far = np.cumsum(sides, axis=1)
    unsure = 2 / float(epsilon) * np.sqrt(2.0 * np.arange(1, _DISTANCES.size + 1))
    if design.intercept:
        noise = _NOISE * float(np.abs(design.white).sum(axis=1).mean()) / float(budget.left)
        reach, excess = _least_error(far, unsure, noise)
    else:  # the widest limit, unless many labels lie beyond half of it
        half, quarter = far.sum(axis=0)[:2].tolist()
        reach = _WIDEST if quarter <= _FEW * budget.rows else 1.0
        excess = max(half - 2 * float(unsure[0]), 0.0) * _WIDEST / 2
    start = int(np.argmax(reach / 2 >= _DISTANCES))
    if reach > _WIDEST or (far + unsure)[:, start].sum() > _BEYOND * design.fewest_rows():
        return None
    inner = np.append(sides.sum(axis=0), counts[-1])[1:].clip(0)  # between two distances
    inner *= reach >= _DISTANCES
    variance = float(inner @ (0.75 * _DISTANCES) ** 2 / max(inner.sum(), 1))
    return reach, min(max(variance, 1e-9), 0.25), excess


def _least_error(far: Array, unsure: Array, noise: float) -> Pair:
    """Return where to clip for the least error, and by how much labels are clipped in all; 1 for nowhere.

    Parameters
    ----------
    far, unsure : arrays
        How many labels lie beyond each distance on either side, about, and the error of that.
    noise : float
        The error by noise for labels that are clipped to a range of 1.
    """
    best = (1.05 * noise, 1.0, 0.0)  # squares are less noisy around a rough fit
    for reach in (_WIDEST * 2.0 ** (-np.arange(15) / 2)).tolist():
        excess = sum(_excess(reach, side, unsure) for side in far)
        best = min(best, (math.hypot(2 * reach * noise, _CAUTION * excess), reach, excess))
    return best[1], best[2]


def _excess(reach: float, far: Array, unsure: Array) -> float:
    """Return by how much labels are clipped in all on one side, about, and rather too much than too little.

    Far out, counts are all noise. The tail is taken to fall there as a power of the distance that grows with each
    factor of 2 as it did in the last one: right for log-normal errors and for powers, too much for lighter tails.
    It may start at any distance that is counted, whichever gives the least.
    """
    least, low, high = math.inf, far - unsure, np.maximum(far, 0) + unsure
    for start in np.flatnonzero(reach >= _DISTANCES[:-2]).tolist():
        nearer = max(float(low[start + 1]), 1.0)
        power = math.log2(nearer / high[start])
        growth = max(power - math.log2(max(high[start + 2] / nearer, 1.0)), 0.0)
        octaves = math.log2(reach / _DISTANCES[start])
        if power > _SLOWEST:
            beyond = float(high[start]) * 2 ** -(octaves * (power + growth * (octaves + 1) / 2))
            least = min(least, beyond * reach / (power + growth * (octaves + 0.5) - 1))
    return least
