"""What each part of the regressors earns: ``python -m benchmarks.ablation``.

Each part is taken out alone, and the test error compared with that of the whole on the same splits. A part stays
if it earns 3 % on two data sets at some budget. Crime and Housing are read from the folder that LABELDP_DATA
names; the survey is made.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import math
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.tables import TABLES as REAL
from benchmarks.accuracy.tables import load
from labeldp.datasets import make_survey
from labeldp.estimators import (
    LabelReleaseRegressor,
    ModelReleaseRegressor,
    bayes,
    fit_budget,
    groups,
    label_rounds,
    learner,
    sums,
)

BUDGETS = (0.1, 1.0, 4.0)


def survey() -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    made = make_survey(10_000)
    return made.features, made.income, made.bounds


def real(name: str) -> Callable[[], tuple[np.ndarray, np.ndarray, tuple[float, float]]]:
    return lambda: (*load(name), REAL[name].bounds)


TABLES = {"crime": real("crime"), "housing": real("housing"), "survey": survey}


def _nothing() -> None:
    """Take nothing out."""


def _without_block(gone: int) -> Callable[[], None]:
    def patch() -> None:
        mixes = []
        for mix in bayes.MIXES:
            left = [0.0 if k == gone else part for k, part in enumerate(mix)]
            mixes.append(tuple(part / sum(left) for part in left) if sum(left) else (1.0, 0.0, 0.0, 0.0))
        bayes.MIXES = tuple(mixes)

    return patch


def _no_trees() -> None:
    learner._WORTH = math.inf


def _one_mix() -> None:
    """One split of variance over blocks instead of an average of several."""
    bayes.MIXES = (bayes.MIXES[3],) * len(bayes.MIXES)


def _no_slope() -> None:
    whole = label_rounds.design_interval
    label_rounds.design_interval = lambda *a: replace(whole(*a), shift=0.0, slope=1.0)


def _no_groups() -> None:
    """The mean is the only sum."""
    groups._COUNTS = (1,)


def _no_range() -> None:
    sums._RANGE_ROWS = math.inf


def _no_spread() -> None:
    sums._MEASURED = math.inf


def _sums_always() -> None:
    fit_budget._WORTH_LABELS = math.inf


PARTS: dict[str, dict[str, Callable[[], None]]] = {
    "labels": {
        "": _nothing,
        "boosted trees": _no_trees,
        "waves of ranks": _without_block(1),
        "pairs": _without_block(2),
        "Fourier features": _without_block(3),
        "average over mixes": _one_mix,
        "line after clipping": _no_slope,
        "rounds": _nothing,
        "groups": _no_groups,
        "range": _no_range,
        "spread": _no_spread,
    },
    "model": {
        "": _nothing,
        "groups": _no_groups,
        "range": _no_range,
        "spread": _no_spread,
        "labels one by one at large budgets": _sums_always,
    },
}


def measure(job: tuple[str, str, str, float, int]) -> tuple[tuple[str, str, str, float, int], float, float]:
    """Fit without one part, in a fresh process, and return the test error and the time."""
    kind, part, data, epsilon, split = job
    PARTS[kind][part]()
    X, y, bounds = TABLES[data]()
    order = np.random.default_rng(1000 + split).permutation(len(y))
    train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    started = time.perf_counter()
    model: Any
    if kind == "labels":
        model = LabelReleaseRegressor(epsilon=epsilon, bounds=bounds, rounds=1 if part == "rounds" else "auto")
    else:
        model = ModelReleaseRegressor(epsilon=epsilon, bounds=bounds)
    model.fit(X[train], y[train])
    error = float(np.mean((model.predict(X[test]) - y[test]) ** 2))
    return job, error, time.perf_counter() - started


def table(errors: dict[tuple[str, str, str, float, int], float], splits: int) -> str:
    """Return what taking each part out costs, in per cent of the test error, as Markdown."""
    tables = sorted({key[2] for key in errors})
    lines = [
        f"Test error without a part, against that with all parts: mean over {splits} splits of the ratio − 1, "
        "in %, ± its standard error. More than 0: the part earns that much.",
        "",
        "| regressor | part | ε | " + " | ".join(tables) + " |",
        "|---|---|---|" + "---|" * len(tables),
    ]
    for kind, parts in PARTS.items():
        for part in parts:
            for epsilon in BUDGETS:
                done = {key[2] for key in errors if key[:2] == (kind, part) and key[3] == epsilon}
                if not part or done != set(tables):
                    continue
                cells = []
                for data in tables:
                    gains = [
                        100 * (errors[kind, part, data, epsilon, s] / errors[kind, "", data, epsilon, s] - 1)
                        for s in range(splits)
                        if {(kind, part, data, epsilon, s), (kind, "", data, epsilon, s)} <= errors.keys()
                    ]
                    cells.append(f"{np.mean(gains):+.1f} ± {np.std(gains) / math.sqrt(len(gains)):.1f}")
                lines.append(f"| {kind} | {part} | {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(splits: int = 4, workers: int = 0, kinds: str = "labels,model") -> None:
    """Measure and write benchmarks/ablation.md."""
    jobs = [
        (kind, part, data, epsilon, split)
        for split in range(splits)
        for kind in kinds.split(",")
        for part in PARTS[kind]
        for data in ("housing", "survey", "crime")
        for epsilon in reversed(BUDGETS)
    ]
    errors = {}
    started = time.perf_counter()
    with get_context("fork").Pool(workers or os.cpu_count(), maxtasksperchild=1) as pool:  # parts stay out
        for job, error, _ in pool.imap_unordered(measure, jobs):
            errors[job] = error
            if len(errors) % 50 == 0:
                print(f"{len(errors)} of {len(jobs)}, {time.perf_counter() - started:.0f} s", flush=True)
                _keep(errors, splits)
    _keep(errors, splits)


def _keep(errors: dict[tuple[str, str, str, float, int], float], splits: int) -> None:
    folder = Path(os.environ.get("OUT", Path(__file__).parent))
    (folder / "ablation.md").write_text("# Ablation\n\n" + table(errors, splits))


if __name__ == "__main__":
    import typer

    typer.run(main)
