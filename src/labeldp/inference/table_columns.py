"""Regression tables side by side, as papers print them: text, HTML, LaTeX, CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any
from xml.etree import ElementTree

import numpy as np

from labeldp.accounts.budget import Budget
from labeldp.accounts.cells import as_csv, as_latex
from labeldp.accounts.numbers import number
from labeldp.errors import ParameterError, Setting
from labeldp.inference.regression_table import INDEPENDENT, RegressionTable

_STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))

_LEVEL = 0.05
"""Intervals miss with this probability."""


@dataclass(frozen=True, slots=True, repr=False)
class SideBySide:
    """Regression tables in columns.

    Attributes
    ----------
    cells : list of list of str
        The rows of the table, the header first; what belongs to a coefficient stands below it.
    body_rows : int
        The number of rows with coefficients, behind the header.
    notes : list of str
        The lines below the table.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> moments = ldp.private_moments(X, np.clip(2 + X[:, 0], 0, 5), epsilon=1.0, bounds=(0, 5))
    >>> columns = ldp.side_by_side(moments.ols("x1"), moments.ols(), names=["small", "all"])
    >>> columns.cells[0], columns.to_csv().splitlines()[1].split(",")[0]
    (['', 'small', 'all'], 'Intercept')
    """

    cells: list[list[str]]
    body_rows: int
    notes: list[str]

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame of text."""
        import pandas  # noqa: PLC0415 (not needed otherwise)

        header, *rows = self.cells
        return pandas.DataFrame([row[1:] for row in rows], [row[0] for row in rows], header[1:])

    def to_csv(self) -> str:
        """Return the table as CSV."""
        return as_csv(self.cells)

    def to_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """Return the table in LaTeX with its notes below, for the package booktabs.

        Parameters
        ----------
        caption : str, optional
            Plain text; special characters are escaped.
        label : str, optional
            The key for cross-references.
        """
        rows = [" & ".join(map(as_latex, row)) + r" \\" for row in self.cells]
        split = 1 + self.body_rows
        lines = [
            *(r"\begin{table}", r"\centering"),
            *([rf"\caption{{{as_latex(caption)}}}"] if caption else []),
            *([rf"\label{{{label}}}"] if label else []),
            rf"\begin{{tabular}}{{l{'c' * (len(self.cells[0]) - 1)}}}",
            *(r"\toprule", rows[0], r"\midrule"),
            *rows[1:split],
            r"\midrule",
            *rows[split:],
            *(r"\bottomrule", r"\end{tabular}", r"\par\smallskip\footnotesize"),
            *map(as_latex, self.notes),
            r"\end{table}",
        ]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return the table in HTML that can be pasted into a text processor."""
        root = ElementTree.Element("div")
        table = ElementTree.SubElement(root, "table", style="border-collapse: collapse; text-align: center")
        rules = {0, self.body_rows, len(self.cells) - 1}
        for k, row in enumerate(self.cells):
            line = ElementTree.SubElement(table, "tr", style="border-bottom: 1px solid" if k in rules else "")
            for position, text in enumerate(row):
                cell = ElementTree.SubElement(line, "td" if k and position else "th")
                cell.set("style", "padding: 0 0.7em" if position else "text-align: left; font-weight: normal")
                cell.text = text
        for note in self.notes:
            ElementTree.SubElement(root, "p").text = note
        return ElementTree.tostring(root, encoding="unicode", method="html")

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.cells, strict=True)]
        lines = [
            "   ".join([row[0].ljust(widths[0]), *map(str.center, row[1:], widths[1:])]).rstrip()
            for row in self.cells
        ]
        rule = "-" * (sum(widths) + 3 * (len(widths) - 1))
        split = 1 + self.body_rows
        parts = [lines[0], rule, *lines[1:split], rule, *lines[split:], rule]
        return "\n".join([*parts, *(fill(note, max(len(rule), 60)) for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_html()


def side_by_side(
    *tables: RegressionTable, names: Sequence[str] | None = None, stars: bool = False, ratios: bool = False
) -> SideBySide:
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
    SideBySide
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
    return SideBySide([["", *titles], *body, *facts], len(body), _notes(tables, stars=stars, ratios=ratios))


def _coefficient_cells(table: RegressionTable, stars: bool) -> dict[str, tuple[str, str]]:
    """Return coefficients and standard errors as text, by name."""
    marks, values, errors = _marks(table, stars), np.asarray(table.params), np.asarray(table.bse)
    return {
        name: (f"{number(float(value))}{mark}", f"({number(float(error), 3)})")
        for name, mark, value, error in zip(table.names, marks, values, errors, strict=True)
    }


def _ratio_cells(table: RegressionTable, stars: bool) -> dict[str, tuple[str, str]]:
    """Return ratios and their intervals as text, by name."""
    ends = np.exp(np.asarray(table.conf_int(_LEVEL)))
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
    return "hidden" if table.rsquared is None else f"{table.rsquared:.3f}"


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
    releases = {id(table.terms): table.terms for table in tables}  # tables of one release share its terms
    cost = sum((terms.cost for terms in releases.values()), Budget(0))
    people = max(terms.rows_per_person for terms in releases.values())
    unit = "label" if people == 1 else "person"
    joint = "All columns follow from one release, and cost" if len(releases) == 1 else "Together the columns cost"
    secure = all(terms.secure for terms in releases.values())
    return [
        f"In brackets: {below}, which include the noise.",
        *(["Stars: p < 0.1 (*), 0.05 (**), 0.01 (***)."] if stars else []),
        *([INDEPENDENT] if any(table.assumes_independence for table in tables) else []),
        *(
            ["R² of logistic and Poisson models is Efron's."]
            if any(not t.family.is_linear for t in tables)
            else []
        ),
        f"{joint} {cost} for one {unit}." if secure else "NOT PRIVATE: the noise came from a seed.",
    ]
