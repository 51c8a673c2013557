"""``python -m reproduction``: the paper's experiments, ours beside the published figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)

from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.errors import LabelDPError
from reproduction import errata, error_formula, runtime
from reproduction.columns import choose_columns
from reproduction.data import load
from reproduction.files import write_whole
from reproduction.protocol import TRIALS, parse_budgets, protocol_for
from reproduction.report import as_markdown, departures
from reproduction.run import Table, run
from reproduction.screen import for_screen
from reproduction.summary import Summary
from reproduction.workers import cores

FOLDER = Path("labeldp-paper")

QUICK = (3, "0.5,2,8,inf")
"""Trials and budgets of a table that takes a minute."""

app = typer.Typer(
    add_completion=False,
    help="Repeat the paper's experiments with mechanisms that are really private.",
    epilog="Start here:  python -m reproduction diabetes",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


class Source(StrEnum):
    """Which to follow where the paper's text and code disagree; private is our own, for Criteo."""

    text = "text"
    code = "code"
    private = "private"


class Scale(StrEnum):
    """Whether numeric features are standardised."""

    auto = "auto"
    none = "none"
    standard = "standard"


Twin = Annotated[int | None, typer.Option(min=1000, help="Use a synthetic log like Criteo's, of this many lines.")]
Sets = Annotated[str, typer.Option("--data", help="Data sets, such as crime,housing.")]
Out = Annotated[Path, typer.Option(help="Folder for the tables.")]


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turn an error into one sentence and an exit code: 1 the machine's, 2 the input's, 130 stopped."""
    try:
        yield
    except KeyboardInterrupt:
        message, code = "Stopped. The same command continues where it was.", 130
    except LabelDPError as error:
        message, code = str(error), 2
    except (OSError, MemoryError) as error:
        message, code = str(error) or "there is not enough memory", 1
    else:
        return
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def table(
    context: typer.Context,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Random 80/20 splits; the paper has 10. Diabetes: 3 by default.")
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            help="Budgets, such as 0.5,1,inf. The paper's 13 by default, diabetes: 4; inf is NOT PRIVATE."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns, such as laplace,rp-debiased. By default all of laplace, gaussian, staircase, "
            "rr-on-bins, unbiased, algorithm-4, rp, rp-debiased, labels-without-x, labels-with-x, "
            "labels-regressor, model-regressor, constant; Criteo: none that sees X. Also a mechanism by its "
            "name, such as two-point."
        ),
    ] = None,
    protocol: Annotated[
        Source, typer.Option(help="Follow the paper's text, or its code; Criteo: or neither where they leak.")
    ] = Source.text,
    include_non_private: Annotated[
        bool,
        typer.Option(
            "--include-non-private", help="Also run mechanisms as published, which leak labels: NOT PRIVATE."
        ),
    ] = False,
    zeta: Annotated[str, typer.Option(help="Also multiples of the paper's ζ, such as 0.5,1,2.")] = "",
    sigma: Annotated[str, typer.Option(help="Also multiples of the paper's bin width σ, such as 0.5,1,2.")] = "",
    modules: Annotated[
        list[str] | None,
        typer.Option("--import", help="Modules that register mechanisms, such as ./mine.py, for --columns mine."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"Folder for results, where a stopped run continues; by default {FOLDER}/NAME.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="For a quick look: fewer epochs than the paper's 50.")
    ] = None,
    scale: Annotated[Scale, typer.Option(help="Standardise features; auto does as the paper does.")] = Scale.auto,
    networks_at_once: Annotated[
        int | None,
        typer.Option(min=1, help="Networks that train together; by default what memory or cache allow."),
    ] = None,
    memory: Annotated[float | None, typer.Option(min=0.01, help="Device memory for networks, in GiB.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes for labels and regressors; 0: one a core.")] = 0,
    rows: Annotated[int | None, typer.Option(min=10, help="Use only this many rows, sampled at random.")] = None,
    twin: Twin = None,
) -> None:
    """Compute one table of the paper; its data set is the command's name."""
    name = str(context.info_name)
    with _explain_errors():
        import_modules(modules or ())
        keys = columns.split(",") if columns else None
        usual_trials, usual_budgets = QUICK if name == "diabetes" else (TRIALS, None)
        compute(
            Table(
                columns=choose_columns(
                    keys, dataset=name, include_non_private=include_non_private, zeta=zeta, sigma=sigma
                ),
                budgets=parse_budgets(budgets or usual_budgets),
                protocol=protocol_for(name, protocol.value, scale=scale.value, epochs=epochs),
                data=load(name, protocol.value, twin=twin, rows=rows),
                trials=trials or usual_trials,
                networks_at_once=networks_at_once,
                memory=None if memory is None else int(memory * 2**30),
                workers=workers or cores(),
                modules=tuple(modules or ()),
            ),
            out or FOLDER / name,
        )


