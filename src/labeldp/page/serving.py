"""The server of the page: on this machine alone, at a port that nobody can guess, until the page is closed."""

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

from labeldp.page.application import application
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.site import Site


class _Server(uvicorn.Server):
    """A server that ends when nobody is there any more."""

    def __init__(self, config: uvicorn.Config, site: Site, doorway: Path | None) -> None:
        super().__init__(config)
        self._site, self._doorway = site, doorway

    def watch(self) -> None:
        """Look now and then whether anybody is there; who has come needs the doorway no more."""
        while not self.should_exit:
            time.sleep(0.5)
            if self._site.keys.used and self._doorway is not None:
                with suppress(OSError):
                    self._doorway.unlink(missing_ok=True)
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


@contextmanager
def _uninterrupted(answer: Callable[[], None]) -> Iterator[None]:
    """Answer signals to end instead of ending: a release that is paid for is not lost to a second Ctrl-C."""
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


def _make_doorway(folder: ChosenFolder, address: str) -> Path | None:
    """Return a new file that leads a browser to the address and that only its owner can read, or None.

    The address that a browser is started with is seen by all users of the machine, in the list of processes.
    """
    try:
        path, handle = folder.doorway()
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
        address = f"http://127.0.0.1:{number}{site.keys.address}"
        doorway = _make_doorway(chosen, address) if browse else None
        server = _Server(config, site, doorway)
        say(f"The page of {chosen.root} is at  {address}")
        say("It works once, in one browser, on this machine. Ctrl-C ends it, and so does closing the page.")
        threading.Thread(target=server.watch, daemon=True).start()
        if doorway is not None:
            threading.Thread(target=webbrowser.open, args=(doorway.as_uri(),), daemon=True).start()
        try:
            server.run(sockets=[door])
        finally:
            server.should_exit = True
            with _uninterrupted(lambda: say("Still finishing what is paid for …")):
                if site.drafts.is_busy:
                    say("Finishing what is paid for …")
                site.drafts.finish()
                chosen.remove_dropped()
    say("The page is closed.")
