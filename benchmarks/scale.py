"""Time and memory of one fit: Housing, and a million made rows of 50 columns: ``python -m benchmarks.scale``.

Each fit runs in a process of its own, alone, on all cores. Memory is the largest resident size of that process,
the table itself included (0.4 GB for the million rows).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.report import commit, cpu
from labeldp import LabelReleaseRegressor, ModelReleaseRegressor
from labeldp.datasets import load_housing

REGRESSORS = {"labels": LabelReleaseRegressor, "model": ModelReleaseRegressor}
CASES = [(data, kind, epsilon) for data in ("housing", "million") for kind in REGRESSORS for epsilon in (0.1, 1.0)]
GOALS = {
    ("housing", "labels"): 60,
    ("housing", "model"): 40,
    ("million", "labels"): 600,
    ("million", "model"): 600,
}


def million() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 50))
    y = np.clip(2.5 + X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=len(X)), 0, 5)
    return X, y


def one(data: str, kind: str, epsilon: float) -> None:
    """Fit once, and print what it took."""
    if data == "housing":
        found = load_housing()
        X, y, bounds = found.X, found.y, found.bounds
        chosen = np.random.default_rng(0).permutation(len(y))[: int(0.8 * len(y))]
        X, y = X[chosen], y[chosen]
    else:
        (X, y), bounds = million(), (0.0, 5.0)
    started = time.perf_counter()
    REGRESSORS[kind](epsilon=epsilon, bounds=bounds, verbose=True).fit(X, y)
    seconds = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "gib": memory}))


def main() -> None:
    lines = [
        "# Time and memory of a fit",
        "",
        f"`python -m benchmarks.scale` on {cpu()}, commit {commit()}; one run each.",
        "",
        "| table | regressor | ε | seconds | at most | GiB | at most |",
        "|---|---|---|---|---|---|---|",
    ]
    for data, kind, epsilon in CASES:
        command = [sys.executable, "-m", "benchmarks.scale", data, kind, str(epsilon)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        goal = GOALS[data, kind]
        lines.append(
            f"| {data} | {kind} | {epsilon:g} | {found['seconds']:.0f} | {goal} | {found['gib']:.1f} | 6 |"
        )
        print(lines[-1], flush=True)
    (Path(__file__).parent / "scale.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    one(sys.argv[1], sys.argv[2], float(sys.argv[3])) if len(sys.argv) == 4 else main()
