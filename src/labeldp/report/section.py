"""`Section`: one part of a page, and the only way by which text reaches it: escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from labeldp.errors import ParameterError
from labeldp.report.figures import svg

__all__ = ["Section", "escaped", "paragraphs_html", "section_html", "table_html"]

LONGEST = 600
"""Characters of one cell of a table; a card may be as long as it likes, a page should stay one."""

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks that turn text round, and halves of characters: they hide what a text says."""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a page.

    Parameters
    ----------
    title : str
    paragraphs : sequence of str
        Plain text.
    header, rows : sequences of str
        A table; none without rows.
    figure : matplotlib.figure.Figure, optional
        Best made with `labeldp.report.blank`, which suits light, dark and phones.
    alternative : str
        What the figure shows, for those who cannot see it; a figure needs one.
    warning : bool
        Whether this is a warning, to be shown as one.

    Examples
    --------
    >>> part = Section("Two <sides>", ["All text is escaped."], header=["side"], rows=[["left"], ["right"]])
    >>> "Two &lt;sides&gt;" in section_html(part, 1)
    True
    """

    title: str
    paragraphs: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figure: Any = None
    alternative: str = ""
    warning: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.paragraphs, str):
            raise ParameterError("paragraphs must be a list of texts, not one text")
        if self.figure is not None and not self.alternative:
            raise ParameterError("a figure needs a text alternative: say in a sentence what it shows")
        if any(len(row) != len(self.header or row) for row in self.rows):
            raise ParameterError("each row of a table needs one cell for each column of the header")


def escaped(text: object) -> str:
    """Return a text that HTML shows as it is, in text and in attributes.

    Examples
    --------
    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(_INVISIBLE.sub("\ufffd", str(text)), quote=True)


def _cell(text: object) -> str:
    whole = str(text)
    return escaped(whole if len(whole) <= LONGEST else f"{whole[:LONGEST]}… ({len(whole):,} characters)")


def paragraphs_html(paragraphs: Sequence[str]) -> str:
    """Return paragraphs."""
    return "".join(f"<p>{escaped(text)}</p>" for text in paragraphs)


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; without a header the first cell of a row names it."""
    if not rows:
        return ""
    if not header:
        named = "".join(
            f'<tr><th scope="row">{_cell(name)}</th>{"".join(f"<td>{_cell(text)}</td>" for text in rest)}</tr>'
            for name, *rest in rows
        )
        return f'<div class="table"><table class="named"><tbody>{named}</tbody></table></div>'
    head = "".join(f'<th scope="col">{_cell(text)}</th>' for text in header)
    body = "".join("<tr>" + "".join(f"<td>{_cell(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def section_html(section: Section, number: int) -> str:
    """Return the section; its number on the page keeps the ids of figures apart."""
    words = paragraphs_html(section.paragraphs) + table_html(section.header, section.rows)
    if section.figure is not None:
        drawing = svg(section.figure, section.title, section.alternative, f"f{number}")
        words = f'<div class="beside"><figure>{drawing}</figure><div>{words}</div></div>'
    kind = ' class="warning"' if section.warning else ""
    return f"<section{kind}><h2>{escaped(section.title)}</h2>{words}</section>"
