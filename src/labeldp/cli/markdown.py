"""Markdown on a narrow terminal: words wrap, and no number is cut.

Rich's own Markdown spends two columns of the screen beside each cell, and then cuts figures to make room.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

__all__ = ["shown"]


def shown(text: str) -> RenderableType:
    """Return Markdown of headings, paragraphs and tables, for a terminal."""
    parts: list[RenderableType] = []
    for is_table, some in groupby(text.splitlines(), key=lambda line: line.startswith("|")):
        lines = list(some)
        parts += [_table(lines)] if is_table else [_words(line) for line in lines]
    return Group(*parts)


def _words(line: str) -> Text:
    title = line.lstrip("#")
    return Text(title.strip(), style="bold") if title != line else Text(line)


def _table(lines: Sequence[str]) -> Table:
    head, rule, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    found = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for name, mark, *cells in zip(head, rule, *rows, strict=True):
        # Rich makes the widest columns narrower first, whether their words still fit or not.
        longest = max(len(word) for cell in (name, *cells) for word in (cell.split() or [""]))
        side = "right" if mark.endswith(":") else "left"
        found.add_column(name, justify=side, min_width=longest, overflow="fold")
    for row in rows:
        found.add_row(*map(Text, row))
    return found
