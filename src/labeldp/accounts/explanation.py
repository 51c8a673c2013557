"""The one explanation of a release that summary, terminal, page and report show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from labeldp._values import Data
from labeldp.accounts.accuracy import clipping_sentence, noise_sentence
from labeldp.accounts.agreement import cost_of_statistics
from labeldp.accounts.budget import Budget, rounded_up
from labeldp.accounts.numbers import EXAMPLE, WEAK, is_weak, number, odds_figures, times
from labeldp.accounts.scores import describe_quality
from labeldp.accounts.statistic import describe_proof, origins_of, proof_of

if TYPE_CHECKING:
    from labeldp.accounts.terms import Terms

SUMMARY = ("What was done", "What the owner says", "What it cost", "How noisy it is", "Do", "Do not")
"""The headings that a summary shows."""


class Wording(NamedTuple):
    """The texts for one kind of card."""

    title: str
    output: str
    done: str
    released: str
    noise: str
    do: str
    do_not: str
    has_model: bool = False


_IN_ALL = " in all:"
_ONCE = " without need: that would cost again, and the costs add up."
_ONE_VALUE = "Take one released value for the truth about one row"
_LABELS = Wording(
    title="A release of private labels",
    output="this release",
    done="Noise was added to {rows:,} labels before they were released",
    released="{rows:,} private labels, and the mechanism with all its settings: privacy rests on its randomness.",
    noise="",
    do="Train any model that learns a mean on them: least squares, trees or networks. Reuse costs nothing more.",
    do_not=f"Compute medians or quantiles from them, or absolute errors. {_ONE_VALUE}. Cut off values that lie "
    f"outside the bounds, even below 0. Release the same labels again{_ONCE}",
)
_POSTERIOR_MEANS = _LABELS._replace(
    done="A model was fitted to noisy sums and noisy values of {rows:,} labels. Each released label is the mean "
    "that the model and its own noisy value give",
    released="{rows:,} labels to train on, which follow from noisy sums and values by a model of {features}.",
    noise="The released labels are smoother than true ones: an error measured against them is far too small.",
    do="Train any model that learns a mean on them: least squares, trees or networks. Reuse costs nothing more. "
    "Take the error on true labels from this release, or from the owner.",
    do_not=f"Measure a model's error against them. Compute medians, quantiles, spreads or totals from them. "
    f"{_ONE_VALUE}. Release the same labels again{_ONCE}",
    has_model=True,
)
_PRIVATE_MEAN = _POSTERIOR_MEANS._replace(
    done="The mean of {rows:,} labels, which are too few to learn more from, was released with noise as the label "
    "of every row",
    released="One number, the private mean of {rows:,} labels.",
    noise="All released labels are the same.",
    do="Take it for the mean of all rows. No model learns more from labels that are all the same.",
    do_not=f"Train a model on them. {_ONE_VALUE}. Release the same labels again{_ONCE}",
)
_STATISTICS = _LABELS._replace(
    do="Compute means and totals of any group. A mean of n rows is within ±1.96·s/√n of the true one in 95 % of "
    "releases at least, s being the standard deviation of the group's private labels. Reuse costs nothing more.",
)
_VALUES = _LABELS._replace(
    released="{rows:,} values as the mechanism drew them, and the mechanism with all its settings.",
    do="Debias them with the mechanism before you average or train. Reuse costs nothing more.",
)
_WORDING = {
    "training": _LABELS,
    "posterior means": _POSTERIOR_MEANS,
    "private mean": _PRIVATE_MEAN,
    "statistics": _STATISTICS,
    "values": _VALUES,
    "row-release": _LABELS._replace(
        done="Noise was added to {rows:,} labels before they were released, each row once",
        released="{rows:,} private labels, each with its interval and its noise, and about where all labels lie.",
        noise="How noisy each label is stands beside it in the release.",
    ),
    "model": Wording(
        title="A model trained with private labels",
        output="this model",
        done="A model was trained on {rows:,} labels with noise",
        released="The model ({model}), and all that it will predict.",
        noise="Its predictions carry the noise already.",
        do="Use the model as often as you like, and hand it on: predictions cost nothing more.",
        do_not=f"Train again on the same labels{_ONCE}",
        has_model=True,
    ),
    "model of reports": Wording(
        title="A model of answers that people randomised themselves",
        output="this model",
        done="A model was trained on {rows:,} answers, each randomised on the device where it was given",
        released="The model ({model}), and all that it will predict. The randomised answers may be public too.",
        noise="Its predictions carry the noise already.",
        do="Use the model as often as you like, train others on the same randomised answers, and hand them on: "
        "that costs nothing more.",
        do_not="Ask the same people again without need: a second answer to the same question costs them ε again.",
        has_model=True,
    ),
    "regression": Wording(
        title="A regression table of {label}",
        output="this table",
        done="Coefficients were estimated from sums over {rows:,} labels, with noise",
        released="The table: coefficients with standard errors, intervals and p-values, and its notes.",
        noise="Standard errors, intervals and p-values include the noise.",
        do="Publish the table, and predict with it: that costs nothing more.",
        do_not=f"Estimate another table from the same labels{_ONCE}",
    ),
    "mechanism": Wording(
        title="A mechanism for private labels",
        output="the released value",
        done="No label was used yet; each use of this mechanism on a label costs {cost}",
        released="Nothing yet: this card describes what would be done to labels.",
        noise="",
        do="Use it once for each label, and charge a ledger for it.",
        do_not="Release the same labels twice: whoever averages the releases sees through the noise.",
    ),
}
_SEEDED = (
    "NOT PRIVATE: the noise came from a seed. Whoever knows or guesses the seed can remove the noise. "
    "This is for tests and experiments only; do not pass it on."
)
_DELTA = (
    "NOT PURE: the guarantee has a second number, δ = {delta}. The probability of any set of results may pass the "
    "factor e^ε by that much, no more. No release takes this mechanism."
)
_WHATEVER = (
    "It holds whatever else someone knows or will learn, and however much they compute, short of breaking "
    "AES-256. It does not hide what the features reveal about a label without this release."
)
_RANDOM = (
    "The randomness behind the noise: it comes from a secure source, and is never stored. On a cluster it comes "
    "from a key and each row's id, and the key is destroyed when the release is closed."
)
_NOT_SCORED = "The model's error was not measured."
_NO_TRUE_LABELS = "Publish the true labels, or anything else computed from them without noise, beside it."


@dataclass(frozen=True, slots=True)
class Explanation:
    """The meaning of a release, a model or a mechanism, for people who have never heard of ε.

    Attributes
    ----------
    title : str
    budget : Budget
        The cost for one label, or one person, which odds follow from; of a mechanism alone, the cost of each use.
    ledger : Budget or None
        The total of its ledger, where that is more.
    private : bool
    warnings : tuple of str
        Sentences to read first; NOT PRIVATE is here.
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
        lines = list(self.warnings)
        for heading in self.sections if headings is None else headings:
            if heading in self.sections:
                lines += [heading, *(f"  {sentence}" for sentence in self.sections[heading])]
        return "\n".join(lines)


