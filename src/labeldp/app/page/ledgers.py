"""The ledgers of a folder: what they spent, which paid for which card, and what a ledger does not count."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from labeldp.accounts.budget import Charge, total_of, unmatched
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.reading import ReadCard, read_any_card
from labeldp.app.card_files import read_card_file
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.messages import collect_problem
from labeldp.app.sentences import EXPLAINED


class LedgerView:
    """A ledger as a bar shows it."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name, self.ledger, self.charges, self.limit = name, ledger, ledger.charges, ledger.limit
        self.spent = total_of(self.charges)
        self.left = None if self.limit is None else self.limit.minus(self.spent)

    def share(self, *charges: Charge) -> int:
        """Return how many percent of the limit are spent, with further charges."""
        limit = 0.0 if self.limit is None else self.limit.epsilon
        spent = total_of([*self.charges, *charges]).epsilon
        return min(100, round(100 * spent / limit)) if limit else 100


def view_ledger(folder: ChosenFolder, name: str) -> LedgerView | None:
    """Return a ledger of the folder, or None if there is none yet."""
    path = folder.target(name)
    return LedgerView(name, Ledger.open(path, create="never")) if path.exists() else None


def ledgers_in(folder: ChosenFolder) -> tuple[list[LedgerView], dict[str, str]]:
    """Return all ledgers of the folder, and what is wrong with those that cannot be read."""
    books, problems = [], dict[str, str]()
    for name in folder.ledgers():
        with collect_problem(problems, name):
            books += [book] if (book := view_ledger(folder, name)) else []
    return books, problems


def label_of(card: ReadCard) -> object:
    """Return the name of the column that a card is about, if it says so."""
    return card.content.get("label") if card.kind == "model" else card.content.get("file", {}).get("column")


def ledger_of(card: ReadCard, books: Sequence[LedgerView]) -> LedgerView | None:
    """Return the ledger that paid for a card, or None; of copies the one that counts most."""
    found = [book for book in books if card.terms.charges and not unmatched(card.terms.charges, book.charges)]
    return max(found, key=lambda book: book.spent.epsilon, default=None)


@dataclass(frozen=True)
class Earlier:
    """An earlier release of a column of the same name, which a ledger does not count.

    Attributes
    ----------
    name : str
        Its card, or a ledger that has charges and is named after the column.
    cost : str
    ledger : str
        The ledger of the folder that paid for it; empty if none did.
    """

    name: str
    cost: str
    ledger: str


def earlier_releases(folder: ChosenFolder, label: str, ledger: str) -> list[Earlier]:
    """Return releases of a column of this name that a ledger does not count: those of other ledgers, and of none.

    Whether they are of the same people, only the owner knows.
    """
    books, _ = ledgers_in(folder)
    counted = {charge.key for book in books if book.name == ledger for charge in book.charges}
    found = list[Earlier]()
    for name in folder.cards():
        with suppress(*EXPLAINED):
            card = read_any_card(read_card_file(folder.inside(name))[1])
            keys = {charge.key for charge in card.terms.charges}
            if label_of(card) == label and keys and not keys <= counted:
                book = ledger_of(card, books)
                found.append(Earlier(name, str(total_of(card.terms.charges)), book.name if book else ""))
    named = {ledger, *(each.ledger for each in found)}
    ending = f".{name_for_ledger(label)}.ledger.jsonl"
    others = [book for book in books if book.charges and book.name.endswith(ending) and book.name not in named]
    return [*found, *(Earlier(book.name, str(book.spent), book.name) for book in others)]


def name_for_ledger(label: str) -> str:
    """Return a column's name as a ledger's file is named after it.

    Examples
    --------
    >>> name_for_ledger("net price (€)")
    'net-price----'
    """
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in label)
