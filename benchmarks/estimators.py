"""Which settings of estimators suit noisy labels: R² of `LabelReleaseRegressor` with some of scikit-learn's.

``python -m benchmarks.estimators`` prints the table of the engineer's guide: R² on held-out rows, whose labels are
clipped to the bounds, a mean over splits.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labeldp as ldp
from benchmarks.accuracy import tables
from labeldp.evidence import make_survey

SPLITS, EPSILONS, MOST_ROWS = 2, (0.5, 2.0), 6000
ESTIMATORS: dict[str, Any] = {
    "none: the library's own": None,
    "`make_pipeline(StandardScaler(), Ridge())`": make_pipeline(StandardScaler(), Ridge()),
    "`RandomForestRegressor()`": RandomForestRegressor(100),
    "`RandomForestRegressor(min_samples_leaf=100)`": RandomForestRegressor(100, min_samples_leaf=100),
    "`HistGradientBoostingRegressor()`": HistGradientBoostingRegressor(),
    "`HistGradientBoostingRegressor(min_samples_leaf=200, max_iter=50)`": HistGradientBoostingRegressor(
        min_samples_leaf=200, max_iter=50
    ),
    "`KNeighborsRegressor(200)`": make_pipeline(StandardScaler(), KNeighborsRegressor(200)),
}


def samples() -> dict[str, tuple[Any, Any, tuple[float, float]]]:
    """Return a synthetic and a real table, with public bounds."""
    survey = make_survey(rows=MOST_ROWS)
    return {
        "incomes (synthetic)": (survey.features, survey.income, survey.bounds),
        "house values (California)": (*tables.TABLES["housing"].load(), (0.0, 5.0)),
    }


def measure(table: tuple[Any, Any, tuple[float, float]], estimator: Any, epsilon: float) -> float:
    """Return the mean R² over splits."""
    X, y, bounds = table
    found = []
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(X))[:MOST_ROWS]
        train, test = np.split(order, [len(order) * 4 // 5])
        model = ldp.LabelReleaseRegressor(estimator, epsilon=epsilon, bounds=bounds).fit(X[train], y[train])
        found.append(r2_score(np.clip(y[test], *bounds), model.predict(X[test])))
    return float(np.mean(found))


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    listed = samples()
    print("| `estimator` | " + " | ".join(f"{name}, ε = {e:g}" for name in listed for e in EPSILONS) + " |")
    print("| --- |" + " ---: |" * (len(listed) * len(EPSILONS)))
    for name, estimator in ESTIMATORS.items():
        cells = [f"{measure(table, estimator, e):.2f}" for table in listed.values() for e in EPSILONS]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
