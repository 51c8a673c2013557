"""The way out of the page: one archive of a release, the folder, and predictions of a model."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import typer
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from labeldp.app.card_files import read_card_file
from labeldp.app.handover import pack_release
from labeldp.app.model_predictions import predict_file
from labeldp.app.page.forms import collect_problem
from labeldp.app.page.picture import first_rows
from labeldp.app.page.site import go, show, site_of
from labeldp.app.page.table_step import new_release
from labeldp.errors import DataError, ParameterError
from labeldp.learning.models import load_model
from labeldp.tables.opening import open_table
from labeldp.tables.tables import Table


def archive_page(request: Request) -> Response:
    """Return the files of a release in one archive, verified first."""
    folder = site_of(request).folder
    card = folder.card(request.query_params.get("card", ""))
    stem = card.parent.name if card.name == "card.json" else card.name.removesuffix(".card.json")
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(stem)}.zip"}
    data = pack_release(card, read_card_file(card)[1])
    return Response(data, media_type="application/zip", headers=headers)


def folder_form(request: Request, form: FormData) -> Response:
    """Open the folder in the file manager of this machine; the page stays as it is."""
    typer.launch(str(site_of(request).folder.root))
    return Response(status_code=204)


def _has_total(table: Table) -> bool:
    """Test whether the last row of a table looks like a total, which is no row to predict."""
    rows = sum(batch.num_rows for batch in table.as_text().batches())
    try:
        table.refuse_total(rows - 1)
    except DataError:
        return True
    return False


def predict_form(request: Request, form: FormData) -> Response:
    """Write predictions of a model for a table of the folder, and show the first ones."""
    folder = site_of(request).folder
    card = folder.card(str(form.get("card", "")))
    if card.name != "card.json":
        raise ParameterError("only a model predicts")
    problems = site_of(request).problems
    with collect_problem(problems, "request"):
        source = folder.source(str(form.get("path", "")))
        out = folder.root / folder.free_name(f"{source.name.partition('.')[0]}.predictions", ".csv")
        dialect = new_release(source).dialect
        columns = set(load_model(card.parent).encoder.names)
        table = open_table(source, only=columns, dialect=dialect)
        if columns.issubset(table.schema.names) and _has_total(table):
            dialect = replace(dialect, skip_last=1)
        result = predict_file(card.parent, source, out, dialect=dialect)
        rows = first_rows(open_table(out, as_written=True))
        return show(request, "predictions", name=folder.name(out), result=result, rows=rows)
    return go(request, f"/card?name={quote(folder.name(card))}")
