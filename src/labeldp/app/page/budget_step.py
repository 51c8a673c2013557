"""The third step: forecasts for an ε, the rest of the budget, and the request for a release."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp._values import Data
from labeldp.accounts.budget import Budget, group_budget, refuse_overspend, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.ledger_file import has_charges
from labeldp.accounts.numbers import odds_figures
from labeldp.accounts.scope import Scope
from labeldp.app.options import RECORD
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.forms import Form, Problems, Texts, collect_problem, parse_fields
from labeldp.app.page.site import Site, show
from labeldp.app.page.unfinished import ReleaseRequest, Unfinished, unfinished_of
from labeldp.errors import ParameterError
from labeldp.evidence.previews import Preview, preview
from labeldp.inference.formula import CONSTANT, Formula
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


KINDS: dict[str, list[str]] = {
    "table": ["purpose", "model"],
    "mean": [],
    "model": ["label_transform", "score"],
    "regression": ["on", "family"],
}
"""Kinds of release, with the options of one kind alone."""

ENDINGS = {"mean": ".html", "model": "", "regression": ".html"}
"""Endings of files; that of a table is its source's."""


class ShownFigures(NamedTuple):
    """Figures of a preview for a release.

    Attributes
    ----------
    beginnings : tuple of str
        Of the names of its figures.
    notes : tuple of int
        Of its notes, by number.
    target : str
        The figure that an error is for, unless it is chosen.
    """

    beginnings: tuple[str, ...]
    notes: tuple[int, ...]
    target: str = ""


SCORED = ShownFigures(("error a score shows", "model quality"), (1, 2), "score")

FORECASTS = {
    "statistics": ShownFigures(("one label", "mean of "), (0,)),
    "training": SCORED,
    "mean": ShownFigures(("95 % interval",), (3,), "coefficient"),
    "model": SCORED,
    "regression": ShownFigures(("coefficient",), (3,), "coefficient"),
}
"""Forecasts of kinds of release, and of tables by their purpose."""

GAPS = "Leave out rows with a gap in a column that is used; which rows these are becomes public"

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
    "gaps",
    "ledger",
    "limit",
    "segment",
    *RECORD,
)


def take_budget(site: Site, unfinished: Unfinished, form: FormData, problems: Problems) -> str:
    """Take ε, the ledger and names, and make the request; a form that only leaves the page says so in ``show``."""
    unfinished.keep_typed(form, FIELDS)
    step = form.get("show")
    if step in ("table", "column"):
        return unfinished.at(str(step))
    unfinished.request = unfinished.release = None
    if step is None and unfinished.options is not None:
        unfinished.request = _parse(site.folder, unfinished, form, problems)
    return unfinished.at("release" if unfinished.request else "budget")


def budget_values(site: Site, unfinished: Unfinished) -> Data | str:
    """Return the forecast for the typed ε, and the charges of the named ledger."""
    if unfinished.options is None:
        return unfinished.at("column")
    typed = unfinished.typed = _suggestions(site.folder, unfinished) | unfinished.typed
    form = FormData([(name, text) for name, texts in typed.items() for text in texts])
    problems = dict(unfinished.problems.get("budget", {}))
    figures = _figures(site.folder, unfinished, form, problems)
    return {"problems": problems, "ledgers": site.folder.ledgers(), "starts": STARTS, "gaps_tick": GAPS, **figures}


def figures_page(request: Request) -> Response:
    """Show the forecast for the fields of the budget, for a script; nothing of them is kept."""
    with unfinished_of(request) as (site, unfinished):
        problems = Problems()
        figures = _figures(site.folder, unfinished, request.query_params, problems)
        return show(request, "choices", unfinished=unfinished, problems=problems, **figures)


