"""What was done and what it means, in words: the one explanation that summary, terminal and page all show.

It belongs to this room, and not to the cards, because a release explains itself before it has a card.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from labeldp._values import rounded_up
from labeldp.channels import Proof
from labeldp.ledger import Budget, total_of
from labeldp.mechanisms.base import Mechanism
from labeldp.priors.origin import origins_of
from labeldp.release.accuracy import describe_largest_noise, describe_noise
from labeldp.release.costs import Costs
from labeldp.release.odds import EXAMPLE, WEAK, is_weak, odds_figures, odds_sentence, whose_labels
from labeldp.release.scores import describe_quality

if TYPE_CHECKING:
    from labeldp.release.terms import Terms

TITLES = {
    "mechanism": "A mechanism for private labels",
    "release": "A release of private labels",
    "row-release": "A release of private labels, in rounds",
    "model": "A model trained with private labels",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a release, a model or a mechanism means, for people who have never heard of ε.

    Attributes
    ----------
    title : str
    budget : Budget
        What odds follow from: what this cost one label, or one person; of a mechanism alone, what it keeps for
        each use.
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


def budget_of(terms: Terms) -> Budget:
    """Return what terms promise; of a mechanism alone, what it is proven to keep for each use."""
    if terms.charges:
        return terms.cost
    proof = proof_of(terms.mechanisms[0])
    return Budget(proof.epsilon, proof.delta)


def not_private(terms: Terms) -> str | None:
    """Return why what was done is not private, or None where it is."""
    if not terms.secure:
        return (
            "NOT PRIVATE: the noise came from a seed. Whoever knows or guesses the seed can remove the noise. "
            "This is for tests and experiments only; do not pass it on."
        )
    if math.isinf(budget_of(terms).epsilon):
        return "NOT PRIVATE: every label is released as it is. This is for comparisons, on labels that are public."
    return None


def explain(
    terms: Terms,
    kind: str = "release",
    about: Mapping[str, Any] | None = None,
    costs: Costs | None = None,
) -> Explanation:
    """Return what terms mean, in words.

    Parameters
    ----------
    terms : Terms
    kind : {"release", "row-release", "model", "mechanism"}
        What they are the terms of; a mechanism that was not used yet has no rows and no charges.
    about : mapping, optional
        Further public entries of the card, such as which file the labels are in.
    costs : Costs, optional
        What was paid, and what else a ledger counts; by default what terms and the card tell.
    """
    about, reason = about or {}, not_private(terms)
    costs = costs or Costs.of(terms)
    return _Subject(terms, kind, about, budget_of(terms), costs, reason is None).explanation(reason)


@dataclass(frozen=True, slots=True)
class _Subject:
    terms: Terms
    kind: str
    about: Mapping[str, Any]
    budget: Budget
    costs: Costs
    private: bool

    def explanation(self, reason: str | None) -> Explanation:
        sections = {
            "What was done": self.done(),
            "What it means": self.meaning(),
            "What left": self.left(),
            "What stayed": self.stayed(),
            "What it cost": self.cost(),
            "How noisy it is": self.noise(),
            "Do": self.do(),
            "Do not": self.do_not(),
        }
        return Explanation(
            title=f"Private labels in {self.file['name']}" if self.file.get("name") else TITLES[self.kind],
            budget=self.budget,
            ledger=self.ledger,
            private=self.private,
            warnings=tuple([reason] if reason else self.weak()),
            sections={heading: tuple(lines) for heading, lines in sections.items() if lines},
        )

    @property
    def file(self) -> dict[str, str]:
        """What is said of the file that the labels are in."""
        return dict(self.about.get("file", {}))

    @property
    def ledger(self) -> Budget | None:
        """What the ledger counts in all, if that is more than this."""
        return self.costs.total if self.costs.has_ledger and not self.costs.total <= self.budget else None

    def weak(self) -> list[str]:
        epsilon = (self.ledger or self.budget).epsilon
        return [WEAK.format(**odds_figures(epsilon))] if is_weak(epsilon) else []

    @property
    def trust(self) -> str:
        """Who saw labels: a curator who counted them for a prior did, also where noise was added without one."""
        counted = any(one.statistics for one in origins_of([*self.terms.priors, *self.terms.mechanisms]))
        return "curator" if counted else self.terms.trust

    # ---- what was done, and what it means ---------------------------------------------------------------

    def done(self) -> list[str]:
        rows = f"{self.terms.rows:,}"
        seen = {"local": "nobody", "curator": "only the curator, who already held them,"}[self.trust]
        action = {
            "mechanism": "",
            "release": f"Noise was added to {rows} labels before they left",
            "row-release": f"Noise was added to {rows} labels before they left, each row once",
            "model": f"A model learned from {rows} labels with noise",
        }[self.kind]
        extra = ", its score included" if any(one.purpose == "score" for one in self.terms.charges) else ""
        said = f"{action}, for {total_of(self.terms.charges)} in all{extra}; {seen} saw the true ones."
        if not self.private:
            said = f"What came of {rows} labels protects nobody." if action else "It protects nobody."
        elif not action:
            said = f"A mechanism that keeps {self.budget} for every label it randomises. No label was used yet."
        mechanisms = self.mechanisms()
        return [said, mechanisms] if mechanisms else [said]

    def mechanisms(self) -> str:
        """Return which mechanisms were used and what each is proven to keep, those that say the same together."""
        columns: dict[str, list[str]] = {}
        for k, mechanism in enumerate(self.terms.mechanisms):
            proof = proof_of(mechanism)
            amount = _amount(Budget(proof.epsilon, proof.delta))
            proven = f", proven to keep {amount}" if math.isfinite(proof.epsilon) else ", which keeps nothing"
            columns.setdefault(type(mechanism).__name__ + proven, []).append(str(k))
        named = list(columns)
        if len(columns) > 1 and self.kind == "release":
            named = [f"{said} (column {', '.join(which)})" for said, which in columns.items()]
        return f"The mechanism{' is' if len(named) == 1 else 's are'} {'; '.join(named)}." if named else ""

    def meaning(self) -> list[str]:
        if not self.private:
            return ["Nothing is promised to anyone whose label is in it."]
        epsilon, delta = self.budget.epsilon, self.budget.delta
        seen = {"mechanism": "the released value", "model": "this model"}.get(self.kind, "this release")
        knows = "all features" if self.kind == "mechanism" else "all features, and even every other label,"
        figures = odds_figures(epsilon)
        whose = whose_labels(self.terms.rows_per_person)
        lines = [
            odds_sentence(epsilon, knows=knows, seen=seen, whose=whose, ledger=self.ledger),
            EXAMPLE.format(after=f"{seen} alone", **figures),
        ]
        if delta:
            lines.append(
                f"The guarantee has a second number, δ = {rounded_up(delta, 3)}: the probability of any set of "
                "results may pass the factor e^ε by that much, no more. The odds above leave δ aside."
            )
        return [
            *lines,
            "It holds whatever else that someone knows or will learn, and however much they compute, short of "
            "breaking AES-256. It does not hide what the features tell about a label without this release.",
        ]

    # ---- what left, and what stayed ---------------------------------------------------------------------

    def left(self) -> list[str]:
        terms, public = self.terms, "every feature, the number and order of the rows, and the bounds"
        if self.kind == "mechanism":
            return ["Nothing yet: this card describes what would be done to labels."]
        if self.kind == "model":
            summed = any(charge.purpose == "sums" for charge in terms.charges)
            sources = ["sums with noise"] * summed + ["private labels"] * bool(terms.mechanisms)
            left = [
                f"The model ({self.about.get('model', 'a model')}), and all that it will predict.",
                f"What it was made from: {' and '.join(sources)}.",
            ]
            if "quality" in self.about:
                which = "said to be held out, which nobody can check"
                which = which if terms.split is None else "that this library held out"
                left.append(f"A score, how wrong it is: from sums of errors, with noise, on rows {which}.")
        elif self.kind == "row-release":
            left = [
                f"{terms.rows:,} private labels, each with the interval in which it was told apart and its noise.",
                "What is privately known of all labels: about where they lie, and how far they spread.",
            ]
        else:
            each = f" in each of {len(terms.mechanisms)} columns" if len(terms.mechanisms) > 1 else ""
            name = f" in the column {self.file['column']}" if self.file.get("column") else ""
            left = [f"{terms.rows:,} private labels{each}{name}."]
            shown = [column for column, prior in enumerate(terms.priors) if prior is not None]
            if shown:
                is_paid = bool(origins_of(terms.priors))
                source = "with noise" if is_paid else "publicly known before"
                left.append(f"The prior: about where labels lie, {source}.")
            left.append("The mechanism with all its settings: privacy rests on its randomness, not on secrecy.")
        return [*left, f"Public from the start: {public}."]

    def stayed(self) -> list[str]:
        if self.kind == "mechanism":
            return ["All labels."]
        if not self.terms.secure:
            return ["Nothing, for whoever knows the seed: they can remove the noise and see the labels."]
        seen = {
            "local": "nobody saw them: each was randomised on its own",
            "curator": "only the curator, who already held them, saw them",
        }[self.trust]
        words = "drawn from a secure source, used once, never stored"
        if self.kind == "release" and "release" in self.about:  # a cluster's: see labeldp.spark
            words = "made from each row's id under a secret of this release, which is destroyed when it is closed"
        stayed = [f"The true labels: {seen}.", f"The random words behind the noise: {words}."]
        if any(charge.purpose == "prior" for charge in self.terms.charges):
            stayed.append("The exact counts behind the prior; only counts with noise were used.")
        if self.kind != "model":
            stayed.append("Which labels were clipped to the interval, and how far.")
        return stayed

    # ---- cost and noise -----------------------------------------------------------------------------------

    def cost(self) -> list[str]:
        paid = self.terms.charges
        cost = total_of(paid) if paid else self.budget
        if math.isinf(cost.epsilon):
            return ["All privacy there was."]
        if self.kind == "mechanism":
            before = [origin.charge for origin in origins_of(self.terms.mechanisms) if origin.charge is not None]
            once = [f"Its design used a private prior, for {charge.budget} more, once." for charge in before]
            return [f"{_amount(cost)} for each use, proven. Uses on the same label add up.", *once]
        lines = [f"{_amount(cost)} in all:", *(f"  {charge}" for charge in paid)]
        if self.terms.split is not None and self.terms.rows_per_person == 1:
            lines.append(f"This library split the rows, none was used for both: one label costs {self.budget}.")
        elif self.terms.split is not None:
            lines.append("A person may have rows on both sides, so both count for everyone.")
        if self.terms.rows_per_person > 1:
            lines.append(f"That covers persons with up to {self.terms.rows_per_person:,} rows (group privacy).")
        return lines

    def noise(self) -> list[str]:
        terms = self.terms
        if self.kind == "model":
            score = describe_quality(self.about.get("quality"), terms)
            measured = (
                f"How wrong it is: {score}." if score else "See private_score, or compare with public labels."
            )
            return ["Its predictions carry the noise already.", measured]
        if self.kind == "row-release":
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

    # ---- what to do -----------------------------------------------------------------------------------------

    def do(self) -> list[str]:
        if not self.private:
            return ["Use it for tests and experiments, with labels that are public or synthetic."]
        if self.kind == "mechanism":
            return ["Use it once for each label, and charge a ledger for it."]
        if self.kind == "model":
            return ["Use the model as often as you like, and hand it on: predictions cost nothing more."]
        unbiased = self.file.get("unbiased_column")
        return [
            "Reuse these labels as often as you like: any number of models, searches and plots cost nothing more.",
            "Average over many rows: noise that hides one label cancels out over many. Means and models need "
            + (f"the column {unbiased}." if unbiased else "the debiased labels."),
        ]

    def do_not(self) -> list[str]:
        if self.kind == "mechanism":
            twice = "Release the same labels twice: whoever averages the releases sees through the noise."
            return [twice if self.private else "Use it on labels that are private."]
        again = "Train again on the same labels" if self.kind == "model" else "Release the same labels again"
        lines = [f"{again} without need: that would cost again, and the costs add up. Keep this one and reuse it."]
        if not self.private:
            return [*lines, "Hand on anything made with it from labels that are private."]
        if self.kind != "model":
            lines.append("Take one released value for the truth about one row.")
        return [*lines, "Publish the true labels, or anything else made from them without noise, beside it."]


def _amount(budget: Budget) -> str:
    return f"ε = {rounded_up(budget.epsilon, 9)}{_and_delta(budget.delta)}"


def _and_delta(delta: float) -> str:
    return f" and δ = {rounded_up(delta, 3)}" if delta else ""
