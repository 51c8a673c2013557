"""Private files beside PyArrow that only reads and rewrites them: a part of ``make bench``.

Each run is a process of its own, from its start to its end, imports included; the two take turns. Memory is the
largest resident size of a process; it is flat if sixteen times the rows need hardly more.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.report import Sheet, keep, stamp

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
PRIVATE = """
import sys
from labeldp.app.cli import app
sys.argv = ["labeldp", "privatize", sys.argv[1], "-o", sys.argv[2], "--force", *sys.argv[3:]]
app()
"""
ASKED = ["--label", "price", "--bounds", "0", "5", "--epsilon", "1", "--no-model"]
ROWS, SMALLER, ROUNDS = 1 << 22, 16, 3
"""Rows, how many times fewer the small table has, and rounds of the large one."""


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


def compare(folder: Path, kind: str, rows: int, rounds: int) -> tuple[list[Run], list[Run]]:
    """Return runs of PyArrow and of labeldp, in turns."""
    source, target = folder / f"in.{kind}", folder / f"out.{kind}"
    measured(MADE, str(source), str(rows))
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(measured(IN_BATCHES, str(source), str(target)))
        target.unlink()
        ours.append(measured(PRIVATE, str(source), str(target), *ASKED))
        target.unlink()
    source.unlink()
    return theirs, ours


def main() -> None:
    """Measure, show and keep the results."""
    sheet = Sheet(
        "Files", ["4 Mi rows", "× PyArrow's time", "peak MiB", "PyArrow's", "× the peak of a 16th of the rows"]
    )
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for kind in ("parquet", "csv"):
            _, small = compare(Path(folder), kind, ROWS // SMALLER, 1)
            theirs, ours = compare(Path(folder), kind, ROWS, ROUNDS)
            ratio = statistics.median(our.seconds / their.seconds for our, their in zip(ours, theirs, strict=True))
            peak, their_peak = (statistics.median(run.mib for run in runs) for runs in (ours, theirs))
            cells = [f"{ratio:.2f}", f"{peak:.0f}", f"{their_peak:.0f}", f"{peak / small[0].mib:.2f}"]
            sheet.rows.append([f"`labeldp privatize --no-model`, {kind}", *cells])
    Console().print(sheet.rich())
    keep("files", f"{stamp()}; medians of {ROUNDS} rounds.\n\n{sheet.markdown()}")


if __name__ == "__main__":
    main()
