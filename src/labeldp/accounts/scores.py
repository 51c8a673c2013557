"""Score of a model on its card: figures, and their price."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from labeldp._values import Interval
from labeldp.accounts.budget import Budget, exact_sum, rounded_up
from labeldp.accounts.numbers import number
from labeldp.exact.integers import Statistic
from labeldp.mechanisms.typed_data import between

METRICS = {
    "rmse": "typical error (RMSE)",
    "rmse_limit": "with rare far errors at most",
    "mse": "mean squared error",
    "mae": "mean absolute error",
    "r2": "R²",
}
"""Names of figures and their titles, in the order of a summary."""

_CURVED = (
    "So the relation is curved, and coefficients, with their intervals, are those of the best straight line, not "
    "of an effect that is the same everywhere. Add squares or categories."
)

_MAX_EXPONENT = 100.0
"""The largest logarithm of a ratio that is shown."""

StandardError = Annotated[float, between(0)]


@dataclass(frozen=True, slots=True)
class Figure:
    """A value, and its standard error; it prints itself with ±.

    Attributes
    ----------
    value : float
        The estimate; an error is never negative, and R² is NaN where noise hides the labels' variance.
    standard_error : float
        An upper limit, by noise and by the choice of rows: twice it covers in at least 95 % of runs.

    Examples
    --------
    >>> from labeldp.accounts.scores import Figure
    >>> print(Figure(0.25, 0.02))
    0.25 ± 0.02
    """

    value: float
    standard_error: StandardError

    @property
    def limit(self) -> float:
        """The upper limit, by two standard errors."""
        return max(self.value, 0.0) + 2 * self.standard_error

    @property
    def interval(self) -> Interval:
        """The interval of 95 %: 1.96 standard errors to both sides."""
        return self.value - 1.96 * self.standard_error, self.value + 1.96 * self.standard_error

    @property
    def is_hidden(self) -> bool:
        """True for an error that is not distinguished from 0: only its limit has a meaning."""
        return self.value <= 2 * self.standard_error

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "hidden by noise"
        return f"{number(self.value)} ± {number(self.standard_error, 2)}"


def describe_figures(figures: Mapping[str, Figure]) -> dict[str, str]:
    """Return figures for people, by their names: with ±, or as a limit where noise hides an error.

    A limit holds in 95 % of runs where errors were not clipped, as those with a mean absolute error.

    Examples
    --------
    >>> describe_figures({"rmse": Figure(0.0, 3.0), "mae": Figure(2.0, 0.1)})
    {'typical error (RMSE)': 'below 6 (95 %)', 'mean absolute error': '2 ± 0.1'}
    """
    texts = {}
    confidence = " (95 %)" if "mae" in figures else ""
    for name, title in METRICS.items():
        if name in figures and not (name == "mse" and "rmse" in figures and figures["mse"].is_hidden):
            figure = figures[name]
            if name == "rmse_limit":
                texts[title] = f"{number(float(rounded_up(figure.value, 3)), 3)} (95 %)"
                continue
            is_limit = name != "r2" and figure.is_hidden
            limit = number(float(rounded_up(figure.limit, 3)), 3) if is_limit else ""
            texts[title] = f"below {limit}{confidence}" if is_limit else str(figure)
    return texts


def list_figures(figures: Mapping[str, Figure]) -> str:
    """Return figures for people, one after another."""
    return ", ".join(f"{title} {text}" for title, text in describe_figures(figures).items())


FAR_GROUP = (
    "A few percent of rows with far larger errors may hide in the noise: ± does not count them, the limit does."
)
"""Meaning of the ± of errors that are clipped before they are squared."""


def describe_quality(quality: Any, statistics: Iterable[Statistic], rows_per_person: int = 1) -> str | None:
    """Return the stated errors of a model in words, with the cost of their rows; None if there are none."""
    if quality is None:
        return None
    figures = {name: Figure(**entry) for name, entry in quality["figures"].items()}
    figures_text = list_figures(figures)
    epsilon = exact_sum(statistic.epsilon for statistic in statistics if statistic.purpose == "score")
    price = Budget(rows_per_person * epsilon)
    limit = "" if "mae" in figures else f". {FAR_GROUP[:-1]}"
    return f"{figures_text}, measured on {quality['rows']:,} rows for {price}{limit}" if figures_text else None


def coefficient_columns(regression: Any, alpha: float = 0.05) -> dict[str, list[Any]]:
    """Return the columns of a card's table of coefficients by their headings, without unknown ones."""
    values, errors, ends = regression["params"], regression["bse"], regression.get("conf_int", [])
    columns = {
        "": regression["names"],
        "coef": values,
        "std err": errors,
        "t": [value / error if error else None for value, error in zip(values, errors, strict=True)],
        "P>|t|": regression.get("pvalues"),
        f"[{alpha / 2:.3g}": [low for low, _ in ends],
        f"{1 - alpha / 2:.3g}]": [high for _, high in ends],
        "odds ratio": regression.get("odds_ratios"),
        "rate ratio": regression.get("rate_ratios"),
        "std err without privacy": regression.get("bse_ols"),
    }
    return {name: column for name, column in columns.items() if column}


