"""Checking a card again, step by step: what holds, what does not, and what no check can show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from labeldp import card_format
from labeldp._values import rounded_up
from labeldp.cards.agreement import charged_for, spent_on_statistics
from labeldp.cards.reading import ReadCard, read_content
from labeldp.cards.schema import CARDS
from labeldp.errors import CardError, LabelDPError, UncheckableError
from labeldp.ledger import RULES, Statistic
from labeldp.priors.origin import origins_of
from labeldp.release.explanation import not_private, proof_of
from labeldp.release.numbers import times
from labeldp.release.terms import Terms

BEYOND = (
    "that the noise came from the secure source: the card says so, and only whoever ran it knows",
    "that nobody kept the true labels, or released them elsewhere too",
    "that what was summed, counted or randomised is what the card lists, each row's label once in each",
    "that the bounds were chosen without looking at the labels, and so was a prior that it calls public",
)
"""What verifying a card cannot show, of anything, signed or not."""

_BEYOND_FILES = (
    "that the file holds private labels and not the true ones: its checksum only ties the card to its bytes",
    "that the column it names holds the private labels: it only shows that the file has such a column",
)
_BEYOND_MODELS = (
    "that the numbers in the model's files came of what the card lists: checksums only tie them to the card",
)

_UNSIGNED = "who wrote the card: its checksum finds damage, but it is no signature"
_SIGNED = "that whoever signed the card tells the truth in it"

Verdict = Literal["holds", "does not hold", "cannot be checked here"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        What was checked, such as ``"proof"``.
    holds : bool or None
        None if it could not be looked at, and then ``detail`` says why.
    detail : str
        What came out, in a sentence.
    needed : bool
        Whether the card cannot be said to hold without it: a part of the guarantee, and no file beside the card.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.cards import verify_card
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
    card : ReadCard or None
        None if it could not be read.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.cards import verify_card
    >>> card = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()
    >>> verify_card(card).holds
    True
    >>> changed = verify_card(card.replace("1.0", "0.1"))
    >>> changed.verdict, changed.checks[0].detail
    ('does not hold', 'the card was changed after it was written: its checksum does not fit')
    """

    checks: tuple[Check, ...]
    card: ReadCard | None

    @property
    def verdict(self) -> Verdict:
        """What all checks come to; what does not hold outweighs what cannot be checked."""
        if any(check.holds is False for check in self.checks):
            return "does not hold"
        if any(check.holds is None and check.needed for check in self.checks):
            return "cannot be checked here"
        return "holds"

    @property
    def holds(self) -> bool:
        """Whether the verdict is that the card holds."""
        return self.verdict == "holds"

    def require_card(self, *, allow_open: bool = False) -> ReadCard:
        """Return the card, if nothing in it is false and all that is needed was checked; it may be not private.

        Parameters
        ----------
        allow_open : bool
            Whether a card that was read may hold what cannot be checked here; the caller then says so.

        Raises
        ------
        CardError
            If something does not hold.
        UncheckableError
            If something cannot be checked here.
        """
        for check in self.checks:
            if check.holds is False and check.name != "privacy":
                raise CardError(check.detail)
        for check in self.checks:
            if check.holds is None and check.needed and not (allow_open and self.card):
                raise UncheckableError(check.detail)
        if self.card is None:
            raise CardError("the card cannot be read")
        return self.card

    @property
    def beyond(self) -> tuple[str, ...]:
        """What the checks cannot show."""
        signed = any(check.name == "signature" and check.holds for check in self.checks)
        kind = "release" if self.card is None else self.card.kind
        more = {"release": _BEYOND_FILES, "row-release": _BEYOND_FILES, "model": _BEYOND_MODELS}.get(kind, ())
        return (*BEYOND, *more, _SIGNED if signed else _UNSIGNED)


def verify_card(text: str) -> Verification:
    """Check a card, and prove its mechanisms again; ``labeldp verify`` compares its files and its signature too.

    Nothing in a card is run or imported, and nothing that is wrong with it is an exception here.

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
    >>> from labeldp.cards import verify_card
    >>> verification = verify_card(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json())
    >>> [check.name for check in verification.checks], verification.verdict
    (['checksum', 'agreement', 'proof', 'privacy'], 'holds')
    """
    checks: list[Check] = []
    try:
        content = card_format.parse(text, *CARDS)
        checks.append(
            Check("checksum", True, "the card is undamaged; anyone can compute a checksum, a forger too")
        )
        card = read_content(content, allow_no_privacy=True)
        found = tuple(_checks(card))
    except UncheckableError as error:
        return Verification((*checks, Check("agreement", None, str(error), needed=True)), None)
    except LabelDPError as error:
        return Verification((*checks, Check("agreement" if checks else "checksum", False, str(error))), None)
    return Verification((*checks, *found), card)


def _checks(card: ReadCard) -> Iterator[Check]:
    """Yield what can be checked of a card that was read: its proofs, its noise, and whether it is private."""
    agreement = (
        "its counts follow from its parameters, and its proof from its counts"
        if card.kind == "mechanism"
        else "its charges pay for all it shows, and give the cost and guarantee it states"
    )
    yield Check("agreement", True, agreement)
    yield from _proofs(card)
    yield from noise_checks(card)
    yield _privacy(card)


def noise_checks(card: ReadCard) -> Iterator[Check]:
    """Yield the noise of priors and statistics, computed again, and whether a score is of other rows."""
    yield from _priors(card.terms)
    yield from _noise(card.terms)
    if "quality" in card.content:
        yield _held_out(card.terms)


