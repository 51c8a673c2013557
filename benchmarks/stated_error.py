"""Three errors of a model trained on labels for training: ``python -m benchmarks.stated_error``.

A recipient trains boosted trees on the released labels of 6,400 of California house values. Their typical error
(RMSE, in 100,000 dollars) is measured against the column by cross-validation, against true labels of rows that
were kept back, 1,600, and as the card states it. The table of docs/guide/engineer.md is its output.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_score

import labeldp as ldp
from benchmarks.accuracy.tables import load
from benchmarks.report import Sheet, commit

ROWS = 6_400
EPSILONS = (0.3, 1.0)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Errors:
    """Typical errors of one release."""

    column: float
    truth: float
    stated: float
    standard_error: float


def measure(X: Array, y: Array, bounds: tuple[float, float], epsilon: float, seed: int) -> Errors:
    """Release labels of some rows, train on them, and return the errors."""
    rows = np.random.default_rng(seed).permutation(len(y))
    train, test = rows[:ROWS], rows[ROWS:]
    release = ldp.privatize(
        y[train], X=X[train], epsilon=epsilon, bounds=bounds, ledger=ldp.Ledger(), random_state=seed
    )
    learner = HistGradientBoostingRegressor(random_state=0)
    folds = cross_val_score(learner, X[train], release.labels, cv=5, scoring="neg_mean_squared_error")
    predicted = learner.fit(X[train], release.labels).predict(X[test])
    if release.error is None:
        raise ValueError("too few rows to state an error")
    stated = release.error.figures["rmse"]
    truth = float(np.sqrt(np.mean((predicted - y[test]) ** 2)))
    return Errors(float(np.sqrt(-folds.mean())), truth, stated.value, stated.standard_error)


def main(releases: Annotated[int, typer.Option(help="Releases at each ε.")] = 3) -> None:
    """Measure and show."""
    warnings.simplefilter("ignore")
    X, y, bounds = load("houses")
    measured = {
        epsilon: [measure(X, y, bounds, epsilon, seed) for seed in range(releases)] for epsilon in EPSILONS
    }

    def mean(name: str, epsilon: float) -> str:
        return f"{np.mean([getattr(errors, name) for errors in measured[epsilon]]):.3f}"

    sheet = Sheet("Typical errors", ["", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)])
    stated = [f"{mean('stated', epsilon)} ± {mean('standard_error', epsilon)}" for epsilon in EPSILONS]
    sheet.rows = [
        ["against the column, cross-validated", *(mean("column", epsilon) for epsilon in EPSILONS)],
        ["against the truth, on rows that were kept back", *(mean("truth", epsilon) for epsilon in EPSILONS)],
        ["as the card states, ± its standard error", *stated],
    ]
    console = Console(width=110)
    console.print(sheet.rich())
    console.print(f"{releases} releases; labeldp {ldp.__version__} ({commit()}).")


if __name__ == "__main__":
    typer.run(main)
