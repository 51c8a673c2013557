"""Checks of a card, step by step, and statements that no check can show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeVar

from labeldp.accounts.agreement import (
    charge_of_origin,
    charged_for,
    cost_of_mechanisms,
    cost_of_statistics,
    noise_notes,
)
from labeldp.accounts.budget import Budget
from labeldp.accounts.card import Card
from labeldp.accounts.numbers import times
from labeldp.accounts.schema import CARDS
from labeldp.accounts.statistic import RULES, Origin, Statistic, describe_proof, origins_of, proof_of
from labeldp.accounts.terms import Terms
from labeldp.errors import CardError, LabelDPError, UncheckableError
from labeldp.mechanisms import card_format
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.typed_data import refuse_other_errors

NOT_VERIFIABLE = (
    "that the noise came from the secure source: the card says so, and only whoever ran it knows",
    "that nobody kept the true labels, or released them elsewhere too",
    "that sums, counts and randomised labels are those that the card lists, each row's label once in each",
    "that the bounds were chosen without looking at the labels, and so was a prior that it calls public",
)
"""Statements that cannot be verified for any card."""

_NOT_VERIFIABLE_IN_FILES = (
    "that the file holds private labels and not the true ones: its checksum only ties the card to its bytes",
    "that the column it names holds the private labels: it only shows that the file has such a column",
    "whether another column gives the label away, alone or together with others",
)
_NOT_VERIFIABLE_BY_KIND = {
    "mechanism": (),
    "model": ("that its files follow from the statistics on the card: checksums only tie them to the card",),
}
_UNEXPLAINED = Fraction(1, 100)
"""The share of a charge for sums and labels that may be left: a proof may be a little below the labels' ε."""
_UNDAMAGED = "the card is undamaged; anyone can compute a checksum, a forger too"
_AGREEMENT = "its charges pay for all it shows, and give the cost and guarantee it states"
_AGREEMENT_OF_LABELS = "the charges of its labels differ, and add up to the cost and guarantee it states"
_AGREEMENT_OF_FITS = "the charges of its fits differ, and make up the cost and guarantee it states"
_AGREEMENT_OF_MECHANISM = "its counts follow from its parameters, and its proof from its counts"

_UNSIGNED = "who wrote the card: its checksum finds damage, but it is no signature"

T = TypeVar("T")

