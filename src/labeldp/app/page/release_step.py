"""The last step: one button, its progress, and the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from labeldp.app.page.picture import Look, look_at_regression, look_at_table
from labeldp.app.page.site import SOON, Site, go, site_of
from labeldp.app.page.unfinished import ReleaseRequest, Unfinished
from labeldp.app.page.work import Work
from labeldp.app.regression import regress_file
from labeldp.app.report import render_report, write_page
from labeldp.app.sentences import printable
from labeldp.errors import Message
from labeldp.tables.file_release import privatize_file

WRITTEN = {
    "table": "The private table",
    "model": "The private model",
    "regression": "The regression table, a page",
}
"""What is written for each kind of release."""

OTHER_REQUEST = "The request was changed, perhaps in another tab. Nothing was charged: check it again."


def take_release(site: Site, unfinished: Unfinished, form: FormData, problems: dict[str, str]) -> str:
    """Start the release that the form was shown with, once: pressing twice does not spend twice."""
    release, work = unfinished.request, unfinished.release
    if release is not None and (work is None or work.state != "done"):
        if form.get("request") == release.id:
            ledger = release.open_ledger()
            task, page = partial(_carry_out, site.folder, release, ledger), unfinished.at("release")
            unfinished.release = site.start(task, page, unfinished.refuse_changed, ledger)
        else:
            problems["request"] = OTHER_REQUEST
    return unfinished.at("release")


def release_values(site: Site, unfinished: Unfinished) -> dict[str, Any] | str:
    """Return what is about to happen, how far it is, or what was released."""
    release, work, rows = unfinished.request, unfinished.release, unfinished.rows
    if release is None or unfinished.seen is None:
        return unfinished.at("budget")
    state = work.state if work else "ready"  # once: the thread may end while the page is rendered
    book = release.open_ledger()
    return {
        "release": release,
        "work": work,
        "state": state,
        "book": book,
        "seen": unfinished.seen,
        "odds": odds_figures((book.total + release.price.budget).epsilon),
        "cautions": preview_of(unfinished, release.options["epsilon"]).cautions(book.total),
        "rows": rows,
        "score": score_of(release, rows),
        "no_score": no_score(rows),
        "other_ledgers": note_other_ledgers(
            book, {name: site.folder.target(name) for name in site.folder.ledgers()}
        ),
        "result": work.result if work and state == "done" else None,
    }


def _carry_out(folder: ChosenFolder, release: ReleaseRequest, ledger: Ledger, work: Work) -> dict[str, Any]:
    """Release as the command of this kind does; return what the page says of it, all of which can be shared."""
    options = {**release.options, "ledger": ledger, "progress": work.progress}
    path, problems = release.out.with_name(f"{release.out.name}.card.json"), dict[str, Exception]()
    look: Callable[[], Look | None] = dict
    if release.kind == "regression":
        regression = regress_file(release.source, release.out, **options)
        text, notes = regression.table.to_card(), regression.notes
        look = partial(look_at_regression, regression.table)
    elif release.kind == "model":
        fit = fit_file(release.source, release.out, **options)
        path, text, notes = release.out / "card.json", fit.card, fit.notes
        if fit.score_error is not None:
            problems["How good the model is could not be measured"] = fit.score_error
    else:
        table = privatize_file(release.source, release.out, **options)
        text, notes = table.card, list(table.notes)
        look = partial(look_at_table, release.out, text)
    files = {WRITTEN[release.kind]: release.out, "The certificate (card)": path}
    if release.kind != "regression":  # which is a report itself
        with _noted(problems, "The report could not be written"):
            report = release.out.with_name(f"{release.out.name}.report.html")
            write_page(report, render_report(text, ledger=ledger), like=path)
            files["The report"] = report
    shown = None
    with _noted(problems, "The result cannot be shown here"):
        shown = look()
    failed = [f"{what}: {explain(error)}" for what, error in problems.items()]
    other = [note for note in notes if not isinstance(note, Message)]  # what to choose otherwise is paid again
    return {
        "card": folder.name(path),
        "files": {what: folder.name(file) for what, file in files.items()},
        "notes": [printable(line) for note in (*failed, *other) for line in note.splitlines()],
        "explanation": read_any_card(text).explain(ledger.charges),
        "look": shown,
    }


@contextmanager
def _noted(problems: dict[str, Exception], what: str) -> Iterator[None]:
    """Note what goes wrong after a release is in place: it is paid for, and there."""
    try:
        yield
    except Exception as error:
        problems[what] = error


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
