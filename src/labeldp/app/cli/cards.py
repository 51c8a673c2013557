"""``labeldp explain``, ``verify`` and ``report``: what a card promises, and whether it holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from labeldp._atomic import read_regular
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.card_files import read_card_file, read_key, read_signature, report_path
from labeldp.app.cli import command
from labeldp.app.cli.shell import EXIT, PlainConsole, news, print_json, tell
from labeldp.app.sentences import as_flag, printable, spelled
from labeldp.errors import ParameterError
from labeldp.mechanisms.card_format import MAX_TEXT

# ---- explain ------------------------------------------------------------------------------------------


@command("card_file", "modules")
def explain(card_file: Path) -> None:
    """Explain a card: what was done, what was released, what it cost, and what to do with it.

    The card is checked and proven again first; one that does not hold is not explained (exit code 4), nor one that
    cannot be checked here (5).

    What is released: nothing. A card holds no label, and nothing is written.
    """
    explanation = verify_card(read_card_file(card_file)[1]).require_card().explain()
    console = PlainConsole()
    console.print("", Text(printable(explanation.title), style="bold"), sep="\n")
    for warning in explanation.warnings:
        console.print(Panel(Text(printable(warning)), style="bold red", title="Read this first"))
    for heading, lines in explanation.sections.items():
        console.print("", Text(heading, style="bold cyan"), sep="\n")
        for line in lines:
            text = line.lstrip(" ")
            console.print(Padding(Text(printable(text)), (0, 0, 0, 2 + len(line) - len(text)), expand=False))
    console.print()


# ---- verify -------------------------------------------------------------------------------------------


@command("card_file", "file", "trusted", "signature", "require_signature", "paid_from", "as_json", "modules")
def verify(
    card_file: Path,
    file: Path | None,
    trusted: list[Path],
    signature: Path | None,
    require_signature: bool,
    paid_from: Path | None,
    as_json: bool,
) -> None:
    """Check a card again: checksum, contradictions, proofs, the noise of sums, and the file that it names.

    The verdict is an exit code: 0 if the card holds, 4 if anything does not, or it is not private, 5 if it cannot
    be checked here, because it names a mechanism that is not known or does not say what was released. A report or
    a summary, with its card beside it or after it, is written again from the card and must be the same, byte for
    byte; so must those beside the card, under their usual names. What another version wrote cannot be checked, and
    the last line says so.
    With --ledger, the card's charges must be in that ledger, and what such a page shows of it is compared. A
    signature beside the card, CARD.sig, is checked too; with --trust there must be one, by that key. The last line
    says whether the card is signed; --require-signature makes it an error if it is not.

    What is released: nothing. A card holds no label, and nothing is written.
    """
    if file is not None and not file.exists():
        raise ParameterError(f"there is no file {file}")
    from labeldp.app.report.report_check import check_report, check_reports_beside  # noqa: PLC0415

    page = read_regular(card_file, MAX_TEXT) if card_file.suffix == ".html" else None
    if page is not None:
        card_file, file = file or card_file, None
    keys = [read_key(key) for key in trusted]
    signed = {"trusted": keys, "require_signature": require_signature}
    path, text, ledger, result = _verified(card_file, file, paid_from, signature, **signed)
    if page is None:
        reports = check_reports_beside(path, text, result, paid_from=ledger)
    else:
        reports = check_report(page, text, result, ledger)
    result = replace(result, checks=(*result.checks, *reports))
    checks = [replace(check, detail=printable(spelled(check.detail, as_flag))) for check in result.checks]
    if as_json:
        named = [{name: getattr(check, name) for name in ("name", "holds", "detail")} for check in checks]
        print_json(verdict=result.verdict, holds=result.holds, checks=named, cannot_show=result.not_verifiable)
    else:
        _show_checks(replace(result, checks=tuple(checks)))
    if not result.holds:
        raise typer.Exit(EXIT["claim" if result.verdict == "does not hold" else "open"])


def _verified(
    named: Path, file: Path | None, paid_from: Path | None, signature: Path | None = None, **signed: Any
) -> tuple[Path, str, Ledger | None, Verification]:
    """Return the path and the text of a card, the ledger that is named, and what a check of the card shows.

    The file that the user named is compared, whatever file the card beside it names; a page is made of the card.
    """
    from labeldp.app.card_check import verify_files  # noqa: PLC0415 (slow to import)

    path, text = read_card_file(named)
    if file is None and path not in (named, named / "card.json") and named.suffix != ".html":
        file = named
    ledger = None if paid_from is None else Ledger.open(paid_from, create="never")
    beside: Any = {"file": file, "folder": path.parent, "signature": read_signature(path, signature)}
    return path, text, ledger, verify_files(text, ledger=ledger, **beside, **signed)


_STYLES = {"holds": "bold green", "cannot be checked here": "bold yellow", "does not hold": "bold red"}
_MARKS = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "yellow")}


def _show_checks(result: Verification) -> None:
    console = PlainConsole()
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    verdict = _verdict(result)
    for check in result.checks:
        mark, style = _MARKS[check.holds]
        table.add_row(Text(mark, style), Text(check.name, style), check.detail)
        if check.name == "signature" and not check.holds:
            verdict += f" {check.detail[:1].upper()}{check.detail[1:]}."
    console.print("", table, "", Text("What this cannot show:", "dim"), sep="\n")
    for line in result.not_verifiable:
        console.print(Padding(Text(line, "dim"), (0, 0, 0, 2), expand=False))
    console.print("", Text(verdict, _STYLES[result.verdict]), "", sep="\n")


def _verdict(result: Verification) -> str:
    """Return what all checks come to."""
    failed, missing = (
        list(dict.fromkeys(check.name for check in result.checks if check.holds is mark)) for mark in (False, None)
    )
    if result.holds:
        left = [name for name in ("file", "report", "summary") if name in missing]
        return "The card holds." + "".join(f" Its {name} was not compared." for name in left)
    if not failed:
        return "The card cannot be checked here: it may hold, or not."
    return f"The card, or what lies beside it, does NOT hold: {', '.join(failed)}."


# ---- report -------------------------------------------------------------------------------------------


@command(
    *("card_file", "out", "summary", "paid_from", "force", "modules"),
    out={
        "type": Path,
        "default": None,
        "metavar": "FILE",
        "help": "Where to write; by default beside the card, or beside a model's folder.",
    },
)
def report(card_file: Path, out: Path | None, summary: bool, paid_from: Path | None, force: bool) -> None:
    """Explain a card on one HTML page: what was released, what it cost, what it protects, what to expect.

    The card is checked, its proof run again, and its file compared, as labeldp verify does; where something does
    not hold, nothing is written (exit code 4). The page is one file, to send or to print; it loads nothing. With
    --summary it is one A4 page for a data-protection impact assessment.

    What is released: the page. It follows from the card, and from the ledger if there is one; neither has a label.
    """
    from labeldp.app.report import Kind, render_report, write_page  # noqa: PLC0415
    from labeldp.tables.paths import Target, refuse_same  # noqa: PLC0415

    path, text, ledger, result = _verified(card_file, None, paid_from)
    kind: Kind = "summary" if summary else "report"
    target = out or report_path(card_file.resolve() if card_file.is_dir() else path, kind)
    refuse_same({f"the {kind}": target}, {"the card": path, "the ledger": paid_from})
    Target(str(target), force).refuse()
    write_page(target, render_report(text, kind, ledger=ledger, verification=result), force=force, like=path)
    tell(news(), f"The {kind} is in {target}")
