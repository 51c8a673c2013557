"""The third step: forecasts for an ε, the rest of the budget, and the request for a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp.accounts.budget import Budget, group_budget, refuse_overspend, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.ledger_file import has_charges
from labeldp.accounts.numbers import odds_figures
from labeldp.accounts.scope import Scope
from labeldp.app.options import RECORD
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.forms import Form, collect_problem, parse_fields
from labeldp.app.page.site import Site, show
from labeldp.app.page.unfinished import ReleaseRequest, Unfinished, unfinished_of
from labeldp.errors import ParameterError
from labeldp.evidence.previews import Preview, preview
from labeldp.inference.formula import Formula
from labeldp.learning.fit_plan import LabelScale
from labeldp.learning.score import plan_test
from labeldp.learning.score_sums import ScorePlan

EXAMPLE = 1.0
"""The ε whose figures are shown while none is chosen; it is never taken for a choice."""

STARTS = {
    0.3: "strong protection, and much noise: for large tables, or values that would hurt people most",
    1.0: "a common place to start",
    3.0: "weak protection, and little noise: for values that are hardly sensitive",
}
"""Values of ε to start with, and their use."""

KINDS = {
    "table": "private",
    "model": "model",
    "regression": "regression",
}
"""Kinds of release, with a word for the names of their files."""

KIND_OPTIONS = {
    "table": ["purpose", "model"],
    "model": ["label_transform", "score"],
    "regression": ["on", "family"],
}
"""Options of one kind alone."""

KIND_FIGURES = {
    "statistics": (("one label", "mean of "), [0]),
    "training": (("model quality",), [2]),
    "model": (("error a score shows", "model quality"), [1, 2]),
    "regression": (("coefficient",), [3]),
}
"""Figures of a preview by the beginnings of their names, and its notes by number, for what is released."""

FIELDS = (
    "kind",
    "epsilon",
    "target_error",
    "target",
    "purpose",
    "model",
    "label_transform",
    "score",
    "on",
    "family",
    "regressor",
    "ledger",
    "limit",
    "segment",
    *RECORD,
)


def take_budget(site: Site, unfinished: Unfinished, form: FormData, problems: dict[str, str]) -> str:
    """Take ε, the ledger and names, and make the request; a form that only leaves the page says so in ``show``."""
    unfinished.keep_typed(form, FIELDS)
    step = form.get("show")
    if step in ("table", "column"):
        return unfinished.at(str(step))
    unfinished.request = unfinished.release = None
    if step is None and unfinished.options is not None:
        unfinished.request = _parse(site.folder, unfinished, form, problems)
    return unfinished.at("release" if unfinished.request else "budget")


def budget_values(site: Site, unfinished: Unfinished) -> dict[str, Any] | str:
    """Return the forecast for the typed ε, and the charges of the named ledger."""
    if unfinished.options is None:
        return unfinished.at("column")
    typed = unfinished.typed = _suggestions(site.folder, unfinished) | unfinished.typed
    form = FormData([(name, text) for name, texts in typed.items() for text in texts])
    problems = dict(unfinished.problems.get("budget", {}))
    figures = _figures(site.folder, unfinished, form, problems)
    return {"problems": problems, "ledgers": site.folder.ledgers(), "starts": STARTS, **figures}


def figures_page(request: Request) -> Response:
    """Show the forecast for the fields of the budget, for a script; nothing of them is kept."""
    with unfinished_of(request) as (site, unfinished):
        problems = dict[str, str]()
        figures = _figures(site.folder, unfinished, request.query_params, problems)
        return show(request, "choices", unfinished=unfinished, problems=problems, **figures)


def _figures(folder: ChosenFolder, unfinished: Unfinished, form: Form, problems: dict[str, str]) -> dict[str, Any]:
    """Return the forecast for the ε of a form, and all costs with it; for an example without one."""
    options = parse_fields(["epsilon", "score", "limit", "segment", "target_error", "target", "purpose"], form, {})
    book = None
    with collect_problem(problems, "ledger"):
        path = folder.target(str(form.get("ledger")))
        if path.exists():
            book = Ledger.open(path, create=False)
    kind = str(form.get("kind"))
    columns = min(len(_regressors(unfinished)), unfinished.rows // 3 - 1) if kind == "regression" else 0
    plan = preview_of(unfinished, options.get("epsilon", EXAMPLE), columns if columns > 0 else None)
    topic = options.get("purpose") if kind == "table" else kind
    names, notes = KIND_FIGURES.get(str(topic), KIND_FIGURES["statistics"])
    score = options.get("score") if kind == "model" else None
    release_cost = group_budget(Budget(plan.budgets[0].epsilon), unfinished.rows_per_person)
    score_cost = group_budget(
        Budget(max((score or 0.0) - plan.budgets[0].epsilon, 0.0)), unfinished.rows_per_person
    )
    past_cost = Budget(0)
    with collect_problem(problems, "segment"):
        past_cost = total_of(book.charges if book else (), Scope.parse(segment=options["segment"]).segments)
    return {
        "book": book,
        "plan": plan,
        "lines": [line for line in plan.table()[1] if line[0].startswith(names)],
        "notes": [note for number, note in enumerate(plan.notes()) if number in notes],
        "odds": odds_figures((past_cost + release_cost + score_cost).epsilon),
        "costs": {
            "for this release": release_cost,
            "for its score, beyond that": score_cost,
            "that the ledger has spent before": past_cost,
        },
        "cautions": plan.cautions(past_cost + score_cost),
        "reached": _reach_error(unfinished, options, problems),
        "is_example": "epsilon" not in options,
    }


def _reach_error(unfinished: Unfinished, options: Mapping[str, Any], problems: dict[str, str]) -> float | None:
    """Return the least ε that reaches the error that was typed, if one was."""
    if options.get("target_error") is None:
        return None
    with collect_problem(problems, "target_error"):
        bounds = (unfinished.options or {})["bounds"]
        error = {"target_error": options["target_error"], "target": options.get("target", "mean")}
        return preview(rows=unfinished.rows, bounds=bounds, **error).budgets[0].epsilon
    return None


def _suggestions(folder: ChosenFolder, unfinished: Unfinished) -> dict[str, list[str]]:
    """Return values of fields that suit the table; the ledger is that of its private column, if there is one."""
    label = str(unfinished.label)
    ledgers = [name for name in folder.ledgers() if has_charges(folder.target(name), label, is_named=True)]
    column = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in label)
    suggestions = {name: [""] for name in FIELDS}
    suggestions["kind"] = ["table"]
    suggestions["target"] = ["mean"]
    suggestions["ledger"] = [*ledgers, f"{column}.ledger.db"][:1]
    suggestions["regressor"] = _regressors(unfinished)
    return suggestions


def _regressors(unfinished: Unfinished) -> list[str]:
    """Return the numbers of columns for a regression: no dates, gaps, or columns that may name people."""
    table, numbers = unfinished.overview, list[str]()
    for number, (name, (kind, gaps)) in enumerate(table.columns.items() if table else ()):
        if table and name not in table.identifiers and kind not in ("date", "time") and not gaps:
            numbers.append(str(number))
    return numbers


def _stem(unfinished: Unfinished) -> str:
    """Return the beginning of the names of files."""
    return unfinished.source.name.partition(".")[0] or "table"


def preview_of(unfinished: Unfinished, epsilon: float, columns: int | None = None) -> Preview:
    """Return the forecast for an ε, which uses no label, and for a regression of some columns."""
    bounds = (unfinished.options or {})["bounds"]
    people = unfinished.rows_per_person
    return preview(rows=unfinished.rows, bounds=bounds, epsilon=epsilon, rows_per_person=people, columns=columns)


def score_of(release: ReleaseRequest, rows: int) -> ScorePlan | None:
    """Return the plan of a score, if there is one; a score that noise would hide is refused."""
    score = release.options.get("score")
    return plan_test(rows, score, release.options["bounds"]) if score else None


def _parse(
    folder: ChosenFolder, unfinished: Unfinished, form: FormData, problems: dict[str, str]
) -> ReleaseRequest | None:
    """Return the request, or collect its problems; the command that carries it out checks everything again."""
    kind = str(form.get("kind"))
    if kind not in KINDS:
        raise ParameterError("choose what to release")
    options = {**(unfinished.options or {}), "label": unfinished.label, "dialect": unfinished.dialect}
    options |= parse_fields(["epsilon", "limit", "segment", *RECORD, *KIND_OPTIONS[kind]], form, problems)
    if kind == "regression":
        with collect_problem(problems, "on"):
            options["on"] = options.get("on") or _formula(unfinished, form)
            Formula.parse(options["on"], unfinished.label)
    else:
        options["drop"] = unfinished.drop
    if kind != "table":
        del options["shuffle"]
    elif unfinished.overview is not None and not unfinished.overview.columns:
        options["model"] = False  # there is nothing to learn from
    with collect_problem(problems, "ledger"):
        ledger = folder.target(str(form.get("ledger", "")))
    if problems:
        return None
    format = "csv" if unfinished.header.format == "xlsx" else unfinished.header.format
    ending = {"table": f".{format}", "model": "", "regression": ".html"}[kind]
    out = folder.root / folder.free_name(f"{_stem(unfinished)}.{KINDS[kind]}", ending)
    release = ReleaseRequest(kind, unfinished.source, out, ledger, options.pop("limit"), options)
    _check(release, unfinished.rows, problems)
    return None if problems else release


def _check(release: ReleaseRequest, rows: int, problems: dict[str, str]) -> None:
    """Collect problems of a request with its ledger, its scale and its score."""
    options = release.options
    if not release.ledger.exists() and release.limit is None:
        problems["limit"] = "A new ledger needs a limit, such as 3: choose the most ε that may ever be spent"
    with collect_problem(problems, "ledger"):
        book = release.open_ledger()
        with collect_problem(problems, "epsilon", ["segment", *KIND_OPTIONS["model"]]):
            LabelScale.parse(options["bounds"], options.get("label_transform"))
            refuse_overspend(book.limit, book.charges, [release.price])
    with collect_problem(problems, "score"):
        score_of(release, rows)


def _formula(unfinished: Unfinished, form: FormData) -> str:
    """Return the columns that were ticked, by number, as a formula."""
    columns = [] if unfinished.overview is None else list(unfinished.overview.columns)
    ticked = [name for number, name in enumerate(columns) if str(number) in form.getlist("regressor")]
    if not ticked:
        raise ParameterError("choose a column, or write a formula")
    return " + ".join(name if name.isidentifier() else f"`{name}`" for name in ticked)
