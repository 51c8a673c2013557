"""The releases of a folder: their cards, their costs and ledgers, and the verification of each."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from labeldp.accounts.budget import missing_charges
from labeldp.accounts.card import Card
from labeldp.accounts.ledger import Ledger
from labeldp.app.card_check import verify_files
from labeldp.app.card_files import read_card_file, reports_beside
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.forms import collect_problem
from labeldp.app.page.site import show, site_of
from labeldp.app.sentences import EXPLAINED
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
    cards, names = dict[str, Card | None](), dict[tuple[object, ...], str]()
    for name in folder.cards():
        cards[name] = None
        with suppress(*EXPLAINED):
            cards[name] = card = Card.parse(read_card_file(folder.target(name))[1])
            names |= {charge.key: name for charge in card.terms.charges}
    ledgers, problems = _ledgers_in(folder)
    return show(request, "releases", cards=cards, paid=names, ledgers=ledgers, problems=problems)


def _ledgers_in(folder: ChosenFolder) -> tuple[dict[str, Ledger], dict[str, str]]:
    """Return all ledgers of the folder by name, and the problems of those that cannot be read."""
    ledgers, problems = dict[str, Ledger](), dict[str, str]()
    for name in folder.ledgers():
        with collect_problem(problems, name):
            ledgers[name] = Ledger.open(folder.target(name), create=False)
    return ledgers, problems


# ---- one of them ----------------------------------------------------------------------------------------------


def card_page(request: Request) -> Response:
    """Verify a card, read once, against the file beside it, and explain it with its ledger."""
    folder = site_of(request).folder
    name = request.query_params.get("name", "")
    path = folder.card(name)
    text = read_card_file(path)[1]
    result = verify_files(text, folder=path.parent)
    explanation = None
    if result.card is not None:
        ledger = _ledger_of(result.card, _ledgers_in(folder)[0].values())
        explanation = result.card.explain(ledger.charges if ledger else None)
    report = _report_of(folder, path)
    tables = folder.tables() if path.name == "card.json" and result.holds else []
    return show(request, "card", name=name, result=result, explanation=explanation, report=report, tables=tables)


def _ledger_of(card: Card, ledgers: Iterable[Ledger]) -> Ledger | None:
    """Return the ledger that paid for a card, or None; of copies the one that counts most."""
    candidates = [ledger for ledger in ledgers if not missing_charges(card.terms.charges, ledger.charges)]
    return max(candidates, key=lambda ledger: ledger.total.epsilon, default=None) if card.terms.charges else None


def _report_of(folder: ChosenFolder, card: Path, kind: str = "report") -> Path | None:
    """Return the report or the summary of a card, or the page of a regression, if the folder has it."""
    pages = reports_beside(card, kind)
    subject = card.with_name(card.name.removesuffix(".card.json"))
    if subject.suffix == ".html":
        pages.append(subject)
    return next(filter(folder.has_file, pages), None)


def report_page(request: Request) -> Response:
    """Show the report of a card, or its summary."""
    folder = site_of(request).folder
    kind = "summary" if request.query_params.get("kind") == "summary" else "report"
    report = _report_of(folder, folder.card(request.query_params.get("card", "")), kind)
    if report is None:
        raise ParameterError("there is no report beside this certificate")
    return FileResponse(report, media_type="text/html", headers=REPORT_POLICY)
