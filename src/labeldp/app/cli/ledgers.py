"""``labeldp ledger``: what is spent and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from labeldp.accounts.budget import Budget, Charge, rounded_up, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.app.cli import command
from labeldp.app.cli.shell import PlainConsole, tell
from labeldp.app.sentences import counted, printable
from labeldp.errors import ParameterError


@command("ledgers")
def ledger(ledgers: list[Path]) -> None:
    """Show what is spent and left in a ledger, or in several, by purpose and recipient. They are only read.

    Exit code 3 if a file is damaged or was changed.

    What is released: nothing. A ledger lists costs, times and what was released, and no label.
    """
    for file in ledgers:
        if not file.exists():
            raise ParameterError(f"there is no ledger {file}")
    opened = [Ledger.open(file, create=False) for file in ledgers]
    charges = [charge for one in opened for charge in one.charges]
    spent, limit = total_of(charges), opened[0].limit
    sums = dict[tuple[str, str], list[Charge]]()
    for charge in charges:
        said = charge.declaration
        sums.setdefault((said.purpose or "not stated", said.recipient or "not stated"), []).append(charge)
    console = PlainConsole()
    if len(opened) == 1:
        times = (
            [each.when[:19].replace("T", " "), _amount(each.budget), each.rows_per_person] for each in charges
        )
        rows = [[*cells, each.description] for cells, each in zip(times, charges, strict=True)]
        _show(console, ["when (UTC)", "ε", "rows each", "for"], rows)
    if len(opened) == 1 and set(sums) <= {("not stated", "not stated")}:
        sums = {}
    by = [[*said, _amount(total_of(each)), len(each)] for said, each in sorted(sums.items())]
    _show(console, ["purpose", "recipient", "ε", "charges"], by)
    note = f"Spent {spent}{f' of {limit}' if limit else ''} in {counted(len(charges), 'charge')}. "
    if len(opened) > 1:
        note = f"Spent {spent} in {len(opened)} ledgers, for someone whose labels are in all of them."
    elif limit is None:
        note += "There is no limit."
    else:
        left = limit.minus(spent)
        note += "Nothing is left." if left.exact_epsilon == 0 else f"Left: {left}."
    tell(console, f"\n{note}\n", style="bold")


def _amount(budget: Budget) -> str:
    return rounded_up(budget.epsilon)


def _show(console: Console, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table without lines, if it has rows; figures stand on the right of their columns."""
    if not rows:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in header:
        table.add_column(name, justify="right" if name in ("ε", "rows each", "charges") else "left")
    for row in rows:
        table.add_row(*(printable(cell, 200) for cell in row))
    console.print("", table, sep="\n")
