"""The table of a private regression: coefficients, standard errors, intervals and p-values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from statistics import NormalDist
from textwrap import fill
from typing import Any

import numpy as np

from labeldp._atomic import StrPath, atomic_file
from labeldp._values import Array
from labeldp.accounts.budget import Budget
from labeldp.accounts.numbers import number
from labeldp.accounts.scores import coefficient_cells, describe_fit
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError, MissingExtraError, ParameterError
from labeldp.learning.formula import Formula
from labeldp.learning.ols_estimate import Estimates
from labeldp.tables.frames import as_table, is_frame, select_columns

_ROBUST = (
    "Standard errors include the noise. They allow for unequal variances of labels around the fitted line and for "
    "its misfit, as robust errors (HC1) do without privacy."
)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class RegressionTable:
    """What `private_ols` estimated; no label is in here, and all may be made public.

    Attributes
    ----------
    names : list of str
        Of the coefficients.
    label : str
        What is explained.
    terms : Terms
        What was released how, and what it cost.
    robust : bool
        Whether standard errors allow for unequal variances of labels around the fitted line.
    intercept : bool
        Whether the first coefficient is the intercept.
    estimates : Estimates
        Coefficients and their laws.
    columns : Formula, optional
        How columns of a data frame become those of the regression; None for an array.
    frame : bool
        Whether X was a data frame of pandas: then results are pandas objects.

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
    robust: bool
    intercept: bool
    estimates: Estimates = field(repr=False)
    columns: Formula | None = None
    frame: bool = False

    # ---- figures ------------------------------------------------------------------------------------

    @property
    def params(self) -> Any:
        """The coefficients."""
        return self._named(self.estimates.values)

    @property
    def bse(self) -> Any:
        """Their standard errors, by sampling and noise together."""
        return self._named(self._deviations())

    @property
    def bse_without_privacy(self) -> Any:
        """About what least squares on the true labels would have for standard errors, equal variances assumed.

        NaN where noise would hide it.
        """
        return self._named(self.estimates.ordinary)

    @property
    def tvalues(self) -> Any:
        """Coefficients over standard errors. They follow no t distribution: take the p-values as they are."""
        return self._named(self.estimates.values / self._deviations())

    @property
    def pvalues(self) -> Any:
        """The probability of an estimate this far from 0, or farther, if the coefficient is 0."""
        return self._named(self._pvalues())

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Return intervals that cover with probability 1 − ``alpha``, a row (low, high) for each coefficient."""
        return self._named(self._ends(alpha), [0, 1])

    def cov_params(self) -> Any:
        """Return the covariance of the coefficients."""
        return self._named(self.estimates.covariance, self.names)

    @property
    def rsquared(self) -> float | None:
        """About the part of the labels' variance that the columns explain; None where noise would hide it."""
        return None if self.estimates.r_squared is None else self.estimates.r_squared[0]

    @property
    def fit_pvalue(self) -> float | None:
        """Of a test for lack of fit by squared predictions (RESET); None where noise would hide it."""
        return self.estimates.fit_pvalue

    @property
    def cost(self) -> Budget:
        """What the table cost in all."""
        return self.terms.cost

    def predict(self, X: Any) -> Array:
        """Return what the coefficients predict for rows with the same columns; it costs nothing more."""
        size = len(self.names) - int(self.intercept)
        if is_frame(X):
            if self.columns is None:
                raise DataError("the table was made from an array without names: give an array")
            columns = self.columns.transform(as_table(select_columns(X, self.columns.columns)))
        else:
            columns = np.asarray(X, dtype=np.float64)
        if columns.ndim != 2 or columns.shape[1] != size:
            raise ParameterError(f"X must have {size} columns, got the shape {columns.shape}")
        constant, slopes = np.split(self.estimates.values, [int(self.intercept)])
        return np.asarray(columns @ slopes + constant.sum())

    # ---- to print and publish -------------------------------------------------------------------------

    def summary(self, alpha: float = 0.05) -> str:
        """Return the table as text, laid out as statsmodels does, with notes on how it was made."""
        found = self.estimates.r_squared
        rows = self.cells(alpha)
        first, *sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["   ".join([name.ljust(first), *map(str.rjust, row, sizes)]) for name, *row in rows]
        width = max(76, *map(len, lines))
        half = width // 2
        head = [
            f"{left:<18}{value[: half - 20]:>{half - 19}} {right:<18}{other:>{width - half - 18}}"
            for left, value, right, other in (
                ("Dep. Variable:", self.label, "No. Observations:", f"{self.terms.rows:,}"),
                ("Model:", "OLS, private labels", "Privacy:", str(self.cost)),
                ("Covariance Type:", "robust" if self.robust else "nonrobust", "Bounds:", self._bounds()),
                (
                    *("R-squared:", "not estimated" if found is None else "{:.3f} ± {:.3f}".format(*found)),
                    *("Lack of fit:", "not tested" if self.fit_pvalue is None else f"p = {self.fit_pvalue:.3f}"),
                ),
            )
        ]
        title, rule = "Private OLS Regression Results".center(width).rstrip(), "=" * width
        notes = [fill(f"[{k}] {note}", width) for k, note in enumerate(self.notes(), 1)]
        return "\n".join([title, rule, *head, rule, lines[0], "-" * width, *lines[1:], rule, "Notes:", *notes])

    def to_frame(self, alpha: float = 0.05) -> Any:
        """Return the table as a data frame of pandas."""
        try:
            import pandas  # noqa: PLC0415 (not needed otherwise)
        except ImportError:
            raise MissingExtraError("a data frame needs pandas: pip install pandas") from None
        (_, *columns), *rows = self.values(alpha)
        return pandas.DataFrame([row[1:] for row in rows], self.names, columns)

    def to_latex(
        self, path: StrPath | None = None, *, caption: str | None = None, label: str | None = None
    ) -> str:
        """Return the table in LaTeX with its notes below, for the package booktabs.

        Parameters
        ----------
        path : path-like, optional
            A file to write it to as well.
        caption, label : str, optional
            In LaTeX.
        """
        head, *rows = [" & ".join(map(_latex, row)) + r" \\" for row in self.cells()]
        facts = f"Dependent variable: {self.label}. N = {self.terms.rows:,}. Bounds: {self._bounds()}."
        lines = [
            *(r"\begin{table}", r"\centering"),
            *([rf"\caption{{{caption}}}"] if caption else []),
            *([rf"\label{{{label}}}"] if label else []),
            *(rf"\begin{{tabular}}{{l{'r' * head.count('&')}}}", r"\toprule", head, r"\midrule", *rows),
            *(r"\bottomrule", r"\end{tabular}", r"\par\smallskip\footnotesize"),
            *map(_latex, [facts, *self.notes()]),
            r"\end{table}",
        ]
        text = "\n".join(lines)
        if path is not None:
            _write(path, text + "\n")
        return text

    def plot(self, ax: Any = None, alpha: float = 0.05) -> Any:
        """Draw coefficients with their intervals, beside those that least squares without privacy would have.

        Parameters
        ----------
        ax : matplotlib axes, optional
            By default those of a new figure, which is pyplot's current one then.
        alpha : float
            Intervals miss a coefficient with this probability.

        Returns
        -------
        matplotlib axes
        """
        if ax is None:
            try:
                from matplotlib import pyplot  # noqa: PLC0415 (an extra)
            except ImportError:
                raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
            ax = pyplot.subplots(figsize=(7, 1.2 + 0.4 * len(self.names)), layout="constrained")[1]
        slopes = slice(int(self.intercept), None)
        names, values, ends = self.names[slopes], self.estimates.values[slopes], self._ends(alpha)[slopes]
        places = np.arange(len(names))
        shown = {"xerr": ends[:, 1] - values, "fmt": "o", "label": f"{100 * (1 - alpha):g} % interval"}
        ax.errorbar(values, places, color="C0", **shown)
        reach = NormalDist().inv_cdf(1 - alpha / 2) * self.estimates.ordinary[slopes]
        if np.isfinite(reach).all():
            shown = {"xerr": reach, "fmt": "none", "label": "its width without privacy"}
            ax.errorbar(values, places + 0.2, color="C1", **shown)
        ax.axvline(0, color="#777777", linewidth=0.8)
        ax.set_yticks(places, names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlabel("coefficient")
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=9)
        return ax

    def to_card(self, **more: Any) -> str:
        """Return the card of the table: JSON with a checksum, and no label in it.

        Parameters
        ----------
        **more : pure data
            Further public entries, such as which file the table is in.
        """
        if fit := self._fit():
            more["fit"] = fit
        more |= {
            "label": self.label,
            "features": self.names[int(self.intercept) :],
            "note": "\n".join(self._made()),
        }
        return self.terms.to_card("labeldp.model", model="private_ols", regression=self._figures(), **more)

    def save(self, path: StrPath) -> None:
        """Write the card to a file, whole or not at all; ``labeldp verify`` reads it."""
        _write(path, self.to_card())

    def __repr__(self) -> str:
        secure = "secure" if self.terms.secure else "NOT PRIVATE"
        return f"<RegressionTable of {self.label!r}, {len(self.names)} coefficients, {self.cost}, {secure}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    # ---- parts of it ----------------------------------------------------------------------------------

    def _deviations(self) -> Array:
        return np.array([law.deviation for law in self.estimates.laws])

    def _pvalues(self) -> Array:
        pairs = zip(self.estimates.laws, self.estimates.values.tolist(), strict=True)
        return np.array([law.tail(value) for law, value in pairs])

    def _ends(self, alpha: float) -> Array:
        if not 1e-6 <= alpha <= 0.99:
            raise ParameterError(f"alpha must lie between 1e-6 and 0.99, such as 0.05, got {alpha}")
        reach = np.array([law.quantile(alpha) for law in self.estimates.laws])
        return self.estimates.values[:, None] + np.outer(reach, [-1, 1])

    def cells(self, alpha: float = 0.05) -> list[list[str]]:
        """Return the table's cells as text, under a row of names."""
        return coefficient_cells(self._figures(alpha), alpha)

    def values(self, alpha: float = 0.05) -> list[list[Any]]:
        """Return the table's names and numbers, under a row of names."""
        listed = zip(*self._figures(alpha).values(), strict=True)
        rows = [
            [name, value, error, value / error, p, *ends, *plain] for name, value, error, p, ends, *plain in listed
        ]
        return [self.cells(alpha)[0], *rows]

    def _figures(self, alpha: float = 0.05) -> dict[str, list[Any]]:
        """Return the table's columns as a card has them, without those that noise would hide."""
        figures = {
            "names": self.names,
            "params": self.estimates.values.tolist(),
            "bse": self._deviations().tolist(),
            "pvalues": self._pvalues().tolist(),
            "conf_int": self._ends(alpha).tolist(),
        }
        ordinary = self.estimates.ordinary
        return figures | ({"bse_ols": ordinary.tolist()} if np.isfinite(ordinary).all() else {})

    def notes(self) -> list[str]:
        """Return how the table was made and how well it fits, in sentences; the last is the guarantee."""
        guarantee = self.terms.guarantee.replace("this card lists", "this table shows")
        return [*self._made(), *describe_fit(self._fit()), f"{guarantee[0].upper()}{guarantee[1:]}."]

    def _made(self) -> list[str]:
        """Return the notes that the figures on a card do not show."""
        found, levels = self.estimates, {} if self.columns is None else self.columns.levels
        kind = _ROBUST if self.robust else "Standard errors are for equal variances and include the noise."
        ordinary = "estimated for equal variances" if np.isfinite(found.ordinary).all() else "hidden by noise"
        compared = ", ".join(f"{name} = {listed[0]}" for name, listed in levels.items())
        return [
            *([f"Categories are compared with: {compared}."] if compared else []),
            f"{kind} Intervals and p-values follow from the exact law of the noise.",
            "Coefficients are those of least squares on labels clipped to the bounds. Where the true relation is "
            "curved, the weights of rows may move them by a fraction of a standard error.",
            *found.notes,
            f"Standard errors without privacy are {ordinary}.",
        ]

    def _fit(self) -> dict[str, float]:
        """Return what is known of how well the table fits, as a card has it."""
        explained, error = self.estimates.r_squared or (None, None)
        figures = {"rsquared": explained, "standard_error": error, "pvalue": self.fit_pvalue}
        return {name: figure for name, figure in figures.items() if figure is not None}

    def _bounds(self) -> str:
        return " to ".join(map(number, self.terms.bounds[0]))

    def _named(self, values: Array, columns: list[Any] | None = None) -> Any:
        if not self.frame:
            return values
        import pandas  # noqa: PLC0415 (a data frame of it was given)

        if columns is None:
            return pandas.Series(values, self.names)
        return pandas.DataFrame(values, self.names, columns)


def _write(path: StrPath, text: str) -> None:
    with atomic_file(path, public=True) as file:
        file.write_text(text, encoding="utf-8", newline="\n")


_LATEX = (
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "²": "$^2$"}
    | {"ε": r"$\varepsilon$", "δ": r"$\delta$", "±": r"$\pm$", "−": "$-$"}
    | {mark: f"${mark}$" for mark in "|<>"}
    | {mark: f"\\{mark}" for mark in "&%$#_{}"}
)


def _latex(text: str) -> str:
    return re.sub(r"\*\*(\d)", r"$^\1$", "".join(_LATEX.get(character, character) for character in text))
