"""The files that cards, signatures and keys are in."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from labeldp._atomic import read_regular
from labeldp.accounts.signatures import read_public_key
from labeldp.errors import CardError, ParameterError
from labeldp.mechanisms.card_format import MAX_TEXT

MOST_SMALL = 1 << 14
"""Bytes of the file of a key or a signature; either has less than 1,000."""


def read_card_file(path: Path) -> tuple[Path, str]:
    """Return a card's path and text: of a model's folder, of what has its card beside it, or of a page on a card.

    What is named as cards are is the card itself, whatever lies beside it.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sales.csv.card.json").write_text("{}")
    >>> path, text = read_card_file(folder / "sales.csv")
    >>> path.name, text
    ('sales.csv.card.json', '{}')
    >>> read_card_file(folder / "sales.csv.report.html")[0].name
    'sales.csv.card.json'
    """
    card = path if is_card_name(path.name) else next(filter(os.path.lexists, _cards_of(path)), path)
    if card.is_dir():
        raise ParameterError(f"{path} holds no card.json, and there is no {path.name}.card.json beside it")
    data = read_regular(card, MAX_TEXT)
    if card == path and data.strip() and not data.lstrip().startswith((b"{", b"[")):
        raise CardError(f"{path} is not a card, and there is no {path.name}.card.json beside it")
    try:
        return card, data.decode()
    except UnicodeDecodeError:
        raise CardError(f"{card} is not a card: it is not text") from None


def _cards_of(path: Path) -> list[Path]:
    """Return where the card of a file, a model's folder or a page may be, under the names that cards have."""
    about = path.parent / path.name.removesuffix(".html").removesuffix(".report").removesuffix(".summary")
    cards = [each for one in (path, about) for each in (one / "card.json", one.parent / f"{one.name}.card.json")]
    return [*cards, about.parent / f"{about.name}.json"] if about != path else cards


def is_card_name(name: str) -> bool:
    """Whether a file's name is one that cards have.

    Examples
    --------
    >>> [is_card_name(name) for name in ("card.json", "sales.csv.card.json", "sales.csv")]
    [True, True, False]
    """
    return name == "card.json" or name.endswith(".card.json")


def read_signature(card: Path, given: Path | None) -> str | None:
    """Return the text of a card's signature, which lies beside it; None if it has none."""
    path = given or card.with_name(f"{card.name}.sig")
    if given is None and not os.path.lexists(path):
        return None
    return read_regular(path, MOST_SMALL).decode("ascii", errors="replace")


def read_key(path: Path) -> Ed25519PublicKey:
    """Return the public key in a file; what is wrong with it is said with the file's name."""
    try:
        return read_public_key(read_regular(path, MOST_SMALL))
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def report_path(card: Path, kind: str = "report") -> Path:
    """Return where the report or the summary of a card goes, if no other place is named.

    Examples
    --------
    >>> report_path(Path("sales.csv.card.json")).name
    'sales.csv.report.html'
    """
    return card.with_name(f"{card.name.removesuffix('.json').removesuffix('.card')}.{kind}.html")


def reports_beside(card: Path, kind: str = "report") -> list[Path]:
    """Return where a page on a card may lie: beside it, beside a model's folder, or as a regression's page.

    Examples
    --------
    >>> [path.as_posix() for path in reports_beside(Path("in/homes.model/card.json"))]
    ['in/homes.model/card.report.html', 'in/homes.model.report.html']
    """
    if card.name == "card.json":
        folder = card.parent if card.parent.name else card.parent.absolute()
        return [report_path(card, kind), folder.parent / f"{folder.name}.{kind}.html"]
    page = card.parent / card.name.removesuffix(".card.json")
    return [report_path(card, kind), *([page] if page.suffix == ".html" else [])]
