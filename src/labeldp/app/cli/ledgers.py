"""``labeldp ledger``: what is spent and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from labeldp._values import Data
from labeldp.accounts.budget import Budget, Charge, rounded_up, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.app.cli import command
from labeldp.app.cli.shell import PlainConsole, finite, print_json, tell
from labeldp.app.sentences import counted, printable
from labeldp.errors import ParameterError
from labeldp.mechanisms.typed_data import plain


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
    everything = [charge for each in charges for charge in each]
    sums, spent = _by_declaration(everything), total_of(everything)
    by = [
        {"purpose": purpose or None, "recipient": recipient or None, **_amounts(total_of(each))}
        for (purpose, recipient), each in sums.items()
    ]
    if len(ledgers) > 1:
        if as_json:
            totals = [
                {"ledger": str(file), **_amounts(total_of(each))}
                for file, each in zip(ledgers, charges, strict=True)
            ]
            print_json(ledgers=totals, by=by, spent=_amounts(spent))
            return
        note = f"Spent {spent} in {len(ledgers)} ledgers, for someone whose labels are in all of them."
        _show([_sums_table(sums)], note)
        return
    limit = opened[0].limit
    left = None if limit is None else limit.minus(spent)
    if as_json:
        listed = [
            {**plain(charge), "declaration": plain(charge.declaration), **_amounts(charge.budget)}
            for charge in everything
        ]
        amounts = {"limit": limit, "spent": spent, "left": left}
        print_json(charges=listed, by=by, **{name: one and _amounts(one) for name, one in amounts.items()})
        return
    tables = [_charges_table(everything)] if everything else []
    if any(any(names) for names in sums):
        tables.append(_sums_table(sums))
    note = f"Spent {spent}{f' of {limit}' if limit else ''} in {counted(len(everything), 'charge')}. "
    if left is None:
        note += "There is no limit."
    else:
        note += "Nothing is left." if left.exact_epsilon == 0 else f"Left: {left}."
    _show(tables, note)


def _amounts(budget: Budget) -> dict[str, float | str]:
    return {"epsilon": finite(budget.epsilon), "delta": budget.delta}


Sums = dict[tuple[str, str], list[Charge]]


def _by_declaration(charges: list[Charge]) -> Sums:
    """Return charges by purpose and recipient, those without either last."""
    sums: Sums = {}
    for charge in charges:
        said = charge.declaration
        sums.setdefault((said.purpose or "", said.recipient or ""), []).append(charge)
    return dict(sorted(sums.items(), key=lambda item: (item[0] == ("", ""), item[0])))


def _sums_table(sums: Sums) -> Table:
    rows: list[Data] = []
    for (purpose, recipient), charges in sums.items():
        said = {"purpose": purpose or "not stated", "recipient": recipient or "not stated"}
        rows.append(said | _shown(total_of(charges)) | {"charges": f"{len(charges):,}"})
    return _table(rows)


def _charges_table(charges: list[Charge]) -> Table:
    rows: list[Data] = []
    for charge in charges:
        when, people = charge.when[:19].replace("T", " "), f"{charge.rows_per_person:,}"
        rows.append({"when (UTC)": when} | _shown(charge.budget) | {"rows each": people, "for": charge.what})
    return _table(rows)


def _shown(budget: Budget) -> Data:
    return {"ε": rounded_up(budget.epsilon), "δ": rounded_up(budget.delta, 3)}


def _table(rows: list[Data]) -> Table:
    """Return a table without lines; figures stand on the right of their columns."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in rows[0]:
        table.add_column(name, justify="right" if name in ("ε", "δ", "rows each", "charges") else "left")
    for row in rows:
        table.add_row(*(printable(text, 200) for text in row.values()))
    return table


def _show(tables: list[Any], note: str) -> None:
    console = PlainConsole()
    for table in tables:
        console.print("", table, sep="\n")
    tell(console, f"\n{note}\n", style="bold")
