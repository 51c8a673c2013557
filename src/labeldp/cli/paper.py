"""``labeldp paper``: the paper's experiments, ours beside the published figures."""

from __future__ import annotations

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

from labeldp.cli.markdown import shown
from labeldp.cli.shell import explained
from labeldp.errors import ParameterError

__all__ = ["app"]

app = typer.Typer(
    add_completion=False,
    help="Repeat the paper's experiments with mechanisms that are really private.",
    epilog="Start here:  labeldp paper crime --trials 2 --budgets 0.5,1,2,inf",
    no_args_is_help=True,
)


class Source(StrEnum):
    """Which to follow where the paper's text and code disagree."""

    text = "text"
    code = "code"


class Scale(StrEnum):
    """Whether numeric features are standardised."""

    auto = "auto"
    none = "none"
    standard = "standard"


Trials = Annotated[int, typer.Option(min=1, help="Random 80/20 splits; the paper has 10.")]
Budgets = Annotated[
    str | None, typer.Option(help="Budgets, such as 0.5,1,inf. The paper's 13 by default; inf is NOT PRIVATE.")
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns, such as laplace,rp-debiased. By default all of laplace, gaussian, staircase, rr-on-bins, "
        "unbiased, rp-letter, rp, rp-debiased, labels-regressor, model-regressor, constant; Criteo: no regressors."
    ),
]
Follow = Annotated[Source, typer.Option("--protocol", help="Follow the paper's text, or its published code.")]
Leaking = Annotated[
    bool,
    typer.Option(
        "--include-non-private", help="Also run RPWithPrior as published, which leaks labels: NOT PRIVATE."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for results, where a stopped run continues; by default labeldp-paper/NAME.",
        show_default=False,
    ),
]
Epochs = Annotated[int | None, typer.Option(min=1, help="For a quick look: fewer epochs than the paper's 50.")]
Scaled = Annotated[Scale, typer.Option("--scale", help="Standardise features; auto does as the paper does.")]
AtOnce = Annotated[
    int | None, typer.Option(min=1, help="Networks that train together; by default what memory or cache allow.")
]
Memory = Annotated[float | None, typer.Option(min=0.01, help="Device memory for networks, in GiB.")]
Workers = Annotated[int, typer.Option(min=0, help="Processes for labels and regressors; 0 for one a core.")]
Rows = Annotated[int | None, typer.Option(min=10, help="Use only this many rows, drawn at random.")]
Twin = Annotated[
    int | None, typer.Option(min=1000, help="Make a log like Criteo's with this many lines, and use that.")
]


@app.command(epilog="Example:  labeldp paper crime --include-non-private --out results/crime")
def crime(
    trials: Trials = 10,
    budgets: Budgets = None,
    columns: Columns = None,
    protocol: Follow = Source.text,
    include_non_private: Leaking = False,
    out: Out = None,
    epochs: Epochs = None,
    scale: Scaled = Scale.auto,
    networks_at_once: AtOnce = None,
    memory: Memory = None,
    workers: Workers = 0,
    rows: Rows = None,
) -> None:
    """Communities and Crime: violent crimes, 1,994 communities."""
    _table("crime", locals())


@app.command(epilog="Example:  labeldp paper housing --trials 3 --budgets 1,2,inf --protocol code")
def housing(
    trials: Trials = 10,
    budgets: Budgets = None,
    columns: Columns = None,
    protocol: Follow = Source.text,
    include_non_private: Leaking = False,
    out: Out = None,
    epochs: Epochs = None,
    scale: Scaled = Scale.auto,
    networks_at_once: AtOnce = None,
    memory: Memory = None,
    workers: Workers = 0,
    rows: Rows = None,
) -> None:
    """California Housing: house values, 20,640 districts."""
    _table("housing", locals())


@app.command(epilog="Example:  labeldp paper criteo --twin 200000 --trials 1 --budgets 1,inf --epochs 5")
def criteo(
    trials: Trials = 10,
    budgets: Budgets = None,
    columns: Columns = None,
    protocol: Follow = Source.text,
    include_non_private: Leaking = False,
    out: Out = None,
    epochs: Epochs = None,
    scale: Scaled = Scale.auto,
    networks_at_once: AtOnce = None,
    memory: Memory = None,
    workers: Workers = 0,
    rows: Rows = None,
    twin: Twin = None,
) -> None:
    """Criteo's sponsored search log: amounts of 1.6 million sales."""
    _table("criteo", locals())


