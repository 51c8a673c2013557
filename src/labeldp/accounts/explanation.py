"""What was done and what it means: the one explanation that summary, terminal, page and report show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from labeldp.accounts.accuracy import describe_largest_noise, describe_noise
from labeldp.accounts.budget import Budget, Charge, rounded_up, total_of, unmatched
from labeldp.accounts.numbers import EXAMPLE, WEAK, is_weak, odds_figures, odds_sentence, whose_labels
from labeldp.accounts.scores import describe_quality
from labeldp.accounts.statistic import origins_of
from labeldp.exact.proof import Proof
from labeldp.mechanisms.base import Mechanism

if TYPE_CHECKING:
    from labeldp.accounts.terms import Terms

SUMMARY = ("What was done", "What it cost", "How noisy it is", "Do not")
"""The headings that a summary shows."""

_TITLES = {
    "mechanism": "A mechanism for private labels",
    "release": "A release of private labels",
    "row-release": "A release of private labels, in rounds",
    "model": "A model trained with private labels",
}
_DONE = {
    "release": "Noise was added to {rows:,} labels before they were released",
    "row-release": "Noise was added to {rows:,} labels before they were released, each row once",
    "model": "A model was trained on {rows:,} labels with noise",
}
_SEEDED = (
    "NOT PRIVATE: the noise came from a seed. Whoever knows or guesses the seed can remove the noise. "
    "This is for tests and experiments only; do not pass it on."
)
_AS_IT_IS = "NOT PRIVATE: every label is released as it is. This is for comparisons, on labels that are public."
_DELTA = (
    "The guarantee has a second number, δ = {delta}: the probability of any set of results may pass the factor "
    "e^ε by that much, no more. The odds above leave δ aside."
)
_WHATEVER = (
    "It holds whatever else someone knows or will learn, and however much they compute, short of breaking "
    "AES-256. It does not hide what the features reveal about a label without this release."
)
_PUBLIC = "Public from the start: every feature, the number and order of the rows, and the bounds."
_OPEN = "The mechanism with all its settings: privacy rests on its randomness, not on secrecy."
_DRAWN = "The randomness behind the noise: drawn from a secure source, used once, never stored."
_CLUSTER = (
    "The randomness behind the noise: derived from each row's id under a secret of this release, which is "
    "destroyed when it is closed."
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a release, a model or a mechanism means, for people who have never heard of ε.

    Attributes
    ----------
    title : str
    budget : Budget
        What odds follow from: what this cost one label, or one person; of a mechanism alone, the cost of each use.
    ledger : Budget or None
        What all that its ledger counts cost together, where that is more.
    private : bool
    warnings : tuple of str
        What must be read first; NOT PRIVATE is here.
    sections : dict
        Sentences under headings, in the order to read them in.
    """

    title: str
    budget: Budget
    ledger: Budget | None
    private: bool
    warnings: tuple[str, ...]
    sections: dict[str, tuple[str, ...]]

    def text(self, headings: Iterable[str] | None = None) -> str:
        """Return the warnings, and all sections or those under ``headings``, as plain text."""
        shown = self.sections if headings is None else [name for name in headings if name in self.sections]
        lines = list(self.warnings)
        for heading in shown:
            lines += [heading, *(f"  {sentence}" for sentence in self.sections[heading])]
        return "\n".join(lines)


@lru_cache(maxsize=64)
def proof_of(mechanism: Mechanism) -> Proof:
    """Return a mechanism's proof, which for some takes a second, once for all that is said of it."""
    return mechanism.verify()


def not_private(terms: Terms) -> str | None:
    """Return why what was done is not private, or None where it is."""
    if not terms.secure:
        return _SEEDED
    return _AS_IT_IS if math.isinf(_budget(terms).epsilon) else None


def explain(
    terms: Terms,
    kind: str = "release",
    about: Mapping[str, Any] | None = None,
    recorded: Sequence[Charge] | None = None,
) -> Explanation:
    """Return what terms mean, in sentences.

    Parameters
    ----------
    terms : Terms
    kind : {"release", "row-release", "model", "mechanism"}
        What they are the terms of; a mechanism that was not used yet has no rows and no charges.
    about : mapping, optional
        Further public entries of the card, such as which file the labels are in.
    recorded : sequence of Charge, optional
        All charges of a ledger, to say what everything in it means.
    """
    about, reason, budget = about or {}, not_private(terms), _budget(terms)
    total = total_of([*terms.charges, *unmatched(recorded or (), terms.charges)])
    ledger = None if recorded is None or total <= budget else total
    worst, is_private = (ledger or budget).epsilon, reason is None
    sections = {
        "What was done": _done(terms, kind, budget, is_private=is_private),
        "What it means": ["Nothing is promised to anyone whose label is in it."],
        "What is released": _released(terms, kind, about),
        "What stays private": _kept(terms, kind, about),
        "What it cost": _cost(terms, budget),
        "How noisy it is": _noise(terms, kind, about),
        "Do": ["Use it for tests and experiments, with labels that are public or synthetic."],
        "Do not": _do_not(kind, is_private=is_private),
    }
    if is_private:
        sections |= {"What it means": _meaning(terms, kind, budget, ledger), "Do": _do(kind, about)}
    weak = [WEAK.format(**odds_figures(worst))] if is_private and is_weak(worst) else []
    name = about.get("file", {}).get("name")
    return Explanation(
        title=f"Private labels in {name}" if name else _TITLES[kind],
        budget=budget,
        ledger=ledger,
        private=is_private,
        warnings=tuple([reason] if reason else weak),
        sections={heading: tuple(lines) for heading, lines in sections.items() if lines},
    )


