"""``labeldp ledger``: the budget that is spent, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.table import Table
from typer import Argument

from labeldp.accounts.budget import Charge, rounded_up, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.app.cli.commands import command
from labeldp.app.cli.shell import PlainConsole, print_result
from labeldp.app.sentences import counted, printable
from labeldp.errors import ParameterError


@command("Check", "budget.jsonl")
def ledger(ledgers: Annotated[list[Path], Argument(metavar="LEDGER...", help="Ledger files.")]) -> None:
    """Show the spent and the remaining budget of ledgers, by intended use and recipient. They are only read.

    Exit code 3 if a file is damaged or was changed.

    Releases: nothing. A ledger lists costs, times and descriptions, and no label.
    """
    for file in ledgers:
        if not file.exists():
            raise ParameterError(f"there is no ledger {file}")
    books = [Ledger.open(file, create=False) for file in ledgers]
    charges = [charge for book in books for charge in book.charges]
    if len(books) == 1:
        _print_charges(charges)
    _print_sums(charges, always=len(books) > 1)
    total, limit = total_of(charges), books[0].limit
    if len(books) > 1:
        note = f"Spent {total} in {len(books)} ledgers, for someone whose labels are in all of them."
    elif limit is None:
        note = f"Spent {total} in {counted(len(charges), 'charge')}. There is no limit."
    else:
        remaining = limit.minus(total)
        balance = "Nothing is left." if remaining.exact_epsilon == 0 else f"Left: {remaining}."
        note = f"Spent {total} of {limit} in {counted(len(charges), 'charge')}. {balance}"
    print_result(f"\n{note}\n", style="bold")


def _print_charges(charges: Sequence[Charge]) -> None:
    rows = []
    for charge in charges:
        time = charge.when[:19].replace("T", " ")
        rows.append([time, rounded_up(charge.budget.epsilon), charge.rows_per_person, charge.description])
    _print_table(["when (UTC)", "ε", "rows a person", "for"], rows)


def _print_sums(charges: Sequence[Charge], *, always: bool) -> None:
    """Print sums by intended use and recipient; without ``always`` only where a charge states one of them."""
    groups = dict[tuple[str, str], list[Charge]]()
    for charge in charges:
        declaration = charge.declaration
        group = (declaration.intended_use or "not stated", declaration.recipient or "not stated")
        groups.setdefault(group, []).append(charge)
    if always or set(groups) - {("not stated", "not stated")}:
        rows = [
            [*group, rounded_up(total_of(members).epsilon), len(members)]
            for group, members in sorted(groups.items())
        ]
        _print_table(["intended use", "recipient", "ε", "charges"], rows)


def _print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table without lines, if it has rows; figures stand on the right of their columns."""
    if not rows:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in header:
        table.add_column(name, justify="right" if name in ("ε", "rows a person", "charges") else "left")
    for row in rows:
        table.add_row(*(printable(cell, 200) for cell in row))
    PlainConsole().print("", table, sep="\n")
