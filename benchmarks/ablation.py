"""What each part of the regressors earns: ``python -m benchmarks.ablation``.

Each part is taken out alone, and test errors are compared with those of the whole on the same splits of the tables
to develop with (`benchmarks.accuracy`). A part stays if it earns 2 % as a geometric mean over them
at some budget.
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
from typing import Any, NamedTuple

import numpy as np
import typer

from benchmarks.accuracy.tables import load, names
from labeldp.learning import epsilon_split, groups, label_rounds, learner, model_average
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.model_regressor import ModelReleaseRegressor

NAMES = names("development")
MOST_ROWS = 8000


class Job(NamedTuple):
    """A fit without one part; with all parts if it has no name."""

    kind: str
    part: str
    table: str
    epsilon: float
    split: int


def _nothing() -> None:
    """Take nothing out."""


def _without_block(gone: int) -> Callable[[], None]:
    def patch() -> None:
        mixes = []
        for mix in model_average.BLOCK_SHARES:
            left = [0.0 if k == gone else part for k, part in enumerate(mix)]
            mixes.append(tuple(part / sum(left) for part in left) if sum(left) else (1.0, 0.0, 0.0, 0.0))
        model_average.BLOCK_SHARES = tuple(mixes)

    return patch


def _no_trees() -> None:
    learner._WORTH = math.inf


def _one_mix() -> None:
    """One split of variance over blocks instead of an average of several."""
    model_average.BLOCK_SHARES = (model_average.BLOCK_SHARES[3],) * len(model_average.BLOCK_SHARES)


def _no_slope() -> None:
    """Private labels as the mechanism gives them, clipped."""
    whole = label_rounds.design_interval
    label_rounds.design_interval = lambda *a: replace(whole(*a), slope=1.0)


def _no_groups() -> None:
    """The mean is the only sum."""
    groups._COUNTS = (1,)


def _no_range() -> None:
    epsilon_split.FEWEST_FOR_RANGE = math.inf


def _no_spread() -> None:
    epsilon_split.FEWEST_FOR_SPREAD = math.inf


def _sums_always() -> None:
    epsilon_split.LABELS_WORTH = math.inf


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


def measure(job: Job) -> tuple[Job, float]:
    """Return the test error, measured in a process of its own: a part that is out stays out."""
    PARTS[job.kind][job.part]()
    X, y, bounds = load(job.table)
    order = np.random.default_rng(1000 + job.split).permutation(len(y))[: MOST_ROWS * 5 // 4]
    train, test = np.split(order, [int(0.8 * order.size)])
    settings: dict[str, Any] = {"epsilon": job.epsilon, "bounds": bounds}
    model: Any = ModelReleaseRegressor(**settings)
    if job.kind == "labels":
        model = LabelReleaseRegressor(**settings, rounds=1 if job.part == "rounds" else "auto")
    model.fit(X[train], y[train])
    return job, float(np.mean((model.predict(X[test]) - y[test]) ** 2))


def table(errors: dict[Job, float]) -> str:
    """Return what each part earns, in per cent of the test error, as Markdown."""
    lines = [
        "| regressor | part | ε | geometric mean | " + " | ".join(NAMES) + " |",
        "|---|---|---|---|" + "---|" * len(NAMES),
    ]
    for kind, part, epsilon in sorted({(job.kind, job.part, job.epsilon) for job in errors if job.part}):
        gains: dict[str, list[float]] = {name: [] for name in NAMES}
        for job, error in errors.items():
            whole = errors.get(job._replace(part=""))
            if (job.kind, job.part, job.epsilon) == (kind, part, epsilon) and whole is not None:
                gains[job.table].append(math.log(error / whole))
        if not all(gains.values()):
            continue
        means = np.array([np.mean(each) for each in gains.values()])
        spread = [np.var(each) / max(1, len(each) - 1) for each in gains.values()]
        mean, deviation = 100 * means.mean(), 100 * math.sqrt(float(np.sum(spread))) / len(NAMES)
        cells = " | ".join(f"{100 * value:+.0f}" for value in means)
        lines.append(f"| {kind} | {part} | {epsilon:g} | {mean:+.1f} ± {deviation:.1f} | {cells} |")
    return "\n".join(lines) + "\n"


def main(
    splits: int = 4,
    epsilons: str = "0.1,1,4",
    kinds: str = "labels,model",
    out: Path = Path("build/ablation.md"),
    most_seconds: float = math.inf,
) -> None:
    """Measure, and write a table."""
    jobs = [
        Job(kind, part, name, float(epsilon), split)
        for split in range(splits)
        for epsilon in epsilons.split(",")
        for kind in kinds.split(",")
        for part in PARTS[kind]
        for name in NAMES
    ]
    errors: dict[Job, float] = {}
    started = time.monotonic()
    with get_context("fork").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        for job, error in pool.imap_unordered(measure, jobs):
            errors[job] = error
            if time.monotonic() - started > most_seconds:
                break
            if len(errors) % 50 == 0:
                typer.echo(f"{len(errors)} of {len(jobs)}, {time.monotonic() - started:.0f} s", err=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(table(errors))


if __name__ == "__main__":
    typer.run(main)
