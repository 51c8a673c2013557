"""Two faults of the paper, counted: Algorithm 1 as printed, and the tables' own rule for bold print."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from labeldp import __version__
from reproduction.published import BUDGETS, COLUMNS, figure
from reproduction.summary import markdown_table

Array = NDArray[np.float64]
Pair = tuple[float, float]

PRIORS = 2000
"""Random priors that Algorithm 1 is tried on."""

MAX_BINS = 8
EPSILON = 1.0
ZETA = 0.05
"""ζ, where labels lie in [0, 1]."""


def algorithm_1(nodes: Array, densities: Array, epsilon: float, zeta: float) -> Pair:
    """Return A1 and A2 as the paper's Algorithm 1 prints it, with f not updated in the last branch.

    Examples
    --------
    On one bin the reversed interval wins, since ∫ and γ are both negative there.

    >>> algorithm_1(np.array([0.0, 1.0]), np.array([1.0]), epsilon=1.0, zeta=0.05)
    (1.0, 0.0)
    """
    below = np.concatenate([[0.0], np.cumsum(densities * np.diff(nodes))])
    cost = math.exp(-epsilon)

    def objective(pair: Pair) -> float:
        first, last = pair
        mass = float(np.interp(last, nodes, below) - np.interp(first, nodes, below))
        return 2 * zeta * mass / (2 * zeta + cost * (last - first))

    best, chosen = 0.0, (math.nan, math.nan)
    for i in range(densities.size):
        for j in range(i, densities.size):
            for pairs in _branches(nodes, densities, i, j, epsilon, zeta):
                candidate = max(pairs, key=objective)
                if objective(candidate) > best:
                    chosen = candidate
                    # A single pair is the interior one: the last branch, which leaves f as it is.
                    best = objective(candidate) if len(pairs) > 1 else best
    return chosen


def _branches(nodes: Array, densities: Array, i: int, j: int, epsilon: float, zeta: float) -> Iterator[list[Pair]]:
    """Yield the pairs that each branch of the loop compares."""
    left, right = nodes[i : i + 2].tolist(), nodes[j : j + 2].tolist()
    yield [(first, last) for first in left for last in right]
    cost = math.exp(-epsilon)
    slope = cost * (densities[j] - densities[i])
    if slope == 0:
        return
    inner = float(densities[i + 1 : j] @ np.diff(nodes)[i + 1 : j])
    h = densities[i] * nodes[i + 1] + inner - densities[j] * nodes[j]
    e1 = float((2 * zeta * densities[j] - cost * h) / slope)
    e2 = float((2 * zeta * densities[i] - cost * h) / slope)
    if right[0] < e2 < right[1]:
        yield [(first, e2) for first in left]
    if left[0] < e1 < left[1]:
        yield [(e1, last) for last in right]
    if right[0] < e2 < right[1] and left[0] < e1 < left[1]:
        yield [(e1, e2)]


def count_reversed(priors: int = PRIORS, seed: int = 0) -> int:
    """Return for how many random priors Algorithm 1 gives A1 > A2.

    A prior has 2 to 8 bins, with nodes uniform on [0, 1] and masses uniform on the simplex.
    """
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(priors):
        bins = int(rng.integers(2, MAX_BINS + 1))
        nodes = np.sort(rng.uniform(0.0, 1.0, bins + 1))
        masses = rng.dirichlet(np.ones(bins))
        first, last = algorithm_1(nodes, masses / np.diff(nodes), EPSILON, ZETA)
        wrong += first > last
    return wrong


def bold_faults() -> list[tuple[str, float, str, str, bool]]:
    """Return the printed cells that break the paper's own rule for bold print: (data, ε, column, text, bold).

    The rule: mean ± standard deviation overlaps with that of the smallest mean of the row.
    """
    faults = []
    for dataset in ("crime", "housing", "criteo"):
        for epsilon in BUDGETS:
            row = {column: figure(dataset, column, epsilon) for column in COLUMNS}
            cells = {column: cell for column, cell in row.items() if cell is not None}
            best = min(cells.values(), key=lambda cell: cell.mean)
            for column, cell in cells.items():
                overlaps = abs(cell.mean - best.mean) <= cell.std + best.std
                if overlaps != cell.bold:
                    faults.append((dataset, epsilon, column, cell.text, cell.bold))
    return faults


def as_markdown() -> str:
    """Return both counts, and the cells."""
    faults = bold_faults()
    rows = [
        [dataset, f"{epsilon:g}", column, text, "bold" if bold else "not bold"]
        for dataset, epsilon, column, text, bold in faults
    ]
    lines = [
        "# Faults of the paper, counted",
        "",
        f"Algorithm 1 as printed gives A1 > A2 for {count_reversed()} of {PRIORS:,} random priors (2 to "
        f"{MAX_BINS} bins, nodes uniform on [0, 1], masses uniform on the simplex, ε = {EPSILON:g}, "
        f"ζ = {ZETA:g}): it also tries pairs whose mass and γ are both negative, where e^(−ε) times a bin's width "
        "exceeds 2ζ. "
        f"Version {__version__}.",
        "",
        f"{len(faults)} cells of the printed tables break the paper's own rule, \"the best-performing intervals "
        'are those that overlap with the interval of the smallest mean, which are highlighted in bold":',
        "",
        *markdown_table(["data", "ε", "column", "printed", "printed as"], rows, left=("data", "column")),
    ]
    return "\n".join(lines) + "\n"
