"""Speed and memory of every mechanism beside NumPy, diffprivlib and OpenDP: a part of ``make bench``.

All take turns in one loop, in an order that is shuffled every round, in one thread. A ratio is the median of
the ratios of each round, so that a slow moment of the machine, which slows both sides, does not count. Time
is processor time, which is the time on the clock when nothing else runs.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import gc
import json
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.progress import track

import labeldp as ldp
from benchmarks.report import Sheet, keep, stamp

HERE = Path(__file__).parent
PEER_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"

BOUNDS = (0.0, 5.0)
SIZE, LARGE_SIZE, PEER_SIZE = 1_300_000, 16_000_000, 20_000
"""Labels of a turn, labels of which memory is measured, and labels of the peers' turns."""

ROUNDS = 21
EPSILONS = (0.001, 0.05, 1.0, 4.0, 20.0)
"""Budgets for which construction is timed; the slowest is stated."""

NUMPY = "NumPy, insecure"

Seconds = dict[str, list[float]]
"""Seconds a label, for each contestant and round."""

Maker = Callable[[], ldp.mechanisms.Mechanism]


def prior(bins: int) -> ldp.Histogram:
    """Return a skewed prior, as incomes have."""
    return ldp.Histogram(np.linspace(*BOUNDS, bins + 1), np.exp(-np.linspace(0, 3, bins)))


def mechanisms(epsilon: float) -> dict[str, Maker]:
    """Return what constructs each mechanism, with designs made beforehand."""
    rr = ldp.RROnBins.design(prior(100), epsilon).parameters()
    table = ldp.Unbiased.design(prior(100), epsilon, size=64).parameters()
    window = {"interval": (0.5, 3.5), "zeta": 0.7, "epsilon": epsilon}
    return {
        "RPWithPrior": lambda: ldp.RPWithPrior(**window),
        "RPWithPrior, uniform": lambda: ldp.RPWithPrior(**window, outside="uniform"),
        "Laplace": lambda: ldp.Laplace(bounds=BOUNDS, epsilon=epsilon),
        "Staircase": lambda: ldp.Staircase(bounds=BOUNDS, epsilon=epsilon),
        "Gaussian": lambda: ldp.Gaussian(bounds=BOUNDS, epsilon=epsilon, delta=1e-5),
        "TwoPoint": lambda: ldp.TwoPoint(bounds=BOUNDS, epsilon=epsilon),
        "RROnBins": lambda: ldp.RROnBins(**rr),
        "Unbiased": lambda: ldp.Unbiased(**table),
    }


# ---- measuring ------------------------------------------------------------------------------------


def clock(call: Callable[[], object]) -> float:
    """Return the processor seconds, of all threads, that a call takes: others' turns do not count."""
    start = time.process_time()
    call()
    return time.process_time() - start


