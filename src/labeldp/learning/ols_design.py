"""The public part of a regression: its columns, and the weights of labels in the sums behind the coefficients.

A row's weights are its features in uncorrelated directions, projected onto an ℓ1 ball. With many rows nothing is
cut off: these are the weights of least squares themselves. With few rows the directions remain in which a row
stands out, and these need less noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from labeldp._values import Array
from labeldp.errors import DataError

WEIGHT = 1 << 12
"""The absolute integer weights of a row add up to this at most."""

MOST_COLUMNS, _MOST_ROWS, _LARGEST = 512, 1 << 30, 1e100
"""Limits of columns, rows and values; sums of more rows might not be exact."""

GUESS = 0.1
"""Standard deviation of labels around the model before anything is known, in widths of their range."""

_LEAST_VALUE = 1e-12
"""Of the correlations' eigenvalues: below it columns are collinear as far as floats can tell."""

_MOST_LEVERAGE = 0.9
"""Of a row: above it nothing is known about the errors of a coefficient that it decides."""

_CONSTANTS = (1 / 16, 1 / 8, 1 / 4)
"""Parts of a row's weight for the sum of all labels, of which the intercept is made."""

_KAPPAS = 2.0 ** (np.arange(-24, 13) / 4)
_SAMPLE = 4000
_INTERCEPT = 0.3
"""Weights are chosen by the summed variances of the coefficients, in which the intercept counts so much."""

_BEND, _FAR, _BIAS = 0.4, 10.0, 0.25
"""Curvature that the model leaves out, in standard deviations of a label, and the distance, in standard deviations
of a direction, up to which it goes on; and the bias that it may cause, in standard errors of a coefficient."""


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
        """Return the scales of the noise in coefficients, whose rows are these, for noise on sums."""
        return np.asarray(self.solve * (scale * WEIGHT))

    def of_labels(self) -> Array:
        """Return the weight of each label in each coefficient, rows × coefficients."""
        return self.rows @ self.solve.T


@dataclass(frozen=True, slots=True)
class Design:
    """The columns of a regression.

    Attributes
    ----------
    names : list of str
        Of the coefficients.
    model : array, rows × coefficients
        Standardised columns, after the constant if there is one.
    back : array
        Makes coefficients of the columns as they were given from those of ``model``.
    white : array, rows × columns
        The columns as uncorrelated directions.
    intercept : bool
    """

    names: list[str]
    model: Array = field(repr=False)
    back: Array = field(repr=False)
    white: Array = field(repr=False)
    intercept: bool
    _known: dict[tuple[int, int, bool], Array] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, columns: Array, names: Sequence[str], *, intercept: bool) -> Design:
        """Return the design, or refuse columns whose coefficients cannot be estimated, by name."""
        rows, size = columns.shape
        if not 0 < size <= MOST_COLUMNS:
            raise DataError(f"X must have 1 to {MOST_COLUMNS} columns, got {size}")
        if not 3 * (size + intercept) <= rows <= _MOST_ROWS:
            raise DataError(f"{rows:,} rows are too few for {size + intercept} coefficients, or too many")
        if "Intercept" in names:
            raise DataError("a column is called 'Intercept', as the constant that is added: rename or drop it")
        for name, column in zip(names, columns.T, strict=True):
            least, most = column.min(), column.max()
            if not -_LARGEST <= least <= most <= _LARGEST:
                raise DataError(f"the column {name!r} has missing, infinite or huge values: drop these rows")
            if most - least <= 1e-9 * max(abs(least), abs(most)):
                raise DataError(f"the column {name!r} is constant: leave it out")
        center = columns.mean(axis=0) if intercept else np.zeros(size)
        scale = np.sqrt(((columns - center) ** 2).mean(axis=0))
        standard = (columns - center) / scale
        values, vectors = np.linalg.eigh(standard.T @ standard / rows)
        if values[0] < _LEAST_VALUE:
            parts = np.abs(vectors[:, 0])
            together = [name for name, part in zip(names, parts, strict=True) if part > 1e-6 * parts.max()]
            raise DataError(f"columns are collinear: leave out one of {', '.join(map(repr, together[:8]))}")
        white = standard @ (vectors / np.sqrt(values)) @ vectors.T
        leverage = ((white**2).sum(axis=1) + intercept) / rows
        if leverage.max() > _MOST_LEVERAGE:
            alone = (white[leverage.argmax()] @ vectors / np.sqrt(values) @ vectors.T) ** 2
            name = names[int(alone.argmax())]
            raise DataError(
                f"the coefficient of {name!r} depends on one row alone: leave it out, or join rare levels"
            )
        if not intercept:
            return cls(list(names), standard, np.diag(1 / scale), white, intercept)
        back = np.diag(np.append(1.0, 1 / scale))
        back[0, 1:] = -center / scale
        return cls(["Intercept", *names], np.hstack([np.ones((rows, 1)), standard]), back, white, intercept)

    @property
    def size(self) -> int:
        """How many coefficients there are."""
        return len(self.names)

    def standard(self, values: Array) -> Array:
        """Return what coefficients, or columns of them, make of each row."""
        return np.asarray(self.model @ np.linalg.solve(self.back, values))

    def ordinary_variances(self) -> Array:
        """Return the variances of the coefficients of least squares, for labels of variance 1."""
        return np.asarray((self._ordinary_weights() ** 2).sum(axis=0))

    def _ordinary_weights(self) -> Array:
        return np.asarray(self.model @ np.linalg.solve(self.model.T @ self.model, self.back.T))

    def fewest_rows(self) -> float:
        """Return on about how many rows the coefficient depends that depends on the fewest."""
        squares = self._ordinary_weights() ** 2
        return float((squares.sum(axis=0) ** 2 / (squares**2).sum(axis=0)).min())

    def weights(self, ratio: float, *, narrow: float = 1.0, rough: bool = False, limit: int = WEIGHT) -> Weights:
        """Return the weights of least summed variance, sampling and noise together; no label is needed for it.

        Parameters
        ----------
        ratio : float
            The variance of the noise of a sum whose weights are at most 1 in all, over that of a label around the
            model; rounded to a power of 2.
        narrow : float
            The same for the sum behind the constant, over ``ratio``.
        rough : bool
            Whether bias counts for nothing.
        limit : int
            The absolute integer weights of a row add up to this at most.
        """
        powers = [round(math.log2(max(value, 2.0**-40))) for value in (ratio, ratio * narrow)]
        key = (powers[0], powers[1], rough)
        if key not in self._known:
            noise = np.full(self.size, 2.0 ** powers[0])
            noise[: self.intercept] = 2.0 ** powers[1]
            kappa, constant = self._choose(noise, 0.0 if rough else _BEND)
            self._known[key] = _joined(self._directions(kappa, self.white), constant * self.intercept)
        most = limit - (self.size + 1) // 2  # rounding adds a half to each weight at most
        rows = np.rint(most * self._known[key])
        return Weights(rows, self.back @ np.linalg.inv(rows.T @ self.model))

    def _choose(self, noise: Array, bend: float, most: int = _SAMPLE) -> tuple[float, float]:
        """Return the factor before the projection and the constant of least risk, on a sample of rows.

        All rows are used if too few of a rare level are in the sample.
        """
        rows = len(self.model)
        sample = np.linspace(0, rows - 1, min(rows, most)).astype(int)
        grow = rows / sample.size
        model, white = self.model[sample], self.white[sample]
        bends = _bends(white, model)
        base = self.ordinary_variances()
        share = np.ones(self.size)
        share[: self.intercept] = _INTERCEPT
        best = (math.inf, 1.0, 0.0)
        for kappa in _KAPPAS.tolist():
            weights = _joined(self._directions(kappa, white), 0.5 * self.intercept)
            products = [grow * weights.T @ other for other in (model, weights, bends)]
            for constant in _CONSTANTS if self.intercept else (0.5,):
                parts = np.full(self.size, 2 * (1 - constant))
                parts[: self.intercept] = 2 * constant
                gram, spread, bent = (parts[:, None] * product for product in products)
                if np.linalg.cond(gram) > 1e9:
                    continue
                solve = self.back @ np.linalg.inv(gram)
                variances = np.einsum("ij,jk,ik->i", solve, spread * parts + np.diag(noise), solve)
                bias = bend * np.abs(solve @ bent).max(axis=1, initial=0.0)
                risk = float((share * np.maximum(variances, (bias / _BIAS) ** 2) / base).sum())
                best = min(best, (risk, kappa, constant))
        if best[0] < math.inf:
            return best[1], best[2]
        if sample.size < rows:
            return self._choose(noise, bend, rows)
        raise DataError("columns are too nearly collinear: leave out one that nearly follows from the others")

    def _directions(self, kappa: float, white: Array) -> Array:
        """Return weights of the directions; with a constant they add up to 0, as clipped errors may not."""
        directions = project(kappa * white)
        if self.intercept:
            directions -= directions.mean(axis=0)
        return np.asarray(directions / np.abs(directions).sum(axis=1).max())


