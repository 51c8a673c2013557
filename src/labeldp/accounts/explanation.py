"""What was done and what it means: the one explanation that summary, terminal, page and report show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labeldp._values import Data
from labeldp.accounts.accuracy import describe_noise
from labeldp.accounts.budget import Budget, rounded_up, total_of
from labeldp.accounts.numbers import EXAMPLE, WEAK, is_weak, number, odds_figures, odds_sentence, whose_labels
from labeldp.accounts.scores import describe_quality
from labeldp.accounts.statistic import origins_of, proven_cost

if TYPE_CHECKING:
    from labeldp.accounts.terms import Terms

SUMMARY = ("What was done", "What the owner says", "What it cost", "How noisy it is", "Do not")
"""The headings that a summary shows."""

Sections = dict[str, list[str]]

_TITLES = {
    "mechanism": "A mechanism for private labels",
    "release": "A release of private labels",
    "row-release": "A release of private labels, in rounds",
    "model": "A model trained with private labels",
    "regression": "A regression table of {label}",
}
_SEEN = {"mechanism": "the released value", "model": "this model", "regression": "this table"}
_DONE = {
    "release": "Noise was added to {rows:,} labels before they were released",
    "row-release": "Noise was added to {rows:,} labels before they were released, each row once",
    "model": "A model was trained on {rows:,} labels with noise",
    "regression": "Coefficients were estimated from sums over {rows:,} labels, with noise",
}
_SEEDED = (
    "NOT PRIVATE: the noise came from a seed. Whoever knows or guesses the seed can remove the noise. "
    "This is for tests and experiments only; do not pass it on."
)
_DELTA = (
    "The guarantee has a second number, δ = {delta}: the probability of any set of results may pass the factor "
    "e^ε by that much, no more. The odds above leave δ aside."
)
_WHATEVER = (
    "It holds whatever else someone knows or will learn, and however much they compute, short of breaking "
    "AES-256. It does not hide what the features reveal about a label without this release."
)
_PUBLIC = "Public from the start: {columns}, {rows}, and the bounds."
_OPEN = "The mechanism with all its settings: privacy rests on its randomness, not on secrecy."
_DRAWN = "The randomness behind the noise: drawn from a secure source, used once, never stored."
_CLUSTER = (
    "The randomness behind the noise: derived from each row's id under a secret of this release, which is "
    "destroyed when it is closed."
)
_AGAIN = "{again} without need: that would cost again, and the costs add up. Keep this one and reuse it."
_NOT_SCORED = "A private score says how wrong they are, for more budget: labeldp fit --score, or fit_and_score."
_BESIDE_LABEL = "How noisy each label is stands beside it in the release."
_ONE_ROW = "Take one released value for the truth about one row."
_BESIDE = "Publish the true labels, or anything else computed from them without noise, beside it."
_CLIPPED = (
    "Labels below {low} or above {high} were moved there before noise: means of groups with very low or very high "
    "labels are pulled towards the middle, however many rows they have."
)
_REUSE = "Reuse the noisy labels as often as you like: any number of models, searches and plots cost nothing more."
_AVERAGE = (
    "Average over many rows: noise that hides one label cancels out over many. Means and models need {unbiased}."
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


def not_private(terms: Terms) -> str | None:
    """Return why what was done is not private, or None where it is."""
    return None if terms.secure else _SEEDED


def explain(
    terms: Terms,
    kind: str = "release",
    about: Data | None = None,
    others: Budget | None = None,
) -> Explanation:
    """Return what terms mean, in sentences.

    Parameters
    ----------
    terms : Terms
    kind : {"release", "row-release", "model", "mechanism"}
        What they are the terms of; a mechanism that was not used yet has no rows and no charges.
    about : mapping, optional
        Further public entries of the card, such as which file the labels are in.
    others : Budget, optional
        What else was charged to its ledger, to say what everything in it means.
    """
    about, budget = about or {}, _budget(terms)
    kind = "regression" if "regression" in about else kind
    ledger = None
    if others is not None:
        total = total_of(terms.charges) + others
        ledger = None if total <= budget else total
    meaning = _meaning(terms, kind, budget, ledger)
    is_used = kind != "mechanism"
    sections = _sections(terms, kind, about, meaning) if is_used else _unused_sections(terms, budget, meaning)
    worst = (ledger or budget).epsilon
    warnings = [WEAK.format(**odds_figures(worst))] if is_weak(worst) else []
    reason = not_private(terms)
    if reason is not None:
        warnings = [reason]
        sections |= _sections_without_privacy(sections)
    name = about.get("file", {}).get("name")
    return Explanation(
        title=f"Private labels in {name}"
        if name
        else _TITLES[kind].format(label=about.get("label", "private labels")),
        budget=budget,
        ledger=ledger,
        private=reason is None,
        warnings=tuple(warnings),
        sections={heading: tuple(lines) for heading, lines in sections.items() if lines},
    )


def _budget(terms: Terms) -> Budget:
    """Return what terms promise; of a mechanism alone, what is proven for each use."""
    return terms.cost if terms.charges else proven_cost(terms.mechanisms[0])


def _unused_sections(terms: Terms, budget: Budget, meaning: list[str]) -> Sections:
    """Return what a mechanism means that was not used yet."""
    paid = [origin.charge.budget for origin in origins_of(terms.mechanisms) if origin.charge is not None]
    designed = [f"Its design used a private prior, for {spent} more, once." for spent in paid]
    done = f"A mechanism that is private with {budget} for each label. No label was used yet."
    return {
        "What was done": [done, *_mechanism_names(terms)],
        "What it means": meaning,
        "What is released": ["Nothing yet: this card describes what would be done to labels."],
        "What stays private": ["All labels."],
        "What it cost": [f"{budget} for each use, proven. Uses on the same label add up.", *designed],
        "How noisy it is": _noise(terms),
        "Do": ["Use it once for each label, and charge a ledger for it."],
        "Do not": ["Release the same labels twice: whoever averages the releases sees through the noise."],
    }


def _sections(terms: Terms, kind: str, about: Data, meaning: list[str]) -> Sections:
    """Return what a release or a model means."""
    scored = ", its score included" if terms.charges_for("score") else ""
    counted = any(one.statistics for one in origins_of([*terms.priors, *terms.mechanisms]))
    is_curated = counted or terms.trust == "curator"  # who counts labels for a prior sees them
    who = "only the curator, who already held them," if is_curated else "nobody"
    action = _DONE[kind].format(rows=terms.rows)
    done = f"{action}, for {total_of(terms.charges)} in all{scored}; {who} saw the true ones."
    is_cluster = kind == "release" and "release" in about  # see labeldp.spark
    kept = [f"The true labels: {who} saw them.", _CLUSTER if is_cluster else _DRAWN]
    if terms.charges_for("prior"):
        kept.append("The exact counts behind the prior; only counts with noise were used.")
    if kind == "regression":
        released = ["The table: coefficients with standard errors, intervals and p-values, and its notes."]
        noise = ["Standard errors, intervals and p-values include the noise."]
        do = ["Publish the table, and predict with it: that costs nothing more."]
        do_not = [_AGAIN.format(again="Estimate another table from the same labels")]
    elif kind == "model":
        released = _released_model(terms, about)
        score = describe_quality(about.get("quality"), terms.charges)
        measured = f"How wrong it is: {score}." if score else _NOT_SCORED
        noise = ["Its predictions carry the noise already.", measured]
        do = ["Use the model as often as you like, and hand it on: predictions cost nothing more."]
        do_not = [_AGAIN.format(again="Train again on the same labels")]
    else:
        kept.append("Which labels were clipped to the interval, and how far.")
        released = _released_labels(terms, kind, about)
        noise = [_BESIDE_LABEL] if kind == "row-release" else [*_noise(terms), *describe_clipping(terms)]
        column = about.get("file", {}).get("unbiased_column")
        do = [_REUSE, _AVERAGE.format(unbiased=f"the column {column}" if column else "the debiased labels")]
        do_not = [_AGAIN.format(again="Release the same labels again"), _ONE_ROW]
    columns = "the other columns of the file" if "columns" in about.get("file", {}) else "every feature"
    return {
        "What was done": [done, *_mechanism_names(terms)],
        "What the owner says": _statements(terms),
        "What it means": meaning,
        "What is released": [*released, _PUBLIC.format(columns=columns, rows=public_rows(about))],
        "What stays private": kept,
        "What it cost": _cost(terms),
        "How noisy it is": noise,
        "Do": do,
        "Do not": [*do_not, _BESIDE],
    }


def public_rows(about: Data) -> str:
    """Return what is public of the rows; where they were put in random order, the order of the source is not."""
    if about.get("file", {}).get("row_order") == "shuffled":
        return "the number of the rows (which are in random order)"
    return "the number and order of the rows"


def _sections_without_privacy(sections: Sections) -> Sections:
    """Return the sections that say something else where nothing is protected."""
    return {
        "What was done": ["This protects nobody.", *sections["What was done"][1:]],
        "What it means": ["Nothing is promised to anyone whose label is in it."],
        "What stays private": ["Nothing: whoever knows the seed can remove the noise."],
        "Do": ["Use it for tests and experiments, with labels that are public or synthetic."],
        "Do not": ["Use it on labels that are private, or hand on what was computed from such labels."],
    }


def _mechanism_names(terms: Terms) -> list[str]:
    proven = [f"{type(one).__name__}, with a proof of {proven_cost(one)}" for one in terms.mechanisms]
    names = list(dict.fromkeys(proven))
    if not names:
        return []
    return [f"The mechanism{' is' if len(names) == 1 else 's are'} {'; '.join(names)}."]


def _statements(terms: Terms) -> list[str]:
    said = terms.declaration
    named = {"Purpose": said.purpose, "Recipient": said.recipient, "Why these bounds": said.bounds_reason}
    return [f"{name}: {text}" for name, text in named.items() if text]


def _meaning(terms: Terms, kind: str, budget: Budget, ledger: Budget | None) -> list[str]:
    seen = _SEEN.get(kind, "this release")
    knows = "all features" if kind == "mechanism" else "all features, and even every other label,"
    whose, figures = whose_labels(terms.rows_per_person), odds_figures(budget.epsilon)
    second = [_DELTA.format(delta=rounded_up(budget.delta, 3))] if budget.delta else []
    return [
        odds_sentence(budget.epsilon, knows=knows, seen=seen, whose=whose, ledger=ledger),
        EXAMPLE.format(after=f"{seen} alone", **figures),
        *second,
        _WHATEVER,
    ]


def _labels(terms: Terms) -> str:
    """Return what private labels are called: those of a transform are not in the label's unit."""
    return "private labels" if terms.transform is None else f"private labels, {terms.transform} of the true ones"


