"""Coefficients of `private_ols` and their distributions, from weighted sums of labels and of their squares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labeldp._values import Array
from labeldp.accounts.numbers import number
from labeldp.inference.design import WEIGHT, Design, residuals
from labeldp.inference.distribution import EstimateLaw, possible_variances
from labeldp.inference.moments import Center, Query, find_center
from labeldp.inference.robust_variances import Squares
from labeldp.learning.fit_plan import Pair

_TEST = 0.05
"""The largest fraction of a row's weight for the test of fit."""

_SEEN = 90
"""The fraction that the test needs, times rows · ε and divided by the width in standard deviations: a bend with a
quarter of the errors' standard deviation then moves the sum by four standard deviations of the noise."""

_AT_BOUND, _NEARLY_ALL = 0.05, 0.9
"""A note is made if more than the second fraction of fitted values is within the first, in widths, of a bound."""

_UNSURE, _MOST_DOUBT = 0.3, 0.1
"""A variance is hidden by noise if its relative error is larger than the first, R² if its error is larger than the
second."""

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
    fit : dict
        R² as "rsquared", its approximate "standard_error", and the "pvalue" of a test whether squared predictions
        improve the model; without those that noise would hide.
    notes : list of str
        Sentences about clipped labels and about bounds.
    """

    values: Array
    laws: list[EstimateLaw]
    covariance: Array
    ordinary: Array
    fit: dict[str, float]
    notes: list[str]


def estimate(design: Design, query: Query, bounds: Pair) -> Estimates:
    """Return coefficients and the distributions of their errors, for all of the budget.

    Without a rough fit, a coefficient's variance is at least that for equal variances: if the true relation is not
    linear, too much is subtracted from squares around the middle of the bounds.

    Parameters
    ----------
    design : Design
    query : Query
    bounds : (lo, hi)
    """
    low, high = bounds
    width = high - low
    center = find_center(design, query)
    epsilon = float(query.budget.left)
    scale = center.width / epsilon
    bend = _bend(design, center, epsilon)
    limit = WEIGHT - int(np.abs(bend).max(initial=0))
    ratio = 2 * scale**2 / center.variance
    narrow = 1 / center.width**2  # labels of the intercept's sum are not clipped
    weights = design.weights(ratio, narrow=narrow, limit=limit)
    squares = Squares.choose(design, weights, center, epsilon)
    weights = design.weights(ratio, narrow=narrow, limit=math.floor(limit * (1 - squares.line_share)))
    rows = np.hstack([weights.rows, bend])
    curve, tilt = squares.integers(np.abs(rows).sum(axis=1), int(rows[0, 0]))
    sums, sums_of_squares = center.release(query, query.budget.left, rows, curve, tilt, whole=True)
    values = weights.solve @ sums[: design.size]
    noise = weights.noise_scales(design.join(1 / epsilon, scale))
    fit, moves = design.predict(values), design.predict(noise)
    mean, *own = squares.spreads(fit, moves, sums_of_squares, curve, tilt, scale)
    equal, *unequal = possible_variances(mean, own)
    variance = float(equal[0] @ equal[1])
    bias = center.excess**2 / len(rows)  # clipping is an error of the slopes
    share = weights.of_labels()
    laws = []
    for k, size in enumerate((share**2).sum(axis=0).tolist()):
        variances, probabilities = unequal[k]
        if center.line is None and variances @ probabilities < variance:
            variances, probabilities = equal
        variances = variances + bias if k else variances
        laws.append(EstimateLaw(variances * (width**2 * size), probabilities, width * np.abs(noise[k])))
    is_sure = math.sqrt((equal[0] - variance) ** 2 @ equal[1]) <= _UNSURE * variance
    fitness = _r_squared(fit, moves, equal) if is_sure else {}
    if bend.size:
        law = EstimateLaw(equal[0] * float((bend**2).sum()), equal[1], np.array([scale * WEIGHT]))
        fitness["pvalue"] = law.tail(float(sums[-1] - bend[:, 0] @ fit))
    values = width * values + design.join(low, 0.0)
    covariance = _covariance(laws, share.T @ share, 2 * width**2 * noise @ noise.T)
    ordinary = width * np.sqrt((variance if is_sure else math.nan) * (design.ordinary_weights() ** 2).sum(axis=0))
    return Estimates(values, laws, covariance, ordinary, fitness, _notes(center, fit, bounds))


def _notes(center: Center, fit: Array, bounds: Pair) -> list[str]:
    """Return notes on clipped labels, and on fitted values that lie at a bound."""
    width, notes = bounds[1] - bounds[0], []
    if center.excess:
        notes.append(_CLIPPED.format(number(width * center.reach), number(width * center.excess / fit.size)))
    for bound, distances in zip(bounds, (fit, 1 - fit), strict=True):
        if (distances < _AT_BOUND).mean() > _NEARLY_ALL:
            notes.append(_EDGE.format(number(bound)))
    return notes


def _bend(design: Design, center: Center, epsilon: float) -> Array:
    """Return the integer weights of the test of fit: residuals of squared rough predictions, as one column.

    There is no column if noise would hide a bend, or if the model explains the squares, as categories do.
    """
    rows = len(design.model)
    part = _SEEN * center.width / math.sqrt(center.variance) / (rows * epsilon)
    if center.line is None or part > _TEST:
        return np.zeros((rows, 0))
    rough = np.clip(center.line, 0.0, 1.0)
    squares = (rough - rough.mean()) ** 2
    rest = residuals(design.model, squares)
    if rest.std() <= 1e-6 * squares.std():
        return np.zeros((rows, 0))
    most = max(8, math.floor(min(4 * part, _TEST) * WEIGHT))
    return np.asarray(np.rint(most * np.clip(rest / (4 * rest.std()), -1, 1)))[:, None]


def _r_squared(fit: Array, moves: Array, law: tuple[Array, Array]) -> dict[str, float]:
    """Return R² without the part that noise adds, and its approximate standard error; nothing if noise hides it.

    The error has two parts: the product of the noise with the fit, and the square of the noise. ``law`` has
    possible variances of a label around the model, and their probabilities.
    """
    fit, moves = fit - fit.mean(), moves - moves.mean(axis=0)
    variances, probabilities = law
    rest = float(variances @ probabilities)
    explained = max(float((fit**2).mean() - 2 * (moves**2).mean(axis=0).sum()), 0.0)
    linear, products = fit @ moves / fit.size, moves.T @ moves / fit.size
    doubt = 8 * float((linear**2).sum()) + 20 * float((products**2).sum())
    doubt = rest**2 * doubt + explained**2 * float((variances - rest) ** 2 @ probabilities)
    total = explained + rest
    error = math.sqrt(doubt) / total**2
    return {"rsquared": explained / total, "standard_error": error} if error <= _MOST_DOUBT else {}


def _covariance(laws: list[EstimateLaw], sampling: Array, noise: Array) -> Array:
    """Return the covariance of the coefficients: the laws' variances, and correlations as for equal variances."""
    own = np.array([law.variance for law in laws]) - np.diag(noise)
    scale = np.sqrt(np.maximum(own, 0) / np.diag(sampling))
    return np.asarray(sampling * scale * scale[:, None] + noise)
