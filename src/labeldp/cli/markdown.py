"""Markdown on a narrow terminal: words wrap, and no number is cut.

Rich's own Markdown spends two columns of the screen beside each cell, and then cuts figures to make room.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

__all__ = ["shown"]


def shown(text: str, width: int) -> RenderableType:
    """Return Markdown of headings, paragraphs and tables, for a terminal that is ``width`` wide."""
    parts: list[RenderableType] = []
    for is_table, some in groupby(text.splitlines(), key=lambda line: line.startswith("|")):
        lines = list(some)
        parts += [_table(lines, width)] if is_table else [_words(line) for line in lines]
    return Group(*parts)


def _words(line: str) -> Text:
    title = line.lstrip("#")
    return Text(title.strip(), style="bold") if title != line else Text(line)


def _table(lines: Sequence[str], width: int) -> Table:
    head, rule, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    columns = list(zip(head, *rows, strict=True))
    found = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for name, mark, room in zip(head, rule, _widths(columns, width - len(head) + 1), strict=True):
        side: Literal["left", "right"] = "right" if mark.endswith(":") else "left"
        found.add_column(name, justify=side, width=room, overflow="fold")
    for row in rows:
        found.add_row(*map(Text, row))
    return found


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return each column's width: its longest word, and what is left goes where most lines would be.

    Rich would make the widest columns narrower first, whether their words still fit or not.
    """
    whole = [max(map(len, cells)) for cells in columns]
    found = [max(len(word) for cell in cells for word in (cell.split() or ["-"])) for cells in columns]
    for _ in range(min(room, sum(whole)) - sum(found)):
        found[max(range(len(found)), key=lambda k: whole[k] / found[k])] += 1
    return found
