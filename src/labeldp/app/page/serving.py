"""The server of the page: on this machine only, until the page is closed."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import tempfile
import threading
import time
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn

from labeldp._atomic import StrPath, atomic_file
from labeldp.app.page.application import build_app
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.site import Site

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def serve(
    folder: StrPath,
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
        Open the browser.
    say : callable
        Prints a line on the terminal: the address, which contains the token, and the end.
    """
    site = Site(ChosenFolder(folder))
    root = site.folder.root
    with _silence(), _uploads_in(root), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()  # now: a browser may be quicker than the server
        address = f"http://127.0.0.1:{listener.getsockname()[1]}{site.keys.address}"
        entry_page = root / f"labeldp-page-{secrets.token_hex(4)}.html"
        say(f"The page of {root} is at  {address}")
        say("The address works once, in one browser, on this machine. To end it, press Close labeldp or Ctrl-C.")
        if browse:
            _browse(entry_page, address)
        try:
            _server(site, entry_page).run(sockets=[listener])
        finally:
            with _finish_despite_signals(say):
                if site.is_busy:
                    say("Finishing the paid release …")
                site.finish()
            _remove(entry_page)
    say("The page is closed.")


def _browse(entry_page: Path, address: str) -> None:
    """Open the browser with a file that leads to the address and that only its owner can read.

    All users of the machine can see the address that a browser is started with, in the list of processes. The
    file is in the chosen folder, because many browsers may not read hidden or temporary folders.
    """
    html = f'<!doctype html><title>labeldp</title><meta http-equiv="refresh" content="0;url={address}">'
    with suppress(OSError):
        with atomic_file(entry_page, replace=False) as file:
            file.write_text(html, encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(entry_page.as_uri(),), daemon=True).start()


@contextmanager
def _uploads_in(folder: Path) -> Iterator[None]:
    """Keep temporary files, such as uploads on their way, in a folder."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _silence() -> Iterator[None]:
    """Let no library warn or log, in any thread: the message may quote a label."""
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.showwarning = lambda *_, **__: None  # where a library changes the filters for a while
            yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def _finish_despite_signals(say: Callable[[str], None]) -> Iterator[None]:
    """Answer signals instead of ending: a paid release is not lost to a second Ctrl-C."""
    handlers = {}
    if threading.current_thread() is threading.main_thread():  # signals come nowhere else
        numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
        handlers = {
            number: signal.signal(number, lambda *_: say("Still finishing the paid release …"))
            for number in numbers
        }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _server(site: Site, entry_page: Path) -> uvicorn.Server:
    """Return a server that ends when nobody is there any more; the entry page is removed once it was used."""

    async def check() -> None:
        if site.keys.is_used:
            _remove(entry_page)
        server.should_exit |= site.is_over(time.monotonic())

    config = uvicorn.Config(
        build_app(site),
        access_log=False,
        log_config=None,
        log_level="critical",
        lifespan="off",
        http="h11",
        ws="none",
        loop="asyncio",
        server_header=False,
        timeout_graceful_shutdown=3,
        callback_notify=check,
        timeout_notify=1,
    )
    server = uvicorn.Server(config)
    return server


def _remove(entry_page: Path) -> None:
    with suppress(OSError):
        entry_page.unlink(missing_ok=True)
