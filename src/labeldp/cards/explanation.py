"""A card explained: its words under headings, for people who have never heard of ε."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labeldp._validation import rounded_up
from labeldp.cards.expected import domain_of
from labeldp.cards.reading import ReadCard
from labeldp.cards.statements import (
    delta_of,
    epsilon_of,
    headline,
    left_and_stayed,
    not_private,
    plain_words,
    rows_of,
)
from labeldp.release.description import expectations
from labeldp.release.numbers import percent
from labeldp.release.odds import at_most

__all__ = ["Explanation", "explain"]

NEARLY_SURE = 0.99


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a card says, in words.

    Attributes
    ----------
    warnings : tuple of str
        What must be read first; NOT PRIVATE is here.
    sections : dict
        Sentences under headings, in the order to read them in.
    """

    warnings: tuple[str, ...]
    sections: dict[str, tuple[str, ...]]


def explain(card: ReadCard) -> Explanation:
    """Return what a card says, in words.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.cards.reading import read_any_card
    >>> words = explain(read_any_card(ldp.Laplace(bounds=(0, 5), epsilon=1.0).to_json()))
    >>> words.sections["Do"]
    ('Use it once for each label, and charge a ledger for it.',)
    """
    left, stayed = left_and_stayed(card)
    sections = {
        "What was done": headline(card),
        "What it means": ["Nothing is promised to anyone whose label is in it."]
        if not_private(card)
        else plain_words(card),
        "What left": left,
        "What stayed": stayed,
        "What it cost": _cost(card),
        "How noisy it is": _noise(card),
        "Do": _do(card),
        "Do not": _do_not(card),
    }
    kept = {title: tuple(lines) for title, lines in sections.items() if lines}
    return Explanation(tuple(_warnings(card)), kept)


def _warnings(card: ReadCard) -> list[str]:
    if reason := not_private(card):
        return [reason]
    sure = float(at_most(0.5, epsilon_of(card)))
    if sure < NEARLY_SURE:
        return []
    return [
        f"WEAK: at ε = {rounded_up(epsilon_of(card), 4)} a guess of 50 % can become {percent(sure)}. The proof "
        "holds, but what it promises is little."
    ]


def _cost(card: ReadCard) -> list[str]:
    epsilon, delta = epsilon_of(card), delta_of(card)
    if math.isinf(epsilon):
        return ["All privacy there was."]
    amount = f"ε = {rounded_up(epsilon, 9)}" + (f" and δ = {rounded_up(delta, 3)}" if delta else "")
    if card.kind == "mechanism":
        return [f"{amount} for each use, proven. Uses on the same label add up."]
    lines = [f"{amount} in all:", *(f"  {charge}" for charge in card.charges)]
    people = max(c.rows_per_person for c in card.charges)
    return lines if people == 1 else [*lines, f"That covers persons with up to {people:,} rows."]


def _noise(card: ReadCard) -> list[str]:
    if card.kind == "model":
        return ["Its predictions carry the noise already: see private_score, or compare them with public labels."]
    if card.kind == "row-release":
        return [_row_noise(card)]
    lines = []
    for k, mechanism in enumerate(card.mechanisms):
        bounds = card.bounds[k] if card.bounds else domain_of(mechanism)
        name = "" if len(card.mechanisms) == 1 else f"column {k}: "
        if bounds is not None:
            said = expectations(mechanism, card.priors[k], bounds, rows_of(card))
            lines += [_sentence(name + line) for line in said]
    return lines


def _row_noise(card: ReadCard) -> str:
    """Return the noise at its largest: on the whole range between the bounds, at the worst label."""
    low, high = card.bounds[0]
    places = np.linspace(0.0, 1.0, 65)
    try:
        worst = max(float(np.sqrt(m.unbiased_variance(places).max())) for m in card.mechanisms)
    except ValueError:
        return "How noisy each label is stands beside it in the release."
    return (
        f"One private label carries noise of ±{worst * (high - low):.4g} at most; how much each carries stands "
        "beside it in the release."
    )


def _sentence(line: str) -> str:
    return line[:1].upper() + line[1:] + "."


def _do(card: ReadCard) -> list[str]:
    if not_private(card):
        return ["Use it for tests and experiments, with labels that are public or made up."]
    if card.kind == "mechanism":
        return ["Use it once for each label, and charge a ledger for it."]
    if card.kind == "model":
        return ["Use the model as often as you like, and hand it on: predictions cost nothing more."]
    return [
        "Reuse these labels as often as you like: any number of models, searches and plots cost nothing more.",
        "Average over many rows: noise that hides one label cancels out over many. Means and models need the "
        "debiased labels.",
    ]


def _do_not(card: ReadCard) -> list[str]:
    if not_private(card):
        return ["Hand on anything made with it from labels that are private."]
    if card.kind == "mechanism":
        return ["Release the same labels twice: whoever averages the releases sees through the noise."]
    again = "Train again on the same labels" if card.kind == "model" else "Release the same labels again"
    lines = [f"{again} without need: that costs ε again, and the costs add up."]
    if card.kind != "model":
        lines.append("Take one released value for the truth about one row.")
    return [*lines, "Publish the true labels, or anything else made from them without noise, beside it."]
