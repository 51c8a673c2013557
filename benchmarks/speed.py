"""Speed and memory of every mechanism, beside NumPy, diffprivlib and OpenDP: ``make bench``.

All contestants take turns in one loop, in an order that is shuffled every round, in one thread. A rate
is the median over the rounds; a ratio is the median of the rounds' own ratios, so that a slow moment of
the machine, which slows both sides, does not count. Time is processor time, which is the time on the
clock when nothing else runs.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import gc
import json
import platform
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import _lru_cache_wrapper
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress

import labeldp as ldp
from benchmarks.report import Sheet, commit, cpu, keep, load, met

HERE = Path(__file__).parent
PEER_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"

BOUNDS = (0.0, 5.0)
SIZES = (1_300_000, 16_000_000)
PEER_SIZE = 20_000
NUMPY = "NumPy, insecure"
FASTER_THAN_NUMPY = {"RPWithPrior": 2.0, "RPWithPrior, uniform": 2.0}
FASTER_THAN_NUMPY_ELSE = 1.5
FASTER_THAN_PEERS = 100.0
BYTES_PER_LABEL = 12.0
CONSTRUCTION_SECONDS = 0.5
PROGRAMME_SECONDS = 5.0

Seconds = dict[str, list[float]]
"""Seconds a label, for each contestant and round."""

Maker = Callable[[], ldp.mechanisms.Mechanism]
Tick = Callable[[], None]


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


def race(size: int, epsilon: float, rounds: int, peers: Peers | None, tick: Tick) -> Seconds:
    """Let everyone randomise ``size`` labels (peers fewer) ``rounds`` times, after one round to warm up."""
    rng = np.random.default_rng(1)
    labels = rng.normal(2.5, 1.25, size)  # a few lie outside the bounds
    scale = (BOUNDS[1] - BOUNDS[0]) / epsilon
    ours = {name: make() for name, make in mechanisms(epsilon).items()}
    turns: dict[str, Callable[[], float]] = {
        NUMPY: lambda: clock(lambda: labels + rng.laplace(0, scale, size)) / size
    }
    for name, mechanism in ours.items():
        turns[name] = lambda mechanism=mechanism: clock(lambda: mechanism.randomize(labels)) / size
    for name in peers.names if peers else ():
        turns[name] = lambda name=name: peers.seconds(name) / peers.size
    seconds: Seconds = {name: [] for name in turns}
    order = list(turns)
    shuffle = random.Random(1).shuffle  # noqa: S311
    for _ in range(rounds + 1):
        shuffle(order)
        for name in order:
            seconds[name].append(turns[name]())
        tick()
    return {name: times[1:] for name, times in seconds.items()}


def rate(seconds: Seconds, name: str) -> float:
    """Return million labels a second."""
    return 1e-6 / median(seconds[name])


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


def speed_sheet(races: dict[int, Seconds], peers: Peers) -> Sheet:
    columns = ["ε = 1"]
    for size in races:
        columns += [f"{size / 1e6:g} M", "× NumPy"]
    libraries = sorted({name.split()[0] for name in peers.names})
    columns += ["target", *[f"× {library}" for library in libraries], "target"]
    sheet = Sheet("Million labels a second, and times the rate of others", columns)
    first = next(iter(races.values()))
    for name in [name for name in first if name not in peers.names]:
        row = [name]
        for seconds in races.values():
            row += [f"{rate(seconds, name):.0f}", f"{ratio(seconds, name, NUMPY):.2f}"]
        if name == NUMPY:
            sheet.rows.append([*row, *[""] * (len(libraries) + 2)])
            continue
        slowest = min(ratio(seconds, name, NUMPY) for seconds in races.values())
        row.append(met(slowest, FASTER_THAN_NUMPY.get(name, FASTER_THAN_NUMPY_ELSE)))
        leads = [
            min(ratio(first, name, peer) for peer in peers.names if peer.startswith(library))
            for library in libraries
        ]
        row += [f"{lead:.0f}" for lead in leads]
        row.append(met(min(leads), FASTER_THAN_PEERS) if leads else "not measured")
        sheet.rows.append(row)
    return sheet


def peer_sheet(seconds: Seconds, peers: Peers) -> Sheet:
    sheet = Sheet(
        f"The other libraries, ε = 1, from {peers.size:,} labels at a time",
        ["library", "million labels/s", "1.3 M labels would take, s"],
    )
    for name in peers.names:
        speed = rate(seconds, name)
        sheet.rows.append([name, f"{speed:.3f}", f"{1.3 / speed:.1f}"])
    return sheet


def budget_sheet(races: dict[float, Seconds]) -> Sheet:
    columns = ["1.3 M labels"]
    for epsilon in races:
        columns += [f"ε = {epsilon:g}", "× NumPy"]
    sheet = Sheet("Million labels a second at other budgets", columns)
    for name in next(iter(races.values())):
        row = [name]
        for seconds in races.values():
            row += [f"{rate(seconds, name):.0f}", f"{ratio(seconds, name, NUMPY):.2f}"]
        sheet.rows.append(row)
    return sheet


def circumstances(peers: Peers, rounds: int, load_before: float) -> str:
    versions = {name: version(name) for name in ("numpy", "scipy", "cryptography")} | peers.versions
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {cpu()} ({os.cpu_count()} cores, one thread used), "
        f"Python {platform.python_version()}, labeldp {ldp.__version__} ({commit()}), "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + f". Load {load_before:.1f} before and {load():.1f} after. Medians of {rounds} rounds. "
        "Command: `make bench`."
    )


def memory_sheet(size: int, tick: Tick) -> Sheet:
    columns = ["bytes a label above the input", "traced", "resident", "target"]
    sheet = Sheet(f"Peak memory, {size / 1e6:g} M labels", columns)
    for name in mechanisms(1.0):
        seen = memory(name, size)
        verdict = met(round(max(seen), 1), BYTES_PER_LABEL, at_most=True)
        sheet.rows.append([name, *[f"{value:.1f}" for value in seen], verdict])
        tick()
    return sheet


def construction_sheet(
    title: str, makers: dict[float, dict[str, Maker]], targets: dict[str, float], tick: Tick
) -> Sheet:
    columns = ["seconds, with proof", *[f"ε = {epsilon:g}" for epsilon in makers], "target"]
    sheet = Sheet(title, columns)
    times: dict[str, list[float]] = {}
    for some in makers.values():
        for name, make in some.items():
            times.setdefault(name, []).append(construction(make))
        tick()
    for name, seconds in times.items():
        verdict = met(max(seconds), targets[name], at_most=True) if name in targets else "none"
        sheet.rows.append([name, *[f"{t:.4f}" for t in seconds], verdict])
    return sheet


def designs(epsilon: float) -> dict[str, Maker]:
    return {
        "Unbiased.design, 100 × 100": lambda: ldp.Unbiased.design(prior(100), epsilon, size=100),
        "RROnBins.design, 1000 values": lambda: ldp.RROnBins.design(prior(1000), epsilon),
    }


def main(
    quick: Annotated[bool, typer.Option(help="Few rounds, few sizes; leaves the README alone.")] = False,
) -> None:
    """Measure, show and keep the results."""
    console = Console()
    load_before = load()
    sizes = SIZES[:1] if quick else SIZES
    rounds, peer_size = (3, 2000) if quick else (21, PEER_SIZE)
    budgets = () if quick else (0.1, 4.0)
    proofs = (0.05, 1.0) if quick else (0.001, 0.05, 1.0, 4.0, 20.0)
    programmes = (1.0,) if quick else (0.001, 0.1, 1.0, 4.0, 8.0, 20.0)
    made = {epsilon: mechanisms(epsilon) for epsilon in proofs}
    names = list(made[1.0])
    steps = (rounds + 1) * (len(sizes) + len(budgets)) + len(names) + len(proofs) + len(programmes)
    with Progress(console=console, transient=True) as progress, Peers.started(peer_size) as peers:
        task = progress.add_task("Measuring", total=steps)

        def tick() -> None:
            progress.advance(task)

        races = {size: race(size, 1.0, rounds, peers if size == sizes[0] else None, tick) for size in sizes}
        others = {epsilon: race(sizes[0], epsilon, rounds, None, tick) for epsilon in budgets}
        sheets = [speed_sheet(races, peers)]
        sheets += [peer_sheet(races[sizes[0]], peers)] if peers.names else []
        sheets += [budget_sheet(others)] if others else []
        sheets.append(memory_sheet(sizes[-1], tick))
        sheets.append(construction_sheet("Construction", made, dict.fromkeys(names, CONSTRUCTION_SECONDS), tick))
        plans = {epsilon: designs(epsilon) for epsilon in programmes}
        target = {next(iter(designs(1.0))): PROGRAMME_SECONDS}
        sheets.append(construction_sheet("Design under a prior", plans, target, tick))

    for sheet in sheets:
        console.print(sheet.rich())
    missed = sum(cell.endswith("**MISSED**") for sheet in sheets for row in sheet.rows for cell in row)
    verdict = f"{missed} targets missed" if missed else "all targets met"
    console.print(f"[bold]{verdict}[/]; load {load_before:.1f} before, {load():.1f} after")
    if not quick:
        where = circumstances(peers, rounds, load_before)
        keep("\n".join([where, "", *[sheet.markdown() for sheet in sheets]]))


if __name__ == "__main__":
    typer.run(main)
