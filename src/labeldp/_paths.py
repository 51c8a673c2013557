"""Paths that users name: which are accepted, and where they lead."""

from __future__ import annotations

import os
from pathlib import Path

from labeldp.errors import ParameterError

LONGEST_NAME = 255
"""Bytes of a name that common disks take."""


def as_path(path: str | os.PathLike[str]) -> Path:
    r"""Return a path whose names can be written to a disk, a card and a report, or refuse it.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    ParameterError
        If it is not UTF-8, contains a null character, or one of its names is too long.

    Examples
    --------
    >>> as_path("out.csv").name
    'out.csv'
    >>> as_path("out\udcff.csv")
    Traceback (most recent call last):
    labeldp.errors.ParameterError: the path 'out\udcff.csv' is not valid UTF-8: rename the file or folder
    """
    text = os.fspath(path)
    try:
        names = [len(part.encode()) for part in Path(text).parts]
    except UnicodeEncodeError:
        raise ParameterError(f"the path {text!r} is not valid UTF-8: rename the file or folder") from None
    if "\0" in text:
        raise ParameterError(f"the path {text!r} contains a null character: remove it")
    if max(names, default=0) > LONGEST_NAME:
        raise ParameterError(f"a name in the path {text[:100]!r}… is too long: use at most {LONGEST_NAME} bytes")
    return Path(path)


def resolve_path(path: str | os.PathLike[str]) -> Path:
    """Return where an accepted path leads, links followed; what lies there need not exist.

    Raises
    ------
    ParameterError
        If `as_path` refuses it, or it is a link that leads back to itself.
    """
    try:
        return as_path(path).resolve()
    except (RuntimeError, OSError):  # which of the two depends on the version of Python
        raise ParameterError(f"{os.fspath(path)} cannot be followed: a link leads back to itself") from None