def _figures(folder: ChosenFolder, unfinished: Unfinished, form: Form, problems: Problems) -> Data:
    """Return the forecast for the ε of a form, and all costs with it; for an example without one."""
    options = parse_fields(["epsilon", "score", "limit", "segment", "target_error", "target", "purpose"], form, {})
    kind = str(form.get("kind"))
    forecast = FORECASTS.get(str(options.get("purpose")) if kind == "table" else kind, FORECASTS["statistics"])
    columns = _column_count(unfinished, kind)
    book = _named_ledger(folder, form, problems)
    plan = preview_of(unfinished, epsilon=options.get("epsilon", EXAMPLE), columns=columns)
    score = options.get("score") if kind == "model" else None
    costs = _costs(unfinished, plan.budgets[0].epsilon, score or 0.0)
    with collect_problem(problems, "segment"):
        segments = Scope.parse(segment=options["segment"]).segments
        costs["that the ledger has spent before"] = total_of(book.charges if book else (), segments)
    total = sum(costs.values(), Budget(0))
    return {
        "book": book,
        "plan": plan,
        "lines": [line for line in plan.table()[1] if line[0].startswith(forecast.beginnings)],
        "notes": [note for number, note in enumerate(plan.notes()) if number in forecast.notes],
        "odds": odds_figures(total.epsilon),
        "costs": costs,
        "cautions": plan.cautions(total.minus(costs["for this release"])),
        "reached": _reach_error(unfinished, options, forecast.target, columns, problems),
        "is_example": "epsilon" not in options,
    }


def _column_count(unfinished: Unfinished, kind: str) -> int | None:
    """Return the number of columns of a regression table, 0 for the mean alone; None without a table."""
    counts = {"mean": 0, "regression": len(_regressors(unfinished))}
    limit = unfinished.rows // 3 - 1
    return min(counts[kind], limit) if kind in counts and limit >= 0 else None


def _named_ledger(folder: ChosenFolder, form: Form, problems: Problems) -> Ledger | None:
    """Return the ledger that a form names, if it is there."""
    with collect_problem(problems, "ledger"):
        path = folder.target(str(form.get("ledger")))
        return Ledger.open(path, create=False) if path.exists() else None
    return None


def _costs(unfinished: Unfinished, epsilon: float, score: float) -> dict[str, Budget]:
    """Return the costs of a release and of its score."""
    costs = {"for this release": epsilon, "for its score, beyond that": max(score - epsilon, 0.0)}
    return {name: group_budget(Budget(cost), unfinished.rows_per_person) for name, cost in costs.items()}


def _reach_error(
    unfinished: Unfinished, options: Mapping[str, Any], target: str, columns: int | None, problems: Problems
) -> float | None:
    """Return the least ε that reaches the error that was typed, if one was."""
    if options.get("target_error") is None:
        return None
    error = {"target_error": options["target_error"], "target": target or options.get("target", "mean")}
    with collect_problem(problems, "target_error"):
        return preview_of(unfinished, columns=columns, **error).budgets[0].epsilon
    return None


def _suggestions(folder: ChosenFolder, unfinished: Unfinished) -> Texts:
    """Return values of fields that suit the table; the ledger is that of its private column, if there is one."""
    label = str(unfinished.label)
    ledgers = [name for name in folder.ledgers() if has_charges(folder.target(name), label, is_named=True)]
    column = re.sub(r"[^\w-]+", "-", label).strip("-") or "column"
    return {name: [""] for name in FIELDS} | {
        "kind": ["table"],
        "target": ["mean"],
        "family": ["logit" if (unfinished.options or {})["bounds"] == (0, 1) else "ols"],
        "ledger": [*ledgers, f"{column}.ledger.db"][:1],
        "regressor": _regressors(unfinished),
    }


def _regressors(unfinished: Unfinished) -> list[str]:
    """Return the numbers of columns for a regression: no dates, gaps, or columns that may name people."""
    table, numbers = unfinished.overview, list[str]()
    for number, (name, (kind, gaps)) in enumerate(table.columns.items() if table else ()):
        if table and name not in table.identifiers and kind not in ("date", "time") and not gaps:
            numbers.append(str(number))
    return numbers


