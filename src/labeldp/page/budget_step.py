"""The budget: what each ε would give, what is left of it, and the order that follows from it all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from labeldp._values import Epsilon, as_fraction, rounded_up
from labeldp.errors import LabelDPError, ParameterError
from labeldp.files import Dialect
from labeldp.files.places import refuse_target
from labeldp.jobs.sentences import EXPLAINED
from labeldp.ledger import Budget, Charge, new_charge, refuse_overspend
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.drafts import Draft
from labeldp.page.orders import Choice, Order
from labeldp.page.records import LedgerView, earlier_releases, name_for_ledger, view_ledger
from labeldp.page.site import explained_page, go, site_of
from labeldp.page.steps import changed, draft_of, stem_of
from labeldp.page.typed_numbers import number_in, typed
from labeldp.page.words import explain_in_page
from labeldp.planning import Preview, preview
from labeldp.planning.choices import choice_html
from labeldp.release.plan import Request as ReleaseRequest

EXAMPLE = 1.0
"""What figures are shown for while no ε is chosen; it is never taken for one that was."""


POINTED = Dialect(decimal=".", thousands="'")
"""How ε is read: nobody means thousands of it. A decimal comma is understood, too."""


def _entered(draft: Draft, folder: ChosenFolder) -> dict[str, str]:
    """Return what the form shows: what was typed, what was ordered, or what suits the table."""
    stem, order = stem_of(draft.name), draft.order
    if order is None:
        ledger, leaves, epsilon, limit = (
            f"{stem}.{name_for_ledger(str(draft.label))}.ledger.jsonl",
            "table",
            "",
            "",
        )
    else:
        ledger, leaves, epsilon = order.ledger_name, order.leaves, typed(order.epsilon)
        limit = "" if order.limit is None else typed(order.limit)
    score = "" if order is None or order.score is None else typed(order.score)
    return {
        "leaves": leaves,
        "epsilon": epsilon,
        "ledger": ledger,
        "limit": limit,
        "out": folder.free_name(f"{stem}.private", draft.output_format),
        "folder": folder.free_name(f"{stem}.model", ""),
        "report": "yes",
        "score": score,
        **draft.entered,
    }


@explained_page
async def budget_page(request: Request) -> Response:
    """Show what each ε would give, the ledger, and the command for the same job."""
    site, draft = site_of(request), draft_of(request)
    choice = draft.choice
    if choice is None:
        return go(f"/draft/{draft.id}/label")
    entered = _entered(draft, site.folder)
    asked = request.query_params.get("epsilon")
    if asked is not None:
        entered = {**entered, "epsilon": asked}
    ledger = request.query_params.get("ledger", entered["ledger"])
    try:
        book = await run_in_threadpool(view_ledger, site.folder, ledger)
        sentence = ""
    except EXPLAINED as error:
        book, sentence = None, explain_in_page(error)
    epsilon = _usable(entered["epsilon"], choice.bounds)
    outlook = await run_in_threadpool(_outlook, draft, choice, entered, epsilon, book)
    ledgers = await run_in_threadpool(site.folder.ledgers)
    return site.page(
        "budget",
        draft=draft,
        entered=entered,
        book=book,
        ledger=ledger,
        ledger_trouble=sentence,
        ledgers=ledgers,
        earlier=await run_in_threadpool(earlier_releases, site.folder, choice.label, ledger),
        commands=_commands(site.folder, choice, entered, epsilon),
        **outlook,
    )


def outlook_of(draft: Draft, choice: Choice, epsilon: float) -> Preview:
    """Return what an ε would give, as far as that can be said without a label."""
    rows = 0 if draft.seen is None else draft.seen.rows - draft.seen.missing
    return preview(
        rows=max(1, rows), bounds=choice.bounds, epsilon=epsilon, rows_per_person=choice.rows_per_person
    )


def _outlook(
    draft: Draft, choice: Choice, entered: dict[str, str], epsilon: float | None, book: LedgerView | None
) -> dict[str, Any]:
    """Return what an ε would give, as HTML of the library's own; an example while none is chosen."""
    plan = outlook_of(draft, choice, EXAMPLE if epsilon is None else epsilon)
    score = _usable(entered["score"], choice.bounds) if entered["leaves"] == "model" else None
    html = choice_html(plan, spent=Budget(0) if book is None else book.spent, score=score or 0.0)
    return {
        "outlook": Markup(html),  # noqa: S704 (the library escapes it)
        "example": rounded_up(EXAMPLE) if epsilon is None else "",
    }


