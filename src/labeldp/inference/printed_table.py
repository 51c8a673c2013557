"""A table as papers print it: text, HTML, LaTeX, CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from jinja2 import Environment

from labeldp.accounts.cells import as_csv, as_latex, latex_tabular

_HTML = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """
<div><table style="border-collapse: collapse">
{% for row in table.cells %}
<tr style="{{ "border-bottom: 1px solid" if loop.index0 in ruled }}">
{% set cell = "th" if loop.first else "td" %}
<th style="text-align: left; font-weight: normal">{{ row[0] }}</th>
{% for text in row[1:] %}
<{{ cell }} style="padding: 0 0.7em; text-align: {{ align }}">{{ text }}</{{ cell }}>
{% endfor %}
</tr>
{% endfor %}
</table>
{% for note in table.notes %}
<p>{{ note }}</p>
{% endfor %}
</div>
"""
)


@dataclass(frozen=True, slots=True, repr=False)
class PrintedTable:
    """A table of text with notes below.

    Attributes
    ----------
    cells : list of list of str
        The rows of the table, the header first.
    notes : list of str
        The lines below the table.
    fact_rows : int
        The number of rows at the end that stand below a rule, such as the number of rows and R².
    align : {"c", "r"}
        The position of figures in their columns.

    Examples
    --------
    >>> from labeldp.inference import PrintedTable
    >>> table = PrintedTable([["", "(1)"], ["age", "0.3"], ["N", "500"]], ["Standard errors in brackets."], 1)
    >>> print(table)
          (1)
    ---------
    age   0.3
    ---------
    N     500
    ---------
    Standard errors in brackets.
    """

    cells: list[list[str]]
    notes: list[str]
    fact_rows: int = 0
    align: str = "c"

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame of text."""
        import pandas  # noqa: PLC0415 (not needed otherwise)

        header, *rows = self.cells
        return pandas.DataFrame([row[1:] for row in rows], [row[0] for row in rows], header[1:])

    def to_csv(self) -> str:
        """Return the table as CSV, with the minus sign that programs read."""
        return as_csv([name, *(cell.replace("−", "-") for cell in cells)] for name, *cells in self.cells)

    def to_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """Return the table in LaTeX with its notes below, for the package booktabs.

        Parameters
        ----------
        caption : str, optional
            Plain text; special characters are escaped.
        label : str, optional
            The key for cross-references.
        """
        lines = [
            *(r"\begin{table}", r"\centering"),
            *([rf"\caption{{{as_latex(caption)}}}"] if caption else []),
            *([rf"\label{{{label}}}"] if label else []),
            *latex_tabular(self.cells, self.align, self.fact_rows),
            r"\par\smallskip\footnotesize",
            *map(as_latex, self.notes),
            r"\end{table}",
        ]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return the table in HTML that can be pasted into a text processor."""
        last = len(self.cells) - 1
        ruled = {0, last - self.fact_rows, last}
        return _HTML.render(table=self, ruled=ruled, align={"r": "right", "c": "center"}[self.align])

    def __str__(self) -> str:
        lines = align_cells(self.cells, str.rjust if self.align == "r" else str.center)
        rule = "-" * max(map(len, lines))
        lines = [line.rstrip() for line in lines]
        lines.insert(len(lines) - self.fact_rows, rule)
        lines.insert(1, rule)
        lines += [rule] * bool(self.fact_rows)
        return "\n".join([*lines, *(fill(note, max(len(rule), 60)) for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_html()


def align_cells(rows: Sequence[Sequence[str]], justify: Callable[[str, int], str] = str.rjust) -> list[str]:
    """Return rows of cells as lines of one width, names on the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["   ".join([row[0].ljust(widths[0]), *map(justify, row[1:], widths[1:])]) for row in rows]