def preview_of(unfinished: Unfinished, **options: Any) -> Preview:
    """Return the forecast for an ε, or for an error, which uses no label."""
    bounds, people = (unfinished.options or {})["bounds"], unfinished.rows_per_person
    return preview(rows=unfinished.rows, bounds=bounds, rows_per_person=people, **options)


def score_of(release: ReleaseRequest, rows: int) -> ScorePlan | None:
    """Return the plan of a score, if there is one; a score that noise would hide is refused."""
    score = release.options.get("score")
    return plan_test(rows, score, release.options["bounds"]) if score else None


def _parse(
    folder: ChosenFolder, unfinished: Unfinished, form: FormData, problems: Problems
) -> ReleaseRequest | None:
    """Return the request, or collect its problems; the command that carries it out checks everything again."""
    kind = str(form.get("kind"))
    if kind not in KINDS:
        raise ParameterError("choose what to release")
    options = {**(unfinished.options or {}), "label": unfinished.label, "dialect": unfinished.dialect}
    options |= parse_fields(["epsilon", "limit", "segment", *RECORD, *KINDS[kind]], form, problems)
    with collect_problem(problems, "on"):
        _choose_columns(unfinished, form, kind, options)
    with collect_problem(problems, "ledger"):
        ledger = folder.target(str(form.get("ledger", "")))
    if problems:
        return None
    format = unfinished.header.format.replace("xlsx", "csv")
    stem, name = unfinished.source.name.partition(".")[0] or "table", "private" if kind == "table" else kind
    out = folder.root / folder.free_name(f"{stem}.{name}", ENDINGS.get(kind, f".{format}"))
    release = ReleaseRequest(kind, unfinished.source, out, ledger, options.pop("limit"), options)
    _check(release, unfinished.rows, problems)
    return None if problems else release


def _choose_columns(unfinished: Unfinished, form: FormData, kind: str, options: Data) -> None:
    """Add the options of public columns for a kind of release, and refuse gaps that a regression cannot have."""
    columns = unfinished.overview.columns if unfinished.overview else {}
    if kind != "table":
        del options["shuffle"]
    elif not columns:
        options["model"] = False  # there is nothing to learn from
    if kind in ("table", "model"):
        options["drop"] = unfinished.drop
        return
    options["on"] = CONSTANT if kind == "mean" else options.get("on") or _formula(list(columns), form)
    formula = Formula.parse(options["on"], unfinished.label)
    if left_out := [name for name in formula.columns if name in unfinished.left_out]:
        raise ParameterError(f"the formula uses columns that are left out: {', '.join(left_out)}; tick them first")
    incomplete = [name for name in formula.columns if name in columns and columns[name][1]]
    if form.get("gaps"):
        options["missing"] = "drop"
    elif incomplete:
        raise ParameterError(f"values are missing in {', '.join(incomplete)}: leave it out, or tick “{GAPS}”")


def _check(release: ReleaseRequest, rows: int, problems: Problems) -> None:
    """Collect problems of a request with its ledger, its scale and its score."""
    options = release.options
    if not release.ledger.exists() and release.limit is None:
        problems["limit"] = "A new ledger needs a limit, such as 3: choose the most ε that may ever be spent"
    with collect_problem(problems, "ledger"):
        book = release.open_ledger()
        with collect_problem(problems, "epsilon", ["segment", *KINDS["model"]]):
            LabelScale.parse(options["bounds"], options.get("label_transform"))
            refuse_overspend(book.limit, book.charges, [release.price])
    with collect_problem(problems, "score"):
        score_of(release, rows)


def _formula(columns: Sequence[str], form: FormData) -> str:
    """Return the columns that were ticked, by number, as a formula."""
    ticked = [name for number, name in enumerate(columns) if str(number) in form.getlist("regressor")]
    if not ticked:
        raise ParameterError("choose a column, or write a formula")
    return " + ".join(name if name.isidentifier() else f"`{name}`" for name in ticked)
