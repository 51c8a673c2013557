"""Finding and reading the card that a command is given."""

from __future__ import annotations

import sys
from pathlib import Path

from labeldp.card_format import MAX_TEXT
from labeldp.errors import CardError, ParameterError

__all__ = ["read_card_file"]


def read_card_file(path: Path) -> tuple[Path, str]:
    """Return a card's path and text; for a model's folder, or what has its card beside it, of that card.

    ``-`` is standard input.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sales.csv.card.json").write_text("{}")
    >>> path, text = read_card_file(folder / "sales.csv")
    >>> path.name, text
    ('sales.csv.card.json', '{}')
    """
    if path == Path("-"):
        return path, _decode(sys.stdin.buffer.read(MAX_TEXT + 1), "standard input")
    beside = path.parent / f"{path.name}.card.json"
    inside = path / "card.json"
    card = inside if inside.is_file() else beside if beside.is_file() else path
    if not card.exists():
        raise ParameterError(f"there is no file {card}")
    if card.is_dir():
        raise ParameterError(f"{path} holds no card.json, and there is no {beside.name} beside it")
    with open(card, "rb") as stream:
        data = stream.read(MAX_TEXT + 1)
    if card == path and data.strip() and not data.lstrip().startswith((b"{", b"[")):
        raise CardError(f"{path} is not a card, and there is no {beside.name} beside it")
    return card, _decode(data, str(card))


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CardError(f"{name} is not a card: it is not text") from None
