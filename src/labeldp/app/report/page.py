"""One page of a card: sections whose text is always escaped, in a template that loads nothing and runs nothing."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Literal

from labeldp import __version__
from labeldp._atomic import StrPath, atomic_file
from labeldp.accounts.budget import Budget, Charge, missing_charges, total_of
from labeldp.mechanisms.typed_data import Natural, canonical, plain
from labeldp.tables.paths import Target

LONGEST = 600
"""Characters of one cell of a table; a card may be as long as it likes, a page should stay one."""

WRITTEN_WITH = f"labeldp {__version__}"
"""What a page depends on besides its card and its ledger."""

Kind = Literal["report", "summary"]

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks that turn text round, and halves of characters: they hide what a text says."""


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

    def describe(self, own: Budget) -> list[str]:
        """Return what is spent with all else in the ledger, and what is left."""
        total = own + self.others
        limit = "The ledger has no limit: it counts, and refuses nothing."
        if self.limit is not None:
            limit = f"The limit is {self.limit}; left is {self.limit.minus(total)}."
        lacks = [] if self.complete else ["The ledger given does not hold all charges of this release."]
        return [*lacks, f"With all else in the ledger, {total} is spent. {limit}"]


@dataclass(frozen=True, slots=True)
class PageSource:
    """What a page was written from and with, in its meta element: enough to write it again.

    Attributes
    ----------
    kind : {"report", "summary"}
    card : str
        Checksum of the card.
    written_with : str
        `WRITTEN_WITH`, where it was written.
    ledger : StatedLedger or None
    """

    kind: Kind
    card: str
    written_with: str
    ledger: StatedLedger | None


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
    """

    title: str
    paragraphs: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    def html(self) -> str:
        """Return the section."""
        body = _paragraphs_html(self.paragraphs) + _table_html(self.header, self.rows)
        return f"<section><h2>{escaped(self.title)}</h2>{body}</section>"


def escaped(text: object) -> str:
    """Return a text that HTML shows as it is, with a mark in place of each character that hides what it says.

    Examples
    --------
    >>> escaped(f'<b title="x">{chr(27)}[8m')
    '&lt;b title=&quot;x&quot;&gt;�[8m'
    """
    return html.escape(_INVISIBLE.sub("\ufffd", str(text)))


def _paragraphs_html(paragraphs: Sequence[str]) -> str:
    return "".join(f"<p>{escaped(text)}</p>" for text in paragraphs)


def _row_html(texts: Sequence[str], first: str, others: str) -> str:
    """Return a row of a table, by the tags of its first cell and of the others, which may have attributes."""
    row = ""
    for tag, text in zip([first, *[others] * len(texts)], texts, strict=False):
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
        row += f"<{tag}>{escaped(shown)}</{tag[:2]}>"
    return f"<tr>{row}</tr>"


def _table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    column, name = 'th scope="col"', "td" if header else 'th scope="row"'
    body = "".join(_row_html(row, name, "td") for row in rows)
    table = f"<table><thead>{_row_html(header, column, column)}</thead>" if header else '<table class="named">'
    return f'<div class="table">{table}<tbody>{body}</tbody></table></div>'


def render_page(
    title: str,
    sections: Sequence[Section | str],
    *,
    source: PageSource,
    style: str = "style.css",
    lead: Sequence[str] = (),
    when: str = "",
) -> str:
    """Return a page of sections: HTML that loads nothing and runs nothing.

    Parameters
    ----------
    title : str
        The page's heading.
    sections : sequence of Section
        Its parts, in order. Text in place of one is HTML that is shown as it is.
    source : PageSource
        What it is written from.
    style : str
        The style sheet of this package.
    lead : sequence of str
        Paragraphs before the first section.
    when : str
        The day and time beside the heading.
    """
    home = resources.files("labeldp.app.report")
    by = f"Written by {WRITTEN_WITH} from the card {source.card}."
    foot = f"{by} This page is one file: it loads nothing, runs nothing and calls nobody."
    return Template(home.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escaped(title),
        about=escaped(canonical(plain(source))),
        style=home.joinpath(style).read_text(encoding="utf-8").strip(),
        when=f" · {escaped(when)}" if when else "",
        lead=_paragraphs_html(lead),
        main="\n".join(part.html() if isinstance(part, Section) else part for part in sections),
        foot=_paragraphs_html([foot]),
    )


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
