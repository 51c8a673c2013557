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
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import uvicorn

from labeldp._atomic import StrPath, atomic_file
from labeldp.app.page.application import build_app
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.site import Site


def _write_entry_page(folder: Path, address: str) -> Path | None:
    """Return a new file that leads a browser to the address and that only its owner can read, or None.

    All users of the machine can see the address that a browser is started with, in the list of processes. The
    file is in the chosen folder, because many browsers may not read hidden or temporary folders.
    """
    path = folder / f"labeldp-page-{secrets.token_hex(4)}.html"
    html = f'<!doctype html><title>labeldp</title><meta http-equiv="refresh" content="0;url={address}">'
    with suppress(OSError), atomic_file(path, replace=False) as part:
        part.write_text(html, encoding="utf-8")
    return path if path.exists() else None


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
        Whether to open the browser.
    say : callable
        Prints a line on the terminal: the address, which contains the token, and the end.
    """
    site = Site(ChosenFolder(folder))
    root = site.folder.root
    with ExitStack() as stack, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        _silence(stack)
        stack.callback(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(root)  # of uploads, on their way
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()  # now: a browser may be quicker than the server
        address = f"http://127.0.0.1:{listener.getsockname()[1]}{site.keys.address}"
        entry_page = _write_entry_page(root, address) if browse else None
        say(f"The page of {root} is at  {address}")
        say("The address works once, in one browser, on this machine. To end it, press Close labeldp or Ctrl-C.")
        if entry_page is not None:
            threading.Thread(target=webbrowser.open, args=(entry_page.as_uri(),), daemon=True).start()
        try:
            _server(site, entry_page).run(sockets=[listener])
        finally:
            _answer_signals(stack, lambda: say("Still finishing what is paid for …"))
            if site.is_busy:
                say("Finishing what is paid for …")
            site.finish()
            _remove(entry_page)
    say("The page is closed.")


def _silence(stack: ExitStack) -> None:
    """Let no library warn or log until the stack ends, in any thread: the message may quote a label."""
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    warnings.showwarning = lambda *_, **__: None  # where a library changes the filters for a while
    stack.callback(logging.disable, logging.NOTSET)
    logging.disable()


def _answer_signals(stack: ExitStack, answer: Callable[[], None]) -> None:
    """Answer signals instead of ending: a release that is paid for is not lost to a second Ctrl-C."""
    if threading.current_thread() is threading.main_thread():  # signals come nowhere else
        for kind in {"SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"} & set(dir(signal)):
            number = getattr(signal, kind)
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: answer()))


def _server(site: Site, entry_page: Path | None) -> uvicorn.Server:
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


def _remove(entry_page: Path | None) -> None:
    with suppress(OSError):
        if entry_page is not None:
            entry_page.unlink(missing_ok=True)
