"""The page: sections whose text is always escaped, in a template that loads nothing and runs nothing."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any, Literal

import numpy as np

from labeldp import __version__
from labeldp._atomic import StrPath, atomic_file
from labeldp.accounts.budget import Budget, Charge, missing_charges, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.app.report.figures import escaped, require_matplotlib, svg
from labeldp.mechanisms.typed_data import Natural, canonical, plain
from labeldp.tables.paths import Target

LONGEST = 600
"""Characters of one cell of a table; a card may be as long as it likes, a page should stay one."""

Kind = Literal["report", "summary"]


@dataclass(frozen=True, slots=True)
class StatedLedger:
    """What a page states of a ledger: enough to write the page again.

    Attributes
    ----------
    charges : int
        How many charges it held.
    limit : Budget or None
    others : Budget
        What its charges for other releases cost together, rounded up to floats.
    complete : bool
        Whether it holds all charges of this release.
    """

    charges: Natural
    limit: Budget | None
    others: Budget
    complete: bool

    @classmethod
    def of(cls, limit: Budget | None, charges: Sequence[Charge], own: Sequence[Charge]) -> StatedLedger:
        """Return what to state of a ledger on the page of a release with charges of its own."""
        others = total_of(missing_charges(charges, own))
        return cls(len(charges), limit, Budget(*others.rounded().values()), not missing_charges(own, charges))


def state_ledger(ledger: Ledger | StatedLedger | None, own: Sequence[Charge]) -> StatedLedger | None:
    """Return what to state of a ledger, if there is one; what was stated before stays as it is."""
    return StatedLedger.of(ledger.limit, ledger.charges, own) if isinstance(ledger, Ledger) else ledger


@dataclass(frozen=True, slots=True)
class PageSource:
    """What a page was written from and with, in its meta element: enough to write it again.

    Attributes
    ----------
    kind : str
    card : str
        Checksum of the card.
    written_with : str
        What `written_with` returned.
    ledger : StatedLedger or None
    """

    kind: Kind
    card: str
    written_with: str
    ledger: StatedLedger | None

    def tag(self) -> str:
        """Return the meta element."""
        return f'<meta name="labeldp-report" content="{escaped(canonical(plain(self)))}">\n'


def written_with(kind: Kind = "report") -> str:
    """Return the versions that a page depends on; a summary has no figures, and depends on labeldp alone."""
    if kind != "report":
        return f"labeldp {__version__}"
    python = f"Python {platform.python_version()} ({sys.platform})"
    return (
        f"labeldp {__version__}, {python}, NumPy {np.__version__}, Matplotlib {require_matplotlib().__version__}"
    )


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
        A table; none without rows. Without a header the first cell of a row names it.
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

    def html(self, number: int) -> str:
        """Return the section; its number on the page keeps the ids of figures apart."""
        body = paragraphs_html(self.paragraphs) + _table_html(self.header, self.rows)
        if self.figure is not None:
            drawing = svg(self.figure, self.title, self.alternative, f"f{number}")
            body = f'<div class="beside"><figure>{drawing}</figure><div>{body}</div></div>'
        kind = ' class="warning"' if self.warning else ""
        return f"<section{kind}><h2>{escaped(self.title)}</h2>{body}</section>"


def paragraphs_html(paragraphs: Sequence[str]) -> str:
    """Return paragraphs of plain text."""
    return "".join(f"<p>{escaped(text)}</p>" for text in paragraphs)


def _cell(text: str, tag: str) -> str:
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
    return f"<{tag}>{escaped(shown)}</{tag.partition(' ')[0]}>"


def _table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(_cell(text, 'th scope="col"') for text in header)
    first = "td" if header else 'th scope="row"'
    body = ""
    for name, *others in rows:
        body += f"<tr>{_cell(name, first)}{''.join(_cell(text, 'td') for text in others)}</tr>"
    table = f"<table><thead><tr>{head}</tr></thead>" if header else '<table class="named">'
    return f'<div class="table">{table}<tbody>{body}</tbody></table></div>'


def render_page(
    title: str, sections: Sequence[Section | str], *, lead: Sequence[str] = (), when: str = "", source: str = ""
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
    source : str
        The meta element of a `PageSource`.
    """
    main = [part.html(k) if isinstance(part, Section) else part for k, part in enumerate(sections, 1)]
    by = f"Written by labeldp {__version__}."
    foot = f"{by} This page is one file: it loads nothing, runs nothing and calls nobody."
    return fill_template(
        "page.html",
        title=escaped(title),
        about=source,
        when=f" · {escaped(when)}" if when else "",
        lead=paragraphs_html(lead),
        main="\n".join(main),
        foot=paragraphs_html([foot]),
    )


def fill_template(name: str, **parts: str) -> str:
    """Return a page made from a template of this package and parts of HTML."""
    home = resources.files("labeldp.app.report")
    style = home.joinpath("style.css").read_text(encoding="utf-8").strip()
    return Template(home.joinpath(name).read_text(encoding="utf-8")).substitute(style=style, **parts)


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
