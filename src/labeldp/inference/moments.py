"""The queries of `private_ols` on labels: their range, and weighted sums of labels and of their squares.

Labels are scaled to [0, 1]. Every query is a sum of integers over rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from labeldp._values import Array
from labeldp.errors import PrivacyProofError
from labeldp.exact.word_sources import WordSource
from labeldp.inference.design import GUESS, WEIGHT, Design
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.fit_plan import Pair
from labeldp.learning.label_queries import CELLS, find_range
from labeldp.release.curator import count

GRID = (1 << 20) - 1
"""For weighted sums, labels are rounded to integers from 0 to this."""

_BLOCK = 1 << 20
"""Over this many rows, products of integers add up to less than 2^52, so that floats are exact."""

_ROUGH = 0.1
"""The largest fraction of ε for a rough fit."""

_ROUGH_ERROR, _ENOUGH = 0.04, 0.01
"""Errors of predictions, as fractions of the range: no rough fit is made if its error would be above the first,
and less ε is spent if the error would be below the second."""

_DISTANCES = 2.0 ** -np.arange(1, 11)
"""Distances from a rough fit beyond which labels are counted."""

_SLOWEST = 1.6
"""Labels are not clipped if the tail falls with a smaller power of the distance."""

_CAUTION = 2.0
"""The weight of the total clipped amount, relative to noise, in the choice of the clipping limit."""

_NOISE = 1.5
"""The error of a slope's sum from noise, in ranges over ε and in mean absolute weights of a row."""

_WIDEST = 0.5
"""The largest clipping limit."""

_BEYOND = 0.5
"""Labels are not clipped if more labels may lie beyond half the limit than this fraction of the number of rows
behind one coefficient."""


@dataclass(frozen=True, slots=True)
class Query:
    """The labels of a regression, the budget that pays for queries, and the source of the noise.

    Attributes
    ----------
    labels : array
        Labels in [0, 1].
    budget : SumBudget
    source : source of words
    """

    labels: Array = field(repr=False)
    budget: SumBudget
    source: WordSource


@dataclass(frozen=True, slots=True)
class Center:
    """The values around which labels are clipped, and the clipping limit.

    Attributes
    ----------
    guess : array
        The value that is subtracted from the label of each row.
    reach : float
        Differences are clipped to ± this.
    variance : float
        The expected variance of labels around the model.
    excess : float
        An upper limit of the total amount that clipping removes.
    line : array, optional
        Predictions of the rough fit, if there is one; they may lie outside the bounds.
    near : bool
        Whether labels are known to lie near the rough fit, whose predictions, clipped to the bounds, are then the
        guess.
    """

    guess: Array = field(repr=False)
    reach: float
    variance: float
    excess: float = 0.0
    line: Array | None = field(default=None, repr=False)
    near: bool = False

    @property
    def width(self) -> float:
        """The range of the clipped differences."""
        return 2 * self.reach

    @property
    def factor(self) -> int:
        """The factor of squares in `curve_of`: larger if labels are known to lie near the rough fit."""
        return 2 if self.near else 1

    def release(
        self, query: Query, epsilon: Fraction, weights: Array, curve: Array, tilt: Array, *, whole: bool = False
    ) -> tuple[Array, Array]:
        """Return noisy weighted sums of the labels and of their squared distances from the guess.

        A distance, times ``tilt``, is subtracted from each square: this moves the center of the squares.

        Parameters
        ----------
        query : Query
        epsilon : Fraction
            The part of the budget to spend.
        weights, curve : arrays of integers, rows × sums
            Weights of labels and of squares.
        tilt : array of integers, rows × sums of squares
        whole : bool
            Whether the first sum is of labels that are not clipped.
        """
        first = int(whole)
        both = np.abs(np.hstack([weights[:, first:], tilt])).sum(axis=1), np.abs(curve).sum(axis=1)
        totals = np.abs(weights[:, :first]).sum(axis=1) + np.maximum(*both)
        if not (totals <= WEIGHT).all():  # NaN is refused, too
            raise PrivacyProofError(f"the weights of a row add up to more than {WEIGHT}")
        guess, reach, width, factor = self.guess, self.reach, self.width, self.factor
        exact = np.zeros(weights.shape[1] + curve.shape[1], dtype=np.int64)
        for start in range(0, guess.size, _BLOCK):
            rows = slice(start, start + _BLOCK)
            linear, bent, tilted = (np.trunc(integers[rows]) for integers in (weights, curve, tilt))
            with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
                near = np.clip(query.labels[rows] - guess[rows], -reach, reach) / width + 0.5
                places, plain = (np.clip(np.rint(units * GRID), 0, GRID) for units in (near, query.labels[rows]))
                squares = curve_of(places, factor) @ bent - places @ tilted
                parts = [plain @ linear[:, :first], places @ linear[:, first:], squares]
                exact += np.concatenate(parts).astype(np.int64)
        what, steps = f"{exact.size:,} weighted sums", (GRID + 1) * WEIGHT
        noisy = query.budget.release(exact, epsilon, query.source, kind="weighted sums", what=what, steps=steps)
        linear, squares = np.split(noisy / GRID, [weights.shape[1]])
        linear[first:] = (width * (linear - weights.sum(axis=0) / 2) + guess @ weights)[first:]
        return linear, width**2 / factor * (squares + tilt.sum(axis=0) / 2)


