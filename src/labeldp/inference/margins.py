"""Margins, joint tests and intervals of means, from coefficients and the distribution of their errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from labeldp._values import Array
from labeldp.errors import ParameterError, Setting
from labeldp.inference.estimate import Estimates
from labeldp.inference.families import Family
from labeldp.inference.formula import Formula, as_numbers
from labeldp.release.names import nearest

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


def average_effects(
    estimates: Estimates,
    family: Family,
    formula: Formula,
    table: Any,
    row_weights: Array,
    column: str,
    alpha: float,
) -> Iterator[Margin]:
    """Yield the average effects of a column over the rows of a table, which have weights of mean 1."""
    if column not in formula.columns:
        similar = nearest(column, formula.columns)
        hint = f": {similar!r}?" if similar else f", which has {', '.join(formula.columns)}"
        raise ParameterError(f"{column!r} is no column of this model{hint}")
    for name, lower, upper in _changes(formula, table, column):
        width = 1.0 if isinstance(lower, str) else float(np.mean(upper - lower))
        (before, slope_before), (after, slope_after) = (
            _average_mean(
                estimates, family, formula.transform(formula.replaced(table, column, value)), row_weights
            )
            for value in (lower, upper)
        )
        effect = (after - before) / width
        law = estimates.law((slope_after - slope_before) / width)
        reach = law.quantile(alpha)
        yield Margin(name, effect, law.standard_deviation, effect - reach, effect + reach, law.tail(effect))


def _average_mean(estimates: Estimates, family: Family, columns: Array, weights: Array) -> tuple[float, Array]:
    """Return the average mean over rows with weights, and its derivatives by the coefficients."""
    rows = with_constant(columns)
    means = family.mean(rows @ estimates.coefficients)
    return float(weights @ means) / len(rows), (weights * family.variance(means)) @ rows / len(rows)


def _changes(formula: Formula, table: Any, column: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield names of changes, and the values of a column before and after."""
    if column in formula.levels:
        reference, *levels = formula.levels[column]
        for level in levels:
            yield f"{column}[{level}]", reference, level
        return
    values = as_numbers(table, column)
    if np.isin(values, (0, 1)).all():
        yield column, np.zeros_like(values), np.ones_like(values)
    else:
        step = _STEP * values.std()
        yield column, values - step, values + step


def joint_test(estimates: Estimates, names: Sequence[str], restrictions: str | Sequence[str]) -> WaldTest:
    """Return the test of restrictions, such as ``"age = 0"`` or ``"age = income"``."""
    pieces = restrictions.split(",") if isinstance(restrictions, str) else restrictions
    rows, values = zip(*(_restriction(piece, names) for piece in pieces), strict=True)
    matrix = np.array(rows)
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise ParameterError(Setting("restrictions"), " follow from each other, or contradict each other")
    inverse = np.linalg.inv(matrix @ estimates.covariance @ matrix.T)
    distance = matrix @ estimates.coefficients - np.array(values)
    statistic = float(distance @ inverse @ distance)
    errors = estimates.draws(_TEST_DRAWS) @ matrix.T
    larger = np.count_nonzero(np.einsum("ij,jk,ik->i", errors, inverse, errors) >= statistic)
    return WaldTest(statistic, len(matrix), float((1 + larger) / (1 + _TEST_DRAWS)))


def _restriction(text: str, names: Sequence[str]) -> tuple[Array, float]:
    """Return a restriction as weights of coefficients, and the value of their sum."""
    sides = text.split("=")
    if len(sides) != 2:
        raise _restriction_error(text, names)
    left, right = (_weighted_sum(side, names) for side in sides)
    difference = left - right
    if not difference[:-1].any():
        raise _restriction_error(text, names)
    return difference[:-1], -difference[-1]


def _weighted_sum(text: str, names: Sequence[str]) -> Array:
    """Return the weights of coefficients in a sum such as ``2*age - income + 1``, and the number in it last."""
    longest_first = sorted(names, key=len, reverse=True)
    term = re.compile(
        rf"\s*(?P<sign>[+-]?)\s*(?:(?P<factor>{_NUMBER})\s*\*\s*)?"
        rf"(?:(?P<name>{'|'.join(map(re.escape, longest_first))})|(?P<number>{_NUMBER}))\s*(?=[+-]|\Z)"
    )
    weights, position = np.zeros(len(names) + 1), 0
    while position < max(len(text), 1):
        match = term.match(text, position)
        if match is None or (position and not match["sign"]):
            raise _restriction_error(text, names)
        size = float(match["factor"] or 1) * float(match["number"] or 1)
        place = len(names) if match["name"] is None else names.index(match["name"])
        weights[place] += -size if match["sign"] == "-" else size
        position = match.end()
    return weights


def _restriction_error(text: str, names: Sequence[str]) -> ParameterError:
    similar = nearest(text.partition("=")[0].strip(), names)
    hint = f": {similar!r}?" if similar else ""
    return ParameterError(
        Setting("restrictions"), f" are such as 'age = 0, age + 10*age:income = 2', got {text.strip()!r}{hint}"
    )


def mean_intervals(estimates: Estimates, family: Family, rows: Array, alpha: float) -> Array:
    """Return fitted means and the ends of their intervals, rows × 3."""
    predictor = rows @ estimates.coefficients
    errors = estimates.draws(_INTERVAL_DRAWS).T
    reach = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        reach[block] = np.quantile(np.abs(rows[block] @ errors), 1 - alpha, axis=1)
    return np.column_stack(
        [family.mean(predictor), family.mean(predictor - reach), family.mean(predictor + reach)]
    )
