"""``labeldp ledger``: the budget that is spent and the rest; extracts, copies, and the charges on cards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from labeldp.accounts.budget import Charge, missing_charges, rounded_up, sum_of, total_of
from labeldp.accounts.card import Card
from labeldp.accounts.ledger import Ledger, open_book
from labeldp.accounts.ledger_chain import Book
from labeldp.accounts.ledger_file import restore_ledger
from labeldp.accounts.ledger_totals import describe_totals
from labeldp.app.card_files import cards_in, is_card_name, read_card_file
from labeldp.app.cli.commands import command
from labeldp.app.cli.shell import EXIT, print_result, print_status, print_table
from labeldp.app.options import Force
from labeldp.app.sentences import counted
from labeldp.errors import LabelDPError, ParameterError, Setting

_copies = "Copies"


@command("Check", "budget.db")
def ledger(
    ledgers: Annotated[list[Path], Argument(metavar="LEDGER...", help="Ledgers, or extracts of ledgers.")],
    extract: Annotated[
        bool, Option("--json", help="Write the extract for a reviewer: all charges, chained by hashes.")
    ] = False,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="PAGE", help="Write the ledger over time as an HTML page.")
    ] = None,
    cards: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="List charges on the cards of a folder that the ledger lacks."),
    ] = None,
    withdraw: Annotated[
        str | None,
        Option(metavar="PERSON", help="Use the labels of this person in no further release; past charges stay."),
    ] = None,
    backup: Annotated[
        Path | None, Option(help="Write a copy of the ledger to this file.", rich_help_panel=_copies)
    ] = None,
    restore: Annotated[
        Path | None,
        Option(
            help="Put this copy in the ledger's place, where it is missing or damaged.", rich_help_panel=_copies
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Show the spent and the remaining budget of ledgers, by intended use and recipient.

    They are only read, but for --withdraw and --restore.

    Exit code 3 if a file is damaged or was changed, or lacks charges that a card has. A copy that was put back
    lacks the charges made since: --cards finds those that have a card.

    Releases: nothing. A ledger lists costs, times and descriptions, and no label.
    """
    if restore is not None:
        _restore(_only(ledgers, "restore"), restore)
    for file in ledgers:
        if not file.exists():
            raise ParameterError(f"there is no ledger {file}")
        if is_card_name(file.name):
            raise ParameterError(f"{file} is a card, and no ledger: see its charges with labeldp explain")
    if backup is not None:
        _back_up(_only(ledgers, "backup"), backup, force=force)
    elif withdraw is not None:
        _withdraw(_only(ledgers, "withdraw"), withdraw)
    elif extract:
        typer.echo(open_book(_only(ledgers, "json")).to_extract())
    elif out is not None:
        _write_page(_only(ledgers, "out"), out, force=force)
    elif cards is not None:
        _compare_cards(cards, [charge for book in _open_all(ledgers) for charge in book.charges])
    else:
        _show(_open_all(ledgers))


def _only(ledgers: Sequence[Path], option: str) -> Path:
    """Return the only ledger."""
    if len(ledgers) > 1:
        raise ParameterError(Setting(option), " is for one ledger: name one")
    return ledgers[0]


def _open_all(ledgers: Sequence[Path]) -> list[Book]:
    """Return several ledgers; a copy of one would count its charges twice."""
    books: dict[object, Book] = {}
    for file in ledgers:
        book = open_book(file)
        origin = book.rules.id, *book.charges[:1]  # a ledger in memory has no id
        if (other := books.setdefault(origin, book)) is not book:
            raise ParameterError(
                f"{file} and {other.path} are one ledger, whose charges would count twice: name one"
            )
    return list(books.values())


def _back_up(ledger: Path, copy: Path, *, force: bool) -> None:
    Ledger.open(ledger, create=False).backup(copy, force=force)
    print_status(f"The copy is in {copy}")
    key = Path(f"{ledger}.key")
    if key.exists():
        print_status(f"It has ids under the key {key}: keep a copy of that too, in another place.")


def _withdraw(file: Path, person: str) -> None:
    """Withdraw a person, whose id is text or an integer as in the ledger."""
    ledger = Ledger.open(file, create=False)
    is_number = ledger.chain.ids.get("person") == "integer" and re.fullmatch("-?[0-9]{1,18}", person, re.ASCII)
    ledger.withdraw(int(person) if is_number else person)
    print_status("Withdrawn: no further release uses the labels of this person. Past charges stay.")


