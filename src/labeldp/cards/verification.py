"""Checking a card again, step by step: what holds, what does not, and what no check can show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from labeldp import card_format
from labeldp._validation import rounded_up
from labeldp.cards.reading import SCHEMAS, ReadCard, read_any_card
from labeldp.errors import LabelDPError
from labeldp.release.explanation import not_private, proof_of
from labeldp.release.numbers import times

__all__ = ["BEYOND", "Check", "Verification", "verify_card"]

BEYOND = (
    "that the noise came from the secure source: the card says so, and only whoever ran it knows",
    "that nobody kept the true labels, or released them elsewhere too",
    "that the bounds were chosen without looking at the labels, and so was a prior that it calls public",
    "that a prior cost no more than the epsilon charged for it: its noise is not on the card",
    "that the file holds private labels and not the true ones: its checksum only ties the card to its bytes",
    "that the column it names holds the private labels: it only shows that the file has such a column",
    "who wrote the card: its checksum finds damage, but it is no signature",
)
"""What verifying a card cannot show."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
    holds : bool or None
        None if it could not be looked at, and then `detail` says why.
    detail : str
    """

    name: str
    holds: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """All checks of a card; `holds` if none failed."""

    checks: tuple[Check, ...]
    card: ReadCard | None

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return self.card is not None and all(check.holds is not False for check in self.checks)


def verify_card(text: str) -> Verification:
    """Check a card, and prove its mechanisms again; `labeldp.files.card_check` compares its files too.

    Examples
    --------
    >>> import labeldp as ldp
    >>> verification = verify_card(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json())
    >>> [check.name for check in verification.checks], verification.holds
    (['checksum', 'agreement', 'proof', 'privacy'], True)
    """
    checks: list[Check] = []
    try:
        card_format.parse(text, *SCHEMAS)
        checks.append(Check("checksum", True, "the card is as it was written"))
        card = read_any_card(text, allow_no_privacy=True)
    except LabelDPError as error:
        checks.append(Check("agreement" if checks else "checksum", False, str(error)))
        return Verification(tuple(checks), None)
    agreement = (
        "its counts follow from its parameters, and its proof from its counts"
        if card.kind == "mechanism"
        else "its charges pay for all it shows, and give the cost and guarantee it states"
    )
    checks += [Check("agreement", True, agreement), *_proofs(card), _privacy(card)]
    return Verification(tuple(checks), card)


def _proofs(card: ReadCard) -> Iterator[Check]:
    mechanisms = card.terms.mechanisms
    if not mechanisms:
        yield Check(
            "proof", None, "a model from noisy sums shows no counts: its noise was proven when it was fitted"
        )
    for k, mechanism in enumerate(mechanisms):
        name = "proof" if len(mechanisms) == 1 else f"proof {k + 1}"
        proof = proof_of(mechanism)
        if math.isinf(proof.epsilon):
            yield Check(name, None, "there is nothing to prove")
            continue
        detail = f"{type(mechanism).__name__}: epsilon = {rounded_up(proof.epsilon, 9)}"
        detail += f", delta = {rounded_up(proof.delta, 3)}" if proof.delta else ""
        if proof.worst_ratio is not None:
            ratio = proof.worst_ratio
            detail += f"; worst ratio of counts {ratio.numerator}/{ratio.denominator} ≈ {float(ratio):.9g}"
            detail += f", at most e^{rounded_up(float(mechanism.epsilon))}"
        yield Check(name, True, f"{detail}; {proof.checked}")


def _privacy(card: ReadCard) -> Check:
    if reason := not_private(card.terms):
        return Check("privacy", False, reason)
    if card.kind == "mechanism":
        return Check("privacy", True, "nothing is released yet")
    epsilon, delta = card.terms.cost.epsilon, card.terms.cost.delta
    second, aside = (f", delta = {rounded_up(delta, 3)}", ", delta left aside") if delta else ("", "")
    detail = f"epsilon = {rounded_up(epsilon)}{second} in all: odds rise by {times(epsilon)} at most{aside}"
    return Check("privacy", True, detail)
