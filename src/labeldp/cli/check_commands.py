"""``labeldp explain``, ``verify``, ``report`` and ``ledger``: what a card promises, and what is spent."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from labeldp._schema import plain
from labeldp._values import rounded_up
from labeldp.cards.verification import Verification, verify_card
from labeldp.cli.options import Force, Json
from labeldp.cli.own_mechanisms import Modules, import_modules
from labeldp.cli.shell import EXIT, PlainConsole, explained, news, tell
from labeldp.errors import ParameterError
from labeldp.jobs.card_files import read_card_file, read_key, read_signature, report_path
from labeldp.jobs.sentences import printable
from labeldp.ledger import Budget, Ledger, total_of
from labeldp.release.explanation import Explanation
from labeldp.release.numbers import at_most, factor


def explain(
    card: Annotated[
        Path,
        typer.Argument(metavar="CARD", help="A card, the file it lies beside, a model's folder, or - for a pipe."),
    ],
    modules: Modules = None,
    as_json: Json = False,
) -> None:
    """Say what a card means: what was done, what left, what it cost, and what to do with it.

    The card is checked and proven again first; one that does not hold is not explained (exit code 4), nor one that
    cannot be checked here (5).

    What leaves: nothing. A card holds no label, and nothing is written.
    """
    with explained():
        import_modules(modules)
        _, text = read_card_file(card)
        read = verify_card(text).require_card()
        explanation = read.explain()
        if as_json:
            typer.echo(json.dumps({"kind": read.kind, **_data(explanation)}, indent=2, allow_nan=False))
        else:
            _show_explanation(explanation, PlainConsole())


def _show_explanation(explanation: Explanation, console: Console) -> None:
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


def verify(
    card: Annotated[
        Path,
        typer.Argument(
            metavar="CARD", help="A card, the file or folder it lies beside, a model's folder, or - for a pipe."
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="What was released with it; found by its name beside the card."),
    ] = None,
    trust: Annotated[
        list[Path] | None,
        typer.Option(
            "--trust",
            metavar="KEY.pub",
            help="A public Ed25519 key, as OpenSSH or PEM writes it, that must have signed the card.",
        ),
    ] = None,
    signature: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The card's signature, if it is not beside it as CARD.sig.")
    ] = None,
    modules: Modules = None,
    as_json: Json = False,
) -> None:
    """Check a card again: checksum, contradictions, proofs, the noise of sums, and the file it speaks of.

    The verdict is an exit code: 0 if the card holds, 4 if anything does not, or it is not private, 5 if it cannot
    be checked here, because it names a mechanism that is not known or does not say what left. A signature beside
    the card, CARD.sig, is checked too; with --trust there must be one, by that key.

    What leaves: nothing. A card holds no label, and nothing is written.
    """
    with explained():
        if file is not None and not file.exists():
            raise ParameterError(f"there is no file {file}")
        import_modules(modules)
        from labeldp.cards.signatures import read_public_key  # noqa: PLC0415
        from labeldp.files.card_check import verify_files  # noqa: PLC0415 (slow to import)

        path, text = read_card_file(card)
        if file is None and path != card:
            file = card  # the file that the user named, whatever file the card beside it names
        result = verify_files(
            text,
            file=file,
            folder=None if path == Path("-") else path.parent,
            signature=read_signature(path, signature),
            trusted=[read_key(key, read_public_key) for key in trust or ()],
        )
        if as_json:
            checks = [{"name": c.name, "holds": c.holds, "detail": printable(c.detail)} for c in result.checks]
            data = {
                "verdict": result.verdict,
                "holds": result.holds,
                "checks": checks,
                "cannot_show": list(result.beyond),
            }
            typer.echo(json.dumps(data, indent=2))
        else:
            _show_checks(result, PlainConsole())
        if not result.holds:
            raise typer.Exit(EXIT["claim" if result.verdict == "does not hold" else "open"])


def _show_checks(result: Verification, console: Console) -> None:
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
        compared = all(check.holds is not None for check in result.checks if check.name == "file")
        unseen = "" if compared else " Its file was not compared."
        console.print(Text(f"The card holds.{unseen}", style="bold green"))
    elif result.verdict == "cannot be checked here":
        console.print(Text("The card cannot be checked here: it may hold, or not.", style="bold yellow"))
    else:
        sound = all(check.holds is not False or check.name == "privacy" for check in result.checks)
        verdict = "The card agrees with itself, and says NOT PRIVATE." if sound else "The card does NOT hold."
        console.print(Text(verdict, style="bold red"))
    console.print()
    console.print(Text("What this cannot show:", style="dim"))
    for line in result.beyond:
        console.print(Padding(Text(line, style="dim"), (0, 0, 0, 2), expand=False))
    console.print()


def report(
    card: Annotated[
        Path, typer.Argument(metavar="CARD", help="The card, the file it lies beside, or a model's folder.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write; by default beside the card."),
    ] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="FILE", help="A ledger, to show what is left.")] = None,
    modules: Modules = None,
    force: Force = False,
) -> None:
    """Explain a card on one HTML page: what left, what it cost, what it protects, what to expect.

    The card is checked and its proof run again. The page is one file, to send or to print; it loads nothing.

    What leaves: the page. It follows from the card, and from the ledger if you name one; no label is in either.
    """
    with explained():
        from labeldp.files.places import refuse_same  # noqa: PLC0415
        from labeldp.report import write_report  # noqa: PLC0415

        import_modules(modules)
        path, text = read_card_file(card)
        target = out or report_path(path)
        refuse_same({"the report": target}, {"the card": path, "the ledger": ledger})
        spent = None if ledger is None else Ledger.open(ledger, create="never")
        write_report(target, text, ledger=spent, force=force)
        tell(news(), f"The report is in {target}")


BAR = 60


def ledger(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger's file.")], as_json: Json = False
) -> None:
    """Show what is spent and left in a ledger. It is only read: never created, never repaired.

    Exit code 3 if the file is damaged or was changed.

    What leaves: nothing. A ledger lists costs, times and words for what was released, and no label.
    """
    with explained():
        if not file.exists():
            raise ParameterError(f"there is no ledger {file}")
        opened = Ledger.open(file, create="never")
        if as_json:
            typer.echo(json.dumps(_ledger_data(opened), indent=2, allow_nan=False))
        else:
            _show_ledger(opened, PlainConsole())


def _show_ledger(opened: Ledger, console: Console) -> None:
    charges, limit = opened.charges, opened.limit
    spent = total_of(charges)
    table = Table(box=None, padding=(0, 2, 0, 0))
    deltas = any(charge.budget.delta for charge in charges)
    people = any(charge.rows_per_person > 1 for charge in charges)
    for name, has_values in (
        ("when (UTC)", True),
        ("ε", True),
        ("δ", deltas),
        ("rows each", people),
        ("for", True),
    ):
        if has_values:
            table.add_column(name, justify="right" if name in ("ε", "δ", "rows each") else "left")
    for charge in charges:
        cells = [printable(charge.when)[:19].replace("T", " "), rounded_up(charge.budget.epsilon)]
        cells += [rounded_up(charge.budget.delta, 3)] if deltas else []
        cells += [f"{charge.rows_per_person:,}"] if people else []
        table.add_row(*map(Text, [*cells, printable(charge.what, 200)]))
    console.print()
    if charges:
        console.print(table)
        console.print()
    if limit is None:
        console.print(Text(f"Spent {spent} in {_times(len(charges))}. There is no limit.", style="bold"))
        console.print()
        return
    share = _share(spent, limit)
    colour = "red" if share >= 1 else "yellow" if share > 0.8 else "green"
    full = round(BAR * min(1.0, share))
    console.print(Text.assemble(("█" * full, colour), ("░" * (BAR - full), "dim")))
    console.print(Text(f"Spent {spent} of {limit} in {_times(len(charges))}.", style="bold"))
    left = limit.minus(spent)
    console.print(Text("Nothing is left." if left.exact_epsilon == 0 else f"Left: {left}.", style=colour))
    console.print()


def _times(count: int) -> str:
    return "1 charge" if count == 1 else f"{count:,} charges"


def _share(spent: Budget, limit: Budget) -> float:
    """Return the part of the limit that is spent, of ε or δ, whichever is further gone."""
    pairs = [(spent.exact_epsilon, limit.exact_epsilon)]
    if limit.exact_delta:
        pairs.append((spent.exact_delta, limit.exact_delta))
    return max(_part(one, all_of_it) for one, all_of_it in pairs)


def _part(spent: Fraction | None, limit: Fraction | None) -> float:
    if limit is None:
        return 0.0
    return 1.0 if spent is None or limit == 0 else float(spent / limit)


def _ledger_data(opened: Ledger) -> dict[str, Any]:
    charges = opened.charges  # read once: others may charge meanwhile
    spent = total_of(charges)
    return {
        "limit": _plain(opened.limit),
        "spent": _plain(spent),
        "left": None if opened.limit is None else _plain(opened.limit.minus(spent)),
        "charges": [{**plain(charge), **(_plain(charge.budget) or {})} for charge in charges],
    }


def _plain(budget: Budget | None) -> dict[str, Any] | None:
    if budget is None:
        return None
    return {"epsilon": budget.epsilon if math.isfinite(budget.epsilon) else "infinite", "delta": budget.delta}