def coefficient_cells(regression: Any, alpha: float = 0.05) -> list[list[str]]:
    """Return the table of coefficients as text, with the headings in the first row."""
    columns = coefficient_columns(regression, alpha)
    formats: dict[str, Callable[[Any], str]] = {
        "": str,
        "t": lambda t: "" if t is None else f"{t:.2f}".replace("-", "−"),
        "P>|t|": "{:.3f}".format,
    }
    cells = [[formats.get(name, number)(value) for value in column] for name, column in columns.items()]
    return [list(columns), *map(list, zip(*cells, strict=True))]


def describe_coefficients(regression: Any) -> list[str]:
    """Return a sentence for each coefficient but the intercept, with its interval; for the mean, if it is alone.

    Examples
    --------
    >>> entry = {"names": ["Intercept", "age"], "params": [0.1, 0.03], "conf_int": [[0, 1], [0.01, 0.05]]}
    >>> describe_coefficients(entry | {"odds_ratios": [1.1, 1.03]})
    ['One more age: odds × 1.03, 1.01 to 1.05.']
    >>> describe_coefficients(entry)
    ['One more age: +0.03, +0.01 to +0.05.']
    >>> describe_coefficients({"names": ["Intercept", "age**2"], "params": [0, 1], "conf_int": [[0, 1], [0, 2]]})
    ['In addition, for age**2: +1, +0 to +2.']
    >>> describe_coefficients({"names": ["Intercept"], "params": [40.25], "conf_int": [[39.5, 41]]})
    ['The mean: 40.25, with an interval from 39.5 to 41.']
    """
    unit = next((word for word in ("odds", "rate") if f"{word}_ratios" in regression), None)
    sentences = []
    columns = regression["names"], regression["params"], regression.get("conf_int", [])
    rows = list(zip(*columns, strict=False))
    if len(rows) == 1 and unit is None:
        ((_, mean, (low, high)),) = rows
        return [f"The mean: {number(mean)}, with an interval from {number(low)} to {number(high)}."]
    for name, value, ends in rows[1:]:
        figures = [_effect(figure, unit) for figure in (value, *ends)]
        sentences.append(
            f"{_change(name)}: {unit + ' × ' if unit else ''}{figures[0]}, {' to '.join(figures[1:])}."
        )
    return sentences


def _change(name: str) -> str:
    """Return the change of columns that a coefficient is for, in words."""
    column, bracket, level = name.partition("[")
    if ":" in name or "**" in name:
        return f"In addition, for {name}"
    return f"{column} = {level[:-1]} instead of its reference" if bracket else f"One more {name}"


def _effect(value: float, unit: str | None) -> str:
    """Return a difference with its sign, or a ratio."""
    if unit is not None:
        return number(math.exp(value), 3) if abs(value) < _MAX_EXPONENT else "beyond all figures"
    text = number(value, 3)
    return text if text.startswith("−") else f"+{text}"


def describe_fit(fit: Any) -> list[str]:
    """Return the fit of a table of coefficients, in sentences."""
    sentence = "R² is not estimated: noise would hide it, or rows have weights."
    if "rsquared" in fit:
        sentence = f"R² is about {fit['rsquared']:.3f} ± {fit['standard_error']:.3f}, its standard error by noise."
    if "pvalue" not in fit:
        return [
            sentence,
            "Lack of fit is not tested: noise hides it, all columns are categories, or the model is not linear.",
        ]
    result = f"Lack of fit is tested by squared predictions (RESET): p = {fit['pvalue']:.3f}."
    return [sentence, f"{result} {_CURVED}" if fit["pvalue"] < 0.05 else result]
