"""``labeldp explain``, ``verify`` and ``report``: promises of a card, and its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from labeldp.accounts.ledger import Ledger, open_book
from labeldp.accounts.ledger_chain import Extract
from labeldp.accounts.verification import Check, Verification, verify_card
from labeldp.app.card_files import KINDS, read_card_file, report_path, reports_beside
from labeldp.app.cli.commands import command
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import EXIT, PlainConsole, print_json, print_status
from labeldp.app.options import AsJson, CardFile, Force, Modules, PaidFrom
from labeldp.app.sentences import as_flag, printable, spelled
from labeldp.errors import ParameterError

# ---- explain ------------------------------------------------------------------------------------------


@command("Check", "private.parquet.card.json")
def explain(card_file: CardFile, modules: Modules = ()) -> None:
    """Explain a card: actions, release, cost, noise, and advice.

    The card is checked and proven again first; one that is not valid is not explained (exit code 4), nor one that
    this version cannot verify (5).

    Releases: nothing. A card holds no label, and nothing is written.
    """
    import_modules(modules)
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


@command("Check", "private.parquet --ledger budget.json")
def verify(
    card_file: CardFile,
    file: Annotated[
        Path | None,
        Argument(metavar="FILE", help="The file of the release; found by its name beside the card."),
    ] = None,
    model_folder: Annotated[
        Path | None,
        Option(
            "--model",
            metavar="FOLDER",
            help="The saved model behind the labels of a table: they are computed again, and compared.",
        ),
    ] = None,
    paid_from: PaidFrom = None,
    as_json: AsJson = False,
    modules: Modules = (),
) -> None:
    """Check a card again: checksum, contradictions, proofs, the noise of sums, and the file that it names.

    The verdict is an exit code: 0 if the card is valid, 4 if anything is not, or it is not private, 5 if this
    version cannot verify it, because a mechanism is unknown or an entry is missing.
    With --ledger, the card's charges must be in that ledger, whose extract labeldp ledger --json writes.
    A report or a summary is not evidence, and is not compared: write your own from the card with labeldp report.
    The last line names all that was not compared.

    Releases: nothing. A card holds no label, and nothing is written.
    """
    import_modules(modules)
    if file is not None and not file.exists():
        raise ParameterError(f"there is no file {file}")
    extract = None if paid_from is None else Extract.load(paid_from)
    path, _, result = _verified(card_file, file, extract, model_folder)
    result = replace(result, checks=(*result.checks, *_skipped_files(path)))
    checks = [replace(check, detail=printable(spelled(check.detail, as_flag))) for check in result.checks]
    if as_json:
        entries = [{"name": check.name, "valid": check.holds, "detail": check.detail} for check in checks]
        print_json(verdict=result.verdict, valid=result.holds, checks=entries, cannot_show=result.not_verifiable)
    else:
        _show_checks(replace(result, checks=tuple(checks)))
    if not result.holds:
        raise typer.Exit(_EXIT_CODES[result.verdict])


def _skipped_files(card: Path) -> Iterator[Check]:
    """Yield a check for each file beside a card that is not compared: reports and signatures."""
    for report in (path for kind in KINDS for path in reports_beside(card, kind)):
        if report.is_file():
            detail = f"{report.name} is not evidence, and was not compared: write your own from the card"
            yield Check("report", None, detail)
    signature = card.with_name(f"{card.name}.sig")
    if signature.is_file():
        yield Check("signature", None, f"{signature.name} was not compared: ssh-keygen -Y verify checks it")


def _verified(
    card_file: Path, file: Path | None, ledger: Ledger | Extract | None, model: Path | None = None
) -> tuple[Path, str, Verification]:
    """Return the path and the text of a card, and its checks.

    The file that the user names is compared, and not another one that the card names.
    """
    from labeldp.app.card_check import verify_files

    path, text = read_card_file(card_file)
    if file is None and path not in (card_file, card_file / "card.json"):
        file = card_file
    return path, text, verify_files(text, file=file, folder=path.parent, model_folder=model, ledger=ledger)


_STYLES = {"valid": "bold green", "cannot verify": "bold yellow", "not valid": "bold red"}
_EXIT_CODES = {"cannot verify": EXIT["open"], "not valid": EXIT["claim"]}
_MARKS = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "yellow")}


def _show_checks(result: Verification) -> None:
    console = PlainConsole()
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in result.checks:
        mark, style = _MARKS[check.holds]
        table.add_row(Text(mark, style), Text(check.name, style), check.detail)
    console.print("", table, "", Text("What this cannot show:", "dim"), sep="\n")
    for line in result.not_verifiable:
        console.print(Padding(Text(line, "dim"), (0, 0, 0, 2), expand=False))
    console.print("", Text(_verdict(result), _STYLES[result.verdict]), "", sep="\n")


def _verdict(result: Verification) -> str:
    """Return the last line: the verdict, and the names of all checks that were not made."""
    skipped = ", ".join(dict.fromkeys(check.name for check in result.checks if check.holds is None))
    failed = ", ".join(dict.fromkeys(check.name for check in result.checks if check.holds is False))
    if failed:
        return f"NOT valid: {failed}."
    if not result.holds:
        return f"This version cannot verify it: {skipped}."
    return f"Valid. Not compared: {skipped}." if skipped else "Valid."


# ---- report -------------------------------------------------------------------------------------------


@command("Check", "private.parquet.card.json --ledger budget.db")
def report(
    card_file: CardFile,
    out: Annotated[
        Path | None,
        Option("--out", "-o", help="The page to write; by default beside the card, or beside a model's folder."),
    ] = None,
    summary: Annotated[bool, Option(help="One A4 page for a data-protection impact assessment.")] = False,
    paid_from: PaidFrom = None,
    force: Force = False,
    modules: Modules = (),
) -> None:
    """Explain a card on one HTML page: release, cost, protection, and noise.

    The card is checked, its proof run again, and its file compared, as labeldp verify does; one that is not
    valid is not explained (exit code 4). The page is one file, to send or to print; it loads nothing. With
    --summary it is one A4 page for a data-protection impact assessment.

    Releases: the page. It follows from the card, and from the ledger if there is one; neither has a label.
    """
    import_modules(modules)
    from labeldp.app.report import Kind, render_report, write_page
    from labeldp.tables.paths import Target, refuse_same

    ledger = None if paid_from is None else open_book(paid_from)
    path, text, result = _verified(card_file, None, ledger)
    kind: Kind = "summary" if summary else "report"
    target = out or report_path(card_file.resolve() if card_file.is_dir() else path, kind)
    refuse_same({f"the {kind}": target}, {"the card": path, "the ledger": paid_from})
    Target(str(target), force).refuse()
    write_page(target, render_report(text, kind, ledger=ledger, verification=result), force=force, subject=path)
    print_status(f"The {kind} is in {target}")
