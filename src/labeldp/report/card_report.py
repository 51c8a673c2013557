"""A card as a page: what was done, what it cost, what it protects, and what to expect of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labeldp._validation import rounded_up
from labeldp.cards.reading import read_any_card
from labeldp.ledger import Charge, Ledger
from labeldp.release.explanation import Explanation
from labeldp.release.numbers import at_most, percent, times
from labeldp.release.terms import Terms
from labeldp.report.budget_bar import budget_html
from labeldp.report.column_figures import column_sections
from labeldp.report.figures import COLOURS, DASHES, SOFT, blank, legend
from labeldp.report.page import Section, assemble, escaped, refuse_page, write_page
from labeldp.report.reviewer import file_section, proof_sections

__all__ = ["render_report", "write_report"]


def write_report(
    path: str | os.PathLike[str],
    card_text: str,
    *,
    file: Mapping[str, Any] | None = None,
    ledger: Ledger | None = None,
    besides: Sequence[Charge] = (),
    extra: Sequence[Section] = (),
    force: bool = False,
) -> None:
    """Write the report of a card: one HTML file, whole or not at all.

    Parameters
    ----------
    path : path
    card_text : str
        The card of a mechanism, a release or a model.
    file : mapping, optional
        What to say about the file that the labels are in, where the card does not say it.
    ledger : Ledger, optional
        Shows what else was spent on these labels, and what is left.
    besides : sequence of Charge
        What was paid for together with it and is not on the card, such as a model's score.
    extra : sequence of Section
        Further parts, shown after what the card tells.
    force : bool
        Whether to replace a file.

    Raises
    ------
    ParameterError
        If there is a file already.
    CardError, PrivacyProofError
        If the card does not hold.
    """
    refuse_page(path, force=force)
    page = render_report(card_text, file=file, ledger=ledger, besides=besides, sections=extra)
    write_page(path, page, force=force)


def render_report(
    card_text: str,
    *,
    file: Mapping[str, Any] | None = None,
    ledger: Ledger | None = None,
    besides: Sequence[Charge] = (),
    sections: Sequence[Section] = (),
) -> str:
    """Return the report of a card, as HTML; see `write_report`.

    Examples
    --------
    >>> import labeldp as ldp
    >>> page = render_report(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json())
    >>> "at most e^ε = 2.72×" in page, page.count("<svg")
    (True, 3)
    """
    card = read_any_card(card_text, allow_no_privacy=True)
    explanation, terms = card.explain(), card.terms
    said = explanation.sections
    entry = card.content.get("file")
    parts: list[Section | str | None] = [
        *(_warning(warning, alarm=not explanation.private) for warning in explanation.warnings),
        _tiles(explanation, terms),
        _meaning(explanation),
        _sides(said, {"What left": "open", "What stayed": "safe"}),
        file_section(dict(entry if isinstance(entry, dict) else file or {})),
        budget_html([*terms.charges, *besides], ledger) if terms.charges else None,
        Section("How noisy it is", said["How noisy it is"]) if "How noisy it is" in said else None,
        *column_sections(card),
        _sides(said, {"Do": "safe", "Do not": "open"}),
        *sections,
        *proof_sections(card, str(json.loads(card_text)["checksum"])),
    ]
    return assemble(explanation.title, said["What was done"], [part for part in parts if part])


def _warning(text: str, *, alarm: bool) -> str:
    return f'<div class="{"banner" if alarm else "banner weak"}" role="alert">{escaped(text)}</div>'


def _tiles(explanation: Explanation, terms: Terms) -> str | None:
    if not explanation.private:
        return None
    epsilon, delta = explanation.budget.epsilon, explanation.budget.delta
    half = percent(float(at_most(0.5, epsilon)))
    tiles = [
        (rounded_up(epsilon, 4), "ε, the budget spent" if terms.charges else "ε, the budget"),
        *([(rounded_up(delta, 3), "δ, on top")] if delta else []),
        (times(epsilon), "is the most by which odds can grow"),
        (f"50 % → {half}", "is the most a guess can gain"),
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


def _sides(said: Mapping[str, Sequence[str]], headings: Mapping[str, str]) -> str:
    """Return lists beside each other, under headings with the class of each."""
    lists = ""
    for heading, kind in headings.items():
        items = "".join(f"<li>{escaped(text)}</li>" for text in said[heading])
        lists += f'<div class="side {kind}"><h2>{heading}</h2><ul>{items}</ul></div>'
    return f'<section class="sides">{lists}</section>'
