"""Lists cells, measures in worker processes those that a file lacks, and appends them to it."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, fields
from itertools import product
from multiprocessing import TimeoutError as LateError
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks.accuracy.methods import OURS, Cell, measure

console = Console(stderr=True)


def plan(
    names: list[str],
    splits: range,
    methods: list[str],
    epsilons: list[float],
    loose: list[str],
    rows: int,
    repeats: int,
    label: str,
) -> list[Cell]:
    """List the cells, whole splits first, so that a stopped run is a smaller run."""
    cells = set()
    for split, repeat, table, method, epsilon, width in product(
        splits, range(repeats), names, methods, epsilons, loose
    ):
        ours = method in OURS
        if method == "trees":
            epsilon, width = math.inf, "1"  # noqa: PLW2901 - no budget, no bounds
        once = 0 if method in {"trees", "constant"} else repeat
        cells.add(Cell(split, once, table, method, epsilon, width, rows, label if ours else ""))
    return sorted(cells)


def read(paths: list[Path]) -> list[dict[str, Any]]:
    """Read cells; a line that a stopped run left unfinished is passed over."""
    cells = []
    for line in "\n".join(path.read_text() for path in paths if path.exists()).split("\n"):
        try:
            cells += [json.loads(line)] if line else []
        except json.JSONDecodeError:
            console.print(f"unfinished line passed over: {line[:60]}")
    return cells


def _try(cell: Cell) -> dict[str, Any]:
    try:
        return measure(cell)
    except Exception as error:
        return asdict(cell) | {"failure": f"{type(error).__name__}: {error}"}


def run(cells: list[Cell], out: Path, workers: int, most_seconds: float) -> None:
    """Measure the cells that the file lacks, each in one of the workers, and append them as they come."""
    deadline = time.monotonic() + most_seconds
    names = [field.name for field in fields(Cell)]
    done = {Cell(**{name: cell[name] for name in names}) for cell in read([out])}
    left = [cell for cell in cells if cell not in done]
    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    out.parent.mkdir(parents=True, exist_ok=True)
    with (
        out.open("a") as lines,
        Progress(*columns, console=console) as progress,
        get_context("spawn").Pool(workers) as pool,  # a fresh interpreter: the library is the one of sys.path
    ):
        lines.write("\n" if done else "")  # ends a line that a stopped run left unfinished
        task = progress.add_task("", total=len(cells), completed=len(cells) - len(left))
        results = pool.imap_unordered(_try, left)
        for _ in left:
            try:
                result = results.next(timeout=min(deadline - time.monotonic(), 1e6))
            except LateError:
                console.print("stopped: the same command continues")
                break
            progress.advance(task)
            if "failure" in result:
                console.print(result)
            else:
                lines.write(json.dumps(result) + "\n")
                lines.flush()