def curve_of(places: Array, factor: int) -> Array:
    """Return factor · (distance from the middle)² / G as an integer, rounded down, up to a limit.

    No quotient is an integer, so floats are near enough to be exact. The time of an integer division depends on
    the quotient, and would depend on labels.
    """
    twice = 2 * places - GRID
    squares = np.floor(twice * twice * (factor / (4 * GRID)))
    return np.minimum(squares, math.floor(GRID * (0.5 - 0.25 / factor)))


def find_center(design: Design, query: Query) -> Center:
    """Return the center from a range and a rough fit, or the middle of the bounds if neither is found."""
    bounds = (0.0, 1.0)
    cells = partial(count, query.labels, bounds, CELLS)
    low, high = find_range(cells, bounds, query.budget, query.source) or bounds
    middle = np.full(query.budget.rows, (low + high) / 2)
    line = _rough_fit(design, query, Center(middle, (high - low) / 2, GUESS**2))
    if line is not None or (low, high) != bounds:
        guess = middle if line is None else np.clip(line, 0.0, 1.0)
        clipping = _find_clipping(design, query, guess)
        if clipping is not None:
            return Center(guess, *clipping, line=line, near=line is not None)
    return Center(np.full(middle.size, 0.5), 0.5, GUESS**2, line=line)


def _rough_fit(design: Design, query: Query, center: Center) -> Array | None:
    """Return predictions for all rows for a small part of ε, or None if they would be too noisy."""
    width, most = center.width, _ROUGH * float(query.budget.left)
    weights = design.weights(2 * (width / most) ** 2 / (GUESS * width) ** 2, rough=True)
    noise = design.predict(weights.noise_scales(1 / most))
    error = math.sqrt(2 * float((noise**2).sum(axis=1).mean()))  # in widths
    if error > _ROUGH_ERROR:
        return None
    part = Fraction(f"{most * min(1, error / _ENOUGH):.2g}")
    none = weights.rows[:, :0]
    sums, _ = center.release(query, part, weights.rows, none, none)
    return design.predict(weights.solve @ sums)


def _find_clipping(design: Design, query: Query, guess: Array) -> tuple[float, float, float] | None:
    """Return a clipping limit, the variance of distances from the guess, and the total clipped amount.

    All three follow from noisy counts of distances. The result is None if distances are too large to be clipped.
    """
    distances, budget = query.labels - guess, query.budget
    pairs = [(side, limit) for side in (distances, -distances) for limit in _DISTANCES.tolist()]
    beyond = np.reshape([np.sum(side > limit, dtype=np.int64, keepdims=True) for side, limit in pairs], (2, -1))
    exact = np.append(np.diff(beyond, prepend=0).ravel(), guess.size - beyond[:, -1].sum())
    epsilon = budget.part(0.2, 30 * math.sqrt(guess.size))
    noisy = budget.release(exact, epsilon, query.source, kind="counts", what="counts of distances")
    counts = noisy.astype(np.float64)
    sides = counts[:-1].reshape(2, -1)
    far = np.cumsum(sides, axis=1)
    unsure = 2 / float(epsilon) * np.sqrt(2.0 * np.arange(1, _DISTANCES.size + 1))
    noise = _NOISE * float(np.abs(design.white).sum(axis=1).mean()) / float(budget.left)
    reach, excess = _least_error(far, unsure, noise)
    start = int(np.argmax(reach / 2 >= _DISTANCES))
    squares = design.ordinary_weights() ** 2
    fewest = float((squares.sum(axis=0) ** 2 / (squares**2).sum(axis=0)).min())  # rows behind one coefficient
    if reach > _WIDEST or (far + unsure)[:, start].sum() > _BEYOND * fewest:
        return None
    between = np.append(sides.sum(axis=0), counts[-1])[1:].clip(0)  # counts between two distances
    between *= reach >= _DISTANCES
    variance = float(between @ (0.75 * _DISTANCES) ** 2 / max(between.sum(), 1))
    return reach, min(max(variance, 1e-9), 0.25), excess


def _least_error(far: Array, unsure: Array, noise: float) -> Pair:
    """Return the clipping limit with the least error, and the total clipped amount; the limit is 1 for none.

    Parameters
    ----------
    far : array, 2 × distances
        Noisy counts of the labels beyond each distance on either side.
    unsure : array
        The errors of these counts.
    noise : float
        The error from noise for labels that are clipped to a range of 1.
    """
    best = (1.05 * noise, 1.0, 0.0)  # squares are less noisy around a rough fit
    for reach in (_WIDEST * 2.0 ** (-np.arange(15) / 2)).tolist():
        excess = sum(_excess(reach, side, unsure) for side in far)
        best = min(best, (math.hypot(2 * reach * noise, _CAUTION * excess), reach, excess))
    return best[1], best[2]


def _excess(reach: float, far: Array, unsure: Array) -> float:
    """Return a cautious estimate of the total amount that clipping removes on one side.

    Counts at large distances are mostly noise, so the tail is extrapolated from nearer ones: as a power of the
    distance that grows with each factor of 2 as it did in the last one. This fits power laws and log-normal
    errors, and overestimates lighter tails. The result is the least over all starting distances.
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
