"""What a transform of the label gains: the error with "log" and "sqrt" over that without, on skewed public tables.

``python -m benchmarks.transforms`` prints the table of the engineer's guide: R² on held-out rows, whose labels are
clipped to the bounds, a mean over splits, for `ModelReleaseRegressor`.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.metrics import r2_score

import labeldp as ldp
from benchmarks.accuracy import tables

SPLITS, EPSILONS, MOST_ROWS = 2, (0.5, 2.0), 6000
Table = tuple[tables.Columns, tuple[float, float], tuple[str, ...]]


def growth(spread: float) -> tables.Columns:
    """Return labels on which columns act as factors, with log-normal noise around."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 4))
    return X, 9_000 * np.exp(1.2 * X[:, 0] + 0.8 * X[:, 1] * X[:, 2] + spread * rng.normal(size=5000))


def skewed() -> dict[str, Table]:
    """Return tables with public bounds, and the transforms that these allow."""
    return {
        "factors, log-normal noise 0.3": (growth(0.3), (300.0, 200_000.0), ("log", "sqrt")),
        "factors, log-normal noise 0.8": (growth(0.8), (100.0, 500_000.0), ("log", "sqrt")),
        "claims (synthetic, of the accuracy suite)": (
            tables.TABLES["claims"].load(),
            (100.0, 50_000.0),
            ("log", "sqrt"),
        ),
        "incomes (401(k), Wooldridge)": (tables.TABLES["incomes"].load(), (5.0, 200.0), ("log", "sqrt")),
        "house values (California)": (tables.TABLES["housing"].load(), (0.1, 5.0), ("log", "sqrt")),
        "crimes (Communities)": (tables.TABLES["crime"].load(), (0.0, 1.0), ("sqrt",)),
        "diabetes (scikit-learn)": (tables.TABLES["diabetes"].load(), (20.0, 350.0), ("log", "sqrt")),
    }


def measure(table: Table, transform: str | None, epsilon: float) -> float:
    """Return the mean R² over splits."""
    (X, y), bounds, _ = table
    found = []
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(X))[:MOST_ROWS]
        train, test = np.split(order, [len(order) * 4 // 5])
        model = ldp.ModelReleaseRegressor(epsilon=epsilon, bounds=bounds, label_transform=transform)
        predicted = model.fit(X[train], y[train]).predict(X[test])
        found.append(r2_score(np.clip(y[test], *bounds), predicted))
    return float(np.mean(found))


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(
        "| R² at ε = " + " and ".join(f"{epsilon:g}" for epsilon in EPSILONS) + ' | as they are | "log" | "sqrt" |'
    )
    print("| --- | --- | --- | --- |")
    for name, table in skewed().items():
        cells = []
        for transform in (None, "log", "sqrt"):
            allowed = transform is None or transform in table[2]
            values = [f"{measure(table, transform, epsilon):.2f}" for epsilon in EPSILONS] if allowed else ["–"]
            cells.append(", ".join(values))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
