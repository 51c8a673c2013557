"""The third step: what each ε would give, what is left of it, and the request that follows."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp.accounts.budget import Budget, refuse_overspend, rounded_up
from labeldp.app.options import OPTIONS
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.ledgers import earlier_releases, name_for_ledger, view_ledger
from labeldp.app.page.messages import collect_problem
from labeldp.app.page.release_request import ReleaseRequest
from labeldp.app.page.site import go, show, site_of
from labeldp.app.page.typed_numbers import POINT, parse_number
from labeldp.app.page.unfinished import Unfinished, step_form, step_page
from labeldp.errors import LabelDPError, ParameterError, Setting
from labeldp.evidence.choices import choice_html
from labeldp.evidence.previews import Preview, preview
from labeldp.release.plan import Request as Plan
from labeldp.tables.paths import EXTENSIONS, Target

EXAMPLE = 1.0
"""The ε whose figures are shown while none is chosen; it is never taken for a choice."""

FIELDS = ("kind", "epsilon", "out", "folder", "score", "ledger", "limit", "report")


@step_page
def budget_page(request: Request, unfinished: Unfinished) -> Response:
    """Show what each ε would give, and the ledger."""
    if unfinished.options is None:
        return go(request, f"{unfinished.path}/column")
    folder = site_of(request).folder
    typed = {**_suggestions(unfinished, folder), **unfinished.typed}
    problems, book = dict[str, str](), None
    with collect_problem(problems, "ledger"):
        book = view_ledger(folder, typed["ledger"])
    epsilon, score = (_usable(typed[name]) for name in ("epsilon", "score"))
    figures = choice_html(
        preview_of(unfinished, epsilon or EXAMPLE),
        spent=Budget(0) if book is None else book.spent,
        score=score or 0.0 if typed["kind"] == "model" else 0.0,
    )
    return show(
        request,
        "budget",
        unfinished=unfinished,
        typed=typed,
        book=book,
        ledger_problem=problems.get("ledger", ""),
        ledgers=folder.ledgers(),
        earlier=earlier_releases(folder, str(unfinished.label), typed["ledger"]),
        figures=Markup(figures),  # noqa: S704 (the library escapes it)
        example="" if epsilon else rounded_up(EXAMPLE),
    )


def _suggestions(unfinished: Unfinished, folder: ChosenFolder) -> dict[str, str]:
    """Return what suits the table."""
    stem, ending = stem_of(unfinished.name), EXTENSIONS[unfinished.header.table.format]
    return {
        **dict.fromkeys(FIELDS, ""),
        "kind": "table",
        "ledger": f"{stem}.{name_for_ledger(str(unfinished.label))}.ledger.jsonl",
        "out": folder.free_name(f"{stem}.private", f".{ending}"),
        "folder": folder.free_name(f"{stem}.model", ""),
        "report": "yes",
    }


def _usable(text: str) -> float | None:
    """Return the ε that was typed, or None if no release could have it."""
    try:
        return float(OPTIONS["epsilon"].parse(parse_number(text, Setting("epsilon"), POINT)))
    except LabelDPError:
        return None


def preview_of(unfinished: Unfinished, epsilon: float) -> Preview:
    """Return what an ε would give, as far as that is known without a label."""
    options, seen = unfinished.options or {}, unfinished.seen
    rows = 1 if seen is None else max(1, seen.rows - seen.missing)
    bounds, people = options["bounds"], options["rows_per_person"]
    return preview(rows=rows, bounds=bounds, epsilon=epsilon, rows_per_person=people)


@step_form
def budget_form(request: Request, unfinished: Unfinished, form: FormData) -> Response:
    """Take ε, the ledger and names, and make the request."""
    if unfinished.options is None:
        return go(request, f"{unfinished.path}/column")
    unfinished.note_typed(form, FIELDS)
    unfinished.request = None
    if "show" not in form:
        unfinished.request = _parse(site_of(request).folder, unfinished)
        unfinished.release = None
    return go(request, f"{unfinished.path}/{'release' if unfinished.request else 'budget'}")


def _parse(folder: ChosenFolder, unfinished: Unfinished) -> ReleaseRequest | None:
    """Return the request, or note what is wrong with it; whoever carries it out checks everything again."""
    typed, problems, options = unfinished.typed, unfinished.problems, dict(unfinished.options or {})
    is_model = typed["kind"] == "model"
    budgets = dict[str, float | None]()
    for name in ("epsilon", "limit", *(["score"] if is_model else [])):
        budgets[name] = None
        if name == "epsilon" or typed[name]:
            with collect_problem(problems, name):
                number = parse_number(typed[name], Setting(name), POINT)
                budgets[name] = OPTIONS[name].parse(number)
    paths, to = dict[str, Path](), "folder" if is_model else "out"
    for name in ("ledger", to):
        with collect_problem(problems, name):
            paths[name] = folder.target(typed[name])
    if problems:
        return None
    if is_model:
        del options["shuffle"]
        options["score"] = budgets["score"]
    out, withheld = paths[to], {*unfinished.left_out, unfinished.label}
    release = ReleaseRequest(
        kind="model" if is_model else "table",
        source=unfinished.source,
        stamp=unfinished.header.stamp,
        columns=tuple(name for name in unfinished.names if name not in withheld),
        out=out,
        ledger=paths["ledger"],
        report=out.with_name(f"{out.name}.report.html") if typed["report"] else None,
        limit=budgets["limit"],
        options={
            **options,
            "epsilon": budgets["epsilon"],
            "label": unfinished.label,
            "drop": unfinished.drop,
            "dialect": unfinished.header.dialect,
        },
        names={
            "source": unfinished.name,
            "out": folder.name(out),
            "ledger": folder.name(paths["ledger"]),
        },
    )
    with collect_problem(problems, "epsilon"):
        Plan(**{name: release.options[name] for name in ("epsilon", "bounds", "rows_per_person")})
    with collect_problem(problems, to):
        if out.exists():
            raise ParameterError(f"{folder.name(out)} exists already: choose another name")
        Target(f"{out}/" if is_model else str(out), force=False).refuse()
    with collect_problem(problems, "ledger"):
        ledger = release.open_ledger()
        refuse_overspend(ledger.limit, ledger.charges, [release.price])
    return None if problems else release


def stem_of(name: str) -> str:
    """Return a table's name without its ending.

    Examples
    --------
    >>> stem_of("2024/sales.csv.gz"), stem_of("parts")
    ('sales', 'parts')
    """
    path = Path(name)
    while path.suffix and len(path.suffix) < 9:
        path = path.with_suffix("")
    return path.name or "table"
