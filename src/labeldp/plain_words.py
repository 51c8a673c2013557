"""A card in plain words, for people who have never heard of ε; the command line and the report share them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp.any_card import ReadCard
from labeldp.ledger import Budget
from labeldp.plain_numbers import guess_becomes, odds_factor, percent, printable, times
from labeldp.report_words import expectations

__all__ = [
    "Explanation",
    "explain",
    "guarantee_of",
    "guess_becomes",
    "meaning",
    "odds_factor",
    "percent",
    "printable",
    "times",
    "warnings",
]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a card says, in words.

    Attributes
    ----------
    title : str
    warnings : tuple of str
        What must be read first; NOT PRIVATE is here.
    sections : dict
        Sentences under headings, in the order to read them in.
    """

    title: str
    warnings: tuple[str, ...]
    sections: dict[str, tuple[str, ...]]


def explain(card: ReadCard) -> Explanation:
    """Return what a card says, in words.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.any_card import read_any_card
    >>> words = explain(read_any_card(ldp.Laplace(bounds=(0, 5), epsilon=1.0).to_json()))
    >>> words.title
    'A mechanism: a way to make labels private'
    >>> print(words.sections["What it means"][0])
    Someone who knows all features and all other labels, and sees one released value, can raise their odds on
    any label by at most e^1 ≈ 2.7×: a guess of 50 % can become 73 % at most.
    """
    titles = {
        "mechanism": "A mechanism: a way to make labels private",
        "release": "A release of private labels",
        "row-release": "A release of private labels, made in rounds for a learner",
        "model": "A private model",
    }
    sections = {
        "What was done": _done(card),
        "What it means": meaning(card),
        "What left": _left(card),
        "What stayed": _stayed(card),
        "What is public": _public(card),
        "What it cost": _cost(card),
        "How noisy it is": _noise(card),
        "Do": _do(card),
        "Do not": _do_not(card),
    }
    kept = {title: tuple(lines) for title, lines in sections.items() if lines}
    return Explanation(titles[card.kind], tuple(warnings(card)), kept)


# ---- what must be read first ------------------------------------------------------------------------


def warnings(card: ReadCard) -> list[str]:
    """Return what must be read before anything else."""
    if not card.secure:
        return [
            "NOT PRIVATE: the noise came from a seed. Whoever knows or guesses the seed can take it off again. "
            "For tests and experiments only."
        ]
    budget = guarantee_of(card)
    if math.isinf(budget.epsilon):
        return ["NOT PRIVATE: labels are released as they are, without any noise."]
    if guess_becomes(budget) >= 0.99:
        return [
            f"WEAK: at epsilon = {budget.epsilon:.4g} a guess of 50 % can become {percent(guess_becomes(budget))}."
            " The proof holds, but what it promises is little."
        ]
    return []


def meaning(card: ReadCard) -> list[str]:
    """Return what the guarantee means for one person."""
    budget = guarantee_of(card)
    if not _private(card):
        return ["Nothing is promised to anyone whose label is in here."]
    sees = {"mechanism": "one released value", "model": "the model"}.get(card.kind, "all that was released")
    people = max((c.rows_per_person for c in card.charges), default=1)
    whose = "any label" if people == 1 else f"all labels of a person with up to {people:,} rows"
    who = f"Someone who knows all features and all other labels, and sees {sees},"
    bound = f"e^{budget.epsilon:.4g} ≈ {times(odds_factor(budget))}"
    chance = percent(guess_becomes(budget))
    if budget.delta:
        first = (
            f"{who} cannot make any conclusion on {whose} likelier by more than {bound} and a chance of "
            f"{budget.delta:.3g} on top (delta): of two labels that seemed equally likely, they name the right "
            f"one {chance} of the time at most."
        )
    else:
        first = (
            f"{who} can raise their odds on {whose} by at most {bound}: a guess of 50 % can become {chance} at "
            "most."
        )
    return [
        first,
        "This holds whatever else they know or do, now or later. It does not stop anyone from guessing a label "
        "from its features: what is true of everyone alike is no secret of one.",
    ]


# ---- the sections ---------------------------------------------------------------------------------


def guarantee_of(card: ReadCard) -> Budget:
    """Return what the card's guarantee is: what was paid, or what one use of a mechanism would cost."""
    if card.charges:
        return card.cost
    proof = card.mechanisms[0].verify()
    return Budget(float(card.mechanisms[0].epsilon), proof.delta)


def _rows(card: ReadCard) -> int:
    return int(card.content["rows"])


def _names(card: ReadCard) -> str:
    return " and ".join(sorted({type(m).__name__ for m in card.mechanisms}))


