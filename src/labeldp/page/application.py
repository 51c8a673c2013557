"""The pages and their addresses."""

from __future__ import annotations

from importlib import resources

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from labeldp.page import budget_step, model_page, release_step, shelf, steps
from labeldp.page.guard import Guard
from labeldp.page.site import Handler, Site, explained_page, site_of

KINDS = {".css": "text/css", ".js": "text/javascript"}


async def static_file(request: Request) -> Response:
    """Return one of the page's own style sheets and scripts; the report's is the page's, too."""
    name = request.path_params["name"]
    room = "labeldp.report" if name == "style.css" else "labeldp.page"
    home = resources.files(room) / ("" if name == "style.css" else "static")
    known = {each.name for each in home.iterdir() if each.name.endswith(tuple(KINDS))}
    if name not in known:
        return site_of(request).trouble("There is no such page.", status=404)
    return Response((home / name).read_bytes(), media_type=KINDS[f".{name.rpartition('.')[2]}"])


@explained_page
async def alive(request: Request) -> Response:
    """Hear that a page is open."""
    form = await site_of(request).form(request)
    site_of(request).lifetime.hear(str(form.get("page", ""))[:64])
    return JSONResponse({})


@explained_page
async def bye(request: Request) -> Response:
    """Hear that a page was closed, or left for another."""
    form = await site_of(request).form(request)
    site_of(request).lifetime.forget(str(form.get("page", ""))[:64])
    return JSONResponse({})


@explained_page
async def close(request: Request) -> Response:
    """End the server, once work that is paid for is done."""
    site = site_of(request)
    await site.form(request)
    answer = site.page("closed", busy=site.drafts.is_busy)
    site.lifetime.close()
    return answer


async def refused(request: Request, error: Exception) -> Response:
    """Say that there is no such page, or that its form cannot be read."""
    status = getattr(error, "status_code", 404)
    sentence = "There is no such page." if status in (404, 405) else "The form cannot be read."
    return site_of(request).trouble(sentence, status=status)


async def failed(request: Request, error: Exception) -> Response:
    """Say where something went wrong that nobody expected."""
    return site_of(request).failed(error)


def application(site: Site, port: int) -> ASGIApp:
    """Return all pages behind their guard."""

    def pair(path: str, get: Handler, post: Handler) -> list[Route]:
        return [Route(path, get, methods=["GET"]), Route(path, post, methods=["POST"])]

    routes = [
        Route("/", steps.start_page),
        Route("/static/{name}", static_file),
        Route("/open", steps.open_path, methods=["POST"]),
        Route("/upload", steps.upload, methods=["POST"]),
        *pair("/draft/{draft}/table", steps.table_page, steps.table_form),
        *pair("/draft/{draft}/label", steps.label_page, steps.label_form),
        *pair("/draft/{draft}/budget", budget_step.budget_page, budget_step.budget_form),
        *pair("/draft/{draft}/release", release_step.release_page, release_step.release_form),
        Route("/draft/{draft}/stop", release_step.stop_form, methods=["POST"]),
        Route("/draft/{draft}/progress", release_step.progress_data),
        Route("/shelf", shelf.shelf_page),
        Route("/shelf/card", shelf.card_page),
        *pair("/shelf/report", shelf.report_page, shelf.report_form),
        Route("/shelf/sign", shelf.sign_form, methods=["POST"]),
        Route("/shelf/trust", shelf.trust_form, methods=["POST"]),
        Route("/shelf/key", shelf.key_form, methods=["POST"]),
        Route("/file", shelf.save_file),
        *pair("/model", model_page.model_page, model_page.predict_form),
        Route("/model/table", model_page.table_form, methods=["POST"]),
        Route("/model/{work}/progress", model_page.progress_data),
        Route("/model/{work}/stop", model_page.stop_form, methods=["POST"]),
        Route("/alive", alive, methods=["POST"]),
        Route("/bye", bye, methods=["POST"]),
        Route("/close", close, methods=["POST"]),
    ]
    handlers = {HTTPException: refused, Exception: failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False  # it would lead out of the room
    app.state.site = site
    return Guard(app, port=port, keys=site.keys, touch=site.lifetime.touch, uploads="/upload")
