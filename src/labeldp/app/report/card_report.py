"""A card as a page: what was done, what it cost, what it protects, what to expect, and how to verify it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from labeldp._atomic import StrPath
from labeldp._values import Data
from labeldp.accounts.budget import Charge, rounded_up, total_of
from labeldp.accounts.explanation import Explanation, explain
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import at_most, percent, times
from labeldp.accounts.scores import coefficient_cells, describe_fit
from labeldp.accounts.terms import Terms
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.report.column_figures import column_sections
from labeldp.app.report.figures import escaped
from labeldp.app.report.page import (
    PageSource,
    Section,
    StatedLedger,
    render_page,
    state_ledger,
    write_page,
    written_with,
)
from labeldp.app.report.reviewer import proof_sections
from labeldp.tables.paths import Target


def write_report(
    path: StrPath,
    card_text: str,
    *,
    ledger: Ledger | None = None,
    force: bool = False,
    like: StrPath | None = None,
) -> None:
    """Write the report of a card: one HTML file, whole or not at all.

    Parameters
    ----------
    path : path-like
        The file to write.
    card_text, ledger
        As for `render_report`.
    force : bool
        Whether to replace a file.
    like : path-like, optional
        The file that the report is about: who may not read it may not read the report.

    Raises
    ------
    ParameterError
        If there is a file already.
    CardError, PrivacyProofError
        If the card does not hold.

    Examples
    --------
    >>> import tempfile, pathlib, labeldp as ldp
    >>> from labeldp.app.report import write_report
    >>> release = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), mechanism="two-point")
    >>> path = pathlib.Path(tempfile.mkdtemp(), "release.html")
    >>> write_report(path, release.to_card(), ledger=release.ledger)
    >>> path.exists()
    True
    """
    Target(str(path), force).refuse()
    page = render_report(card_text, ledger=ledger)
    write_page(path, page, force=force, like=like)


def render_report(
    card_text: str, *, ledger: Ledger | StatedLedger | None = None, verification: Verification | None = None
) -> str:
    """Return the report of a card, as HTML.

    Parameters
    ----------
    card_text : str
        The card of a mechanism, a release or a model.
    ledger : Ledger, optional
        Shows what else was spent on these labels, and what is left.
    verification : Verification, optional
        What `verify_card` returned for this card, where that was called before.

    Returns
    -------
    str
        HTML that loads nothing and runs nothing.

    Raises
    ------
    CardError, PrivacyProofError
        If the card does not hold.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.app.report import render_report
    >>> page = render_report(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json())
    >>> "at most e^ε = 2.72×" in page, page.count("<svg")
    (True, 1)
    """
    card = (verification or verify_card(card_text)).require_card(allow_open=True)
    terms, content = card.terms, card.content
    stated = state_ledger(ledger, terms.charges)
    explanation = explain(terms, card.kind, content, None if stated is None else stated.others)
    source = PageSource("report", str(json.loads(card_text)["checksum"]), written_with(), stated)
    texts = explanation.sections
    banner = "banner weak" if explanation.private else "banner"
    parts: list[Section | str] = [
        *(f'<div class="{banner}" role="alert">{escaped(text)}</div>' for text in explanation.warnings),
        *_coefficients(content),
        *_tiles(explanation, terms),
        *_texts(texts, "What the owner says"),
        *_texts(texts, "What it means"),
        _sides(texts, {"What is released": "open", "What stays private": "safe"}),
        *_cost(terms, stated, texts),
        *_texts(texts, "How noisy it is"),
        *column_sections(card),
        _sides(texts, {"Do": "safe", "Do not": "open"}),
        *proof_sections(card, source),
    ]
    when, lead = last_time(terms.charges), texts["What was done"]
    return render_page(explanation.title, parts, lead=lead, when=when, source=source.tag())


def last_time(charges: Sequence[Charge]) -> str:
    """Return the day and time of the last of the charges, or nothing."""
    times = []
    for charge in charges:
        with suppress(ValueError):
            times.append(datetime.fromisoformat(charge.when).astimezone(UTC))
    return f"{max(times):%Y-%m-%d %H:%M} UTC" if times else ""


def _texts(texts: Mapping[str, Sequence[str]], heading: str) -> list[Section]:
    return [Section(heading, texts[heading])] if heading in texts else []


def _coefficients(content: Data) -> list[Section]:
    """Return the table of coefficients of a regression's card."""
    table = content.get("regression")
    if table is None or not {"pvalues", "conf_int"} <= table.keys():
        return []
    head, *rows = coefficient_cells(table)
    notes = [*content.get("note", "").splitlines(), *describe_fit(content.get("fit", {}))]
    title = f"The regression table of {content.get('label', 'the label')}"
    return [Section(title, [], head, rows), Section("How to read it", notes)]


