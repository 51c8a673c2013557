"""Reports as HTML: a template that loads nothing and runs nothing, with all text escaped."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from labeldp import __version__
from labeldp._atomic import StrPath, atomic_file
from labeldp.tables.paths import Target

MAX_CELL = 600
"""Characters of one cell of a table: a card may be long, a page should stay one."""

Kind = Literal["report", "summary"]

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks that turn text round, and halves of characters: they hide what a text says."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a page, as plain text.

    Attributes
    ----------
    title : str
        Heading.
    paragraphs : sequence of str
    header, rows : sequences of str
        Table. Without a header the first cell of a row names the row.
    tiles : mapping
        Figures by their names, in place of all else.
    """

    title: str = ""
    paragraphs: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    tiles: Mapping[str, str] = field(default_factory=dict)


def visible(value: object) -> object:
    """Return a text with a mark in place of each invisible character; other values as they are.

    Examples
    --------
    >>> visible("a" + chr(27) + "[8m")
    'a�[8m'
    """
    return _INVISIBLE.sub("\ufffd", value) if type(value) is str else value


def shortened(text: str) -> str:
    """Return a text of at most `MAX_CELL` characters, with its length if it was longer."""
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}… ({len(text):,} characters)"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("labeldp.app", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shortened"] = shortened
    environment.globals["version"] = __version__
    return environment


def render_page(**values: Any) -> str:
    """Return a page, from the values that the template ``page.html`` names."""
    return _environment().get_template("page.html").render(values)


def write_page(path: StrPath, page: str, *, force: bool = False, like: StrPath | None = None) -> None:
    """Write a page, whole or not at all.

    Parameters
    ----------
    path : path-like
        File to write.
    page : str
        HTML of `render_report`.
    force : bool
        Whether to replace a file.
    like : path-like, optional
        File that the page is about: who may not read it may not read the page.

    Raises
    ------
    ParameterError
        If there is a file already, unless ``force`` allows to replace it.
    """
    Target(str(path), force).refuse()
    most = 0o666 if like is None or not os.path.isfile(like) else os.stat(like).st_mode
    with atomic_file(path, public=True, max_rights=most, replace=force) as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")