def _released_labels(terms: Terms, kind: str, about: Data) -> list[str]:
    if kind == "row-release":
        return [
            f"{terms.rows:,} {_labels(terms)}, each with the interval on which it was randomised and its noise.",
            "What is privately known of all labels: about where they lie, and how far they spread.",
        ]
    count, column = len(terms.mechanisms), about.get("file", {}).get("column")
    each = f" in each of {count} columns" if count > 1 else ""
    lines = [f"{terms.rows:,} private labels{each}{f' in the column {column}' if column else ''}."]
    if any(terms.priors):
        source = "with noise" if origins_of(terms.priors) else "publicly known before"
        lines.append(f"The prior: about where labels lie, {source}.")
    return [*lines, _OPEN]


def _released_model(terms: Terms, about: Data) -> list[str]:
    sources = ["sums with noise"] * bool(terms.charges_for("sums")) + [_labels(terms)] * bool(terms.mechanisms)
    lines = [
        f"The model ({about.get('model', 'a model')}), and all that it will predict.",
        f"What it was trained on: {' and '.join(sources)}.",
    ]
    if terms.transform is not None:
        lines.append(f"It learned {terms.transform} of the label; its predictions are in the label's own unit.")
    if "quality" in about:
        which = "that this library held out" if terms.split else "said to be held out, which nobody can check"
        lines.append(f"A score, how wrong it is: from sums of errors, with noise, on rows {which}.")
    return lines


