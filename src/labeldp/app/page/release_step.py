"""The last step: one button, its progress, and the result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from labeldp.accounts.budget import Charge
from labeldp.accounts.numbers import odds_figures
from labeldp.accounts.reading import read_any_card
from labeldp.app.model_fit import rows_held_out
from labeldp.app.page.budget_step import preview_of
from labeldp.app.page.ledgers import LedgerView, earlier_releases
from labeldp.app.page.messages import CHARGES, explain, hint_text, spelled
from labeldp.app.page.release_request import ReleaseRequest
from labeldp.app.page.site import SOON, Site, go, show, site_of
from labeldp.app.page.unfinished import Unfinished, refuse_changed, step_form, step_page
from labeldp.app.page.work import Asked, Work, location_of
from labeldp.app.reports import NO_REPORT
from labeldp.app.sentences import EXPLAINED, printable
from labeldp.tables.file_release import FileRelease

CLIPPED = (
    "That range was chosen privately, inside your bounds: values outside are moved to its ends, which costs less "
    "than the noise that a wider one would need."
)
OUTSIDE = (
    "Cut off impossible values, such as prices below 0: they are noise, which cancels out over many rows only if "
    "all of it is there."
)
OTHER_REQUEST = "The request was changed, perhaps in another tab. Nothing was charged: check it again."


@dataclass(frozen=True)
class Result:
    """What a release wrote to the folder.

    Attributes
    ----------
    files : dict
        Names of files in the folder, by what they are.
    sections : dict
        What was done and what it means, under headings.
    model : str
        The model's name in the folder, if it is one.
    """

    files: dict[str, str]
    sections: dict[str, list[str]]
    model: str = ""


@step_page
def release_page(request: Request, unfinished: Unfinished) -> Response:
    """Show what is about to happen, how far it is, or what was released."""
    site, release, work = site_of(request), unfinished.request, unfinished.release
    if release is None:
        return go(request, f"{unfinished.path}/budget")
    state = work.state if work else "ready"  # once: the thread may end while the page is rendered
    book = LedgerView(release.names["ledger"], release.open_ledger())
    asked = work.asked if work and state == "asked" else []
    is_model = release.kind == "model"
    unused = asked if is_model else []  # public, unlike hints
    rows = 0 if unfinished.seen is None else unfinished.seen.rows - unfinished.seen.missing
    return show(
        request,
        "release",
        unfinished=unfinished,
        release=release,
        work=work,
        state=state,
        book=book,
        odds=odds_figures((book.spent + release.price.budget).epsilon),
        hints=[hint_text(hint) for hint in [*unfinished.hints, *([] if is_model else asked)]],
        unused=list(map(printable, unused)),
        cautions=preview_of(unfinished, release.options["epsilon"]).cautions(),
        rows=rows,
        held_out=rows_held_out(rows, release.options.get("score")),
        earlier=earlier_releases(site.folder, release.options["label"], book.name),
        dropped=site.dropped.contains(release.source),
        result=work.result if work and state == "done" else None,
    )


@step_form
def release_form(request: Request, unfinished: Unfinished, form: FormData) -> Response:
    """Start the release, once: loading a page again, or pressing twice, does not spend twice."""
    site, release, work = site_of(request), unfinished.request, unfinished.release
    if release is not None and not unfinished.is_finished:
        if form.get("request") != release.id:
            unfinished.problems = {"request": OTHER_REQUEST}
        else:
            seen = work.asked if work is not None and form.get("as_it_is") else []
            unfinished.release = _start(site, unfinished, release, [*unfinished.hints, *seen])
    return go(request, f"{unfinished.path}/release")


def _start(site: Site, unfinished: Unfinished, release: ReleaseRequest, known: Collection[Any]) -> Work:
    """Carry out a request in a thread; what is known to the owner is not asked about."""
    site.folder.refuse_elsewhere(release.out, release.ledger)
    ledger = release.open_ledger()

    def ask(sentences: list[Any]) -> None:
        new = [sentence for sentence in sentences if sentence not in known]
        if new:
            raise Asked(new)

    def task(work: Work) -> Result:
        done, problems = release.carry_out(ledger, work.progress, ask, work.reading())
        name = site.folder.name
        files = {} if release.report is None or NO_REPORT in problems else {"report": name(release.report)}
        notes = [*(f"{what}: {_reason(error)}" for what, error in problems.items()), *done.notes]
        if not isinstance(done, FileRelease):
            notes += [line for text in done.expected for line in spelled(text).splitlines()]
            sections = _sections(done.card, notes, ledger.charges)
            return Result({"card": name(done.path / "card.json"), **files}, sections, model=name(done.path))
        assert done.card_path is not None  # noqa: S101 (only a pipe has none)
        for column, (old, new) in done.types_changed.items():
            notes.append(f"The column {column!r} could not stay {old}: it is {new} now.")
        files = {"table": name(Path(done.path)), "card": name(done.card_path), **files}
        return Result(files, _sections(done.card, notes, ledger.charges))

    watch = lambda: refuse_changed(release.source, release.stamp)  # noqa: E731
    return site.start(task, f"{unfinished.path}/release", ledger=ledger, watch=watch)


def _sections(card: str, notes: list[str], recorded: Sequence[Charge]) -> dict[str, list[str]]:
    """Return what is said of a release at once, and of all that was spent; its card's page says the rest."""
    shown = ("What was done", "What it cost", "What it means", "How noisy it is", "Do", "Do not")
    read = read_any_card(card)
    explained = read.explain(recorded).sections
    sections = {
        heading: [line for line in explained[heading] if not line.startswith("The mechanism")]  # its card has it
        for heading in shown
        if heading in explained
    }
    sections["What it cost"] = [plain_cost(line) for line in sections["What it cost"]]
    if any(line.startswith("Labels are clipped") for line in sections.get("How noisy it is", ())):
        sections["How noisy it is"].append(CLIPPED)
    if str(read.content.get("file", {}).get("column_holds", "")).startswith("unbiased"):
        sections["Do not"].append(OUTSIDE)
    sections["What was done"] += [printable(spelled(note)) for note in notes]
    return sections


def plain_cost(line: str) -> str:
    """Return a line of what something cost for those who never saw a ledger.

    Examples
    --------
    >>> plain_cost("  0.7 for labels")
    '  0.7 for labels with noise'
    """
    amount, of, what = line.partition(" for ")
    return f"{amount}{of}{CHARGES.get(what, what)}"


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
    """Return how far work is, for the bar."""
    return JSONResponse(_work_of(request).as_data())


def _work_of(request: Request) -> Work:
    work = site_of(request).works.get(request.path_params["work"])
    if work is None:
        raise HTTPException(404)
    return work
