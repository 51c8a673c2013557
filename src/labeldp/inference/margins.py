"""Margins, joint tests and intervals of means, from coefficients and the distribution of their errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from labeldp._values import Array
from labeldp.errors import ParameterError, Setting
from labeldp.inference.distribution import Estimates
from labeldp.inference.families import Family
from labeldp.inference.formula import as_numbers
from labeldp.release.names import nearest

if TYPE_CHECKING:
    from labeldp.inference.regression_table import RegressionTable

_STEP = 1e-4
"""The step of numerical derivatives, in standard deviations of the column."""

_NUMBER = r"\d+\.?\d*(?:e[+-]?\d+)?"

_TEST_DRAWS = 100_000
"""Draws of errors for a joint test; no p-value is below 1 over this."""

_INTERVAL_DRAWS = 10_000
"""Draws of errors for intervals of means."""

_BLOCK_ROWS = 500
"""The number of rows whose intervals are computed at once."""


class Margin(NamedTuple):
    """An average marginal effect: the change of the mean for one more of a column, or for a level of a category.

    Attributes
    ----------
    name : str
    effect, standard_error : float
    low, high : float
        The ends of its interval.
    pvalue : float
        The probability of an effect this far from 0, or farther, if there is none.
    """

    name: str
    effect: float
    standard_error: float
    low: float
    high: float
    pvalue: float


class WaldTest(NamedTuple):
    """A joint test of restrictions.

    Attributes
    ----------
    statistic : float
        The squared distance of the coefficients from the restrictions, by their covariance.
    df : int
        The number of restrictions.
    pvalue : float
        The probability of this statistic or a larger one if the restrictions hold, from draws of the known
        distribution of noise and sampling errors. It has no χ² distribution.
    """

    statistic: float
    df: int
    pvalue: float


def with_constant(columns: Array) -> Array:
    """Return columns behind a constant."""
    return np.insert(columns, 0, 1.0, axis=1)


def average_effects(table: RegressionTable, estimates: Estimates, column: str, alpha: float) -> Iterator[Margin]:
    """Yield the average effects of a column over the rows of a table, by its estimates."""
    columns = table.columns.columns
    if column not in columns:
        similar = nearest(column, columns)
        hint = f": {similar!r}?" if similar else f", which has {', '.join(columns)}"
        raise ParameterError(f"{column!r} is no column of this model{hint}")
    for name, lower, upper, width in _changes(table, column):
        before, slope_before = _average_mean(table, column, lower)
        after, slope_after = _average_mean(table, column, upper)
        effect = (after - before) / width
        law = estimates.law((slope_after - slope_before) / width)
        reach = law.quantile(alpha)
        yield Margin(name, effect, law.standard_deviation, effect - reach, effect + reach, law.tail(effect))


def _changes(table: RegressionTable, column: str) -> Iterator[tuple[str, Array, Array, float]]:
    """Yield names of changes, the values of a column before and after, and their mean difference."""
    if column in table.columns.levels:
        rows = table.rows.num_rows
        reference, *levels = table.columns.levels[column]
        for level in levels:
            yield f"{column}[{level}]", np.full(rows, reference), np.full(rows, level), 1.0
        return
    values = as_numbers(table.rows, column)
    if np.isin(values, (0, 1)).all():
        lower, upper = np.zeros_like(values), np.ones_like(values)
    else:
        step = _STEP * values.std()
        lower, upper = values - step, values + step
    yield column, lower, upper, float(np.mean(upper - lower))


def _average_mean(table: RegressionTable, column: str, values: Array) -> tuple[float, Array]:
    """Return the average mean over rows with other values in a column, and its derivatives by the coefficients."""
    rows = with_constant(table.columns.transform(table.rows, {column: values}))
    means = table.family.mean(rows @ table.estimates.coefficients)
    derivatives = (table.row_weights * table.family.variance(means)) @ rows
    return float(table.row_weights @ means) / len(rows), derivatives / len(rows)


def joint_test(estimates: Estimates, names: Sequence[str], restrictions: str | Sequence[str]) -> WaldTest:
    """Return the test of restrictions, such as ``"age = 0"`` or ``"age = income"``."""
    texts = restrictions.split(",") if isinstance(restrictions, str) else restrictions
    differences = np.array([_difference(text, names) for text in texts])
    matrix = differences[:, :-1]
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise ParameterError(Setting("restrictions"), " follow from each other, or contradict each other")
    inverse = np.linalg.inv(matrix @ estimates.covariance @ matrix.T)
    distance = matrix @ estimates.coefficients + differences[:, -1]
    statistic = float(distance @ inverse @ distance)
    errors = estimates.draws(_TEST_DRAWS) @ matrix.T
    larger = np.count_nonzero(np.einsum("ij,jk,ik->i", errors, inverse, errors) >= statistic)
    return WaldTest(statistic, len(matrix), float((1 + larger) / (1 + _TEST_DRAWS)))


def _difference(text: str, names: Sequence[str]) -> Array:
    """Return the left side of a restriction less its right side: weights of coefficients, and last a number."""
    sides = text.split("=")
    difference = np.zeros(len(names) + 1)
    if len(sides) == 2:
        difference = _weighted_sum(sides[0], names) - _weighted_sum(sides[1], names)
    if np.isnan(difference).any() or not difference[:-1].any():
        similar = nearest(sides[0].strip(), names)
        raise ParameterError(
            Setting("restrictions"),
            f" are such as 'age = 0, age + 10*age:income = 2', got {text.strip()!r}",
            f": {similar!r}?" if similar else "",
        )
    return difference


def _weighted_sum(text: str, names: Sequence[str]) -> Array:
    """Return the weights of coefficients in a sum such as ``2*age - income + 1``, and the number in it last.

    They are NaN where the text is no such sum.
    """
    longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    term = re.compile(
        rf"\s*(?P<sign>[+-]?)\s*(?:(?P<factor>{_NUMBER})\s*\*\s*)?"
        rf"(?:(?P<name>{longest_first})|(?P<number>{_NUMBER}))\s*(?=[+-]|\Z)"
    )
    is_sum = text and not term.sub("", text)
    weights = np.full(len(names) + 1, 0.0 if is_sum else np.nan)
    for match in term.finditer(text):
        size = float(f"{match['sign']}1") * float(match["factor"] or 1) * float(match["number"] or 1)
        weights[names.index(match["name"]) if match["name"] else -1] += size
    return weights


def mean_intervals(estimates: Estimates, family: Family, rows: Array, alpha: float) -> Array:
    """Return fitted means and the ends of their intervals, rows × 3."""
    predictor = rows @ estimates.coefficients
    errors = estimates.draws(_INTERVAL_DRAWS).T
    reach = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        reach[block] = np.quantile(np.abs(rows[block] @ errors), 1 - alpha, axis=1)
    ends = predictor, predictor - reach, predictor + reach
    return np.column_stack([family.mean(end) for end in ends])
