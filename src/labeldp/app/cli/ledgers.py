"""``labeldp ledger``: what is spent and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from labeldp.accounts.budget import Budget, rounded_up, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.app.cli import command
from labeldp.app.cli.shell import PlainConsole, finite, print_json
from labeldp.app.option import REQUIRED
from labeldp.app.sentences import printable
from labeldp.errors import ParameterError
from labeldp.mechanisms.typed_data import plain

BAR = 60
"""Characters of the bar that shows how much of a limit is spent."""


@command("file", "as_json", file={"default": REQUIRED, "help": "A ledger's file."})
def ledger(file: Path, as_json: bool) -> None:
    """Show what is spent and left in a ledger. It is only read: never created, never repaired.

    Exit code 3 if the file is damaged or was changed.

    What is released: nothing. A ledger lists costs, times and what was released, and no label.
    """
    if not file.exists():
        raise ParameterError(f"there is no ledger {file}")
    opened = Ledger.open(file, create="never")
    charges, limit = opened.charges, opened.limit  # read once: others may charge meanwhile
    spent = total_of(charges)
    left = None if limit is None else limit.minus(spent)
    if as_json:
        listed = [{**plain(charge), **_amounts(charge.budget)} for charge in charges]
        amounts = {"limit": limit, "spent": spent, "left": left}
        print_json(charges=listed, **{name: amount and _amounts(amount) for name, amount in amounts.items()})
        return
    columns = {
        "when (UTC)": [printable(charge.when)[:19].replace("T", " ") for charge in charges],
        "ε": [rounded_up(charge.budget.epsilon) for charge in charges],
        "δ": [rounded_up(charge.budget.delta, 3) for charge in charges],
        "rows each": [f"{charge.rows_per_person:,}" for charge in charges],
        "for": [printable(charge.what, 200) for charge in charges],
    }
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, justify="left" if name in ("when (UTC)", "for") else "right")
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, cells))
    lines: list[Any] = ["", table, ""] if charges else [""]
    times = "1 charge" if len(charges) == 1 else f"{len(charges):,} charges"
    if limit is None or left is None:
        lines.append(Text(f"Spent {spent} in {times}. There is no limit.", "bold"))
    else:
        share = _share(spent, limit)
        colour = "red" if share >= 1 else "yellow" if share > 0.8 else "green"
        full = round(BAR * min(1.0, share))
        lines += [
            Text.assemble(("█" * full, colour), ("░" * (BAR - full), "dim")),
            Text(f"Spent {spent} of {limit} in {times}.", "bold"),
            Text("Nothing is left." if left.exact_epsilon == 0 else f"Left: {left}.", colour),
        ]
    console = PlainConsole()
    for line in (*lines, ""):
        console.print(line)


def _share(spent: Budget, limit: Budget) -> float:
    """Return the part of the limit that is spent, of ε or δ, whichever is further gone."""
    if spent.exact_epsilon >= limit.exact_epsilon:
        return 1.0
    delta = float(spent.exact_delta / limit.exact_delta) if limit.exact_delta else 0.0
    return max(float(spent.exact_epsilon / limit.exact_epsilon), delta)


def _amounts(budget: Budget) -> dict[str, float | str]:
    return {"epsilon": finite(budget.epsilon), "delta": budget.delta}
