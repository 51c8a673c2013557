"""``labeldp privatize``, a file in, the same file with private labels out, and its card; and ``labeldp page``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from labeldp.accounts.ledger import Ledger, ledger_notes
from labeldp.app.cli import DIALECT, LEDGER, RECORD, command
from labeldp.app.cli.shell import Bars, confirm, news, progress, someone_looks, tell
from labeldp.errors import Message


@command(
    *("source", "out", "label", "bounds", "epsilon", "mechanism", "zeta", "epsilon_prior", "trust"),
    *("debiased", "missing", "shuffle", *LEDGER, "rows_per_person", *RECORD, "drop", "format", *DIALECT),
    *("force", "modules"),
    stopped="Stopped. A table that is there is whole, with its card beside it. What the ledger shows as spent "
    "stays spent: labels may have been read.",
)
def privatize(ledger: Ledger, **given: Any) -> None:
    """Write a table again with private labels; all its other columns stay as they are.

    Each released label is ε-differentially private: whoever sees it, and knows everything else in the table, can
    raise their odds on the true label by a factor of at most e^ε.

    What is released: OUT, and OUT.card.json, which says what was done; pass it on with the file. All but the
    labels is public: columns, the number of rows, and their order unless you --shuffle.
    """
    from labeldp.tables.file_release import privatize_file  # noqa: PLC0415 (an extra)

    screen, asked = news(), someone_looks()  # now: while bars are drawn, Rich 14 says that nobody looks
    with progress() as bars:
        hints = partial(_ask, screen, bars) if asked else None
        done = privatize_file(ledger=ledger, progress=bars, hints=hints, **given)
    notes = [] if asked else ["Hints on what may give labels away are shown on a terminal only."]
    notes.append(f"The table is in {done.path}, its card in {done.card_path}; both may be made public.")
    tell(screen, done.terms.summary(), *done.notes, *notes, *ledger_notes(ledger))


def _ask(screen: Console, bars: Bars, hints: Sequence[str]) -> None:
    """Show what gives labels away to the one who can answer, since logs are kept; stop unless told to go on."""
    with bars.aside():
        tell(screen, *(Message("For you alone: ", hint) for hint in hints), style="yellow")
        tell(screen, "What you see here, and what you answer, depends on true labels: keep it to yourself.")
        confirm(screen, "Release the table as it is?")


@command("folder", "no_open", "port", stopped="The page is closed.")
def page(folder: Path, no_open: bool, port: int) -> None:
    """Do the whole job in a browser: table, label, budget, release, and what was released before.

    The server listens on this machine only, and to the browser that opens the address first. Nothing outside
    FOLDER is read or written, nothing is sent elsewhere, and labels are never shown. It ends by its
    button, by Ctrl-C, or half an hour after its last page was closed.

    What is released: what you release on the page, as privatize, fit and regress would, and its card and report.
    """
    from labeldp.app.page import serve  # noqa: PLC0415 (an extra)

    serve(folder, port=port, browse=not no_open, say=partial(tell, news()))