def _write_page(ledger: Path, page: Path, *, force: bool) -> None:
    from labeldp.app.report import render_ledger, write_page

    write_page(page, render_ledger(open_book(ledger)), force=force, subject=ledger)
    print_status(f"The page is {page}")


def _restore(ledger: Path, copy: Path) -> None:
    aside = restore_ledger(ledger, copy)
    print_status(f"The copy is now the ledger {ledger}. Charges made since are not in it:")
    print_status(f"labeldp ledger {ledger} --cards FOLDER finds those of cards.")
    if aside is not None:
        print_status(f"The file before is {aside}")


def _compare_cards(folder: Path, recorded: Sequence[Charge]) -> None:
    """List charges that are on cards of a folder and not in the ledger; exit with a code if there are some."""
    if not folder.is_dir():
        raise ParameterError(Setting("cards"), f" must be a folder, got {folder}")
    cards, compared = dict[tuple[Charge, str | None], Path](), 0
    for path in cards_in(folder):
        try:
            card = Card.parse(read_card_file(path)[1])
        except (LabelDPError, OSError) as error:
            print_status(f"{path} was not compared: {error}", style="yellow")
            continue
        compared += 1
        for charge in card.terms.charges:
            cards.setdefault((charge, charge.mechanism), path.relative_to(folder))  # files of one release
    missing = missing_charges((charge for charge, _ in cards), recorded)
    rows = [[*_when_and_cost(charge), charge.description, cards[charge, charge.mechanism]] for charge in missing]
    print_table(["when (UTC)", "ε", "for", "card"], rows)
    count = counted(compared, "card")
    if missing:
        lacks = f"The ledger lacks {counted(len(missing), 'charge')}, {sum_of(missing)}"
        print_result(f"\n{lacks}, of {count}. Another ledger may have them.\n", style="bold red")
        raise typer.Exit(EXIT["ledger"])
    print_result(f"\nThe ledger has all charges of {count}.\n", style="bold")


def _show(books: Sequence[Book]) -> None:
    """Print charges and sums."""
    charges = [charge for book in books for charge in book.charges]
    if len(books) == 1:
        _print_charges(charges)
    print_sums(charges, several=len(books) > 1)
    total, limit = reduce(add, (book.total for book in books)), books[0].limit
    if len(books) > 1:
        note = f"Spent {total} in {len(books)} ledgers, for someone whose labels are in all of them."
    elif limit is None:
        note = f"Spent {total} in {counted(len(charges), 'charge')}. There is no limit."
    else:
        remaining = limit.minus(total)
        balance = "Nothing is left." if remaining.exact_epsilon == 0 else f"Left: {remaining}."
        note = f"Spent {total} of {limit} in {counted(len(charges), 'charge')}. {balance}"
    print_result(f"\n{note}\n", style="bold")
    for sentence in describe_totals(books[0].chain) if len(books) == 1 else ():
        print_result(sentence)


def _when_and_cost(charge: Charge) -> list[str]:
    return [charge.when[:19].replace("T", " "), rounded_up(charge.budget.epsilon)]


def _print_charges(charges: Sequence[Charge]) -> None:
    rows = [[*_when_and_cost(charge), charge.rows_per_person, charge.description] for charge in charges]
    header = ["when (UTC)", "ε", "rows a person", "for"]
    if any(charge.segments for charge in charges):
        header.insert(3, "segment")
        for row, charge in zip(rows, charges, strict=True):
            row.insert(3, charge.segments or "all")
    print_table(header, rows)


def print_sums(charges: Sequence[Charge], *, several: bool) -> None:
    """Print totals by intended use and recipient: of several ledgers, or where a charge states one of them."""
    total = sum_of if several else total_of
    groups = dict[tuple[str, str], list[Charge]]()
    for charge in charges:
        declaration = charge.declaration
        group = (declaration.intended_use or "not stated", declaration.recipient or "not stated")
        groups.setdefault(group, []).append(charge)
    if several or set(groups) - {("not stated", "not stated")}:
        rows = [
            [*group, rounded_up(total(members).epsilon), len(members)] for group, members in sorted(groups.items())
        ]
        print_table(["intended use", "recipient", "ε", "charges"], rows)
