"""A card in plain words: what was promised, what left the room and what stayed."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from labeldp._validation import rounded_up
from labeldp.cards.reading import ReadCard
from labeldp.channels import Proof
from labeldp.mechanisms.base import Mechanism
from labeldp.release.numbers import percent, times
from labeldp.release.odds import at_most

__all__ = [
    "delta_of",
    "epsilon_of",
    "headline",
    "left_and_stayed",
    "not_private",
    "plain_words",
    "prior_was_paid_for",
    "proof_of",
    "rows_of",
    "title_of",
]

MOST_ROWS = 10**15
"""Nobody has more labels; a card that says so is not believed."""


def rows_of(card: ReadCard) -> int | None:
    """Return how many labels were used, if the card says a number."""
    rows = card.content.get("rows")
    return rows if type(rows) is int and 0 < rows < MOST_ROWS else None


def title_of(card: ReadCard) -> str:
    """Return what the report is about."""
    name = _file(card).get("name")
    kinds = {
        "mechanism": "A mechanism for private labels",
        "release": "A release of private labels",
        "row-release": "A release of private labels, in rounds",
        "model": "A model trained with private labels",
    }
    return f"Private labels in {name}" if isinstance(name, str) and name else kinds[card.kind]


def _file(card: ReadCard) -> dict[str, Any]:
    found = card.content.get("file")
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=64)
def proof_of(mechanism: Mechanism) -> Proof:
    """Return a mechanism's proof, which for some takes a second, once for all of a page."""
    return mechanism.verify()


def epsilon_of(card: ReadCard) -> float:
    """Return the ε that was paid, or the ε that a mechanism alone is proven to keep."""
    return card.cost.epsilon if card.charges else max(proof_of(m).epsilon for m in card.mechanisms)


def delta_of(card: ReadCard) -> float:
    """Return the δ that was paid, or the δ that a mechanism alone is proven to keep."""
    return card.cost.delta if card.charges else max(proof_of(m).delta for m in card.mechanisms)


def prior_was_paid_for(card: ReadCard, column: int) -> bool:
    """Return whether a column's prior was made from labels, with noise; False if it was public, or is none."""
    return card.kind == "release" and (card.content["priors"][column] or {}).get("source") == "paid for"


def not_private(card: ReadCard) -> str | None:
    """Return why what the card describes is not private, or None where it is."""
    if not card.secure:
        return (
            "NOT PRIVATE: the noise came from a seed. Whoever knows or guesses the seed can take the noise off. "
            "This is for tests and experiments; do not pass it on."
        )
    if math.isinf(epsilon_of(card)):
        return "NOT PRIVATE: every label is released as it is. This is for comparisons, on labels that are public."
    return None


def headline(card: ReadCard) -> list[str]:
    """Return a sentence or two that say it all."""
    rows, epsilon, delta = rows_of(card), epsilon_of(card), delta_of(card)
    spent = f"ε = {rounded_up(epsilon)}" + (f" and δ = {rounded_up(delta, 3)}" if delta else "")
    if not_private(card):
        return ["What this card describes protects nobody."]
    many = f"{rows:,} labels" if rows else "labels"
    return {
        "mechanism": [f"A mechanism that keeps {spent} for every label it randomises. No label was used yet."],
        "release": [f"Noise was added to {many} before they left, for {spent} in all."],
        "row-release": [f"Noise was added to {many} before they left, each row once, for {spent} in all."],
        "model": [f"A model learned from {many} with noise, for {spent} in all."],
    }[card.kind]


def who_saw(card: ReadCard) -> str:
    """Return who saw true labels, as a clause."""
    trust = card.content.get("trust")
    if trust == "local":
        return "nobody saw them: each was randomised on its own"
    return (
        "only the curator, who already held them, saw them"
        if trust == "curator"
        else "only whoever held them saw them"
    )


