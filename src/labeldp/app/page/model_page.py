"""A private model: a form to try predictions in, and predictions for whole tables; they cost nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp.accounts.numbers import number
from labeldp.app.inputs import tally_notes
from labeldp.app.model_predictions import FilePredictions, predict_file
from labeldp.app.option import split_names
from labeldp.app.page.budget_step import stem_of
from labeldp.app.page.messages import collect_problem
from labeldp.app.page.site import go, show, site_of, text_in
from labeldp.app.page.typed_numbers import parse_number
from labeldp.app.page.unfinished import Unfinished, refuse_changed, stamp_of
from labeldp.app.page.work import Work
from labeldp.errors import ParameterError
from labeldp.learning.models import SavedModel, load_model
from labeldp.tables.arrow import arrow
from labeldp.tables.encodings import Categories, Tally
from labeldp.tables.overview import table_header
from labeldp.tables.paths import EXTENSIONS, format_in

MOST_CATEGORIES = 100


@dataclass(frozen=True)
class NewTable:
    """A table with predictions, and its name in the folder."""

    name: str
    done: FilePredictions


def model_page(
    request: Request, name: str = "", typed: Mapping[str, str] | None = None, problem: str = ""
) -> Response:
    """Show a model, a form for one row with its prediction, and how far predictions for a table are."""
    site, name = site_of(request), name or request.query_params.get("name", "")
    model = load_model(site.folder.source(name))
    answer, problems, notes = "", {"table": problem} if problem else {}, list[str]()
    fields = _fields(model)
    if typed is not None:
        with collect_problem(problems, "row"):
            tally: Tally = Counter()
            answer, notes = _predict(model, fields, typed, tally), tally_notes(tally)
    work = site.works.get(request.query_params.get("work", ""))
    return show(
        request,
        "model",
        status=400 if problems else 200,
        name=name,
        model=model,
        fields=fields,
        typed=typed or {},
        answer=answer,
        notes=[*notes, *problems.values()],
        tables=site.folder.tables(),
        work=work,
        state=work.state if work else "",  # once: the thread may end while the page is rendered
    )


def predict_form(request: Request, form: FormData) -> Response:
    """Predict for one row; nothing changes, so the answer is the page itself."""
    typed = {key: text_in(form, key) for key in form}
    return model_page(request, typed.get("name", ""), typed)


def table_form(request: Request, form: FormData) -> Response:
    """Predict for a whole table of the folder, in a thread; the new file has a name that nothing has yet."""
    site, problems = site_of(request), dict[str, str]()
    name, table, keep = text_in(form, "name"), text_in(form, "table"), split_names(text_in(form, "keep"))
    with collect_problem(problems, "table"):
        model, source = site.folder.source(name), site.folder.source(table)
        stamps = {path: stamp_of(path) for path in (model, source)}
        ending = EXTENSIONS.get(format_in(source.name) or "", "csv")
        before = site.latest.get(source)  # how the file is written may be known
        out = site.folder.target(site.folder.free_name(f"{stem_of(table)}.predicted", f".{ending}"))

        def task(work: Work) -> NewTable:
            dialect = None if before is None or before.is_changed else before.header.dialect
            header = table_header(source, dialect=dialect)
            drop = [] if before is None else _withheld(before, load_model(model), header.names)
            done = predict_file(model, source, out, keep=keep, drop=drop, dialect=dialect, progress=work.progress)
            return NewTable(site.folder.name(out), done)

        def watch() -> None:
            site.folder.refuse_elsewhere(model, source)  # each time: it may be a link by now
            for path, stamp in stamps.items():
                refuse_changed(path, stamp)

        page = f"/model?name={quote(name)}"
        work = site.start(task, page, watch=watch)
        work.page = f"{page}&work={work.id}"
        return go(request, work.page)
    return model_page(request, name, problem=problems["table"])


def _withheld(before: Unfinished, model: SavedModel, names: tuple[str, ...]) -> list[str]:
    """Return the columns of a table that are not shared, and refuse a model that needs the private one."""
    if before.private in model.encoder.names:
        raise ParameterError(
            f"the model needs the column {before.private!r}, which you chose as private: predictions reveal it"
        )
    return [name for name in names if name in (*before.left_out, before.private)]


# ---- one row ------------------------------------------------------------------------------------------------


def _fields(model: SavedModel) -> list[dict[str, Any]]:
    """Return the fields of the form, one for each column that the model needs."""
    return [
        {
            "id": f"c{place}",
            "name": column.name,
            "kind": column.kind,
            "values": column.values[:MOST_CATEGORIES] if isinstance(column, Categories) else (),
        }
        for place, column in enumerate(model.encoder.columns)
    ]


def _predict(model: SavedModel, fields: list[dict[str, Any]], typed: Mapping[str, str], tally: Tally) -> str:
    pa = arrow()
    columns = {field["name"]: _array(pa, field, typed.get(field["id"], "")) for field in fields}
    return number(float(model.predict(pa.table(columns), tally)[0]), 5)


def _array(pa: Any, field: dict[str, Any], text: str) -> Any:
    """Return what was typed as a column of one row; nothing is a missing value."""
    kinds: dict[str, tuple[Any, Any]] = {
        "number": (pa.float64(), lambda text: parse_number(text, "the number")),
        "boolean": (pa.bool_(), {"yes": True, "no": False}.__getitem__),
        "date": (pa.date32(), date.fromisoformat),
        "time": (pa.time64("us"), lambda text: pa.scalar(text).cast(pa.time64("us"))),
        "category": (pa.string(), str),
    }
    kind, parse = kinds[field["kind"]]
    try:
        return pa.array([parse(text) if text else None], kind)
    except (ValueError, KeyError, pa.ArrowException):
        how = ", with nothing between thousands" if field["kind"] == "number" else ""
        raise ParameterError(f"{field['name']!r} must be a {field['kind']}{how}, or empty") from None
