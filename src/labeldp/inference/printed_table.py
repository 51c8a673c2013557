"""A table as papers print it: text, HTML, LaTeX, CSV."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import Any
from xml.etree import ElementTree

from labeldp.accounts.cells import as_csv, as_latex, latex_tabular


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
        """Return the table as CSV."""
        return as_csv(self.cells)

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
        root = ElementTree.Element("div")
        table = ElementTree.SubElement(root, "table", style="border-collapse: collapse")
        figures = f"padding: 0 0.7em; text-align: {'right' if self.align == 'r' else 'center'}"
        ruled = {0, len(self.cells) - 1 - self.fact_rows, len(self.cells) - 1}
        for k, row in enumerate(self.cells):
            line = ElementTree.SubElement(table, "tr", style="border-bottom: 1px solid" if k in ruled else "")
            for position, text in enumerate(row):
                cell = ElementTree.SubElement(line, "td" if k and position else "th")
                cell.set("style", figures if position else "text-align: left; font-weight: normal")
                cell.text = text
        for note in self.notes:
            ElementTree.SubElement(root, "p").text = note
        return ElementTree.tostring(root, encoding="unicode", method="html")

    def __str__(self) -> str:
        justify = str.rjust if self.align == "r" else str.center
        widths = [max(map(len, column)) for column in zip(*self.cells, strict=True)]
        rule = "-" * (sum(widths) + 3 * (len(widths) - 1))
        lines = [
            "   ".join([row[0].ljust(widths[0]), *map(justify, row[1:], widths[1:])]).rstrip()
            for row in self.cells
        ]
        lines.insert(len(lines) - self.fact_rows, rule)
        lines.insert(1, rule)
        lines += [rule] * bool(self.fact_rows)
        return "\n".join([*lines, *(fill(note, max(len(rule), 60)) for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_html()