def plain_words(card: ReadCard) -> list[str]:
    """Return what the guarantee means, for someone who never heard of ε.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.cards.reading import read_any_card
    >>> words = plain_words(read_any_card(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()))
    >>> words[0]
    'Someone who knows all features and sees the released value can raise their odds on any label by at most e^ε =
    2.72×.'
    """
    if reason := not_private(card):
        return [reason]
    epsilon, delta = epsilon_of(card), delta_of(card)
    seen = {"mechanism": "the released value", "model": "the model"}.get(card.kind, "everything that was released")
    people = max((c.rows_per_person for c in card.charges), default=1)
    whose = "any label" if people == 1 else f"all labels of any one person with up to {people} rows"
    knows = "all features" if card.kind == "mechanism" else "all features, and even every other label,"
    lines = [
        f"Someone who knows {knows} and sees {seen} can raise their odds on {whose} by at most "
        f"e^ε = {times(epsilon)}."
    ]
    half, rare = (percent(float(at_most(p, epsilon))) for p in (0.5, 0.01))
    low = percent(float(at_most(0.5, -epsilon)))
    lines.append(
        f"An example: someone thinks it as likely as not, 50 %, that a label lies above some figure. "
        f"After all that was released they can be {half} sure at most, and no less sure than {low}. "
        f"A suspicion of 1 % can become {rare}, no more."
    )
    if delta:
        lines.append(
            f"The guarantee has a second number, δ = {rounded_up(delta, 3)}: the probability of any set of "
            "results may pass the factor e^ε by that much, no more. The odds above leave δ aside."
        )
    lines.append(
        "It holds whatever else that someone knows or will learn, and however much they compute, short of "
        "breaking AES-256. It does not hide what the features tell about a label without this release."
    )
    return lines


def left_and_stayed(card: ReadCard) -> tuple[list[str], list[str]]:
    """Return what left the room and what stayed in it."""
    if card.kind == "mechanism":
        return ["Nothing yet: this card describes what would be done to labels."], ["All labels."]
    rows = rows_of(card)
    many = f"{rows:,}" if rows else "All"
    left = {
        "release": _released(card, many),
        "row-release": [
            f"{many} private labels, each with the interval in which it was told apart and the noise it carries.",
            "What is privately known of all labels: about where they lie, and how far they spread.",
        ],
        "model": [
            f"The model ({_name(card)}), and all that it will predict.",
            "What it was made from, once noise was in it: private labels or noisy sums.",
        ],
    }[card.kind]
    left.append("Public from the start: every feature, the number and order of the rows, and the bounds.")
    if not card.secure:
        return left, ["Nothing, for whoever knows the seed: the noise can be taken off, and the labels are there."]
    words = "drawn from a secure source, used once, never stored"
    if card.kind == "release" and "release" in card.content:
        words = "made from each row's id under a secret of this one release, which is destroyed when it is closed"
    stayed = [f"The true labels: {who_saw(card)}.", f"The random words behind the noise: {words}."]
    if any(prior_was_paid_for(card, k) for k in range(len(card.priors))):
        stayed.append("The exact counts behind the prior; only counts with noise were used.")
    if card.kind != "model":
        stayed.append("Which labels were clipped to the interval, and how far.")
    return left, stayed


def _name(card: ReadCard) -> str:
    return str(card.content.get("model", "a model"))


def _released(card: ReadCard, many: str) -> list[str]:
    file = _file(card)
    column, columns = file.get("column"), len(card.mechanisms)
    where = f" in the column {column}" if isinstance(column, str) else ""
    each = f" in each of {columns} columns" if columns > 1 else ""
    left = [f"{many} private labels{each}{where}."]
    if any(prior is not None for prior in card.priors):
        paid = any(prior_was_paid_for(card, k) for k in range(len(card.priors)))
        left.append("The prior: about where labels lie, " + ("with noise." if paid else "publicly known before."))
    left.append("The mechanism with all its settings: privacy rests on its randomness, not on secrecy.")
    return left