def _joined(directions: Array, constant: float) -> Array:
    if not constant:
        return directions
    return np.hstack([np.full((len(directions), 1), constant), (1 - constant) * directions])


def project(rows: Array) -> Array:
    """Return the nearest point of the ℓ1 ball of radius 1 to each row: soft thresholding.

    Examples
    --------
    >>> project(np.array([[0.3, -0.2], [2.0, -1.5]]))
    array([[ 0.3 , -0.2 ],
           [ 0.75, -0.25]])
    """
    sizes = np.abs(rows)
    falling = -np.sort(-sizes, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    kept = np.maximum((falling * np.arange(1, rows.shape[1] + 1) > excess).sum(axis=1), 1)
    threshold = np.maximum(excess[np.arange(len(rows)), kept - 1] / kept, 0)
    return np.asarray(np.sign(rows) * np.maximum(sizes - threshold[:, None], 0))


def _bends(white: Array, model: Array) -> Array:
    """Return squares of the directions, as far as the model leaves them out, with a standard deviation of 1."""
    squares = np.minimum(white**2, _FAR**2)
    rest = squares - model @ np.linalg.lstsq(model, squares, rcond=None)[0]
    deviation = rest.std(axis=0)
    return np.asarray(rest[:, deviation > 1e-3] / deviation[deviation > 1e-3])


def expected_error(rows: int, columns: int, epsilon: float) -> float:
    """Return the standard error of a slope in widths of the bounds, for uncorrelated normal columns and `GUESS`.

    Examples
    --------
    >>> expected_error(100_000, 5, 1.0) < expected_error(10_000, 5, 1.0) < expected_error(10_000, 20, 1.0)
    True
    """
    sample = min(rows, max(2000, 10 * columns))
    X = np.random.default_rng(0).normal(size=(sample, columns))
    design = Design.of(X, [f"x{k}" for k in range(columns)], intercept=True)
    ratio = 2 / (GUESS * epsilon) ** 2 * sample / rows
    weights = design.weights(ratio)
    spread = weights.rows.T @ weights.rows + ratio * WEIGHT**2 * np.eye(design.size)
    variances = np.einsum("ij,jk,ik->i", weights.solve, spread, weights.solve)
    return GUESS * math.sqrt(float(variances[1:].mean()) * sample / rows)