Verdict = Literal["valid", "not valid", "cannot verify"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        The subject of the check, such as ``"proof"``.
    holds : bool or None
        None if it could not be looked at, and then ``detail`` says why.
    detail : str
        The result, in a sentence.
    needed : bool
        True if a card is not valid without it: part of the guarantee, and no file beside the card.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import verify_card
    >>> checks = verify_card(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()).checks
    >>> checks[0].name, checks[0].holds
    ('checksum', True)
    """

    name: str
    holds: bool | None
    detail: str
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Verification:
    """All checks of a card, and the card, where it could be read.

    Attributes
    ----------
    checks : tuple of Check
        All that was looked at, in the order of the report.
    card : Card or None
        None if it could not be read.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import verify_card
    >>> card = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()
    >>> verify_card(card).holds
    True
    >>> changed = verify_card(card.replace("1.0", "0.1"))
    >>> changed.verdict
    'not valid'
    >>> changed.raise_for_verdict()
    Traceback (most recent call last):
    ...
    labeldp.errors.CardError: the card was changed after it was written: its checksum does not fit
    """

    checks: tuple[Check, ...]
    card: Card | None

    def __bool__(self) -> bool:
        """Return whether the card is valid: ``if verify_card(text)`` does not accept others."""
        return self.holds

    @property
    def verdict(self) -> Verdict:
        """The verdict of all checks: one that fails outweighs one that cannot be made."""
        if any(check.holds is False for check in self.checks):
            return "not valid"
        if any(check.holds is None and check.needed for check in self.checks):
            return "cannot verify"
        return "valid"

    @property
    def holds(self) -> bool:
        """True if the card is valid."""
        return self.verdict == "valid"

    def raise_for_verdict(self) -> Card:
        """Return the card if it is valid, and private; else raise.

        Raises
        ------
        CardError
            If anything is false, or the card is not private.
        UncheckableError
            If this version cannot verify it.
        """
        self._refuse_false()
        return self.require_card()

    def _refuse_false(self, *passed_over: str) -> None:
        """Raise for the first check that fails, but for those of some names, also of one label or one fit."""
        for check in self.checks:
            if check.holds is False and check.name.rpartition(": ")[2] not in passed_over:
                raise CardError(check.detail)

    def require_card(self, *, allow_open: bool = False) -> Card:
        """Return the card, if nothing in it is false and all that is needed was checked; it may be not private.

        Parameters
        ----------
        allow_open : bool
            True to accept a card that was read with checks that this version cannot make; the caller then says so.

        Raises
        ------
        CardError
            If a check fails.
        UncheckableError
            If this version cannot make a check.
        """
        self._refuse_false("privacy")
        for check in self.checks:
            if check.holds is None and check.needed and not (allow_open and self.card):
                raise UncheckableError(check.detail)
        if self.card is None:
            raise CardError("the card cannot be read")
        return self.card

    @property
    def not_verifiable(self) -> tuple[str, ...]:
        """Statements that no check of a card can verify."""
        kind = "release" if self.card is None else self.card.kind
        by_kind = _NOT_VERIFIABLE_BY_KIND.get(kind, _NOT_VERIFIABLE_IN_FILES)
        return (*NOT_VERIFIABLE, *by_kind, _UNSIGNED)


def verify_card(text: str) -> Verification:
    """Check a card, and prove its mechanisms again; ``labeldp verify`` compares its files too.

    Nothing in a card is run or imported. Its faults are exceptions of ``raise_for_verdict()`` alone.

    Parameters
    ----------
    text : str
        The card of a mechanism, a release or a model.

    Returns
    -------
    Verification

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import verify_card
    >>> verification = verify_card(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json())
    >>> verification.raise_for_verdict().kind
    'mechanism'
    >>> [check.name for check in verification.checks], verification.verdict
    (['checksum', 'agreement', 'proof', 'privacy'], 'valid')
    """
    checks: list[Check] = []
    try:
        with refuse_other_errors("the card"):
            content = card_format.parse(text, *CARDS)
            checks.append(Check("checksum", True, _UNDAMAGED))
            card = Card.of_content(content)
            checks += _evidence(card)
    except LabelDPError as error:
        name = "agreement" if checks else "checksum"
        is_open = isinstance(error, UncheckableError)
        refusal = Check(name, None if is_open else False, error.message, needed=is_open)
        return Verification((*checks[:1], refusal), None)
    return Verification(tuple(checks), card)


def _evidence(card: Card) -> list[Check]:
    """Return the checks of a card that agrees with itself: its proofs, its noise, and whether it is private."""
    if card.labels:
        agreement, checks = _AGREEMENT_OF_LABELS, _checks_of_each("label", card.labels.values())
    elif card.fits:
        agreement, checks = _AGREEMENT_OF_FITS, [*_checks_of_each("fit", card.fits), _fits(card.terms)]
    else:
        agreement = _AGREEMENT_OF_MECHANISM if card.kind == "mechanism" else _AGREEMENT
        proofs = [_proof(mechanism, name) for name, mechanism in _numbered("proof", card.terms.mechanisms)]
        checks = [*proofs, *noise_checks(card)]
    return [Check("agreement", True, agreement), *checks, _privacy(card)]


def _checks_of_each(name: str, cards: Iterable[Card]) -> list[Check]:
    """Return the checks of each of several labels or fits, with its number."""
    return [
        replace(check, name=f"{name} {number}: {check.name}")
        for number, card in enumerate(cards, 1)
        for check in _evidence(card)
    ]


def _numbered(name: str, items: Collection[T]) -> Iterator[tuple[str, T]]:
    """Yield items with a name, and a number where there are several."""
    for number, item in enumerate(items, 1):
        yield (name if len(items) == 1 else f"{name} {number}"), item


def noise_checks(card: Card) -> Iterator[Check]:
    """Yield the noise of priors and statistics, computed again, and whether a score is of other rows."""
    yield from _priors(card.terms)
    yield from _calibrations(card.terms.statistics, "noise")
    split = card.terms.split
    purposes = {charge.purpose for charge in card.terms.charges} - {"labels", "prior"}
    for purpose in sorted(purposes if split is None else purposes - {"score"}):
        yield _purpose(card.terms, purpose)
    if split is not None:
        yield _held_out_score(card.terms)
        yield Check("held out", True, f"the card says that labeldp split the rows, by the seed {split.seed}")
    yield from _scope_checks(card.terms)
    if split is None and "quality" in card.content:
        detail = "the card may say that scored rows were held out, which nobody can check: both costs are counted"
        yield Check("held out", None, detail)


def _fits(terms: Terms) -> Check:
    """Say the cost of a label and of a person in all fits, and who vouches for it."""
    people = f", {terms.cost} for a person in all of them" if terms.counts_people else ""
    detail = (
        f"{terms.label_cost} for a label in {len(terms.fits)} fits{people}: charges without a segment and the "
        "largest sum of one segment; that segments have different rows is the owner's word, or of the ids compared"
    )
    return Check("fits", None, detail)


def _scope_checks(terms: Terms) -> Iterator[Check]:
    """Say who vouches for the people of the rows and for their segments: no card shows either."""
    cost = f"{terms.label_cost} for a label, {terms.cost} for a person with up to {terms.rows_per_person:,} rows"
    if terms.people is not None:
        people = terms.people
        detail = (
            f"{cost}: the card says that rows of {people.people:,} people were counted, by ids it does not show"
        )
        yield Check("people", None, detail)
    elif terms.rows_per_person > 1:
        yield Check("people", None, f"{cost}: the owner declares their number, which nobody can check")
    if terms.segments is not None:
        by = "ids were compared, says the card" if terms.segments.checked else "the owner declares so"
        detail = f"{terms.segments}: {by}; rows of other segments are other rows, which the card cannot show"
        yield Check("segments", None, detail)


def _proof(mechanism: Mechanism, name: str) -> Check:
    proof = proof_of(mechanism)
    ratio = "" if proof.worst_ratio is None else f"; worst ratio of counts {proof.worst_ratio}"
    proven = f"{type(mechanism).__name__}: {describe_proof(mechanism)}"
    return Check(name, True, f"{proven}{ratio}")


def _priors(terms: Terms) -> Iterator[Check]:
    """Say of each prior whether it was public, or which charge paid for it, and show its noise, computed again."""
    for name, prior in _numbered("prior", terms.priors):
        if prior is not None and prior.origin is None:
            yield Check(name, None, "the card calls it public: known without these labels, which nobody can check")
        elif prior is not None:
            yield from _origin(prior.origin, name)
    shown_origins = set(origins_of(terms.priors))
    for origin in dict.fromkeys(origins_of(terms.mechanisms)):
        if origin not in shown_origins:  # one charge may pay for two that differ: each must state its noise
            yield from _origin(origin, "prior of the design")


def _origin(origin: Origin, name: str) -> Iterator[Check]:
    charge = charge_of_origin(origin)
    payment = f"paid for by {charge.description}, {charge.budget}"
    if origin.cost is None:
        yield Check(name, None, f"{payment}, and the card does not say with which noise", needed=True)
    else:
        reports = f"labels randomised by {type(origin.reports).__name__}" if origin.reports else "the noise below"
        yield Check(name, True, f"{payment}; {reports} costs {origin.cost} for a row")
        yield from _calibrations(origin.statistics, f"{name} noise")


def _purpose(terms: Terms, purpose: str) -> Check:
    """Compare the statistics of a purpose with the charges for it, and with the notes of these."""
    charged, listed_cost = charged_for(terms, purpose), cost_of_statistics(terms, purpose)
    price, shown_cost = Budget(charged), Budget(listed_cost)
    if purpose == "sums" and terms.mechanisms and not terms.charges_for("labels"):
        cost = listed_cost + cost_of_mechanisms(terms)  # at most the charge, by agreement
        if cost < (1 - _UNEXPLAINED) * charged:
            detail = f"{price} was charged for sums and labels, and the card shows noise for {Budget(cost)}"
            return Check(purpose, None, detail, needed=True)
        return Check(purpose, True, f"the noise above and that of labels cost {Budget(cost)} of {price}")
    if _notes_other_noise(terms, purpose):
        return Check(purpose, False, f"the charge for {purpose} notes other noise than the card lists")
    if listed_cost != charged:
        detail = f"{price} was charged for {purpose}, and the card lists statistics for {shown_cost} of it"
        return Check(purpose, None, detail, needed=True)
    return Check(purpose, True, f"the noise above costs {shown_cost} in all: the charge for {purpose}")


def _notes_other_noise(terms: Terms, purpose: str) -> bool:
    """Return whether charges for a purpose note other noise than the statistics for it, where there are any."""
    notes = [charge.mechanism for charge in terms.charges_for(purpose) if charge.mechanism is not None]
    noise = noise_notes(terms, purpose)
    return bool(notes and noise) and "; ".join(notes) != "; ".join(noise)


def _held_out_score(terms: Terms) -> Check:
    """Say whether the statistics of a score cost as much as its rows may spend, which the fit did not use."""
    if _notes_other_noise(terms, "score"):
        return Check("score", False, "the charge for score notes other noise than the card lists")
    listed_cost = cost_of_statistics(terms, "score")
    extra = charged_for(terms, "score")
    fit = terms.cost.exact_epsilon - extra
    if not listed_cost or extra != max(listed_cost - fit, 0):
        detail = f"the card lists statistics for {Budget(listed_cost)}, and charges {Budget(extra)} beyond the fit"
        return Check("score", None, detail, needed=True)
    unspent = f"which did not spend {Budget(fit)} on the fit"
    detail = f"the noise above costs {Budget(listed_cost)} for rows held out, {unspent}"
    return Check("score", True, f"{detail}: {Budget(extra)} more was charged" if extra else detail)


def _calibrations(statistics: Sequence[Statistic], name: str) -> Iterator[Check]:
    """Show the noise of each statistic, those that are the same once."""
    for label, statistic in _numbered(name, dict.fromkeys(statistics)):
        subject = f"{statistic.description} ({statistic.size:,} integer{'s' * (statistic.size != 1)})"
        sensitivity = f"sensitivity {statistic.sensitivity:,}, since {RULES[statistic.kind].reason}"
        noise = (
            f"over epsilon = {statistic.epsilon} that is noise of scale {statistic.noise.scale}, exactly as listed"
        )
        yield Check(label, True, f"{subject}: {sensitivity}; {noise}")


def _privacy(card: Card) -> Check:
    if not card.terms.secure:
        return Check("privacy", False, card.terms.guarantee)
    if card.kind == "mechanism":
        return Check("privacy", True, "nothing is released yet")
    cost = card.terms.cost
    odds = f"odds rise by {times(cost.epsilon)} at most"
    return Check("privacy", True, f"{cost} for all that this card lists: {odds}")
