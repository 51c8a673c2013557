"""Many labels through the file path: ``python -m benchmarks.stream [--rows 200000000] [--keep]``.

A Parquet file of many row groups is privatised, with a ledger.
At every tenth of each pass the clock and the resident memory are read: memory must stay flat, and speed steady.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from rich.console import Console

from benchmarks.report import Sheet, commit, cpu, load, met

MADE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
path, rows = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
with pq.ParquetWriter(path, pa.schema({"area": pa.float32(), "price": pa.float64()})) as writer:
    for start in range(0, rows, 1 << 20):
        n = min(1 << 20, rows - start)
        price = np.round(np.minimum(5, rng.lognormal(0.3, 0.5, n)), 4)
        writer.write_table(pa.table({"area": rng.normal(80, 20, n).astype("f4"), "price": price}))
"""
RUN = """
import json, resource, sys, time
from labeldp import Budget, Ledger
from labeldp.app.file_release import privatize_file

folder, rows = sys.argv[1], int(sys.argv[2])
page, marks, seen = resource.getpagesize() / 2**20, [], set()

def progress(stage, done, total):
    tenth = (stage, 10 * done // rows)
    if tenth not in seen:
        seen.add(tenth)
        with open("/proc/self/statm") as stream:
            memory = int(stream.read().split()[1]) * page
        marks.append([stage, done, time.perf_counter(), memory])

ledger = Ledger.open(folder + "/ledger", limit=Budget(1))
order = {"label": "price", "bounds": (0, 5), "epsilon": 1, "ledger": ledger, "progress": progress}
done = privatize_file(folder + "/in.parquet", folder + "/out.parquet", **order)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
print(json.dumps({"marks": marks, "peak": peak, "rows": done.terms.rows, "spent": ledger.total.epsilon}))
"""


def measured(folder: Path, rows: int) -> dict[str, object]:
    """Make the table, privatise it in a process of its own, and return what that process saw."""
    subprocess.run([sys.executable, "-c", MADE, str(folder / "in.parquet"), str(rows)], check=True)
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), str(rows)], check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def tenths(marks: list[list[object]], sheet: Sheet) -> dict[str, tuple[float, float]]:
    """Fill the sheet, and return each pass's slowest speed over its middle one, and its growth of memory."""
    judged = {}
    for stage in dict.fromkeys(str(mark[0]) for mark in marks):
        own = [mark for mark in marks if mark[0] == stage]
        pairs = list(pairwise(own))
        speeds = [(b[1] - a[1]) / (b[2] - a[2]) / 1e6 for a, b in pairs]  # type: ignore[operator]
        memory = [float(str(mark[3])) for mark in own]
        for (_, after), speed in zip(pairs, speeds, strict=True):
            sheet.rows.append([stage, f"{after[1]:,}", f"{speed:.1f}", f"{after[3]:.0f}"])
        half = len(memory) // 2
        judged[stage] = (min(speeds) / sorted(speeds)[len(speeds) // 2], max(memory[half:]) - max(memory[:half]))
    return judged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000_000)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/stream.md")
    chosen = parser.parse_args()
    if chosen.rows < 10:
        parser.error("rows must be at least 10")
    before = load()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        seen = measured(Path(folder), chosen.rows)
    if (seen["rows"], seen["spent"]) != (chosen.rows, 1.0):
        raise RuntimeError("not all rows were released, or not all of the budget was spent")
    sheet = Sheet(f"{chosen.rows:,} labels, streamed", ["pass", "rows", "million rows a second", "MiB"])
    judged = tenths(seen["marks"], sheet)  # type: ignore[arg-type]
    lines = [
        f"- {stage}: from the first half to the second, memory grows by {growth:.0f} MiB "
        f"({met(growth, 64, at_most=True)}); the slowest tenth has {slow:.2f} of the middle "
        f"speed ({met(slow, 0.5)})"
        for stage, (slow, growth) in judged.items()
    ]
    lines.append(f"- peak {seen['peak']:.0f} MiB ({met(float(str(seen['peak'])), 1024, at_most=True)})")
    Console(width=120).print(sheet.rich(), *lines, sep="\n")
    text = (
        f"`python -m benchmarks.stream --rows {chosen.rows}` on {cpu()}, {os.cpu_count()} cores, commit "
        f"{commit()}. Load {before:.1f} before and {load():.1f} after. Targets: flat memory, steady speed.\n"
    )
    if chosen.keep:
        page = "\n".join([sheet.markdown(), *lines, "", text])
        (Path(__file__).parent / "stream.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
