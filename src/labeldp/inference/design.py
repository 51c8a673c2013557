"""The public part of a regression: columns with a constant, standardised and whitened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np

from labeldp._values import Array
from labeldp.errors import DataError

MAX_COLUMNS = 512
"""The largest number of columns."""

MAX_NAME = 500
"""The largest length of a coefficient's name: with names of all columns, a card has the length that is read."""

_MAX_ROWS = 1 << 30
"""The largest number of rows; sums over more rows might not be exact."""

_ROWS_PER_COEFFICIENT = 3
"""The smallest number of rows for each coefficient."""

_MAX_VALUE = 1e100
"""The largest absolute value; squares of larger ones might overflow."""

_MIN_RANGE = 1e-9
"""A column is constant if its range is not above this fraction of its largest absolute value."""

_MIN_EIGENVALUE = 1e-12
"""Columns are collinear if the correlation matrix has an eigenvalue below this."""

_MAX_LEVERAGE = 0.9
"""The largest leverage of a row; above it the row alone decides a coefficient, whose error cannot be estimated."""


@dataclass(frozen=True, repr=False)
class Design:
    """The columns of a regression: Dγ = Xβ with β = Rγ.

    Attributes
    ----------
    names : list of str
        Names of the coefficients; the intercept is the first.
    matrix : array, rows × coefficients
        D: the constant, and the standardised columns.
    rescaling : array, coefficients × coefficients
        R: turns coefficients of ``matrix`` into coefficients of the original columns.
    row_weights : array
        Public weights of rows, with a mean of 1.
    """

    names: list[str]
    matrix: Array
    rescaling: Array
    row_weights: Array

    @classmethod
    def of(cls, columns: Array, names: Sequence[str], row_weights: Array | None = None) -> Design:
        """Return the design; columns whose coefficients cannot be estimated are refused by name."""
        _refuse_size(*columns.shape)
        for name, column in zip(names, columns.T, strict=True):
            _refuse_column(name, column)
        weights = np.ones(len(columns)) if row_weights is None else row_weights / row_weights.mean()
        center = np.average(columns, 0, weights)
        scale = np.sqrt(np.average((columns - center) ** 2, 0, weights))
        rescaling = np.diag(np.append(1.0, 1 / scale))
        rescaling[0, 1:] = -center / scale
        design = cls(
            ["Intercept", *names], np.insert((columns - center) / scale, 0, 1.0, axis=1), rescaling, weights
        )
        design._refuse_lone_rows()
        return design

    def select(self, positions: Sequence[int]) -> Design:
        """Return the design with the constant and some of its columns."""
        if [*positions] == [*range(self.size)]:
            return self
        names = [self.names[k] for k in positions]
        rescaling = self.rescaling[np.ix_(positions, positions)]
        return Design(names, self.matrix[:, positions], rescaling, self.row_weights)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.matrix)

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.names)

    def of_slopes(self, values: Array) -> Array:
        """Return the values of the slopes; that of the constant where it is alone."""
        return values[1:] if self.size > 1 else values

    @property
    def weighted(self) -> Array:
        """The matrix, its rows times their weights."""
        return self.row_weights[:, None] * self.matrix

    @cached_property
    def whitening(self) -> Array:
        """The inverse square root of the columns' correlations; collinear columns are refused by name."""
        correlations = self.matrix[:, 1:].T @ self.weighted[:, 1:] / self.rows
        eigenvalues, directions = np.linalg.eigh(correlations)
        if eigenvalues.min(initial=1.0) < _MIN_EIGENVALUE:
            loadings = np.abs(directions[:, 0])
            involved = map(repr, compress(self.names[1:], loadings > 1e-6 * loadings.max()))
            raise DataError(f"columns are collinear: leave out one of {', '.join([*involved][:8])}")
        return np.asarray(directions / np.sqrt(eigenvalues) @ directions.T)

    @cached_property
    def whitened(self) -> Array:
        """The columns, rotated into uncorrelated directions of variance 1, rows × columns."""
        return self.matrix[:, 1:] @ self.whitening

    @property
    def leverage(self) -> Array:
        """The leverage of each row, D(DᵀD)⁻¹Dᵀ on the diagonal."""
        return np.asarray(self.row_weights * ((self.whitened**2).sum(axis=1) + 1) / self.rows)

    def least_squares_weights(self) -> Array:
        """Return the weight of each label in each coefficient of least squares, rows × coefficients."""
        return self.weighted @ np.linalg.solve(self.matrix.T @ self.weighted, self.rescaling.T)

    def _refuse_lone_rows(self) -> None:
        """Refuse a row that alone decides a coefficient, which is named."""
        leverage = self.leverage
        if leverage.max() > _MAX_LEVERAGE:
            effects = np.abs(self.whitening @ self.whitened[leverage.argmax()])
            name = self.names[1 + int(effects.argmax())]
            raise DataError(f"the coefficient of {name!r} depends on one row: leave it out, or join rare levels")


def _refuse_size(rows: int, columns: int) -> None:
    if columns > MAX_COLUMNS:
        raise DataError(f"X must have at most {MAX_COLUMNS} columns, got {columns}")
    if not _ROWS_PER_COEFFICIENT * (columns + 1) <= rows <= _MAX_ROWS:
        raise DataError(f"{rows:,} rows are too few for {columns + 1} coefficients, or too many")


def _refuse_column(name: str, column: Array) -> None:
    """Refuse a column that is not finite, that is constant, or that has the name of the constant or a long one."""
    if len(name) > MAX_NAME:
        raise DataError(f"a column's name has more than {MAX_NAME} characters: rename {name[:20]!r}…")
    if name == "Intercept":
        raise DataError("a column is called 'Intercept', as the constant that is added: rename or drop it")
    lowest, highest = column.min(), column.max()
    if not -_MAX_VALUE <= lowest <= highest <= _MAX_VALUE:  # NaN is refused, too
        raise DataError(f"the column {name!r} has missing, infinite or huge values: drop these rows")
    if highest - lowest <= _MIN_RANGE * max(abs(lowest), abs(highest)):
        raise DataError(f"the column {name!r} is constant: leave it out")


def residuals(matrix: Array, values: Array) -> Array:
    """Return the residuals of least squares."""
    return values - matrix @ np.linalg.lstsq(matrix, values, rcond=None)[0]
