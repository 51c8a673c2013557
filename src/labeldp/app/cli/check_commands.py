"""``labeldp explain``, ``verify``, ``report`` and ``ledger``: what a card promises, and what is spent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from labeldp.accounts.budget import Budget, rounded_up, total_of
from labeldp.accounts.explanation import Explanation
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import at_most, factor
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.card_files import read_card_file, read_key, read_signature, report_path
from labeldp.app.cli.command import command
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import EXIT, PlainConsole, news, tell
from labeldp.app.option import REQUIRED
from labeldp.app.sentences import as_flag, printable, spelled
from labeldp.errors import ParameterError
from labeldp.mechanisms.typed_data import plain

BAR = 60
"""Characters of the bar that shows how much of a limit is spent."""


def _print_json(data: dict[str, Any]) -> None:
    typer.echo(json.dumps(data, indent=2, allow_nan=False))


def _finite(epsilon: float) -> float | str:
    return epsilon if math.isfinite(epsilon) else "infinite"


# ---- explain ------------------------------------------------------------------------------------------


@command("card_file", "modules", "as_json")
def explain(card_file: Path, modules: list[str], as_json: bool) -> None:
    """Explain a card: what was done, what was released, what it cost, and what to do with it.

    The card is checked and proven again first; one that does not hold is not explained (exit code 4), nor one that
    cannot be checked here (5).

    What is released: nothing. A card holds no label, and nothing is written.
    """
    import_modules(modules)
    read = verify_card(read_card_file(card_file)[1]).require_card()
    explanation = read.explain()
    if as_json:
        _print_json({"kind": read.kind, **_data(explanation)})
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
        "epsilon": _finite(epsilon),
        "delta": explanation.budget.delta,
        "odds_rise_by_at_most": factor(epsilon) if private and epsilon < 700 else "infinite",
        "guess_of_half_becomes_at_most": float(at_most(0.5, epsilon)) if private else 1.0,
        "warnings": list(explanation.warnings),
        "sections": {heading: list(lines) for heading, lines in explanation.sections.items()},
    }


# ---- verify -------------------------------------------------------------------------------------------


@command("card_file", "file", "trusted", "signature", "modules", "as_json")
def verify(
    card_file: Path,
    file: Path | None,
    trusted: list[Path],
    signature: Path | None,
    modules: list[str],
    as_json: bool,
) -> None:
    """Check a card again: checksum, contradictions, proofs, the noise of sums, and the file that it names.

    The verdict is an exit code: 0 if the card holds, 4 if anything does not, or it is not private, 5 if it cannot
    be checked here, because it names a mechanism that is not known or does not say what was released. A signature
    beside the card, CARD.sig, is checked too; with --trust there must be one, by that key.

    What is released: nothing. A card holds no label, and nothing is written.
    """
    if file is not None and not file.exists():
        raise ParameterError(f"there is no file {file}")
    import_modules(modules)
    from labeldp.accounts.signatures import read_public_key  # noqa: PLC0415
    from labeldp.app.card_check import verify_files  # noqa: PLC0415 (slow to import)

    path, text = read_card_file(card_file)
    if file is None and path != card_file:
        file = card_file  # the file that the user named, whatever file the card beside it names
    result = verify_files(
        text,
        file=file,
        folder=None if path == Path("-") else path.parent,
        signature=read_signature(path, signature),
        trusted=[read_key(key, read_public_key) for key in trusted],
    )
    checks = [(check.name, check.holds, printable(spelled(check.detail, as_flag))) for check in result.checks]
    if as_json:
        named = [dict(zip(("name", "holds", "detail"), check, strict=True)) for check in checks]
        verdict = {"verdict": result.verdict, "holds": result.holds}
        _print_json({**verdict, "checks": named, "cannot_show": list(result.beyond)})
    else:
        _show_checks(result, checks, PlainConsole())
    if not result.holds:
        raise typer.Exit(EXIT["claim" if result.verdict == "does not hold" else "open"])


def _show_checks(result: Verification, checks: list[tuple[str, bool | None, str]], console: Console) -> None:
    table = Table.grid(padding=(0, 1))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    marks = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "yellow")}
    for name, holds, detail in checks:
        mark, style = marks[holds]
        table.add_row(Text(mark, style), Text(name, style), Text(detail, "red" if holds is False else ""))
    if result.holds:
        compared = all(holds is not None for name, holds, _ in checks if name == "file")
        verdict, style = "The card holds." + ("" if compared else " Its file was not compared."), "bold green"
    elif result.verdict == "cannot be checked here":
        verdict, style = "The card cannot be checked here: it may hold, or not.", "bold yellow"
    else:
        sound = all(holds is not False or name == "privacy" for name, holds, _ in checks)
        verdict = "The card agrees with itself, and says NOT PRIVATE." if sound else "The card does NOT hold."
        style = "bold red"
    beyond = [Padding(Text(line, "dim"), (0, 0, 0, 2), expand=False) for line in result.beyond]
    for part in ("", table, "", Text(verdict, style), "", Text("What this cannot show:", "dim"), *beyond, ""):
        console.print(part)


# ---- report -------------------------------------------------------------------------------------------


@command(
    *("card_file", "out", "ledger", "modules", "force"),
    out={"type": Path, "default": None, "metavar": "FILE", "help": "Where to write; by default beside the card."},
    ledger={"part_of": "", "panel": "", "help": "A ledger, to show what is left."},
)
def report(card_file: Path, out: Path | None, ledger: Path | None, modules: list[str], force: bool) -> None:
    """Explain a card on one HTML page: what was released, what it cost, what it protects, what to expect.

    The card is checked and its proof run again. The page is one file, to send or to print; it loads nothing.

    What is released: the page. It follows from the card, and from the ledger if there is one; neither has a label.
    """
    from labeldp.app.report.card_report import write_report  # noqa: PLC0415
    from labeldp.tables.paths import refuse_same  # noqa: PLC0415

    import_modules(modules)
    path, text = read_card_file(card_file)
    target = out or report_path(path)
    refuse_same({"the report": target}, {"the card": path, "the ledger": ledger})
    spent = None if ledger is None else Ledger.open(ledger, create="never")
    write_report(target, text, ledger=spent, force=force)
    tell(news(), f"The report is in {target}")


# ---- ledger -------------------------------------------------------------------------------------------


@command("file", "as_json", file={"default": REQUIRED, "help": "A ledger's file."})
def ledger(file: Path, as_json: bool) -> None:
    """Show what is spent and left in a ledger. It is only read: never created, never repaired.

    Exit code 3 if the file is damaged or was changed.

    What is released: nothing. A ledger lists costs, times and what was released, and no label.
    """
    if not file.exists():
        raise ParameterError(f"there is no ledger {file}")
    opened = Ledger.open(file, create="never")
    if as_json:
        _print_json(_ledger_data(opened))
    else:
        _show_ledger(opened, PlainConsole())


def _show_ledger(opened: Ledger, console: Console) -> None:
    charges, limit = opened.charges, opened.limit
    spent = total_of(charges)
    columns = {
        "when (UTC)": [printable(charge.when)[:19].replace("T", " ") for charge in charges],
        "ε": [rounded_up(charge.budget.epsilon) for charge in charges],
        "δ": [rounded_up(charge.budget.delta, 3) for charge in charges],
        "rows each": [f"{charge.rows_per_person:,}" for charge in charges],
        "for": [printable(charge.what, 200) for charge in charges],
    }
    if not any(charge.budget.delta for charge in charges):
        del columns["δ"]
    if all(charge.rows_per_person == 1 for charge in charges):
        del columns["rows each"]
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, justify="left" if name in ("when (UTC)", "for") else "right")
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, cells))
    times = "1 charge" if len(charges) == 1 else f"{len(charges):,} charges"
    lines: list[Any] = ["", table, ""] if charges else [""]
    if limit is None:
        lines.append(Text(f"Spent {spent} in {times}. There is no limit.", "bold"))
    else:
        share, left = _share(spent, limit), limit.minus(spent)
        colour = "red" if share >= 1 else "yellow" if share > 0.8 else "green"
        full = round(BAR * min(1.0, share))
        lines += [
            Text.assemble(("█" * full, colour), ("░" * (BAR - full), "dim")),
            Text(f"Spent {spent} of {limit} in {times}.", "bold"),
            Text("Nothing is left." if left.exact_epsilon == 0 else f"Left: {left}.", colour),
        ]
    for line in (*lines, ""):
        console.print(line)


def _share(spent: Budget, limit: Budget) -> float:
    """Return the part of the limit that is spent, of ε or δ, whichever is further gone."""
    if spent.exact_epsilon >= limit.exact_epsilon:
        return 1.0
    delta = float(spent.exact_delta / limit.exact_delta) if limit.exact_delta else 0.0
    return max(float(spent.exact_epsilon / limit.exact_epsilon), delta)


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
    return None if budget is None else {"epsilon": _finite(budget.epsilon), "delta": budget.delta}
