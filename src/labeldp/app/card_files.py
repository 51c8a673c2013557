"""The files that cards and reports are in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from labeldp._atomic import read_regular
from labeldp.errors import CardError, ParameterError
from labeldp.mechanisms.card_format import MAX_TEXT

KINDS: tuple[Literal["report", "summary"], ...] = ("report", "summary")
"""Pages that ``labeldp report`` writes."""


def read_card_file(path: Path) -> tuple[Path, str]:
    """Return a card's path and text: of a model's folder, of a file with its card beside it, or of a card itself.

    A file named as cards are is the card itself, whatever lies beside it. A report is refused: it is no evidence.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sales.csv.card.json").write_text("{}")
    >>> path, text = read_card_file(folder / "sales.csv")
    >>> path.name, text
    ('sales.csv.card.json', '{}')
    >>> read_card_file(folder / "sales.csv.report.html")
    Traceback (most recent call last):
    ...
    labeldp.errors.ParameterError: sales.csv.report.html is a report, and a report is not evidence: verify ...
    """
    card, candidates = path, [path / "card.json", Path(f"{path}.card.json")]
    if not is_card_name(path.name):
        card = next(filter(os.path.lexists, candidates), path)
    if card == path and path.suffix == ".html":
        raise ParameterError(f"{path.name} is a report, and a report is not evidence: verify its card")
    if card.is_dir():
        raise ParameterError(f"{path} holds no card.json, and there is no {path.name}.card.json beside it")
    data = read_regular(card, MAX_TEXT)
    if card == path and data.strip() and not data.lstrip().startswith((b"{", b"[")):
        raise CardError(f"{path} is not a card, and there is no {path.name}.card.json beside it")
    try:
        return card, data.decode()
    except UnicodeDecodeError:
        raise CardError(f"{card} is not a card: it is not text") from None


def cards_in(folder: Path) -> list[Path]:
    """Return the cards in a folder and in the folders in it, in the order of their paths.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sales.csv.card.json").write_text("{}")
    >>> [path.name for path in cards_in(folder)]
    ['sales.csv.card.json']
    """
    return sorted(path for path in folder.rglob("*card.json") if is_card_name(path.name) and not path.is_dir())


def is_card_name(name: str) -> bool:
    """Return True for a file name that cards have.

    Examples
    --------
    >>> [is_card_name(name) for name in ("card.json", "sales.csv.card.json", "sales.csv")]
    [True, True, False]
    """
    return name == "card.json" or name.endswith(".card.json")


def report_path(card: Path, kind: str = "report") -> Path:
    """Return where the report or the summary of a card goes, if no other place is named.

    Examples
    --------
    >>> report_path(Path("sales.csv.card.json")).name
    'sales.csv.report.html'
    """
    return card.with_name(f"{card.name.removesuffix('.json').removesuffix('.card')}.{kind}.html")


def reports_beside(card: Path, kind: str = "report") -> list[Path]:
    """Return where the report or the summary of a card may be: beside the card, or beside a model's folder.

    Examples
    --------
    >>> [path.as_posix() for path in reports_beside(Path("in/homes.model/card.json"))]
    ['in/homes.model/card.report.html', 'in/homes.model.report.html']
    """
    if card.name != "card.json":
        return [report_path(card, kind)]
    folder = card.parent if card.parent.name else card.parent.absolute()
    return [report_path(card, kind), folder.parent / f"{folder.name}.{kind}.html"]
