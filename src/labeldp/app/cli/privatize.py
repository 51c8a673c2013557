"""``labeldp privatize``, a file in, the same file with private labels out, and its card; and ``labeldp page``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from labeldp.accounts.ledger import Ledger, ledger_notes
from labeldp.app.cli import DIALECT, LEDGER, RECORD, command
from labeldp.app.cli.shell import hints_note, hints_on_screen, news, progress, tell


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

    with progress() as bars:
        hints = hints_on_screen(bars, "Release the table as it is?")
        done = privatize_file(ledger=ledger, progress=bars, hints=hints, **given)
    notes = hints_note(hints)
    notes.append(f"The table is in {done.path}, its card in {done.card_path}; both may be made public.")
    tell(news(), done.terms.summary(), *done.notes, *notes, *ledger_notes(ledger))


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
