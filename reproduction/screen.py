"""Markdown on a narrow terminal: words wrap, and no number is cut.

Rich's own Markdown spends two columns of the screen beside each cell, and then cuts figures to make room.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text


def for_screen(markdown: str, width: int) -> RenderableType:
    """Return Markdown of headings, paragraphs, lists and tables, for a terminal that is ``width`` wide."""
    parts: list[RenderableType] = []
    for is_table, some in groupby(markdown.splitlines(), key=lambda line: line.startswith("|")):
        lines = list(some)
        parts += [_table(lines, width)] if is_table else [_text(line) for line in lines]
    return Group(*parts)


def _text(line: str) -> Text:
    """Return a line or a cell: headings and ``**`` are bold, and what is below a ``<br>`` is dim."""
    title = line.lstrip("#")
    if title != line:
        return Text(title.strip(), style="bold")
    above, _, below = escape(line).partition("<br>")
    marked = re.sub(r"\*\*(.+?)\*\*", r"[bold green]\1[/]", above)
    return Text.from_markup(marked + (f"\n[dim]{below}[/]" if below else ""))


def _table(lines: Sequence[str], width: int) -> Table:
    head, rule, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    columns = [[_text(cell) for cell in cells] for cells in zip(head, *rows, strict=True)]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for cells, mark, room in zip(columns, rule, _widths(columns, width - len(head) + 1), strict=True):
        side: Literal["left", "right"] = "right" if mark.endswith(":") else "left"
        table.add_column(cells[0], justify=side, width=room, overflow="fold")
    for row in list(zip(*columns, strict=True))[1:]:
        table.add_row(*row)
    return table


def _widths(columns: Sequence[Sequence[Text]], room: int) -> list[int]:
    """Return each column's width: its longest word, and what is left goes where most lines would be.

    Rich would make the widest columns narrower first, whether their words still fit or not. Where there is not
    enough room, only a heading may be broken.
    """
    whole = [max(len(line) for cell in cells for line in cell.plain.split("\n")) for cells in columns]
    widths = [_longest_word(cells) for cells in columns]
    if sum(widths) > room:
        widths = [_longest_word(cells[1:]) for cells in columns]
    for _ in range(min(room, sum(whole)) - sum(widths)):
        widths[max(range(len(widths)), key=lambda k: whole[k] / widths[k])] += 1
    return widths


def _longest_word(cells: Sequence[Text]) -> int:
    return max((len(word) for cell in cells for word in cell.plain.split()), default=1)
