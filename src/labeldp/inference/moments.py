"""Moments of a regression: noisy weighted sums of labels and of squares, with their public weights.

Moments are all that is released. Any estimating equation in them, and any distribution of its errors, costs
nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from labeldp._values import Array
from labeldp.inference.clip_window import WindowSearch, find_upper_limit, find_window, keep_bounds
from labeldp.inference.design import Design, residuals
from labeldp.inference.families import LOGIT, OLS, POISSON, Family
from labeldp.inference.label_weights import WeightCandidates, integer_weights
from labeldp.inference.square_weights import SquareWeights, choose_square_weights, sums_beside_squares
from labeldp.inference.weighted_sums import MAX_ROW_WEIGHT, ClipWindow, PersonProducts, PersonRows, WeightedSums
from labeldp.learning.epsilon_split import Share
from labeldp.learning.fit_plan import UNIT
from labeldp.release.label_access import LabelAccess

_SEARCHES: dict[str, WindowSearch] = {
    OLS.name: find_window,
    LOGIT.name: keep_bounds,
    POISSON.name: find_upper_limit,
}
"""The search for a narrower range of labels: none for labels of 0 and 1, from 0 on for counts."""

_ALLOWED_BIAS = 0.25
"""The bias, in standard errors, that a curvature of the mean may cause by the weights of rows."""

_ROWS_OF_BIAS = 10_000
"""Beyond this many rows, less bias is allowed: a misfit that grows with leverage does not shrink with rows, and
standard errors do."""

_PAIRS_SHARE = 0.1
"""The largest fraction of ε for products of distances of one person."""

_PAIRS_ROWS_EPSILON = 100
"""They cost at most the ε for which rows · ε is this, times the squared half width over the variance of labels.
The correlation has then an error of about 0.06."""

_MAX_RESET_SHARE = 0.05
"""The largest fraction of a row's weight for the test of fit."""

_RESET_POWER = 90
"""The fraction that the test needs, times rows · ε and divided by the width in standard deviations: a bend with a
quarter of the errors' standard deviation then moves the sum by four standard deviations of the noise."""


class PairProducts(NamedTuple):
    """A noisy sum of products of distances from the window's center, over all pairs of rows of one person.

    Attributes
    ----------
    people : PersonRows
    total : float
    noise_scale : float
    """

    people: PersonRows
    total: float
    noise_scale: float


class Moments(NamedTuple):
    """Noisy sums, and the public weights of rows in them.

    Attributes
    ----------
    design : Design
        The columns that were released.
    weights : WeightedSums
        The integer weights of rows in all sums, and the window.
    squares : SquareWeights
        Weights of squares before they were cut off.
    label_sums : array
        Weighted sums of labels; after those for coefficients, there may be one for the test of fit.
    square_sums : array
        Weighted sums of squared distances from the window's center: equal weights first, then one for each
        coefficient.
    epsilon : float
        The budget of the sums, on which their noise depends.
    pairs : PairProducts, optional
        For rows of one person.
    """

    design: Design
    weights: WeightedSums
    squares: SquareWeights
    label_sums: Array
    square_sums: Array
    epsilon: float
    pairs: PairProducts | None = None

    @property
    def window(self) -> ClipWindow:
        """The interval to which labels were clipped."""
        return self.weights.window

    @property
    def label_weights(self) -> Array:
        """M: the integer weights of labels in the sums for coefficients, rows × sums."""
        return np.hstack([self.weights.labels, self.weights.clipped])[:, : self.design.size]

    @property
    def reset_weights(self) -> Array:
        """The integer weights of the sum for the test of fit; no column if there is none."""
        return self.weights.clipped[:, self.design.size - 1 :]

    @property
    def noise_scales(self) -> Array:
        """The scale of the noise of each coefficient's sum."""
        widths = np.append(1.0, np.full(self.design.size - 1, self.window.width))  # the first is not clipped
        return widths / self.epsilon * MAX_ROW_WEIGHT

    @property
    def square_noise_scale(self) -> float:
        """The scale of the noise of each sum of squares."""
        return self.window.square_unit / self.epsilon * MAX_ROW_WEIGHT

    def select(self, positions: Sequence[int]) -> Moments:
        """Return the moments with the squares for some coefficients alone."""
        columns = np.append(0, np.add(positions, 1))
        weights = replace(
            self.weights, squares=self.weights.squares[:, columns], linear=self.weights.linear[:, columns]
        )
        squares = self.squares._replace(profile=self.squares.profile[:, positions])
        return self._replace(weights=weights, squares=squares, square_sums=self.square_sums[columns])


