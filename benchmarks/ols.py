"""Do intervals of `private_ols` cover, and how wide are they? ``python -m benchmarks.ols``.

Named cells are simulated with fixed columns and fresh labels and noise. Results are kept in a file of lines, one
for each part of a cell, so that a run can be stopped and continued; `--write` makes benchmarks/ols.md of them.
Beside them, on the same labels, least squares without privacy, as statsmodels' OLS has it with cov_type="HC1".
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import keep, stamp
from labeldp import private_ols
from labeldp.accounts.ledger import Ledger
from labeldp.errors import DataError, ParameterError
from labeldp.exact.word_sources import SecureWords
from labeldp.inference.design import Design
from labeldp.inference.distribution import describe_errors
from labeldp.inference.families import OLS
from labeldp.inference.label_weights import WeightCandidates
from labeldp.inference.moments import measure
from labeldp.inference.solution import solve
from labeldp.learning.fit_plan import UNIT
from labeldp.release.label_access import LabelAccess

Array = NDArray[np.float64]
RESULTS = Path(__file__).with_suffix(".md")
LEVELS = (0.05, 0.01, 0.001)
NORMAL = 1.959964
PART = {300: 250, 1000: 250, 3000: 125, 10_000: 50, 30_000: 20, 100_000: 10}
"""Repetitions of a cell in one part, by rows: a few seconds."""


@dataclass(frozen=True)
class Cell:
    """Rows, columns, ε, errors, how much wider bounds are than needed, and what the model leaves out."""

    rows: int
    columns: int
    epsilon: float
    errors: str = "normal"
    loose: int = 1
    bend: float = 0.0
    steep: bool = False

    @property
    def name(self) -> str:
        """What the cell is called."""
        extra = [self.errors] * (self.errors != "normal") + [f"bounds × {self.loose}"] * (self.loose > 1)
        extra += ["bent"] * bool(self.bend) + ["steep"] * self.steep
        return ", ".join([f"{self.rows:,} × {self.columns}", f"ε = {self.epsilon:g}", *extra])


CELLS = [
    Cell(300, 1, 1),
    Cell(300, 1, 10),
    Cell(300, 1, 3, "skewed"),
    Cell(300, 5, 10),
    Cell(1000, 1, 0.3),
    Cell(1000, 1, 1, "skewed", 5),
    Cell(1000, 5, 1),
    Cell(1000, 5, 3, "heavy", 5),
    Cell(1000, 20, 10),
    Cell(3000, 1, 3, "unequal", steep=True),
    Cell(3000, 5, 0.3),
    Cell(3000, 5, 1, "skewed", 5),
    Cell(3000, 5, 10, "unequal", 5),
    Cell(3000, 20, 3, "heavy"),
    Cell(10_000, 1, 0.1),
    Cell(10_000, 1, 1, "unequal", steep=True),
    Cell(10_000, 5, 0.1),
    Cell(10_000, 5, 1),
    Cell(10_000, 5, 1, "skewed"),
    Cell(10_000, 5, 1, "heavy", 5),
    Cell(10_000, 5, 3, "unequal"),
    Cell(10_000, 5, 3, bend=0.5),
    Cell(10_000, 20, 1),
    Cell(10_000, 20, 3, "unequal", 5),
    Cell(30_000, 5, 1, "skewed", 5),
    Cell(100_000, 1, 0.1, "heavy"),
    Cell(100_000, 5, 3),
    Cell(100_000, 5, 1, "unequal", 5),
    Cell(100_000, 20, 1),
]

FIRST = [Cell(10_000, 5, 1), Cell(10_000, 20, 1), Cell(100_000, 5, 3)]
"""Those whose widths have limits: 1.6, 2.9 and 1.2."""


# ---- labels -------------------------------------------------------------------------------------------------


def quantiles(errors: str, count: int) -> Array:
    """Return evenly spaced quantiles of errors, of mean 0 and variance 1."""
    from scipy import stats  # noqa: PLC0415 (slow to import)

    at = (np.arange(count) + 0.5) / count
    if errors == "skewed":
        return np.asarray(stats.expon.ppf(at) - 1)
    if errors == "heavy":
        return np.asarray(stats.t(4).ppf(at) / math.sqrt(2))
    return np.asarray(stats.norm.ppf(at))


def draw(errors: str, rows: int, rng: np.random.Generator) -> Array:
    """Return errors of mean 0 and variance 1."""
    if errors == "skewed":
        return rng.exponential(size=rows) - 1
    if errors == "heavy":
        return rng.standard_t(4, size=rows) / math.sqrt(2)
    return rng.normal(size=rows)


@dataclass(frozen=True)
class Setting:
    """What is fixed in a cell: columns, expected labels, their deviations, and the coefficients to be covered."""

    candidates: WeightCandidates
    table: Array
    mean: Array
    deviation: Array
    truth: Array
    zeros: NDArray[np.bool_]


@lru_cache(maxsize=2)
def setting(cell: Cell) -> Setting:
    """Return what is fixed in a cell; the last half of the coefficients is 0."""
    rng = np.random.default_rng(zlib.crc32(cell.name.encode()))
    rows, columns = cell.rows, cell.columns
    X = math.sqrt(0.7) * rng.normal(size=(rows, columns)) + math.sqrt(0.3) * rng.normal(size=(rows, 1))
    if cell.bend:
        X[:, 0] = np.minimum(rng.exponential(size=rows), 4.0)
    sigma, used = 0.1 / cell.loose, (columns + 1) // 2
    slopes = np.r_[np.full(used, (1.0 if cell.steep else 0.5) / math.sqrt(used)), np.zeros(columns - used)]
    mean = (X - X.mean(axis=0)) @ slopes
    bend = X[:, 0] ** 2 if cell.bend else np.zeros(rows)
    mean = 0.5 + sigma * (mean + cell.bend * (bend - bend.mean()) / (bend.std() or 1.0))
    deviation = 0.5 + np.minimum(np.abs(X[:, 0]), 2) if cell.errors == "unequal" else np.ones(rows)
    deviation *= sigma / math.sqrt(float((deviation**2).mean()))
    shift = np.zeros(rows)
    steps = quantiles(cell.errors, 400)
    for step in steps:
        labels = mean + deviation * step
        shift += (np.clip(labels, 0, 1) - labels) / steps.size
    table = np.hstack([np.ones((rows, 1)), X])
    truth = np.linalg.lstsq(table, mean + shift, rcond=None)[0]
    design = Design.of(X, [f"x{k + 1}" for k in range(columns)])
    return Setting(WeightCandidates.of(design), table, mean, deviation, truth, np.r_[False, slopes == 0])


def ordinary(table: Array, labels: Array) -> tuple[Array, Array]:
    """Return coefficients of least squares and their standard errors, as statsmodels has them by HC1."""
    rows, size = table.shape
    inverse = np.linalg.inv(table.T @ table)
    values = inverse @ (table.T @ labels)
    scores = table * (labels - table @ values)[:, None]
    covariance = inverse @ (scores.T @ scores) @ inverse * rows / (rows - size)
    return values, np.sqrt(np.diag(covariance))


def simulate(number: int, part: int) -> dict[str, Any]:
    """Return sums over a part of a cell's repetitions, for each coefficient."""
    cell = CELLS[number]
    fixed, source = setting(cell), SecureWords()
    rng = np.random.default_rng([number, part])
    sums = np.zeros((5, fixed.truth.size))
    rejected, tested, repetitions = np.zeros(len(LEVELS)), 0, PART[cell.rows]
    fits: list[float] = []
    for _ in range(repetitions):
        labels = np.clip(fixed.mean + fixed.deviation * draw(cell.errors, cell.rows, rng), 0, 1)
        access = LabelAccess(labels, source)
        access.charge(Ledger(), [], epsilon=Fraction(str(cell.epsilon)))
        design, moments = fixed.candidates.design, measure(fixed.candidates, access)
        found = describe_errors(design, moments, solve(design, moments, OLS, UNIT), UNIT)
        reach = np.array([distribution.quantile(0.05) for distribution in found.laws])
        values, errors = ordinary(fixed.table, labels)
        sums += [
            np.abs(found.coefficients - fixed.truth) <= reach,
            reach,
            found.coefficients - fixed.truth,
            np.abs(values - fixed.truth) <= NORMAL * errors,
            NORMAL * errors,
        ]
        fits += [found.fit["pvalue"]] if "pvalue" in found.fit else []
        for k in np.flatnonzero(fixed.zeros):
            rejected += [found.laws[k].tail(found.coefficients[k] - fixed.truth[k]) < level for level in LEVELS]
            tested += 1
    return {
        "cell": cell.name,
        "part": part,
        "repetitions": repetitions,
        "sums": sums.tolist(),
        "rejected": rejected.tolist(),
        "tested": tested,
        "fit": [len(fits), sum(one < 0.05 for one in fits)],
    }


