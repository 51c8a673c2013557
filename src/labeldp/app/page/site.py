"""State of all pages: the folder, the keys, unfinished releases, work in progress, and the templates."""

from __future__ import annotations

import os
import re
import shlex
import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.templating import Jinja2Templates

from labeldp import __version__
from labeldp.accounts.budget import rounded_up, total_of
from labeldp.accounts.explanation import private_column
from labeldp.accounts.numbers import number
from labeldp.app.cli import OPTIONS
from labeldp.app.options import RECORD
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.forms import Problems
from labeldp.app.page.guard import Keys
from labeldp.app.page.work import Work
from labeldp.app.sentences import as_field, counted, printable, spelled
from labeldp.app.typed_text import readings

if TYPE_CHECKING:
    from labeldp.app.page.unfinished import Unfinished

SOON = 0.7
"""Seconds that an answer waits for work: what takes no longer shows no bar."""

LEAVE = 5.0
"""Seconds for the last page to load its style, once its owner closed it."""

IDLE = 1800.0
"""Seconds without any request, after which nobody is there; pages that are open ask now and then."""

CHARGES = {
    "labels": "values with noise",
    "prior": "a rough picture of the values (prior), which makes the noise smaller",
    "sums": "sums with noise",
    "sums and labels": "sums and values with noise",
    "score": "the score of a model",
}
"""Purposes of charges, by the first word of their descriptions in ledgers and cards."""


def paid_for(description: str) -> str:
    """Return the purpose of a charge.

    Examples
    --------
    >>> paid_for("sums (log)")
    'sums with noise'
    >>> paid_for("sums and labels of 'rent'")
    "sums and values with noise of 'rent'"
    """
    output, of, label = description.partition(" of '")
    return CHARGES.get(output.partition(" (")[0], output) + of + label


@dataclass
class Site:
    """The page of one run.

    Attributes
    ----------
    unfinished : dict
        Releases that were begun, by their id.
    works : dict
        All work that was started, by its id.
    problems : dict
        Problems of the last form, for the next page of the start.
    """

    folder: ChosenFolder
    keys: Keys = field(default_factory=Keys)
    unfinished: dict[str, Unfinished] = field(default_factory=dict)
    works: dict[str, Work] = field(default_factory=dict)
    problems: Problems = field(default_factory=dict)
    is_closed: bool = False
    last_request: float = field(default_factory=time.monotonic)

    def touch(self) -> None:
        """Note that a request came."""
        self.last_request = time.monotonic()

    @property
    def is_busy(self) -> bool:
        """Work is being done."""
        return any(work.state == "running" for work in list(self.works.values()))

    def is_over(self, time: float) -> bool:
        """Test for the end: nobody is there any more, and no work is being done."""
        if self.is_busy:
            self.last_request = time
        return time - self.last_request > (LEAVE if self.is_closed else IDLE)

    def start(self, *arguments: Any) -> Work:
        """Start work, with the arguments of `Work`, and wait a moment for it: it may be short."""
        work = Work(*arguments)
        self.works[work.id] = work
        work.wait(SOON)
        return work

    def finish(self) -> None:
        """Stop all work that can be stopped, and wait for the end of all."""
        works = list(self.works.values())
        for work in works:
            work.stop()
        for work in works:
            work.wait()

    @cached_property
    def templates(self) -> Jinja2Templates:
        """The templates; all values that are put into them are escaped, and show no path outside the folder."""
        parent = f"{self.folder.root}{os.sep}"
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=lambda value: value.replace(parent, "") if type(value) is str else value,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "counted": counted,
            "exact": partial(number, digits=15),
            "name": self.folder.name,
            "paid_for": paid_for,
            "plain": plain_words,
            "printable": printable,
            "private_column": private_column,
            "quote": shlex.quote,
            "readings": readings,
            "rounded_up": rounded_up,
            "thousands": "{:,}".format,
            "total_of": total_of,
            "zip": zip,
        }
        environment.globals |= {
            "base": self.keys.base,
            "folder": printable(self.folder.root.name),
            "version": __version__,
            "options": OPTIONS,
            "record": RECORD,
        }
        return Jinja2Templates(env=environment)


_LABEL = re.compile(r"(?<![\w.'\"/-])(?<!column )(?:([Pp]rivate|[Nn]oisy|true) )?label(s?)(?!\.?[\w'\"/-])")
"""The word in a sentence, and not in names of files and columns."""

_KINDS = {None: "private", "private": "noisy", "Private": "Noisy"}
"""Words of the page for labels of the library."""


def plain_words(line: str) -> str:
    """Return a line of an explanation for those who never saw a ledger, or heard of labels.

    Private labels of the library are those with noise.

    Examples
    --------
    >>> plain_words("  0.7 for labels"), plain_words("One private label, all features and labels")
    ('  0.7 for values with noise', 'One noisy value, all public columns and private values')
    >>> plain_words("Private labels in labels.csv"), plain_words("the true labels of the label 'pay'")
    ('Noisy values in labels.csv', "the true values of the private column 'pay'")
    """
    amount, separator, purpose = spelled(line, as_field).partition(" for ")
    text = f"{amount}{separator}{paid_for(purpose)}".replace(" label '", " private column '")
    text = _LABEL.sub(lambda match: f"{_KINDS.get(match[1], match[1])} value{match[2]}", text)
    return text.replace("Labels ", "Values ").replace(" feature", " public column")


def site_of(request: Request) -> Site:
    """Return the page that a request is for."""
    site: Site = request.app.state.site
    return site


def show(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Return a page of a template."""
    return site_of(request).templates.TemplateResponse(request, f"{template}.html", values, status_code=status)


def go(request: Request, path: str) -> Response:
    """Return an answer that leads the browser to another page, so that loading it again sends no form again."""
    return RedirectResponse(site_of(request).keys.base + path, status_code=303)
