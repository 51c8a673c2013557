"""The pages and their addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from labeldp.app import report
from labeldp.app.page import budget_step, card_page, column_step, model_page, release_step, releases, table_step
from labeldp.app.page.guard import LOCAL_HOSTS, OwnerOnly, SafeAnswers
from labeldp.app.page.messages import explain
from labeldp.app.page.site import Handler, Site, form_handler, show, show_problem, site_of, text_in
from labeldp.app.page.work import location_of
from labeldp.app.sentences import EXPLAINED


def style_sheet(request: Request) -> Response:
    """Return the style sheet of reports, which is the page's too."""
    return FileResponse(Path(report.__file__).with_name("style.css"))


def alive_form(request: Request, form: FormData) -> Response:
    """Note that a page is open."""
    site_of(request).lifetime.open_page(text_in(form, "page")[:64])
    return JSONResponse({})


def closed_form(request: Request, form: FormData) -> Response:
    """Note that a page was closed, or left for another."""
    site_of(request).lifetime.close_page(text_in(form, "page")[:64])
    return JSONResponse({})


def end_form(request: Request, form: FormData) -> Response:
    """End the server, once work that is paid for is done."""
    site = site_of(request)
    site.lifetime.close()
    return show(request, "closed", busy=site.is_busy)


def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    problem = "There is no such page." if status in (404, 405) else "The form cannot be read."
    return show_problem(request, problem, status=status)


def _explained(request: Request, error: Exception) -> Response:
    return show_problem(request, explain(error))


def _failed(request: Request, error: Exception) -> Response:
    where = location_of(error)
    problem = f"Something went wrong inside, {where}. If anything was charged, its ledger says so."
    return show_problem(request, problem, status=500)


def application(site: Site) -> ASGIApp:
    """Return all pages, for their owner only."""
    step = "/new/{id}"
    pages: dict[str, Any] = {
        "/": table_step.start_page,
        f"{step}/table": table_step.table_page,
        f"{step}/column": column_step.column_page,
        f"{step}/budget": budget_step.budget_page,
        f"{step}/release": release_step.release_page,
        "/work/{work}": release_step.progress_data,
        "/releases": releases.releases_page,
        "/card": card_page.card_page,
        "/file": card_page.save_file,
        "/report": card_page.report_page,
        "/model": model_page.model_page,
        "/style.css": style_sheet,
    }
    forms: dict[str, Handler] = {
        "/open": table_step.open_form,
        f"{step}/table": table_step.table_form,
        f"{step}/column": column_step.column_form,
        f"{step}/budget": budget_step.budget_form,
        f"{step}/release": release_step.release_form,
        "/work/{work}/stop": release_step.stop_form,
        "/trust": card_page.trust_form,
        "/key": card_page.key_form,
        "/model": model_page.predict_form,
        "/model/table": model_page.table_form,
        "/alive": alive_form,
        "/closed": closed_form,
        "/end": end_form,
    }
    routes = [
        *(Route(path, page, methods=["GET"]) for path, page in pages.items()),
        *(Route(path, form_handler(form), methods=["POST"]) for path, form in forms.items()),
        Route("/upload", table_step.upload, methods=["POST"]),
        Route("/sign", card_page.sign_form, methods=["POST"]),
        Mount("/static", StaticFiles(packages=[("labeldp.app.page", "static")])),
    ]
    app = Starlette(
        routes=[Mount(site.keys.base, routes=routes)],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=LOCAL_HOSTS, www_redirect=False),
            Middleware(OwnerOnly, keys=site.keys, touch=site.lifetime.touch),
        ],
        exception_handlers={HTTPException: _refused, Exception: _failed} | dict.fromkeys(EXPLAINED, _explained),
    )
    app.state.site = site
    return SafeAnswers(app)
