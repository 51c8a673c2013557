"""The second step: the bounds of the private column, and which rows are released."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp.app.page.forms import collect_problem, parse_fields
from labeldp.app.page.site import counted, go, show
from labeldp.app.page.unfinished import Unfinished, step
from labeldp.errors import ParameterError

FIELDS = ("bounds", "rows_per_person", "missing", "shuffle")


@step
def column_page(request: Request, unfinished: Unfinished) -> Response:
    """Ask for bounds, and how rows belong to people."""
    if unfinished.seen is None:
        return go(request, f"{unfinished.path}/table")
    return show(request, "column", unfinished=unfinished, seen=unfinished.seen)


@step
def column_form(request: Request, unfinished: Unfinished, form: FormData) -> Response:
    """Take bounds and rows."""
    seen, problems = unfinished.seen, unfinished.problems
    if seen is None:
        return go(request, f"{unfinished.path}/table")
    unfinished.request = None
    unfinished.keep_typed(form, FIELDS)
    options = parse_fields(FIELDS, form, problems)
    if seen.missing and options.get("missing") == "error":
        with collect_problem(problems, "missing"):
            raise ParameterError(
                f"leave out {counted(seen.missing, 'row')} without a value in the private column, or fill them in "
                "and open the table again"
            )
    unfinished.options = None if problems else options
    return go(request, f"{unfinished.path}/{'column' if problems else 'budget'}")
