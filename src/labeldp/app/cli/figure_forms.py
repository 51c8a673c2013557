"""Tables of figures for people, for scripts (``--json``, ``--csv``) and for papers (``--latex``)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import typer

from labeldp.app.cli.shell import PlainConsole, figure_table, finite, print_json, tell
from labeldp.app.sentences import as_flag, spelled, without_controls
from labeldp.errors import ParameterError, Setting

FORMS = ("as_json", "as_csv", "as_latex")

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {mark: f"\\{mark}" for mark in "&%$#_{}"}
_LATEX |= {"ε": r"$\varepsilon$", "±": r"$\pm$", "×": r"$\times$", "≈": r"$\approx$", "–": "--"}


class Figures(NamedTuple):
    """What a command has to show: tables by their titles, sentences, and every figure in full."""

    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]
    notes: Sequence[str]
    records: Sequence[Mapping[str, Any]]


def parse_form(given: dict[str, Any]) -> str:
    """Take the options of the form out of all others, and return the one that was given, or nothing."""
    forms = [name for name in FORMS if given.pop(name)]
    if len(forms) > 1:
        raise ParameterError(Setting(forms[0]), " and ", Setting(forms[1]), " exclude each other: give one")
    return "".join(forms)


def print_figures(figures: Figures, form: str) -> None:
    """Print figures in a form: tables by default, which no pipe cuts."""
    if form == "as_json":
        records = [{name: _plain(part) for name, part in record.items()} for record in figures.records]
        print_json(figures=records, notes=[spelled(note, as_flag) for note in figures.notes])
    elif form == "as_csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(figures.records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(figures.records)
        typer.echo(text.getvalue(), nl=False)
    elif form == "as_latex":
        for title, (header, lines) in figures.tables.items():
            typer.echo(_latex(title, header, lines))
    else:
        console = PlainConsole()
        if not console.is_terminal:
            console.width = 1000
        for title, (header, lines) in figures.tables.items():
            console.print(figure_table(title, header, lines))
        tell(console, *figures.notes)


def _plain(part: Any) -> Any:
    return finite(part) if isinstance(part, float) else part


def _latex(title: str, header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table of LaTeX, with the rules of the package booktabs."""

    def row(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX.get(mark, mark) for mark in cell) for cell in cells) + r" \\"

    columns = "l" + "r" * (len(header) - 1)
    start = [f"% {without_controls(title)}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", row(header)]
    return "\n".join([*start, r"\midrule", *map(row, lines), r"\bottomrule", r"\end{tabular}", ""])
