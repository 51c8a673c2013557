"""Lists cells, measures in worker processes those that a file lacks, and appends them to it."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from queue import Empty, SimpleQueue
from subprocess import PIPE, Popen
from threading import Thread
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

from benchmarks.accuracy.methods import LIBRARIES, OURS, PEERS, Cell
from benchmarks.accuracy.tables import load

console = Console(stderr=True)
ROOT = Path(__file__).parents[2]

LARGE = 50_000
"""Tables with more rows are measured on the first splits only, and so are other methods than ours."""
FIRST_SPLITS = 3
PEER_BUDGETS = (0.3, 1.0, 4.0)


@dataclass(frozen=True)
class Place:
    """Where a worker runs: the interpreter, folders that come first on its path, and the library's sources."""

    python: str = sys.executable
    path: tuple[str, ...] = ()
    sources: str = ""

    @classmethod
    def of_library(cls, folder: Path) -> Place:
        """Return the place of the library of a checkout."""
        sources = str((folder / "src").resolve(strict=True))
        return cls(path=(sources,), sources=sources)

    @classmethod
    def of_peers(cls, where: Path) -> Place:
        """Return the place of other libraries: another interpreter, or a folder with packages."""
        return cls(path=(str(where.resolve()),)) if where.is_dir() else cls(python=str(where.absolute()))

    def start(self) -> Popen[str]:
        """Start a worker."""
        path = os.pathsep.join([*self.path, str(ROOT), os.environ.get("PYTHONPATH", "")])
        command = [self.python, "-m", "benchmarks.accuracy.worker", *([self.sources] if self.sources else [])]
        return Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=os.environ | {"PYTHONPATH": path})


def plan(
    names: list[str],
    splits: range,
    methods: list[str],
    epsilons: list[float],
    loose: list[str],
    rows: int,
    repeats: int,
    labels: list[str],
) -> list[Cell]:
    """List the cells, whole splits first, so that a stopped run is a smaller run; in each, large tables first."""
    cells = set()
    sizes = {name: load(name).X.shape for name in names}
    for split, repeat, table, method, epsilon, width in product(
        splits, range(repeats), names, methods, epsilons, loose
    ):
        if split >= FIRST_SPLITS and (sizes[table][0] > LARGE or method in PEERS):
            continue
        if method in PEERS and epsilon not in PEER_BUDGETS:
            continue
        if method == "eleventh" and epsilon != 1:
            continue
        if method == "trees":
            epsilon, width = math.inf, "1"  # noqa: PLW2901 - no budget, no bounds
        once = 0 if method in {"trees", "constant"} else repeat
        for label in labels if method in OURS else [""]:
            cells.add(Cell(split, once, table, method, epsilon, width, rows, label))
    return sorted(cells, key=lambda cell: (cell.split, cell.repeat, -math.prod(sizes[cell.table]), cell))


def read(paths: list[Path]) -> list[dict[str, Any]]:
    """Read cells; a line that a stopped run left unfinished is passed over."""
    cells = []
    for line in "\n".join(path.read_text() for path in paths if path.exists()).split("\n"):
        try:
            cells += [json.loads(line)] if line else []
        except json.JSONDecodeError:
            console.print(f"unfinished line passed over: {line[:60]}")
    return cells


class _Workers:
    """Threads that each hold at most one busy worker process, which is kept for later cells of its place."""

    def __init__(self, cells: list[Cell], places: dict[str, Place], count: int) -> None:
        self.results: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._cells, self._places = iter(cells), places
        self._started: list[Popen[str]] = []
        self._stopped = False
        self._threads = [Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _serve(self) -> None:
        mine: dict[Place, Popen[str]] = {}
        while not self._stopped and (cell := next(self._cells, None)) is not None:
            place = self._places[LIBRARIES.get(cell.method, cell.label)]
            if place not in mine:
                mine[place] = place.start()
                self._started.append(mine[place])
            if self._stopped:
                mine[place].kill()
                return
            answer = _ask(mine[place], cell)
            if answer is None:
                del mine[place]
            self.results.put(answer or asdict(cell) | {"failure": "the worker ended"})

    def stop(self) -> None:
        """End every worker, whatever it is doing."""
        self._stopped = True
        for process in self._started:
            process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._started:
            with suppress(BrokenPipeError), process:  # closes its pipes and waits
                pass


def _ask(process: Popen[str], cell: Cell) -> dict[str, Any] | None:
    """Return what a worker answers, or None if it ended."""
    assert process.stdin
    assert process.stdout
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(asdict(cell)) + "\n")
        process.stdin.flush()
    line = process.stdout.readline()
    return json.loads(line) if line.endswith("\n") else None


def run(cells: list[Cell], out: Path, places: dict[str, Place], workers: int, minutes: float) -> None:
    """Measure the cells that the file lacks, each in one of the workers, and append them as they come.

    ``places`` has one for each label of the library, one named ``peers``, and one named ``""`` for the rest.
    """
    deadline = time.monotonic() + 60 * minutes
    names = [field.name for field in fields(Cell)]
    done = {Cell(**{name: cell[name] for name in names}) for cell in read([out])}
    left = [cell for cell in cells if cell not in done]
    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a") as lines, Progress(*columns, console=console) as progress:
        lines.write("\n" if done else "")  # ends a line that a stopped run left unfinished
        task = progress.add_task("", total=len(cells), completed=len(cells) - len(left))
        pool = _Workers(left, places, workers)
        try:
            for result in _until(deadline, len(left), pool.results):
                progress.advance(task)
                if "failure" in result:
                    console.print(result)
                else:
                    lines.write(json.dumps(result) + "\n")
                    lines.flush()
        finally:
            pool.stop()


def _until(deadline: float, count: int, results: SimpleQueue[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for _ in range(count):
        try:
            yield results.get(timeout=min(max(deadline - time.monotonic(), 0.0), 1e6))
        except Empty:
            console.print("stopped: the same command continues")
            return
