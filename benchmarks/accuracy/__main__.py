"""Run the accuracy suite on many cores, keep every cell, and print what it shows.

python -m benchmarks.accuracy --half choose --epsilons 0.1,1 --splits 0-9 --label new --out cells.jsonl
python -m benchmarks.accuracy --half choose … --label old --library ../older --out cells.jsonl
python -m benchmarks.accuracy table cells.jsonl
python -m benchmarks.accuracy package cells.jsonl --version new     # what the library's planner shows
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy, in every worker

import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.accuracy import tables
from benchmarks.accuracy.methods import METHODS, installed
from benchmarks.accuracy.packaged import TARGET, write_packaged
from benchmarks.accuracy.runner import console, plan, read, run

app = typer.Typer(add_completion=False)


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    half: Annotated[str, typer.Option(help="choose, judge or all; look at judge once per claim")] = "choose",
    names: Annotated[str, typer.Option("--tables", help="some tables instead of a half")] = "",
    methods: str = "constant,trees,labels,model",
    epsilons: str = "0.1,0.3,1,2",
    splits: Annotated[str, typer.Option(help="first and last")] = "0-9",
    loose: Annotated[str, typer.Option(help="bounds too wide: 1,10,10left,10right")] = "1",
    rows: Annotated[int, typer.Option(help="training rows, 0 for all")] = 0,
    repeats: Annotated[int, typer.Option(help="fits of the same rows")] = 1,
    label: Annotated[str, typer.Option(help="names the version of the library")] = "this",
    library: Annotated[Path | None, typer.Option(help="another checkout, whose src is used")] = None,
    data: Annotated[Path | None, typer.Option(help="a file written by export")] = None,
    out: Path = Path("build/accuracy.jsonl"),
    workers: Annotated[int, typer.Option(help="processes, 0 for one per core")] = 0,
    most_seconds: Annotated[float, typer.Option(help="stop then; the same command continues")] = math.inf,
) -> None:
    """Measure what the file does not hold yet."""
    if context.invoked_subcommand:
        return
    if library is not None:
        sys.path.insert(0, str((library / "src").resolve(strict=True)))
    if data is not None:
        os.environ[tables.STORE] = str(data.resolve(strict=True))
    usable = [method for method in methods.split(",") if installed(method)]
    for method in sorted(set(methods.split(",")) - set(usable)):
        console.print(f"{method} is left out: its library is not installed")
    for method in set(usable) - {*METHODS, "constant"}:
        raise typer.BadParameter(f"unknown method {method}: use constant, {', '.join(METHODS)}")
    chosen = [name for name, table in tables.TABLES.items() if half in {table.half, "all"}]
    first, last = map(int, f"{splits}-{splits}".split("-")[:2])
    cells = plan(
        names.split(",") if names else chosen,
        range(first, last + 1),
        usable,
        [float(epsilon) for epsilon in epsilons.split(",")],
        loose.split(","),
        rows,
        repeats,
        label,
    )
    run(cells, out, workers or os.cpu_count() or 1, most_seconds)


@app.command()
def table(files: list[Path], new: str = "", old: str = "") -> None:
    """Print cells as Markdown; with two labels, the first (``--new``) over the second (``--old``)."""
    from benchmarks.accuracy.summary import markdown  # noqa: PLC0415 - pandas, which a machine that only runs may lack

    print(markdown(read(files), new, old))


@app.command()
def package(files: list[Path], version: Annotated[str, typer.Option()], path: Path = TARGET) -> None:
    """Write what ``labeldp preview`` says of models: errors of one version, by its label, over the constant's."""
    console.print(f"{write_packaged(read(files), version, path)} tables: {path}")


@app.command()
def export(file: Path) -> None:
    """Write all real tables to one file, for a machine without the packages."""
    tables.export(file)


if __name__ == "__main__":
    app()
