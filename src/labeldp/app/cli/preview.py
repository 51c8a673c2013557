"""``labeldp preview``: what each ε would give, before any label is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labeldp._atomic import atomic_file
from labeldp.app.cli.command import command
from labeldp.app.cli.shell import PlainConsole, figure_table, refuse_plot, tell
from labeldp.app.option import REQUIRED
from labeldp.errors import ParameterError, Setting
from labeldp.evidence.previews import preview as make_preview
from labeldp.mechanisms.histogram import Histogram


@command(
    *("rows", "bounds", "budgets", "wanted", "edges", "masses", "rows_per_person", "plot", "force"),
    rows={"default": REQUIRED, "help": "How many rows the table has."},
)
def preview(
    rows: int,
    budgets: list[float],
    edges: list[float] | None,
    masses: list[float] | None,
    plot: Path | None,
    force: bool,
    **given: Any,
) -> None:
    """Say what each ε would give: noise of labels and means, and what a score or a model may reach.

    Rows and bounds are enough. A public distribution of the label makes the figures closer.

    What is released: nothing. No table is read, so no label can be, and nothing is spent.
    """
    refuse_plot(plot, force=force)
    if (edges is None) != (masses is None):
        between = " go together: one share less than there are edges"
        raise ParameterError(Setting("edges"), " and ", Setting("masses"), between)
    prior = None if edges is None or masses is None else Histogram(edges, masses)
    result = make_preview(rows=rows, epsilon=budgets, prior=prior, **given)
    console = PlainConsole()
    console.print(figure_table(f"{rows:,} rows: what each ε would give", *result.table()))
    for note in (*result.notes(), *result.cautions()):
        tell(console, note)
    if plot is not None:
        with atomic_file(plot, public=True) as unfinished:
            result.plot().savefig(unfinished, dpi=150, format=plot.suffix[1:])
        tell(console, f"The curves are in {plot}.")