# ---- runs ---------------------------------------------------------------------------------------------------


def parts_to_do(results: Path, names: list[str], repetitions: int) -> Iterator[tuple[int, int]]:
    """Yield the parts that are not in the file yet: cells of `FIRST` first, then all at the same pace."""
    done = {(line["cell"], line["part"]) for line in read(results)}
    wanted = [(k, cell) for k, cell in enumerate(CELLS) if not names or any(name in cell.name for name in names)]
    todo = []
    for k, cell in wanted:
        parts = -(-min(repetitions, 2000 if cell.rows >= 100_000 else repetitions) // PART[cell.rows])
        todo += [(cell not in FIRST, part / parts, k, part) for part in range(parts)]
    for _, _, k, part in sorted(todo):
        if (CELLS[k].name, part) not in done:
            yield k, part


def read(results: Path) -> list[dict[str, Any]]:
    """Return the parts that were computed."""
    return [json.loads(line) for line in results.read_text("utf-8").splitlines()] if results.exists() else []


def run(results: Path, names: list[str], repetitions: int, minutes: float, processes: int) -> None:
    """Compute parts until all are there or the time is over; each is kept as soon as it is done."""
    end, todo = time.monotonic() + 60 * minutes, parts_to_do(results, names, repetitions)
    running: set[Future[dict[str, Any]]] = set()
    with ProcessPoolExecutor(processes) as pool, results.open("a", encoding="utf-8") as file:
        while True:
            while len(running) < processes + 2 and time.monotonic() < end:
                task = next(todo, None)
                if task is None:
                    break
                running.add(pool.submit(simulate, *task))
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                file.write(json.dumps(future.result()) + "\n")
            file.flush()


# ---- report -------------------------------------------------------------------------------------------------


def lines_of(results: Path) -> Iterator[str]:
    """Yield a line of the table for each cell that was simulated."""
    parts = read(results)
    for cell in CELLS:
        own = [line for line in parts if line["cell"] == cell.name]
        if not own:
            continue
        repetitions = sum(line["repetitions"] for line in own)
        covered, width, _, plain, plain_width = np.sum([line["sums"] for line in own], axis=0) / repetitions
        tested = sum(line["tested"] for line in own)
        rejected = np.sum([line["rejected"] for line in own], axis=0) / max(tested, 1)
        fits, bent = np.sum([line["fit"] for line in own], axis=0).tolist()
        misfit = f"{100 * bent / fits:.1f}" if fits else "–"
        rates = " / ".join(f"{100 * rate:.2f}" for rate in rejected) if tested else "–"
        both = [f"{100 * each[1:].min():.1f} to {100 * each[1:].max():.1f}" for each in (covered, plain)]
        widths = width / plain_width
        yield (
            f"| {cell.name} | {repetitions:,} | {100 * covered[0]:.1f} | {both[0]} | {both[1]} | "
            f"{widths[0]:.2f} | {widths[1:].mean():.2f} | {rates} | {tested:,} | {misfit} |"
        )


def least_epsilon(rows: int, columns: int) -> str:
    """Return the ε below which the function refuses a table of normal columns."""
    rng = np.random.default_rng(0)
    try:
        private_ols(rng.normal(size=(rows, columns)), rng.random(rows), epsilon=0.001, bounds=(0, 1))
    except ParameterError as refusal:
        return str(refusal).split("give ")[1].split()[0]
    except DataError:
        return "–"
    return "0.001"


COLUMNS = """\
| cell | repetitions | covered, intercept | covered, slopes | not private | width, intercept | width, slopes | \
p-values below 5 / 1 / 0.1 %, in % | tested | lack of fit, in % |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""
LEAST = """\
| rows | 1 column | 5 columns | 20 columns |
| ---: | ---: | ---: | ---: |"""


def write(results: Path) -> None:
    """Write the tables of benchmarks/ols.md."""
    keep("coverage", "\n".join([f"*{stamp()}*\n", COLUMNS, *lines_of(results)]), RESULTS)
    least = [
        " | ".join([f"| {rows:,}", *(least_epsilon(rows, columns) for columns in (1, 5, 20))]) + " |"
        for rows in (300, 1000, 3000, 10_000)
    ]
    keep("refused", "\n".join([LEAST, *least]), RESULTS)


def main() -> None:
    """Run the suite as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", nargs="*", default=[], help="parts of names; all cells without")
    parser.add_argument(
        "--repetitions", type=int, default=5000, help="of each cell; at most 2,000 with 100,000 rows"
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, default=Path("ols-results.jsonl"), help="continued if it is there")
    parser.add_argument(
        "--write", action="store_true", help="write the tables of benchmarks/ols.md from the results"
    )
    given = parser.parse_args()
    run(given.results, given.cells, given.repetitions, given.minutes, given.processes)
    print("\n".join(lines_of(given.results)))
    if given.write:
        write(given.results)


if __name__ == "__main__":
    main()
