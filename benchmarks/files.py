"""Private files beside PyArrow that only reads and rewrites them: ``python -m benchmarks.files [--rows N]``.

Each run is a process of its own, from its start to its end, imports included; the ways take turns. PyArrow goes
in batches and in one piece, and the faster of the two is the yardstick. Memory is the largest resident size of a
process; it is flat if sixteen times the rows need hardly more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

import labeldp as ldp
from benchmarks.report import Sheet, commit, cpu, load, met

MADE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.csv as csv, pyarrow.parquet as pq
path, rows = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
words = np.array(["north", "south", "east", "west", "centre"])
writer = None
for start in range(0, rows, 1 << 20):
    n = min(1 << 20, rows - start)
    table = pa.table({
        "area": rng.normal(80, 20, n),
        "year": rng.integers(1900, 2025, n),
        "region": words[rng.integers(0, 5, n)],
        "sold": pa.array(rng.integers(1_500_000_000, 1_700_000_000, n) * 1_000_000, pa.timestamp("us", "UTC")),
        "price": np.round(np.minimum(5, rng.lognormal(0.3, 0.5, n)), 4),
    })
    if writer is None:
        writer = (pq.ParquetWriter if path.endswith("parquet") else csv.CSVWriter)(path, table.schema)
    writer.write_table(table)
writer.close()
"""
IN_BATCHES = """
import sys
source, target = sys.argv[1:3]
if source.endswith("parquet"):
    import pyarrow.parquet as pq
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches(batch_size=1 << 20):
            writer.write_batch(batch)
else:
    import pyarrow.csv as csv
    with csv.open_csv(source) as reader, csv.CSVWriter(target, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
"""
WHOLE = """
import sys
source, target = sys.argv[1:3]
if source.endswith("parquet"):
    import pyarrow.parquet as pq
    pq.write_table(pq.read_table(source), target)
else:
    import pyarrow.csv as csv
    csv.write_csv(csv.read_csv(source), target)
"""
PRIVATE = """
import sys
from labeldp.app.cli import app
sys.argv = ["labeldp", "privatize", sys.argv[1], "-o", sys.argv[2], "--force", *sys.argv[3:]]
app()
"""
ASKED = ["--label", "price", "--bounds", "0", "5", "--epsilon", "1"]
WAYS = {
    "PyArrow, in batches": (IN_BATCHES, []),
    "PyArrow, whole": (WHOLE, []),
    "labeldp privatize": (PRIVATE, ASKED),
    "and --shuffle": (PRIVATE, [*ASKED, "--shuffle"]),
}
OURS = "labeldp privatize"
MOST = {"parquet": 1.3, "csv": 1.0}
"""The most that our time may be, in times of the faster PyArrow."""

SMALLER = 16
"""How many times fewer rows the small table has."""

FLAT = 1.5
"""The most that the peak of the large table may be, in peaks of the small one.

Not 1, because a small table does not fill the queues. Two batches are read ahead, and a row group is encoded while
the next is filled: the peak rises by some 100 MiB up to 4 Mi rows, and is level from there on.
"""


@dataclass
class Run:
    seconds: float
    processor: float
    mib: float


def measured(code: str, *args: str) -> Run:
    """Run a process to its end; this process is small, because a child's peak starts at its parent's size."""
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", code, *args], stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"a run failed with exit code {child.returncode}")
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def compared(folder: Path, kind: str, rows: int, rounds: int) -> dict[str, list[Run]]:
    source, target = folder / f"in.{kind}", folder / f"out.{kind}"
    measured(MADE, str(source), str(rows))
    runs: dict[str, list[Run]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, (code, more) in WAYS.items():
            runs[name].append(measured(code, str(source), str(target), *more))
            target.unlink()
    source.unlink()
    return runs


def middle(runs: list[Run], what: str) -> float:
    return statistics.median(getattr(run, what) for run in runs)


def rows_of(
    kind: str, rows: int, runs: dict[str, list[Run]], small: dict[str, list[Run]] | None = None
) -> list[list[str]]:
    """Return a line for each way; ours is judged if there are runs on a small table to compare memory with."""
    others = [name for name in WAYS if name.startswith("PyArrow")]
    yardstick = min(others, key=lambda name: middle(runs[name], "seconds"))
    lines = []
    for name, each in runs.items():
        ratio = statistics.median(
            ours.seconds / theirs.seconds for ours, theirs in zip(each, runs[yardstick], strict=True)
        )
        peak = middle(each, "mib")
        judged = ["", "", "", ""]
        if small is not None:
            growth = peak / middle(small[name], "mib")
            judged[2] = f"{growth:.2f}"
            if name == OURS:
                judged = [
                    met(ratio, MOST[kind], at_most=True),
                    met(peak, 1024, at_most=True),
                    judged[2],
                    met(growth, FLAT, at_most=True),
                ]
        lines.append(
            [
                f"{kind}, {rows / 2**20:g} Mi rows: {name}",
                f"{middle(each, 'seconds'):.1f}",
                f"{middle(each, 'processor'):.1f}",
                f"{ratio:.2f}",
                judged[0],
                f"{peak:.0f}",
                *judged[1:],
            ]
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1 << 24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=["parquet", "csv"])
    parser.add_argument("--keep", action="store_true", help="write benchmarks/files.md")
    chosen = parser.parse_args()
    before = load()
    columns = [
        "",
        "seconds",
        "processor",
        "× the faster PyArrow",
        "target",
        "peak MiB",
        "target",
        "× fewer rows",
        "target",
    ]
    sheet = Sheet("Private files beside PyArrow that reads and rewrites them", columns)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for kind in chosen.kinds:
            few = chosen.rows // SMALLER
            small = compared(Path(folder), kind, few, 1)
            large = compared(Path(folder), kind, chosen.rows, chosen.rounds)
            sheet.rows += rows_of(kind, few, small) + rows_of(kind, chosen.rows, large, small)
    Console(width=160).print(sheet.rich())
    text = (
        f"`python -m benchmarks.files --rows {chosen.rows} --rounds {chosen.rounds}` on {cpu()}, {os.cpu_count()} "
        f"cores, labeldp {ldp.__version__} ({commit()}). Load {before:.1f} before and {load():.1f} after. Medians "
        f"of {chosen.rounds} rounds (one round for the small files); whole processes, imports included. Processor "
        "time is of all threads together.\n"
    )
    if chosen.keep:
        (Path(__file__).parent / "files.md").write_text(f"{sheet.markdown()}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
