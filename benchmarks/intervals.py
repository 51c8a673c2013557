"""How wide private intervals are, beside MAPIE's without privacy: ``python -m benchmarks.intervals``.

Boosted trees learn from half of a table without privacy, so that only intervals are compared. Calibration rows
and test rows are drawn anew each time. MAPIE (1.0 or later) is used where it is installed, else the same split
conformal rule in two lines.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from sklearn.ensemble import HistGradientBoostingRegressor

import labeldp as ldp
from benchmarks.accuracy.tables import TABLES
from benchmarks.report import keep, stamp

try:
    from mapie.regression import SplitConformalRegressor
except ModuleNotFoundError:
    SplitConformalRegressor = None

RESULTS = Path(__file__).with_suffix(".md")
NAMES = ("housing", "friedman", "counts", "claims")
ROWS = (300, 1000, 2500)
EPSILONS = (0.1, 0.3, 1.0, 3.0)
COVERAGE = 0.9

Array = NDArray[np.float64]


def open_interval(model: Any, X: Array, y: Array) -> float:
    """Return the half width without privacy: MAPIE's, or by its rule."""
    if SplitConformalRegressor is not None:
        conformal = SplitConformalRegressor(model, confidence_level=COVERAGE, prefit=True).conformalize(X, y)
        _, ends = conformal.predict_interval(X[:1])
        return float(np.ptp(ends)) / 2
    rank = min(int(np.ceil(COVERAGE * (y.size + 1))), y.size)
    return float(np.sort(np.abs(model.predict(X) - y))[rank - 1])


def measure(name: str, draws: int) -> list[list[str]]:
    """Return lines of a table: widths over MAPIE's, and coverage, by rows and ε."""
    table = TABLES[name]
    X, y = table.load()
    y = np.clip(y, *table.bounds)
    order = np.random.default_rng(0).permutation(y.size)
    half = y.size // 2
    model = HistGradientBoostingRegressor(random_state=0).fit(X[order[:half]], y[order[:half]])
    rest, rng = order[half:], np.random.default_rng(1)
    lines = []
    for rows in ROWS:
        if rows + 500 > rest.size:
            continue
        ratios: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
        inside: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
        plain = []
        for _ in track(range(draws), description=f"{name}, {rows} rows", transient=True):
            mixed = rng.permutation(rest)
            known, fresh = mixed[:rows], mixed[rows:]
            width = open_interval(model, X[known], y[known])
            plain.append(np.mean(np.abs(model.predict(X[fresh]) - y[fresh]) <= width))
            for epsilon in EPSILONS:
                made = ldp.private_intervals(
                    model, X[known], y[known], epsilon=epsilon, bounds=table.bounds, ledger=ldp.Ledger()
                )
                low, high = made.predict_interval(X[fresh]).T
                ratios[epsilon].append(made.half_width / width)
                inside[epsilon].append(float(np.mean((low <= y[fresh]) & (y[fresh] <= high))))
        cells = [f"{np.median(ratios[e]):.2f} ({100 * np.mean(inside[e]):.1f} %)" for e in EPSILONS]
        lines.append([name, f"{rows:,}", f"{100 * np.mean(plain):.1f} %", *cells])
    return lines


def main(draws: Annotated[int, typer.Option(help="draws of calibration rows and noise")] = 100) -> None:
    """Write widths and coverage to a table."""
    warnings.simplefilter("ignore", UserWarning)
    peer = "MAPIE" if SplitConformalRegressor is not None else "split conformal prediction, as in MAPIE"
    header = ["table", "calibration rows", "not private", *(f"ε = {e:g}" for e in EPSILONS)]
    lines = [header, ["---"] * len(header)]
    for name in NAMES:
        lines += measure(name, draws)
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    text = f"*{stamp()}; {draws} draws, beside {peer}.*\n\n{table}"
    keep("results", text, RESULTS)
    Console().print(text, markup=False)


if __name__ == "__main__":
    typer.run(main)