def _usable(text: str, bounds: tuple[float, float]) -> float | None:
    """Return the ε that was typed, or None if no release could have it."""
    epsilon = number_in({"epsilon": text}, "epsilon", {}, "ε", POINTED)
    try:
        return None if epsilon is None else ReleaseRequest(epsilon=epsilon, bounds=bounds).epsilon
    except LabelDPError:
        return None


def _commands(
    folder: ChosenFolder, choice: Choice, entered: dict[str, str], epsilon: float | None
) -> dict[str, tuple[str, str]]:
    """Return the command lines for a table and a model, with a gap where ε goes, and as they are now."""
    commands, shown = {}, "EPSILON" if epsilon is None else typed(epsilon, POINTED)
    for leaves in ("table", "model"):
        order = _order(folder, choice, {**entered, "epsilon": "1", "leaves": leaves}, {})
        if order is not None:
            commands[leaves] = order.command("{epsilon}"), order.command(shown)
    return commands


@explained_page
async def budget_form(request: Request) -> Response:
    """Take ε, the ledger and names, and put the order together."""
    site, draft = site_of(request), draft_of(request)
    form = {name: str(value) for name, value in (await site.form(request)).items()}
    if draft.is_releasing:
        return go(f"/draft/{draft.id}/release")
    if draft.choice is None:
        return go(f"/draft/{draft.id}/label")
    if draft.is_changed:
        return await changed(draft)
    draft.problems, draft.entered = {}, {**_entered(draft, site.folder), "report": "", **form}
    if "show" in form:
        return go(f"/draft/{draft.id}/budget")
    problems = draft.problems
    order = await run_in_threadpool(_order, site.folder, draft.choice, form, problems)
    if order is not None:
        await run_in_threadpool(_check, order, problems)
    if order is None or problems:
        return go(f"/draft/{draft.id}/budget")
    if not draft.is_releasing:
        draft.place(order)
        draft.entered = {}
    return go(f"/draft/{draft.id}/release")


def _order(folder: ChosenFolder, choice: Choice, form: dict[str, str], problems: dict[str, str]) -> Order | None:
    """Return the order, or note what is wrong with it; whoever carries it out checks all of it again."""
    epsilon = number_in(form, "epsilon", problems, "ε", POINTED)
    limit = number_in(form, "limit", problems, "The limit", POINTED) if form.get("limit", "").strip() else None
    leaves = "model" if form.get("leaves") == "model" else "table"
    paths: dict[str, Path] = {}
    for name in ("ledger", "folder" if leaves == "model" else "out"):
        try:
            paths[name] = folder.target(form.get(name, ""))
        except ParameterError as error:
            problems[name] = explain_in_page(error)
    has_score = leaves == "model" and form.get("score", "").strip()
    score = number_in(form, "score", problems, "ε for the score", POINTED) if has_score else None
    if problems or epsilon is None:
        return None
    out = paths["folder" if leaves == "model" else "out"]
    report = out.with_name(f"{out.name}.report.html")
    return Order(
        leaves="model" if leaves == "model" else "table",
        choice=choice,
        out=out,
        ledger=paths["ledger"],
        out_name=folder.name(out),
        ledger_name=folder.name(paths["ledger"]),
        epsilon=epsilon,
        limit=limit,
        report=report if form.get("report") else None,
        score=score,
    )


def _check(order: Order, problems: dict[str, str]) -> None:
    """Note what would be refused anyway, before anything is read."""
    try:
        ReleaseRequest(
            epsilon=order.epsilon, bounds=order.choice.bounds, rows_per_person=order.choice.rows_per_person
        )
    except LabelDPError as error:
        problems["epsilon"] = explain_in_page(error)
    try:
        if order.score is not None:
            Epsilon(order.score)
    except LabelDPError as error:
        problems["score"] = explain_in_page(error)
    try:
        refuse_target(f"{order.out}/" if order.leaves == "model" else str(order.out), force=False)
    except EXPLAINED as error:
        problems["folder" if order.leaves == "model" else "out"] = explain_in_page(error)
    try:
        ledger = order.open_ledger()
        if not problems:
            refuse_overspend(ledger.limit, ledger.charges, [price_of(order)])
    except EXPLAINED as error:
        problems["ledger"] = explain_in_page(error)


def price_of(order: Order) -> Charge:
    """Return what an order costs in all."""
    price = Budget(as_fraction(order.epsilon) + as_fraction(order.score or 0))
    return new_charge(order.leaves, price, purpose="other", rows_per_person=order.choice.rows_per_person)
