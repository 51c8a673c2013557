"""Regression tables side by side, as papers print them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from labeldp.accounts.budget import Budget
from labeldp.accounts.numbers import number
from labeldp.errors import CardError, ParameterError, Setting
from labeldp.inference.printed_table import PrintedTable
from labeldp.inference.regression_table import MAX_EXPONENT, RegressionTable
from labeldp.inference.remarks import EFRON, INDEPENDENT

_STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))

_LEVEL = 0.05
"""Intervals miss with this probability."""


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
    coefficients = dict.fromkeys(name for table in tables for name in table.names)
    show = _ratio_cells if ratios else _coefficient_cells
    columns = [show(table, stars) for table in tables]
    body = [
        [title, *(column.get(name, ("", ""))[line] for column in columns)]
        for name in coefficients
        for line, title in enumerate((name, ""))
    ]
    facts = [[title, *map(fact, tables)] for title, fact in _FACTS.items()]
    return PrintedTable([["", *titles], *body, *facts], _notes(tables, stars=stars, ratios=ratios), len(facts))


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


def _coefficient_cells(table: RegressionTable, stars: bool) -> dict[str, tuple[str, str]]:
    """Return coefficients and standard errors as text, by name."""
    marks, values, errors = _marks(table, stars), np.asarray(table.params), np.asarray(table.bse)
    return {
        name: (f"{number(float(value))}{mark}", f"({number(float(error), 3)})")
        for name, mark, value, error in zip(table.names, marks, values, errors, strict=True)
    }


def _ratio_cells(table: RegressionTable, stars: bool) -> dict[str, tuple[str, str]]:
    """Return ratios and their intervals as text, by name."""
    ends = np.exp(np.clip(np.asarray(table.conf_int(_LEVEL)), -MAX_EXPONENT, MAX_EXPONENT))
    figures = zip(table.names, _marks(table, stars), np.asarray(table.ratios), ends, strict=True)
    return {
        name: (f"{number(float(value), 3)}{mark}", f"({number(float(low), 3)} to {number(float(high), 3)})")
        for name, mark, value, (low, high) in figures
    }


def _marks(table: RegressionTable, stars: bool) -> list[str]:
    """Return the stars of each coefficient."""
    levels = _STARS if stars else ()
    return [next((mark for level, mark in levels if value < level), "") for value in np.asarray(table.pvalues)]


def _r_squared(table: RegressionTable) -> str:
    return "not stated" if table.rsquared is None else f"{table.rsquared:.3f}"


_FACTS: dict[str, Callable[[RegressionTable], str]] = {
    "Model": lambda table: table.family.title,
    "Outcome": lambda table: table.label,
    "N": lambda table: f"{table.nobs:,}",
    "R²": _r_squared,
    "Privacy": lambda table: str(table.cost),
}
"""The rows below the coefficients."""


def _notes(tables: Sequence[RegressionTable], *, stars: bool, ratios: bool) -> list[str]:
    """Return the sentences below the table."""
    below = "95 % intervals" if ratios else "standard errors"
    return [
        f"In brackets: {below}, which include the noise.",
        *(["Stars: p < 0.1 (*), 0.05 (**), 0.01 (***)."] if stars else []),
        *([INDEPENDENT] if any(table.assumes_independence for table in tables) else []),
        *([] if all(table.family.is_linear for table in tables) else [EFRON]),
        _price(tables),
    ]


def _price(tables: Sequence[RegressionTable]) -> str:
    """Return the cost of the releases behind tables: tables of one release share its cost."""
    releases = {tuple(charge.key for charge in table.terms.charges): table.terms for table in tables}
    if not all(terms.secure for terms in releases.values()):
        return "NOT PRIVATE: the noise came from a seed."
    cost = sum((terms.cost for terms in releases.values()), Budget(0))
    unit = "label" if all(terms.rows_per_person == 1 for terms in releases.values()) else "person"
    joint = "All columns follow from one release, and cost" if len(releases) == 1 else "Together the columns cost"
    return f"{joint} {cost} for one {unit}."