def _done(card: ReadCard) -> list[str]:
    if card.kind == "mechanism":
        return [f"{_names(card)} is described here, and was not used yet: each use costs what is said below."]
    if card.kind == "model":
        what = printable(card.content.get("model", "A model"))
        return [f"{what} was trained on {_rows(card):,} rows. It saw their labels only through noise."]
    columns = (
        f" in each of {len(card.mechanisms)} columns" if card.kind == "release" and len(card.bounds) > 1 else ""
    )
    kind = "private" if card.secure else "noisy"
    lines = [f"{_rows(card):,} labels{columns} were replaced by {kind} ones, each once, by {_names(card)}."]
    if card.kind == "row-release":
        lines.append(
            f"It took {printable(card.content.get('rounds', 'several'))} rounds; each row was in one of them."
        )
    return lines


def _left(card: ReadCard) -> list[str]:
    if card.kind == "mechanism":
        return [
            "Nothing: this card holds no labels, and nothing that was made from labels unless its maker did so."
        ]
    if card.kind == "model":
        inside = (
            " Private labels are inside it, too." if card.content.get("model") == "LabelReleaseRegressor" else ""
        )
        return [f"The model, with all its parts, and this card.{inside}"]
    kind = "private" if card.secure else "noisy"
    lines = [f"One {kind} label for each of {_rows(card):,} rows, and this card."]
    if any(prior is not None for prior in card.priors):
        lines.append("A rough picture of where all labels lie (the prior): noisy if it was paid for, else public.")
    if card.kind == "row-release":
        lines.append("The noisy mean of all labels, where it was paid for, and the interval of each row.")
    file = card.content.get("file")
    if isinstance(file, dict):
        column = f", column {printable(file['column'])}" if "column" in file else ""
        lines.append(f"The labels are in the file {printable(file.get('name', 'without a name'))}{column}.")
    return lines


def _stayed(card: ReadCard) -> list[str]:
    if card.kind == "mechanism":
        return []
    if card.content.get("trust") == "local":
        return ["The true labels, with those whom they belong to: nobody collected them."]
    return [
        "The true labels, with the curator who ran this. The promise is about what left; a copy of the true "
        "labels that someone kept is not covered by it."
    ]


def _public(card: ReadCard) -> list[str]:
    if card.kind == "mechanism":
        return ["All on this card. Its bounds must have been chosen without looking at the labels."]
    pairs = " and ".join(f"{low:.6g} to {high:.6g}" for low, high in card.bounds)
    shuffled = isinstance(card.content.get("file"), dict) and card.content["file"].get("shuffled") is True
    order = "the number of rows (their order was shuffled)" if shuffled else "the number and order of rows"
    return [
        f"Features, {order}, whether a label is missing, the bounds ({pairs}), and all on this card. "
        "None of it is protected."
    ]


def _cost(card: ReadCard) -> list[str]:
    if card.kind == "mechanism":
        proofs = [m.verify() for m in card.mechanisms]
        if math.isinf(proofs[0].epsilon):
            return ["All privacy there was."]
        delta = f" and delta = {proofs[0].delta:.3g}" if proofs[0].delta else ""
        return [f"Proven for one use: epsilon = {proofs[0].epsilon:.9g}{delta}. Uses on the same label add up."]
    delta = f" and delta = {card.cost.delta:.3g}" if card.cost.delta else ""
    lines = [f"epsilon = {card.cost.epsilon:.6g}{delta} in all:"]
    lines += [f"  {c.budget.epsilon:.6g} for {printable(c.what)}" for c in card.charges]
    people = max(c.rows_per_person for c in card.charges)
    if people > 1:
        lines.append(f"That covers persons with up to {people:,} rows.")
    return lines


def _noise(card: ReadCard) -> list[str]:
    if card.kind == "model":
        return ["Its predictions carry the noise already: compare them with private_score or on public data."]
    if card.kind == "row-release":
        return [_row_noise(card)]
    lines = []
    for k, mechanism in enumerate(card.mechanisms):
        bounds = card.bounds[k] if card.bounds else _domain(mechanism)
        rows = None if card.kind == "mechanism" else _rows(card)
        name = "" if len(card.mechanisms) == 1 else f"column {k}: "
        if bounds is not None:
            lines += [_sentence(name + line) for line in expectations(mechanism, card.priors[k], bounds, rows)]
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


def _domain(mechanism: Any) -> tuple[float, float] | None:
    low, high = getattr(mechanism.channel, "low", None), getattr(mechanism.channel, "high", None)
    return None if low is None or high is None else (float(low), float(high))


def _sentence(line: str) -> str:
    return line[:1].upper() + line[1:] + "."


def _private(card: ReadCard) -> bool:
    return card.secure and math.isfinite(guarantee_of(card).epsilon)


def _do(card: ReadCard) -> list[str]:
    if not _private(card):
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
    if not _private(card):
        return ["Hand on anything made with it from labels that are private."]
    if card.kind == "mechanism":
        return ["Release the same labels twice: whoever averages the releases sees through the noise."]
    again = "Train again on the same labels" if card.kind == "model" else "Release the same labels again"
    lines = [f"{again} without need: that costs epsilon again, and the costs add up."]
    if card.kind != "model":
        lines.append("Take one released value for the truth about one row.")
    return [*lines, "Publish the true labels, or anything else made from them without noise, beside it."]
