"""A card as a page: what was done, what it cost, what it protects, and what to expect of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from labeldp.any_card import ReadCard, read_any_card
from labeldp.ledger import Ledger
from labeldp.report import plots, words
from labeldp.report.budget import Spent, budget_html
from labeldp.report.expected import Expected, domain_of
from labeldp.report.odds import at_most, percent, times
from labeldp.report.page import assemble, refuse_overwriting, write_page
from labeldp.report.reviewer import file_section, proof_sections
from labeldp.report.section import Section, escaped

__all__ = ["render_report", "write_report"]

MOST = 4
"""Label columns, or parts of a release in rounds, that are drawn; the proof lists all."""

Part = Section | str


def write_report(
    path: str | os.PathLike[str],
    card_text: str,
    *,
    file: Mapping[str, Any] | None = None,
    ledger: Ledger | None = None,
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
    refuse_overwriting(path, force=force)
    write_page(path, render_report(card_text, file=file, ledger=ledger, sections=extra), force=force)


def render_report(
    card_text: str,
    *,
    file: Mapping[str, Any] | None = None,
    ledger: Ledger | None = None,
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
    parts: list[Part | None] = [
        _banner(card),
        _tiles(card),
        _plain(card),
        _left_and_stayed(card),
        about,
        budget_html(Spent.of(card.charges, ledger)) if card.charges else None,
        *_drawn(card),
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
    tiles = [(f"{epsilon:.4g}", "ε, the budget spent" if card.charges else "ε, the budget")]
    if delta:
        tiles.append((f"{delta:.3g}", "δ, on top"))
    tiles += [
        (times(epsilon), "is the most by which odds can grow"),
        (f"50 % → {half}", "is the most a guess can gain"),
    ]
    if rows := words.rows_of(card):
        tiles.append((f"{rows:,}", "labels"))
    body = "".join(f"<li><b>{escaped(value)}</b>{escaped(name)}</li>" for value, name in tiles)
    return f'<ul class="tiles">{body}</ul>'


def _plain(card: ReadCard) -> Section:
    said = words.plain_words(card)
    if words.not_private(card):
        return Section("In plain words", said, warning=True)
    figure, alternative = plots.belief(words.epsilon_of(card))
    return Section("In plain words", said, figure=figure, alternative=alternative)


def _left_and_stayed(card: ReadCard) -> str:
    sides = zip(
        ("What left the room", "What stayed"), ("left", "stayed"), words.left_and_stayed(card), strict=True
    )
    lists = "".join(
        f'<div class="side {kind}"><h2>{title}</h2><ul>{"".join(f"<li>{escaped(t)}</li>" for t in texts)}</ul></div>'
        for title, kind, texts in sides
    )
    return f'<section class="sides">{lists}</section>'


def _drawn(card: ReadCard) -> list[Section]:
    """Return the figures of each label column, or of each of the first parts of a release in rounds."""
    several, drawn = len(card.mechanisms) > 1, []
    for k in range(min(len(card.mechanisms), MOST)):
        kind = "part" if card.kind == "row-release" else "column"
        drawn += _column(card, k, f", {kind} {k + 1} of {len(card.mechanisms)}" if several else "")
    return drawn


def _column(card: ReadCard, k: int, which: str) -> list[Section]:
    mechanism = card.mechanisms[k]
    if domain_of(mechanism) is None:
        return []
    in_rounds = card.kind == "row-release"
    prior = card.priors[k] if card.priors else None
    bounds = domain_of(mechanism) if in_rounds else card.bounds[k] if card.bounds else domain_of(mechanism)
    if bounds is None:
        return []
    place = " (a place in its interval, from 0 to 1)" if in_rounds else ""
    sections = []
    if prior is not None:
        figure, alternative = plots.prior_and_interval(prior, mechanism)
        paid = any(c.what.startswith("prior") for c in card.charges)
        sections.append(
            Section(
                f"Where labels lie: the prior{which}",
                _about_prior(paid, alternative),
                figure=figure,
                alternative=alternative,
            )
        )
    labels = plots.few_labels(mechanism, prior, bounds)
    figure, alternative = plots.channel(mechanism, labels, "released value" if not in_rounds else "released place")
    name = type(mechanism).__name__
    sections.append(
        Section(
            f"What a label becomes{which}",
            [
                f"{name}{place}. Each line is one true label, marked by its triangle where values are many. What is "
                "released for one label could have been released for any other, and nearly as likely: the "
                f"curves differ by at most {times(mechanism.verify().epsilon)} anywhere.",
            ],
            figure=figure,
            alternative=alternative,
        )
    )
    figure, alternative = plots.noise(mechanism, bounds)
    sections.append(
        Section(f"The noise a label carries{which}", [alternative], figure=figure, alternative=alternative)
    )
    rows = words.rows_of(card)
    if rows and not in_rounds:
        sections.append(_errors(Expected.of(mechanism, prior, bounds), rows, which))
    return sections


def _about_prior(paid: bool, alternative: str) -> list[str]:
    source = (
        "A histogram of the labels, with noise, paid for out of the budget."
        if paid
        else "What was publicly known about the labels; it cost nothing."
    )
    return [
        source,
        alternative,
        "Labels outside the interval count as its nearer end: less range needs less noise.",
    ]


def _errors(expected: Expected, rows: int, which: str) -> Section:
    figure, alternative = plots.error_of_means(expected, rows)
    steps = [many for many in (1, 100, 10_000, 1_000_000) if many < rows] + [rows]
    table = [
        [f"{many:,}", f"±{float(expected.of_mean(many)):.4g}", f"±{float(expected.by_chance(many)):.4g}"]
        for many in steps
    ]
    known = "by the prior" if expected.by_prior else "if labels lie anywhere in the bounds"
    kind = "unbiased private labels" if expected.unbiased else "released values, which are biased by design"
    return Section(
        f"What to expect: errors predicted{which}",
        [
            f"Of {kind}, {known}. One of them says little about its true label. Noise averages out over many"
            + (f"; a bias of {expected.bias:.3g} stays." if abs(expected.bias) > 1e-9 * expected.spread else "."),
            "Chance alone is the error of a mean of as many true labels drawn at random: what nobody can avoid.",
        ],
        header=["labels in the mean", "error privacy adds", "chance alone"],
        rows=table,
        figure=figure,
        alternative=alternative,
    )
