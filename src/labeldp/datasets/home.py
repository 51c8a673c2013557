"""Where the files of data sets live: found in the user's folders, written whole or not at all."""

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
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):  # the XDG rules: a relative path is to be ignored
        return Path(named, "labeldp")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "labeldp"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"), "labeldp", "Cache")
    return Path.home() / ".cache" / "labeldp"


def find(*names: str) -> Path | None:
    """Return the first file of these names, in the folder that ``LABELDP_DATA`` names, else in the cache.

    Each name is looked for as it is, and packed as ``name.gz``.
    """
    named = os.environ.get("LABELDP_DATA")
    for folder in ([Path(named)] if named else []) + [cache_folder()]:
        for name in names:
            for path in (folder / name, folder / f"{name}.gz"):
                if path.is_file():
                    return path
    return None


def read_checked(path: Path, sha256: str) -> bytes:
    """Return the content of a file, unpacked if it ends in ``.gz``, once its checksum fits.

    Raises
    ------
    DataError
        If the file cannot be read, or is not the one that the checksum was taken of.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path} cannot be read; delete it, and it will be fetched again") from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataError(
            f"{path} is damaged, or another version: its content has the sha256 {found}, not {sha256}. "
            "Delete it, and it will be fetched again"
        )
    return content
