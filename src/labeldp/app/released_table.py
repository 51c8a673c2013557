"""A released table, read as its card says that it is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp.accounts.card import Card

if TYPE_CHECKING:
    from labeldp.tables.tables import Table


def open_release(path: Path, card: Card, **reading: Any) -> Table:
    """Open the table of a card; the other arguments are those of `labeldp.tables.open_table`."""
    from labeldp.tables import Dialect, open_table  # noqa: PLC0415 (an extra)

    facts = card.content["file"]
    marks = {name: facts[name] for name in ("separator", "decimal", "encoding") if name in facts}
    return open_table(path, facts["format"], dialect=Dialect(header=True, **marks), **reading)
