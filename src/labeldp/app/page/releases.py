"""The releases of a folder: their cards, their costs and ledgers, and the verification of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from labeldp._values import Data
from labeldp.accounts.budget import missing_charges, rounded_up
from labeldp.accounts.card import Card
from labeldp.accounts.explanation import private_column
from labeldp.accounts.ledger import Ledger
from labeldp.app.card_check import verify_files
from labeldp.app.card_files import read_card_file
from labeldp.app.options import RECORD
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.forms import Problems, Texts, collect_problem
from labeldp.app.page.site import go, show, site_of
from labeldp.app.page.table_step import new_release
from labeldp.app.report import Kind, render_report
from labeldp.app.sentences import EXPLAINED

REPORT_POLICY = {
    "content-security-policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
}
"""A report has its style and its figures inside, and is kept apart from the page: it runs nothing."""


def read_card(folder: ChosenFolder, name: str) -> Card:
    """Return a card of the folder."""
    return Card.parse(read_card_file(folder.card(name))[1])


# ---- all of them ----------------------------------------------------------------------------------------------


def releases_page(request: Request) -> Response:
    """List the cards and the ledgers of the folder."""
    folder = site_of(request).folder
    cards, names = dict[str, Card | None](), dict[tuple[object, ...], str]()
    for name in folder.cards():
        cards[name] = None
        with suppress(*EXPLAINED):
            cards[name] = card = read_card(folder, name)
            names |= {charge.key: name for charge in card.terms.charges}
    ledgers, problems = _ledgers_in(folder)
    return show(request, "releases", cards=cards, paid=names, ledgers=ledgers, problems=problems)


def _ledgers_in(folder: ChosenFolder) -> tuple[dict[str, Ledger], Problems]:
    """Return all ledgers of the folder by name, and the problems of those that cannot be read."""
    ledgers, problems = dict[str, Ledger](), Problems()
    for name in folder.ledgers():
        with collect_problem(problems, name):
            ledgers[name] = Ledger.open(folder.target(name), create=False)
    return ledgers, problems


def again_form(request: Request, form: FormData) -> Response:
    """Begin a release of another table with all settings of an earlier one, to be checked step by step."""
    site = site_of(request)
    card = read_card(site.folder, str(form.get("card", "")))
    begun = new_release(site.folder.source(str(form.get("path", "")).strip(" ")))
    ledger = _ledger_of(card, _ledgers_in(site.folder)[0].values())
    names = [] if ledger is None or ledger.path is None else [site.folder.name(Path(ledger.path))]
    begun.typed = begun.typed | _settings(card) | ({"ledger": names} if names else {})
    begun.label = private_column(card.content)
    columns = card.content.get("file", {}).get("columns", card.content.get("features"))
    if columns is not None and "regression" not in card.content:
        begun.earlier = frozenset([*columns, str(begun.label)])
        begun.leave_out_new()
    begun.begin(site)
    return go(request, begun.at("table"))


def _settings(card: Card) -> Texts:
    """Return the texts of the fields of forms that a card states."""
    content, terms = card.content, card.terms
    epsilon = rounded_up(terms.label_cost.epsilon, 15)
    formula = _formula(content["regression"]["names"][1:]) if "regression" in content else None
    kind = {"model": "model"}.get(card.kind, "table") if formula is None else "regression" if formula else "mean"
    has_score = kind == "model" and any(charge.purpose == "score" for charge in terms.charges)
    is_shuffled = content.get("file", {}).get("row_order") == "shuffled"
    values = {
        "kind": kind,
        "on": formula,
        "family": str(content["model"]).removeprefix("private_") if kind == "regression" else None,
        "rows_per_person": terms.rows_per_person,
        "epsilon": epsilon,
        "score": epsilon if has_score else None,
        "purpose": content.get("purpose", "training"),
        "model": "yes" if kind == "table" and "features" not in content else None,
        "label_transform": content.get("label_transform"),
        "shuffle": "yes" if is_shuffled else None,
        **{name: getattr(terms.declaration, name) for name in RECORD},
    }
    typed = {name: ["" if value is None else str(value)] for name, value in values.items()}
    return typed | {"bounds": [f"{bound:.15g}" for bound in terms.bounds[0]]}


def _formula(coefficients: Sequence[str]) -> str:
    """Return the formula of a regression by the names of its coefficients, such as age and region[north].

    Examples
    --------
    >>> _formula(["age", "age**2", "region[north]", "region[west]", "unit price", "age:region[west]"])
    'age + age**2 + C(`region`) + `unit price` + age:C(`region`)'
    """
    terms = [":".join(map(_factor, name.split(":"))) for name in coefficients]
    return " + ".join(dict.fromkeys(terms))


def _factor(name: str) -> str:
    """Return a factor of a formula: a category of a coefficient's level, and odd names in quotes."""
    column, bracket, _ = name.partition("[")
    if bracket:
        return f"C(`{column}`)"
    return name if re.fullmatch(r"[\w*()]+", name) else f"`{name}`"


# ---- one of them ----------------------------------------------------------------------------------------------


def card_page(request: Request) -> Response:
    """Verify a card, read once, against the file beside it, and explain it with its ledger."""
    site = site_of(request)
    folder, problems, site.problems = site.folder, site.problems, {}
    name = request.query_params.get("name", "")
    path = folder.card(name)
    text = read_card_file(path)[1]
    result = verify_files(text, folder=path.parent)
    explanation = None
    if result.card is not None:
        ledger = _ledger_of(result.card, _ledgers_in(folder)[0].values())
        explanation = result.card.explain(ledger.charges if ledger else None)
    tables = folder.tables() if result.holds else []
    released = folder.released_tables()
    sources = [table for table in tables if table not in released]
    tables = tables if path.name == "card.json" else []
    values: Data = {"explanation": explanation, "tables": tables, "sources": sources}
    return show(request, "card", name=name, result=result, problems=problems, **values)


def _ledger_of(card: Card, ledgers: Iterable[Ledger]) -> Ledger | None:
    """Return the ledger that paid for a card, or None; of copies the one that counts most."""
    candidates = [ledger for ledger in ledgers if not missing_charges(card.terms.charges, ledger.charges)]
    return max(candidates, key=lambda ledger: ledger.total.epsilon, default=None) if card.terms.charges else None


def report_page(request: Request) -> Response:
    """Show the report of a card, or its summary, as it follows from the card and its ledger."""
    folder = site_of(request).folder
    text = read_card_file(folder.card(request.query_params.get("card", "")))[1]
    kind: Kind = "summary" if request.query_params.get("kind") == "summary" else "report"
    ledger = _ledger_of(Card.parse(text), _ledgers_in(folder)[0].values())
    return HTMLResponse(render_report(text, kind, ledger=ledger), headers=REPORT_POLICY)
