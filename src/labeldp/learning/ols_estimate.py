"""Coefficients of `private_ols` and their distributions, from weighted sums of labels and of their squares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labeldp._values import Array
from labeldp.accounts.numbers import number
from labeldp.exact.word_sources import WordSource
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.estimate_law import EstimateLaw, possible_variances
from labeldp.learning.fit_plan import Pair
from labeldp.learning.ols_design import WEIGHT, Design
from labeldp.learning.ols_squares import Squares
from labeldp.learning.ols_sums import AddUp, Center, find_center

_TEST, _SEEN = 0.05, 90
"""At most this part of a row's weight for the test of fit, and how much is needed, for a width of one standard
deviation and over rows·ε: a bend with a standard deviation of a quarter of the errors' then moves its sum by four
standard deviations of the noise. Four times as much is given, if there is enough."""

_AT_BOUND, _NEARLY_ALL = 0.05, 0.9
"""So near to a bound, in widths, values lie at it; and the part of all rows."""

_UNSURE, _MOST_DOUBT = 0.3, 0.1
"""Noise hides a variance that it leaves unsure by more than this part, and an R² with a larger standard error."""

_CLIPPED = (
    "To save noise, slopes are from labels that were clipped {} from a rough fit. By noisy counts, this moves a "
    "label by about {} on average at most; standard errors include it."
)
_EDGE = "Nearly all fitted values lie at the bound {}: check that bounds and labels have the same unit."


@dataclass(frozen=True, slots=True)
class Estimates:
    """Coefficients and the distributions of their errors.

    Attributes
    ----------
    values : array
    laws : list of EstimateLaw
    covariance : array
    ordinary : array
        Standard errors that least squares without privacy would have; NaN if noise would hide them.
    r_squared : (float, float), optional
        The explained part of the labels' variance, and about its standard error; None if noise would hide it.
    fit_pvalue : float, optional
        Of a test whether squared predictions explain labels beyond the model; None if noise would hide it.
    notes : list of str
        What a reader of the table should know of labels that were clipped, bounds and noise.
    """

    values: Array
    laws: list[EstimateLaw]
    covariance: Array
    ordinary: Array
    r_squared: tuple[float, float] | None
    fit_pvalue: float | None
    notes: list[str]


def estimate(
    design: Design, add_up: AddUp, budget: SumBudget, source: WordSource, *, bounds: Pair, robust: bool
) -> Estimates:
    """Return coefficients and their laws, for all of the budget.

    Parameters
    ----------
    design : Design
    add_up : AddUp
        Over labels in units of their bounds, from 0 to 1.
    budget : SumBudget
    source : source of words
    bounds : (lo, hi)
    robust : bool
        Whether variances may differ between rows. Where there is no rough fit, robust variances are not taken
        below those for equal variances: if the true relation is no straight line, what is subtracted from squares
        around the middle of the bounds is too much for some coefficients.
    """
    low, high = bounds
    width = high - low
    origin = 0.0 if design.intercept else low / width  # without a constant, labels count from 0
    center = find_center(design, add_up, budget, source, origin)
    epsilon = float(budget.left)
    scale, whole = center.width / epsilon, design.intercept
    bend = _bend(design, center, epsilon)
    limit = WEIGHT - int(np.abs(bend).max(initial=0))
    narrow = 1 / center.width**2  # the noise of the constant's sum, which is of labels as they are
    ratio = 2 * scale**2 / center.variance
    weights = design.weights(ratio, narrow=narrow, limit=limit)
    squares = Squares.choose(design, weights, center, epsilon, robust=robust)
    weights = design.weights(ratio, narrow=narrow, limit=math.floor(limit * (1 - squares.line_share)))
    share = weights.of_labels()
    rows = np.hstack([weights.rows, bend])
    curve, tilt = squares.integers(np.abs(rows).sum(axis=1), int(whole * weights.rows[0, 0]), center)
    sums, found = center.release(add_up, rows, curve, tilt, budget, budget.left, source, whole=whole)
    values = weights.solve @ (sums[: design.size] + origin * weights.rows.sum(axis=0))
    noise = weights.noise_scales(np.where(np.arange(design.size) < whole, 1 / epsilon, scale))
    fit = design.standard(values) - origin
    moves = design.standard(noise)
    mean_square, *own = squares.spreads(design, fit, moves, found, curve, tilt, center, scale)
    plain, *unequal = possible_variances(mean_square, own)
    common = float(plain[0] @ plain[1])
    bias = center.excess**2 / budget.rows  # labels that are clipped count as an error of their own
    laws = []
    for k, size in enumerate((share**2).sum(axis=0).tolist()):
        variances, probabilities = plain
        if robust and (center.line is not None or unequal[k][0] @ unequal[k][1] >= common):
            variances, probabilities = unequal[k]
        variances = variances + bias if k >= whole else variances
        laws.append(EstimateLaw(variances * (width**2 * size), probabilities, width * np.abs(noise[k])))
    pvalue = None
    if bend.size:
        law = EstimateLaw(plain[0] * float((bend**2).sum()), plain[1], np.array([scale * WEIGHT]))
        pvalue = law.tail(float(sums[-1] - bend[:, 0] @ fit))
    sure = math.sqrt((plain[0] - common) ** 2 @ plain[1]) <= _UNSURE * common
    return Estimates(
        width * values + np.where(np.arange(design.size) < whole, low, 0.0),
        laws,
        _covariance(laws, share.T @ share, 2 * width**2 * noise @ noise.T),
        width * np.sqrt((common if sure else math.nan) * design.ordinary_variances()),
        _r_squared(fit + origin, moves, plain, centered=whole) if sure else None,
        pvalue,
        _notes(center, fit, bounds),
    )


def _notes(center: Center, fit: Array, bounds: Pair) -> list[str]:
    width = bounds[1] - bounds[0]
    numbers = [number(width * center.reach), number(width * center.excess / fit.size)]
    clipped = [_CLIPPED.format(*numbers)] if center.excess else []
    ends = zip(bounds, (fit, 1 - fit), strict=True)
    return clipped + [_EDGE.format(number(end)) for end, away in ends if (away < _AT_BOUND).mean() > _NEARLY_ALL]


def _bend(design: Design, center: Center, epsilon: float) -> Array:
    """Return integer weights of a test of fit: squared rough predictions, as far as no coefficient takes them up.

    There are none if noise would hide a bend, or if coefficients take all up, as those of categories do.
    """
    rows = len(design.model)
    part = _SEEN * center.width / math.sqrt(center.variance) / (rows * epsilon)
    if center.line is None or part > _TEST:
        return np.zeros((rows, 0))
    rough = np.clip(center.line, 0.0, 1.0)
    squares = (rough - rough.mean()) ** 2
    rest = squares - design.model @ np.linalg.lstsq(design.model, squares, rcond=None)[0]
    if rest.std() <= 1e-6 * squares.std():
        return np.zeros((rows, 0))
    most = max(8, math.floor(min(4 * part, _TEST) * WEIGHT))
    return np.asarray(np.rint(most * np.clip(rest / (4 * rest.std()), -1, 1)))[:, None]


def _r_squared(fit: Array, moves: Array, plain: tuple[Array, Array], *, centered: bool) -> Pair | None:
    """Return the explained part of the labels' variance without what noise adds, and about its standard error.

    Both the product of noise with the fit and the square of noise count; None if noise would hide it.
    """
    if centered:
        fit, moves = fit - fit.mean(), moves - moves.mean(axis=0)
    variances, probabilities = plain
    rest = float(variances @ probabilities)
    explained = max(float((fit**2).mean() - 2 * (moves**2).mean(axis=0).sum()), 0.0)
    linear, products = fit @ moves / fit.size, moves.T @ moves / fit.size
    doubt = 8 * float((linear**2).sum()) + 20 * float((products**2).sum())
    doubt = rest**2 * doubt + explained**2 * float((variances - rest) ** 2 @ probabilities)
    total = explained + rest
    error = math.sqrt(doubt) / total**2
    return (explained / total, error) if error <= _MOST_DOUBT else None


def _covariance(laws: list[EstimateLaw], sampling: Array, noise: Array) -> Array:
    """Return the covariance of the coefficients: the laws' variances, and correlations as for equal variances."""
    own = np.array([law.variance for law in laws]) - np.diag(noise)
    scale = np.sqrt(np.maximum(own, 0) / np.diag(sampling))
    return np.asarray(sampling * scale * scale[:, None] + noise)
