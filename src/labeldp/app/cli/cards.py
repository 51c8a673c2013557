"""``labeldp explain``, ``verify`` and ``report``: what a card promises, and whether it holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from labeldp._atomic import read_regular
from labeldp.accounts.explanation import Explanation
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import at_most, factor
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.card_files import card_of_report, read_card_file, read_key, read_signature, report_path
from labeldp.app.cli import command
from labeldp.app.cli.shell import EXIT, PlainConsole, finite, news, print_json, tell
from labeldp.app.sentences import as_flag, printable, spelled
from labeldp.errors import ParameterError
from labeldp.mechanisms.card_format import MAX_TEXT

# ---- explain ------------------------------------------------------------------------------------------


@command("card_file", "as_json", "modules")
def explain(card_file: Path, as_json: bool) -> None:
    """Explain a card: what was done, what was released, what it cost, and what to do with it.

    The card is checked and proven again first; one that does not hold is not explained (exit code 4), nor one that
    cannot be checked here (5).

    What is released: nothing. A card holds no label, and nothing is written.
    """
    read = verify_card(read_card_file(card_file)[1]).require_card()
    explanation = read.explain()
    epsilon, private = explanation.budget.epsilon, explanation.private
    if not as_json:
        _show_explanation(explanation, PlainConsole())
        return
    print_json(
        kind=read.kind,
        title=explanation.title,
        private=private,
        epsilon=finite(epsilon),
        delta=explanation.budget.delta,
        odds_rise_by_at_most=finite(factor(epsilon)) if private else "infinite",
        guess_of_half_becomes_at_most=float(at_most(0.5, epsilon)) if private else 1.0,
        warnings=explanation.warnings,
        sections=explanation.sections,
    )


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
    from labeldp.accounts.signatures import read_public_key  # noqa: PLC0415
    from labeldp.app.card_check import verify_files  # noqa: PLC0415 (slow to import)
    from labeldp.app.report.report_check import check_report, check_reports_beside, read_source  # noqa: PLC0415

    page = None
    if card_file.suffix == ".html":
        page = read_regular(card_file, MAX_TEXT)
        source = read_source(page)
        if file is None and source is None:
            raise ParameterError(f"{card_file.name} does not say of which card it is: name the card after it")
        card_file, file = file or card_of_report(card_file, "" if source is None else source.card), None
    path, text = read_card_file(card_file)
    ledger = _opened(paid_from)
    if file is None and path != card_file and page is None:
        file = card_file  # the file that the user named, whatever file the card beside it names
    result = verify_files(
        text,
        file=file,
        folder=path.parent,
        signature=read_signature(path, signature),
        trusted=[read_key(key, read_public_key) for key in trusted],
        require_signature=require_signature,
        ledger=ledger,
    )
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
        _show_checks(replace(result, checks=tuple(checks)), PlainConsole())
    if not result.holds:
        raise typer.Exit(EXIT["claim" if result.verdict == "does not hold" else "open"])


def _opened(ledger: Path | None) -> Ledger | None:
    return None if ledger is None else Ledger.open(ledger, create="never")


_STYLES = {"holds": "bold green", "cannot be checked here": "bold yellow", "does not hold": "bold red"}
_MARKS = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "yellow")}
_BESIDE = ("file", "ledger", "report", "summary")
"""Checks of what lies beside a card: the card may hold, and this not."""


def _show_checks(result: Verification, console: Console) -> None:
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
    """Return what all checks come to, and what of it is not about the card itself."""
    if result.holds:
        missing = dict.fromkeys(check.name for check in result.checks if check.holds is None)
        left = [name for name in ("file", "report", "summary") if name in missing]
        return "The card holds." + "".join(f" Its {name} was not compared." for name in left)
    if result.verdict == "cannot be checked here":
        return "The card cannot be checked here: it may hold, or not."
    failed = sorted({check.name for check in result.checks if check.holds is False})
    if failed == ["privacy"]:
        return "The card agrees with itself, and says NOT PRIVATE."
    if result.card is None or not {*failed} <= {*_BESIDE}:
        return "The card does NOT hold."
    own = replace(result, checks=tuple(check for check in result.checks if check.name not in _BESIDE))
    return f"The card {own.verdict}, and its {' and '.join(failed)} {'do' if failed[1:] else 'does'} NOT hold."


# ---- report -------------------------------------------------------------------------------------------


@command(
    *("card_file", "out", "summary", "paid_from", "force", "modules"),
    out={
        "type": Path,
        "default": None,
        "metavar": "FILE",
        "help": "Where to write, or -; by default beside the card, or beside a model's folder.",
    },
)
def report(card_file: Path, out: Path | None, summary: bool, paid_from: Path | None, force: bool) -> None:
    """Explain a card on one HTML page: what was released, what it cost, what it protects, what to expect.

    The card is checked, its proof run again, and its file compared, as labeldp verify does; where something does
    not hold, nothing is written (exit code 4). The page is one file, to send or to print; it loads nothing. With
    --summary it is one A4 page for a data-protection impact assessment. --out - writes to standard output.

    What is released: the page. It follows from the card, and from the ledger if there is one; neither has a label.
    """
    from labeldp.app.card_check import verify_files  # noqa: PLC0415 (slow to import)
    from labeldp.app.report import Kind, render_report, write_page  # noqa: PLC0415
    from labeldp.tables.paths import Target, refuse_same  # noqa: PLC0415

    path, text = read_card_file(card_file)
    kind: Kind = "summary" if summary else "report"
    target = out or report_path(card_file.resolve() if card_file.is_dir() else path, kind)
    is_printed = str(target) == "-"
    is_page = card_file.suffix == ".html"  # made of the card, as the new one is
    if not is_printed:
        refuse_same({f"the {kind}": target}, {"the card": path, "the ledger": paid_from})
        Target(str(target), force).refuse()
    ledger = _opened(paid_from)
    result = verify_files(
        text,
        file=None if path in (card_file, card_file / "card.json") or is_page else card_file,
        folder=path.parent,
        signature=read_signature(path, None),
        ledger=ledger,
    )
    page = render_report(text, kind, ledger=ledger, verification=result)
    if is_printed:
        typer.echo(page.encode(), nl=False)  # the bytes that a file would have
        return
    write_page(target, page, force=force, like=path)
    tell(news(), f"The {kind} is in {target}")
