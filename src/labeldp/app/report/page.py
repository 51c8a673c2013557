"""The page: sections whose text is always escaped, a skeleton, and nothing that loads, runs or calls home."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any

from labeldp import __version__
from labeldp._atomic import StrPath, atomic_file
from labeldp.app.report.figures import escaped, svg
from labeldp.tables.paths import Target

LONGEST = 600
"""Characters of one cell of a table; a card may be as long as it likes, a page should stay one."""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a page; all its text is escaped.

    Attributes
    ----------
    title : str
        Its heading.
    paragraphs : sequence of str
        Plain text.
    header, rows : sequences of str
        A table; none without rows.
    figure : matplotlib.figure.Figure, optional
        Made with `labeldp.app.report.figures.blank`, which suits light, dark and phones.
    alternative : str
        What the figure shows, for those who cannot see it.
    warning : bool
        Whether this is a warning, to be shown as one.
    """

    title: str
    paragraphs: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figure: Any = None
    alternative: str = ""
    warning: bool = False


def _cell(text: object) -> str:
    whole = str(text)
    return escaped(whole if len(whole) <= LONGEST else f"{whole[:LONGEST]}… ({len(whole):,} characters)")


def _paragraphs_html(paragraphs: Sequence[str]) -> str:
    """Return paragraphs."""
    return "".join(f"<p>{escaped(text)}</p>" for text in paragraphs)


def _table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; without a header the first cell of a row names it."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{_cell(text)}</th>' for text in header)
    body = ""
    for row in rows:
        first, *others = (f"<td>{_cell(text)}</td>" for text in row)
        if not header:
            first = f'<th scope="row">{_cell(row[0])}</th>'
        body += f"<tr>{first}{''.join(others)}</tr>"
    table = f"<table><thead><tr>{head}</tr></thead>" if header else '<table class="named">'
    return f'<div class="table">{table}<tbody>{body}</tbody></table></div>'


def _section_html(section: Section, number: int) -> str:
    """Return the section; its number on the page keeps the ids of figures apart."""
    words = _paragraphs_html(section.paragraphs) + _table_html(section.header, section.rows)
    if section.figure is not None:
        drawing = svg(section.figure, section.title, section.alternative, f"f{number}")
        words = f'<div class="beside"><figure>{drawing}</figure><div>{words}</div></div>'
    kind = ' class="warning"' if section.warning else ""
    return f"<section{kind}><h2>{escaped(section.title)}</h2>{words}</section>"


def render_page(
    title: str, sections: Sequence[Section | str], *, lead: Sequence[str] = (), when: str = "", about: str = ""
) -> str:
    """Return a page of sections: HTML that loads nothing and runs nothing.

    Parameters
    ----------
    title : str
        The page's heading.
    sections : sequence of Section
        Its parts, in order. Text in place of one is HTML that is shown as it is.
    lead : sequence of str
        Paragraphs before the first section.
    when : str
        The day and time beside the heading.
    about : str
        What the page was written from, for programs.
    """
    home = resources.files("labeldp.app.report")
    main = [
        _section_html(part, number) if isinstance(part, Section) else part
        for number, part in enumerate(sections, 1)
    ]
    return Template(home.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escaped(title),
        about=about_tag(about) if about else "",
        when=f" · {escaped(when)}" if when else "",
        style=home.joinpath("style.css").read_text(encoding="utf-8").strip(),
        lead=_paragraphs_html(lead),
        main="\n".join(main),
        foot=f"<p>Written by labeldp {escaped(__version__)}. This page is one file: it loads nothing, runs "
        "nothing and calls nobody.</p>",
    )


def about_tag(about: str) -> str:
    """Return what a page was written from, for programs."""
    return f'<meta name="labeldp-report" content="{escaped(about)}">\n'


def write_page(path: StrPath, page: str, *, force: bool = False, like: StrPath | None = None) -> None:
    """Write a page, whole or not at all.

    Parameters
    ----------
    path : path-like
        The file to write.
    page : str
        From `render_report` or `summary_page`.
    force : bool
        Whether to replace a file.
    like : path-like, optional
        The file that the page is about: who may not read it may not read the page.

    Raises
    ------
    ParameterError
        If there is a file already, unless ``force`` allows to replace it.
    """
    Target(str(path), force).refuse()
    most = 0o666 if like is None or not os.path.isfile(like) else os.stat(like).st_mode
    with atomic_file(path, public=True, most=most, replace=force) as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")
