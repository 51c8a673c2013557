"""Time of a fit beside boosted trees without privacy, in one run: ``python -m benchmarks.fit_time``.

Small fits take turns with scikit-learn's trees on the same rows; the ratio is of the medians of processor time.
Large fits are timed once, by the clock, each right after trees on the same cores. On a busy machine threads of the
trees wait for each other, and ratios are far too small: run it alone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Annotated

import numpy as np
import typer
from sklearn.ensemble import HistGradientBoostingRegressor

import labeldp as ldp

BOUNDS = (0.0, 5.0)
KINDS = {"labels": ldp.LabelReleaseRegressor, "model": ldp.ModelReleaseRegressor}


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns, and labels with an interaction and a curve."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    signal = X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
    return X, np.clip(2.5 + signal + 0.5 * rng.normal(size=rows), *BOUNDS)


def fit(kind: type, epsilon: float, X: np.ndarray, y: np.ndarray) -> object:
    """Fit a regressor."""
    return kind(epsilon=epsilon, bounds=BOUNDS).fit(X, y)


def seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the time of a call by a clock."""
    started = clock()
    call()
    return clock() - started


def main(
    rounds: int = 3,
    large: Annotated[
        str, typer.Option(help="shapes that are timed once, such as 1000000x50; empty for none")
    ] = "",
) -> None:
    """Print ratios."""
    warnings.simplefilter("ignore")
    X, y = table(20_000, 20)
    calls = {("trees", 0.0): partial(HistGradientBoostingRegressor().fit, X, y)}
    for epsilon in (0.3, 1.0, 4.0):
        for name, kind in KINDS.items():
            calls[name, epsilon] = lambda kind=kind, epsilon=epsilon: kind(epsilon=epsilon, bounds=BOUNDS).fit(
                X, y
            )
    times = {key: [] for key in calls}
    for turn in range(rounds + 1):
        for key, call in calls.items():
            spent = seconds(call, time.process_time)
            if turn:  # the first round warms up
                times[key].append(spent)
    medians = {key: median(spent) for key, spent in times.items()}
    for (name, epsilon), spent in medians.items():
        ratio = spent / medians["trees", 0.0]
        print(f"20,000 x 20, {name}, epsilon {epsilon}: {spent:.2f} s, {ratio:.1f} times trees")
    for shape in large.split(",") if large else []:
        X, y = table(*map(int, shape.split("x")))
        trees = seconds(lambda: HistGradientBoostingRegressor().fit(X, y), time.perf_counter)  # noqa: B023
        for name, kind in KINDS.items():
            spent = seconds(lambda: kind(epsilon=1.0, bounds=BOUNDS).fit(X, y), time.perf_counter)  # noqa: B023
            print(
                f"{shape}, {name}, epsilon 1: {spent:.1f} s, {spent / trees:.1f} times trees ({trees:.1f} s)",
                flush=True,
            )


if __name__ == "__main__":
    typer.run(main)
