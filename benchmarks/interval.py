"""How Algorithm 1 grows with the number of bins: ``python -m benchmarks.interval``.

The paper's search is timed as it is written (plain Python, F in constant time) and, to be fair, with the
inner loop in NumPy. Each time is processor time, a median over priors of three kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress

import labeldp as ldp
from benchmarks.speed import Sheet, clock, cpu, load

RESULTS = Path(__file__).with_suffix(".md")
EPSILON, ZETA = 1.0, 0.05

Found = tuple[float, float]
Search = Callable[[ldp.Histogram], Found]


def priors(bins: int) -> list[ldp.Histogram]:
    """Return three rough priors on (0, 1): level, skewed, and spikes with empty bins between them."""
    rng = np.random.default_rng(bins)
    noise = rng.random(bins)
    shapes = [noise, noise * np.exp(-np.linspace(0, 6, bins)), noise**8 * (rng.random(bins) < 0.3) + 1e-12]
    return [ldp.Histogram.from_counts(shape, (0.0, 1.0)) for shape in shapes]


def ours(prior: ldp.Histogram) -> Found:
    return ldp.optimal_interval(prior, epsilon=EPSILON, zeta=ZETA)


def as_written(prior: ldp.Histogram) -> Found:
    """All pairs of nodes in plain Python, as the paper writes its Algorithm 1."""
    nodes, cost = prior.nodes.tolist(), math.exp(-EPSILON)
    below = [0.0, *np.cumsum(prior.masses).tolist()]
    best, pair = 0.0, (0, 1)
    for i in range(len(nodes) - 1):
        for j in range(i + 1, len(nodes)):
            value = (below[j] - below[i]) / (2 * ZETA + cost * (nodes[j] - nodes[i]))
            if value > best:
                best, pair = value, (i, j)
    return nodes[pair[0]], nodes[pair[1]]


def vectorised(prior: ldp.Histogram) -> Found:
    """All pairs of nodes, the second of each in one NumPy expression."""
    nodes, cost = prior.nodes, math.exp(-EPSILON)
    below = np.concatenate([[0.0], np.cumsum(prior.masses)])
    best, pair = 0.0, (0, 1)
    for i in range(nodes.size - 1):
        value = (below[i + 1 :] - below[i]) / (2 * ZETA + cost * (nodes[i + 1 :] - nodes[i]))
        j = int(value.argmax())
        if value[j] > best:
            best, pair = float(value[j]), (i, i + 1 + j)
    return float(nodes[pair[0]]), float(nodes[pair[1]])


SEARCHES: dict[str, tuple[Search, list[int], int]] = {
    "optimal_interval": (ours, [10**3, 10**4, 10**5, 10**6, 10**7], 5),
    "the paper's, as written": (as_written, [125, 250, 500, 1000, 2000], 1),
    "the paper's, in NumPy": (vectorised, [1000, 4000, 16_000, 64_000], 1),
}
"""Each search, the numbers of bins it is timed at, and how often."""


def exponent(times: dict[int, float]) -> float:
    """Return p of the law time ∝ k^p that fits best."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def value(prior: ldp.Histogram, interval: Found) -> float:
    """Return F, the probability that a label is answered from its neighbourhood."""
    low, high = interval
    inside = float(np.diff(prior.cumulative([low, high]))[0])
    return 2 * ZETA * inside / (2 * ZETA + math.exp(-EPSILON) * (high - low))


def agree(bins: int = 500) -> None:
    """Stop if the searches do not find equally good intervals."""
    for prior in priors(bins):
        values = [value(prior, search(prior)) for search, _, _ in SEARCHES.values()]
        assert max(values) - min(values) <= 1e-12 * max(values)


def main() -> None:
    """Measure, show and keep the results."""
    console, before = Console(), load()
    agree()
    times: dict[str, dict[int, float]] = {name: {} for name in SEARCHES}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Measuring", total=sum(len(sizes) for _, sizes, _ in SEARCHES.values()))
        for name, (search, sizes, rounds) in SEARCHES.items():
            for bins in sizes:
                made = priors(bins)
                runs = [clock(lambda p=prior, s=search: s(p)) for prior in made for _ in range(rounds)]
                times[name][bins] = max(median(runs), 1e-6)
                progress.advance(task)

    sheet = Sheet(f"Seconds to find the best interval, ε = {EPSILON:g}, ζ = {ZETA:g}", ["bins", *SEARCHES])
    for bins in sorted({bins for seen in times.values() for bins in seen}):
        cells = [f"{seen[bins]:.2g}" if bins in seen else "" for seen in times.values()]
        sheet.rows.append([f"{bins:,}", *cells])
    sheet.rows.append(["exponent", *[f"{exponent(seen):.2f}" for seen in times.values()]])
    _, plain, numpy = (seen[max(seen)] * (10**7 / max(seen)) ** 2 for seen in times.values())
    note = (
        f"{cpu()}, load {before:.1f} before and {load():.1f} after. At ten million bins the paper's search "
        f"would take about {plain / 86400:,.0f} days as written, and "
        f"{numpy / 3600:,.0f} hours in NumPy. "
        "Command: `python -m benchmarks.interval`."
    )
    console.print(sheet.rich(), note)
    RESULTS.write_text(f"# Algorithm 1, by the number of bins\n\n{sheet.markdown()}\n{note}\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
