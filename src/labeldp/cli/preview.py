"""``labeldp preview``: what each ε would give, before any label is read."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from labeldp._atomic import atomic_file
from labeldp.cli import options
from labeldp.cli.shell import PlainConsole, explained, tell
from labeldp.errors import ParameterError
from labeldp.histogram import Histogram
from labeldp.planning import preview as make_preview


def preview(
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="How many rows the table has.")],
    bounds: options.Bounds,
    budgets: options.Budgets = "0.1,0.3,1,3",
    wanted: Annotated[
        float | None,
        typer.Option(
            metavar="±", help="An error that would be good enough, in the label's unit: show which ε gives it."
        ),
    ] = None,
    edges: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Public bins of the label, such as 0,20,50,200; with --masses."),
    ] = None,
    masses: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="What share lies in each bin, such as 50,30,20.")
    ] = None,
    rows_per_person: options.RowsPerPerson = 1,
    plot: options.Plot = None,
    force: options.Force = False,
) -> None:
    """Say what each ε would give: noise of labels and means, and what a score or a model may reach.

    Rows and bounds are enough. A public distribution of the label makes the
    figures closer.

    What leaves: nothing. No table is read, so no label can be, and nothing is
    spent.
    """
    with explained():
        options.refuse_plot(plot, force=force)
        if (edges is None) != (masses is None):
            raise ParameterError("--edges and --masses go together: one share less than there are edges")
        prior = None
        if edges is not None and masses is not None:
            nodes = options.parse_numbers(edges, "--edges", "0,20,50,200")
            prior = Histogram(nodes, options.parse_numbers(masses, "--masses", "50,30,20"))
        epsilons = options.parse_numbers(budgets, "--budgets", "0.1,0.3,1,3")
        result = make_preview(
            rows=rows, bounds=bounds, epsilon=epsilons, prior=prior, wanted=wanted, rows_per_person=rows_per_person
        )
        console = PlainConsole()
        header, lines = result.table()
        table = Table(title=f"{rows:,} rows: what each ε would give", title_justify="left")
        for k, name in enumerate(header):
            table.add_column(name, justify="right" if k else "left", no_wrap=True)
        for line in lines:
            table.add_row(*line)
        console.print(table)
        for note in (*result.notes(), *result.cautions()):
            tell(console, note)
        if plot is not None:
            with atomic_file(plot, public=True) as draft:
                result.plot().savefig(draft, dpi=150, format=plot.suffix[1:])
            tell(console, f"The curves are in {plot}.")
