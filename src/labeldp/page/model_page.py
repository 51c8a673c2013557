"""A private model, a form to try predictions in, and predictions for whole tables: they cost nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from labeldp.errors import ParameterError
from labeldp.files.models import SavedModel, load_model
from labeldp.files.opening import TableHeader
from labeldp.files.overview import table_header
from labeldp.files.places import EXTENSIONS, format_in
from labeldp.jobs.inputs import tally_notes
from labeldp.jobs.model_predictions import FilePredictions, predict_file
from labeldp.jobs.sentences import EXPLAINED
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.drafts import Draft, refuse_changed, stamp_of
from labeldp.page.site import explained_page, go, progress_of, site_of, started
from labeldp.page.steps import split_names, stem_of
from labeldp.page.typed_numbers import read_number
from labeldp.page.words import explain_in_page
from labeldp.page.work import Work
from labeldp.release.numbers import number
from labeldp.tabular import Tally
from labeldp.tabular.arrow import arrow
from labeldp.tabular.encodings import Categories

MOST_WORDS = 100
FORGOTTEN = "These predictions were asked for too long ago: look for the table in the folder."


def _fields(model: SavedModel) -> list[dict[str, Any]]:
    """Return the fields of the form, one for each column that the model needs."""
    fields: list[dict[str, Any]] = []
    for place, column in enumerate(model.encoder.columns):
        words = list(column.values[:MOST_WORDS]) if isinstance(column, Categories) else []
        fields.append({"id": f"c{place}", "name": column.name, "kind": column.kind, "words": words})
    return fields


def _model(folder: ChosenFolder, name: str) -> SavedModel:
    return load_model(folder.source(name))


@dataclass(frozen=True)
class NewTable:
    """A table with predictions, and its name in the folder."""

    name: str
    done: FilePredictions


@explained_page
async def model_page(request: Request) -> Response:
    """Show a model, an empty form, and how far predictions for a table are."""
    return await _model_page(request, request.query_params.get("name", ""))


async def _model_page(
    request: Request, name: str, entered: Mapping[str, str] | None = None, sentence: str = ""
) -> Response:
    site, answer, notes = site_of(request), "", [sentence] if sentence else []
    model, tables = await run_in_threadpool(lambda: (_model(site.folder, name), site.folder.tables()))
    fields, tally = _fields(model), Counter[tuple[str, str]]()
    if entered is not None and not sentence:
        try:
            answer = await run_in_threadpool(_predict, model, fields, entered, tally)
            notes = tally_notes(tally)
        except EXPLAINED as error:
            notes = [explain_in_page(error)]
    work_id = request.query_params.get("work", "")
    work = site.drafts.work(work_id)
    notes += [FORGOTTEN] if work_id and work is None else []
    return site.page(
        "model",
        status=400 if notes and not answer else 200,
        name=name,
        model=model,
        fields=fields,
        entered=entered or {},
        answer=answer,
        notes=notes,
        tables=tables,
        work=work,
        work_id=work_id,
        state=work.state if work else "",  # once: the thread may end while the page is put together
    )


@explained_page
async def predict_form(request: Request) -> Response:
    """Predict for one row; nothing changes, so the answer is the page itself."""
    form = {key: str(value) for key, value in (await site_of(request).form(request)).items()}
    return await _model_page(request, form.get("name", ""), form)


@explained_page
async def table_form(request: Request) -> Response:
    """Predict for a whole table of the folder, in a thread; what is written has a name that nothing has yet."""
    site = site_of(request)
    form = await site.form(request)
    name, table = (str(form.get(field, "")) for field in ("name", "table"))
    keep = split_names(form.get("keep"))
    try:
        model, source = site.folder.source(name), site.folder.source(table)
        stamps = {path: await run_in_threadpool(stamp_of, path) for path in (model, source)}
        ending = EXTENSIONS.get(format_in(source.name) or "", "csv")
        like = site.drafts.like(source)  # how it is written may have been said already
        out = site.folder.target(site.folder.free_name(f"{stem_of(table)}.predicted", f".{ending}"))
    except EXPLAINED as error:
        return await _model_page(request, name, sentence=explain_in_page(error))

    def task(work: Work) -> NewTable:
        dialect = None if like is None or like.is_changed else like.dialect
        stays = () if like is None else _staying(like, load_model(model), table_header(source, dialect=dialect))
        done = predict_file(model, source, out, keep=keep, drop=stays, dialect=dialect, progress=work.progress)
        return NewTable(site.folder.name(out), done)

    def watch() -> None:
        site.folder.refuse_elsewhere(model, source)  # each time: it may be a link by now
        for path, stamp in stamps.items():
            refuse_changed(path, stamp)

    work = Work(task, watch=watch)
    work_id = site.drafts.keep(work)
    await started(work)
    return go(_address(name, work_id))


def _staying(draft: Draft, model: SavedModel, header: TableHeader) -> list[str]:
    """Return the columns of a table that are not to leave, and refuse a model that needs the private one."""
    if draft.private in model.encoder.names:
        raise ParameterError(
            f"the model needs the column {draft.private!r}, which you said is private: predictions would reveal it"
        )
    return [name for name in header.names if name in (*draft.stays, draft.private)]


def _work_of(request: Request) -> Work | None:
    return site_of(request).drafts.work(request.path_params["work"])


async def progress_data(request: Request) -> Response:
    """Return how far predictions for a table are, for the bar."""
    return progress_of(_work_of(request))


@explained_page
async def stop_form(request: Request) -> Response:
    """Stop predictions for a table."""
    form = await site_of(request).form(request)
    work = _work_of(request)
    if work is not None:
        work.stop()
        await started(work)
    return go(_address(str(form.get("what", "")), request.path_params["work"]))


def _address(name: str, work: str) -> str:
    return f"/model?name={quote(name)}&work={quote(work)}"


def _predict(model: SavedModel, fields: list[dict[str, Any]], form: Mapping[str, str], tally: Tally) -> str:
    pa = arrow()
    columns = {field["name"]: _array(pa, field, form.get(field["id"], "").strip()) for field in fields}
    return number(float(model.predict(pa.table(columns), tally)[0]), 5)


def _array(pa: Any, field: dict[str, Any], text: str) -> Any:
    """Return what was typed as a column of one row; nothing is a missing value."""
    kinds: dict[str, tuple[Any, Any]] = {
        "number": (pa.float64(), _number),
        "boolean": (pa.bool_(), lambda word: {"yes": True, "no": False}[word]),
        "date": (pa.date32(), date.fromisoformat),
        "time": (pa.time64("us"), None),
        "category": (pa.string(), str),
    }
    kind, parse = kinds[field["kind"]]
    if not text:
        return pa.array([None], kind)
    try:
        return pa.array([text]).cast(kind) if parse is None else pa.array([parse(text)], kind)
    except (ValueError, KeyError, pa.ArrowException):
        how = ", with nothing between thousands" if field["kind"] == "number" else ""
        raise ParameterError(f"{field['name']!r} must be a {field['kind']}{how}, or empty") from None


def _number(text: str) -> float:
    """Return a number with either decimal mark."""
    found = read_number(text)
    if len(found) != 1:
        raise ValueError
    return found[0]
