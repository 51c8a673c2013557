"""Regression tables side by side, as papers print them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labeldp.accounts.budget import Budget
from labeldp.accounts.numbers import number
from labeldp.errors import CardError, ParameterError, Setting
from labeldp.inference.printed_table import PrintedTable
from labeldp.inference.regression_table import RegressionTable, bounded_exp
from labeldp.inference.remarks import EFRON, INDEPENDENT

_STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"), (np.inf, ""))
"""Marks of p-values below these limits."""

_FACTS = ("Model", "Outcome", "N", "R²", "Privacy")
"""The rows below the coefficients."""


def side_by_side(
    *tables: RegressionTable, names: Sequence[str] | None = None, stars: bool = False, ratios: bool = False
) -> PrintedTable:
    """Return regression tables in columns, with standard errors in brackets below coefficients.

    Parameters
    ----------
    *tables : RegressionTable
    names : list of str, optional
        The titles of columns; by default (1), (2) and so on.
    stars : bool
        Mark coefficients with a p-value below 10, 5 and 1 % by one, two and three stars.
    ratios : bool
        Show odds ratios and rate ratios with 95 % intervals instead of coefficients with standard errors.

    Returns
    -------
    PrintedTable
        Prints itself; ``to_latex()``, ``to_html()``, ``to_csv()`` and ``to_frame()`` give other forms.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> moments = ldp.private_moments(X, rng.random(5000) < 0.4, epsilon=1.0, bounds=(0, 1))
    >>> columns = ldp.side_by_side(moments.logit("x1"), moments.logit(), names=["small", "all"])
    >>> columns.to_frame().shape
    (11, 2)
    """
    titles = [f"({k})" for k in range(1, len(tables) + 1)] if names is None else list(names)
    if not tables or len(titles) != len(tables):
        raise ParameterError(Setting("names"), f" must be one for each of {len(tables)} tables, got {len(titles)}")
    if ratios and any(table.family.is_linear for table in tables):
        raise ParameterError(Setting("ratios"), " are of logistic and Poisson regressions, not of linear ones")
    columns = [_column(table, stars=stars, ratios=ratios) for table in tables]
    coefficients = dict.fromkeys(name for column in columns for name in column)
    cells = [["", *titles]]
    for name in coefficients:
        upper, lower = zip(*(column.get(name, ("", "")) for column in columns), strict=True)
        cells += [[name, *upper], ["", *lower]]
    facts = zip(_FACTS, *map(_facts, tables), strict=True)
    return PrintedTable([*cells, *map(list, facts)], _notes(tables, stars=stars, ratios=ratios), len(_FACTS))


def stated_columns(table: RegressionTable, cells: list[list[str]] | None) -> PrintedTable | None:
    """Return the tables of a card in columns, as its cells have them; None if there are no cells.

    Parameters
    ----------
    table : RegressionTable
        The last of the tables.
    cells : list of list of str, optional
    """
    if cells is None:
        return None
    if len({len(row) for row in cells}) != 1 or len(cells) <= len(_FACTS):
        raise CardError("the card's tables side by side do not have rows of one length")
    return PrintedTable(cells, _notes([table], stars=False, ratios=False), len(_FACTS))


def _column(table: RegressionTable, *, stars: bool, ratios: bool) -> dict[str, tuple[str, str]]:
    """Return coefficients and standard errors as text, by name, or ratios and their intervals."""
    estimates = table.estimates
    values, brackets, digits = estimates.coefficients, estimates.standard_errors[:, None], 4
    if ratios:
        values, brackets, digits = bounded_exp(values), bounded_exp(estimates.intervals(0.05)), 3
    column = {}
    figures = zip(table.names, values.tolist(), brackets.tolist(), estimates.pvalues.tolist(), strict=True)
    for name, value, ends, pvalue in figures:
        mark = next(mark for limit, mark in _STARS if pvalue < limit) if stars else ""
        bracket = " to ".join(number(end, 3) for end in ends)
        column[name] = f"{number(value, digits)}{mark}", f"({bracket})"
    return column


def _facts(table: RegressionTable) -> list[str]:
    """Return the texts below a column of coefficients."""
    r_squared = "not stated" if table.rsquared is None else f"{table.rsquared:.3f}"
    return [table.family.title, table.label, f"{table.nobs:,}", r_squared, str(table.cost)]


def _notes(tables: Sequence[RegressionTable], *, stars: bool, ratios: bool) -> list[str]:
    """Return the sentences below the table."""
    notes = {
        f"In brackets: {'95 % intervals' if ratios else 'standard errors'}, which include the noise.": True,
        "Stars: p < 0.1 (*), 0.05 (**), 0.01 (***).": stars,
        INDEPENDENT: any(table.assumes_independence for table in tables),
        EFRON: not all(table.family.is_linear for table in tables),
        _price(tables): True,
    }
    return [note for note, is_needed in notes.items() if is_needed]


def _price(tables: Sequence[RegressionTable]) -> str:
    """Return the cost of the releases behind tables: tables of one release share its cost."""
    releases = {tuple(charge.key for charge in table.terms.charges): table.terms for table in tables}
    if not all(terms.secure for terms in releases.values()):
        return "NOT PRIVATE: the noise came from a seed."
    cost = sum((terms.cost for terms in releases.values()), Budget(0))
    unit = "label" if all(terms.rows_per_person == 1 for terms in releases.values()) else "person"
    joint = "All columns follow from one release, and cost" if len(releases) == 1 else "Together the columns cost"
    return f"{joint} {cost} for one {unit}."
