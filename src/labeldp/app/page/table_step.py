"""The first two steps: choose a table and its private column, check them, and set bounds."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from labeldp._atomic import atomic_file
from labeldp._values import Data, parse_integer
from labeldp.accounts.cells import as_csv
from labeldp.app.page.forms import Problems, collect_problem, parse_fields
from labeldp.app.page.site import Site, go, show, site_of
from labeldp.app.page.unfinished import Unfinished, typed_texts
from labeldp.app.sentences import counted
from labeldp.errors import LabelDPError, ParameterError
from labeldp.evidence.survey import make_survey
from labeldp.release.names import as_label_name
from labeldp.tables.dialect import Dialect
from labeldp.tables.overview import count_titles

SAMPLE_ROWS = 5000
"""Rows of the table to try the page with."""

DIALECT = Dialect.__slots__
"""Options of how a table is written."""

LIKELY_ENCODING = "cp1252"
"""The encoding that is tried for text that is not UTF-8."""

_TEXT_FIELDS = tuple(name for name in DIALECT if name != "sheet")
_FIELDS = {"xlsx": ("na", "decimal", "thousands", "header", "skip", "skip_last"), "parquet": ("na",)}
"""Fields for the way a table is written, by its format."""

_COLUMN_FIELDS = ("bounds", "rows_per_person", "missing", "shuffle")


# ---- the start ----------------------------------------------------------------------------------------------


def start_page(request: Request) -> Response:
    """Show the tables of the folder, how to bring another, and once the problems of the last form."""
    site = site_of(request)
    problems, site.problems = site.problems, {}
    names, released = site.folder.tables(), site.folder.released_tables()
    return show(request, "start", names=names, released=released, problems=problems)


def open_form(request: Request, form: FormData) -> Response:
    """Begin with a file that is there."""
    return _begin(request, site_of(request).folder.source(str(form.get("path", "")).strip(" ")))


def upload_form(request: Request, form: FormData) -> Response:
    """Begin with a copy of a file in the folder, for its owner alone; a file that is no table is not kept."""
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise ParameterError("choose a file first")
    path = site_of(request).folder.new_table(file.filename)
    with atomic_file(path, replace=False) as copy_path, copy_path.open("wb") as copy:
        shutil.copyfileobj(file.file, copy)
    try:
        return _begin(request, path)
    except BaseException:
        path.unlink()
        raise


def sample_form(request: Request, form: FormData) -> Response:
    """Begin with a synthetic survey, which is written to the folder: nobody's values are in it."""
    folder, survey = site_of(request).folder, make_survey(SAMPLE_ROWS)
    path = folder.root / folder.free_name("sample-survey", ".csv")
    lines = [[*survey.feature_names, "income"], *np.column_stack([survey.features, survey.income]).astype(int)]
    with atomic_file(path, replace=False) as file:
        file.write_text(as_csv(lines), encoding="utf-8", newline="\n")
    return _begin(request, path)


def _begin(request: Request, source: Path) -> Response:
    begun = new_release(source)
    begun.left_out = site_of(request).folder.private_columns()
    begun.begin(site_of(request))
    return go(request, begun.at("table"))


def new_release(source: Path) -> Unfinished:
    """Return the beginning of a release: a table of which no more than the header is read."""
    begun = _without_titles(source)
    begun.typed = begun.written = {"skip": [str(begun.dialect.skip)], "encoding": [begun.dialect.encoding or ""]}
    return begun


def _without_titles(source: Path) -> Unfinished:
    """Return a table without the lines that seem to be titles; the page shows which names that gives.

    Lines that are not UTF-8 are read in the encoding that is most likely then.
    """
    dialect = Dialect()
    try:
        return Unfinished(source, replace(dialect, skip=count_titles(source, dialect)))
    except LabelDPError as error:
        if error.option != "encoding":
            raise
    dialect = Dialect(encoding=LIKELY_ENCODING)
    return Unfinished(source, replace(dialect, skip=count_titles(source, dialect)))


# ---- the table ----------------------------------------------------------------------------------------------


