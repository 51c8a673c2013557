"""The last step: one button, its progress, and the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from labeldp._atomic import atomic_file
from labeldp._values import Data
from labeldp.accounts.budget import total_of
from labeldp.accounts.card import Card
from labeldp.accounts.ledger import Ledger, note_other_ledgers
from labeldp.accounts.numbers import odds_figures
from labeldp.app.file_release import privatize_file
from labeldp.app.handover import as_workbook
from labeldp.app.model_fit import fit_file
from labeldp.app.page.budget_step import preview_of, score_of
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.forms import Problems, explain
from labeldp.app.page.picture import Picture, draw_model, draw_regression, draw_table
from labeldp.app.page.site import SOON, Site, go, site_of
from labeldp.app.page.unfinished import ReleaseRequest, Unfinished
from labeldp.app.page.work import Work
from labeldp.app.regression import regress_file
from labeldp.app.sentences import printable
from labeldp.errors import Message, ParameterError, Setting
from labeldp.tables.paths import format_in


def refuse_without_model(sentence: Message) -> None:
    """Refuse a table for which there can be no model, before the charge: its owner shall choose that."""
    raise ParameterError(sentence, " If you want that, go back and set ", Setting("model", False), ".")


COMMANDS: dict[str, Callable[..., Any]] = {
    "table": partial(privatize_file, notice=refuse_without_model),
    "mean": regress_file,
    "model": fit_file,
    "regression": regress_file,
}
OUTPUTS = {
    "table": "The private table",
    "mean": "The mean, a page",
    "model": "The private model",
    "regression": "The regression table, a page",
}
"""The output of each kind of release."""

OTHER_REQUEST = "The request was changed, perhaps in another tab. Nothing was charged: check it again."


def take_release(site: Site, unfinished: Unfinished, form: FormData, problems: Problems) -> str:
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


def release_values(site: Site, unfinished: Unfinished) -> Data | str:
    """Return the request and its cost; the work, once it began; and its result."""
    release, work = unfinished.request, unfinished.release
    if release is None or unfinished.overview is None:
        return unfinished.at("budget")
    state = work.state if work else "ready"  # once: the thread may end while the page is rendered
    book = release.open_ledger()
    past = total_of(book.charges, release.price.segments)
    ledgers = {name: site.folder.target(name) for name in site.folder.ledgers()}
    return {
        "release": release,
        "work": work,
        "state": state,
        "book": book,
        "past": past,
        "odds": odds_figures((past + release.price.budget).epsilon),
        "cautions": preview_of(unfinished, epsilon=release.options["epsilon"]).cautions(past),
        "score": score_of(release, unfinished.rows),
        "other_ledgers": note_other_ledgers(book, ledgers, str(unfinished.label)),
        "tables": site.folder.tables() if release.kind == "model" else [],
    }


def _carry_out(folder: ChosenFolder, release: ReleaseRequest, ledger: Ledger, work: Work) -> Data:
    """Release as the command of this kind does; return the values of its page, all of which can be shared."""
    kind, out = release.kind, release.out
    result: Any = COMMANDS[kind](release.source, out, **release.options, ledger=ledger, progress=work.progress)
    card_path = out / "card.json" if kind == "model" else out.with_name(f"{out.name}.card.json")
    card = Card.parse(card_path.read_text(encoding="utf-8"))
    problems = list[str]()
    files = {OUTPUTS[kind]: out, "The certificate (card)": card_path}
    files |= _write_sheet(release, card, problems)
    pictures = list[Picture]()
    with _collect_failure(problems, "The result cannot be shown here"):
        pictures = _draw_result(release, result, card)
    if kind == "model" and result.score_error is not None:
        problems.append(f"How good the model is could not be measured: {explain(result.score_error)}")
    notes = [note for note in result.notes if not isinstance(note, Message)]  # advice, which is paid again
    return {
        "card": folder.name(card_path),
        "files": {name: folder.name(file) for name, file in files.items()},
        "notes": [printable(line) for note in [*problems, *notes] for line in note.splitlines()],
        "explanation": card.explain(ledger.charges),
        "pictures": pictures,
    }


def _write_sheet(release: ReleaseRequest, card: Card, problems: list[str]) -> dict[str, Path]:
    """Write an Excel sheet of a table that came from Excel."""
    if release.kind != "table" or format_in(release.source.name) != "xlsx":
        return {}
    sheet = release.out.with_suffix(".xlsx")
    with _collect_failure(problems, "The Excel sheet could not be written"):
        with atomic_file(sheet, public=True, max_rights=release.out.stat().st_mode, replace=False) as file:
            file.write_bytes(as_workbook(release.out, card))
        return {"The same as an Excel sheet": sheet}
    return {}


def _draw_result(release: ReleaseRequest, result: Any, card: Card) -> list[Picture]:
    """Return pictures and tables of a release, from its files and public columns."""
    if release.kind == "table":
        return draw_table(release.out, card)
    if release.kind == "model":
        return [draw_model(release.out, release.source, release.options["dialect"])]
    return [draw_regression(result.table, card)]


@contextmanager
def _collect_failure(problems: list[str], sentence: str) -> Iterator[None]:
    """Collect an error after a release is in place: the release is paid for, and exists."""
    try:
        yield
    except Exception as error:
        problems.append(f"{sentence}: {explain(error)}")


# ---- work in progress -----------------------------------------------------------------------------------------


def stop_form(request: Request, form: FormData) -> Response:
    """Stop work, if nothing was charged for it yet."""
    work = _work_of(request)
    work.stop()
    work.wait(SOON)
    return go(request, work.page)


def progress_data(request: Request) -> Response:
    """Return the progress of work, for the bar that a script draws."""
    work = _work_of(request)
    return JSONResponse(
        {"state": work.state, "step": work.step, "percent": work.percent, "can_stop": work.can_stop}
    )


def _work_of(request: Request) -> Work:
    work = site_of(request).works.get(request.path_params["work"])
    if work is None:
        raise HTTPException(404)
    return work