@dataclass
class Peers:
    """The other libraries' process; nobody there if its environment was not built."""

    size: int
    names: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    @classmethod
    @contextmanager
    def started(cls, size: int) -> Iterator[Peers]:
        peers = cls(size)
        if not PEER_PYTHON.exists():
            yield peers
            return
        command = [str(PEER_PYTHON), str(HERE / "peers.py"), str(size)]
        with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as peers.process:
            hello = peers.answer()
            peers.names, peers.versions = hello["names"], hello["versions"]
            yield peers

    def answer(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def seconds(self, name: str) -> float:
        self.process.stdin.write(json.dumps({"name": name}) + "\n")
        self.process.stdin.flush()
        return self.answer()["seconds"]


def race(peers: Peers) -> Seconds:
    """Let everyone randomise labels in turns, peers fewer of them, after one round to warm up."""
    rng = np.random.default_rng(1)
    labels = rng.normal(2.5, 1.25, SIZE)  # a few lie outside the bounds
    turns: dict[str, Callable[[], float]] = {
        NUMPY: lambda: clock(lambda: labels + rng.laplace(0, BOUNDS[1] - BOUNDS[0], SIZE)) / SIZE
    }
    for name, make in mechanisms(1.0).items():
        built = make()
        turns[name] = lambda mechanism=built: clock(lambda: mechanism.randomize(labels)) / SIZE
    for name in peers.names:
        turns[name] = lambda name=name: peers.seconds(name) / peers.size
    seconds: Seconds = {name: [] for name in turns}
    order = list(turns)
    shuffle = random.Random(1).shuffle  # noqa: S311
    for _ in track(range(ROUNDS + 1), "Rounds"):
        shuffle(order)
        for name in order:
            seconds[name].append(turns[name]())
    return {name: times[1:] for name, times in seconds.items()}


def ratio(seconds: Seconds, name: str, rival: str) -> float:
    """Return how many times the rival's rate this one's is."""
    return median(other / own for own, other in zip(seconds[name], seconds[rival], strict=True))


def memory_here(name: str, size: int) -> tuple[float, float]:
    """Return bytes a label above the input, as the allocator and as the operating system see it."""
    mechanism = mechanisms(1.0)[name]()
    labels = np.random.default_rng(1).normal(2.5, 1.25, size)
    mechanism.randomize(labels[:100_000])
    before = status("VmRSS")
    mechanism.randomize(labels)
    resident = status("VmHWM") - before
    tracemalloc.start()
    mechanism.randomize(labels)
    return tracemalloc.get_traced_memory()[1] / size, resident / size


def status(key: str) -> float:
    """Return a size from Linux's account of this process, in bytes; NaN elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def memory(name: str, size: int) -> tuple[float, float]:
    """Do `memory_here` in a process of its own."""
    code = f"from benchmarks.speed import memory_here; print(*memory_here({name!r}, {size}))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent)
    traced, resident = done.stdout.split()
    return float(traced), float(resident)


def construction(make: Maker) -> float:
    """Return the median seconds of three constructions, none of which uses what the last one kept."""
    seconds = []
    for _ in range(3):
        forget()
        seconds.append(clock(make))
    return median(seconds)


def forget() -> None:
    """Clear all caches of the library: values of e^ε, and mechanisms that were built before."""
    for kept in gc.get_objects():
        if isinstance(kept, _lru_cache_wrapper) and kept.__module__.startswith("labeldp."):
            kept.cache_clear()


# ---- reporting ------------------------------------------------------------------------------------


def sheet_of(seconds: Seconds, peers: Peers) -> Sheet:
    """Return a line for each mechanism: its rate, times the rate of others, memory and construction."""
    libraries = sorted({name.split()[0] for name in peers.names})
    columns = ["ε = 1", "million labels/s", "× NumPy", *[f"× {library}" for library in libraries]]
    sheet = Sheet("Mechanisms", [*columns, "bytes a label", "built and proven in, s"])
    for name in track(mechanisms(1.0), "Memory and construction"):
        leads = [
            min(ratio(seconds, name, peer) for peer in peers.names if peer.startswith(library))
            for library in libraries
        ]
        built = max(construction(mechanisms(epsilon)[name]) for epsilon in EPSILONS)
        sheet.rows.append(
            [
                name,
                f"{1e-6 / median(seconds[name]):.0f}",
                f"{ratio(seconds, name, NUMPY):.2f}",
                *[f"{lead:.0f}" for lead in leads],
                f"{max(memory(name, LARGE_SIZE)):.1f}",
                f"{built:.3f}",
            ]
        )
    return sheet


def main() -> None:
    """Measure, show and keep the results."""
    with Peers.started(PEER_SIZE) as peers:
        sheet = sheet_of(race(peers), peers)
    Console().print(sheet.rich())
    versions = ", ".join(f"{name} {number}" for name, number in peers.versions.items())
    keep("speed", f"{stamp()}; NumPy {np.__version__}, {versions}.\n\n{sheet.markdown()}")


if __name__ == "__main__":
    main()