def table_values(site: Site, unfinished: Unfinished) -> Data | str:
    """Return the columns, and, once a private one is chosen, an overview of the table and hints."""
    work = unfinished.reading
    state = work.state if work else "ready"  # once: the thread may end while the page is rendered
    if state == "done" and unfinished.is_chosen:  # whatever the hints are: they are on the page of the request too
        unfinished.is_chosen = False
        return unfinished.at("column")
    fields = _FIELDS.get(unfinished.header.format, _TEXT_FIELDS)
    overview = unfinished.overview if state == "done" else None
    return {"work": work, "state": state, "seen": overview, "fields": fields, "likely": LIKELY_ENCODING}


def take_table(site: Site, unfinished: Unfinished, form: FormData, problems: Problems) -> str:
    """Take how the file is written, and which column is private and which are shared, and read it anew."""
    begun = unfinished
    with collect_problem(problems, "table"):
        begun = _chosen_again(unfinished, form)
    if begun is not unfinished:
        if unfinished.reading is not None:
            unfinished.reading.stop()
        begun.begin(site)
    elif not problems:
        return unfinished.at("column")
    return begun.at("table")


def _chosen_again(unfinished: Unfinished, form: FormData) -> Unfinished:
    """Return a new unfinished release by a form, or the same if it goes on with the table as it was read."""
    before = {name: unfinished.written.get(name, [""]) for name in DIALECT}
    written = {name: typed_texts(form, name) for name in DIALECT} if "written" in form else before
    label, left_out, overview = unfinished.label, unfinished.left_out, unfinished.overview
    if "label" in form or "written" not in form:
        label, left_out = _columns(unfinished, form)
    dialect, is_same = unfinished.dialect, label == unfinished.label
    if written != before:
        unfinished.keep_typed(form, DIALECT)
        dialect = _dialect(unfinished, form)
        written["skip"] = [str(dialect.skip)]
    elif overview is not None and is_same:
        # as the page said: a column that showed them may be left out
        dialect = dialect.with_detected(decimal=overview.dialect.decimal, thousands=overview.dialect.thousands)
    typed = (unfinished.typed if is_same else {}) | written
    begun = Unfinished(unfinished.source, dialect, label, left_out, written, typed, earlier=unfinished.earlier)
    begun.leave_out_new(unfinished.header.names)
    begun.is_chosen = "continue" in form and written == before and is_same
    return unfinished if begun.is_chosen and overview is not None and begun.drop == unfinished.drop else begun


def _columns(unfinished: Unfinished, form: FormData) -> tuple[str, frozenset[str]]:
    """Return the private column and those left out; forms send them by number, because they change line breaks.

    Earlier choices hold for columns that this header lacks.
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
    problems = Problems()
    options = parse_fields(DIALECT, form, problems)
    if problems:
        raise ParameterError("; ".join(problems.values()))
    dialect, before = Dialect(**options), unfinished.dialect
    if dialect.sheet != before.sheet and dialect.skip == before.skip:
        return replace(dialect, skip=count_titles(unfinished.source, dialect))
    return dialect


# ---- the private column -------------------------------------------------------------------------------------


def column_values(site: Site, unfinished: Unfinished) -> Data | str:
    """Return the values of the page of bounds, once the table is read."""
    return unfinished.at("table") if unfinished.overview is None else {"seen": unfinished.overview}


def take_column(site: Site, unfinished: Unfinished, form: FormData, problems: Problems) -> str:
    """Take bounds, and how rows belong to people."""
    overview = unfinished.overview
    if overview is None:
        return unfinished.at("table")
    unfinished.request = None
    unfinished.keep_typed(form, _COLUMN_FIELDS)
    options = parse_fields(_COLUMN_FIELDS, form, problems, overview.dialect.decimal or ".,")
    with collect_problem(problems, "rows_per_person"):
        parse_integer(options.get("rows_per_person", 1), "rows_per_person")
    if overview.missing and options.get("missing") == "error":
        problems["missing"] = (
            f"Leave out {counted(overview.missing, 'row')} without a value in the private column, or fill them in "
            "and open the table again"
        )
    unfinished.options = None if problems else options
    return unfinished.at("column" if problems else "budget")