def _budget(terms: Terms) -> Budget:
    """Return what terms promise; of a mechanism alone, what is proven for each use."""
    return terms.cost if terms.charges else _proven(terms.mechanisms[0])


def _proven(mechanism: Mechanism) -> Budget:
    proof = proof_of(mechanism)
    return Budget(proof.epsilon, proof.delta)


def _who_saw(terms: Terms) -> str:
    """Return who saw labels: a curator who counted them for a prior did, also where trust is local."""
    counted = any(one.statistics for one in origins_of([*terms.priors, *terms.mechanisms]))
    return "only the curator, who already held them," if counted or terms.trust == "curator" else "nobody"


def _done(terms: Terms, kind: str, budget: Budget, *, is_private: bool) -> list[str]:
    scored = ", its score included" if any(one.purpose == "score" for one in terms.charges) else ""
    if not is_private:
        said = (
            f"What was computed from {terms.rows:,} labels protects nobody."
            if terms.rows
            else "It protects nobody."
        )
    elif kind == "mechanism":
        said = f"A mechanism that is private with {budget} for each label. No label was used yet."
    else:
        action = _DONE[kind].format(rows=terms.rows)
        said = f"{action}, for {total_of(terms.charges)} in all{scored}; {_who_saw(terms)} saw the true ones."
    columns: dict[str, list[str]] = {}
    for column, mechanism in enumerate(terms.mechanisms):
        name = f"{type(mechanism).__name__}, with a proof of {_proven(mechanism)}"
        columns.setdefault(name, []).append(str(column))
    if len(columns) > 1 and kind == "release":
        columns = {f"{name} (column {', '.join(which)})": which for name, which in columns.items()}
    verb = " is" if len(columns) == 1 else "s are"
    return [said, f"The mechanism{verb} {'; '.join(columns)}."] if columns else [said]


def _meaning(terms: Terms, kind: str, budget: Budget, ledger: Budget | None) -> list[str]:
    seen = {"mechanism": "the released value", "model": "this model"}.get(kind, "this release")
    knows = "all features" if kind == "mechanism" else "all features, and even every other label,"
    whose, figures = whose_labels(terms.rows_per_person), odds_figures(budget.epsilon)
    second = [_DELTA.format(delta=rounded_up(budget.delta, 3))] if budget.delta else []
    return [
        odds_sentence(budget.epsilon, knows=knows, seen=seen, whose=whose, ledger=ledger),
        EXAMPLE.format(after=f"{seen} alone", **figures),
        *second,
        _WHATEVER,
    ]


def _released(terms: Terms, kind: str, about: Mapping[str, Any]) -> list[str]:
    if kind == "mechanism":
        return ["Nothing yet: this card describes what would be done to labels."]
    if kind == "row-release":
        lines = [
            f"{terms.rows:,} private labels, each with the interval on which it was randomised and its noise.",
            "What is privately known of all labels: about where they lie, and how far they spread.",
        ]
    elif kind == "model":
        summed = any(charge.purpose == "sums" for charge in terms.charges)
        sources = ["sums with noise"] * summed + ["private labels"] * bool(terms.mechanisms)
        lines = [
            f"The model ({about.get('model', 'a model')}), and all that it will predict.",
            f"What it was trained on: {' and '.join(sources)}.",
        ]
        if "quality" in about:
            which = "that this library held out" if terms.split else "said to be held out, which nobody can check"
            lines.append(f"A score, how wrong it is: from sums of errors, with noise, on rows {which}.")
    else:
        each = f" in each of {len(terms.mechanisms)} columns" if len(terms.mechanisms) > 1 else ""
        column = about.get("file", {}).get("column")
        lines = [f"{terms.rows:,} private labels{each}{f' in the column {column}' if column else ''}."]
        if any(terms.priors):
            source = "with noise" if origins_of(terms.priors) else "publicly known before"
            lines.append(f"The prior: about where labels lie, {source}.")
        lines.append(_OPEN)
    return [*lines, _PUBLIC]


def _kept(terms: Terms, kind: str, about: Mapping[str, Any]) -> list[str]:
    if kind == "mechanism":
        return ["All labels."]
    if not terms.secure:
        return ["Nothing, for whoever knows the seed: they can remove the noise and see the labels."]
    is_cluster = kind == "release" and "release" in about  # see labeldp.spark
    lines = [f"The true labels: {_who_saw(terms)} saw them.", _CLUSTER if is_cluster else _DRAWN]
    if any(charge.purpose == "prior" for charge in terms.charges):
        lines.append("The exact counts behind the prior; only counts with noise were used.")
    return lines if kind == "model" else [*lines, "Which labels were clipped to the interval, and how far."]


