"""The page: skeleton and style, and nothing that loads, runs or calls home."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template

from labeldp import __version__
from labeldp._atomic import atomic_file
from labeldp.files.places import refuse_target
from labeldp.report.section import Section, escaped, paragraphs_html, section_html

__all__ = ["assemble", "render_page", "write_page"]


def assemble(title: str, lead: Sequence[str], parts: Iterable[Section | str]) -> str:
    """Return the page of sections and of HTML made by this room.

    Parameters
    ----------
    title : str
    lead : sequence of str
        Plain text under the title.
    parts : sections, or strings of HTML, trusted: only this room makes them, from escaped text.
    """
    home = resources.files("labeldp.report")
    body = [
        section_html(part, number) if isinstance(part, Section) else part for number, part in enumerate(parts, 1)
    ]
    return Template(home.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escaped(title),
        style=home.joinpath("style.css").read_text(encoding="utf-8").strip(),
        lead=paragraphs_html(lead),
        main="\n".join(body),
        foot=f"<p>Written by labeldp {escaped(__version__)}. This page is one file: it loads nothing, runs "
        "nothing and tells nobody that it was opened.</p>",
    )


def render_page(title: str, sections: Sequence[Section], *, lead: Sequence[str] = ()) -> str:
    """Return a page of sections alone, where there is no card to explain.

    Examples
    --------
    >>> page = render_page("Which mechanism?", [Section("Answer", ["Staircase."])])
    >>> "<h1>Which mechanism?</h1>" in page, "<script" in page
    (True, False)
    """
    return assemble(title, lead, sections)


def write_page(path: str | os.PathLike[str], page: str, *, force: bool = False) -> None:
    """Write a page, whole or not at all.

    Raises
    ------
    ParameterError
        If there is a file already, unless ``force`` allows to replace it.
    """
    refuse_target(os.fspath(path), force=force)
    with atomic_file(path, public=True) as draft:
        draft.write_text(page, encoding="utf-8")
