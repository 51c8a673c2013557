"""A private model, and a form to try predictions in: they cost nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from labeldp.errors import ParameterError
from labeldp.files.models import SavedModel, load_model
from labeldp.jobs.inputs import tally_notes
from labeldp.jobs.sentences import EXPLAINED
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.site import explained_page, site_of
from labeldp.page.typed_numbers import read_number
from labeldp.page.words import explain_in_page
from labeldp.release.numbers import number
from labeldp.tabular import Tally
from labeldp.tabular.arrow import arrow
from labeldp.tabular.encodings import Categories

__all__ = ["model_page", "predict_form"]

MOST_WORDS = 100


def _fields(model: SavedModel) -> list[dict[str, Any]]:
    """Return the fields of the form, one for each column that the model needs."""
    fields: list[dict[str, Any]] = []
    for place, column in enumerate(model.encoder.columns):
        words = list(column.values[:MOST_WORDS]) if isinstance(column, Categories) else []
        fields.append({"id": f"c{place}", "name": column.name, "kind": column.kind, "words": words})
    return fields


def _model(folder: ChosenFolder, name: str) -> SavedModel:
    return load_model(folder.source(name))


@explained_page
async def model_page(request: Request) -> Response:
    """Show a model and an empty form."""
    site, name = site_of(request), request.query_params.get("name", "")
    model = await run_in_threadpool(_model, site.folder, name)
    return site.page("model", name=name, model=model, fields=_fields(model), entered={}, answer="", notes=[])


@explained_page
async def predict_form(request: Request) -> Response:
    """Predict for one row; nothing changes, so the answer is the page itself."""
    site = site_of(request)
    form = {key: str(value) for key, value in (await site.form(request)).items()}
    name = form.get("name", "")
    model = await run_in_threadpool(_model, site.folder, name)
    fields, tally = _fields(model), Counter[tuple[str, str]]()
    try:
        answer = await run_in_threadpool(_predict, model, fields, form, tally)
        notes, status = tally_notes(tally), 200
    except EXPLAINED as error:
        answer, notes, status = "", [explain_in_page(error)], 400
    return site.page(
        "model", status=status, name=name, model=model, fields=fields, entered=form, answer=answer, notes=notes
    )


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