def measure(
    candidates: WeightCandidates, access: LabelAccess, family: Family = OLS, people: PersonRows | None = None
) -> Moments:
    """Return the moments of labels, for all of the budget that is left, with weights for a family.

    Weights of labels are chosen for the noise of the window that is found first. They leave room for weights of
    the test of fit and for squares around the rough fit.
    """
    design = candidates.design
    window = _SEARCHES[family.name](candidates, access)
    pairs = None if people is None else _measure_pairs(access, window, people)
    epsilon = float(access.remaining)
    reset = _reset_weights(design, window, epsilon)
    limit = MAX_ROW_WEIGHT - int(np.abs(reset).max(initial=0))
    candidate = candidates.choose(
        2 * (window.width / epsilon) ** 2 / window.residual_variance,
        intercept_ratio=1 / window.width**2,  # labels of its sum are not clipped
        allowed_bias=_allowed_bias(design.rows, family),
    )
    shares = candidate.shares(design)
    squares = choose_square_weights(design, integer_weights(shares, limit), window, epsilon)
    integers = integer_weights(shares, math.floor(limit * (1 - squares.linear_share)))
    weights = sums_beside_squares(window, squares, integers, reset)
    return Moments(design, weights, squares, *weights.measure(access, access.remaining), epsilon, pairs)


def _measure_pairs(access: LabelAccess, window: ClipWindow, people: PersonRows) -> PairProducts:
    """Return the products within people, for a part of the budget with which a correlation is seen."""
    rows_epsilon = _PAIRS_ROWS_EPSILON * window.half_width**2 / window.residual_variance
    epsilon = Share(_PAIRS_SHARE, rows_epsilon).of(access)
    return PairProducts(people, *PersonProducts(window, people).measure(access, epsilon))


def _allowed_bias(rows: int, family: Family) -> float:
    """Return the bias that a curvature of the mean may cause, in standard errors.

    An exponential mean that the bounds cut off may be far more curved than is assumed.
    """
    excess = max(rows / _ROWS_OF_BIAS, 1.0)
    return _ALLOWED_BIAS / (excess if family == POISSON else math.sqrt(excess))


def _reset_weights(design: Design, window: ClipWindow, epsilon: float) -> Array:
    """Return the integer weights of the test of fit: residuals of squared rough predictions, as one column.

    There is no column if noise would hide a bend, or if the model explains the squares, as categories do.
    """
    rows = design.rows
    none = np.zeros((rows, 0))
    share = _RESET_POWER * window.width / math.sqrt(window.residual_variance) / (rows * epsilon)
    if window.rough_fit is None or share > _MAX_RESET_SHARE:
        return none
    rough_fit = np.clip(window.rough_fit, *UNIT)
    squares = (rough_fit - rough_fit.mean()) ** 2
    unexplained = residuals(design.matrix, squares)
    deviation = unexplained.std()
    if deviation <= 1e-6 * squares.std():
        return none
    largest = max(8, math.floor(min(4 * share, _MAX_RESET_SHARE) * MAX_ROW_WEIGHT))
    return np.asarray(np.rint(largest * np.clip(unexplained / (4 * deviation), -1, 1)))[:, None]
