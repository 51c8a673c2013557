"""``labeldp page``: the whole job in a browser, on one's own machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from labeldp.cli.shell import explained, news, tell


def page(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder with your tables.")] = Path(),
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Do not open the browser; only show the address.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 takes any that is free.")
    ] = 0,
) -> None:
    """Do the whole job in a browser: table, label, budget, release, and what was released before.

    The server listens on this machine only, and to the browser that opens the
    address first. Nothing outside FOLDER is read or written, nothing is sent
    elsewhere, and labels are never shown. It ends when the page is closed.

    What leaves: what you release on the page, as privatize and fit would, and
    its card, report and signature.
    """
    with explained("The page is closed."):
        from labeldp.page.serving import serve  # noqa: PLC0415 (an extra)

        serve(folder, port=port, browse=not no_open, say=partial(tell, news()))
