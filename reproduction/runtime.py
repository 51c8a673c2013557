"""The paper's runtime and complexity tables, measured: how long labels take, and how designs grow."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import labeldp as ldp
from labeldp import __version__
from reproduction.columns import COLUMNS, Cell
from reproduction.datasets.dataset import Dataset
from reproduction.labels import TrainingRows, labels_for
from reproduction.protocol import paper_name, split
from reproduction.published import COLUMNS as PUBLISHED
from reproduction.published import DISTINCT, RUNTIMES
from reproduction.summary import markdown_table

EPSILON = 1.0


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one mechanism takes for all training labels: prior, design, proof and noise."""

    dataset: str
    column: str
    seconds: float
    rows: int
    distinct: int
    released: int


def timings(data: Dataset, *, rounds: int = 3) -> Iterator[Timing]:
    """Yield each private mechanism's best time of several, on the training labels of the first split."""
    name = paper_name(data)
    train, _ = split(len(data.y), name, 0)
    y = data.y[train]
    rows = TrainingRows(data.X[train], y, data.bounds, name)
    for column in COLUMNS.values():
        if column.kind != "network" or not column.private or column.key in ("rp-debiased", "labels-with-x"):
            continue
        best, values = math.inf, y
        for trial in range(rounds):
            started = time.perf_counter()
            values = labels_for(Cell(trial, column.key, EPSILON), rows).values
            best = min(best, time.perf_counter() - started)
        yield Timing(data.name, column.key, best, len(y), len(np.unique(y)), len(np.unique(values)))


# ---- growth -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Growth:
    """A design whose time is measured at several sizes."""

    name: str
    claim: str
    sizes: tuple[int, ...]
    design: Callable[[ldp.Histogram, int], object]


def _prior(size: int) -> ldp.Histogram:
    heights = np.random.default_rng(size).random(size) * np.exp(-np.linspace(0, 3, size))
    return ldp.Histogram.from_counts(heights, (0.0, 1.0))


def _all_pairs(prior: ldp.Histogram, size: int) -> tuple[float, float]:
    """Return the best interval as the paper's Algorithm 1 finds it, by all pairs of nodes; O(1) for each."""
    nodes, cost = prior.nodes.tolist(), math.exp(-EPSILON)
    below = np.concatenate([[0.0], np.cumsum(prior.masses)]).tolist()
    best, pair = 0.0, (0, size)
    for i in range(size):
        for j in range(i + 1, size + 1):
            value = (below[j] - below[i]) / (0.1 + cost * (nodes[j] - nodes[i]))
            if value > best:
                best, pair = value, (i, j)
    return nodes[pair[0]], nodes[pair[1]]


GROWTH = (
    Growth(
        "RR-on-Bins, optimal bins",
        "n₁³",
        (128, 256, 512, 1024, 2048),
        lambda p, k: ldp.RROnBins.design(p, EPSILON),
    ),
    Growth("Algorithm 1 as the paper has it", "n₂²", (64, 128, 256, 512, 1024), _all_pairs),
    Growth(
        "Algorithm 1 here",
        "n₂²",
        (10**3, 10**4, 10**5, 10**6),
        lambda p, k: ldp.optimal_interval(p, epsilon=EPSILON, zeta=0.05),
    ),
    Growth(
        "Unbiased, linear programme of n × n",
        "n₃^2.5 n₄^2.5 = n⁵",
        (12, 24, 48, 96),
        lambda p, k: ldp.Unbiased.design(p, EPSILON, size=k),
    ),
)
"""The designs of the paper's complexity table."""


def design_times(growth: Growth, sizes: Sequence[int] | None = None, *, rounds: int = 3) -> dict[int, float]:
    """Return the best time of several at each size."""
    times = {}
    for size in sizes or growth.sizes:
        prior, times[size] = _prior(size), math.inf
        for _ in range(rounds):
            started = time.perf_counter()
            growth.design(prior, size)
            times[size] = min(times[size], time.perf_counter() - started)
    return times


def exponent(times: dict[int, float]) -> float:
    """Return p of the law time ∝ n^p, fitted to the larger half of the sizes.

    Examples
    --------
    >>> round(exponent({1: 5.0, 10: 1.0, 100: 100.0, 1000: 10_000.0}), 6)
    2.0
    """
    sizes = sorted(times)[-max(2, (len(times) + 1) // 2) :]
    return float(np.polyfit(np.log(sizes), np.log([times[s] for s in sizes]), 1)[0])


def as_markdown(times: Sequence[Timing], growths: dict[str, dict[int, float]]) -> str:
    """Return both tables."""
    heads = ["data", "mechanism", "seconds", "paper", "labels", "distinct labels", "paper", "distinct released"]
    rows = []
    for t in times:
        name = COLUMNS[t.column].published or ""
        seconds = dict(zip(PUBLISHED, RUNTIMES.get(t.dataset, ()), strict=False)).get(name)
        paper = "" if seconds is None else f"{seconds:.3g}"
        distinct = "" if seconds is None else f"{DISTINCT[t.dataset][name == 'RRonBins']:,}"
        counts = f"{t.rows:,}", f"{t.distinct:,}", distinct, f"{t.released:,}"
        rows.append([t.dataset, COLUMNS[t.column].title, f"{t.seconds:.3g}", paper, *counts])
    claims = {g.name: g.claim for g in GROWTH}
    designs = [
        [
            name,
            f"O({claims[name]})",
            ", ".join(f"{size:,}: {seconds:.2g}" for size, seconds in sizes.items()),
            f"{exponent(sizes):.2f}",
        ]
        for name, sizes in growths.items()
    ]
    lines = [
        "# Runtime",
        "",
        f"Seconds to make all training labels private at ε = {EPSILON:g}: prior, design, exact proof and noise; "
        f"best of three. Version {__version__}. The paper's seconds are from its own machine and of its own "
        "measure: only their order can be compared.",
        "",
        *markdown_table(heads, rows, left=heads[:2]),
        "",
        "# Growth",
        "",
        *markdown_table(
            ["design", "paper's claim", "seconds by size", "fitted exponent"],
            designs,
            left=("design", "paper's claim", "seconds by size"),
        ),
    ]
    return "\n".join(lines) + "\n"
