"""Text and files of reports."""

from __future__ import annotations

import os
import re

from labeldp._atomic import StrPath, atomic_file
from labeldp.tables.paths import Target

MAX_CELL = 600
"""Characters of one cell of a table: a card may be long, a page should stay one."""

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks that turn text round, and halves of characters: they hide text."""


def mark_invisible(value: object) -> object:
    """Return a text with a mark in place of each invisible character; other values as they are.

    Examples
    --------
    >>> mark_invisible("a" + chr(27) + "[8m")
    'a�[8m'
    """
    return _INVISIBLE.sub("\ufffd", value) if type(value) is str else value


def shorten(text: str) -> str:
    """Return a text of at most `MAX_CELL` characters, with its length if it was longer."""
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}… ({len(text):,} characters)"


def write_page(path: StrPath, page: str, *, force: bool = False, subject: StrPath | None = None) -> None:
    """Write a page, whole or not at all.

    Parameters
    ----------
    path : path-like
        File to write.
    page : str
        HTML of `render_report`.
    force : bool
        Replace a file.
    subject : path-like, optional
        File that the page is about: who may not read it may not read the page.

    Raises
    ------
    ParameterError
        If there is a file already, unless ``force`` allows to replace it.

    Examples
    --------
    >>> import tempfile, pathlib, labeldp as ldp
    >>> from labeldp.app.report import render_report, write_page
    >>> release = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), mechanism="two-point")
    >>> path = pathlib.Path(tempfile.mkdtemp(), "release.html")
    >>> write_page(path, render_report(release.to_card(), ledger=release.ledger))
    >>> path.exists()
    True
    """
    Target(str(path), force).refuse()
    mode = 0o666 if subject is None or not os.path.isfile(subject) else os.stat(subject).st_mode
    with atomic_file(path, public=True, max_rights=mode, replace=force) as file:
        file.write_text(page, encoding="utf-8", newline="\n")
