"""The release: one button, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from labeldp.cards.reading import read_any_card
from labeldp.files import FileRelease
from labeldp.jobs.model_fit import rows_held_out
from labeldp.jobs.reports import NO_REPORT
from labeldp.jobs.sentences import EXPLAINED, printable
from labeldp.ledger import Charge
from labeldp.page.budget_step import outlook_of, price_of
from labeldp.page.drafts import Draft, refuse_changed
from labeldp.page.orders import Order
from labeldp.page.records import LedgerView, earlier_releases
from labeldp.page.site import Site, explained_page, go, progress_of, site_of, started
from labeldp.page.steps import changed, draft_of, in_page_words
from labeldp.page.words import as_fields, explain_in_page, plain_cost
from labeldp.page.work import Asked, Work, place_of
from labeldp.release.odds import odds_figures

CLIPPED = (
    "That range was chosen privately, inside your bounds: labels outside are moved to its ends, which costs less "
    "than the noise that a wider one would need."
)
OUTSIDE = (
    "Cut off values that cannot be, such as prices below 0: that is the noise, and it cancels out over many rows "
    "only if all of it is there."
)
OTHER_ORDER = "The order was changed, perhaps in another tab. Nothing was charged: look at it as it is now."


@dataclass(frozen=True)
class Result:
    """What a release left in the folder.

    Attributes
    ----------
    files : dict
        Names of files in the folder, by what they are.
    card : str
        The card's name in the folder.
    sections : dict
        What was done and what it means, in words, under headings.
    model : str
        The model's name in the folder, if it is one.
    """

    files: dict[str, str]
    card: str
    sections: dict[str, list[str]]
    model: str = ""


@explained_page
async def release_page(request: Request) -> Response:
    """Show what is about to happen, how far it is, or what came of it."""
    site, draft = site_of(request), draft_of(request)
    order, work = draft.order, draft.release
    state = work.state if work else "ready"  # once: the thread may end while the page is put together
    if order is None:
        return go(f"/draft/{draft.id}/budget")
    price = price_of(order)
    book = await run_in_threadpool(lambda: LedgerView(order.ledger_name, order.open_ledger()))
    asked = work.asked if work and state == "asked" else []
    unused = asked if order.leaves == "model" else []  # public, unlike hints
    hints = in_page_words([*draft.hints, *(() if unused else asked)], "on the page of the label")
    earlier = await run_in_threadpool(earlier_releases, site.folder, order.choice.label, order.ledger_name)
    rows = 0 if draft.seen is None else draft.seen.rows - draft.seen.missing
    plan = await run_in_threadpool(outlook_of, draft, order.choice, order.epsilon)
    dropped = site.folder.is_dropped(draft.source)
    return site.page(
        "release",
        draft=draft,
        order=order,
        work=work,
        state=state,
        price=price,
        odds=odds_figures((book.spent + price.budget).epsilon),
        book=book,
        hints=hints,
        unused=list(map(printable, unused)),
        cautions=plan.cautions(),
        rows=rows,
        held_out=rows_held_out(rows, order.score),
        earlier=earlier,
        dropped=dropped,
        result=work.result if work and state == "done" else None,
    )


@explained_page
async def release_form(request: Request) -> Response:
    """Start the release, once: loading a page again, or pressing twice, does not spend twice."""
    site, draft = site_of(request), draft_of(request)
    form = await site.form(request)
    here = f"/draft/{draft.id}/release"
    order, release = draft.order, draft.release
    if order is None:
        return go(f"/draft/{draft.id}/budget")
    if release is not None and release.state in ("running", "done"):
        return go(here)
    if draft.is_changed:
        return await changed(draft)
    if form.get("order") != order.id:
        draft.problems = {"order": OTHER_ORDER}
        return go(here)
    seen = release.asked if release is not None and form.get("as_it_is") else []
    draft.problems, draft.release = {}, start_release(site, draft, order, [*draft.hints, *seen])
    await started(draft.release)
    return go(here)


def start_release(site: Site, draft: Draft, order: Order, known: Collection[str]) -> Work:
    """Carry out an order in a thread; what is known is not asked about."""
    site.folder.refuse_elsewhere(order.out, order.ledger)
    ledger = order.open_ledger()

    def ask(sentences: list[str]) -> None:
        new = [sentence for sentence in sentences if sentence not in known]
        if new:
            raise Asked(new)

    def task(work: Work) -> Result:
        done, problems = order.carry_out(ledger, work.progress, ask, work.reading())
        name = site.folder.name
        files = {} if order.report is None or NO_REPORT in problems else {"report": name(order.report)}
        words = [f"{what}: {_reason(error)}" for what, error in problems.items()]
        if not isinstance(done, FileRelease):
            card = name(done.path / "card.json")
            words += [*done.notes, *(line for text in done.expected for line in text.splitlines())]
            sections = _sections(done.card, words, ledger.charges)
            return Result({**files, "card": card}, card, sections, model=name(done.path))
        assert done.card_path is not None  # noqa: S101 (only a pipe has none)
        files = {"table": name(Path(done.path)), "card": name(done.card_path), **files}
        words += done.notes
        for column, (old, new) in done.types_changed.items():
            words.append(printable(f"The column {column!r} could not stay {old}: it is {new} now."))
        return Result(files, files["card"], _sections(done.card, words, ledger.charges))

    return Work(task, ledger, watch=lambda: refuse_changed(order.choice.source, order.choice.stamp))


def _sections(card: str, words: list[str], recorded: Sequence[Charge]) -> dict[str, list[str]]:
    """Return what is said of a release at once, and of all that was spent; its card's page says the rest."""
    shown = ("What was done", "What it cost", "What it means", "How noisy it is", "Do", "Do not")
    read = read_any_card(card)
    explained = read.explain(read.costs(recorded)).sections
    sections = {heading: list(map(as_fields, explained[heading])) for heading in shown if heading in explained}
    # Which mechanism it was, its card says: here are those who want to know what they have.
    sections["What was done"] = [
        line for line in sections["What was done"] if not line.startswith("The mechanism")
    ]
    sections["What it cost"] = [plain_cost(line) for line in sections["What it cost"]]
    if any(line.startswith("Labels are clipped") for line in sections.get("How noisy it is", ())):
        sections["How noisy it is"].append(CLIPPED)
    if str(read.content.get("file", {}).get("column_holds", "")).startswith("unbiased"):
        sections["Do not"].append(OUTSIDE)
    sections["What was done"] += [as_fields(printable(line)) for line in words]
    return sections


def _reason(error: Exception) -> str:
    """Return what went wrong after a release was in place, which is no reason to hide the release."""
    return explain_in_page(error) if isinstance(error, EXPLAINED) else f"something inside, {place_of(error)}."


@explained_page
async def stop_form(request: Request) -> Response:
    """Stop what is being done, if nothing was charged yet."""
    site, draft = site_of(request), draft_of(request)
    form = await site.form(request)
    work = draft.reading if form.get("what") == "reading" else draft.release
    if work is not None:
        work.stop()
        await started(work)
    return go(f"/draft/{draft.id}/{'table' if form.get('what') == 'reading' else 'release'}")


async def progress_data(request: Request) -> Response:
    """Return how far work is, for the bar; of what was left too long ago the page itself says more."""
    work = None
    with suppress(*EXPLAINED):
        draft = draft_of(request)
        work = draft.reading if request.query_params.get("what") == "reading" else draft.release
    return progress_of(work)