def _proofs(card: ReadCard) -> Iterator[Check]:
    mechanisms = card.terms.mechanisms
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


def _priors(terms: Terms) -> Iterator[Check]:
    """Say of each prior whether it was public, or which charge paid for it, and show its noise, computed again."""
    places = {charge: place for place, charge in enumerate(terms.charges)}
    for name, origin in _origins(terms):
        if origin is None:
            yield Check(name, None, "the card calls it public: known without these labels, which nobody can check")
            continue
        charge = origin.charge
        which = f"charges[{places[charge]}], " if charge in places else ""
        paid = f"paid for by {which}{charge.what}, epsilon = {charge.budget.exact_epsilon}"
        if origin.cost is None:
            yield Check(name, None, f"{paid}, and the card does not say with which noise", needed=True)
        elif origin.reports is not None:
            proof = proof_of(origin.reports)
            how = f"from labels randomised by {type(origin.reports).__name__}, proven to keep"
            yield Check(name, True, f"{paid}; {how} epsilon = {rounded_up(proof.epsilon, 9)}")
        else:
            yield Check(
                name, True, f"{paid}; the noise below costs epsilon = {origin.cost.exact_epsilon} for a row"
            )
            yield from _calibrations(origin.statistics, f"{name} noise")


def _origins(terms: Terms) -> Iterator[tuple[str, Any]]:
    """Yield where each prior comes from, those that mechanisms were designed with before included, once."""
    shown = [prior for prior in terms.priors if prior is not None]
    for column, prior in enumerate(terms.priors):
        if prior is not None:
            yield "prior" if len(terms.priors) == 1 else f"prior {column + 1}", prior.origin
    known = {prior.origin.charge for prior in shown if prior.origin is not None}
    for origin in origins_of(terms.mechanisms):
        if origin.charge not in known:
            known.add(origin.charge)
            yield "prior of the design", origin


def _noise(terms: Terms) -> Iterator[Check]:
    """Show the noise of each statistic, computed again, and whether the statistics make up what was charged."""
    yield from _calibrations(terms.statistics, "noise")
    spent = spent_on_statistics(terms)
    for purpose in sorted({charge.purpose for charge in terms.charges} - {"labels", "prior"}):
        charged = charged_for(terms, purpose).exact_epsilon
        listed = spent[purpose].exact_epsilon if purpose in spent else Fraction(0)
        if listed == charged and not _notes_fit(terms, purpose):
            detail = f"the charge for {purpose} notes other noise than the card lists"
            yield Check(purpose, False, detail)
        elif listed == charged:
            whom = f", for a person's {terms.rows_per_person:,} rows" if terms.rows_per_person > 1 else ""
            detail = f"the noise above costs epsilon = {listed} in all{whom}: what was charged for {purpose}"
            yield Check(purpose, True, detail)
        else:
            detail = (
                f"epsilon = {charged} was charged for {purpose}, and the card says for {listed} of it what left"
            )
            yield Check(purpose, None, detail, needed=True)


def _notes_fit(terms: Terms, purpose: str) -> bool:
    """Return whether charges say of the noise, if anything, what the card lists."""
    listed = [one for one in terms.statistics if one.purpose == purpose]
    noted = [charge.mechanism for charge in terms.charges if charge.purpose == purpose]
    return None in noted or "; ".join(map(str, noted)) == "; ".join(map(str, listed))


def _held_out(terms: Terms) -> Check:
    """Say whether the rows of a score are known to be others than those of its model."""
    if terms.split is None:
        detail = "the card may say that scored rows were held out, which nobody can check: both costs are counted"
        return Check("held out", None, detail)
    split = terms.split
    rows = split.train_rows + split.test_rows
    detail = f"labeldp split {rows:,} rows itself, by a shuffle with the seed {split.seed}"
    larger = ", so no label paid for the model and the score" if terms.rows_per_person == 1 else ""
    return Check("held out", True, f"the card says that {detail}{larger}")


def _calibrations(statistics: Sequence[Statistic], name: str) -> Iterator[Check]:
    """Show the noise of each statistic, those that are the same together."""
    different = Counter(statistics)
    for k, (statistic, often) in enumerate(different.items()):
        which = name if len(different) == 1 else f"{name} {k + 1}"
        yield Check(which, True, _calibration(statistic) + (f", {often} times" if often > 1 else ""))


def _calibration(statistic: Statistic) -> str:
    said = statistic.size == 1 or statistic.what.startswith(f"{statistic.size:,} ")
    size = "" if said else f" ({statistic.size:,} integers)"
    return (
        f"{statistic.what}{size}: sensitivity {statistic.sensitivity:,}, since {RULES[statistic.kind].reason}; "
        f"over epsilon = {statistic.epsilon} that is noise of scale {statistic.noise.scale}, exactly as listed"
    )


def _privacy(card: ReadCard) -> Check:
    if reason := not_private(card.terms):
        return Check("privacy", False, reason)
    if card.kind == "mechanism":
        return Check("privacy", True, "nothing is released yet")
    epsilon, delta = card.terms.cost.epsilon, card.terms.cost.delta
    second, aside = (f", delta = {rounded_up(delta, 3)}", ", delta left aside") if delta else ("", "")
    detail = f"epsilon = {rounded_up(epsilon)}{second} for all that this card lists"
    return Check("privacy", True, f"{detail}: odds rise by {times(epsilon)} at most{aside}")
