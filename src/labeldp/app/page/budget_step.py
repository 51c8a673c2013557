"""The third step: what each ε would give, what is left of it, and the request that follows."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp.accounts.budget import Budget, group_budget, refuse_overspend
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import odds_figures
from labeldp.app.options import RECORD
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.forms import Form, collect_problem, parse_fields
from labeldp.app.page.site import Site, show
from labeldp.app.page.unfinished import ReleaseRequest, Unfinished, unfinished_of
from labeldp.errors import ParameterError
from labeldp.evidence.previews import Preview, preview
from labeldp.learning.fit_plan import LabelScale
from labeldp.learning.formula import Formula
from labeldp.learning.score import plan_test
from labeldp.learning.score_sums import ScorePlan
from labeldp.release.plan import Request as Plan

EXAMPLE = 1.0
"""The ε whose figures are shown while none is chosen; it is never taken for a choice."""

STARTS = {
    0.3: "strong protection, and much noise: for large tables, or what would hurt people most",
    1.0: "a common place to start",
    3.0: "weak protection, and little noise: for what is hardly sensitive",
}
"""Values of ε to start with, and what they are for."""

KINDS: dict[str, tuple[str, list[str]]] = {
    "table": ("private", []),
    "model": ("model", ["label_transform", "score"]),
    "regression": ("regression", ["on"]),
}
"""What can be released: a part of its name, and the options that it has for itself."""

FIELDS = ("kind", "epsilon", "label_transform", "score", "on", "regressor", "ledger", "limit", *RECORD)


def take_budget(site: Site, unfinished: Unfinished, form: FormData, problems: dict[str, str]) -> str:
    """Take ε, the ledger and names, and make the request; a form that only leaves the page says so in ``show``."""
    unfinished.keep_typed(form, FIELDS)
    shown = form.get("show")
    if shown in ("table", "column"):
        return unfinished.at(str(shown))
    unfinished.request = unfinished.release = None
    if shown is None and unfinished.options is not None:
        unfinished.request = _parse(site.folder, unfinished, unfinished.options, form, problems)
    return unfinished.at("release" if unfinished.request else "budget")


def budget_values(site: Site, unfinished: Unfinished) -> dict[str, Any] | str:
    """Return what the ε that was typed would give, and what is in the ledger that was named."""
    if unfinished.options is None:
        return unfinished.at("column")
    typed = unfinished.typed = _suggestions(unfinished) | unfinished.typed
    form = FormData([(name, text) for name, texts in typed.items() for text in texts])
    problems = dict(unfinished.problems.get("budget", {}))
    figures = _figures(site.folder, unfinished, form, problems)
    return {"problems": problems, "ledgers": site.folder.ledgers(), "starts": STARTS, **figures}


def figures_page(request: Request) -> Response:
    """Show what follows from the fields of the budget, for a script; nothing of them is kept."""
    with unfinished_of(request) as (site, unfinished):
        problems = dict[str, str]()
        figures = _figures(site.folder, unfinished, request.query_params, problems)
        return show(request, "choices", unfinished=unfinished, problems=problems, **figures)


def _figures(folder: ChosenFolder, unfinished: Unfinished, form: Form, problems: dict[str, str]) -> dict[str, Any]:
    """Return what the ε of a form would give, with all that was spent and will be; of an example without one."""
    chosen, book = parse_fields(["epsilon", "score", "limit"], form, {}), None
    with collect_problem(problems, "ledger"):
        if (path := folder.target(str(form.get("ledger")))).exists():
            book = Ledger.open(path, create=False)
    plan = preview_of(unfinished, chosen.get("epsilon", EXAMPLE))
    score = (chosen.get("score") or 0.0) if form.get("kind") == "model" else 0.0
    prices = (Budget(plan.budgets[0].epsilon), Budget(score))
    now, extra = (group_budget(price, unfinished.rows_per_person) for price in prices)
    spent = Budget(0) if book is None else book.total
    return {
        "book": book,
        "plan": plan,
        "odds": odds_figures((spent + now + extra).epsilon),
        "costs": {"for this release": now, "for its score": extra, "that the ledger has spent before": spent},
        "cautions": plan.cautions(spent + extra),
        "is_example": "epsilon" not in chosen,
    }


def _suggestions(unfinished: Unfinished) -> dict[str, list[str]]:
    """Return what suits the table; a regression has no dates, gaps, or columns that may name people."""
    seen, regressors = unfinished.seen, list[str]()
    for number, (name, (kind, gaps)) in enumerate(seen.columns.items() if seen else ()):
        if seen and name not in seen.identifiers and kind not in ("date", "time") and (kind == "text" or not gaps):
            regressors.append(str(number))
    column = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in str(unfinished.label))
    chosen = {"kind": ["table"], "ledger": [f"{_stem(unfinished)}.{column}.ledger.jsonl"], "regressor": regressors}
    return {**{name: [""] for name in FIELDS}, **chosen}


def _stem(unfinished: Unfinished) -> str:
    """Return what names of files begin with."""
    return unfinished.source.name.partition(".")[0] or "table"


def preview_of(unfinished: Unfinished, epsilon: float) -> Preview:
    """Return what an ε would give, as far as that is known without a label."""
    bounds = (unfinished.options or {})["bounds"]
    people = unfinished.rows_per_person
    return preview(rows=unfinished.rows, bounds=bounds, epsilon=epsilon, rows_per_person=people)


def score_of(release: ReleaseRequest, rows: int) -> ScorePlan | None:
    """Return what the score of a model will be, if one is asked for; one that would say nothing is refused."""
    score = release.options.get("score")
    return plan_test(rows, score, release.options["bounds"]) if score else None


def _parse(
    folder: ChosenFolder, unfinished: Unfinished, chosen: dict[str, Any], form: FormData, problems: dict[str, str]
) -> ReleaseRequest | None:
    """Return the request, or note what is wrong with it; whoever carries it out checks everything again."""
    kind, source = str(form.get("kind")), unfinished.source
    if kind not in KINDS:
        raise ParameterError("choose what to release")
    word, own = KINDS[kind]
    options = {**chosen, "label": unfinished.label, "dialect": unfinished.dialect}
    options |= parse_fields(["epsilon", "limit", *RECORD, *own], form, problems)
    if kind == "regression":
        with collect_problem(problems, "on"):
            options["on"] = options.get("on") or _formula(unfinished, form)
            Formula.parse(options["on"], unfinished.label)
    else:
        options["drop"] = unfinished.drop
    if kind != "table":
        del options["shuffle"]
    ledger = None
    with collect_problem(problems, "ledger"):
        ledger = folder.target(str(form.get("ledger", "")))
    if problems or ledger is None:
        return None
    format = "csv" if unfinished.header.format == "xlsx" else unfinished.header.format
    ending = {"table": f".{format}", "regression": ".html"}.get(kind, "")
    out = folder.root / folder.free_name(f"{_stem(unfinished)}.{word}", ending)
    release = ReleaseRequest(kind, source, out, ledger, options.pop("limit"), options)
    with collect_problem(problems, "epsilon", FIELDS):
        Plan(**{name: options[name] for name in ("epsilon", "bounds", "rows_per_person")})
        LabelScale.parse(options["bounds"], options.get("label_transform"))
    with collect_problem(problems, "ledger"):
        book = release.open_ledger()
        with collect_problem(problems, "epsilon"):
            refuse_overspend(book.limit, book.charges, [release.price])
    with collect_problem(problems, "score"):
        score_of(release, unfinished.rows)
    return None if problems else release


def _formula(unfinished: Unfinished, form: FormData) -> str:
    """Return the columns that were ticked, by number, as a formula."""
    columns = [] if unfinished.seen is None else list(unfinished.seen.columns)
    ticked = [name for number, name in enumerate(columns) if str(number) in form.getlist("regressor")]
    if not ticked:
        raise ParameterError("choose a column, or write a formula")
    return " + ".join(name if name.isidentifier() else f"`{name}`" for name in ticked)
