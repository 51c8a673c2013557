"""What all pages share: the folder, the keys, unfinished releases, work in progress, and the templates."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.templating import Jinja2Templates

from labeldp import __version__
from labeldp.accounts.budget import rounded_up
from labeldp.accounts.numbers import number
from labeldp.app.options import OPTIONS
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.dropped_files import PREFIX, DroppedFiles
from labeldp.app.page.guard import Keys
from labeldp.app.page.lifetime import Lifetime
from labeldp.app.page.typed_numbers import exact_text
from labeldp.app.page.work import Work
from labeldp.app.sentences import printable
from labeldp.errors import ParameterError

if TYPE_CHECKING:
    from labeldp.app.page.unfinished import Unfinished

MOST_FIELDS = 100_000
"""Of a form, which has some for each column."""
SOON = 0.7
"""Seconds that an answer waits for work: what takes no longer shows no bar."""

Handler = Callable[[Request, FormData], Response]


@dataclass
class Site:
    """The page of one run.

    Attributes
    ----------
    unfinished : dict
        Releases that were begun, by their id; each is one tab's.
    latest : dict
        By table, the one in which columns were chosen last: what it withholds is withheld by default.
    works : dict
        All work that was started, by its id.
    uploading : Lock
        Held by the one upload that is being received.
    """

    folder: ChosenFolder
    keys: Keys = field(default_factory=Keys)
    unfinished: dict[str, Unfinished] = field(default_factory=dict)
    latest: dict[Path, Unfinished] = field(default_factory=dict)
    works: dict[str, Work] = field(default_factory=dict)
    uploading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.dropped = DroppedFiles(self.folder.root)
        self.lifetime = Lifetime(lambda: self.is_busy)

    @property
    def is_busy(self) -> bool:
        """Whether work is being done."""
        return any(work.state == "running" for work in list(self.works.values()))

    def start(self, *task: Any, **more: Any) -> Work:
        """Start work, with the arguments of `Work`, and wait a moment for it: it may be short."""
        work = Work(*task, **more)
        self.works[work.id] = work
        work.wait(SOON)
        return work

    def finish(self) -> None:
        """Stop all work that is not paid for, and wait for the rest."""
        works = list(self.works.values())
        for work in works:
            work.stop()
        for work in works:
            work.wait()

    @cached_property
    def templates(self) -> Jinja2Templates:
        """The templates; all values that are put into them are escaped."""
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=self._without_folder,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "number": number,
            "exact": exact_text,
            "rounded_up": rounded_up,
            "thousands": "{:,}".format,
            "zip": zip,
        }
        environment.globals |= {
            "base": self.keys.base,
            "form_key": self.keys.form,
            "folder": printable(self.folder.root.name),
            "version": __version__,
            "options": OPTIONS,
        }
        return Jinja2Templates(env=environment)

    def _without_folder(self, value: Any) -> Any:
        """Return text with paths relative to the folder, where messages have absolute ones."""
        return self._folder_path.sub("", value) if type(value) is str else value

    @cached_property
    def _folder_path(self) -> re.Pattern[str]:
        """The path of the folder, or of the one for dropped files in it, before a name in it."""
        return re.compile(rf"{re.escape(str(self.folder.root))}[/\\](?:{re.escape(PREFIX)}\w+[/\\]\w+[/\\])?")


def site_of(request: Request) -> Site:
    """Return the page that a request is for."""
    site: Site = request.app.state.site
    return site


def show(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Return a page of a template."""
    return site_of(request).templates.TemplateResponse(request, f"{template}.html", values, status_code=status)


def show_problem(request: Request, problem: str, *, status: int = 400) -> Response:
    """Return a page that says what went wrong."""
    return show(request, "problem", status=status, problem=problem)


def go(request: Request, path: str) -> Response:
    """Return an answer that leads the browser to another page, so that loading it again sends no form again."""
    return RedirectResponse(site_of(request).keys.base + path, status_code=303)


def check_form(request: Request, form: FormData) -> FormData:
    """Return a form of this page, or refuse another."""
    if form.get("form") != site_of(request).keys.form:
        raise ParameterError("the form was not sent by this page: load it again")
    return form


def form_handler(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that reads a form and calls a handler with it, in a thread."""

    async def answer(request: Request) -> Response:
        form = check_form(request, await request.form(max_files=0, max_fields=MOST_FIELDS))
        return await run_in_threadpool(handler, request, form)

    return answer


def text_in(form: FormData, name: str) -> str:
    """Return what was typed into a field of a form."""
    return str(form.get(name, "")).strip(" ")
