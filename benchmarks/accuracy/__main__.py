"""Run the accuracy suite on many cores, keep every cell, and print what it shows.

python -m benchmarks.accuracy write heldout                         # once, from the sources of accuracy.md
python -m benchmarks.accuracy --folder heldout --library this=. --library 0.2.0=baseline --out cells.jsonl
python -m benchmarks.accuracy table cells.jsonl --new this --old 0.2.0
python -m benchmarks.accuracy package cells.jsonl --version this    # what the library's planner shows
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy, in every worker

import math
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.accuracy import tables
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.packaged import TARGET, write_packaged
from benchmarks.accuracy.runner import ROOT, Place, console, plan, read, run

app = typer.Typer(add_completion=False)


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    group: Annotated[str, typer.Option(help="development, heldout, heldout2 or heldout3")] = "development",
    folder: Annotated[Path | None, typer.Option(help="tables written by write; all of them are measured")] = None,
    names: Annotated[str, typer.Option("--tables", help="some of the tables")] = "",
    methods: str = "constant,trees,labels,model",
    epsilons: str = "0.1,0.3,1,2,4",
    splits: Annotated[str, typer.Option(help="first and last; large tables have three at most")] = "0-7",
    loose: Annotated[str, typer.Option(help="bounds too wide: 1,10,10left,10right")] = "1",
    rows: Annotated[int, typer.Option(help="training rows, 0 for all")] = 0,
    repeats: Annotated[int, typer.Option(help="fits of the same rows")] = 1,
    library: Annotated[list[str], typer.Option(help="LABEL=CHECKOUT, whose src is used")] = ["this=."],  # noqa: B006
    peers: Annotated[Path | None, typer.Option(help="interpreter with other libraries, or their folder")] = None,
    out: Path = Path("build/accuracy.jsonl"),
    workers: Annotated[int, typer.Option(help="processes, 0 for one per core")] = 0,
    minutes: Annotated[float, typer.Option(help="stop then; the same command continues")] = math.inf,
) -> None:
    """Measure what the file does not hold yet."""
    if context.invoked_subcommand:
        return
    if folder is not None:
        os.environ[tables.FOLDER] = str(folder.resolve(strict=True))
    for method in set(methods.split(",")) - {*METHODS, "constant"}:
        raise typer.BadParameter(f"unknown method {method}: use constant, {', '.join(METHODS)}")
    libraries = dict(pair.split("=", 1) for pair in library)
    places = {label: Place.of_library(ROOT / checkout) for label, checkout in libraries.items()}
    places |= {"": Place(), "peers": Place.of_peers(peers) if peers else Place()}
    first, last = map(int, f"{splits}-{splits}".split("-")[:2])
    cells = plan(
        names.split(",") if names else tables.names(group),
        range(first, last + 1),
        methods.split(","),
        [float(epsilon) for epsilon in epsilons.split(",")],
        loose.split(","),
        rows,
        repeats,
        list(libraries),
    )
    run(cells, out, places, workers or os.cpu_count() or 1, minutes)


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
def write(folder: Path, group: str = "heldout") -> None:
    """Write the tables of a group to a folder, for a machine without their sources."""
    for name in tables.names(group):
        console.print(tables.write(name, folder))


if __name__ == "__main__":
    app()