for _name, _help, _options in (
    (
        "diabetes",
        "A first look, in a minute, without any download: 442 patients.",
        "--columns laplace,rp-debiased",
    ),
    ("crime", "Communities and Crime: violent crimes, 1,994 communities.", "--include-non-private --out results"),
    ("housing", "California Housing: house values, 20,640 districts.", "--trials 3 --budgets 1,inf"),
    ("criteo", "Criteo's search log: amounts of 1.6 million sales.", "--twin 200000 --trials 1 --epochs 5"),
):
    app.command(_name, help=_help, epilog=f"Example:  python -m reproduction {_name} {_options}")(table)


def compute(table: Table, out: Path) -> None:
    """Run a table with progress bars, keep it in a folder, and show it."""
    console = Console()
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*parts, TextColumn("left"), TimeRemainingColumn(), console=console) as bars:
        names = {"labels": "Private labels", "networks": "Epochs of networks", "regressors": "Regressors"}
        tasks: dict[str, Any] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(names[what], total=total)
            bars.advance(tasks[what], done)

        results = run(table, out, progress)
    from reproduction.plot import draw, image  # noqa: PLC0415 (an extra, of no use before)

    summary = Summary(results, table.columns)
    text = as_markdown(table, summary)
    write_whole(out / "table.md", text.encode())
    figure = draw(table, summary)
    for kind in ("png", "svg"):
        write_whole(out / f"plot.{kind}", image(figure, kind))
    console.print(for_screen(text, console.width))
    console.print(departures(table), style="bold red")
    console.print(f"Kept in {out}: results.csv, table.md, plot.png, plot.svg.")


def _write_and_show(text: str, path: Path) -> None:
    write_whole(path, text.encode())
    console = Console()
    console.print(for_screen(text, console.width), f"Kept in {path}.")


@app.command("error", epilog="Example:  python -m reproduction error --data crime,housing")
def error(data: Sets = "crime,housing", twin: Twin = None, out: Out = FOLDER) -> None:
    """Check the error of a released label: formula, exact counts and simulation, beside the paper's E2."""
    with _explain_errors():
        rows: list[error_formula.ErrorRow] = []
        for one in _load_all(data, twin):
            rows += track(error_formula.error_rows(one), f"{one.name} …", total=12, transient=True)
        _write_and_show(error_formula.as_markdown(rows), out / "error.md")


@app.command(
    "runtime", epilog="Example:  python -m reproduction runtime --data crime,housing,criteo --twin 1000000"
)
def measure(data: Sets = "crime,housing", twin: Twin = None, out: Out = FOLDER) -> None:
    """Measure the paper's runtime and complexity tables on this machine."""
    with _explain_errors():
        timings = [timing for one in _load_all(data, twin) for timing in runtime.timings(one)]
        growths = {g.name: runtime.design_times(g) for g in track(runtime.GROWTH, "Growth …", transient=True)}
        _write_and_show(runtime.as_markdown(timings, growths), out / "runtime.md")


@app.command("errata", epilog="Example:  python -m reproduction errata")
def check_errata(out: Out = FOLDER) -> None:
    """Count two faults of the paper: intervals turned around by its Algorithm 1, and cells bold by no rule."""
    with _explain_errors():
        _write_and_show(errata.as_markdown(), out / "errata.md")


def _load_all(names: str, twin: int | None) -> list[Any]:
    return [load(name, twin=twin if name == "criteo" else None) for name in names.split(",")]