def _table(name: str, given: dict[str, Any]) -> None:
    console = Console()
    with explained("Stopped. Say the same again to continue where it was."):
        from labeldp.paper.columns import chosen_columns  # noqa: PLC0415
        from labeldp.paper.data import load  # noqa: PLC0415
        from labeldp.paper.others import cores  # noqa: PLC0415
        from labeldp.paper.protocol import checked_budgets, protocol_for  # noqa: PLC0415
        from labeldp.paper.run import Table  # noqa: PLC0415

        source = given["protocol"].value
        listed = given["columns"].split(",") if given["columns"] else None
        if listed is not None and given["include_non_private"]:
            listed.append("as-published")
        try:
            budgets = [float(b) for b in given["budgets"].split(",")] if given["budgets"] else None
        except ValueError:
            raise ParameterError("budgets must be numbers with commas between them, such as 0.5,1,inf") from None
        table = Table(
            columns=chosen_columns(listed, dataset=name, include_non_private=given["include_non_private"]),
            budgets=checked_budgets(budgets),
            protocol=protocol_for(name, source, scale=given["scale"].value, epochs=given["epochs"]),
            data=load(name, source, twin=given.get("twin"), rows=given["rows"]),
            trials=given["trials"],
            networks_at_once=given["networks_at_once"],
            memory=None if given["memory"] is None else int(given["memory"] * 2**30),
            workers=given["workers"] or cores(),
        )
        make(table, given["out"] or Path("labeldp-paper") / name, console)


def make(table: Any, out: Path, console: Console) -> None:
    """Run a table with a progress bar, keep it in a folder, and show it."""
    from labeldp.paper.report import as_markdown, as_rich  # noqa: PLC0415
    from labeldp.paper.run import run  # noqa: PLC0415
    from labeldp.paper.store import write_whole  # noqa: PLC0415
    from labeldp.paper.summary import Summary  # noqa: PLC0415

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*parts, TextColumn("left"), TimeRemainingColumn(), console=console) as progress:
        tasks: dict[str, Any] = {}
        names = {
            "labels": "Private labels",
            "networks": "Epochs of networks",
            "regressors": "Regressors and constants",
        }

        def news(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(names[what], total=total)
            progress.advance(tasks[what], done)

        store, results = run(table, out, news)
    summary = Summary(results, table.columns)
    store.finish(results)
    write_whole(out / "table.md", as_markdown(table, summary).encode())
    console.print(as_rich(table, summary))
    kept = ["results.csv", "table.md (with all notes)", *_plots(table, summary, out, console)]
    console.print(f"Kept in {out}: {', '.join(kept)}.")


def _plots(table: Any, summary: Any, out: Path, console: Console) -> list[str]:
    """Draw the table; return the files' names. What took long is kept already, so a missing plot is no error."""
    from labeldp.paper.store import write_whole  # noqa: PLC0415

    try:
        from labeldp.paper.plot import draw, image  # noqa: PLC0415
    except ModuleNotFoundError as error:
        console.print(f"No plot: {error.name} is missing. With it installed, the same command draws one at once.")
        return []
    figure = draw(table, summary)
    for kind in ("png", "svg"):
        write_whole(out / f"plot.{kind}", image(figure, kind))
    return ["plot.png", "plot.svg"]


# ---- other tables -----------------------------------------------------------------------------------------

Sets = Annotated[str, typer.Option("--data", help="Data sets, such as crime,housing.")]


def _loaded(names: str, twin: int | None) -> list[Any]:
    from labeldp.paper.data import load  # noqa: PLC0415

    return [load(name, twin=twin if name == "criteo" else None) for name in names.split(",")]


def _keep(text: str, out: Path, name: str, console: Console) -> None:
    from labeldp.paper.store import write_whole  # noqa: PLC0415

    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / name, text.encode())
    console.print(shown(text, console.width), f"Kept in {out / name}.")


@app.command(epilog="Example:  labeldp paper error --data crime,housing")
def error(
    data: Sets = "crime,housing",
    twin: Twin = None,
    out: Annotated[Path, typer.Option(help="Folder for the table.")] = Path("labeldp-paper"),
) -> None:
    """Check the error of a released label: formula, exact counts and simulation, beside the paper's E2."""
    console = Console()
    with explained("Stopped. Say the same again to continue where it was."):
        from labeldp.paper.error_formula import as_markdown, error_rows  # noqa: PLC0415

        rows = []
        for one in _loaded(data, twin):
            for row in track(error_rows(one), f"{one.name} …", total=12, console=console, transient=True):
                rows.append(row)  # noqa: PERF402, one by one for the bar
        _keep(as_markdown(rows), out, "error.md", console)


@app.command(epilog="Example:  labeldp paper runtime --data crime,housing,criteo --twin 1000000")
def runtime(
    data: Sets = "crime,housing",
    twin: Twin = None,
    out: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path("labeldp-paper"),
) -> None:
    """Measure the paper's runtime and complexity tables on this machine."""
    console = Console()
    with explained("Stopped. Say the same again to continue where it was."):
        from labeldp.paper.runtime import GROWTH, as_markdown, grown, timings  # noqa: PLC0415

        times = [t for one in _loaded(data, twin) for t in timings(one)]
        growths = {g.name: grown(g) for g in track(GROWTH, "Growth …", console=console, transient=True)}
        _keep(as_markdown(times, growths), out, "runtime.md", console)
