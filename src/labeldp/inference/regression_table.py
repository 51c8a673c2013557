"""The table of a private regression: coefficients, standard errors, intervals and p-values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

import numpy as np

from labeldp._atomic import StrPath, atomic_file, read_regular
from labeldp._values import Array
from labeldp.accounts.budget import Budget
from labeldp.accounts.cells import as_csv
from labeldp.accounts.numbers import number
from labeldp.accounts.scores import coefficient_cells, coefficient_columns, describe_fit
from labeldp.accounts.terms import Terms
from labeldp.accounts.verification import verify_card
from labeldp.errors import CardError, DataError, ParameterError
from labeldp.inference.coefficient_plot import draw_effects
from labeldp.inference.distribution import Estimates, StatedEstimates, parse_level
from labeldp.inference.families import FAMILIES, Family
from labeldp.inference.formula import Formula
from labeldp.inference.margins import Margin, WaldTest, average_effects, joint_test, mean_intervals, with_constant
from labeldp.inference.printed_table import PrintedTable, align_cells
from labeldp.inference.remarks import INDEPENDENT
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.tables.frames import is_frame

MAX_EXPONENT = 700.0
"""Exponentials of larger coefficients, of columns with a tiny unit, are no finite numbers."""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class RegressionTable:
    """A linear, logistic or Poisson regression. It contains no label, and all of it may be published.

    Attributes
    ----------
    names : list of str
        The names of the coefficients; the intercept is the first.
    label : str
        The name of the label.
    terms : Terms
        The statistics that were released, and their cost.
    estimates : Estimates or StatedEstimates
        Coefficients and the distributions of their errors.
    rows : Arrow table, optional
        The public columns, over which effects are averaged; None for a table that was read from its card.
    row_weights : array
        Public weights of rows, with a mean of 1.
    family : Family
        Linear, logistic or Poisson.
    remarks : list of str
        Sentences on the method, for below the table.
    columns : Formula
        Turns the public columns into those of the regression.
    frame : bool
        Whether X was a pandas data frame: then results are pandas objects.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(4000, 1))
    >>> table = ldp.private_ols(X, 5 + X[:, 0], epsilon=1.0, bounds=(0, 10))
    >>> bool(table.pvalues[1] < 0.01), table.conf_int().shape, table.cost
    (True, (2, 2), Budget(epsilon=1.0))
    """

    names: list[str]
    label: str
    terms: Terms
    estimates: Estimates | StatedEstimates
    rows: Any
    row_weights: Array
    family: Family
    remarks: list[str]
    columns: Formula
    frame: bool = False

    # ---- figures ------------------------------------------------------------------------------------

    @property
    def params(self) -> Any:
        """The coefficients."""
        return self._as_series(self.estimates.coefficients)

    @property
    def ratios(self) -> Any:
        """Odds ratios or rate ratios, the exponentials of the coefficients; for a linear model there are none.

        Those beyond e^±700 are stated as that.
        """
        if self.family.is_linear:
            raise ParameterError("a linear regression has no ratios: its coefficients are differences of means")
        return self._as_series(bounded_exp(self.estimates.coefficients))

    @property
    def bse(self) -> Any:
        """Their standard errors, from sampling and noise together."""
        return self._as_series(self.estimates.standard_errors)

    @property
    def bse_without_privacy(self) -> Any:
        """Estimates for least squares on the true labels, for equal variances; NaN if noise hides them."""
        return self._as_series(self.estimates.ordinary_errors)

    @property
    def tvalues(self) -> Any:
        """Coefficients divided by standard errors. They have no t distribution: use the p-values."""
        return self.params / self.bse

    @property
    def pvalues(self) -> Any:
        """The probability of an estimate this far from 0, or farther, if the coefficient is 0."""
        return self._as_series(self.estimates.pvalues)

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Return intervals that cover with probability 1 − ``alpha``, a row (low, high) for each coefficient."""
        return self._as_series(self.estimates.intervals(alpha), [0, 1])

    def cov_params(self) -> Any:
        """Return the covariance of the coefficients."""
        return self._as_series(self._laws().covariance, self.names)

    @property
    def nobs(self) -> int:
        """The number of rows."""
        return self.terms.rows

    @property
    def rsquared(self) -> float | None:
        """The estimated part of the labels' variance that the columns explain; None if noise hides it."""
        return self.estimates.fit.get("rsquared")

    @property
    def fit_pvalue(self) -> float | None:
        """The p-value of a test for lack of fit by squared predictions (RESET); None if noise hides it."""
        return self.estimates.fit.get("pvalue")

    @property
    def assumes_independence(self) -> bool:
        """True if people may have several rows and are not known, so that intervals may be too narrow."""
        return INDEPENDENT in self.remarks

    @property
    def cost(self) -> Budget:
        """The total cost of the table."""
        return self.terms.cost

    def predict(self, X: Any, alpha: float | None = None) -> Array:
        """Return the means for rows with the same columns: probabilities, rates; this costs nothing more.

        Parameters
        ----------
        X : array-like or data frame
        alpha : float, optional
            With it, there are three columns: the mean, and the ends of an interval that misses it with probability
            ``alpha``. The interval is of the mean, not of one label.
        """
        columns = self.columns.transform(X) if is_frame(X) else np.asarray(X, dtype=np.float64)
        size = len(self.names) - 1
        if columns.ndim != 2 or columns.shape[1] != size:
            raise ParameterError(f"X must have {size} columns, got the shape {columns.shape}")
        rows = with_constant(columns)
        if alpha is None:
            return self.family.mean(rows @ self.estimates.coefficients)
        return mean_intervals(self._laws(), self.family, rows, parse_level(alpha))

    def margins(self, column: str | None = None, alpha: float = 0.05) -> list[Margin]:
        """Return average marginal effects with their intervals: changes of the mean, over all rows.

        Parameters
        ----------
        column : str, optional
            A column of the table; by default all.
        alpha : float
            Intervals miss an effect with this probability.
        """
        estimates, level = self._laws(), parse_level(alpha)
        columns = self.columns.columns if column is None else [column]
        return [margin for name in columns for margin in average_effects(self, estimates, name, level)]

    def wald_test(self, restrictions: str | Sequence[str]) -> WaldTest:
        """Return a joint test of restrictions, such as ``"age = 0, age:income = 0"``.

        Parameters
        ----------
        restrictions : str or list of str
            Sums of coefficients and numbers with ``=`` between them, such as ``"age + 10*age:income = 0"``.
        """
        return joint_test(self._laws(), self.names, restrictions)

    def _laws(self) -> Estimates:
        """Return the estimates with the distributions of errors, which a card does not have."""
        if isinstance(self.estimates, StatedEstimates):
            raise DataError("a table that was read from its card has figures alone: use the table of the release")
        return self.estimates

    # ---- to print and publish -------------------------------------------------------------------------

    def summary(self, alpha: float = 0.05) -> str:
        """Return the table as text, laid out as in statsmodels, with notes below."""
        header, *rows = align_cells(self.cells(alpha))
        width = max(76, len(header))
        facts = [f"{first:<{width // 2}}{second}" for first, second in self._facts()]
        notes = [fill(f"[{k}] {note}", width) for k, note in enumerate(self.notes(), 1)]
        assumption = ", intervals for independent rows" if self.assumes_independence else ""
        title = f"Private {self.family.title} Regression Results{assumption}"
        title, rule = title.center(width).rstrip(), "=" * width
        return "\n".join([title, rule, *facts, rule, header, "-" * width, *rows, rule, "Notes:", *notes])

    def to_frame(self, alpha: float = 0.05) -> Any:
        """Return the table as a pandas data frame."""
        import pandas  # noqa: PLC0415 (not needed otherwise)

        columns = self.columns_of(alpha)
        return pandas.DataFrame(columns, columns.pop(""))

    def to_csv(self) -> str:
        """Return the figures of the table, not rounded, as CSV."""
        columns = self.columns_of()
        return as_csv([columns, *zip(*columns.values(), strict=True)])

    def to_html(self) -> str:
        """Return the table in HTML that can be pasted into a text processor."""
        return self._printed().to_html()

    def to_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """Return the table in LaTeX with its notes below, for the package booktabs.

        Parameters
        ----------
        caption : str, optional
            Plain text; special characters are escaped.
        label : str, optional
            The key for cross-references.
        """
        return self._printed().to_latex(caption=caption, label=label)

    def _printed(self) -> PrintedTable:
        """Return the table as text, with its facts among the notes."""
        facts = f"Dependent variable: {self.label}. N = {self.nobs:,}. Bounds: {self._bounds()}."
        return PrintedTable(self.cells(), [facts, *self.notes()], align="r")

    def plot(self, ax: Any = None, alpha: float = 0.05) -> Any:
        """Draw effects with their intervals, beside the widths of intervals without privacy.

        An effect is that of one standard deviation more of a column, or of a change from 0 to 1: in the label's
        unit, or as a ratio on a logarithmic axis. A card does not have columns, so for a table that was read from
        its card an effect is that of one more of a column.

        Parameters
        ----------
        ax : matplotlib axes, optional
            By default those of a new figure of pyplot.
        alpha : float
            Intervals miss an effect with this probability.

        Returns
        -------
        matplotlib axes
        """
        return draw_effects(self, ax, alpha)

    def to_card(self, **entries: Any) -> str:
        """Return the card of the table: JSON with a checksum, without labels.

        Parameters
        ----------
        **entries : pure data
            Further public entries, such as the file of the table.
        """
        if self.estimates.fit:
            entries["fit"] = self.estimates.fit
        entries |= {"label": self.label, "features": self.names[1:], "note": "\n".join(self.remarks)}
        model = f"private_{self.family.name}"
        return self.terms.to_card("labeldp.model", model=model, regression=self._figures(), **entries)

    def save(self, path: StrPath) -> None:
        """Write the card to a file, whole or not at all; `load` and ``labeldp verify`` read it."""
        with atomic_file(path, public=True) as file:
            file.write_text(self.to_card(), encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: StrPath) -> RegressionTable:
        """Return the table of a card that `save` wrote: its figures, to print and to put beside others.

        Parameters
        ----------
        path : path
            The card. Its privacy is proven again.

        Raises
        ------
        CardError, PrivacyProofError
            If the card is damaged, not valid, or not that of a regression table.

        Examples
        --------
        >>> import tempfile, numpy as np, labeldp as ldp
        >>> from labeldp.inference import RegressionTable
        >>> X = np.random.default_rng(0).normal(size=(4000, 1))
        >>> table = ldp.private_ols(X, 5 + X[:, 0], epsilon=1.0, bounds=(0, 10))
        >>> with tempfile.TemporaryDirectory() as place:
        ...     table.save(f"{place}/table.json")
        ...     again = RegressionTable.load(f"{place}/table.json")
        >>> again.summary() == table.summary()
        True
        """
        return cls.from_card(read_regular(path, MAX_TEXT).decode(errors="replace"))

    @classmethod
    def from_card(cls, text: str) -> RegressionTable:
        """Return the table of a card's text, as `load` does of a file."""
        card = verify_card(text).require_card()
        content, family = card.content, FAMILIES.get(card.content.get("model", "").removeprefix("private_"))
        figures = content.get("regression", {})
        if family is None or not {"pvalues", "conf_int"} <= figures.keys():
            raise CardError("the card is not that of a regression table")
        hidden = {"bse_ols": [math.nan] * len(figures["names"])}
        columns = ("params", "bse", "pvalues", "conf_int", "bse_ols")
        values = [np.array((hidden | figures)[column]) for column in columns]
        return cls(
            names=figures["names"],
            label=content.get("label", "label"),
            terms=card.terms,
            estimates=StatedEstimates(content.get("fit", {}), *values),
            rows=None,
            row_weights=np.ones(1),
            columns=Formula.plain(figures["names"][1:]),
            family=family,
            remarks=content.get("note", "").split("\n"),
        )

    def __repr__(self) -> str:
        secure = "secure" if self.terms.secure else "NOT PRIVATE"
        return f"<RegressionTable of {self.label!r}, {len(self.names)} coefficients, {self.cost}, {secure}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    # ---- parts --------------------------------------------------------------------------------------

    def cells(self, alpha: float = 0.05) -> list[list[str]]:
        """Return the table as text, with the headings in the first row."""
        return coefficient_cells(self._figures(alpha), alpha)

    def columns_of(self, alpha: float = 0.05) -> dict[str, list[Any]]:
        """Return the table's columns by their headings."""
        return coefficient_columns(self._figures(alpha), alpha)

    def _figures(self, alpha: float = 0.05) -> dict[str, list[Any]]:
        """Return the columns of the table for a card, without those that noise hides."""
        estimates = self.estimates
        figures = {
            "params": estimates.coefficients,
            "bse": estimates.standard_errors,
            "pvalues": estimates.pvalues,
            "conf_int": estimates.intervals(alpha),
        }
        if not np.isnan(estimates.ordinary_errors).any():
            figures["bse_ols"] = estimates.ordinary_errors
        if self.family.ratios:
            figures[f"{self.family.ratios.replace(' ', '_')}s"] = bounded_exp(estimates.coefficients)
        return {"names": self.names} | {name: figure.tolist() for name, figure in figures.items()}

    def notes(self) -> list[str]:
        """Return sentences on how the table was made and how well it fits; the last is the guarantee."""
        guarantee = self.terms.guarantee.replace("this card lists", "this table shows")
        return [*self.remarks, *describe_fit(self.estimates.fit), f"{guarantee[0].upper()}{guarantee[1:]}."]

    def _facts(self) -> list[tuple[str, str]]:
        """Return the lines above the coefficients, each in two parts."""
        fit = self.estimates.fit
        explained = "{rsquared:.3f} ± {standard_error:.3f}".format(**fit) if "rsquared" in fit else "not estimated"
        errors = "robust" if self.family.is_linear else "dispersion"
        tested = "p = {pvalue:.3f}".format(**fit) if "pvalue" in fit else "not tested"
        return [
            (f"Dep. Variable: {self.label}", f"No. Observations: {self.nobs:,}"),
            (f"Model: {self.family.title}, private labels", f"Privacy: {self.cost}"),
            (f"Covariance Type: {errors}", f"Bounds: {self._bounds()}"),
            (f"R-squared: {explained}", f"Lack of fit: {tested}"),
        ]

    def _bounds(self) -> str:
        return " to ".join(map(number, self.terms.bounds[0]))

    def _as_series(self, values: Array, columns: list[Any] | None = None) -> Any:
        if not self.frame:
            return values
        import pandas  # noqa: PLC0415 (a data frame of it was given)

        if columns is None:
            return pandas.Series(values, self.names)
        return pandas.DataFrame(values, self.names, columns)


def bounded_exp(values: Array) -> Array:
    """Return the exponentials of values, which are clipped to ± `MAX_EXPONENT`."""
    return np.exp(np.clip(values, -MAX_EXPONENT, MAX_EXPONENT))
