"""The releases of a folder: their cards, whether they hold, what they cost, and which ledger paid."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from starlette.requests import Request
from starlette.responses import Response

from labeldp.accounts.budget import total_of
from labeldp.accounts.reading import ReadCard
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.card_check import verify_files
from labeldp.app.card_files import read_card_file, read_signature
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.ledgers import label_of, ledgers_in
from labeldp.app.page.messages import CHARGES
from labeldp.app.page.site import show, site_of
from labeldp.app.sentences import EXPLAINED, printable

MOST_CHECKED = 20
"""So many of the newest cards are compared with their files in the list; all others, when they are opened."""

MOST_BYTES = 1 << 25
"""Of a file that is compared with its card in the list."""


@dataclass(frozen=True)
class Listed:
    """A past release in the list."""

    name: str
    what: str
    cost: str
    when: str
    state: str
    is_signed: bool
    charges: Sequence[tuple[object, ...]]


def releases_page(request: Request) -> Response:
    """List the cards and the ledgers of the folder."""
    folder = site_of(request).folder
    cards = [_listed(folder, name, is_new=place < MOST_CHECKED) for place, name in enumerate(folder.cards())]
    books, problems = ledgers_in(folder)
    paid = {key: card.name for card in cards for key in card.charges}
    ledgers = [(book, [paid.get(charge.key, "") for charge in book.charges]) for book in books]
    return show(request, "releases", cards=cards, ledgers=ledgers, problems=problems, charges=CHARGES)


def _listed(folder: ChosenFolder, name: str, *, is_new: bool) -> Listed:
    """Return a card as it is listed; it is read and proven once."""
    path = folder.inside(name)
    is_signed = signature_of(folder, path) is not None
    card, state = None, "does not hold"
    with suppress(*EXPLAINED):
        text = read_card_file(path)[1]
        verification = verify_card(text)
        card, state = verification.card, verification.verdict
    if card is None:
        return Listed(name, "a card that cannot be read", "", "", state, is_signed, ())
    is_small = (folder.plain_size(released_file(path, card)) or 0) <= MOST_BYTES
    state = "not checked yet"
    if is_new and is_small:
        state = verified(folder, path, text, verification=verification).verdict
    kind = {"model": "a model", "mechanism": "a mechanism"}.get(card.kind, "private labels")
    charges, label = card.terms.charges, label_of(card)
    return Listed(
        name,
        f"{kind} of {printable(label, 60)}" if label else kind,
        str(total_of(charges)) if charges else "",
        printable(max((charge.when for charge in charges), default=""))[:16].replace("T", " "),
        state,
        is_signed,
        [charge.key for charge in charges],
    )


def released_file(card_path: Path, card: ReadCard) -> Path:
    """Return where the table or the model is that a card is about, if it is beside it."""
    folder = card_path.parent
    return folder if card.kind == "model" else folder / card.content.get("file", {}).get("name", "None")


def signature_of(folder: ChosenFolder, card_path: Path) -> Path | None:
    """Return the plain file of a card's signature, if it has one."""
    path = card_path.with_name(f"{card_path.name}.sig")
    return None if folder.plain_size(path) is None else path


def verified(
    folder: ChosenFolder,
    path: Path,
    text: str,
    trusted: Sequence[Ed25519PublicKey] = (),
    verification: Verification | None = None,
) -> Verification:
    """Check a card, read once, and compare it with what is beside it as plain files."""
    verification = verification or verify_card(text)
    signature, card = signature_of(folder, path), verification.card
    is_beside = card is not None and folder.plain_size(released_file(path, card)) is not None
    return verify_files(
        text,
        folder=path.parent if is_beside else None,
        signature=None if signature is None else read_signature(path, signature),
        trusted=trusted,
        verification=verification,
    )
