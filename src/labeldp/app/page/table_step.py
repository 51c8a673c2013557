"""The first two steps: choose a table and its private column, check what was read, and set bounds."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from labeldp._atomic import atomic_file
from labeldp.app.options import DIALECT
from labeldp.app.page.forms import collect_problem, parse_fields
from labeldp.app.page.site import go, show, site_of
from labeldp.app.page.unfinished import Unfinished, step, typed_texts
from labeldp.app.sentences import counted
from labeldp.errors import LabelDPError, ParameterError
from labeldp.release.names import as_label_name
from labeldp.tables.dialect import Dialect
from labeldp.tables.overview import count_titles
from labeldp.tables.paths import DELIMITERS

LIKELY_ENCODING = "cp1252"
"""Of text that is not UTF-8."""

_SHEET_FIELDS = ("na", "header", "skip", "skip_last")
_COLUMN_FIELDS = ("bounds", "rows_per_person", "missing", "shuffle")


# ---- the start ----------------------------------------------------------------------------------------------


def start_page(request: Request, problem: str = "", path: str = "") -> Response:
    """Show the tables of the folder, and how to bring another."""
    folder = site_of(request).folder
    tables, cards = folder.tables(), set(folder.cards())
    private = [name for name in tables if f"{name}.card.json" in cards]
    others = [name for name in tables if name not in private]
    problems = {"path": problem} if problem else {}
    status = 400 if problem else 200
    return show(request, "start", status=status, tables=others, private=private, problems=problems, path=path)


def open_form(request: Request, form: FormData) -> Response:
    """Begin with a file or a folder that is there."""
    path, problems = str(form.get("path", "")).strip(" "), dict[str, str]()
    with collect_problem(problems, "path"):
        return _begin(request, site_of(request).folder.source(path))
    return start_page(request, problems["path"], path)


def upload_form(request: Request, form: FormData) -> Response:
    """Begin with a copy of a file in the folder that only its owner can read; what is no table is not kept."""
    file, problems = form.get("file"), dict[str, str]()
    with collect_problem(problems, "path"):
        if not isinstance(file, UploadFile) or not file.filename:
            raise ParameterError("choose a file first")
        path = site_of(request).folder.new_table(file.filename)
        with atomic_file(path, replace=False) as part, part.open("wb") as copy:
            shutil.copyfileobj(file.file, copy)
        try:
            return _begin(request, path)
        except BaseException:
            path.unlink()
            raise
    return start_page(request, problems["path"])


def _begin(request: Request, source: Path) -> Response:
    begun = _without_titles(source)
    begun.typed = begun.written = {"skip": [str(begun.dialect.skip)], "encoding": [begun.dialect.encoding or ""]}
    begun.begin(site_of(request))
    return go(request, f"{begun.path}/table")


def _without_titles(source: Path, encoding: str | None = None) -> Unfinished:
    """Return a table without the lines that seem to be titles; the page shows which names that gives.

    Lines that are not UTF-8 are read in the encoding that is most likely then.
    """
    try:
        dialect = Dialect(encoding=encoding)
        return Unfinished(source, replace(dialect, skip=count_titles(source, dialect)))
    except LabelDPError as error:
        if error.option != "encoding" or encoding is not None:
            raise
    return _without_titles(source, LIKELY_ENCODING)


# ---- the table ----------------------------------------------------------------------------------------------


@step
def table_step(request: Request, unfinished: Unfinished, form: FormData | None) -> Response:
    """Show the columns, ask which is private, and then show what was read and what reveals private values."""
    problems = dict[str, str]()
    if form is not None:
        with collect_problem(problems, "table"):
            return _read_again(request, unfinished, form)
    work, header = unfinished.reading, unfinished.header
    state = work.state if work else "ready"  # once: the thread may end while the page is rendered
    if state == "done" and unfinished.is_chosen:  # whatever the hints are: they are on the page of the request too
        unfinished.is_chosen = False
        return go(request, f"{unfinished.path}/column")
    fields = [name for name in DIALECT if name != "sheet"]
    if header.format not in DELIMITERS:
        fields = [*_SHEET_FIELDS] if header.format == "xlsx" else ["na"]
    seen = unfinished.seen if state == "done" else None
    return show(
        request,
        "table",
        unfinished=unfinished,
        problems=problems,
        work=work,
        state=state,
        seen=seen,
        hints=unfinished.hints if seen else {},
        notes=unfinished.notes if seen else {},
        fields=fields,
        likely=LIKELY_ENCODING,
    )


def _read_again(request: Request, unfinished: Unfinished, form: FormData) -> Response:
    """Take how the file is written, and which column is private and which are shared, and read it anew."""
    before = {name: unfinished.written.get(name, [""]) for name in DIALECT}
    written = {name: typed_texts(form, name) for name in DIALECT} if "written" in form else before
    label, left_out, seen = unfinished.label, unfinished.left_out, unfinished.seen
    if "label" in form or "written" not in form:
        label, left_out = _columns(unfinished, form)
    dialect = unfinished.dialect
    if written != before:
        unfinished.keep_typed(form, DIALECT)
        dialect = _dialect(unfinished, form)
        written["skip"] = [str(dialect.skip)]
    elif seen is not None and label == unfinished.label:
        # as the page said: a column that showed them may be left out
        dialect = dialect.with_detected(decimal=seen.dialect.decimal, thousands=seen.dialect.thousands)
    typed = (unfinished.typed if label == unfinished.label else {}) | written
    begun = Unfinished(unfinished.source, dialect, label, left_out, written, typed)
    if "continue" in form and written == before and label == unfinished.label:
        if seen is not None and begun.drop == unfinished.drop:
            return go(request, f"{unfinished.path}/column")
        begun.is_chosen = True
    if unfinished.reading is not None:
        unfinished.reading.stop()
    begun.begin(site_of(request))
    return go(request, f"{begun.path}/table")


def _columns(unfinished: Unfinished, form: FormData) -> tuple[str, frozenset[str]]:
    """Return the private column and those left out; forms send them by number, because they change line breaks.

    Of columns that this header lacks, what was chosen for them before holds.
    """
    names, shared = unfinished.header.names, form.getlist("shared")
    columns = {str(number): name for number, name in enumerate(names)}
    label = columns.get(str(form.get("label")))
    if label is None:
        raise ParameterError("choose the private column")
    as_label_name(label, "rename this column in the file")
    unticked = {name for number, name in columns.items() if number not in shared and name != label}
    return label, unfinished.left_out.difference(names) | unticked


def _dialect(unfinished: Unfinished, form: FormData) -> Dialect:
    """Return how the file is written, by a form; titles of another sheet are counted anew."""
    problems = dict[str, str]()
    options = parse_fields(DIALECT, form, problems)
    if problems:
        raise ParameterError("; ".join(problems.values()))
    dialect, before = Dialect(**options), unfinished.dialect
    if dialect.sheet != before.sheet and dialect.skip == before.skip:
        return replace(dialect, skip=count_titles(unfinished.source, dialect))
    return dialect


# ---- the private column -------------------------------------------------------------------------------------


@step
def column_step(request: Request, unfinished: Unfinished, form: FormData | None) -> Response:
    """Ask for bounds, and how rows belong to people."""
    seen, problems = unfinished.seen, dict[str, str]()
    if seen is None:
        return go(request, f"{unfinished.path}/table")
    if form is not None:
        unfinished.request = None
        unfinished.keep_typed(form, _COLUMN_FIELDS)
        options = parse_fields(_COLUMN_FIELDS, form, problems, seen.dialect.decimal or ".,")
        if seen.missing and options.get("missing") == "error":
            problems["missing"] = (
                f"leave out {counted(seen.missing, 'row')} without a value in the private column, or fill them in "
                "and open the table again"
            )
        unfinished.options = None if problems else options
        if not problems:
            return go(request, f"{unfinished.path}/budget")
    return show(request, "column", unfinished=unfinished, problems=problems, seen=seen)
