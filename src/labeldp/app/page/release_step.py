"""The last step: one button, its progress, and the result."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from labeldp.accounts.explanation import Explanation
from labeldp.accounts.numbers import odds_figures
from labeldp.accounts.reading import read_any_card
from labeldp.app.page.budget_step import preview_of
from labeldp.app.page.commands import commands
from labeldp.app.page.forms import explain
from labeldp.app.page.picture import Look, look_at
from labeldp.app.page.site import SOON, Site, go, show, site_of
from labeldp.app.page.unfinished import ReleaseRequest, Unfinished, step
from labeldp.app.page.work import Work, location_of
from labeldp.app.reports import NO_REPORT, note_problem
from labeldp.app.sentences import EXPLAINED, as_field, printable, spelled
from labeldp.learning.score import TEST_SIZE

WRITTEN = {
    "table": "The private table",
    "model": "The private model",
    "regression": "The regression table, a page",
}
"""What is written for each kind of release."""

OTHER_REQUEST = "The request was changed, perhaps in another tab. Nothing was charged: check it again."


@dataclass(frozen=True)
class Result:
    """What a release wrote to the folder.

    Attributes
    ----------
    card : str
        The name of its card in the folder.
    files : dict
        Names of files in the folder, by what they are.
    notes : list of str
        What there is to say of the table, and what went wrong afterwards.
    explanation : Explanation
        What the card says.
    look : Look
        A picture, and the first rows.
    commands : dict
        The same as commands, by the name of the shell.
    """

    card: str
    files: dict[str, str]
    notes: list[str]
    explanation: Explanation
    look: Look
    commands: dict[str, list[str]]


@step
def release_page(request: Request, unfinished: Unfinished) -> Response:
    """Show what is about to happen, how far it is, or what was released."""
    release, work, seen = unfinished.request, unfinished.release, unfinished.seen
    if release is None or seen is None:
        return go(request, f"{unfinished.path}/budget")
    state = work.state if work else "ready"  # once: the thread may end while the page is rendered
    book, rows = release.open_ledger(), seen.rows - seen.missing
    return show(
        request,
        "release",
        unfinished=unfinished,
        release=release,
        work=work,
        state=state,
        book=book,
        seen=seen,
        odds=odds_figures((book.total + release.price.budget).epsilon),
        hints=unfinished.hints,
        cautions=preview_of(unfinished, release.options["epsilon"]).cautions(),
        rows=rows,
        held_out=int(rows * TEST_SIZE) if release.options.get("score") else 0,
        result=work.result if work and state == "done" else None,
    )


@step
def release_form(request: Request, unfinished: Unfinished, form: FormData) -> Response:
    """Start the release, once: loading a page again, or pressing twice, does not spend twice."""
    release, work = unfinished.request, unfinished.release
    if release is not None and not (work is not None and work.state == "done"):
        if form.get("request") != release.id:
            unfinished.problems = {"request": OTHER_REQUEST}
        else:
            unfinished.release = _start(site_of(request), unfinished, release)
    return go(request, f"{unfinished.path}/release")


def _start(site: Site, unfinished: Unfinished, release: ReleaseRequest) -> Work:
    """Carry out a request in a thread."""
    site.folder.refuse_elsewhere(release.out, release.ledger)
    ledger = release.open_ledger()

    def task(work: Work) -> Result:
        done = release.carry_out(ledger, work)
        files = {WRITTEN[release.kind]: release.out, "The certificate (card)": done.card}
        if release.report is not None and NO_REPORT not in done.problems:
            files["The report"] = release.report
        card, problems = read_any_card(done.text), dict(done.problems)
        look = Look()
        with note_problem(problems, "The result cannot be shown here"):
            look = look_at(release.out, card, done.regression)
        notes = [f"{what}: {_reason(error)}" for what, error in problems.items()] + [*done.notes]
        return Result(
            site.folder.name(done.card),
            {what: site.folder.name(path) for what, path in files.items()},
            [printable(line) for note in notes for line in spelled(note, as_field).splitlines()],
            card.explain(ledger.charges),
            look,
            commands(release, site.folder),
        )

    return site.start(task, f"{unfinished.path}/release", unfinished.table.refuse_changed, ledger)


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