def explain(
    terms: Terms, kind: str = "release", entries: Data | None = None, ledger_cost: Budget | None = None
) -> Explanation:
    """Return the meaning of terms, in sentences.

    Parameters
    ----------
    terms : Terms
    kind : {"release", "row-release", "model", "mechanism"}
        The subject of the terms; a mechanism that was not used yet has no rows and no charges.
    entries : mapping, optional
        Further public entries of the card, such as which file the labels are in.
    ledger_cost : Budget, optional
        The total of its ledger for these rows, with these charges, to say what everything in it means.
    """
    entries = entries or {}
    wording, name = _WORDING[_topic(terms, kind, entries)], entries.get("file", {}).get("name")
    label = entries.get("label", "private labels")
    title = f"Private labels in {name}" if name else wording.title.format(label=label)
    return _explanation(title, terms, wording, ledger_cost, _sections(terms, wording, entries))


def _explanation(
    title: str,
    terms: Terms,
    wording: Wording,
    ledger_cost: Budget | None,
    sections: Mapping[str, Sequence[str]],
) -> Explanation:
    """Return an explanation, with the meaning of the budget and of a ledger with a larger total."""
    budget = terms.cost if terms.charges else Budget(proof_of(terms.mechanisms[0]).epsilon)
    ledger = None if ledger_cost is None or ledger_cost <= budget else ledger_cost
    sections = {**sections, "What it means": _meaning(terms, wording, budget, ledger)}
    if not terms.secure:
        sections |= _NOTHING
    return Explanation(
        title=title,
        budget=budget,
        ledger=ledger,
        private=terms.secure,
        warnings=tuple(_warnings(terms, (ledger or budget).epsilon)),
        sections={heading: tuple(filter(None, lines)) for heading, lines in sections.items() if any(lines)},
    )


def explain_labels(
    terms: Terms, contents: Mapping[str, tuple[Terms, Data]], ledger_cost: Budget | None = None
) -> Explanation:
    """Return the meaning of a release of several labels of the same rows, in sentences.

    Parameters
    ----------
    terms : Terms
        Of all labels together.
    contents : mapping
        The terms and entries of each label, by its name.
    ledger_cost : Budget, optional
        The cost of all else in its ledger.
    """
    explanations = {name: explain(of_label, "release", entries) for name, (of_label, entries) in contents.items()}
    of_label, entries = next(iter(contents.values()))
    sections = {
        heading: _merged({name: each_label.sections.get(heading, ()) for name, each_label in explanations.items()})
        for heading in next(iter(explanations.values())).sections
    }
    costs = [line for line in sections["What it cost"] if not line.endswith(_IN_ALL)]
    sections["What it cost"] = (f"{terms.cost} for all labels of a row:", *costs)
    title = f"A release of {len(contents)} private labels of each row"
    return _explanation(title, terms, _WORDING[_topic(of_label, "release", entries)], ledger_cost, sections)


