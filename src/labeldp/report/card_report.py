"""A card as a page: what was done, what it cost, what it protects, and what to expect of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from labeldp._validation import rounded_up
from labeldp.cards import statements as words
from labeldp.cards.reading import ReadCard, read_any_card
from labeldp.files.places import refuse_target
from labeldp.ledger import Charge, Ledger
from labeldp.release.numbers import percent, times
from labeldp.release.odds import at_most
from labeldp.report import plots
from labeldp.report.budget import Spent, budget_html
from labeldp.report.columns import drawn_sections
from labeldp.report.page import assemble, write_page
from labeldp.report.reviewer import file_section, proof_sections
from labeldp.report.section import Section, escaped

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
    refuse_target(os.fspath(path), force=force)
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
    checksum = str(json.loads(card_text)["checksum"])
    said = card.content.get("file")
    about = file_section(dict(said if isinstance(said, dict) else file or {}))
    parts: list[Section | str | None] = [
        _banner(card),
        _tiles(card),
        _plain(card),
        _left_and_stayed(card),
        about,
        budget_html(Spent.of([*card.charges, *besides], ledger)) if card.charges else None,
        *drawn_sections(card),
        *sections,
        *proof_sections(card, checksum),
    ]
    return assemble(words.title_of(card), words.headline(card), [part for part in parts if part])


def _banner(card: ReadCard) -> str | None:
    reason = words.not_private(card)
    return f'<div class="banner" role="alert">{escaped(reason)}</div>' if reason else None


def _tiles(card: ReadCard) -> str | None:
    if words.not_private(card):
        return None
    epsilon, delta = words.epsilon_of(card), words.delta_of(card)
    half = percent(float(at_most(0.5, epsilon)))
    tiles = [(rounded_up(epsilon, 4), "ε, the budget spent" if card.charges else "ε, the budget")]
    if delta:
        tiles.append((rounded_up(delta, 3), "δ, on top"))
    tiles += [
        (times(epsilon), "is the most by which odds can grow"),
        (f"50 % → {half}", "is the most a guess can gain"),
    ]
    if rows := words.rows_of(card):
        tiles.append((f"{rows:,}", "labels"))
    body = "".join(f"<li><b>{escaped(value)}</b>{escaped(name)}</li>" for value, name in tiles)
    return f'<ul class="tiles">{body}</ul>'


def _plain(card: ReadCard) -> Section | None:
    if words.not_private(card):  # the banner says it
        return None
    said = words.plain_words(card)
    figure, alternative = plots.belief(words.epsilon_of(card))
    return Section("In plain words", said, figure=figure, alternative=alternative)


def _left_and_stayed(card: ReadCard) -> str:
    sides = zip(
        ("What left the room", "What stayed"), ("left", "stayed"), words.left_and_stayed(card), strict=True
    )
    lists = ""
    for title, kind, texts in sides:
        items = "".join(f"<li>{escaped(text)}</li>" for text in texts)
        lists += f'<div class="side {kind}"><h2>{title}</h2><ul>{items}</ul></div>'
    return f'<section class="sides">{lists}</section>'