def _tiles(explanation: Explanation, terms: Terms) -> list[str]:
    """Return the figures that matter most, if the release is private."""
    if not explanation.private:
        return []
    whose = "one label" if len(terms.bounds) < 2 else "all labels of one row"
    whose = whose if terms.rows_per_person == 1 else "all labels of one person"
    epsilon, delta, ledger = explanation.budget.epsilon, explanation.budget.delta, explanation.ledger
    tiles = {f"ε, the most that this costs {whose}": rounded_up(epsilon, 4)}
    if delta:
        tiles["δ, on top"] = rounded_up(delta, 3)
    tiles["is the most by which odds can grow by this alone"] = times(epsilon)
    tiles["is the most a guess can gain by this alone"] = f"50 % → {percent(float(at_most(0.5, epsilon)))}"
    if ledger is not None:
        tiles["ε of everything in its ledger"] = rounded_up(ledger.epsilon, 4)
        tiles["is the most by everything in its ledger"] = times(ledger.epsilon)
    if terms.rows:
        tiles["labels"] = f"{terms.rows:,}"
    body = "".join(f"<li><b>{escaped(value)}</b>{escaped(name)}</li>" for name, value in tiles.items())
    return [f'<ul class="tiles">{body}</ul>']


def _sides(texts: Mapping[str, Sequence[str]], headings: Mapping[str, str]) -> str:
    """Return lists beside each other, under headings with the class of each."""
    lists = ""
    for heading, kind in headings.items():
        items = "".join(f"<li>{escaped(text)}</li>" for text in texts[heading])
        lists += f'<div class="side {kind}"><h2>{heading}</h2><ul>{items}</ul></div>'
    return f'<section class="sides">{lists}</section>'


def _cost(terms: Terms, ledger: StatedLedger | None, texts: Mapping[str, Sequence[str]]) -> list[Section]:
    """Return a release's charges, beside all that a ledger holds."""
    own, cost = terms.charges, total_of(terms.charges)
    if not own:
        return []
    words = [f"This cost {cost} in all.", *texts["What it cost"][1 + len(own) :]]  # its charges are in the table
    missing = ledger is not None and not ledger.complete
    if ledger is not None:
        total = cost + ledger.others
        limit = "The ledger has no limit: it counts, and refuses nothing."
        if ledger.limit is not None:
            limit = f"The limit is {ledger.limit}; left is {ledger.limit.minus(total)}."
        words += [f"With all else in the ledger, {total} is spent.", limit]
    words.append("What was spent never comes back: another release of the same labels costs again, on top.")
    rows = [
        [
            charge.what,
            rounded_up(charge.budget.epsilon),
            rounded_up(charge.budget.delta, 3),
            str(charge.rows_per_person),
            re.sub(r"\.[0-9]{6}", "", charge.when).replace("T", " ").replace("+00:00", " UTC"),
        ]
        for charge in own
    ]
    header = ["spent on", "ε", "δ", "rows a person", "when"]
    warning = ["The ledger given does not hold all charges of this release."] if missing else []
    return [Section("What it cost", [*warning, " ".join(words)], header, rows, warning=missing)]
