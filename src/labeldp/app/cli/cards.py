"""``labeldp explain``, ``verify`` and ``report``: promises of a card, and its verdict."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from labeldp.accounts.budget import Charge, missing_charges, rounded_up, sum_of
from labeldp.accounts.ledger import open_book
from labeldp.accounts.ledger_chain import Book, Extract
from labeldp.accounts.verification import Check, Verification, verify_card
from labeldp.app.card_files import KINDS, cards_in, read_card_file, report_path, reports_beside
from labeldp.app.cli.commands import command
from labeldp.app.cli.ledgers import print_sums
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import EXIT, PlainConsole, finite, print_json, print_result, print_status, print_table
from labeldp.app.options import AsJson, CardFile, Force, Modules, PaidFrom
from labeldp.app.sentences import as_flag, counted, printable, spelled
from labeldp.errors import CardError, LabelDPError, ParameterError, Setting

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
    console.print("", Text(printable(explanation.title), "bold"), sep="\n")
    for warning in explanation.warnings:
        console.print("", Text(printable(warning), "bold red"), sep="\n")
    for heading, lines in explanation.sections.items():
        text = Text("\n".join(map(printable, lines)))
        console.print("", Text(heading, "bold cyan"), Padding(text, (0, 0, 0, 2)), sep="\n")
    console.print()


# ---- verify -------------------------------------------------------------------------------------------


@command("Check", "private.parquet --ledger budget.json")
def verify(
    card_files: Annotated[
        list[Path],
        Argument(
            metavar="CARD...",
            help="A card, the file it lies beside, or a model's folder; of several, or of a folder, all cards.",
        ),
    ],
    file: Annotated[
        Path | None,
        Option(metavar="FILE", help="The file of one card; found by its name beside the card."),
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

    Of several cards, or of a folder, it prints a table of verdicts, and the cost of the valid ones by intended use
    and recipient. The exit code is that of the worst.

    Releases: nothing. A card holds no label, and nothing is written.
    """
    import_modules(modules)
    for path in (file, model_folder):
        if path is not None and not path.exists():
            raise ParameterError(f"there is no file {path}")
    extract = None if paid_from is None else Extract.load(paid_from)
    paths = [card for path in card_files for card in _cards_of(path)]
    if len(paths) > 1 or paths != card_files:
        for option, value in {"file": file, "model_folder": model_folder}.items():
            if value is not None:
                raise ParameterError(Setting(option), " is for one card: name that alone")
        _verify_all(paths, extract, as_json=as_json)
        return
    path, _, result = _verified(paths[0], file, extract, model_folder)
    _verify_one(path, result, as_json=as_json)


def _verify_one(path: Path, result: Verification, *, as_json: bool) -> None:
    """Print the checks of a card, and exit with the code of its verdict."""
    checks = [
        replace(check, detail=printable(spelled(check.detail, as_flag)))
        for check in (*result.checks, *_skipped_files(path))
    ]
    result = replace(result, checks=tuple(checks))
    if as_json:
        entries = [{"name": check.name, "valid": check.holds, "detail": check.detail} for check in checks]
        print_json(verdict=result.verdict, valid=result.holds, checks=entries, cannot_show=result.not_verifiable)
    else:
        _show_checks(result)
    if not result.holds:
        raise typer.Exit(_EXIT_CODES[result.verdict])


def _cards_of(path: Path) -> list[Path]:
    """Return all cards of a folder, or the path itself: of a file, a model, or a folder that is one table."""
    is_table = Path(f"{path}.card.json").exists()
    cards = cards_in(path) if path.is_dir() and not is_table else []
    return cards if set(cards) - {path / "card.json"} else [path]


def _verify_all(paths: Sequence[Path], ledger: Extract | None, *, as_json: bool) -> None:
    """Print the verdict of each card, and the sums of charges of those that are valid."""
    results = {path: _verified_or_refused(path, ledger) for path in dict.fromkeys(paths)}
    valid = [result.card.terms for result in results.values() if result.holds and result.card is not None]
    charges = [replace(charge, declaration=terms.declaration) for terms in valid for charge in terms.charges]
    charges = list({(charge, charge.mechanism): charge for charge in charges}.values())  # files of one release
    is_shared = ledger is not None and bool(missing_charges(charges, ledger.charges))
    if as_json:
        cards = [
            {"card": str(path), "verdict": result.verdict, "valid": result.holds, "why": _verdict(result)}
            for path, result in results.items()
        ]
        is_valid = all(results.values()) and not is_shared
        print_json(valid=is_valid, cards=cards, epsilon=finite(sum_of(charges).epsilon))
    else:
        _show_verdicts(results, len(valid), charges)
    if ledger is not None and is_shared:
        raise CardError(
            f"{ledger.path}: valid cards with different noise share a charge in it, which pays for one of them: "
            "ask the owner for the charge of the other"
        )
    codes = {_EXIT_CODES[result.verdict] for result in results.values() if not result.holds}
    if codes:
        raise typer.Exit(min(codes))  # an invalid card outweighs one that cannot be verified


