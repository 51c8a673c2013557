"""Other ledgers beside the one in use: for people whose labels both count, the costs add up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from labeldp._atomic import regular_handle
from labeldp.accounts.ledger import Ledger
from labeldp.errors import LabelDPError, Message, Setting


def note_other_ledgers(ledger: Ledger, files: Mapping[str, Path]) -> Message | None:
    """Return one sentence on other ledgers with charges, and how to use one of them; None if there are none.

    Files that are not ledgers do not count. None is locked, and only its first bytes are read.

    Parameters
    ----------
    ledger : Ledger
        The one that is about to be charged.
    files : mapping of str to path
        What may be ledgers, by the names to show.
    """
    used = os.path.realpath(ledger.path) if ledger.path else ""
    others = [name for name, path in files.items() if os.path.realpath(path) != used and _is_used(path)]
    if not others:
        return None
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    adds_up = "the costs add up for people whose labels are in both; to charge it instead, give "
    return Message(
        f"There is another ledger with charges, {others[0]}{more}: {adds_up}", Setting("ledger", others[0])
    )


def _is_used(path: Path) -> bool:
    """Whether a file begins as ledgers do, and has more than its first record."""
    with suppress(OSError, LabelDPError), open(regular_handle(path), "rb") as file:
        first, _, rest = file.read(4096).partition(b"\n")
        return b'"labeldp.ledger/' in first and bool(rest)
    return False
