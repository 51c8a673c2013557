"""`privatize`, prior and design included, beside `randomize` alone: time and memory."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

import labeldp as ldp

BOUNDS = (0.0, 5.0)
CASES: dict[str, dict[str, Any]] = {
    "auto": {},
    'mechanism="rp"': {"mechanism": "rp"},
    'trust="local"': {"trust": "local"},
}
SLOWER, BYTES = 4.0, 20.0


def processor_time(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def main(size: int = 16_000_000, rounds: int = 7) -> None:
    """Time privatize and the same mechanism's randomize in turns; write benchmarks/release.md."""
    labels = np.random.default_rng(0).gamma(2.0, 0.7, size)
    rows = []
    for name, how in track(CASES.items(), description="Releasing …"):
        mechanism = ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, ledger=ldp.Ledger(), **how).mechanism
        whole, alone = [], []
        for _ in range(rounds):
            alone.append(processor_time(lambda m=mechanism: m.randomize(labels)))
            whole.append(
                processor_time(
                    lambda h=how: ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, ledger=ldp.Ledger(), **h)
                )
            )
        tracemalloc.start()
        ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, ledger=ldp.Ledger(), **how)
        peak = tracemalloc.get_traced_memory()[1] / size
        tracemalloc.stop()
        ratio = median(w / a for w, a in zip(whole, alone, strict=True))
        rows.append((name, type(mechanism).__name__, median(alone), median(whole), ratio, peak))
    table = Table(title=f"privatize of {size:,} labels at ε = 1 (targets: ≤ {SLOWER:g}×, ≤ {BYTES:g} bytes)")
    header = ("how", "mechanism", "randomize, s", "privatize, s", "ratio", "bytes a label")
    for column in header:
        table.add_column(column)
    lines = [f"| {' | '.join(header)} |", "|---|---|---|---|---|---|"]
    for name, mechanism, alone, whole, ratio, peak in rows:
        cells = (name, mechanism, f"{alone:.2f}", f"{whole:.2f}", f"{ratio:.2f}", f"{peak:.1f}")
        table.add_row(*cells)
        lines.append(f"| {' | '.join(cells)} |")
    Console().print(table)
    text = f"# privatize beside randomize\n\n`python -m benchmarks.release`, {size:,} labels, ε = 1, medians of "
    text += f"{rounds} rounds, processor time, one thread.\n\n" + "\n".join(lines) + "\n"
    (Path(__file__).parent / "release.md").write_text(text)


if __name__ == "__main__":
    typer.run(main)
