"""``labeldp explain``: a card in plain words."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from labeldp.cards.reading import read_any_card
from labeldp.cli.card_file import read_card_file
from labeldp.cli.shell import explained, printable
from labeldp.release.explanation import Explanation
from labeldp.release.numbers import at_most, factor

__all__ = ["explain"]

EXAMPLE = "Example:  labeldp explain private.parquet.card.json"


def explain(
    card: Annotated[
        Path,
        typer.Argument(metavar="CARD", help="A card, the file it lies beside, a model's folder, or - for a pipe."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="For scripts: the same as JSON.")] = False,
) -> None:
    """Say what a card means: what was done, what left, what it cost, and what to do with it.

    The card is checked and proven again first; one that does not hold is not explained (exit code 4).
    """
    with explained():
        _, text = read_card_file(card)
        read = read_any_card(text, allow_no_privacy=True)
        explanation = read.explain()
        if as_json:
            typer.echo(json.dumps({"kind": read.kind, **_data(explanation)}, indent=2, allow_nan=False))
        else:
            _show(explanation, Console())


def _show(explanation: Explanation, console: Console) -> None:
    console.print()
    console.print(Text(printable(explanation.title), style="bold"))
    for warning in explanation.warnings:
        console.print(Panel(Text(printable(warning)), style="bold red", title="Read this first"))
    for heading, lines in explanation.sections.items():
        console.print()
        console.print(Text(heading, style="bold cyan"))
        for line in lines:
            text = line.lstrip(" ")
            inset = (0, 0, 0, 2 + len(line) - len(text))
            console.print(Padding(Text(printable(text)), inset, expand=False))
    console.print()


def _data(explanation: Explanation) -> dict[str, Any]:
    epsilon, private = explanation.budget.epsilon, explanation.private
    return {
        "title": explanation.title,
        "private": private,
        "epsilon": epsilon if math.isfinite(epsilon) else "infinite",
        "delta": explanation.budget.delta,
        "odds_rise_by_at_most": factor(epsilon) if private and epsilon < 700 else "infinite",
        "guess_of_half_becomes_at_most": float(at_most(0.5, epsilon)) if private else 1.0,
        "warnings": list(explanation.warnings),
        "sections": {heading: list(lines) for heading, lines in explanation.sections.items()},
    }
