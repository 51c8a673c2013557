"""Errors of learners that others train on private labels, ``python -m benchmarks.recipients``.

Labels of a table are released by `privatize`, with its features or without, and learners that know nothing of
noise are trained on `labels`, at their defaults. Features are standardised for ridge regression and the network
(128 and 64 units, 30 epochs). The figure is the mean squared error on true labels of held-out rows over their
variance: a constant has 1. Tables are those of `benchmarks.accuracy` to develop with, and a synthetic one with
skewed labels, in 80/20 splits, of at most 10,000 rows. With features, "stated" is the mean squared error that the
card states, over that of the recipient's boosted trees.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
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
from benchmarks.report import Sheet, stamp

RESULTS = Path(__file__).with_suffix(".md")
TABLES = (
    *("crime", "housing", "diabetes", "incomes", "airfare", "food", "houses", "visits"),
    *("friedman", "counts", "claims", "scores", "tails", "skewed"),
)
FOUR = ("crime", "housing", "friedman", "skewed")
EPSILONS = (0.05, 0.1, 0.3, 1.0, 4.0)
TRUE_LABELS = 0.0
MAX_ROWS = 10_000

Array = NDArray[np.float64]
Cell = tuple[str, int, float]


def network() -> MLPRegressor:
    """Return the network of a recipient."""
    return MLPRegressor(hidden_layer_sizes=(128, 64), max_iter=30, random_state=0)


LEARNERS: dict[str, Callable[[], Any]] = {
    "ridge": lambda: make_pipeline(StandardScaler(), Ridge()),
    "boosted trees": lambda: HistGradientBoostingRegressor(random_state=0),
    "random forest": lambda: RandomForestRegressor(n_estimators=100, random_state=0),
    "network": lambda: make_pipeline(StandardScaler(), network()),
}


def skewed() -> tuple[Array, Array, tuple[float, float]]:
    """Return 8,000 rows of ten columns, whose labels have a long tail, and their public bounds."""
    rng = np.random.default_rng(11)
    X = rng.uniform(-1, 1, (8_000, 10))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * np.abs(X[:, 3])
    return X, np.exp(signal + 0.4 * rng.normal(size=len(X))), (0.0, 30.0)


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
        X, y, bounds = skewed() if table == "skewed" else load(table)
        rows = np.random.default_rng(seed).permutation(len(y))[:MAX_ROWS]
        train, test = np.split(rows, [int(0.8 * rows.size)])
        return cls(X[train], y[train], X[test], y[test], bounds)

    def error_of(self, predicted: Array) -> float:
        """Return the mean squared error of predictions, over the variance of true labels."""
        return float(np.mean((predicted - self.y_test) ** 2) / np.var(self.y_test))

    def error(self, learner: str, labels: Array) -> float:
        """Return the error of a learner trained on these labels."""
        scale = float(labels.std()) or 1.0
        shift = float(labels.mean())
        model = LEARNERS[learner]().fit(self.X, (labels - shift) / scale)
        return self.error_of(shift + scale * model.predict(self.X_test))

    def release(self, epsilon: float, seed: int, *, with_features: bool) -> ldp.Release:
        """Return labels for training."""
        X = self.X if with_features else None
        how: dict[str, Any] = {"epsilon": epsilon, "bounds": self.bounds, "ledger": ldp.Ledger()}
        return ldp.privatize(self.y, X=X, random_state=seed, **how)

    def constant_error(self, epsilon: float, seed: int) -> float:
        """Return the error of the private mean: of a sum with Laplace noise."""
        low, high = self.bounds
        noise = np.random.default_rng(seed).laplace(0.0, (high - low) / epsilon / self.y.size)
        return self.error_of(np.clip(np.clip(self.y, low, high).mean() + noise, low, high))


def measure(cell: Cell, *, with_features: bool) -> dict[str, float]:
    """Return the errors of all learners on one split; with ε = 0, on true labels."""
    table, seed, epsilon = cell
    warnings.simplefilter("ignore")
    split = Split.of(table, seed)
    if epsilon == TRUE_LABELS:
        return {learner: split.error(learner, split.y) for learner in LEARNERS}
    release = split.release(epsilon, seed, with_features=with_features)
    errors = {learner: split.error(learner, release.labels) for learner in LEARNERS}
    errors["constant"] = split.constant_error(epsilon, seed)
    if with_features and release.model is not None:
        errors["own model"] = split.error_of(release.model.predict(split.X_test))
    if with_features and release.error is not None:
        errors["stated"] = release.error.mse / np.var(split.y_test) / errors["boosted trees"]
        errors["stated ±"] = release.error.figures["mse"].standard_error / release.error.mse
    return errors


class Measured:
    """Errors by cell, kept in a file of JSON lines: a run that was stopped goes on."""

    def __init__(self, path: Path | None) -> None:
        """Read what an earlier run measured."""
        self.path = path
        self.errors: dict[Cell, dict[str, float]] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                cell, errors = json.loads(line)
                self.errors[tuple(cell)] = errors

    def add(self, cell: Cell, errors: dict[str, float]) -> None:
        """Keep the errors of a cell."""
        self.errors[cell] = errors
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([cell, errors]) + "\n")

    def mean(self, name: str, table: str, epsilon: float) -> float:
        """Return the mean error over splits; NaN if there is none."""
        found = [
            errors[name]
            for (its_table, _, its_epsilon), errors in self.errors.items()
            if (its_table, its_epsilon) == (table, epsilon) and name in errors
        ]
        return float(np.mean(found)) if found else float("nan")

    def sheet(self, title: str, name: str, tables: list[str], budgets: list[float]) -> Sheet:
        """Return a table of errors, with geometric means in its last row."""
        sheet = Sheet(title, ["table", *(f"ε = {epsilon:g}" if epsilon else "true labels" for epsilon in budgets)])
        rows = {table: [self.mean(name, table, epsilon) for epsilon in budgets] for table in tables}
        sheet.rows = [[table, *(f"{error:.3f}" for error in errors)] for table, errors in rows.items()]
        means = np.exp(np.mean(np.log(list(rows.values())), axis=0))
        sheet.rows.append(["**geometric mean**", *(f"**{mean:.3f}**" for mean in means)])
        return sheet


def cells(splits: int, tables: list[str], budgets: list[float]) -> Iterator[Cell]:
    """Yield tables, splits and budgets."""
    for seed in range(splits):
        for table in tables:
            yield from ((table, seed, epsilon) for epsilon in budgets)


def main(
    splits: Annotated[int, typer.Option(help="Splits of each table.")] = 4,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    tables: Annotated[str, typer.Option(help="Names of tables, or all, or four.")] = "all",
    epsilons: Annotated[str, typer.Option(help="Budgets.")] = ",".join(f"{epsilon:g}" for epsilon in EPSILONS),
    with_features: Annotated[bool, typer.Option("--with-features", help="Give X to privatize.")] = False,
    measured: Annotated[Path | None, typer.Option(help="A file of results, to go on with.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Write the tables to this file.")] = None,
) -> None:
    """Measure and show, and on request write the tables."""
    names = list({"all": TABLES, "four": FOUR}.get(tables, tuple(tables.split(","))))
    budgets = [*map(float, epsilons.split(",")), TRUE_LABELS]
    results = Measured(measured)
    wanted = [cell for cell in cells(splits, names, budgets) if cell not in results.errors]
    with ProcessPoolExecutor(workers) as pool:
        found = pool.map(partial(measure, with_features=with_features), wanted)
        for cell, errors in zip(wanted, track(found, "Training", total=len(wanted)), strict=True):
            results.add(cell, errors)
    sheets = [results.sheet(f"Trained by {learner}", learner, names, budgets) for learner in LEARNERS]
    sheets.append(results.sheet("The private mean", "constant", names, budgets[:-1]))
    if with_features:
        sheets.append(results.sheet("The private model itself", "own model", names, budgets[:-1]))
        sheets.append(results.sheet("Stated error over that of the trees", "stated", names, budgets[:-1]))
    console = Console(width=110)
    for sheet in sheets:
        console.print(sheet.rich())
    if keep is not None:
        note = f"{stamp()}; {splits} splits."
        keep.write_text("\n".join(sheet.markdown() for sheet in sheets) + f"\n{note}\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
