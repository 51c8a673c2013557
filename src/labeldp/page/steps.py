"""The way to a release: the table, the label, the budget."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp._names import as_label_name
from labeldp._values import LabelBounds
from labeldp.errors import LabelDPError, ParameterError
from labeldp.files import Dialect
from labeldp.files.dialect import SEPARATOR_NAMES
from labeldp.files.overview import MOST
from labeldp.files.places import DELIMITERS
from labeldp.jobs.sentences import EXPLAINED
from labeldp.page.drafts import CHANGED, Draft, Header
from labeldp.page.site import Site, explained_page, go, site_of, started
from labeldp.page.typed_numbers import number_in, typed
from labeldp.page.uploads import received_file
from labeldp.page.words import explain_in_page

SEPARATORS = {"": "as the header shows", ",": "comma", ";": "semicolon", "tab": "tab", "|": "vertical bar"}
DECIMALS = {"": "as the public columns show", ".": "point: 1.5", ",": "comma: 1,5"}
THOUSANDS = {
    "": "as the public columns show",
    ",": "comma: 1,000",
    ".": "point: 1.000",
    "space": "space: 1 000",
    "'": "apostrophe: 1'000",
}


@explained_page
async def start_page(request: Request) -> Response:
    """Show the tables of the folder, and how to bring another."""
    return await _start_page(site_of(request))


async def _start_page(site: Site, sentence: str = "", path: str = "") -> Response:
    tables, cards = await run_in_threadpool(lambda: (site.folder.tables(), set(site.folder.cards())))
    private = [name for name in tables if f"{name}.card.json" in cards]
    return site.page(
        "start",
        status=400 if sentence else 200,
        tables=[name for name in tables if name not in private],
        private=private,
        unfinished=site.drafts.unfinished(),
        sentence=sentence,
        path=path,
    )


async def open_path(request: Request) -> Response:
    """Begin with a file or a folder that is there."""
    site = site_of(request)
    path = ""
    try:
        form = await site.form(request)
        path = str(form.get("path", "")).strip(" ")
        source = site.folder.source(path)
        draft = await run_in_threadpool(Draft.of, source, site.folder.name(source), site.drafts.like(source))
    except EXPLAINED as error:
        return await _start_page(site, explain_in_page(error), path)
    site.drafts.add(draft)
    return go(f"/draft/{draft.id}/table")


async def upload(request: Request) -> Response:
    """Begin with a file that was dropped."""
    site = site_of(request)
    try:
        async with received_file(request, site.folder, site.keys.form) as path:
            draft = await run_in_threadpool(Draft.of, path, path.name)
    except EXPLAINED as error:
        return await _start_page(site, explain_in_page(error))
    site.drafts.add(draft)
    return go(f"/draft/{draft.id}/table")


def draft_of(request: Request) -> Draft:
    """Return the draft that a page is about."""
    return site_of(request).drafts.get(request.path_params["draft"])


# ---- the table ------------------------------------------------------------------------------------------------


@explained_page
async def table_page(request: Request) -> Response:
    """Show the columns, ask which is private, and then show what was read."""
    draft = draft_of(request)
    work = draft.reading
    state = work.state if work else "ready"  # once: the thread may end while the page is put together
    choices = {"separator": SEPARATORS, "decimal": DECIMALS, "thousands": THOUSANDS}
    seen, written = (draft.seen, written_in(draft)) if state == "done" else (None, "")
    return site_of(request).page(
        "table", draft=draft, work=work, state=state, seen=seen, choices=choices, written=written
    )


def written_in(draft: Draft) -> str:
    """Return how a table is written, in words."""
    if draft.seen is None:
        return ""
    dialect = draft.seen.dialect
    if draft.header.format not in DELIMITERS:
        return f"sheet {draft.dialect.sheet or draft.header.sheets[0]}" if draft.header.sheets else ""
    words = [f"{SEPARATOR_NAMES.get(str(dialect.separator), repr(dialect.separator))} between values"]
    words += [f"{dialect.encoding} text", f"decimal {'commas' if dialect.decimal == ',' else 'points'}"]
    if dialect.thousands is not None:
        words.append(f"{ {' ': 'spaces'}.get(dialect.thousands, repr(dialect.thousands)) } between thousands")
    return ", ".join(words)


def _dialect(form: Mapping[str, Any]) -> Dialect:
    def given(name: str) -> str | None:
        return str(form.get(name, "")).strip() or None

    return Dialect(
        given("separator"),
        given("decimal"),
        given("thousands"),
        given("encoding"),
        split_names(form.get("na")),
        given("sheet"),
        split_names(form.get("formulas")),
        bool(given("header")),
        split_names(form.get("names")),
        given("multiline"),
    )


def split_names(text: object) -> list[str]:
    """Return the names in a field, between commas."""
    return [name for part in str(text or "").split(",") if (name := part.strip())]


OTHER = "This was said of another reading of the table, perhaps in another tab. Look at it as it is now."


@explained_page
async def table_form(request: Request) -> Response:
    """Take how the file is written, or which column is private and which leave, and read it."""
    site, draft = site_of(request), draft_of(request)
    form = await site.form(request)
    here, read = f"/draft/{draft.id}/table", draft.read
    draft.problems, draft.entered = {}, {}
    try:
        if "written" in form:
            draft.entered = {name: str(form.get(name, "")) for name in form}
            dialect = _dialect(form)
            read = await run_in_threadpool(Header.of, draft.source, dialect)
            label, stays = draft.label if draft.label in read.table.names else None, draft.stays
        else:
            if draft.is_changed:
                return await changed(draft)
            label, stays = _said_of_columns(draft, form)
        if draft.is_releasing:
            return go(f"/draft/{draft.id}/release")
        if form.get("read") != draft.read.id:
            raise ParameterError(OTHER)
        draft.take(read, label, stays)
        if draft.reading is not None:
            await started(draft.reading)
    except EXPLAINED as error:
        draft.problems["table"] = explain_in_page(error)
    else:
        draft.entered = {}
    return go(here)


def _said_of_columns(draft: Draft, form: FormData) -> tuple[str, tuple[str, ...]]:
    """Return the label and the columns that stay; forms send them by number: they change line breaks."""
    numbers = {str(number): name for number, name in enumerate(draft.header.names)}
    label = numbers.get(str(form.get("label", "")))
    if label is None:
        raise ParameterError("say which column is private")
    as_label_name(label, "name all columns below, or rename this one in the file")
    return label, _staying(draft, label, form)


def _staying(draft: Draft, label: str | None, form: FormData) -> tuple[str, ...]:
    """Return the columns that stay: of this header as the form says, and of others as it was said of them."""
    names, leaving = draft.header.names, {str(number) for number in form.getlist("leaves")}
    stay = [name for number, name in enumerate(names) if str(number) not in leaving and name != label]
    return (*stay, *(name for name in draft.stays if name not in names))


# ---- the label ------------------------------------------------------------------------------------------------


@explained_page
async def label_page(request: Request) -> Response:
    """Ask for bounds, show what gives labels away, and ask what leaves."""
    draft = draft_of(request)
    if draft.seen is None:
        return go(f"/draft/{draft.id}/table")
    return site_of(request).page(
        "label", draft=draft, hints=in_page_words(draft.hints), entered=_shown_label(draft), most=MOST
    )


def in_page_words(hints: list[str], where: str = "below") -> list[str]:
    """Return hints with what the page calls what they advise.

    Examples
    --------
    >>> in_page_words(['Leave it out with drop=["net"], unless it is public. shuffle=True hides it.'])
    ['Leave it out below, unless it is public. A random order hides it.']
    """
    named = (re.sub(r' with drop=\["[^]]*"\]', f" {where}", hint) for hint in hints)
    return [hint.replace("shuffle=True hides", "A random order hides") for hint in named]


def _shown_label(draft: Draft) -> dict[str, str]:
    dialect = None if draft.seen is None else draft.seen.dialect
    low, high = (typed(bound, dialect) for bound in draft.bounds) if draft.bounds else ("", "")
    return {"low": low, "high": high, "rows_per_person": str(draft.rows_per_person), **draft.entered}


@explained_page
async def label_form(request: Request) -> Response:
    """Take bounds and what leaves."""
    site, draft = site_of(request), draft_of(request)
    form = await site.form(request)
    seen = draft.seen
    if draft.is_releasing:
        return go(f"/draft/{draft.id}/release")
    if seen is None:
        return go(f"/draft/{draft.id}/table")
    if draft.is_changed:
        return await changed(draft)
    if form.get("read") != draft.read.id:
        draft.problems = {"table": OTHER}
        return go(f"/draft/{draft.id}/table")
    draft.problems = problems = dict[str, str]()
    low = number_in(form, "low", problems, "The lowest possible value", seen.dialect)
    high = number_in(form, "high", problems, "The highest possible value", seen.dialect)
    people = number_in(form, "rows_per_person", problems, "How many rows one person may have")
    if low is not None and high is not None and low >= high:
        problems["low"] = "The lowest value must lie below the highest."
    elif low is not None and high is not None:
        try:
            LabelBounds((low, high))
        except LabelDPError as error:
            problems["low"] = explain_in_page(error)
    if people is not None and (not people.is_integer() or people < 1):
        problems["rows_per_person"] = "How many rows one person may have must be an integer, 1 or more."
    draft.stays = _staying(draft, draft.label, form)
    draft.missing, draft.shuffle = "drop" if form.get("missing") else "error", bool(form.get("shuffle"))
    if seen.missing and draft.missing == "error":
        problems["missing"] = (
            f"{seen.missing:,} rows have no label: leave them out, or fill them in and read the table again."
        )
    if problems:
        draft.entered = {name: str(form.get(name, "")) for name in ("low", "high", "rows_per_person")}
        return go(f"/draft/{draft.id}/label")
    draft.entered, draft.bounds = {}, (float(low or 0), float(high or 0))
    draft.rows_per_person = int(people or 1)
    return go(f"/draft/{draft.id}/budget")


async def changed(draft: Draft) -> Response:
    """Say that the file changed, and show it as it is now."""
    draft.problems, draft.entered = {"table": CHANGED}, {}
    try:
        read = await run_in_threadpool(Header.of, draft.source, draft.dialect)
    except EXPLAINED as error:
        draft.problems = {"table": f"{CHANGED} {explain_in_page(error)}"}
        read = replace(draft.read, stamp=())
    if not draft.is_releasing:
        draft.take(read, None, draft.stays)
    return go(f"/draft/{draft.id}/table")


def stem_of(name: str) -> str:
    """Return a table's name without what its format adds to it.

    Examples
    --------
    >>> stem_of("2024/sales.csv.gz"), stem_of("parts")
    ('sales', 'parts')
    """
    path = Path(name)
    while path.suffix and len(path.suffix) < 9:
        path = path.with_suffix("")
    return path.name or "table"
