"""Files of data sets in the user's folders: where they are, and whether they are the right ones."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import zlib
from pathlib import Path

from labeldp.errors import DataError

__all__ = ["cache_folder", "find", "read_checked"]


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
    """Return the content of a file, decompressed if it ends in ``.gz``.

    Raises
    ------
    DataError
        If the file cannot be read, or its content has another checksum.
    """
    try:
        content = path.read_bytes()
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
