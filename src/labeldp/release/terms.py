"""The terms of a release: all but its labels, as a value, in words and as a card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

from labeldp import card_format
from labeldp._validation import rounded_up
from labeldp.errors import CardError, LabelDPError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, group_budget, name_of_charge, total_of
from labeldp.mechanisms.base import MOST_MECHANISMS, Mechanism, fingerprint, load_all
from labeldp.release.description import describe_release

__all__ = ["Terms", "guarantee", "read_release_card", "refuse_contradictions", "stated_charges"]

SCHEMA = "labeldp.release"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Terms:
    """What was released how, and what it cost; no label is in here, and all may be made public.

    Attributes
    ----------
    rows : int
    mechanisms, priors : tuples
        One for each label column; a prior is None where none was needed.
    charges : tuple of Charge
    bounds : tuple of (lo, hi)
    trust : str
    secure : bool
        False if the noise came from a seed: then this is an experiment, and **not private**.
    """

    rows: int
    mechanisms: tuple[Mechanism, ...]
    priors: tuple[Histogram | None, ...]
    charges: tuple[Charge, ...]
    bounds: tuple[tuple[float, float], ...]
    trust: str
    secure: bool

    @property
    def cost(self) -> Budget:
        """What the release cost in all."""
        return total_of(self.charges)

    def summary(self) -> str:
        """Return what was done, for people."""
        return describe_release(self)

    def to_card(self, schema: str = SCHEMA, **more: Any) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it.

        Parameters
        ----------
        **more : pure data
            Further public entries, such as which file the labels are in.
        """
        content = {
            "guarantee": guarantee(self),
            "cost": {"epsilon": self.cost.epsilon, "delta": self.cost.delta},
            "words": "secure" if self.secure else "seeded, NOT PRIVATE",
            "rows": self.rows,
            "trust": self.trust,
            "bounds": [list(pair) for pair in self.bounds],
            "mechanisms": [m.to_json() for m in self.mechanisms],
            "priors": [self._prior(k) for k in range(len(self.priors))],
            "charges": [c.as_data() for c in self.charges],
        }
        return card_format.dump({**more, **content}, schema)

    def _prior(self, column: int) -> dict[str, Any] | None:
        """Return a prior as pure data, and whether it was paid for, or publicly known."""
        prior = self.priors[column]
        if prior is None:
            return None
        paid = any(charge.purpose == "prior" and charge.column == column for charge in self.charges)
        source = "paid for" if paid else "public"
        return {"nodes": prior.nodes.tolist(), "masses": prior.masses.tolist(), "source": source}


def guarantee(release: Any) -> str:
    """Return what a release of labels promises, in words."""
    if not release.secure:
        return "NOT PRIVATE: the noise can be repeated from a seed"
    people = max(c.rows_per_person for c in release.charges)
    who = "one row's label" if people == 1 else f"all labels of a person with up to {people} rows"
    return (
        f"label differential privacy with {release.cost}: changing {who} changes the probability of anything "
        f"released by at most a factor e^{rounded_up(release.cost.epsilon)}"
        + (f", up to {rounded_up(release.cost.delta, 3)}" if release.cost.delta else "")
        + "; features, the number and order of rows, and bounds are public"
    )


def read_release_card(text: str, *, most_mechanisms: int = MOST_MECHANISMS) -> dict[str, Any]:
    """Return the content of a release's card, checked: its checksum fits, its mechanisms prove again.

    Parameters
    ----------
    text : str
    most_mechanisms : int
        A card with more distinct ones is refused, because a hostile one could keep the prover busy for hours.

    Raises
    ------
    CardError
        If the card was changed, or is none.
    PrivacyProofError
        If a mechanism does not keep its promise.
    """
    content = card_format.parse(text, SCHEMA)
    mechanisms = load_all(content.get("mechanisms"), most_mechanisms)
    charges = _agreed_charges(content)
    paying = _for_labels(charges)
    if len(paying) != len(mechanisms):
        raise CardError("the card contradicts itself: each of its mechanisms needs a charge of its own")
    _refuse_underpaid(mechanisms, paying)
    shown = _each_once(mechanisms, lambda mechanism: fingerprint(mechanism.channel))
    if shown != [charge.mechanism for charge in paying]:
        raise CardError("the card contradicts itself: it charges for another mechanism than it shows")
    _refuse_unpaid_priors(content, charges)
    return {**content, "mechanisms": mechanisms}


