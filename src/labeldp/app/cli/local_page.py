"""``labeldp page``: the whole job in a browser, on one's own machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from labeldp.app.cli import command
from labeldp.app.cli.shell import news, tell


@command("folder", "no_open", "port", stopped="The page is closed.")
def page(folder: Path, no_open: bool, port: int) -> None:
    """Do the whole job in a browser: table, label, budget, release, and what was released before.

    The server listens on this machine only, and to the browser that opens the address first. Nothing outside
    FOLDER is read or written, nothing is sent elsewhere, and labels are never shown. It ends by its
    button, by Ctrl-C, or half an hour after its last page was closed.

    What is released: what you release on the page, as privatize and fit would, and its card and report.
    """
    from labeldp.app.page import serve  # noqa: PLC0415 (an extra)

    serve(folder, port=port, browse=not no_open, say=partial(tell, news()))
