"""Files of data sets: where they are, whether they are the right ones, and how they are downloaded."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import sys
import zlib
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from labeldp._atomic import atomic_file, open_regular
from labeldp.errors import DataError, DataNotFoundError


def cache_folder() -> Path:
    """Return the user's cache folder for this library; it need not exist yet.

    It is ``labeldp`` in the folder that ``XDG_CACHE_HOME`` names, else in the platform's own:
    ``~/.cache``, ``~/Library/Caches`` or ``%LOCALAPPDATA%``.
    """
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):  # the XDG specification: a relative path is ignored
        return Path(xdg, "labeldp")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "labeldp"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"), "labeldp", "Cache")
    return Path.home() / ".cache" / "labeldp"


def find(*names: str) -> Path | None:
    """Return the first of these files in the folder that ``LABELDP_DATA`` names, else in the cache folder.

    Each may also be compressed, as ``name.gz``.
    """
    data = os.environ.get("LABELDP_DATA")
    folders = ([Path(data)] if data else []) + [cache_folder()]
    paths = (folder / (name + end) for folder in folders for name in names for end in ("", ".gz"))
    return next(filter(Path.is_file, paths), None)


def read_checked(path: Path, sha256: str) -> bytes:
    """Return the content of a file, decompressed if it ends in ``.gz``; refuse another checksum."""
    try:
        with open_regular(path) as stream:
            content: bytes = stream.read()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path} cannot be read; delete it, and it will be fetched again") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise DataError(
            f"{path} is damaged, or another version: its content has the sha256 {digest}, not {sha256}. "
            "Delete it, and it will be fetched again"
        )
    return content


TIMEOUT = 10.0
"""Seconds that a server may stay silent."""

_PIECE = 1 << 18


def byte_bar() -> Progress:
    """Return a progress bar that counts bytes: on standard error, and only if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


def fetch(url: str, path: Path, *, by_hand: str, sha256: str | None = None, timeout: float = TIMEOUT) -> Path:
    """Download ``url`` to ``path``, where it appears complete and with the right checksum, and return the path.

    Every error says how to get the file ``by_hand``: `DataNotFoundError` if the server cannot be reached, refuses,
    stops half-way, or stays silent for ``timeout`` seconds; `DataError` if the checksum is another one.
    """
    if not url.startswith(("http://", "https://")):
        raise DataError(f"only http and https addresses can be fetched, not {url}")
    try:
        with atomic_file(path) as draft:
            digest = _receive(url, draft, path.name, timeout)
            if sha256 is not None and digest != sha256:
                raise DataError(
                    f"{url} gave another file than expected: its sha256 is {digest}, not {sha256}. "
                    f"Nothing was written to {path}. {by_hand}"
                )
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()  # a refusal is an answer, too, with a connection of its own
        raise DataNotFoundError(f"{path.name} could not be fetched from {url} ({error}). {by_hand}") from None
    return path


def _receive(url: str, draft: Path, name: str, timeout: float) -> str:
    """Write what the server sends; return its sha256."""
    digest = hashlib.sha256()
    request = Request(url, headers={"User-Agent": "labeldp"})  # noqa: S310, the scheme was checked
    with urlopen(request, timeout=timeout) as answer, open(draft, "wb") as stream, byte_bar() as bar:  # noqa: S310
        length = answer.headers.get("Content-Length")
        total = int(length) if length else None
        task = bar.add_task(f"fetching {name}", total=total)
        while piece := answer.read(_PIECE):
            stream.write(piece)
            digest.update(piece)
            bar.advance(task, len(piece))
        if total is not None and stream.tell() != total:
            raise OSError(f"the connection ended after {stream.tell()} of {total} bytes")
    return digest.hexdigest()
