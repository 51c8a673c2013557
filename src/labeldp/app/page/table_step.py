"""The first step: choose a table and its private column, and check what was read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from labeldp.app.option import parse_options
from labeldp.app.page.messages import collect_problem
from labeldp.app.page.release_request import DIALECT
from labeldp.app.page.site import check_form, go, show, site_of, text_in
from labeldp.app.page.unfinished import Header, Unfinished, step_form, step_page
from labeldp.errors import ParameterError
from labeldp.release.names import as_label_name
from labeldp.tables.dialect import Dialect
from labeldp.tables.paths import DELIMITERS

SPARE = 1 << 26
"""Bytes that a dropped file must leave free on the disk."""

_SHEET_FIELDS = ("na", "header", "names", "formulas")


# ---- the start ----------------------------------------------------------------------------------------------


def start_page(request: Request, problem: str = "", path: str = "") -> Response:
    """Show the tables of the folder, and how to bring another."""
    site = site_of(request)
    tables, cards = site.folder.tables(), set(site.folder.cards())
    private = [name for name in tables if f"{name}.card.json" in cards]
    begun = [each for each in reversed(site.unfinished.values()) if each.private and not each.is_finished]
    return show(
        request,
        "start",
        status=400 if problem else 200,
        tables=[name for name in tables if name not in private],
        private=private,
        begun=begun,
        problem=problem,
        path=path,
    )


def open_form(request: Request, form: FormData) -> Response:
    """Begin with a file or a folder that is there."""
    site, path, problems = site_of(request), text_in(form, "path"), dict[str, str]()
    with collect_problem(problems, "path"):
        source = site.folder.source(path)
        return _begin(request, source, site.folder.name(source))
    return start_page(request, problems["path"], path)


async def upload(request: Request) -> Response:
    """Begin with a file that was dropped; all of it stays inside the folder, also on its way."""
    site, problems = site_of(request), dict[str, str]()
    with collect_problem(problems, "path"):
        free = shutil.disk_usage(site.folder.root).free - SPARE
        if 2 * int(request.headers.get("content-length", 0)) > free:
            raise ParameterError("there is not enough space on the disk for a copy: put the file into the folder")
        async with site.uploading:
            with _temporary_files_in(site.dropped.folder):
                async with request.form(max_files=1, max_fields=2) as form:
                    file = check_form(request, form).get("file")
                    if not isinstance(file, UploadFile) or not file.filename:
                        raise ParameterError("choose a file first")
                    return await run_in_threadpool(_begin_with_copy, request, file)
    return await run_in_threadpool(start_page, request, problems["path"])


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Let temporary files, such as those of uploads, be in a folder of ours."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _begin_with_copy(request: Request, file: UploadFile) -> Response:
    path, handle = site_of(request).dropped.new_file(file.filename or "")
    try:
        with open(handle, "wb") as copy:
            shutil.copyfileobj(file.file, copy)
        return _begin(request, path, path.name)
    except BaseException:
        shutil.rmtree(path.parent)
        raise


def _begin(request: Request, source: Path, name: str) -> Response:
    """Begin with a table; columns that were withheld in an earlier release of it are withheld again."""
    site = site_of(request)
    before = site.latest.get(source)
    known = None if before is None or before.is_changed else before
    begun = Unfinished(source, name, Header.of(source, known.header.dialect if known else Dialect()))
    if before is not None:
        begun.private, begun.left_out = before.private, before.left_out
    if known is not None:
        begun.typed = known.typed_dialect
    site.unfinished[begun.id] = begun
    return go(request, f"{begun.path}/table")


# ---- the table ----------------------------------------------------------------------------------------------


@step_page
def table_page(request: Request, unfinished: Unfinished) -> Response:
    """Show the columns, ask which is private, and then show what was read."""
    work, table = unfinished.reading, unfinished.header.table
    state = work.state if work else "ready"  # once: the thread may end while the page is rendered
    names = [option.name for option in DIALECT if option.name not in ("sheet", "formulas")]
    if table.format not in DELIMITERS:
        names = [*_SHEET_FIELDS] if table.format == "xlsx" else ["na"]
    seen = unfinished.seen if state == "done" else None
    return show(request, "table", unfinished=unfinished, work=work, state=state, seen=seen, fields=names)


@step_form
def table_form(request: Request, unfinished: Unfinished, form: FormData) -> Response:
    """Take how the file is written, or which column is private and which are shared, and read it."""
    site, header = site_of(request), unfinished.header
    with collect_problem(unfinished.problems, "table"):
        if "written" in form:
            unfinished.note_typed(form, [option.name for option in DIALECT])
            typed = {
                option.name: bool(text) if option.type is bool else text or None
                for option in DIALECT
                for text in [unfinished.typed[option.name]]
            }
            header = Header.of(unfinished.source, parse_options(DIALECT, typed)["dialect"])
            label = unfinished.label if unfinished.label in header.table.names else None
        else:
            columns = {str(number): name for number, name in enumerate(unfinished.names)}
            label = columns.get(text_in(form, "label"))
            if label is None:
                raise ParameterError("choose the private column")
            as_label_name(label, "name all columns below, or rename this one in the file")
            unfinished.choose_columns(label, form)
            site.latest[unfinished.source] = unfinished
        unfinished.read(site, header, label)
    return go(request, f"{unfinished.path}/table")
