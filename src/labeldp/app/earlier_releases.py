"""Ledgers that paid for the same labels before: a table may have got another name, and another ledger with it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from labeldp.accounts.budget import missing_charges
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.reading import ReadCard, read_any_card
from labeldp.app.card_files import read_card_file
from labeldp.app.sentences import EXPLAINED


def label_of(card: ReadCard) -> str | None:
    """Return the name of the private column, if a card says it."""
    label: str | None = card.content.get("file", {}).get("column", card.content.get("label"))
    return label


def ledgers_elsewhere(
    ledger: Ledger,
    ledgers: Iterable[Path],
    cards: Iterable[Path],
    label: str,
    names: Collection[str],
    rows: int = 0,
) -> dict[Path, Path]:
    """Return other ledgers that paid for releases of what may be the same labels, each with the card of one.

    Only what cards say is compared, and all of it is public: the name of the private column, the number of rows,
    and the names of public columns, which a regression's card does not say.

    Parameters
    ----------
    ledger : Ledger
        The one that is about to be charged.
    ledgers, cards : iterables of paths
        Those beside it.
    label : str
        The private column.
    names : collection of str
        The columns of the table.
    rows : int
        How many rows have a label, where that is known.
    """
    books = dict[Path, Ledger]()
    for path in ledgers:
        with suppress(*EXPLAINED):
            if _is_ledger(path):
                books[path] = Ledger.open(path, create="never")
    found = dict[Path, Path]()
    for path in cards if any(book.charges for book in books.values()) else ():
        with suppress(*EXPLAINED):
            text = read_card_file(path)[1]
            card = read_any_card(text) if json.dumps(label) in text else None
            if card is not None and label_of(card) == label and _may_be_same(card, names, rows):
                charges = card.terms.charges
                paid = [each for each, book in books.items() if not missing_charges(charges, book.charges)]
                if missing_charges(charges, ledger.charges):
                    found = dict.fromkeys(paid, path) | found  # the first card of each
    return found


def _is_ledger(path: Path) -> bool:
    """Whether a file begins as ledgers do: others are not locked."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b"labeldp.ledger/" in file.read(1000).partition(b"\n")[0]


def _may_be_same(card: ReadCard, names: Collection[str], rows: int) -> bool:
    """Whether a card may be of a table with these columns, or this number of rows."""
    split, content = card.terms.split, card.content
    stated = card.terms.rows if split is None else split.train_rows + split.test_rows
    columns = content.get("file", {}).get("columns", content.get("features", ()))
    return stated == rows or "regression" in content or {*columns} <= {*names}
