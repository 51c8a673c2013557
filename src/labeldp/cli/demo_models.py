"""The second half of ``labeldp demo``: private models beside one that is not, as a table and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._validation import rounded_up
from labeldp.datasets import Survey
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor, private_score
from labeldp.ledger import Ledger

__all__ = ["Price", "price_of_privacy", "save_plot", "show_prices"]

BUDGETS = (0.1, 0.5, 2.0)
REGRESSORS: dict[str, Callable[..., Any]] = {
    "labels released": LabelReleaseRegressor,
    "model released": ModelReleaseRegressor,
}
_MOST = 6000
"""Rows to train on: enough to show the price, few enough not to wait for it."""


@dataclass(frozen=True, slots=True)
class Price:
    """Typical errors of predicted incomes, on rows that no model saw.

    Attributes
    ----------
    constant : float
        Of the best single guess, the mean.
    not_private : float
        Of boosted trees on true incomes.
    private : dict
        Of each regressor at each ε.
    scored : str
        What `private_score` says of the last model, for an ε of its own.
    total : float
        What all these models cost together: in earnest one would train one.
    """

    constant: float
    not_private: float
    private: dict[tuple[str, float], float]
    scored: str
    total: float


def price_of_privacy(survey: Survey, console: Console) -> Price:
    """Train both regressors at several ε, and boosted trees without privacy, on a part of a survey."""
    rows = min(_MOST, int(0.7 * len(survey.income)))
    X, y = survey.features, survey.income
    train, test = slice(0, rows), slice(rows, min(len(y), 2 * rows))

    def error(model: Any) -> float:
        return float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))

    public = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(X[train], y[train])
    constant = float(np.sqrt(np.mean((y[test] - y[train].mean()) ** 2)))
    private, ledger = {}, Ledger()
    columns = (TextColumn("Training {task.description:<28}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        for name, epsilon in bar.track(list(_cells()), description=""):
            bar.update(bar.task_ids[0], description=f"ε = {epsilon:g}, {name} …")
            model = REGRESSORS[name](epsilon=epsilon, bounds=survey.bounds, ledger=ledger)
            private[name, epsilon] = error(model.fit(X[train], y[train]))
    score = private_score(model, X[test], y[test], epsilon=0.5, bounds=survey.bounds)
    scored = f"{np.sqrt(max(score.mse, 0.0)):,.0f}"
    return Price(constant, error(public), private, scored, ledger.total.epsilon)


def _cells() -> Iterator[tuple[str, float]]:
    for epsilon in BUDGETS:
        for name in REGRESSORS:
            yield name, epsilon


def show_prices(price: Price, console: Console) -> None:
    """Print the table."""
    table = Table(
        title="Predicting an income from the public columns: typical error, in dollars", title_justify="left"
    )
    for name in ("ε", *REGRESSORS):
        table.add_column(name, justify="right")
    table.add_column("not private", justify="right", style="dim")
    table.add_column("guess the mean", justify="right", style="dim")
    for epsilon in BUDGETS:
        cells = [f"{price.private[name, epsilon]:,.0f}" for name in REGRESSORS]
        table.add_row(f"{epsilon:g}", *cells, f"{price.not_private:,.0f}", f"{price.constant:,.0f}")
    console.print(table)
    console.print(
        "labels released: a table of private incomes may leave, and any learner may use it. model released: only "
        f"the model leaves. For ε = 0.5 more, private_score puts the last model's error at {price.scored} dollars "
        f"without showing a test label. All six together spent ε = {rounded_up(price.total)}: each release of the "
        "same incomes costs again, so in earnest choose one.\n",
        style="dim",
    )


def save_plot(price: Price, path: Path) -> bool:
    """Draw error against ε and save it; return False if Matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
    except ImportError:
        return False
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    colours = {"labels released": "#b04a00", "model released": "#0057a3"}
    for (name, colour), marker in zip(colours.items(), "os", strict=True):
        errors = [price.private[name, epsilon] / 1000 for epsilon in BUDGETS]
        axes.plot(BUDGETS, errors, color=colour, marker=marker, linewidth=2, label=name)
    lines = {"guess the mean": price.constant, "boosted trees, not private": price.not_private}
    for name, value in lines.items():
        axes.axhline(value / 1000, color="#777777", linestyle="--", linewidth=1)
        axes.annotate(
            name,
            (BUDGETS[0], value / 1000),
            xytext=(0, 3),
            textcoords="offset points",
            color="#555555",
            fontsize=9,
        )
    axes.set_xscale("log")
    axes.set_xticks(BUDGETS, [f"{epsilon:g}" for epsilon in BUDGETS])
    axes.minorticks_off()
    axes.set_xlabel("ε: less is more private")
    axes.set_ylabel("typical error, thousand dollars")
    axes.set_title("What privacy costs a model of incomes", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    return True
