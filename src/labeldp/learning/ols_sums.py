"""What `private_ols` asks of the labels: weighted sums with noise, and the coefficients and laws that follow.

Labels are in units of their bounds, from 0 to 1. First a range and, with enough rows, a rough fit; then, around
it, weighted sums of labels and of their squares, in one release (docs/proofs/ols.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from labeldp._values import Array, Sums
from labeldp.errors import PrivacyProofError
from labeldp.exact.word_sources import WordSource
from labeldp.learning.estimate_law import EstimateLaw, Spread, possible_variances
from labeldp.learning.fit_plan import SumBudget
from labeldp.learning.ols_design import GUESS, WEIGHT, Design
from labeldp.learning.sums import CELLS, Stage, find_range
from labeldp.release.curator import count

GRID = (1 << 20) - 1
"""Labels are integers from 0 to this where they are summed with weights."""

_BLOCK = 1 << 20
"""Rows whose products of integers add up below 2^52, so that doubles are exact."""

_ROUGH, _ROUGH_ERROR = 0.1, 0.04
"""At most this part of ε for a rough fit, if its predictions are off by less than this part of the range."""

_DISTANCES = 2.0 ** (-np.arange(1, 21) / 2)
_BEYOND = 0.15
"""Labels are clipped at twice a distance beyond which there are at most 0.3·rows^(3/4), or so few that noise hides
them, and never more than this part: exponential errors then move a mean by a tenth of its standard error."""

_MEAN = 0.12
"""The part of ε for the mean of all labels, where the other sums are of clipped distances."""

_PLAIN = 0.25
"""The part of a row's weight for the plain sum of squares; the rest is for squares as coefficients weight rows."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Coefficients in units of the bounds, and their laws.

    Attributes
    ----------
    values : array
    laws : list of EstimateLaw
    covariance : array
    ordinary : array
        Standard errors that least squares without privacy would have.
    """

    values: Array
    laws: list[EstimateLaw]
    covariance: Array
    ordinary: Array


@dataclass(frozen=True, slots=True)
class Center:
    """Where labels lie: a guess for each row, how far they may be from it, and their variance around the model."""

    guess: Array
    reach: float
    variance: float

    @property
    def width(self) -> float:
        """The range of what is summed."""
        return 2 * self.reach

    @property
    def clips(self) -> bool:
        """Whether labels within the bounds may be clipped."""
        return self.reach < 0.5


def estimate(
    design: Design, labels: Array, budget: SumBudget, source: WordSource, *, origin: float, robust: bool
) -> Estimates:
    """Return coefficients and their laws, for all of the budget.

    Parameters
    ----------
    design : Design
    labels : array
        From 0 to 1.
    budget : SumBudget
    source : source of words
    origin : float
        What a label of 0 counts as, in units of the bounds; for a model without intercept.
    robust : bool
        Whether variances may differ between rows. Where labels are not clipped around a rough fit, and noise does
        not hide it, robust variances are not taken below those for equal variances: if the true relation is no
        straight line, what is subtracted from squares around the middle of the bounds is too much for some
        coefficients.
    """
    rows = labels.size
    center = _center(design, labels, budget, source)
    mean = None
    if center.clips:
        stage = Stage((0.0, 1.0))
        part = budget.part(_MEAN, math.inf)
        mean = float(stage.release(stage.sums(labels), part, budget, source)[0]) / rows, 1 / float(part) / rows
    scale = center.width / float(budget.left)
    weights = design.weights(2 * scale**2 / center.variance)
    share = weights.of_labels()
    curve = curve_weights(share, float(budget.left), center, robust=robust)
    sums, squares = _release(labels, center, weights.rows, curve, budget, budget.left, source)
    values = weights.solve @ (sums + (center.guess + origin) @ weights.rows)
    noise = weights.noise_scales(scale)
    mean_square, own = _spreads(design, values, noise, squares, curve, center, scale, origin=origin)
    if mean is not None:  # the intercept from labels that are not clipped; columns have a mean of 0
        forward = np.linalg.inv(design.back)
        values = values + design.back[:, 0] * (mean[0] - forward[0] @ values)
        keep = np.eye(design.size) - np.outer(design.back[:, 0], forward[0])
        noise = np.column_stack([keep @ noise, design.back[:, 0] * mean[1]])
        share = share @ keep.T + np.outer(np.full(rows, 1 / rows), design.back[:, 0])
    size = (share**2).sum(axis=0)
    plain = possible_variances(mean_square, None)
    common = float(plain[0] @ plain[1])
    laws = []
    for k in range(design.size):
        variances, probabilities = plain
        if robust:
            unequal = possible_variances(mean_square, own[k])
            as_measured = center.clips or own[k].scale >= common / 3
            if as_measured or unequal[0] @ unequal[1] >= common:
                variances, probabilities = unequal
        laws.append(EstimateLaw(variances * size[k], probabilities, np.abs(noise[k])))
    covariance = _covariance(laws, share.T @ share, 2 * noise @ noise.T)
    return Estimates(values, laws, covariance, np.sqrt(common * design.ordinary_variances()))


# ---- where labels lie -----------------------------------------------------------------------------------


def _center(design: Design, labels: Array, budget: SumBudget, source: WordSource) -> Center:
    """Return where labels lie, by a range and a rough fit; the middle of the bounds if that cannot be found."""
    everywhere = Center(np.full(labels.size, 0.5), 0.5, GUESS**2)
    if not design.intercept:  # clipped errors have a mean that no intercept would take up
        return everywhere
    low, high = find_range(lambda: count(labels, (0.0, 1.0), CELLS), (0.0, 1.0), budget, source) or (0.0, 1.0)
    guess = _rough_fit(design, labels, (low, high), budget, source)
    if guess is None and (low, high) == (0.0, 1.0):
        return everywhere
    guess = np.full(labels.size, (low + high) / 2) if guess is None else guess
    return _measured(labels, guess, budget, source) or everywhere


def _rough_fit(
    design: Design, labels: Array, limits: tuple[float, float], budget: SumBudget, source: WordSource
) -> Array | None:
    """Return predictions for all rows from sums for a small part of ε; None if they would be too noisy."""
    low, high = limits
    width, most = high - low, _ROUGH * float(budget.left)
    weights = design.weights(2 * (width / most) ** 2 / (GUESS * width) ** 2, rough=True)
    center = Center(np.full(labels.size, (low + high) / 2), width / 2, GUESS**2)
    noise = design.model @ (np.linalg.inv(design.back) @ weights.noise_scales(1 / most))
    error = math.sqrt(2 * float((noise**2).sum(axis=1).mean()))  # in widths
    if error > _ROUGH_ERROR:
        return None
    part = Fraction(f"{most * error / _ROUGH_ERROR:.2g}")
    sums, _ = _release(labels, center, weights.rows, weights.rows[:, :0], budget, part, source)
    values = np.linalg.inv(design.back) @ weights.solve @ (sums + center.guess @ weights.rows)
    return np.clip(design.model @ values, 0.0, 1.0)


def _measured(labels: Array, guess: Array, budget: SumBudget, source: WordSource) -> Center | None:
    """Return how far labels lie from a guess, by noisy counts of distances; None if too far to gain from it."""
    rows = labels.size
    epsilon = budget.part(0.05, 300)
    distances = np.abs(labels - guess)
    beyond = np.zeros(_DISTANCES.size + 2, dtype=np.int64)
    for k, distance in enumerate(_DISTANCES):
        np.sum(distances > distance, dtype=np.int64, out=beyond[k + 1 : k + 2], keepdims=True)
    beyond[-1] = rows
    counts = budget.release(np.diff(beyond), epsilon, source, kind="counts", what="counts of distances")
    noise = 2 / float(epsilon)
    far = np.cumsum(counts)[:-1]
    unsure = noise * np.sqrt(2.0 * np.arange(1, far.size + 1))
    few = (far <= np.maximum(0.3 * rows**0.75, 1.5 * unsure)) & (far + unsure <= _BEYOND * rows)
    clipped = np.append([0.0, 0.0], far[:-2] - 1.5 * unsure[:-2])  # beyond twice the distance
    few &= clipped <= 0.5 * math.sqrt(rows)
    last = int(np.argmin(np.append(few, False)))  # the first distance that many labels lie beyond
    if last == 0 or 2 * _DISTANCES[last - 1] >= 0.45:
        return None
    limit = float(_DISTANCES[last - 1])
    squares = np.append(_DISTANCES, 0.0)
    middles = (np.append(1.0, _DISTANCES) + squares) / 2
    inner = counts[last:].clip(0)
    variance = float(inner @ middles[last:] ** 2 / max(inner.sum(), 1))
    return Center(guess, 2 * limit, min(max(variance, 1e-9), 0.25))


# ---- sums and squares -----------------------------------------------------------------------------------


@np.errstate(all="ignore")  # a warning that depends on labels would leak them
def _release(
    labels: Array,
    center: Center,
    weights: Array,
    curve: Array,
    budget: SumBudget,
    epsilon: Fraction,
    source: WordSource,
) -> tuple[Array, Array]:
    """Return noisy weighted sums of clipped distances from the guess, and of their squares."""
    for rows in (weights, curve):
        if not (np.abs(rows).sum(axis=1) <= WEIGHT).all():  # nor is what is not a number
            raise PrivacyProofError(f"the weights of a row add up to more than {WEIGHT}")
    sums: Sums = np.zeros(weights.shape[1] + curve.shape[1], dtype=np.int64)
    for start in range(0, labels.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        units = (np.clip(labels[block] - center.guess[block], -center.reach, center.reach) / center.width) + 0.5
        places = np.clip(np.rint(units * GRID), 0, GRID)
        bent = curve_of(places)
        sums += np.concatenate([places @ weights[block], bent @ curve[block]]).astype(np.int64)
    what = f"{sums.size:,} weighted sums"
    noisy = budget.release(sums, epsilon, source, kind="weighted sums", what=what, steps=(GRID + 1) * WEIGHT)
    linear, bent = np.split(noisy / GRID, [weights.shape[1]])
    distances = center.width * (linear - weights.sum(axis=0) / 2)
    return distances, center.width**2 * (curve.sum(axis=0) / 4 - bent)


def curve_of(places: Array) -> Array:
    """Return k · (G − k) / G of integers, rounded; no place is half way, so a float is near enough to be exact.

    A division with rest would take longer the larger the quotient is, and so depend on labels.
    """
    return np.asarray(np.rint(places * (GRID - places) * (1 / GRID)))


def curve_weights(share: Array, epsilon: float, center: Center, *, robust: bool) -> Array:
    """Return integer weights of squares, the same for all rows and, if robust, as in each coefficient.

    Rows that weigh far more than the others are cut off, unless noise is so small that all may be scaled to them.
    """
    rows, size = share.shape
    if not robust:
        return np.full((rows, 1), float(WEIGHT))
    profile = share**2 / (share**2).mean(axis=0) / size
    totals = profile.sum(axis=1)
    most = max(3.0, 0.1 * epsilon * rows * center.variance / center.width**2 / size)
    most = min(most, float(totals.max()))
    profile *= np.minimum(1, most / np.maximum(totals, 1e-300))[:, None]
    part = (1 - _PLAIN) * WEIGHT - size / 2 - 1
    return np.asarray(np.rint(np.hstack([np.full((rows, 1), _PLAIN * WEIGHT), profile * (part / most)])))


def _spreads(
    design: Design,
    values: Array,
    noise: Array,
    squares: Array,
    curve: Array,
    center: Center,
    scale: float,
    *,
    origin: float,
) -> tuple[Spread, list[Spread]]:
    """Return the variance of labels around the model, plain and as each coefficient weights the rows.

    Squares are around the guess: those of the way from there to the model are subtracted, without what noise adds.
    """
    rows = len(design.model)
    forward = np.linalg.inv(design.back)
    moved = design.model @ (forward @ values) - center.guess - origin
    noise = forward @ noise
    inflation = 2 * ((design.model @ noise) ** 2).sum(axis=1)
    gram = design.model.T @ design.model / rows
    leverage = np.einsum("ij,jk,ik->i", design.model, np.linalg.inv(gram) / rows, design.model)
    totals = np.maximum(curve.sum(axis=0), 1)
    freedom = 1 / (1 - leverage @ curve / totals)
    freedom[1:] **= 4  # as HC4 does at most: with few rows, robust variances are too small otherwise
    means = (squares - (moved**2 - inflation) @ curve) / totals * freedom
    covariance = gram @ noise @ noise.T * 2
    along = gram @ (forward @ values) - design.model.T @ (center.guess + origin) / rows
    doubt = np.trace(covariance @ covariance) + 4 * along @ noise @ noise.T @ along
    chance = 2 * means**2 * (curve**2).sum(axis=0) / totals**2  # of squares of errors with a kurtosis of 5
    scales = np.sqrt((center.width * scale * WEIGHT / totals * freedom) ** 2 + doubt + chance)
    mean, *own = [Spread(float(v), float(s)) for v, s in zip(means, scales, strict=True)]
    return mean, own


def _covariance(laws: list[EstimateLaw], sampling: Array, noise: Array) -> Array:
    """Return the covariance of the coefficients: the laws' variances, and correlations as for equal variances."""
    own = np.array([law.variance for law in laws]) - np.diag(noise)
    scale = np.sqrt(np.maximum(own, 0) / np.diag(sampling))
    return np.asarray(sampling * scale * scale[:, None] + noise)