def _cost(terms: Terms, budget: Budget) -> list[str]:
    if math.isinf(budget.epsilon):
        return ["All privacy there was."]
    if not terms.charges:
        before = [origin.charge.budget for origin in origins_of(terms.mechanisms) if origin.charge is not None]
        once = [f"Its design used a private prior, for {spent} more, once." for spent in before]
        return [f"{budget} for each use, proven. Uses on the same label add up.", *once]
    lines = [f"{total_of(terms.charges)} in all:", *(f"  {charge}" for charge in terms.charges)]
    if terms.split is not None and terms.rows_per_person == 1:
        lines.append(f"This library split the rows, none was used for both: one label costs {budget}.")
    elif terms.split is not None:
        lines.append("A person may have rows on both sides, so both count for everyone.")
    if terms.rows_per_person > 1:
        lines.append(f"That covers persons with up to {terms.rows_per_person:,} rows (group privacy).")
    return lines


def _noise(terms: Terms, kind: str, about: Mapping[str, Any]) -> list[str]:
    if kind == "model":
        score = describe_quality(about.get("quality"), terms.charges)
        measured = f"How wrong it is: {score}." if score else "See private_score, or compare with public labels."
        return ["Its predictions carry the noise already.", measured]
    if kind == "row-release":
        return [describe_largest_noise(terms.mechanisms, terms.bounds[0])]
    known: dict[Any, list[str]] = {}  # a card may have thousands of columns with the same mechanism
    lines = []
    for k, column in enumerate(zip(terms.mechanisms, terms.priors, terms.bounds, strict=False)):
        key = tuple(map(id, column[:2])), column[2]
        if key not in known:
            known[key] = describe_noise(*column, terms.rows)
        where = "" if len(terms.mechanisms) == 1 else f"Column {k}: "
        lines += [where + sentence for sentence in known[key]]
    return lines


def _do(kind: str, about: Mapping[str, Any]) -> list[str]:
    if kind == "mechanism":
        return ["Use it once for each label, and charge a ledger for it."]
    if kind == "model":
        return ["Use the model as often as you like, and hand it on: predictions cost nothing more."]
    unbiased = about.get("file", {}).get("unbiased_column")
    return [
        "Reuse these labels as often as you like: any number of models, searches and plots cost nothing more.",
        "Average over many rows: noise that hides one label cancels out over many. Means and models need "
        + (f"the column {unbiased}." if unbiased else "the debiased labels."),
    ]


def _do_not(kind: str, *, is_private: bool) -> list[str]:
    if kind == "mechanism":
        twice = "Release the same labels twice: whoever averages the releases sees through the noise."
        return [twice if is_private else "Use it on labels that are private."]
    again = "Train again on the same labels" if kind == "model" else "Release the same labels again"
    lines = [f"{again} without need: that would cost again, and the costs add up. Keep this one and reuse it."]
    if not is_private:
        return [*lines, "Hand on anything that was computed with it from private labels."]
    if kind != "model":
        lines.append("Take one released value for the truth about one row.")
    return [*lines, "Publish the true labels, or anything else computed from them without noise, beside it."]


# ---- in a notebook --------------------------------------------------------------------------------------------

_BOX = (
    "font-family:system-ui,sans-serif;line-height:1.45;max-width:60em;padding:.7em 1em;"
    "border:1px solid rgba(128,128,128,.45);border-radius:6px"
)
_WARNING = "border-left:4px solid #c62828;padding-left:.6em;font-weight:600"
_CELL = "text-align:left;padding:.1em 1.2em .1em 0"


def panel(explanation: Explanation, facts: Mapping[str, str], *, code: str = "") -> str:
    """Return a summary as HTML for a notebook: title, warnings, facts, the first section, and the others folded.

    Parameters
    ----------
    explanation : Explanation
    facts : mapping of str to str
        What to show at a glance.
    code : str
        What to show under the title, as code.
    """
    parts = [f'<div style="{_BOX}"><div><b>{escape(explanation.title)}</b></div>']
    if code:
        parts.append(f'<code style="white-space:pre-wrap">{escape(code)}</code>')
    parts += [f'<p style="{_WARNING}">{escape(warning)}</p>' for warning in explanation.warnings]
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal;opacity:.75">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    parts.append(f'<table style="border-collapse:collapse;margin:.5em 0">{rows}</table>')
    for name in [name for name in SUMMARY if name in explanation.sections]:
        lines = map(escape, explanation.sections[name])
        body = "".join(f'<p style="margin:.25em 0;white-space:pre-wrap">{line}</p>' for line in lines)
        folded = f'<details><summary style="cursor:pointer">{escape(name)}</summary>{body}</details>'
        parts.append(body if name == SUMMARY[0] else folded)
    return "".join([*parts, "</div>"])
