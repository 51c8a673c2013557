"""The pages and their addresses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from labeldp._values import Data
from labeldp.app import report
from labeldp.app.page import budget_step, handover_step, release_step, releases, table_step
from labeldp.app.page.forms import explain
from labeldp.app.page.guard import LOCAL_HOSTS, OwnerOnly, SafeAnswers
from labeldp.app.page.site import Site, go, show, site_of
from labeldp.app.page.unfinished import Unfinished, unfinished_of
from labeldp.app.sentences import EXPLAINED

MAX_FIELDS = 100_000
"""The most fields of a form: a table of many columns has some for each."""

STEPS: dict[str, tuple[Callable[..., str], Callable[[Site, Unfinished], Data | str]]] = {
    "table": (table_step.take_table, table_step.table_values),
    "column": (table_step.take_column, table_step.column_values),
    "budget": (budget_step.take_budget, budget_step.budget_values),
    "release": (release_step.take_release, release_step.release_values),
}
"""Two functions of each step: one takes its form, notes problems by field and returns the page to go to; the other
returns the values of its template, or the page of the step that must come first."""


def step_page(request: Request, form: FormData | None = None) -> Response:
    """Show a step of an unfinished release, or take its form.

    Every form is answered by a redirect, and its problems are kept with the typed text: going back in the browser
    and loading a page again show a page, and send nothing.
    """
    name = request.path_params["step"]
    if name not in STEPS:
        raise HTTPException(404)
    take, values_of = STEPS[name]
    with unfinished_of(request) as (site, unfinished):
        if form is None:
            values = values_of(site, unfinished)
            if isinstance(values, str):
                return go(request, values)
            problems = unfinished.problems.get(name, {})
            return show(request, name, unfinished=unfinished, **{"problems": problems, **values})
        if unfinished.release is not None and unfinished.release.state == "running":
            return go(request, unfinished.at("release"))
        unfinished.refuse_changed()
        unfinished.problems = {name: {}}
        return go(request, take(site, unfinished, form, unfinished.problems[name]))


def style_sheet(request: Request) -> Response:
    """Return the style sheet of reports, which is the page's too."""
    return FileResponse(Path(report.__file__).with_name("style.css"))


def alive(request: Request) -> Response:
    """Answer a page that is open: the request itself shows that somebody is there."""
    return Response(status_code=204)


def end_form(request: Request, form: FormData) -> Response:
    """End the server, once work that is paid for is done."""
    site = site_of(request)
    site.is_closed = True
    return show(request, "closed", busy=site.is_busy)


def _form(handler: Callable[..., Response]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that calls a handler in a thread, with the form if one was sent."""

    async def answer(request: Request) -> Response:
        if request.method != "POST":
            return await run_in_threadpool(handler, request)
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            return await run_in_threadpool(handler, request, form)

    return answer


def _problem(request: Request, error: Exception) -> Response:
    """Return the page for an error; the message of an unexpected one may quote data, and is not shown."""
    if isinstance(error, HTTPException):
        problem = "There is no such page." if error.status_code in (404, 405) else "The form cannot be read."
        return show(request, "problem", status=error.status_code, problem=problem)
    is_explained = isinstance(error, EXPLAINED)
    if is_explained and request.method == "POST":
        site_of(request).problems = {"request": explain(error)}
        return go(request, "/")
    return show(request, "problem", status=400 if is_explained else 500, problem=explain(error))


def build_app(site: Site) -> ASGIApp:
    """Return all pages, for their owner only."""
    pages: dict[str, Callable[[Request], Response]] = {
        "/": table_step.start_page,
        "/new/{id}/figures": budget_step.figures_page,
        "/work/{work}": release_step.progress_data,
        "/releases": releases.releases_page,
        "/card": releases.card_page,
        "/report": releases.report_page,
        "/archive": handover_step.archive_page,
        "/style.css": style_sheet,
        "/alive": alive,
    }
    forms: dict[str, Callable[..., Response]] = {
        "/open": table_step.open_form,
        "/upload": table_step.upload_form,
        "/again": releases.again_form,
        "/sample": table_step.sample_form,
        "/work/{work}/stop": release_step.stop_form,
        "/folder": handover_step.folder_form,
        "/predict": handover_step.predict_form,
        "/end": end_form,
    }
    routes = [
        *(Route(path, page, methods=["GET"]) for path, page in pages.items()),
        *(Route(path, _form(handler), methods=["POST"]) for path, handler in forms.items()),
        Route("/new/{id}/{step}", _form(step_page), methods=["GET", "POST"]),
        Mount("/static", StaticFiles(packages=[("labeldp.app.page", "static")])),
    ]
    app = Starlette(
        routes=[Mount(site.keys.base, routes=routes)],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=LOCAL_HOSTS, www_redirect=False),
            Middleware(OwnerOnly, keys=site.keys, touch=site.touch),
        ],
        exception_handlers=dict.fromkeys([HTTPException, Exception, *EXPLAINED], _problem),
    )
    app.state.site = site
    return SafeAnswers(app)
