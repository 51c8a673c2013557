"""Finding and reading the card that a command is given."""

from __future__ import annotations

from pathlib import Path

from labeldp.errors import CardError

__all__ = ["read_card_file"]


def read_card_file(path: Path) -> tuple[Path, str]:
    """Return a card's path and text; for a folder of a model, or a file with its card beside it, of that card.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sales.csv.card.json").write_text("{}")
    >>> found, text = read_card_file(folder / "sales.csv")
    >>> found.name, text
    ('sales.csv.card.json', '{}')
    """
    beside = path / "card.json" if path.is_dir() else path.with_name(f"{path.name}.card.json")
    found = beside if beside.is_file() else path
    try:
        return found, found.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CardError(f"{found} is no card: it is not text") from None