def _merged(sentences: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the sentences of several labels: those of all once, others with the name of their label."""
    common = set.intersection(*map(set, sentences.values()))
    lines: dict[str, None] = {}
    for name, of_label in sentences.items():
        lines |= {sentence if sentence in common else f"{name}: {sentence.strip()}": None for sentence in of_label}
    return tuple(lines)


def _topic(terms: Terms, kind: str, entries: Data) -> str:
    """Return the name of the wording for a card."""
    if kind == "model" and terms.is_of_reports:
        return "model of reports"
    if "regression" in entries:
        return "regression"
    if kind != "release":
        return kind
    if "features" not in entries:
        return str(entries.get("purpose", "training"))
    return "posterior means" if entries["features"] else "private mean"


def _warnings(terms: Terms, epsilon: float) -> Iterator[str]:
    """Yield warnings: of a release that is not private, of weak protection, of a mechanism with a δ."""
    if not terms.secure:
        yield _SEEDED
    elif is_weak(epsilon):
        yield WEAK.format(**odds_figures(epsilon))
    if not terms.charges and (delta := proof_of(terms.mechanisms[0]).delta):
        yield _DELTA.format(delta=rounded_up(delta, 3))


_NOTHING = {
    "What it means": ["Nothing is promised to anyone whose label is in it."],
    "What stays private": ["Nothing: whoever knows the seed can remove the noise."],
    "Do": ["Use it for tests and experiments, with labels that are public or synthetic."],
    "Do not": ["Use it on labels that are private, or hand on what was computed from such labels."],
}
"""Sections with another text where nothing is protected."""


def _sections(terms: Terms, wording: Wording, entries: Data) -> dict[str, list[str]]:
    """Return the sections of an explanation but for its meaning, which has a place among them."""
    is_used = bool(terms.charges)
    readers = _readers(terms)
    return {
        "What was done": _actions(terms, wording, entries, readers),
        "What the owner says": _statements(terms),
        "What it means": [],
        "What is released": _outputs(terms, wording, entries),
        "What stays private": [f"The true labels: {readers} saw them.", _RANDOM] if is_used else ["All labels."],
        "What it cost": _cost(terms) if is_used else _cost_of_use(terms),
        "How noisy it is": _noise(terms, wording, entries),
        "Do": [wording.do],
        "Do not": [wording.do_not, _NO_TRUE_LABELS],
    }


def _readers(terms: Terms) -> str:
    """Return those who saw true labels: whoever counts labels for a prior sees them."""
    origins = origins_of([*terms.priors, *terms.mechanisms])
    is_counted = any(origin.statistics for origin in origins)
    is_curated = is_counted or terms.trust == "curator"
    return "only the curator, who already held them," if is_curated else "nobody"


def _actions(terms: Terms, wording: Wording, entries: Data, readers: str) -> list[str]:
    proofs = {
        f"{type(mechanism).__name__}, with a proof of {describe_proof(mechanism)}": None
        for mechanism in terms.mechanisms
    }
    if terms.charges:
        done = wording.done.format(rows=terms.rows)
        first = f"{done}, for {terms.cost} in all; {readers} saw the true ones."
    else:
        first = f"{wording.done.format(cost=describe_proof(terms.mechanisms[0]))}."
    column = private_column(entries)
    return [
        first,
        f"Private column: {column}" if column else "",
        f"Mechanism: {'; '.join(proofs)}." if proofs else "",
    ]


def _statements(terms: Terms) -> list[str]:
    declaration = terms.declaration
    lines = {
        "Intended use": declaration.intended_use,
        "Recipient": declaration.recipient,
        "Why these bounds": declaration.bounds_reason,
    }
    return [f"{title}: {text}" for title, text in lines.items() if text]


def _outputs(terms: Terms, wording: Wording, entries: Data) -> list[str]:
    features = ", ".join(entries.get("features", ())) or "no columns"
    model = entries.get("model", "a model")
    lines = [wording.released.format(rows=terms.rows, model=model, features=features)]
    if terms.label_transform:
        lines.append(f"It is about {terms.label_transform} of the label, not the label itself.")
    if origins_of(terms.priors):
        lines.append("The prior: about where labels lie, with noise.")
    if "quality" in entries:
        lines.append(_score(terms))
    if terms.charges:
        columns = "the other columns of the file" if "columns" in entries.get("file", {}) else "every feature"
        lines.append(f"Public from the start: {columns}, {public_rows(entries)}, and the bounds.")
    return lines


def private_column(entries: Data) -> str | None:
    """Return the name of the private column, if the card has it."""
    name: str | None = entries.get("file", {}).get("column", entries.get("label"))
    return name


def public_rows(entries: Data) -> str:
    """Return the public part of the rows; where they are in random order, the order of the source is private."""
    if entries.get("file", {}).get("row_order") == "shuffled":
        return "the number of the rows (which are in random order)"
    return "the number and order of the rows"


def _meaning(terms: Terms, wording: Wording, budget: Budget, ledger: Budget | None) -> list[str]:
    knows = "all features, and even every other label," if terms.charges else "all features"
    people = terms.rows_per_person
    label = "any label" if len(terms.bounds) == 1 else f"all {len(terms.bounds)} labels of any row"
    labels = label if people == 1 else f"all labels of any one person with up to {people} rows"
    odds = (
        f"Someone who knows {knows} and sees {wording.output} alone can raise their odds on {labels} by at most "
        f"e^ε = {times(budget.epsilon)}"
    )
    if ledger is not None:
        odds += f"; by everything in its ledger, {ledger}, by at most {times(ledger.epsilon)}"
    return [
        f"{odds}.",
        EXAMPLE.format(after=f"{wording.output} alone", **odds_figures(budget.epsilon)),
        _WHATEVER,
    ]


def _score(terms: Terms) -> str:
    rows = "that this library held out" if terms.split else "said to be held out, which nobody can check"
    return f"A score, how wrong it is: from sums of errors, with noise, on rows {rows}."


def _cost(terms: Terms) -> list[str]:
    lines = [f"{terms.cost}{_IN_ALL}", *(f"  {charge}" for charge in terms.charges), *describe_scope(terms)]
    if terms.split is not None:
        score = Budget(cost_of_statistics(terms, "score"))
        lines.append(
            f"Each row pays once: {terms.split.test_rows:,} were held out and spend {score} on the score, and the "
            f"other {terms.split.train_rows:,} pay for the model."
        )
    return lines


def describe_scope(terms: Terms) -> list[str]:
    """Return the figures for a label, a person and a segment, and who vouches for them."""
    if terms.fits:
        person = [f"A person in all {len(terms.fits)} fits: {terms.cost}."] if terms.counts_people else []
        lines = [f"One label: {terms.label_cost}.", *person]
        for number, fit in enumerate(terms.fits, start=1):
            lines += [f"Fit {number}: {line}" for line in describe_scope(fit)]
        return lines
    segments, people, rows = terms.segments, terms.people, terms.rows_per_person
    lines = []
    if rows > 1:
        vouched = "the owner declares" if people is None else "the rows of each were counted"
        lines.append(
            f"One label: {terms.label_cost}. A person with up to {rows:,} rows: {terms.cost} ({vouched})."
        )
    elif people is not None:
        lines.append("Each person has one row, as counted.")
    if people is not None and people.rows_left_out:
        why = f", {people.exhausted:,} people without budget among them" if people.exhausted else ""
        lines.append(f"Labels left empty by a rule on ids alone: {people.rows_left_out:,}{why}.")
    if segments is not None:
        why = "ids were compared" if segments.checked else "the owner declares"
        lines.append(
            f"Segment {segments}: charges of other segments are for other rows ({why}). A person with rows in "
            "several segments pays for each."
        )
    return lines


def _cost_of_use(terms: Terms) -> list[str]:
    """Return the cost of each use of a mechanism."""
    charges = [origin.charge for origin in origins_of(terms.mechanisms) if origin.charge is not None]
    designs = [f"Its design used a private prior, for {charge.budget} more, once." for charge in charges]
    cost = describe_proof(terms.mechanisms[0])
    return [f"{cost} for each use, proven. Uses on the same label add up.", *designs]


def _clipping(terms: Terms) -> str:
    """Return the clipping of the labels that a model learnt from; the number of clipped labels is not known."""
    low, high = map(number, terms.bounds[0])
    further = "."
    if terms.trust == "curator":
        further = ", and labels far from most others to a narrower range that was estimated with noise."
    return f"Labels outside the bounds, {low} to {high}, were clipped to them{further}"


def _noise(terms: Terms, wording: Wording, entries: Data) -> list[str]:
    """Return the size of the noise."""
    if wording.has_model:
        score = describe_quality(entries.get("quality"), terms.statistics, terms.rows_per_person)
        error = f"How wrong the model is: {score}." if score else _NOT_SCORED
        return [wording.noise, _clipping(terms), error]
    if wording.noise:
        return [wording.noise]
    column = terms.mechanisms[0], terms.priors[0], terms.bounds[0]
    return [noise_sentence(terms.rows, *column), clipping_sentence(*column)]
