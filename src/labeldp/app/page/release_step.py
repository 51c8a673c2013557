"""The last step: one button, its progress, and the result."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from labeldp.accounts.ledger import Ledger, note_other_ledgers
from labeldp.accounts.numbers import odds_figures
from labeldp.accounts.reading import read_any_card
from labeldp.app.model_fit import fit_file, no_score
from labeldp.app.page.budget_step import preview_of, score_of
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.forms import explain
from labeldp.app.page.site import SOON, go, show, site_of
from labeldp.app.page.unfinished import ReleaseRequest, Unfinished, step
from labeldp.app.page.work import Work, location_of
from labeldp.app.regression import regress_file
from labeldp.app.report import write_report
from labeldp.app.sentences import EXPLAINED, printable
from labeldp.errors import Message
from labeldp.tables.file_release import privatize_file

WRITTEN = {
    "table": "The private table",
    "model": "The private model",
    "regression": "The regression table, a page",
}
"""What is written for each kind of release."""

OTHER_REQUEST = "The request was changed, perhaps in another tab. Nothing was charged: check it again."


@step
def release_step(request: Request, unfinished: Unfinished, form: FormData | None) -> Response:
    """Show what is about to happen, how far it is, or what was released; start it, once.

    Loading a page again, or pressing twice, does not spend twice.
    """
    release, seen, problems, site = unfinished.request, unfinished.seen, dict[str, str](), site_of(request)
    if release is None or seen is None:
        return go(request, f"{unfinished.path}/budget")
    work = unfinished.release
    if form is not None:
        is_done = work is not None and work.state == "done"
        if not is_done and form.get("request") == release.id:
            site.folder.refuse_elsewhere(release.out, release.ledger)
            ledger = release.open_ledger()
            task, page = partial(_carry_out, site.folder, release, ledger), f"{unfinished.path}/release"
            unfinished.release = site.start(task, page, unfinished.refuse_changed, ledger)
            is_done = True
        if is_done:
            return go(request, f"{unfinished.path}/release")
        problems["request"] = OTHER_REQUEST
    state = work.state if work else "ready"  # once: the thread may end while the page is rendered
    book, rows = release.open_ledger(), unfinished.rows
    others = note_other_ledgers(book, {name: site.folder.inside(name) for name in site.folder.ledgers()})
    return show(
        request,
        "release",
        unfinished=unfinished,
        problems=problems,
        release=release,
        work=work,
        state=state,
        book=book,
        seen=seen,
        odds=odds_figures((book.total + release.price.budget).epsilon),
        hints=unfinished.hints,
        notes=unfinished.notes if release.kind == "table" else {},
        cautions=preview_of(unfinished, release.options["epsilon"]).cautions(book.total),
        rows=rows,
        score=score_of(release, rows),
        no_score=no_score(rows),
        other_ledgers=others,
        result=work.result if work and state == "done" else None,
    )


def _carry_out(folder: ChosenFolder, release: ReleaseRequest, ledger: Ledger, work: Work) -> dict[str, Any]:
    """Release as the command of this kind does; return what the page says of it, all of which can be shared."""
    options = {**release.options, "ledger": ledger, "progress": work.progress}
    path, cells = release.out.with_name(f"{release.out.name}.card.json"), list[list[str]]()
    notes, problems = list[str](), dict[str, Exception]()
    if release.kind == "regression":
        regression = regress_file(release.source, release.out, **options)
        text, notes, cells = regression.table.to_card(), regression.notes, regression.table.cells()
    elif release.kind == "model":
        fit = fit_file(release.source, release.out, **options)
        path, text, notes = release.out / "card.json", fit.card, fit.notes
        if fit.score_error is not None:
            problems["How good the model is could not be measured"] = fit.score_error
    else:
        table = privatize_file(release.source, release.out, **options)
        text, notes = table.card, list(table.notes)
    files = {WRITTEN[release.kind]: release.out, "The certificate (card)": path}
    if release.report is not None:
        try:
            write_report(release.report, text, ledger=ledger, like=path)
            files["The report"] = release.report
        except Exception as error:  # the release is paid for, and there
            problems["The report could not be written"] = error
    notes = [
        note for note in notes if not isinstance(note, Message)
    ]  # what to choose otherwise would be paid again
    notes = [f"{what}: {_reason(error)}" for what, error in problems.items()] + notes
    return {
        "card": folder.name(path),
        "files": {what: folder.name(file) for what, file in files.items()},
        "notes": [printable(line) for note in notes for line in note.splitlines()],
        "explanation": read_any_card(text).explain(ledger.charges),
        "cells": cells,
    }


def _reason(error: Exception) -> str:
    """Return what went wrong after a release was written, which is no reason to hide the release."""
    return explain(error) if isinstance(error, EXPLAINED) else f"something inside, {location_of(error)}."


# ---- work in progress -----------------------------------------------------------------------------------------


def stop_form(request: Request, form: FormData) -> Response:
    """Stop work, if nothing was charged for it yet."""
    work = _work_of(request)
    work.stop()
    work.wait(SOON)
    return go(request, work.page)


def progress_data(request: Request) -> Response:
    """Return how far work is, for the bar that a script draws."""
    work = _work_of(request)
    names = ("state", "what", "percent", "can_stop")
    return JSONResponse({name: getattr(work, name) for name in names})


def _work_of(request: Request) -> Work:
    work = site_of(request).works.get(request.path_params["work"])
    if work is None:
        raise HTTPException(404)
    return work
