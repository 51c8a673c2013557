"""Errors and times of private models beside peers, on four development tables: a part of ``make bench``.

Cells of ``benchmarks.accuracy`` at ε = 1 on split 0. Housing needs its file, which `reproduction` downloads once.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy, in every worker

import tempfile
from pathlib import Path
from statistics import geometric_mean, median

from rich.console import Console

from benchmarks.accuracy import tables
from benchmarks.accuracy.runner import ROOT, Place, plan, read, run
from benchmarks.report import Sheet, keep, stamp

TABLES = ("housing", "friedman", "counts", "claims")
PEER_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
METHODS = {
    "model": "**labeldp**, a model",
    "labels": "**labeldp**, labels and a model",
    "moments": "one noisy X'y, ridge (δ = 10⁻⁶)",
    "cond-dp": "Cond-DP, linear (δ = 10⁻⁶)",
    "ebm": "DP-EBM of interpret (δ = 10⁻⁶; protects columns, too)",
    "laplace": "boosted trees on labels with Laplace noise",
    "constant": "private constant",
}
Cell = dict[str, float]


def sheet_of(cells: dict[tuple[str, str], Cell]) -> Sheet:
    """Return errors and times over those of boosted trees without privacy."""
    sheet = Sheet(
        "Models", ["ε = 1", "squared error, × boosted trees'", *TABLES, "time of a fit, × boosted trees'"]
    )
    for method, title in METHODS.items():

        def ratios(of: str, method: str = method) -> list[float]:
            return [cells[method, table][of] / cells["trees", table][of] for table in TABLES]

        errors = ratios("error")
        time = "" if method == "constant" else f"{median(ratios('seconds')):.1f}"
        sheet.rows.append([title, f"{geometric_mean(errors):.2f}", *[f"{error:.2f}" for error in errors], time])
    return sheet


def measure() -> dict[tuple[str, str], Cell]:
    """Return all cells by method and table."""
    methods = [*METHODS, "trees"]
    places = {"": Place(), "this": Place.of_library(ROOT), "peers": Place.of_peers(PEER_PYTHON)}
    with tempfile.TemporaryDirectory() as folder:
        for name in TABLES:
            tables.write(name, Path(folder))
        os.environ[tables.FOLDER] = folder  # peers have no labeldp, which reads some tables
        planned = plan(list(TABLES), range(1), methods, [1.0], ["1"], 0, 1, ["this"])
        out = Path(folder, "cells.jsonl")
        run(planned, out, places, os.cpu_count() or 1, 60.0)
        return {(cell["method"], cell["table"]): cell for cell in read([out])}


def main() -> None:
    """Measure, show and keep the results."""
    sheet = sheet_of(measure())
    Console().print(sheet.rich())
    keep("models", f"{stamp()}; split 0 of four development tables.\n\n{sheet.markdown()}")


if __name__ == "__main__":
    main()
