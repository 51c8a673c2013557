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
from labeldp.app.page.unfinished import TableFile, Unfinished, step
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
        return _begin(request, path)
    return start_page(request, problems["path"], path)


def upload_form(request: Request, form: FormData) -> Response:
    """Begin with a file from elsewhere, which becomes one of the folder."""
    file, problems = form.get("file"), dict[str, str]()
    with collect_problem(problems, "path"):
        if not isinstance(file, UploadFile) or not file.filename:
            raise ParameterError("choose a file first")
        return _begin_with_copy(request, file, file.filename)
    return start_page(request, problems["path"])


def _begin_with_copy(request: Request, file: UploadFile, name: str) -> Response:
    """Begin with a copy in the folder that only its owner can read; what is no table is not kept."""
    folder = site_of(request).folder
    path = folder.new_table(name)
    with atomic_file(path, replace=False) as part, part.open("wb") as copy:
        shutil.copyfileobj(file.file, copy)
    try:
        return _begin(request, folder.name(path))
    except BaseException:
        path.unlink()
        raise


def _begin(request: Request, path: str) -> Response:
    """Begin with a table; what was chosen when it was read last is so by default."""
    site = site_of(request)
    source = site.folder.source(path)
    begun = Unfinished(_without_titles(source))
    dialect = begun.table.dialect
    begun.typed = {"skip": [str(dialect.skip)], "encoding": [dialect.encoding or ""]}
    for before in list(site.unfinished.values()):
        if before.table.source == source and before.label is not None:
            begun.label, begun.left_out = before.label, before.left_out
            if before.seen and before.table.stamp == begun.table.stamp:
                begun.table = before.table
                begun.typed = {name: before.typed[name] for name in DIALECT if name in before.typed}
    site.unfinished[begun.id] = begun
    return go(request, f"{begun.path}/table")


def _without_titles(source: Path, encoding: str | None = None) -> TableFile:
    """Return a table without the lines that seem to be titles; the page shows which names that gives.

    Lines that are not UTF-8 are read in the encoding that is most likely then.
    """
    try:
        dialect = Dialect(encoding=encoding)
        return TableFile.open(source, replace(dialect, skip=count_titles(source, dialect)))
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
    work, header = unfinished.reading, unfinished.table.header
    state = work.state if work else "ready"  # once: the thread may end while the page is rendered
    if state == "done" and unfinished.is_chosen:  # whatever the hints are: they are on the page of the request too
        unfinished.is_chosen = False
        return go(request, f"{unfinished.path}/column")
    names = [name for name in DIALECT if name != "sheet"]
    if header.format not in DELIMITERS:
        names = [*_SHEET_FIELDS] if header.format == "xlsx" else ["na"]
    seen = unfinished.seen if state == "done" else None
    return show(
        request,
        "table",
        unfinished=unfinished,
        problems=problems,
        header=header,
        work=work,
        state=state,
        seen=seen,
        hints=unfinished.hints if seen else {},
        fields=names,
        likely=LIKELY_ENCODING,
        notes=unfinished.notes if seen else {},
    )


def _read_again(request: Request, unfinished: Unfinished, form: FormData) -> Response:
    """Take how the file is written, or which column is private and which are shared, and read it anew."""
    begun = unfinished
    if "label" in form or "written" not in form:
        begun = _with_columns(begun, form)
    if "written" in form:
        begun = _reread(unfinished, begun, form)
    is_same = begun.table.header is unfinished.table.header and begun.label == unfinished.label
    if "continue" in form and is_same:
        begun.is_chosen = True
        if unfinished.seen and begun.drop == unfinished.drop:
            return go(request, f"{unfinished.path}/column")
    if unfinished.reading is not None:
        unfinished.reading.stop()
    begun.begin(site_of(request))
    return go(request, f"{begun.path}/table")


def _reread(unfinished: Unfinished, begun: Unfinished, form: FormData) -> Unfinished:
    """Return the choices that are begun with, for the table as it is read with the dialect of the form."""
    table, typed = begun.table, begun.typed
    for each in (unfinished, begun):
        each.keep_typed(form, DIALECT)
    problems = dict[str, str]()
    options = parse_fields(DIALECT, form, problems)
    if problems:
        raise ParameterError("; ".join(problems.values()))
    dialect, before = Dialect(**options), table.dialect
    if dialect.sheet != before.sheet and dialect.skip == before.skip:
        dialect = replace(dialect, skip=count_titles(table.source, dialect))
        begun.typed["skip"] = [str(dialect.skip)]
    is_typed = all(begun.typed[name] == typed.get(name, [""]) for name in DIALECT)
    marks = {name: getattr(dialect, name) or getattr(before, name) for name in ("decimal", "thousands")}
    if not is_typed or dialect.found(**marks) != before:
        table = TableFile.open(table.source, dialect)
    return Unfinished(table, begun.label, begun.left_out, begun.typed)


def _with_columns(unfinished: Unfinished, form: FormData) -> Unfinished:
    """Return the same table with other columns; forms send them by number, because they change line breaks.

    Of columns that this header lacks, what was chosen for them before holds.
    """
    names, shared = unfinished.table.header.names, set(form.getlist("shared"))
    columns = {str(number): name for number, name in enumerate(names)}
    label = columns.get(str(form.get("label")))
    if label is None:
        raise ParameterError("choose the private column")
    as_label_name(label, "rename this column in the file")
    unticked = [name for number, name in columns.items() if number not in shared and name != label]
    others = [name for name in unfinished.left_out if name not in names]
    typed = {
        name: texts for name, texts in unfinished.typed.items() if name in DIALECT or label == unfinished.label
    }
    table, seen = unfinished.table, unfinished.seen
    if seen is not None and label == unfinished.label:  # as the page said: a column that showed it may be left out
        marks = table.dialect.found(decimal=seen.dialect.decimal, thousands=seen.dialect.thousands)
        table = replace(table, dialect=marks)
    return Unfinished(table, label, (*unticked, *others), typed)


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
