"""Do intervals of logistic and Poisson tables cover, and how wide are they? ``python -m benchmarks.glm``.

Named cells are simulated with fixed columns and fresh labels and noise: all columns, and from the same moments a
table of every second one. Results are kept in a file of lines; `--write` makes benchmarks/glm.md of them.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import zlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import keep, stamp
from labeldp.accounts.ledger import Ledger
from labeldp.errors import NoSolutionError
from labeldp.exact.word_sources import SecureWords
from labeldp.inference.design import Design
from labeldp.inference.distribution import describe_errors
from labeldp.inference.families import FAMILIES, Family
from labeldp.inference.label_weights import WeightCandidates
from labeldp.inference.moments import measure
from labeldp.inference.solution import solve
from labeldp.release.label_access import LabelAccess

Array = NDArray[np.float64]
RESULTS = Path(__file__).with_suffix(".md")
LEVELS = (0.05, 0.01, 0.001)
NORMAL = 1.959964


@dataclass(frozen=True)
class Cell:
    """A family, numbers of rows and columns, ε, the upper bound, and the kind of columns."""

    family: str
    rows: int
    columns: int
    epsilon: float
    high: float = 1.0
    kind: str = "normal"

    @property
    def name(self) -> str:
        """The cell in words."""
        bound = f", bounds 0 to {self.high:g}" if self.family == "poisson" else ""
        kind = "" if self.kind == "normal" else f", {self.kind} columns"
        return f"{self.family}, {self.rows:,} × {self.columns}, ε = {self.epsilon:g}{bound}{kind}"


CELLS = [
    Cell("logit", 10_000, 5, 1),
    Cell("logit", 10_000, 20, 1),
    Cell("logit", 3000, 5, 1),
    Cell("poisson", 10_000, 5, 1, 20),
    Cell("logit", 1000, 2, 1),
    Cell("logit", 1000, 5, 3),
    Cell("logit", 3000, 2, 0.3),
    Cell("logit", 3000, 20, 3),
    Cell("logit", 10_000, 5, 0.3, kind="skewed"),
    Cell("logit", 10_000, 5, 1, kind="skewed"),
    Cell("logit", 10_000, 20, 3, kind="skewed"),
    Cell("logit", 100_000, 5, 0.3),
    Cell("logit", 100_000, 20, 1, kind="skewed"),
    Cell("poisson", 1000, 2, 3, 12),
    Cell("poisson", 3000, 5, 1, 12),
    Cell("poisson", 3000, 5, 3, 20),
    Cell("poisson", 10_000, 2, 0.3, 20),
    Cell("poisson", 10_000, 5, 3, 20, "skewed"),
    Cell("poisson", 10_000, 20, 3, 20),
    Cell("poisson", 100_000, 5, 1, 20, "skewed"),
    Cell("ols", 3000, 5, 1),
    Cell("ols", 10_000, 5, 1, kind="skewed"),
    Cell("ols", 10_000, 20, 3),
    Cell("ols", 100_000, 5, 1, kind="skewed"),
]
"""The first four have widths that are asked for: 1.04, 1.20, 1.10 and 1.5."""


def draw_columns(cell: Cell, rng: np.random.Generator) -> Array:
    """Return correlated columns, the last of them binary; skewed ones are log-normal where a cell says so."""
    common = math.sqrt(0.3) * rng.normal(size=(cell.rows, 1))
    X = math.sqrt(0.7) * rng.normal(size=(cell.rows, cell.columns)) + common
    if cell.kind == "skewed":
        X[:, 0] = np.exp((0.5 if cell.family == "poisson" else 0.75) * X[:, 0])
    X[:, -1] = X[:, -1] > 0
    return X


def expected_count(mean: Array, high: float) -> Array:
    """Return the mean of a Poisson count that is clipped."""
    term = np.exp(-mean)
    below, total = term.copy(), np.zeros_like(mean)
    for count in range(1, int(high)):
        term *= mean / count
        below += term
        total += count * term
    return total + high * (1 - below)


def maximum_likelihood(X: Array, labels: Array, family: Family) -> tuple[Array, Array]:
    """Return coefficients without privacy, and the inverse of the information."""
    model = np.insert(X, 0, 1.0, axis=1)
    values = np.zeros(model.shape[1])
    values[0] = float(family.link(labels.mean()))
    for _ in range(50):
        mean = family.mean(model @ values)
        information = model.T @ (family.variance(mean)[:, None] * model)
        step = np.linalg.solve(information, model.T @ (labels - mean))
        values += step
        if np.abs(step).max() < 1e-10:
            break
    return values, np.linalg.inv(information)


class Setting:
    """Columns and expected labels of a cell, and what its tables are to cover."""

    def __init__(self, cell: Cell) -> None:
        rng = np.random.default_rng(zlib.crc32(cell.name.encode()))
        self.cell, self.family = cell, FAMILIES[cell.family]
        X = draw_columns(cell, rng)
        scaled = (X - X.mean(axis=0)) / X.std(axis=0)
        used = (cell.columns + 1) // 2
        slope = 0.4 if cell.family == "poisson" else 0.6
        slopes = np.r_[np.full(used, slope / math.sqrt(used)), np.zeros(cell.columns - used)]
        predictor = scaled @ slopes
        if cell.family == "ols":
            self.mean = 0.5 + 0.1 * predictor
            expected = np.clip(self.mean, 0, 1)
        elif cell.family == "logit":
            self.mean = expected = self.family.mean(predictor - 0.5)
        else:
            self.mean = self.family.mean(predictor + 0.3)
            expected = expected_count(self.mean, cell.high)
        self.design = Design.of(X, [f"x{k}" for k in range(cell.columns)])
        self.candidates = WeightCandidates.of(self.design)
        self.tables = []
        for positions in (range(cell.columns + 1), [0, *range(1, cell.columns + 1, 2)]):
            columns = X[:, [k - 1 for k in positions[1:]]]
            truth, inverse = maximum_likelihood(columns, expected, self.family)
            dispersion = 0.01 if cell.family == "ols" else 1.0
            self.tables.append((positions, truth, np.sqrt(dispersion * np.diag(inverse))))
        self.zeros = np.flatnonzero(np.r_[False, slopes == 0])
        if cell.family == "poisson":  # clipped counts are not quite Poisson
            self.zeros = self.zeros[np.abs(self.tables[0][1][self.zeros]) < 0.05 * self.tables[0][2][self.zeros]]

    def draw(self, rng: np.random.Generator) -> Array:
        """Return labels between 0 and 1."""
        if self.cell.family == "ols":
            return np.clip(self.mean + 0.1 * rng.normal(size=self.mean.size), 0, 1)
        if self.cell.family == "logit":
            return (rng.random(self.mean.size) < self.mean).astype(float)
        return np.minimum(rng.poisson(self.mean), self.cell.high) / self.cell.high


def simulate(cell: Cell, seconds: float, most: int) -> dict[str, Any]:
    """Return the figures of a cell, from as many repetitions as the processor time allows."""
    setting, rng, source = Setting(cell), np.random.default_rng(), SecureWords()
    bounds = (0.0, cell.high)
    covered = [np.zeros(len(truth)) for _, truth, _ in setting.tables]
    widths = [np.zeros(len(truth)) for _, truth, _ in setting.tables]
    rejected, repetitions, unsolved, end = np.zeros(len(LEVELS)), 0, 0, time.process_time() + seconds
    while time.process_time() < end and repetitions + unsolved < most:
        labels = setting.draw(rng)
        access = LabelAccess(labels, source)
        access.charge(Ledger(), [], epsilon=Fraction(str(cell.epsilon)))
        released = measure(setting.candidates, access, setting.family)
        try:
            tables = []
            for positions, _, _ in setting.tables:
                design, moments = setting.design.select(positions), released.select(positions)
                solution = solve(design, moments, setting.family, bounds)
                tables.append(describe_errors(design, moments, solution, bounds))
        except NoSolutionError:
            unsolved += 1
            continue
        repetitions += 1
        for k, (table, (_, truth, _)) in enumerate(zip(tables, setting.tables, strict=True)):
            reach = np.array([law.quantile(0.05) for law in table.laws])
            covered[k] += np.abs(table.coefficients - truth) <= reach
            widths[k] += reach
        for k in setting.zeros:
            pvalue = tables[0].laws[k].tail(tables[0].coefficients[k])
            rejected += [pvalue < level for level in LEVELS]
    return {
        "cell": cell.name,
        "repetitions": repetitions,
        "unsolved": unsolved,
        "covered": [one.tolist() for one in covered],
        "widths": [
            (one / NORMAL / errors).tolist() for one, (_, _, errors) in zip(widths, setting.tables, strict=True)
        ],
        "rejected": rejected.tolist(),
        "zeros": len(setting.zeros),
    }


def line(result: dict[str, Any]) -> str:
    """Return a line of the table."""
    runs = result["repetitions"]
    cells = [result["cell"], f"{runs:,}", str(result["unsolved"])]
    for covered in result["covered"]:
        shares = 100 * np.array(covered) / runs
        cells += [f"{shares[0]:.1f}", f"{shares[1:].min():.1f} to {shares[1:].max():.1f}"]
    widths = np.array(result["widths"][0]) / runs
    cells += [f"{widths[0]:.2f}", f"{widths[1:].mean():.2f}"]
    tested = runs * result["zeros"]
    cells += [
        " / ".join(f"{100 * one / tested:.2f}" for one in result["rejected"]) if tested else "–",
        f"{tested:,}",
    ]
    return "| " + " | ".join(cells) + " |"


COLUMNS = """\
| cell | repetitions | unsolved | all columns: intercept | slopes | fewer columns: intercept | slopes | \
width, intercept | width, slopes | p-values below 5 / 1 / 0.1 %, in % | tested |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def write(results: Path) -> None:
    """Write the table of benchmarks/glm.md."""
    lines = [line(json.loads(one)) for one in results.read_text("utf-8").splitlines()]
    keep("coverage", "\n".join([f"*{stamp()}*\n", COLUMNS, *lines]), RESULTS)


def main() -> None:
    """Run the cells as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", nargs="*", default=[], help="parts of names; all cells without")
    parser.add_argument("--repetitions", type=int, default=5000, help="of each cell at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time for each cell")
    parser.add_argument("--results", type=Path, default=Path("glm-results.jsonl"))
    parser.add_argument(
        "--write", action="store_true", help="write the table of benchmarks/glm.md from the results"
    )
    given = parser.parse_args()
    for cell in CELLS:
        if not given.write and (not given.cells or any(part in cell.name for part in given.cells)):
            result = simulate(cell, given.seconds, given.repetitions)
            with given.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
            print(line(result), flush=True)
    if given.write:
        write(given.results)


if __name__ == "__main__":
    main()
