"""The server of the page: on this machine only, until the page is closed."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn

from labeldp.app.page.application import application
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.site import Site


class _Server(uvicorn.Server):
    """A server that ends when nobody is there any more."""

    def __init__(self, config: uvicorn.Config, site: Site, entry_page: Path | None) -> None:
        super().__init__(config)
        self._site, self._entry_page = site, entry_page

    def watch(self) -> None:
        """Check now and then whether anybody is there; the entry page is removed once it was used."""
        while not self.should_exit:
            time.sleep(0.5)
            if self._site.keys.used and self._entry_page is not None:
                with suppress(OSError):
                    self._entry_page.unlink(missing_ok=True)
            if self._site.lifetime.is_over():
                self.should_exit = True


@contextmanager
def _silence() -> Iterator[None]:
    """Let no library warn or log while the page is served, in any thread: the message may quote a label."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.showwarning = lambda *_, **__: None  # where a library changes the filters for a while
        logging.disable()
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


@contextmanager
def _uninterrupted(answer: Callable[[], None]) -> Iterator[None]:
    """Answer signals instead of ending: a release that is paid for is not lost to a second Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals do not come here
        return
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    old = {name: signal.signal(getattr(signal, name), lambda *_: answer()) for name in names}
    try:
        yield
    finally:
        for name, handler in old.items():
            signal.signal(getattr(signal, name), handler)


def _write_entry_page(site: Site, address: str) -> Path | None:
    """Return a new file that leads a browser to the address and that only its owner can read, or None.

    All users of the machine can see the address that a browser is started with, in the list of processes.
    """
    try:
        path, handle = site.dropped.entry_page()
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(
                f'<!doctype html><title>labeldp</title><meta http-equiv="refresh" content="0;url={address}">'
            )
    except OSError:
        return None
    return path


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
        Prints a line on the terminal: the address, which contains the token, and the end.
    """
    site = Site(ChosenFolder(folder))
    site.dropped.remove_leftovers()
    with _silence(), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()  # now: a browser may be quicker than the server
        config = uvicorn.Config(
            application(site),
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
        address = f"http://127.0.0.1:{listener.getsockname()[1]}{site.keys.address}"
        entry_page = _write_entry_page(site, address) if browse else None
        server = _Server(config, site, entry_page)
        say(f"The page of {site.folder.root} is at  {address}")
        say("The address works once, in one browser, on this machine. To end it, close the page or press Ctrl-C.")
        threading.Thread(target=server.watch, daemon=True).start()
        if entry_page is not None:
            threading.Thread(target=webbrowser.open, args=(entry_page.as_uri(),), daemon=True).start()
        try:
            server.run(sockets=[listener])
        finally:
            server.should_exit = True
            with _uninterrupted(lambda: say("Still finishing what is paid for …")):
                if site.is_busy:
                    say("Finishing what is paid for …")
                site.finish()
                site.dropped.remove()
    say("The page is closed.")
