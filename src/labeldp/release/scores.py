"""What a card says of a model's score: its figures, and what was paid for it on rows that the model never saw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labeldp._values import rounded_up
from labeldp.errors import ParameterError
from labeldp.ledger import Charge, Statistic, cost_of, group_budget
from labeldp.release.numbers import number

if TYPE_CHECKING:
    from labeldp.release.terms import Terms

METRICS = {
    "rmse": "typical error (RMSE)",
    "mse": "mean squared error",
    "mae": "mean absolute error",
    "r2": "R²",
}
"""Names of figures, and what they are called, in the order of a summary."""

DEFAULT_METRICS = ("rmse", "mae")
"""What a score measures unless others are asked for."""


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
    >>> from labeldp.release.scores import Figure
    >>> print(Figure(0.25, 0.02))
    0.25 ± 0.02
    """

    value: float
    standard_error: float

    @property
    def limit(self) -> float:
        """What it stays below, with two standard errors."""
        return max(self.value, 0.0) + 2 * self.standard_error

    @property
    def hidden(self) -> bool:
        """Whether an error is not distinguished from 0, so that only its limit says something."""
        return self.value <= 2 * self.standard_error

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "hidden by noise"
        return f"{number(self.value)} ± {number(self.standard_error, 2)}"


def describe_figures(figures: Mapping[str, Figure]) -> dict[str, str]:
    """Return figures for people, by their names: with ±, or as a limit where noise hides an error.

    The mean absolute error comes first where noise hides the squared one.

    Examples
    --------
    >>> figures = {"rmse": Figure(0.0, 3.0), "mse": Figure(-40.0, 18.0), "mae": Figure(2.0, 0.1)}
    >>> describe_figures(figures)
    {'mean absolute error': '2 ± 0.1', 'typical error (RMSE)': 'below 6 (95 %)'}
    """
    shown = {name: str(figures[name]) for name in METRICS if name in figures}
    for name in ("rmse", "mse", "mae"):
        if name in figures and figures[name].hidden:
            root = name == "rmse" and "mse" in figures
            limit = math.sqrt(figures["mse"].limit) if root else figures[name].limit
            shown[name] = f"below {number(float(rounded_up(limit, 3)), 3)} (95 %)"
    if "mse" in figures and figures["mse"].hidden:
        order = ("mae", "rmse", "r2") if "rmse" in figures else ("mae", "mse", "r2")
        shown = {name: shown[name] for name in order if name in shown}
    return {METRICS[name]: text for name, text in shown.items()}


def quality_from_data(data: Any) -> str | None:
    """Return what a card says of how good a model is, in words; None if it says nothing that can be read.

    Examples
    --------
    >>> quality_from_data({"how": "curator", "rows": 900, "epsilon": 1.0, "figures": {"rmse": [0.5, 0.02]}})
    'typical error (RMSE) 0.5 ± 0.02, measured on 900 rows for ε = 1'
    """
    try:
        figures = {name: Figure(*map(float, data["figures"][name])) for name in METRICS if name in data["figures"]}
        rows, price = int(data["rows"]), float(data["epsilon"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    told = ", ".join(f"{name} {text}" for name, text in describe_figures(figures).items())
    way = f"measured on {rows:,} rows for ε = {price:g}" if price else f"estimated from {rows:,} private labels"
    return f"{told}, {way}" if told else None


def score_charges(terms: Terms, about: Mapping[str, Any]) -> tuple[Charge, ...]:
    """Return what was paid for the score on a card, beside the charges of its terms: of rows held out.

    What it cost follows from its noise; cards that do not show the entry of the ledger do not say when.
    """
    quality = about.get("quality")
    if not isinstance(quality, dict) or not (listed := quality.get("statistics")):
        return ()
    if any(one.purpose == "score" for one in terms.statistics):
        return ()
    people, spent = terms.rows_per_person, cost_of(Statistic.from_data(one) for one in listed)
    score = Charge("score", group_budget(spent, people), "", rows_per_person=people, purpose="score")
    with suppress(ParameterError):
        noted = Charge.from_data(quality.get("charge", {}))
        if (noted.budget, noted.rows_per_person, noted.purpose) == (score.budget, people, "score"):
            return (noted,)
    return (score,)
