"""What all pages share: the folder, the drafts, the keys, and how a page is put together."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from labeldp import __version__
from labeldp._values import rounded_up
from labeldp.errors import ParameterError
from labeldp.jobs.sentences import EXPLAINED, printable
from labeldp.page.chosen_folder import DROPPED, ChosenFolder
from labeldp.page.drafts import Drafts
from labeldp.page.guard import Keys
from labeldp.page.lifetime import Lifetime
from labeldp.page.typed_numbers import exact_words
from labeldp.page.words import explain_in_page
from labeldp.page.work import Work, place_of
from labeldp.release.numbers import number

Handler = Callable[[Request], Awaitable[Response]]

HERE = Path(__file__).parent
MOST_FIELDS = 1_000_000
"""One for each column; how many bytes a form may have is what limits it."""
SOON = 0.7
"""Seconds that an answer waits for work: what takes no longer shows no bar."""


class InRoom(Extension):
    """Puts the room before each address in a template: templates name them as the application does."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return a template's text with whole addresses."""
        return re.sub(r'\b(href|src|action|data-progress)="/', r'\1="{{ room }}/', source)


@dataclass
class Site:
    """The page of one run."""

    folder: ChosenFolder
    keys: Keys
    drafts: Drafts
    lifetime: Lifetime

    @classmethod
    def of(cls, folder: ChosenFolder) -> Site:
        """Return a new one."""
        drafts = Drafts(folder)
        return cls(folder, Keys(), drafts, Lifetime(lambda: drafts.is_busy))

    @cached_property
    def _templates(self) -> Environment:
        environment = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=self._without_folder,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[InRoom],
        )
        environment.globals["room"] = self.keys.room
        environment.filters |= {
            "number": number,
            "exact": exact_words,
            "rounded_up": rounded_up,
            "thousands": lambda value: f"{value:,}",
        }
        return environment

    def _without_folder(self, value: Any) -> Any:
        """Return what is put into a page with paths in the folder, where messages name whole ones."""
        return self._folder_path.sub("", value) if type(value) is str else value

    @cached_property
    def _folder_path(self) -> re.Pattern[str]:
        """Where the folder is, or in it the one for dropped files, before a name in it."""
        return re.compile(rf"{re.escape(str(self.folder.root))}[/\\](?:{re.escape(DROPPED)}\w+[/\\])?")

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page of a template; whatever is put in is escaped."""
        shared = {"form_key": self.keys.form, "folder": printable(self.folder.root.name), "version": __version__}
        html = self._templates.get_template(f"{template}.html").render({**shared, **values})
        return HTMLResponse(html, status_code=status)

    async def form(self, request: Request) -> FormData:
        """Return what a form of this page sent."""
        form = await request.form(max_files=0, max_fields=MOST_FIELDS)
        if form.get("form") != self.keys.form:
            raise ParameterError("the form was not sent by this page: load it again")
        return form

    def trouble(self, sentence: str, *, status: int = 400) -> Response:
        """Return a page that says what went wrong."""
        return self.page("trouble", status=status, sentence=sentence)

    def failed(self, error: BaseException) -> Response:
        """Return a page for an error that nobody expected."""
        return self.trouble(
            f"Something went wrong inside, {place_of(error)}. If anything was charged, its ledger says so.",
            status=500,
        )


def site_of(request: Request) -> Site:
    """Return the page that a request is for."""
    site: Site = request.app.state.site
    return site


def explained_page(handler: Handler) -> Handler:
    """Let a page say what went wrong as the command line does."""

    @wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except EXPLAINED as error:
            return site_of(request).trouble(explain_in_page(error))

    return answer


def go(path: str) -> Response:
    """Return an answer that leads the browser to another page, so that loading it again sends no form again."""
    return RedirectResponse(path, status_code=303)


def progress_of(work: Work | None) -> Response:
    """Return how far work is, for the bar; where there is none, a script loads the page, which says more."""
    return JSONResponse({"state": "none"} if work is None else work.as_data())


async def started(work: Work) -> None:
    """Wait a moment for work that may be short."""
    await run_in_threadpool(work.wait, SOON)
