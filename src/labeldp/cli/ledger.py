"""``labeldp ledger``: what is spent, and what is left."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labeldp._validation import rounded_up
from labeldp.cli.shell import explained, printable
from labeldp.errors import ParameterError
from labeldp.ledger import Budget, Ledger, total_of

__all__ = ["ledger"]

EXAMPLE = "Example:  labeldp ledger budget.jsonl"

BAR = 60


def ledger(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger's file.")],
    as_json: Annotated[bool, typer.Option("--json", help="For scripts: the same as JSON.")] = False,
) -> None:
    """Show what is spent and left in a ledger. It is only read: never created, never repaired.

    Exit code 3 if the file is damaged or was changed.
    """
    with explained():
        if not file.exists():
            raise ParameterError(f"there is no ledger {file}")
        opened = Ledger.open(file, create="never")
        if as_json:
            typer.echo(json.dumps(_data(opened), indent=2, allow_nan=False))
        else:
            _show(opened, Console())


def _show(opened: Ledger, console: Console) -> None:
    charges, limit = opened.charges, opened.limit
    spent = total_of(charges)
    table = Table(box=None, padding=(0, 2, 0, 0))
    deltas = any(charge.budget.delta for charge in charges)
    people = any(charge.rows_per_person > 1 for charge in charges)
    for name, shown in (("when (UTC)", True), ("ε", True), ("δ", deltas), ("rows each", people), ("for", True)):
        if shown:
            table.add_column(name, justify="right" if name in ("ε", "δ", "rows each") else "left")
    for charge in charges:
        cells = [printable(charge.when)[:19].replace("T", " "), rounded_up(charge.budget.epsilon)]
        cells += [rounded_up(charge.budget.delta, 3)] if deltas else []
        cells += [f"{charge.rows_per_person:,}"] if people else []
        table.add_row(*map(Text, [*cells, printable(charge.what, 200)]))
    console.print()
    if charges:
        console.print(table)
        console.print()
    if limit is None:
        console.print(Text(f"Spent {spent} in {_times(len(charges))}. There is no limit.", style="bold"))
        console.print()
        return
    used = _share(spent, limit)
    colour = "red" if used >= 1 else "yellow" if used > 0.8 else "green"
    full = round(BAR * min(1.0, used))
    console.print(Text.assemble(("█" * full, colour), ("░" * (BAR - full), "dim")))
    console.print(Text(f"Spent {spent} of {limit} in {_times(len(charges))}.", style="bold"))
    left = limit.minus(spent)
    console.print(Text("Nothing is left." if left.exact_epsilon == 0 else f"Left: {left}.", style=colour))
    console.print()


def _times(count: int) -> str:
    return "1 charge" if count == 1 else f"{count:,} charges"


def _share(spent: Budget, limit: Budget) -> float:
    """Return the part of the limit that is spent, of ε or δ, whichever is further gone."""
    pairs = [(spent.exact_epsilon, limit.exact_epsilon)]
    if limit.exact_delta:
        pairs.append((spent.exact_delta, limit.exact_delta))
    return max(_part(one, all_of_it) for one, all_of_it in pairs)


def _part(spent: Fraction | None, limit: Fraction | None) -> float:
    if limit is None:
        return 0.0
    return 1.0 if spent is None or limit == 0 else float(spent / limit)


def _data(opened: Ledger) -> dict[str, Any]:
    charges = opened.charges  # read once: others may charge meanwhile
    spent = total_of(charges)
    return {
        "limit": _plain(opened.limit),
        "spent": _plain(spent),
        "left": None if opened.limit is None else _plain(opened.limit.minus(spent)),
        "charges": [{**charge.as_data(), **(_plain(charge.budget) or {})} for charge in charges],
    }


def _plain(budget: Budget | None) -> dict[str, Any] | None:
    if budget is None:
        return None
    return {"epsilon": budget.epsilon if math.isfinite(budget.epsilon) else "infinite", "delta": budget.delta}
