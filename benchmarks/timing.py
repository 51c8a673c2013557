"""Does the time of a curator's noise leak the noise? Measured, ``python -m benchmarks.timing``.

One integer is released with noise, very often, for two statistics that are as far apart as one label can move
them, and each call is timed. *Loops* is the noise of `benchmarks.loop_noise`: coins that are tossed until one
fails. *Fixed* is the library's. The correlation is Spearman's, between the size of the noise and the time; by
chance it is below 3/√n with probability 0.997. Quarters are median times of the quarter of the calls with the
smallest and with the largest noise. The ε shown is what output and time together prove: an event (a range of
outputs, and a time below or above some quantile) is chosen on half of the calls, and the other half gives a
lower bound at 99.9 %. Above the ε that was asked for, it is a violation. The same search with times in random
order shows what outputs prove alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated
from unittest.mock import patch

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from scipy import stats

import labeldp as ldp
from benchmarks.loop_noise import LoopNoise
from benchmarks.report import Sheet, commit, cpu, load
from labeldp.evidence.loss_bounds import loss_at_least
from labeldp.exact.integers import DiscreteLaplace
from labeldp.exact.word_sources import SecureWords

RESULTS = Path(__file__).with_suffix(".md")
LEVEL = 1e-3
SENSITIVITY = 1 << 20

Array = NDArray[np.float64]


class Zero:
    """A model that predicts nothing else: its squared error is 0 for the label 0, and 1 for the label 1."""

    def predict(self, X: Array) -> Array:
        return np.zeros(len(X))


@dataclass(frozen=True)
class Case:
    """What is timed: ``call`` releases 0 or 1, in units of the sensitivity."""

    name: str
    epsilon: float
    call: Callable[[int], float]
    calls: int


def released(noise: DiscreteLaplace) -> Callable[[int], float]:
    source, exact = SecureWords(), np.zeros(1, dtype=np.int64)

    def call(which: int) -> float:
        exact[0] = which * SENSITIVITY  # one buffer for both: where it lies may take time too
        return float(noise.release(exact, source)[0]) / SENSITIVITY

    return call


def score(epsilon: float) -> Callable[[int], float]:
    features, labels = np.zeros((20, 1)), np.zeros(20)

    def call(which: int) -> float:
        labels[0] = which
        return ldp.private_score(Zero(), features, labels, epsilon=epsilon, bounds=(0, 1)).mse

    return call


def cases(calls: int) -> list[Case]:
    laplace = DiscreteLaplace.calibrated(sensitivity=SENSITIVITY, epsilon=Fraction(6))
    return [
        Case("a Laplace draw", 6.0, released(laplace), calls),
        Case("`private_score`", 3.0, score(3.0), calls // 2),
    ]


@contextmanager
def loops() -> Iterator[None]:
    """Let the library draw from coins that stop early."""

    def sample(noise: DiscreteLaplace, size: int, source: SecureWords) -> NDArray[np.int64]:
        return LoopNoise(noise).sample(size, source)

    with patch.object(DiscreteLaplace, "sample", sample):
        yield


def measure(case: Case) -> tuple[NDArray[np.int64], Array, Array]:
    """Return for each call which statistic it had, what it released, and the nanoseconds that it took."""
    which = np.random.default_rng(1).integers(0, 2, case.calls)
    outputs, took = np.zeros(case.calls), np.zeros(case.calls)
    for k in range(-100, case.calls):  # the first ones warm up
        start = time.perf_counter_ns()
        output = case.call(int(which[max(k, 0)]))
        took[max(k, 0)] = time.perf_counter_ns() - start
        outputs[max(k, 0)] = output
    return which, outputs, took


def shown(which: NDArray[np.int64], outputs: Array, took: Array) -> float:
    """Return the ε that outputs and times prove."""
    half = which.size // 2
    edges = np.quantile(outputs[:half], np.linspace(0, 1, 41))
    cuts = np.quantile(took[:half], [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99])

    def share(part: slice, low: float, high: float, cut: float, below: bool, one: int) -> tuple[int, int]:
        some = which[part] == one
        inside = (outputs[part] >= low) & (outputs[part] <= high) & ((took[part] <= cut) == below)
        return int((inside & some).sum()), int(some.sum())

    def bound(part: slice, event: tuple[float, float, float, bool], one: int) -> float:
        (hits, trials), (others, more) = share(part, *event, one), share(part, *event, 1 - one)
        return float(loss_at_least(hits, others, min(trials, more), 0.0, LEVEL))

    found = [
        (bound(slice(half), (low, high, cut, below), one), (low, high, cut, below), one)
        for i, low in enumerate(edges[:-1:2])
        for high in edges[2 * i + 2 :: 2]
        for cut in cuts
        for below in (True, False)
        for one in (0, 1)
    ]
    _, event, one = max(found, key=lambda each: each[0])
    return bound(slice(half, None), event, one)


def row(case: Case, how: str) -> list[str]:
    which, outputs, took = measure(case)
    sizes = np.abs(outputs - which)
    quarters = np.quantile(sizes, [0.25, 0.75])
    small, large = np.median(took[sizes <= quarters[0]]), np.median(took[sizes >= quarters[1]])
    shuffled = np.random.default_rng(2).permutation(took)
    return [
        case.name,
        how,
        f"{case.calls:,}",
        f"{stats.spearmanr(sizes, took).statistic:+.4f}",
        f"{3 / np.sqrt(case.calls):.4f}",
        f"{small / 1e3:.2f}",
        f"{large / 1e3:.2f}",
        "–" if np.isnan(case.epsilon) else f"{case.epsilon:g}",
        f"{shown(which, outputs, took):.2f}",
        f"{shown(which, outputs, shuffled):.2f}",
    ]


def main(calls: Annotated[int, typer.Option(help="Calls of each kind.")] = 200_000) -> None:
    """Measure, show and keep the results."""
    columns = ["call", "noise", "calls", "correlation", "by chance below", "smallest quarter, µs", "largest, µs"]
    sheet = Sheet("Time by the size of the noise", [*columns, "ε", "shown", "shown without time"])
    before = load()
    for case in cases(calls):
        for how, patched in (("loops", loops()), ("fixed", nullcontext())):
            with patched:
                sheet.rows.append(row(case, how))
    Console(width=160).print(sheet.rich())
    head = (__doc__ or "").split("\n\n", 1)[1].strip()
    note = (
        f"{cpu()}, load {before:.1f} before and {load():.1f} after; labeldp {ldp.__version__} ({commit()}). "
        "`python -m benchmarks.timing`."
    )
    RESULTS.write_text(
        f"# The time of a curator's noise\n\n{head}\n\n{sheet.markdown()}\n{note}\n", encoding="utf-8"
    )


if __name__ == "__main__":
    typer.run(main)
