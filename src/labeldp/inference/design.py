"""The public part of a regression: its columns, and the weights of the labels in the sums behind the coefficients.

The columns are rotated into uncorrelated directions. The weights of a row are its values in these directions,
projected onto an ℓ1 ball, which bounds the effect of one label. With many rows the projection changes nothing, and
the weights are those of least squares. With few rows it sets small values to 0, which needs less noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from labeldp._values import Array
from labeldp.errors import DataError

WEIGHT = 1 << 12
"""The largest sum of the absolute integer weights of one row."""

MOST_COLUMNS, _MOST_ROWS, _LARGEST = 512, 1 << 30, 1e100
"""The largest number of columns, number of rows and absolute value; sums over more rows might not be exact."""

GUESS = 0.1
"""Assumed standard deviation of labels around the model, as a fraction of the bounds' width."""

_LEAST_VALUE = 1e-12
"""Columns are collinear if the correlation matrix has an eigenvalue below this."""

_MOST_LEVERAGE = 0.9
"""The largest leverage of a row; above it the row alone decides a coefficient, whose error cannot be estimated."""

_CONSTANTS = (1 / 16, 1 / 8, 1 / 4)
"""Fractions of a row's weight to try for the sum of all labels, which determines the intercept."""

_KAPPAS = 2.0 ** (np.arange(-24, 13) / 4)
"""Factors to try before the projection."""

_SAMPLE = 4000
"""The number of rows on which factors and fractions are compared."""

_INTERCEPT = 0.3
"""The weight of the intercept's variance in the risk; each slope has weight 1."""

_BEND, _FAR, _BIAS = 0.4, 10.0, 0.25
"""An assumed curvature that the model omits, in standard deviations of a label; the distance from the mean, in
standard deviations of a direction, where it ends; and the bias that it may cause, in standard errors."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Integer weights of the labels, and the matrix that turns weighted sums into coefficients.

    Attributes
    ----------
    rows : array of integers, rows × sums
    solve : array, coefficients × sums
    """

    rows: Array
    solve: Array

    def noise_scales(self, scale: float | Array) -> Array:
        """Return the scale of the noise of each sum in each coefficient, coefficients × sums.

        ``scale`` is that of the noise of a sum whose weights are at most 1.
        """
        return self.solve * (scale * WEIGHT)

    def of_labels(self) -> Array:
        """Return the weight of each label in each coefficient, rows × coefficients."""
        return self.rows @ self.solve.T


