"""Coverage of intervals of group means from labels for statistics: ``python -m benchmarks.label_means``.

Labels of four skewed tables are released by `privatize` for statistics. Rows are in twenty groups, by the ranks of
a feature, or at random with unequal sizes. An interval of 95 % covers if the mean of the group's true labels,
clipped to the bounds, is in it. ± is the binomial standard error of the coverage, as noise is independent.
"""

from __future__ import annotations

import warnings
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

import labeldp as ldp
from benchmarks.accuracy.tables import load
from benchmarks.recipients import skewed
from benchmarks.report import Sheet, commit

TABLES = ("skewed", "claims", "counts", "tails")
EPSILONS = (0.3, 1.0, 4.0)
GROUPS = 20
MAX_ROWS = 6_400

Array = NDArray[np.float64]


def groupings(X: Array) -> dict[str, NDArray[np.int64]]:
    """Return the group of each row: by the ranks of the first feature, and at random with unequal sizes."""
    rows, sizes = len(X), np.arange(1, GROUPS + 1)
    by_feature = np.argsort(np.argsort(X[:, 0], kind="stable")) * GROUPS // rows
    at_random = np.random.default_rng(0).choice(GROUPS, size=rows, p=sizes / sizes.sum())
    return {"by a feature": by_feature, "at random": at_random}


def covered(X: Array, y: Array, bounds: tuple[float, float], epsilon: float, seed: int) -> dict[str, float]:
    """Release labels once, and return the share of groups whose interval covers, by grouping."""
    release = ldp.privatize(
        y, epsilon=epsilon, bounds=bounds, purpose="statistics", ledger=ldp.Ledger(), random_state=seed
    )
    truth = np.clip(y, *bounds)
    shares = {}
    for name, groups in groupings(X).items():
        intervals = {group: mean.interval for group, mean in release.means(by=groups).items()}
        hits = [low <= truth[groups == group].mean() <= high for group, (low, high) in intervals.items()]
        shares[name] = float(np.mean(hits))
    return shares


def main(releases: Annotated[int, typer.Option(help="Releases of each table at each ε.")] = 100) -> None:
    """Measure and show."""
    warnings.simplefilter("ignore")
    titles = ["table", "groups", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)]
    sheet = Sheet("Coverage of 95 % intervals, in percent", titles)
    for table in TABLES:
        X, y, bounds = skewed() if table == "skewed" else load(table)
        X, y = X[:MAX_ROWS], y[:MAX_ROWS]
        runs = {
            epsilon: [covered(X, y, bounds, epsilon, seed) for seed in range(releases)] for epsilon in EPSILONS
        }
        for name in groupings(X):
            shares = [np.mean([run[name] for run in runs[epsilon]]) for epsilon in EPSILONS]
            sheet.rows.append([table, name, *(f"{100 * share:.1f}" for share in shares)])
    console = Console(width=110)
    console.print(sheet.rich())
    error = 100 * np.sqrt(0.95 * 0.05 / releases / GROUPS)
    console.print(f"{releases} releases: ± {error:.1f}; labeldp {ldp.__version__} ({commit()}).")


if __name__ == "__main__":
    typer.run(main)