def _cost(terms: Terms) -> list[str]:
    people = terms.rows_per_person
    lines = [f"{total_of(terms.charges)} in all:", *(f"  {charge}" for charge in terms.charges)]
    if terms.split is not None and people == 1:
        lines.append(f"This library split the rows, none was used for both: one label costs {terms.cost}.")
    elif terms.split is not None:
        lines.append("A person may have rows on both sides, so both count for everyone.")
    if people > 1:
        lines.append(f"That covers persons with up to {people:,} rows (group privacy).")
    return lines


def describe_clipping(terms: Terms) -> list[str]:
    """Return what clipping to less than the bounds does to groups, for each column where it does."""
    lines = []
    for k, (mechanism, bounds) in enumerate(zip(terms.mechanisms, terms.bounds, strict=False)):
        low, high = mechanism.domain
        if (low, high) != bounds and getattr(mechanism, "outside", None) != "uniform":
            where = "" if len(terms.mechanisms) == 1 else f"Column {k}: "
            lines.append(where + _CLIPPED.format(low=number(low), high=number(high)))
    return lines


def _noise(terms: Terms) -> list[str]:
    known: dict[Any, list[str]] = {}  # a card may have thousands of columns with the same mechanism
    lines = []
    for k, column in enumerate(zip(terms.mechanisms, terms.priors, terms.bounds, strict=False)):
        key = tuple(map(id, column[:2])), column[2]
        if key not in known:
            known[key] = describe_noise(*column, terms.rows)
        where = "" if len(terms.mechanisms) == 1 else f"Column {k}: "
        lines += [where + sentence for sentence in known[key]]
    return lines
