"""The second step: the bounds of the private column, which columns are shared, and which rows."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp.app.options import OPTIONS
from labeldp.app.page.messages import collect_problem, hint_text
from labeldp.app.page.site import go, show, site_of
from labeldp.app.page.typed_numbers import parse_number
from labeldp.app.page.unfinished import Unfinished, step_form, step_page
from labeldp.errors import ParameterError, Setting
from labeldp.tables.overview import MOST

FIELDS: dict[str, str | Setting] = {
    "low": "The lowest possible value",
    "high": "The highest possible value",
    "rows_per_person": Setting("rows_per_person"),
}


@step_page
def column_page(request: Request, unfinished: Unfinished) -> Response:
    """Ask for bounds, show what reveals labels, and ask which columns are shared."""
    if unfinished.seen is None:
        return go(request, f"{unfinished.path}/table")
    hints = map(hint_text, unfinished.hints)
    return show(request, "column", unfinished=unfinished, seen=unfinished.seen, hints=list(hints), most=MOST)


@step_form
def column_form(request: Request, unfinished: Unfinished, form: FormData) -> Response:
    """Take bounds, columns and rows."""
    seen, problems = unfinished.seen, unfinished.problems
    if seen is None:
        return go(request, f"{unfinished.path}/table")
    unfinished.options = unfinished.request = None
    unfinished.note_typed(form, [*FIELDS, "missing", "shuffle"])
    unfinished.choose_columns(unfinished.label, form)
    site_of(request).latest[unfinished.source] = unfinished
    typed, numbers = unfinished.typed, dict[str, float]()
    for name, what in FIELDS.items():
        with collect_problem(problems, name):
            numbers[name] = parse_number(typed[name], what, None if name == "rows_per_person" else seen.dialect)
    options = {"missing": "drop" if typed["missing"] else "error", "shuffle": bool(typed["shuffle"])}
    if not problems:
        with collect_problem(problems, "low"):
            options["bounds"] = OPTIONS["bounds"].parse((numbers["low"], numbers["high"]))
        with collect_problem(problems, "rows_per_person"):
            rows = numbers["rows_per_person"]
            options["rows_per_person"] = OPTIONS["rows_per_person"].parse(int(rows) if rows.is_integer() else rows)
    if seen.missing and not typed["missing"]:
        with collect_problem(problems, "missing"):
            raise ParameterError(
                f"{seen.missing:,} rows have no value in the private column: leave them out, or fill them in and "
                "read the table again"
            )
    if problems:
        return go(request, f"{unfinished.path}/column")
    unfinished.options = options
    return go(request, f"{unfinished.path}/budget")
