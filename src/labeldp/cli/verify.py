"""``labeldp verify``: a card checked, its proof run again, its file compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from labeldp.cards.verification import BEYOND, Verification
from labeldp.cli.card_file import read_card_file
from labeldp.cli.shell import EXIT, explained, printable
from labeldp.errors import ParameterError

__all__ = ["verify"]

EXAMPLE = "Example:  labeldp verify private.parquet.card.json"


def verify(
    card: Annotated[
        Path,
        typer.Argument(
            metavar="CARD", help="A card, the file or folder it lies beside, a model's folder, or - for a pipe."
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="What was released with it; found by its name beside the card."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts: the same as JSON.")] = False,
) -> None:
    """Check a card again: checksum, contradictions, the exact proof, and the file it speaks of.

    Exit code 0 if all holds, 4 if anything does not, or if it is not private.
    """
    with explained():
        if file is not None and not file.exists():
            raise ParameterError(f"there is no file {file}")
        from labeldp.files.card_check import verify_files  # noqa: PLC0415 (slow to import)

        path, text = read_card_file(card)
        if file is None and path != card:
            file = card  # the file that the user named, whatever file the card beside it names
        result = verify_files(text, file=file, folder=None if path == Path("-") else path.parent)
        if as_json:
            checks = [{"name": c.name, "holds": c.holds, "detail": printable(c.detail)} for c in result.checks]
            data = {
                "holds": result.holds,
                "checks": checks,
                "cannot_show": list(BEYOND),
            }
            typer.echo(json.dumps(data, ensure_ascii=False, indent=2))
        else:
            _show(result, Console())
        if not result.holds:
            raise typer.Exit(EXIT["claim"])


def _show(result: Verification, console: Console) -> None:
    table = Table.grid(padding=(0, 1))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    marks = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "yellow")}
    for check in result.checks:
        mark, style = marks[check.holds]
        detail = Text(printable(check.detail), style="red" if check.holds is False else "")
        table.add_row(Text(mark, style=style), Text(check.name, style=style), detail)
    console.print()
    console.print(table)
    console.print()
    if result.holds:
        console.print(Text("The card holds.", style="bold green"))
    else:
        sound = all(check.holds is not False or check.name == "privacy" for check in result.checks)
        verdict = "The card agrees with itself, and says NOT PRIVATE." if sound else "The card does NOT hold."
        console.print(Text(verdict, style="bold red"))
    console.print()
    console.print(Text("What this cannot show:", style="dim"))
    for line in BEYOND:
        console.print(Padding(Text(line, style="dim"), (0, 0, 0, 2), expand=False))
    console.print()
