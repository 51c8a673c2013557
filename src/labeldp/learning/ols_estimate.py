"""Coefficients of `private_ols` and their laws, from weighted sums of labels and of their squares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labeldp._values import Array
from labeldp.exact.word_sources import WordSource
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.estimate_law import EstimateLaw, Spread, possible_variances
from labeldp.learning.label_units import Pair
from labeldp.learning.ols_design import WEIGHT, Design
from labeldp.learning.ols_sums import AddUp, Center, find_center

_TEST, _SEEN = 0.05, 90
"""At most this part of a row's weight for the test of fit, and how much is needed, for a width of one standard
deviation and over rows·ε: a bend with a standard deviation of a quarter of the errors' then moves its sum by four
standard deviations of the noise. Four times as much is given, if there is enough."""

_CUT = 1.0
"""How much rows that are cut off from sums of squares may differ in variance from the others."""

_EDGE, _NEARLY_ALL = 0.05, 0.9
"""So near to a bound, in widths, values lie at it; and the part of all rows."""

_UNSURE, _MOST_DOUBT, _FAINT = 0.3, 0.1, 0.05
"""Noise hides a variance that it leaves unsure by more than this part, an R² whose standard error is larger, and
slopes whose standard errors, for standardised columns, are all larger than this part of the bounds' width."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Coefficients and their laws.

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
    clipped : (float, float), optional
        The distance from a rough fit at which labels were clipped, and at most by how much on average.
    edge : float, optional
        The bound that nearly all fitted values lie at.
    faint : float, optional
        If noise hides many slopes: how far a standard deviation of a column must move labels to be seen.
    """

    values: Array
    laws: list[EstimateLaw]
    covariance: Array
    ordinary: Array
    r_squared: tuple[float, float] | None
    fit_pvalue: float | None
    clipped: tuple[float, float] | None
    edge: float | None
    faint: float | None


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
        Whether variances may differ between rows. Where labels are not known to lie near a rough fit, robust
        variances are not taken below those for equal variances: if the true relation is no straight line, what is
        subtracted from squares around the middle of the bounds is too much for some coefficients.
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
    weights = design.weights(2 * scale**2 / center.variance, narrow=narrow, limit=limit)
    share = weights.of_labels()
    limit = WEIGHT - int(weights.rows[0, 0]) if whole else WEIGHT
    curve = curve_weights(share, epsilon, center, limit, robust=robust)
    rows = np.hstack([weights.rows, bend])
    sums, squares = center.release(add_up, rows, curve, budget, budget.left, source, whole=whole)
    values = weights.solve @ (sums[: design.size] + origin * weights.rows.sum(axis=0))
    noise = weights.noise_scales(np.where(np.arange(design.size) < whole, 1 / epsilon, scale))
    fit = design.standard(values) - origin
    moves = design.standard(noise)
    mean_square, own = _spreads(design, fit - center.guess, moves, squares, curve, center, scale)
    plain = possible_variances(mean_square, None)
    common = float(plain[0] @ plain[1])
    bias = center.excess**2 / budget.rows  # labels that are clipped count as an error of their own
    laws = []
    for k, size in enumerate((share**2).sum(axis=0).tolist()):
        variances, probabilities = plain
        if robust:
            unequal = possible_variances(mean_square, own[k])
            if center.near or unequal[0] @ unequal[1] >= common:
                variances, probabilities = unequal
        variances = variances + bias if k >= whole else variances
        laws.append(EstimateLaw(variances * (width**2 * size), probabilities, width * np.abs(noise[k])))
    pvalue = None
    if bend.size:
        law = EstimateLaw(plain[0] * float((bend**2).sum()), plain[1], np.array([scale * WEIGHT]))
        pvalue = law.tail(float(sums[-1] - bend[:, 0] @ fit))
    sure = math.sqrt((plain[0] - common) ** 2 @ plain[1]) <= _UNSURE * common
    slopes = zip(laws[whole:], np.diag(design.back)[whole:], strict=True)
    faint = min(float(law.deviation / back) for law, back in slopes)
    return Estimates(
        width * values + np.where(np.arange(design.size) < whole, low, 0.0),
        laws,
        _covariance(laws, share.T @ share, 2 * width**2 * noise @ noise.T),
        width * np.sqrt((common if sure else math.nan) * design.ordinary_variances()),
        _r_squared(fit + origin, moves, plain, centered=whole) if sure else None,
        pvalue,
        (width * center.reach, width * center.excess / budget.rows) if center.excess else None,
        next((end for end, away in ((low, fit), (high, 1 - fit)) if (away < _EDGE).mean() > _NEARLY_ALL), None),
        2 * faint if faint > _FAINT * width else None,
    )


def _bend(design: Design, center: Center, epsilon: float) -> Array:
    """Return integer weights of a test of fit: squared rough predictions, as far as no coefficient takes them up.

    There are none if noise would hide a bend, or if coefficients take all up, as those of categories do.
    """
    rows = len(design.model)
    part = _SEEN * center.width / math.sqrt(center.variance) / (rows * epsilon)
    if center.rough is None or part > _TEST:
        return np.zeros((rows, 0))
    squares = (center.rough - center.rough.mean()) ** 2
    rest = squares - design.model @ np.linalg.lstsq(design.model, squares, rcond=None)[0]
    if rest.std() <= 1e-6 * squares.std():
        return np.zeros((rows, 0))
    most = max(8, math.floor(min(4 * part, _TEST) * WEIGHT))
    return np.asarray(np.rint(most * np.clip(rest / (4 * rest.std()), -1, 1)))[:, None]


def curve_weights(share: Array, epsilon: float, center: Center, limit: int, *, robust: bool) -> Array:
    """Return integer weights of squares, the same for all rows and, if robust, as in each coefficient.

    Rows that weigh far more than the others are cut off as far as that adds less to the error than noise would.
    """
    rows, size = share.shape
    if not robust:
        return np.full((rows, 1), float(limit))
    profile = share**2 / (share**2).mean(axis=0) / size
    totals = profile.sum(axis=1)
    unit = center.width**2 / center.factor * (size + 1) / (epsilon * rows * center.variance)
    most = min(
        (float(totals.max()) * 2.0**-k for k in range(8)),
        key=lambda most: (unit * most) ** 2 + (_CUT * float(np.maximum(totals - most, 0).mean())) ** 2,
    )
    profile *= np.minimum(1, most / np.maximum(totals, 1e-300))[:, None]
    part = limit * size / (size + 1) - size / 2 - 1
    plain = np.full((rows, 1), limit / (size + 1))
    return np.asarray(np.rint(np.hstack([plain, profile * (part / most)])))


def _spreads(
    design: Design, moved: Array, moves: Array, squares: Array, curve: Array, center: Center, scale: float
) -> tuple[Spread, list[Spread]]:
    """Return the variance of labels around the model, plain and as each coefficient weights the rows.

    Squares are around the guess: those of the way from there to the model are subtracted, without what noise adds.

    Parameters
    ----------
    design : Design
    moved : array
        From the guess to the model, for each row.
    moves : array, rows × sums
        How far noise on each sum moves the model.
    squares, curve, center
        Noisy sums of squares around the guess, and their weights.
    scale : float
        Of the noise on a sum whose weights are at most 1.
    """
    rows = len(design.model)
    inflation = 2 * (moves**2).sum(axis=1)
    inverse = np.linalg.inv(design.model.T @ design.model)
    leverage = np.einsum("ij,jk,ik->i", design.model, inverse, design.model)
    totals = np.maximum(curve.sum(axis=0), 1)
    freedom = 1 / (1 - leverage @ curve / totals)
    freedom[1:] **= 4  # as HC4 does at most: with few rows, robust variances are too small otherwise
    means = (squares - (moved**2 - inflation) @ curve) / totals * freedom
    products = moves.T @ moves / rows
    doubt = 4 * float((products**2).sum()) + 4 * float(((moved @ moves / rows) ** 2).sum())
    chance = np.sqrt(2 * (curve**2).sum(axis=0)) / totals  # of squares of errors with a kurtosis of 5
    unit = center.width / center.factor * scale * WEIGHT
    scales = np.hypot(unit / totals * freedom, math.sqrt(doubt))
    figures = np.column_stack([means, scales, chance]).tolist()
    mean, *own = [Spread(*each) for each in figures]
    return mean, own


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
