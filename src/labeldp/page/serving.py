"""The server of the page: on this machine alone, at a port that nobody can guess, until the page is closed."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from labeldp.page.application import application
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.site import Site

__all__ = ["serve"]


class _Server(uvicorn.Server):
    """A server that ends when nobody is there any more."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    def watch(self) -> None:
        """Look now and then whether anybody is there."""
        while not self.should_exit:
            time.sleep(0.5)
            if self._site.lifetime.is_over():
                self.should_exit = True


@contextmanager
def _silence() -> Iterator[None]:
    """Let no library warn or log while the page is there, in any thread: what it says may quote a label."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.showwarning = lambda *_, **__: None  # where a library changes the filters for a while
        logging.disable()
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def serve(
    folder: str | os.PathLike[str],
    *,
    port: int = 0,
    browse: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Show the page of a folder until it is closed.

    Parameters
    ----------
    folder : path
        Nothing outside of it is read or written.
    port : int
        0 for any that is free.
    browse : bool
        Whether to open the browser.
    say : callable
        Called with what to tell on the terminal: the address, which holds the token, and the end.
    """
    chosen = ChosenFolder(folder)
    chosen.remove_leftovers()
    site = Site.of(chosen)
    with _silence(), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
        if os.name == "posix":
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port))
        door.listen()  # now: a browser may be quicker than the server
        number = door.getsockname()[1]
        config = uvicorn.Config(
            application(site, number),
            access_log=False,
            log_config=None,
            log_level="critical",
            lifespan="off",
            http="h11",
            ws="none",
            loop="asyncio",
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        server = _Server(config, site)
        address = f"http://127.0.0.1:{number}{site.keys.address}"
        say(f"The page of {chosen.root} is at  {address}")
        say("It works once, in one browser, on this machine. Ctrl-C ends it, and so does closing the page.")
        threading.Thread(target=server.watch, daemon=True).start()
        if browse:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            server.run(sockets=[door])
        finally:
            server.should_exit = True
            if site.drafts.is_busy:
                say("Finishing what is paid for …")
            site.drafts.finish()
            chosen.remove_dropped()
    say("The page is closed.")
