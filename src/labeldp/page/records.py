"""The records of a folder: its ledgers and cards, which ledger paid for which card, and what no ledger counts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from labeldp.cards.reading import ReadCard, read_any_card
from labeldp.errors import LabelDPError
from labeldp.jobs.card_files import read_card_file
from labeldp.jobs.sentences import EXPLAINED
from labeldp.ledger import Charge, Ledger, total_of
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.words import explain_in_page
from labeldp.release.costs import charge_mark


class LedgerView:
    """A ledger as a bar shows it."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name, self.ledger, self.charges, self.limit = name, ledger, ledger.charges, ledger.limit
        self.spent = total_of(self.charges)
        self.left = None if self.limit is None else self.limit.minus(self.spent)

    def share(self, charges: Sequence[Charge] = ()) -> int:
        """Return how many percent of the limit are spent, with further charges."""
        spent, limit = total_of([*self.charges, *charges]).exact_epsilon, self.limit and self.limit.exact_epsilon
        if limit is None:
            return 0
        return 100 if spent is None or not limit else min(100, round(100 * Fraction(spent) / limit))


def view_ledger(folder: ChosenFolder, name: str) -> LedgerView | None:
    """Return a ledger of the folder, or None if there is none yet."""
    path = folder.target(name)
    return LedgerView(name, Ledger.open(path, create="never")) if path.exists() else None


def ledgers_in(folder: ChosenFolder) -> tuple[list[LedgerView], list[str]]:
    """Return all ledgers of the folder, and what is wrong with those that cannot be read."""
    views, troubles = [], []
    for name in folder.ledgers():
        try:
            view = view_ledger(folder, name)
        except LabelDPError as error:
            troubles.append(explain_in_page(error))
        else:
            views += [view] if view is not None else []
    return views, troubles


def label_of(card: ReadCard) -> object:
    """Return the name of the column that a card speaks of, if it says so."""
    return card.content.get("label") if card.kind == "model" else card.content.get("file", {}).get("column")


def ledger_of(card: ReadCard, books: Sequence[LedgerView]) -> LedgerView | None:
    """Return the ledger that paid for a card, or None; of copies the one that counts most."""
    found = [book for book in books if card.terms.charges and not card.costs(book.charges).missing]
    return max(found, key=lambda book: book.spent.epsilon, default=None)


@dataclass(frozen=True)
class Earlier:
    """An earlier release of a column of the same name, which a ledger did not pay for.

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
    known = {charge_mark(charge) for book in books if book.name == ledger for charge in book.charges}
    found, named = [], set()
    for name in folder.cards():
        with suppress(*EXPLAINED):
            card = read_any_card(read_card_file(folder.inside(name))[1])
            marks = set(map(charge_mark, card.terms.charges))
            if label_of(card) == label and marks and not marks <= known:
                book = ledger_of(card, books)
                found.append(Earlier(name, str(card.costs().total), book.name if book else ""))
                named.add(book.name if book else "")
    for book in books:
        after_column = book.name.endswith(f".{name_for_ledger(label)}.ledger.jsonl")
        if book.charges and after_column and book.name not in {*named, ledger}:
            found.append(Earlier(book.name, str(book.spent), book.name))
    return found


def name_for_ledger(label: str) -> str:
    """Return a column's name as a ledger's file is named after it.

    Examples
    --------
    >>> name_for_ledger("net price (€)")
    'net-price----'
    """
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in label)
