"""Error of a model that learns on month by month, over that of one fit of all rows.

python -m benchmarks.updates                            # six development tables, 10 months of 5,000 rows, ε = 1
python -m benchmarks.updates --months 6 --rows 2500 --saved friedman checkers

With ``--saved`` the model is saved without rows and loaded again before each update, as by a monthly job.
Synthetic tables are drawn anew for as many rows; real ones have no more rows than they have, in equal months.
"""

from __future__ import annotations

import tempfile
import warnings
from typing import Annotated, Any

import numpy as np
import typer

import labeldp as ldp
from benchmarks.accuracy.heldout import Array
from benchmarks.accuracy.tables import TABLES, _labels

COLUMNS = {"friedman": 10, "checkers": 12, "counts": 6, "steps": 15, "tails": 8, "many": 20}
"""The development tables whose labels are drawn, and their numbers of columns."""

TEST_ROWS = 4_000


def draw(name: str, rows: int, seed: int) -> tuple[Array, Array, tuple[float, float]]:
    """Return a development table with this many rows, or as many as it has, and its bounds."""
    table, random = TABLES[name], np.random.default_rng((rows, seed))
    if name not in COLUMNS:
        X, y = table.load()
        order = random.permutation(len(y))[:rows]
        return X[order], y[order], table.bounds
    X = random.uniform(-1, 1, (rows, COLUMNS[name]))
    return X, np.asarray(_labels(name, X.T, random, rows), dtype=float), table.bounds


def compare(name: str, months: int, rows: int, epsilon: float, seed: int, *, saved: bool) -> tuple[float, float]:
    """Return the errors of one fit and of monthly updates, over the variance of the labels."""
    X, y, bounds = draw(name, months * rows + TEST_ROWS, seed)
    tested = min(TEST_ROWS, len(y) // 5)
    learnt, X_test, y_test = np.clip(y[:-tested], *bounds), X[-tested:], y[-tested:]

    def error(model: Any) -> float:
        return float(np.mean((model.predict(X_test) - y_test) ** 2) / np.var(y_test))

    ledger = ldp.Ledger(limit=ldp.Budget(epsilon))
    parts = np.array_split(np.arange(learnt.size), months)
    how: dict[str, Any] = {"epsilon": epsilon, "bounds": bounds}
    model: Any = ldp.ModelReleaseRegressor(ledger=ledger, **how)
    model.fit(X[parts[0]], learnt[parts[0]], segment="0")
    for month, part in enumerate(parts[1:], 1):
        if saved:
            with tempfile.TemporaryDirectory() as folder:
                ldp.save_model(model, f"{folder}/model")
                model = ldp.load_model(f"{folder}/model").regressor(epsilon=epsilon, ledger=ledger)
        model.update(X[part], learnt[part], segment=str(month))
    once = ldp.ModelReleaseRegressor(**how).fit(X[: learnt.size], learnt)
    return error(once), error(model)


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Development tables.")] = None,
    months: int = 10,
    rows: int = 5_000,
    epsilon: float = 1.0,
    seed: int = 0,
    saved: bool = False,
) -> None:
    """Print the errors of one fit and of monthly updates, and their ratio, for each table."""
    warnings.simplefilter("ignore")
    ratios = []
    for name in names or ["friedman", "checkers", "counts", "steps", "tails", "many"]:
        once, updated = compare(name, months, rows, epsilon, seed, saved=saved)
        ratios.append(updated / once)
        print(f"{name:10} one fit {once:.4f}  updated {updated:.4f}  ratio {updated / once:.3f}", flush=True)
    print(f"geometric mean of ratios {np.exp(np.mean(np.log(ratios))):.3f}, largest {max(ratios):.3f}")


if __name__ == "__main__":
    typer.run(main)
