"""``labeldp explain``: a card in plain words."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from labeldp.any_card import ReadCard, read_any_card
from labeldp.cli.shell import card_text, explained
from labeldp.plain_words import Explanation, guarantee_of, guess_becomes, odds_factor
from labeldp.plain_words import explain as in_words

__all__ = ["explain"]


def explain(
    card: Annotated[str, typer.Argument(metavar="CARD", help="A card's file, or - for standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="For scripts: the same as JSON.")] = False,
) -> None:
    """Say what a card means: what was done, what left, what it cost, and what to do with it.

    The card is checked and proven again first; one that does not hold is not explained (exit code 4).
    """
    with explained():
        read = read_any_card(card_text(card), allow_no_privacy=True)
        words = in_words(read)
        if as_json:
            typer.echo(json.dumps(_data(read, words), ensure_ascii=False, indent=2, allow_nan=False))
        else:
            _show(words, Console())


def _show(words: Explanation, console: Console) -> None:
    console.print()
    console.print(Text(words.title, style="bold"))
    for warning in words.warnings:
        console.print(Panel(Text(warning), style="bold red", title="Read this first"))
    for title, lines in words.sections.items():
        console.print()
        console.print(Text(title, style="bold cyan"))
        for line in lines:
            text = line.lstrip(" ")
            console.print(Padding(Text(text), (0, 0, 0, 2 + len(line) - len(text)), expand=False))
    console.print()


def _data(card: ReadCard, words: Explanation) -> dict[str, Any]:
    budget = guarantee_of(card)
    private = card.secure and math.isfinite(budget.epsilon)
    return {
        "kind": card.kind,
        "private": private,
        "epsilon": budget.epsilon if math.isfinite(budget.epsilon) else "infinite",
        "delta": budget.delta,
        "odds_rise_by_at_most": odds_factor(budget) if private else "infinite",
        "guess_of_half_becomes_at_most": guess_becomes(budget) if private else 1.0,
        "title": words.title,
        "warnings": list(words.warnings),
        "sections": {title: list(lines) for title, lines in words.sections.items()},
    }
