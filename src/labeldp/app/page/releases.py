"""The releases of a folder: their cards, what they cost, which ledger paid, and whether one holds."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from labeldp.accounts.budget import missing_charges, total_of
from labeldp.accounts.explanation import private_column
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.reading import ReadCard, read_any_card
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.card_check import verify_files
from labeldp.app.card_files import read_card_file, read_signature, reports_beside
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.forms import collect_problem
from labeldp.app.page.site import show, site_of
from labeldp.app.report.report_check import check_reports_beside
from labeldp.app.sentences import EXPLAINED, printable
from labeldp.errors import ParameterError

REPORT_POLICY = {
    "content-security-policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
}
"""A report has its style and its figures inside, and is kept apart from the page: it runs nothing."""


# ---- all of them ----------------------------------------------------------------------------------------------


def releases_page(request: Request) -> Response:
    """List the cards and the ledgers of the folder."""
    folder = site_of(request).folder
    listed, paid = list[dict[str, str]](), dict[tuple[object, ...], str]()
    for name in folder.cards():
        card = None
        with suppress(*EXPLAINED):
            card = read_any_card(read_card_file(folder.inside(name))[1])
            paid |= {charge.key: name for charge in card.terms.charges}
        listed.append({"name": name, **_summary(card)})
    ledgers, problems = ledgers_in(folder)
    return show(request, "releases", cards=listed, paid=paid, ledgers=ledgers, problems=problems)


def _summary(card: ReadCard | None) -> dict[str, str]:
    """Return what a card is about, what it cost and when."""
    if card is None:
        return {"what": "a certificate that cannot be read", "cost": "", "when": ""}
    kind = {"model": "a model", "mechanism": "a mechanism"}.get(card.kind, "noisy values")
    if "regression" in card.content:
        kind = "a regression table"
    label = private_column(card.content)
    charges = card.terms.charges
    return {
        "what": f"{kind} of {printable(label, 60)}" if label else kind,
        "cost": str(total_of(charges)) if charges else "",
        "when": printable(max((charge.when for charge in charges), default="")),
    }


def ledgers_in(folder: ChosenFolder) -> tuple[dict[str, Ledger], dict[str, str]]:
    """Return all ledgers of the folder by name, and what is wrong with those that cannot be read."""
    ledgers, problems = dict[str, Ledger](), dict[str, str]()
    for name in folder.ledgers():
        with collect_problem(problems, name):
            ledgers[name] = Ledger.open(folder.inside(name), create="never")
    return ledgers, problems


def _ledger_of(card: ReadCard, ledgers: Iterable[Ledger]) -> Ledger | None:
    """Return the ledger that paid for a card, or None; of copies the one that counts most."""
    found = [ledger for ledger in ledgers if not missing_charges(card.terms.charges, ledger.charges)]
    return max(found, key=lambda ledger: ledger.total.epsilon, default=None) if card.terms.charges else None


# ---- one of them ----------------------------------------------------------------------------------------------


def card_page(request: Request) -> Response:
    """Verify a card, and say what it means."""
    folder, name = site_of(request).folder, request.query_params.get("name", "")
    path = folder.card(name)
    result, ledger = _verified(folder, path)
    explanation = None if result.card is None else result.card.explain(ledger.charges if ledger else None)
    title = name if explanation is None else explanation.title
    report = _report_of(folder, path)
    return show(request, "card", name=name, title=title, result=result, explanation=explanation, report=report)


def _verified(folder: ChosenFolder, path: Path) -> tuple[Verification, Ledger | None]:
    """Check a card, read once, against its ledger and what is beside it as plain files."""
    text = read_card_file(path)[1]
    verification, signature, ledger = verify_card(text), path.with_name(f"{path.name}.sig"), None
    files: dict[str, Any] = {}
    card = verification.card
    if card is not None:
        ledger = _ledger_of(card, ledgers_in(folder)[0].values())
        name = "." if card.kind == "model" else card.content.get("file", {}).get("name", "None")
        files["folder"] = path.parent if folder.is_plain(path.parent / name) else None
    if folder.is_plain_file(signature):
        files["signature"] = read_signature(path, signature)
    result = verify_files(text, verification=verification, **files)
    reports = check_reports_beside(path, text, result, folder.is_plain_file, ledger)
    return replace(result, checks=(*result.checks, *reports)), ledger


def _report_of(folder: ChosenFolder, card: Path) -> Path | None:
    """Return the report of a card, if it is there as a plain file."""
    return next(filter(folder.is_plain_file, reports_beside(card)), None)


def report_page(request: Request) -> Response:
    """Show the report of a card."""
    folder = site_of(request).folder
    report = _report_of(folder, folder.card(request.query_params.get("card", "")))
    if report is None:
        raise ParameterError("there is no report beside this certificate")
    return FileResponse(report, media_type="text/html", headers=REPORT_POLICY)
