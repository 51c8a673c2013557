"""A card as a page: what was done, what it cost, what it protects, and what to expect of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from labeldp import __version__
from labeldp._atomic import StrPath
from labeldp.accounts.budget import Budget, Charge, missing_charges, rounded_up, total_of
from labeldp.accounts.explanation import Explanation, explain
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import at_most, percent, times
from labeldp.accounts.terms import Terms
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.report.column_figures import coefficient_sections, column_sections
from labeldp.app.report.figures import COLOURS, DASHES, SOFT, blank, escaped, legend
from labeldp.app.report.page import Section, render_page, write_page
from labeldp.app.report.reviewer import environment, file_section, proof_sections
from labeldp.mechanisms.typed_data import canonical, plain
from labeldp.tables.paths import Target


@dataclass(frozen=True, slots=True)
class StatedLedger:
    """What a page states of a ledger: enough to write the page again.

    Attributes
    ----------
    limit : Budget or None
    others : Budget
        What its charges for other releases cost together.
    complete : bool
        Whether it holds all charges of this release.
    """

    limit: Budget | None
    others: Budget
    complete: bool

    @classmethod
    def of(cls, limit: Budget | None, charges: Sequence[Charge], own: Sequence[Charge]) -> StatedLedger:
        """Return what to state of a ledger on the page of a release with charges of its own."""
        return cls(limit, total_of(missing_charges(charges, own)), not missing_charges(own, charges))


def state_ledger(ledger: Ledger | StatedLedger | None, own: Sequence[Charge]) -> StatedLedger | None:
    """Return what to state of a ledger, if there is one; what was stated before stays as it is."""
    return StatedLedger.of(ledger.limit, ledger.charges, own) if isinstance(ledger, Ledger) else ledger


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
    card_text: str,
    *,
    ledger: Ledger | StatedLedger | None = None,
    verification: Verification | None = None,
    written_with: str | None = None,
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
    written_with : str, optional
        What the page says that it was written with; by default, what it is written with.

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
    (True, 2)
    """
    card = (verification or verify_card(card_text)).require_card(allow_open=True)
    terms = card.terms
    stated = state_ledger(ledger, terms.charges)
    explanation = explain(terms, card.kind, card.content, None if stated is None else stated.others)
    checksum = str(json.loads(card_text)["checksum"])
    texts = explanation.sections
    banner = "banner weak" if explanation.private else "banner"
    written_with = written_with or environment()
    parts: list[Section | str | None] = [
        *(f'<div class="{banner}" role="alert">{escaped(text)}</div>' for text in explanation.warnings),
        *coefficient_sections(card.content),
        _tiles(explanation, terms),
        _plain_section(texts, "What the owner says"),
        _meaning(explanation),
        _sides(texts, {"What is released": "open", "What stays private": "safe"}),
        file_section(card.content.get("file", {})),
        _budget(terms, stated, texts["What it cost"]) if terms.charges else None,
        _plain_section(texts, "How noisy it is"),
        *column_sections(card),
        _sides(texts, {"Do": "safe", "Do not": "open"}),
        *proof_sections(card, checksum, written_with),
    ]
    about = {"version": __version__, "card": checksum, "environment": written_with, "ledger": plain(stated)}
    return render_page(
        explanation.title,
        [part for part in parts if part],
        lead=texts["What was done"],
        when=last_time(terms.charges),
        about=canonical(about),
    )


def _plain_section(texts: Mapping[str, Sequence[str]], heading: str) -> Section | None:
    return Section(heading, texts[heading]) if heading in texts else None


def last_time(charges: Sequence[Charge]) -> str:
    """Return the day and time of the last of the charges, or nothing."""
    times = []
    for charge in charges:
        with suppress(ValueError):
            times.append(datetime.fromisoformat(charge.when).astimezone(UTC))
    return f"{max(times):%Y-%m-%d %H:%M} UTC" if times else ""


def _tiles(explanation: Explanation, terms: Terms) -> str | None:
    if not explanation.private:
        return None
    whose = "one label" if len(terms.bounds) < 2 else "all labels of one row"
    whose = whose if terms.rows_per_person == 1 else "all labels of one person"
    epsilon, delta, ledger = explanation.budget.epsilon, explanation.budget.delta, explanation.ledger
    half = percent(float(at_most(0.5, epsilon)))
    tiles = [
        (rounded_up(epsilon, 4), f"ε, the most that this costs {whose}"),
        *([(rounded_up(delta, 3), "δ, on top")] if delta else []),
        (times(epsilon), "is the most by which odds can grow by this alone"),
        (f"50 % → {half}", "is the most a guess can gain by this alone"),
        *([] if ledger is None else [(rounded_up(ledger.epsilon, 4), "ε of everything in its ledger")]),
        *([] if ledger is None else [(times(ledger.epsilon), "is the most by everything in its ledger")]),
        *([(f"{terms.rows:,}", "labels")] if terms.rows else []),
    ]
    body = "".join(f"<li><b>{escaped(value)}</b>{escaped(name)}</li>" for value, name in tiles)
    return f'<ul class="tiles">{body}</ul>'


def _meaning(explanation: Explanation) -> Section:
    """Return the guarantee in words, with how certain one can be afterwards against how certain one was before."""
    words = explanation.sections["What it means"]
    if not explanation.private:
        return Section("What it means", words)
    epsilon = explanation.budget.epsilon
    figure, axes = blank("certain before, %", "certain after, %")
    before = np.linspace(0, 1, 201)
    high, low = at_most(before, epsilon), at_most(before, -epsilon)
    axes.fill_between(100 * before, 100 * low, 100 * high, color=COLOURS[0], alpha=0.22, lw=0)
    axes.plot(100 * before, 100 * high, color=COLOURS[0], lw=2, label="at most")
    axes.plot(100 * before, 100 * low, color=COLOURS[0], lw=2, ls=DASHES[1], label="at least")
    axes.plot([0, 100], [0, 100], color=SOFT, lw=1, ls=":", label="nothing learned")
    axes.set(xlim=(0, 100), ylim=(0, 100))
    legend(axes, columns=3)
    half = percent(float(at_most(0.5, epsilon)))
    alternative = (
        f"A band around the diagonal: who was 50 % certain before can be {half} certain afterwards at most."
    )
    return Section("What it means", words, figure=figure, alternative=alternative)


def _sides(texts: Mapping[str, Sequence[str]], headings: Mapping[str, str]) -> str:
    """Return lists beside each other, under headings with the class of each."""
    lists = ""
    for heading, kind in headings.items():
        items = "".join(f"<li>{escaped(text)}</li>" for text in texts[heading])
        lists += f'<div class="side {kind}"><h2>{heading}</h2><ul>{items}</ul></div>'
    return f'<section class="sides">{lists}</section>'


def _budget(terms: Terms, ledger: StatedLedger | None, told: Sequence[str]) -> Section:
    """Return a release's charges, beside all that a ledger holds."""
    own, cost, lacking = terms.charges, total_of(terms.charges), []
    words = [f"This cost {cost} in all.", *told[1 + len(own) :]]  # its charges are in the table
    if ledger is not None:
        total = cost + ledger.others
        if total != cost:
            words.append(f"With all else in the ledger, {total} is spent.")
        if ledger.limit is None:
            words.append("The ledger has no limit: it counts, and refuses nothing.")
        else:
            words.append(f"The limit is {ledger.limit}; left is {ledger.limit.minus(total)}.")
        if not ledger.complete:
            lacking = ["The ledger given does not hold all charges of this release."]
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
    return Section("What it cost", [*lacking, " ".join(words)], header, rows, warning=bool(lacking))
