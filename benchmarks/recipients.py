"""Errors of learners that others train on private labels, ``python -m benchmarks.recipients``.

Labels of a table are released by `privatize` without its features, and learners that know nothing of noise are
trained on `labels`, at their defaults. Features are standardised for ridge regression and the network (128 and
64 units, 30 epochs). The figure is the mean squared error on true labels of held-out rows over their variance: a
constant has 1. Tables are those of `benchmarks.accuracy` to develop with, in 80/20 splits, of at most
10,000 rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labeldp as ldp
from benchmarks.accuracy.tables import load
from benchmarks.report import Sheet, commit

RESULTS = Path(__file__).with_suffix(".md")
TABLES = (
    *("crime", "housing", "diabetes", "incomes", "airfare", "food", "houses", "visits"),
    *("friedman", "counts", "claims", "scores", "tails"),
)
EPSILONS = (0.05, 0.1, 0.3, 1.0, 4.0)
MAX_ROWS = 10_000

Array = NDArray[np.float64]


def network() -> MLPRegressor:
    """Return the network of a recipient."""
    return MLPRegressor(hidden_layer_sizes=(128, 64), max_iter=30, random_state=0)


LEARNERS: dict[str, Callable[[], Any]] = {
    "ridge": lambda: make_pipeline(StandardScaler(), Ridge()),
    "boosted trees": lambda: HistGradientBoostingRegressor(random_state=0),
    "random forest": lambda: RandomForestRegressor(n_estimators=100, random_state=0),
    "network": lambda: make_pipeline(StandardScaler(), network()),
}


@dataclass(frozen=True)
class Split:
    """Rows to train on and rows to test on."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    bounds: tuple[float, float]

    @classmethod
    def of(cls, table: str, seed: int) -> Split:
        """Return a random split of a table."""
        X, y, bounds = load(table)
        rows = np.random.default_rng(seed).permutation(len(y))[:MAX_ROWS]
        train, test = np.split(rows, [int(0.8 * rows.size)])
        return cls(X[train], y[train], X[test], y[test], bounds)

    def error(self, learner: str, labels: Array) -> float:
        """Return the error of a learner trained on these labels, over the variance of true labels."""
        scale = float(labels.std()) or 1.0
        shift = float(labels.mean())
        model = LEARNERS[learner]().fit(self.X, (labels - shift) / scale)
        predicted = shift + scale * model.predict(self.X_test)
        return float(np.mean((predicted - self.y_test) ** 2) / np.var(self.y_test))


def measure(table: str, seed: int, epsilon: float | None) -> dict[str, float]:
    """Return the errors of all learners on one split; without an ε, on true labels."""
    warnings.simplefilter("ignore")
    split = Split.of(table, seed)
    labels = split.y
    if epsilon is not None:
        ledger = ldp.Ledger()
        release = ldp.privatize(labels, epsilon=epsilon, bounds=split.bounds, ledger=ledger, random_state=seed)
        labels = release.labels
    return {learner: split.error(learner, labels) for learner in LEARNERS}


def cells(splits: int) -> Iterator[tuple[str, int, float | None]]:
    """Yield tables, splits and budgets; None stands for true labels."""
    for seed in range(splits):
        for table in TABLES:
            yield from ((table, seed, epsilon) for epsilon in (*EPSILONS, None))


def main(
    splits: Annotated[int, typer.Option(help="Splits of each table.")] = 4,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    keep: Annotated[bool, typer.Option(help="Write the results.")] = False,
) -> None:
    """Measure, show and on request keep the results."""
    wanted = list(cells(splits))
    with ProcessPoolExecutor(workers) as pool:
        found = list(track(pool.map(measure, *zip(*wanted, strict=True)), "Training", total=len(wanted)))
    budgets = (*EPSILONS, None)
    names = ["ε = " + f"{epsilon:g}" for epsilon in EPSILONS] + ["true labels"]
    sheets = []
    for learner in LEARNERS:
        sheet = Sheet(f"Trained by {learner}", ["table", *names])
        errors = {
            (table, epsilon): np.mean(
                [row[learner] for cell, row in zip(wanted, found, strict=True) if cell[::2] == (table, epsilon)]
            )
            for table in TABLES
            for epsilon in budgets
        }
        for table in TABLES:
            sheet.rows.append([table, *(f"{errors[table, epsilon]:.3f}" for epsilon in budgets)])
        means = [np.exp(np.mean([np.log(errors[table, epsilon]) for table in TABLES])) for epsilon in budgets]
        sheet.rows.append(["**geometric mean**", *(f"**{mean:.3f}**" for mean in means)])
        sheets.append(sheet)
    console = Console(width=110)
    for sheet in sheets:
        console.print(sheet.rich())
    if keep:
        head = (__doc__ or "").split("\n\n", 1)[1].strip()
        note = f"{splits} splits; labeldp {ldp.__version__} ({commit()}). `python -m benchmarks.recipients`."
        body = "\n".join(sheet.markdown() for sheet in sheets)
        RESULTS.write_text(
            f"# Learners of others on private labels\n\n{head}\n\n{body}\n{note}\n", encoding="utf-8"
        )


if __name__ == "__main__":
    typer.run(main)