def _show_verdicts(results: Mapping[Path, Verification], valid: int, charges: Sequence[Charge]) -> None:
    """Print a table of verdicts, and the sums of charges."""
    folder = os.path.commonpath([path.absolute().parent for path in results])
    rows = [[path.absolute().relative_to(folder), *_summary(result)] for path, result in results.items()]
    print_table(["card", "verdict", "ε", "intended use", "recipient"], rows)
    print_sums(charges, several=True)
    cost = f"{sum_of(charges)} for someone whose labels are in all of them" if charges else "no charges"
    print_result(f"\n{valid} of {counted(len(results), 'card')} valid: {cost}.\n", style="bold")


def _verified_or_refused(path: Path, ledger: Extract | None) -> Verification:
    """Return the checks of a card; one that cannot be read is not valid."""
    try:
        return _verified(path, None, ledger)[2]
    except ParameterError:
        raise  # it is no card
    except (LabelDPError, OSError) as error:
        return Verification((Check("card", False, str(error)),), None)


def _summary(result: Verification) -> list[str]:
    """Return the verdict of a card, its cost, and the owner's statements, which nobody can check."""
    if not result.holds or result.card is None:
        return [_verdict(result), "", "", ""]
    terms = result.card.terms
    cost = rounded_up(terms.cost.epsilon) if terms.charges else ""
    files = [check.name for check in result.checks if check.holds is None and check.name in _FILES]
    verdict = f"valid, not compared: {', '.join(files)}" if files else "valid"
    return [verdict, cost, terms.declaration.intended_use or "", terms.declaration.recipient or ""]


def _skipped_files(card: Path) -> Iterator[Check]:
    """Yield a check for each file beside a card that is not compared: reports and signatures."""
    for report in (path for kind in KINDS for path in reports_beside(card, kind)):
        if report.is_file():
            detail = f"{report.name} is not evidence, and was not compared: write your own from the card"
            yield Check("report", None, detail)
    sheet = Path(f"{os.path.splitext(str(card).removesuffix('.card.json'))[0]}.xlsx")
    if sheet.is_file():
        yield Check("sheet", None, f"{sheet.name} was not compared: the card is of the other file")
    signature = card.with_name(f"{card.name}.sig")
    if signature.is_file():
        yield Check("signature", None, f"{signature.name} was not compared: ssh-keygen -Y verify checks it")


def _verified(
    card_file: Path, file: Path | None, ledger: Book | None, model: Path | None = None
) -> tuple[Path, str, Verification]:
    """Return the path and the text of a card, and its checks.

    The file that the user names is compared, and not another one that the card names.
    """
    from labeldp.app.card_check import verify_files

    path, text = read_card_file(card_file)
    if file is None and path not in (card_file, card_file / "card.json"):
        file = card_file
    return path, text, verify_files(text, file=file, folder=path.parent, model_folder=model, ledger=ledger)


_FILES = {"file", "other files"}
"""Checks whose absence a table of verdicts names."""

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
        Option(
            "--out",
            "-o",
            help="The page to write; by default beside the card or a model's folder. "
            "Of a regression table also .csv, .tex (LaTeX) or .txt.",
        ),
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
    from labeldp.app.regression import REPORT, TABLES, write_card_table
    from labeldp.app.report import Kind, render_report, write_page
    from labeldp.tables.paths import Target, refuse_same

    ledger = None if paid_from is None else open_book(paid_from)
    path, text, result = _verified(card_file, None, ledger)
    kind: Kind = "summary" if summary else "report"
    target = out or report_path(card_file.resolve() if card_file.is_dir() else path, kind)
    refuse_same({f"the {kind}": target}, {"the card": path, "the ledger": paid_from})
    ending, endings = target.suffix.lower(), (REPORT,) if summary else (REPORT, *TABLES)
    if ending not in endings:
        raise ParameterError(Setting("out"), f" must end in {', '.join(endings)}, got {target.name}")
    Target(str(target), force).refuse()
    page = (
        render_report(text, kind, ledger=ledger, verification=result)
        if ending == REPORT
        else write_card_table(text, ending)
    )
    write_page(target, page, force=force, subject=path)
    print_status(f"The {kind if ending == REPORT else 'table'} is in {target}")