@dataclass(frozen=True, slots=True)
class Design:
    """The columns of a regression.

    Attributes
    ----------
    names : list of str
        Names of the coefficients; the intercept is the first.
    model : array, rows × coefficients
        The constant, and the standardised columns.
    back : array, coefficients × coefficients
        Turns coefficients of ``model`` into coefficients of the original columns.
    white : array, rows × columns
        The columns, rotated into uncorrelated directions of variance 1.
    """

    names: list[str]
    model: Array = field(repr=False)
    back: Array = field(repr=False)
    white: Array = field(repr=False)
    _cache: dict[tuple[int, int, bool], Array] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, columns: Array, names: Sequence[str]) -> Design:
        """Return the design; columns whose coefficients cannot be estimated are refused by name."""
        rows, size = columns.shape
        if not 0 < size <= MOST_COLUMNS:
            raise DataError(f"X must have 1 to {MOST_COLUMNS} columns, got {size}")
        if not 3 * (size + 1) <= rows <= _MOST_ROWS:
            raise DataError(f"{rows:,} rows are too few for {size + 1} coefficients, or too many")
        if "Intercept" in names:
            raise DataError("a column is called 'Intercept', as the constant that is added: rename or drop it")
        for name, column in zip(names, columns.T, strict=True):
            least, most = column.min(), column.max()
            if not -_LARGEST <= least <= most <= _LARGEST:
                raise DataError(f"the column {name!r} has missing, infinite or huge values: drop these rows")
            if most - least <= 1e-9 * max(abs(least), abs(most)):
                raise DataError(f"the column {name!r} is constant: leave it out")
        center = columns.mean(axis=0)
        scale = np.sqrt(((columns - center) ** 2).mean(axis=0))
        standard = (columns - center) / scale
        values, vectors = np.linalg.eigh(standard.T @ standard / rows)
        if values[0] < _LEAST_VALUE:
            parts = np.abs(vectors[:, 0])
            together = [name for name, part in zip(names, parts, strict=True) if part > 1e-6 * parts.max()]
            raise DataError(f"columns are collinear: leave out one of {', '.join(map(repr, together[:8]))}")
        white = standard @ (vectors / np.sqrt(values)) @ vectors.T
        leverage = ((white**2).sum(axis=1) + 1) / rows
        if leverage.max() > _MOST_LEVERAGE:
            effects = (white[leverage.argmax()] @ vectors / np.sqrt(values) @ vectors.T) ** 2
            name = names[int(effects.argmax())]
            raise DataError(f"the coefficient of {name!r} depends on one row: leave it out, or join rare levels")
        model = np.hstack([np.ones((rows, 1)), standard])
        back = np.diag(np.append(1.0, 1 / scale))
        back[0, 1:] = -center / scale
        return cls(["Intercept", *names], model, back, white)

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.names)

    def join(self, first: float, others: float) -> Array:
        """Return an array with one value for the intercept, and another for each slope."""
        values = np.full(self.size, others)
        values[0] = first
        return values

    def predict(self, values: Array) -> Array:
        """Return the predictions of coefficients for each row; ``values`` may have several columns."""
        return self.model @ np.linalg.solve(self.back, values)

    def ordinary_weights(self) -> Array:
        """Return the weight of each label in each coefficient of least squares, rows × coefficients."""
        return self.model @ np.linalg.solve(self.model.T @ self.model, self.back.T)

    def weights(self, ratio: float, *, narrow: float = 1.0, rough: bool = False, limit: int = WEIGHT) -> Weights:
        """Return the weights with the least summed variance of the coefficients, from sampling and noise.

        Parameters
        ----------
        ratio : float
            The variance of the noise of a sum whose weights are at most 1, divided by the variance of a label
            around the model; rounded to a power of 2.
        narrow : float
            The noise variance of the intercept's sum, divided by that of the other sums.
        rough : bool
            Whether to ignore the bias from curvature.
        limit : int
            The largest sum of the absolute integer weights of a row.
        """
        first, others = (round(math.log2(max(value, 2.0**-40))) for value in (ratio * narrow, ratio))
        key = (first, others, rough)
        if key not in self._cache:
            kappa, constant = self._choose(self.join(2.0**first, 2.0**others), 0.0 if rough else _BEND)
            self._cache[key] = self._row_weights(kappa, self.white, constant)
        most = limit - (self.size + 1) // 2  # rounding adds at most 1/2 to each weight
        rows = np.rint(most * self._cache[key])
        return Weights(rows, self.back @ np.linalg.inv(rows.T @ self.model))

    def _choose(self, noise: Array, bend: float, most: int = _SAMPLE) -> tuple[float, float]:
        """Return the factor before the projection and the intercept's fraction with the least risk on a sample.

        If the sample has too few rows of a rare level, all rows are used.
        """
        rows = len(self.model)
        sample = np.linspace(0, rows - 1, min(rows, most)).astype(int)
        grow = rows / sample.size
        model, white = self.model[sample], self.white[sample]
        bends = _bends(white, model)
        ordinary = (self.ordinary_weights() ** 2).sum(axis=0)
        importance = self.join(_INTERCEPT, 1.0)
        best = (math.inf, 1.0, 0.0)
        for kappa in _KAPPAS.tolist():
            weights = self._row_weights(kappa, white, 0.5)
            products = [grow * weights.T @ other for other in (model, weights, bends)]
            for constant in _CONSTANTS:
                parts = self.join(2 * constant, 2 * (1 - constant))
                gram, spread, bent = (parts[:, None] * product for product in products)
                if np.linalg.cond(gram) > 1e9:
                    continue
                solve = self.back @ np.linalg.inv(gram)
                variances = np.einsum("ij,jk,ik->i", solve, spread * parts + np.diag(noise), solve)
                bias = bend * np.abs(solve @ bent).max(axis=1, initial=0.0)
                risk = float((importance * np.maximum(variances, (bias / _BIAS) ** 2) / ordinary).sum())
                best = min(best, (risk, kappa, constant))
        if best[0] < math.inf:
            return best[1], best[2]
        if sample.size < rows:
            return self._choose(noise, bend, rows)
        raise DataError("columns are too nearly collinear: leave out one that nearly follows from the others")

    def _row_weights(self, kappa: float, white: Array, constant: float) -> Array:
        """Return weights of labels in sums, of which the intercept's sum has the fraction ``constant``.

        Those of the slopes' sums add up to 0 over rows, because clipped errors may not.
        """
        slopes = project(kappa * white)
        slopes -= slopes.mean(axis=0)
        slopes /= np.abs(slopes).sum(axis=1).max()
        return np.hstack([np.full((len(slopes), 1), constant), (1 - constant) * slopes])


def project(rows: Array) -> Array:
    """Return the nearest point of the ℓ1 ball of radius 1 to each row, by soft thresholding.

    Examples
    --------
    >>> project(np.array([[0.3, -0.2], [2.0, -1.5]]))
    array([[ 0.3 , -0.2 ],
           [ 0.75, -0.25]])
    """
    sizes = np.abs(rows)
    falling = -np.sort(-sizes, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    nonzero = np.maximum((falling * np.arange(1, rows.shape[1] + 1) > excess).sum(axis=1), 1)
    threshold = np.maximum(excess[np.arange(len(rows)), nonzero - 1] / nonzero, 0)
    return np.asarray(np.sign(rows) * np.maximum(sizes - threshold[:, None], 0))


def _bends(white: Array, model: Array) -> Array:
    """Return the part of each squared direction that the model does not explain, with standard deviation 1."""
    rest = residuals(model, np.minimum(white**2, _FAR**2))
    deviation = rest.std(axis=0)
    return np.asarray(rest[:, deviation > 1e-3] / deviation[deviation > 1e-3])


def residuals(model: Array, values: Array) -> Array:
    """Return the residuals of least squares."""
    return values - model @ np.linalg.lstsq(model, values, rcond=None)[0]


def expected_error(rows: int, columns: int, epsilon: float) -> float:
    """Return the standard error of a slope in widths of the bounds, for uncorrelated normal columns and `GUESS`.

    Examples
    --------
    >>> expected_error(100_000, 5, 1.0) < expected_error(10_000, 5, 1.0) < expected_error(10_000, 20, 1.0)
    True
    """
    sample = min(rows, max(2000, 10 * columns))
    X = np.random.default_rng(0).normal(size=(sample, columns))
    design = Design.of(X, [f"x{k}" for k in range(columns)])
    ratio = 2 / (GUESS * epsilon) ** 2 * sample / rows
    weights = design.weights(ratio)
    variances = (weights.of_labels() ** 2).sum(axis=0) + ratio * (weights.noise_scales(1.0) ** 2).sum(axis=1)
    return GUESS * math.sqrt(float(variances[1:].mean()) * sample / rows)
