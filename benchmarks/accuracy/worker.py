"""Measures cells in a process of its own, with the library of one checkout or with other libraries.

`benchmarks.accuracy.runner` starts it and talks to it in lines of JSON: a cell, and what was measured.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.accuracy.methods import Cell, measure


def _answer(cell: Cell) -> dict[str, Any]:
    try:
        return measure(cell)
    except Exception as error:
        return asdict(cell) | {"failure": f"{type(error).__name__}: {error}"}


def main(sources: str = "") -> None:
    """Answer until the input ends; ``sources`` is where the library must come from."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    if sources:
        import labeldp  # noqa: PLC0415

        if not Path(str(labeldp.__file__)).is_relative_to(sources):
            raise ImportError(f"labeldp comes from {labeldp.__file__} instead of {sources}")
    for line in sys.stdin:
        print(json.dumps(_answer(Cell(**json.loads(line)))), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
