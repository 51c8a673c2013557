"""Time of a fit and of predictions beside scikit-learn's boosted trees: ``python -m benchmarks.scale``.

Ratios are of processor time, one thread on both sides, which take turns on the same rows; wall time on all cores
is told beside them. A million rows are fitted once each, with the largest resident size of that process. A busy
machine is one with two spinning processes for each core: a fit has a third of a core there. Parts: ``ratios``,
``million``, ``busy``; without any, all are measured, and the page is written.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.report import Sheet, commit, cpu, load, met
from labeldp import LabelReleaseRegressor, ModelReleaseRegressor

HERE = Path(__file__).parent
REGRESSORS = {"labels": LabelReleaseRegressor, "model": ModelReleaseRegressor}
CASES = [(rows, kind, epsilon) for rows in (20_000, 200_000) for kind in REGRESSORS for epsilon in (0.1, 1.0)]
BOUNDS = (0.0, 5.0)
FIT, PREDICT, WALL, MEMORY, BUSY = 15.0, 4.0, 60.0, 1.5, 10.0
"""At most: ratios of a fit and of predictions, seconds and GiB of a million rows, a ratio on a busy machine."""
NEW_ROWS = 20_000


def table(rows: int, columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    signal = X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
    return X, np.clip(2.5 + signal + 0.5 * rng.normal(size=rows), *BOUNDS)


def clock(call: Callable[[], object]) -> tuple[float, float]:
    """Return the processor seconds and the wall seconds of a call."""
    started, wall = time.process_time(), time.perf_counter()
    call()
    return time.process_time() - started, time.perf_counter() - wall


def compare(rows: int, kind: str, epsilon: float, rounds: int) -> dict[str, float]:
    """Return medians over rounds: seconds of fits and predictions, of trees without privacy and of ours."""
    X, y = table(rows, 20)
    new, _ = table(NEW_ROWS, 20, seed=1)
    times: dict[str, list[float]] = {}
    for turn in range(rounds + 1):
        some = slice(None) if turn else slice(500)  # the first round only warms up
        for name in ("trees", "ours"):
            ours = REGRESSORS[kind](epsilon=epsilon, bounds=BOUNDS)
            model = HistGradientBoostingRegressor() if name == "trees" else ours
            seconds = {"fit": clock(partial(model.fit, X[some], y[some]))}
            seconds["predict"] = clock(partial(model.predict, new))
            for what, (processor, wall) in seconds.items() if turn else ():
                times.setdefault(f"{name} {what}", []).append(processor)
                times.setdefault(f"{name} {what}, wall", []).append(wall)
    return {what: median(each) for what, each in times.items()}


def million(kind: str, epsilon: float) -> dict[str, float]:
    X, y = table(1_000_000, 50)
    seconds = clock(lambda: REGRESSORS[kind](epsilon=epsilon, bounds=BOUNDS, verbose=True).fit(X, y))
    return {"wall": seconds[1], "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def spin() -> None:
    while True:
        pass


@contextmanager
def artificial_load(processes: int) -> Iterator[None]:
    """Keep so many processes spinning."""
    spinning = [multiprocessing.get_context("spawn").Process(target=spin, daemon=True) for _ in range(processes)]
    for process in spinning:
        process.start()
    time.sleep(2)  # until they spin
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.join()


def busy() -> dict[str, float]:
    """Return wall seconds of a fit on a quiet and on a busy machine."""
    X, y = table(20_000, 20)

    def fit() -> None:
        LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, y)

    fit()
    quiet = clock(fit)[1]
    with artificial_load(2 * (os.cpu_count() or 1)):
        return {"quiet": quiet, "busy": clock(fit)[1]}


def alone(function: str, *arguments: object, one_thread: bool = False) -> dict[str, float]:
    """Call a function of this module in a process of its own."""
    code = f"from benchmarks import scale; import json; print(json.dumps(scale.{function}{arguments!r}))"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= dict.fromkeys(names, "1") if one_thread else {}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def ratio_sheet(console: Console) -> Sheet:
    columns = ["rows × 20, ε", "trees, s", "ours, s", "fit, ratio", "predict, ratio", "ours, s on all cores"]
    sheet = Sheet("Processor time of one thread, beside HistGradientBoostingRegressor at its defaults", columns)
    for rows, kind, epsilon in CASES:
        rounds = 5 if rows < 100_000 else 3
        one = alone("compare", rows, kind, epsilon, rounds, one_thread=True)
        wall = alone("compare", rows, kind, epsilon, 1)["ours fit, wall"]
        fit, predict = (one[f"ours {what}"] / one[f"trees {what}"] for what in ("fit", "predict"))
        cells = [f"{one['trees fit']:.2f}", f"{one['ours fit']:.2f}", f"{fit:.1f} ({met(fit, FIT, at_most=True)})"]
        cells += [f"{predict:.1f} ({met(predict, PREDICT, at_most=True)})", f"{wall:.1f}"]
        sheet.rows.append([f"{kind}, {rows:,}, {epsilon:g}", *cells])
        console.print(" | ".join(sheet.rows[-1]))
    return sheet


def million_sheet(console: Console) -> Sheet:
    sheet = Sheet("A million rows of 50 columns, all cores", ["ε", "wall, s", "at most", "GiB", "at most"])
    for kind in REGRESSORS:
        for epsilon in (0.1, 1.0):
            found = alone("million", kind, epsilon)
            cells = [f"{found['wall']:.0f}", met(found["wall"], WALL, at_most=True)]
            cells += [f"{found['gib']:.1f}", met(found["gib"], MEMORY, at_most=True)]
            sheet.rows.append([f"{kind}, {epsilon:g}", *cells])
            console.print(" | ".join(sheet.rows[-1]))
    return sheet


def busy_sheet(console: Console) -> Sheet:
    columns = ["", "quiet, wall s", "busy, wall s", "ratio"]
    sheet = Sheet("Beside two spinning processes for each core", columns)
    seconds = alone("busy")
    ratio = seconds["busy"] / seconds["quiet"]
    cells = [f"{seconds['quiet']:.1f}", f"{seconds['busy']:.1f}"]
    cells.append(f"{ratio:.1f} ({met(ratio, BUSY, at_most=True)})")
    sheet.rows.append(["labels, 20,000 × 20, ε = 1", *cells])
    console.print(" | ".join(sheet.rows[-1]))
    return sheet


SHEETS = {"ratios": ratio_sheet, "million": million_sheet, "busy": busy_sheet}


def main() -> None:
    console, parts = Console(), sys.argv[1:] or list(SHEETS)
    before = load()
    sheets = [SHEETS[part](console) for part in parts]
    where = f"{cpu()}, {os.cpu_count()} cores, commit {commit()}, load {before:.1f} before and {load():.1f} after"
    text = [
        f"# Time and memory of a fit\n\n`python -m benchmarks.scale` on {where}.\n",
        *[s.markdown() for s in sheets],
    ]
    if parts == list(SHEETS):
        (HERE / "scale.md").write_text("\n".join(text))
    else:
        console.print("\n".join(text))


if __name__ == "__main__":
    main()
