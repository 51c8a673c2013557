"""``labeldp ledger``: what is spent and what is left."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from labeldp._values import Data
from labeldp.accounts.budget import Budget, Charge, rounded_up, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.app.cli import command
from labeldp.app.cli.shell import PlainConsole, finite, print_json
from labeldp.app.sentences import counted, printable
from labeldp.errors import ParameterError
from labeldp.mechanisms.typed_data import plain

BAR = 60
"""Characters of the bar that shows how much of a limit is spent."""


@command("ledgers", "as_json")
def ledger(ledgers: list[Path], as_json: bool) -> None:
    """Show what is spent and left in a ledger, or in several, by purpose and recipient. They are only read.

    Exit code 3 if a file is damaged or was changed.

    What is released: nothing. A ledger lists costs, times and what was released, and no label.
    """
    for file in ledgers:
        if not file.exists():
            raise ParameterError(f"there is no ledger {file}")
    opened = [Ledger.open(file, create="never") for file in ledgers]
    charges = [one.charges for one in opened]  # read once: others may charge meanwhile
    sums = _by_declaration(charges)
    if len(ledgers) > 1:
        _show_several(ledgers, charges, sums, as_json=as_json)
    else:
        _show_one(opened[0].limit, charges[0], sums, as_json=as_json)


Sums = dict[tuple[str, str], list[Charge]]
_FIGURES = ("ε", "δ", "rows each", "charges")


def _by_declaration(ledgers: list[tuple[Charge, ...]]) -> Sums:
    """Return the charges of all ledgers by purpose and recipient, those without either last."""
    sums: Sums = {}
    for charge in chain.from_iterable(ledgers):
        said = charge.declaration
        sums.setdefault((said.purpose or "", said.recipient or ""), []).append(charge)
    return dict(sorted(sums.items(), key=lambda item: (item[0] == ("", ""), item[0])))


def _sums_data(sums: Sums) -> list[Data]:
    return [
        {"purpose": purpose or None, "recipient": recipient or None, **_amounts(total_of(charges))}
        for (purpose, recipient), charges in sums.items()
    ]


def _table(*names: str) -> Table:
    """Return a table without lines; figures stand on the right of their columns."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, justify="right" if name in _FIGURES else "left")
    return table


def _sums_table(sums: Sums) -> Table:
    table = _table("purpose", "recipient", "ε", "δ", "charges")
    for said, charges in sums.items():
        names = [printable(text or "not stated", 60) for text in said]
        table.add_row(*names, *_shown(total_of(charges)), f"{len(charges):,}")
    return table


def _shown(budget: Budget) -> tuple[str, str]:
    return rounded_up(budget.epsilon), rounded_up(budget.delta, 3)


def _show_several(files: list[Path], charges: list[tuple[Charge, ...]], sums: Sums, *, as_json: bool) -> None:
    totals = [total_of(each) for each in charges]
    spent = sum(totals, Budget(0))
    if as_json:
        listed = [{"ledger": str(file), **_amounts(total)} for file, total in zip(files, totals, strict=True)]
        print_json(ledgers=listed, by=_sums_data(sums), spent=_amounts(spent))
        return
    console = PlainConsole()
    note = f"Spent {spent} in {len(files)} ledgers, for someone whose labels are in all of them."
    for line in ("", _sums_table(sums), "", Text(note, "bold"), ""):
        console.print(line)


def _show_one(limit: Budget | None, charges: tuple[Charge, ...], sums: Sums, *, as_json: bool) -> None:
    spent = total_of(charges)
    left = None if limit is None else limit.minus(spent)
    if as_json:
        listed = [
            {**plain(charge), "declaration": plain(charge.declaration), **_amounts(charge.budget)}
            for charge in charges
        ]
        amounts = {"limit": limit, "spent": spent, "left": left}
        shown = {name: amount and _amounts(amount) for name, amount in amounts.items()}
        print_json(charges=listed, by=_sums_data(sums), **shown)
        return
    lines: list[Any] = [""]
    if charges:
        table = _table("when (UTC)", "ε", "δ", "rows each", "for")
        for charge in charges:
            when, people = printable(charge.when)[:19].replace("T", " "), f"{charge.rows_per_person:,}"
            table.add_row(when, *_shown(charge.budget), people, printable(charge.what, 200))
        lines += [table, ""]
    if any(any(names) for names in sums):
        lines += [_sums_table(sums), ""]
    times = counted(len(charges), "charge")
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
