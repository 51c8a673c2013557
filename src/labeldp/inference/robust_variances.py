"""Squared residuals, from which the standard errors of `private_ols` are computed.

A coefficient's sampling variance is a sum of squared errors, weighted by the squares of the labels' weights in it.
If the linear model is wrong, errors are large in the rows with the largest weights. So squares are taken around
the predictions of a rough fit (the rough line), not around the middle of the bounds, and the weights of as few
rows are cut off as noise allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from labeldp._values import Array
from labeldp.inference.design import WEIGHT, Design, Weights
from labeldp.inference.distribution import Spread
from labeldp.inference.moments import Center

_LINE_SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
"""Fractions of a row's weight to try for squares around the rough line."""

_SCALES = 2.0 ** np.arange(10)
"""Factors of the weights of squares to try, relative to the largest weights with which no row is cut off."""

_BEND = 0.5
"""The expected misfit, which grows with leverage, in standard deviations of a label."""

_UNEQUAL = 0.4
"""The scale of ratios of variances without misfit."""

_DOUBT = 0.5
"""The weight of the relative error of variances beside the noise of coefficients."""


@dataclass(frozen=True, slots=True)
class Squares:
    """Weights of squared residuals for each coefficient.

    Attributes
    ----------
    design : Design
    center : Center
    profile : array, rows × coefficients
        Squared weights of labels; each column has the same mean, and rows add up to 1 on average.
    scale : float
        The integer weights of a row are its profile times this, unless they are cut off.
    unequal : array
        `Spread.unequal` of each coefficient.
    line_share : float
        The fraction of a row's weight that is kept for squares around the rough line.
    """

    design: Design
    center: Center
    profile: Array = field(repr=False)
    scale: float
    unequal: Array
    line_share: float

    @classmethod
    def choose(cls, design: Design, weights: Weights, center: Center, epsilon: float) -> Squares:
        """Return the weights with the least error from noise and from rows that are cut off.

        Rows of great leverage count more where they are cut off: a misfit may be larger there, up to what the
        bounds allow.
        """
        squares = weights.of_labels() ** 2
        rows, size = squares.shape
        profile = squares / squares.mean(axis=0) / size
        leverage = (design.white**2).sum(axis=1)
        excess = (leverage - leverage.mean()) / max(leverage.std(), 1e-9 * leverage.mean())
        farthest = 0.5 if center.line is None else np.abs(center.line - 0.5)
        misfit = np.minimum(_BEND * np.abs(excess), (farthest + 0.5) / math.sqrt(center.variance))
        harm = 1 + misfit**2
        unequal = np.hypot(_UNEQUAL, np.log(size * (harm @ profile) / rows) / 2)
        totals, heights = profile.sum(axis=1), np.abs(weights.rows).sum(axis=1)
        noise = 2 * (weights.noise_scales(center.width / epsilon) ** 2).sum(axis=1)
        ratio = float((noise / squares.sum(axis=0))[1:].mean()) / center.variance
        unit = center.width**2 / center.factor * size / (epsilon * center.variance)
        best = (math.inf, 1.0, 0.0)
        for line_share in _LINE_SHARES if center.line is not None else (0.0,):
            limits = _limits((1 - line_share) * heights, 0, size, center)
            for scale in (_SCALES * (limits.max() / totals.max())).tolist():
                seen = np.minimum(scale * totals, limits)
                error = (unit * WEIGHT / seen.sum()) ** 2 + float(((totals - seen / scale) * harm).mean()) ** 2
                best = min(best, (ratio / (1 - line_share) ** 2 + _DOUBT * error / (1 + ratio), scale, line_share))
        return cls(design, center, profile, best[1], unequal, best[2])

    def integers(self, heights: Array, constant: int) -> tuple[Array, Array]:
        """Return integer weights of squares, and of the distances that move them to the rough line.

        The first column has equal weights for all rows, the others are for the coefficients.

        Parameters
        ----------
        heights : array
            The sum of the weights of each row in sums of labels.
        constant : int
            The part of it for labels that are not clipped.
        """
        rows, size = self.profile.shape
        equal = np.full((rows, 1), float((WEIGHT - constant) // (size + 1)))
        limits = _limits(heights, constant, size, self.center)
        part = np.minimum(self.scale, limits / np.maximum(self.profile.sum(axis=1), 1e-300))
        own = np.rint(self.profile * part[:, None])
        tilt = np.trunc(own * _tilts(self.center)[:, None])
        return np.hstack([equal, own]), np.hstack([np.zeros((rows, 1)), tilt])

    def spreads(
        self, fit: Array, moves: Array, squares: Array, curve: Array, tilt: Array, scale: float
    ) -> list[Spread]:
        """Return the variance of labels around the model: the mean over rows, then weighted by each coefficient.

        The sums of squares are around the guess or nearly around the rough line. The squared distance from there
        to the fitted line is subtracted, without the part that noise adds.

        Parameters
        ----------
        fit : array
            Fitted values.
        moves : array, rows × sums
            How far the noise of each sum moves them.
        squares : array
            Noisy sums of squares.
        curve, tilt : arrays
            Their weights, from `integers`.
        scale : float
            The scale of the noise of a sum whose weights are at most 1.
        """
        rows, center = fit.size, self.center
        moved, inflation = fit - center.guess, 2 * (moves**2).sum(axis=1)
        leverage = ((self.design.white**2).sum(axis=1) + 1) / rows
        totals = np.maximum(curve.sum(axis=0), 1)
        freedom = 1 / (1 - leverage @ curve / totals)
        freedom[1:] **= 2  # as in HC3: with few rows, robust variances are too small otherwise
        between = (moved**2 - inflation) @ curve - center.width / center.factor * (moved @ tilt)
        means = (squares - between) / totals * freedom
        products = moves.T @ moves / rows
        doubt = 4 * float((products**2).sum() + ((moved @ moves / rows) ** 2).sum())
        chance = np.sqrt(2 * (curve**2).sum(axis=0)) / totals  # for errors with a kurtosis of 5
        unit = center.width / center.factor * scale * WEIGHT
        scales = np.hypot(unit / totals * freedom, math.sqrt(doubt))
        means[1:], scales[1:] = self._all_rows(means, scales, curve[:, 1:])
        means[1:] += self._beyond(fit, means[1:], curve[:, 1:])
        unequal = np.append(_UNEQUAL, self.unequal)
        return [Spread(*each) for each in np.column_stack([means, scales, chance, unequal]).tolist()]

    def _all_rows(self, means: Array, scales: Array, seen: Array) -> tuple[Array, Array]:
        """Return the means of squares and their scales as if no row were cut off.

        The model is that variances grow with the squares of directions. By how much is estimated from the
        differences between the coefficients' means, over the rows that are seen, and the mean over all rows.
        """
        squares = self.design.white**2
        shapes = (squares - squares.mean(axis=0)) / squares.std(axis=0).clip(1e-9)
        near, wanted = (each.T @ shapes / each.sum(axis=0).clip(1e-300)[:, None] for each in (seen, self.profile))
        prior = (_UNEQUAL * max(means[0], scales[0])) ** 2
        noise = np.diag(2 * scales[1:] ** 2 + 1e-9 * prior) + 2 * scales[0] ** 2  # never singular
        gain = prior * (wanted - near) @ near.T @ np.linalg.inv(prior * near @ near.T + noise)
        added = np.einsum("ij,jk,ik->i", gain, noise, gain) / 2
        return means[1:] + gain @ (means[1:] - means[0]), np.sqrt(scales[1:] ** 2 + added)

    def _beyond(self, fit: Array, means: Array, seen: Array) -> Array:
        """Return what to add to means for rows that are cut off and whose fitted values are outside the bounds.

        Their labels may lie anywhere between the bounds. For other rows that are cut off, squares are taken to be
        as large as for rows that are seen.
        """
        beyond = np.flatnonzero(np.abs(fit - 0.5) > 0.5)
        rest = np.maximum(self.scale * self.profile[beyond] - seen[beyond], 0)
        more = np.maximum((fit[beyond, None] - 0.5) ** 2 + 1 / 12 - np.maximum(means, 0), 0)
        return np.asarray((rest * more).sum(axis=0) / (self.scale * self.profile.sum(axis=0)))


def _tilts(center: Center) -> Array:
    """Return the multiple of a distance to subtract from its square, so that squares are around the rough line."""
    line = center.guess if center.line is None else center.line
    return 2 * center.factor / center.width * (line - center.guess)


def _limits(heights: Array, constant: int, size: int, center: Center) -> Array:
    """Return the largest sum of the weights of a row's squares, beside the weights of labels and equal ones."""
    rounding = size / 2 + 1
    most = (WEIGHT - constant) * size / (size + 1)
    by_tilt = (WEIGHT - heights) / np.maximum(np.abs(_tilts(center)), 1e-9)
    return np.clip(np.minimum(most, by_tilt) - rounding, 0, None)