def refuse_contradictions(content: dict[str, Any], mechanisms: Sequence[Mechanism]) -> list[Charge]:
    """Return the charges of a card of rows, whose labels share one charge, if they pay for all that it shows.

    Raises
    ------
    CardError
        If the card says two things at once. A checksum is no signature: whoever writes a card can make one that
        agrees with itself and is false.
    """
    charges = _agreed_charges(content)
    paying = _for_labels(charges)
    if len(paying) != 1:
        raise CardError("the card contradicts itself: its mechanisms need one charge for labels")
    _refuse_underpaid(mechanisms, paying * len(mechanisms))
    paid = {charge.purpose for charge in charges}
    try:
        known = content["knowledge"]
        guessed = known["mean"] == (known["low"] + known["high"]) / 2
        counted = bool(known["counted"])
    except (KeyError, TypeError):
        raise CardError("the card lacks what a card of its kind has: what is known of all labels") from None
    if not (guessed or "mean" in paid) or (counted and "prior" not in paid):
        raise CardError("the card contradicts itself: it shows what it does not charge for, of all labels")
    return charges


def stated_charges(content: dict[str, Any]) -> list[Charge]:
    """Return a card's charges, if they give the guarantee that it states."""
    try:
        entries, stated, secure = list(content["charges"]), content["guarantee"], content["words"] == "secure"
    except (KeyError, TypeError):
        raise CardError("the card lacks what a card of its kind has: charges, words and a guarantee") from None
    charges = []
    for k, entry in enumerate(entries):
        try:
            charges.append(Charge.from_data(entry))
        except LabelDPError as error:
            raise CardError(f"charges[{k}] is not a valid charge: {error}") from None
    said = SimpleNamespace(secure=secure, charges=charges, cost=total_of(charges))
    spent = all(charge.budget.exact_epsilon for charge in charges)  # more than nothing, and not everything
    if not charges or not spent or stated != guarantee(said):
        raise CardError("the card contradicts itself: its charges do not give the guarantee it states")
    return charges


def _agreed_charges(content: dict[str, Any]) -> list[Charge]:
    """Return a card's charges, if they give the cost and the guarantee that it states, all for the same people."""
    charges = stated_charges(content)
    if len({charge.rows_per_person for charge in charges}) != 1:
        raise CardError("the card contradicts itself: all of its charges must have the same rows_per_person")
    total = total_of(charges)
    if content.get("cost") != {"epsilon": total.epsilon, "delta": total.delta}:
        raise CardError("the card contradicts itself: its charges do not give the cost it states")
    return charges


def _for_labels(charges: Sequence[Charge]) -> list[Charge]:
    return [charge for charge in charges if charge.purpose == "labels"]


def _refuse_unpaid_priors(content: dict[str, Any], charges: Sequence[Charge]) -> None:
    """Refuse a prior that was paid for and has no charge of its own, and a charge for any other."""
    paid = [(charge.column, charge.what) for charge in charges if charge.purpose == "prior"]
    try:
        priors, trust = list(content["priors"]), content["trust"]
        sources = {k: prior["source"] for k, prior in enumerate(priors) if prior is not None}
    except (KeyError, TypeError):
        raise CardError("the card lacks what a card of a release has: priors, and where they are from") from None
    if not set(sources.values()) <= {"public", "paid for"}:
        raise CardError('the source of a prior on the card must be "public" or "paid for"')
    due = [k for k in sources if sources[k] == "paid for"]
    if paid != [(k, name_of_charge(f"prior ({trust})", k, len(priors))) for k in due]:
        raise CardError("the card contradicts itself: its charges and trust do not fit the source of a prior")


def _refuse_underpaid(mechanisms: Sequence[Mechanism], charges: Sequence[Charge]) -> None:
    """Refuse a mechanism that is proven to cost more than its charge."""
    proofs = _each_once(mechanisms, lambda mechanism: mechanism.verify())
    for proof, charge in zip(proofs, charges, strict=True):
        if not group_budget(Budget(proof.epsilon, proof.delta), charge.rows_per_person) <= charge.budget:
            raise CardError("the card contradicts itself: its mechanisms cost more than it charges")


def _each_once(mechanisms: Sequence[Mechanism], ask: Callable[[Mechanism], T]) -> list[T]:
    """Return an answer for each mechanism, asking each but once: a card may name one ten thousand times."""
    answers = {id(mechanism): ask(mechanism) for mechanism in {id(m): m for m in mechanisms}.values()}
    return [answers[id(mechanism)] for mechanism in mechanisms]
