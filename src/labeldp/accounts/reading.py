"""Reading any card: its kind, its terms, whether it agrees with itself, and its proofs run again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from labeldp._values import Data
from labeldp.accounts.agreement import charge_of_origin, require_agreement
from labeldp.accounts.budget import Charge, Declaration, missing_charges, total_of
from labeldp.accounts.explanation import Explanation, explain
from labeldp.accounts.schema import CARDS
from labeldp.accounts.terms import Terms
from labeldp.errors import CardError
from labeldp.mechanisms import card_format
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.typed_data import READERS, canonical, read

MOST_MECHANISMS = 16
"""A card with more distinct ones is refused: proving one can take a second."""


@dataclass(frozen=True, slots=True)
class ReadCard:
    """A card that was read, checked and proven again.

    Attributes
    ----------
    kind : {"mechanism", "release", "row-release", "model"}
        What it is the card of.
    content : dict
        All that it says, as docs/formats.md has it.
    terms : Terms
        With mechanisms built anew from their parameters. Those of a mechanism alone have no rows and no charges.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import read_any_card
    >>> read = read_any_card(ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5)).to_card())
    >>> read.kind, read.terms.cost
    ('release', Budget(epsilon=1.0))
    """

    kind: str
    content: Data
    terms: Terms

    def explain(self, recorded: Sequence[Charge] | None = None) -> Explanation:
        """Return what the card says, in sentences.

        Parameters
        ----------
        recorded : sequence of Charge, optional
            All charges of a ledger, to say what everything in it means.
        """
        own = self.terms.charges
        others = None if recorded is None else total_of(missing_charges(recorded, own))
        return explain(self.terms, self.kind, self.content, others)


def load_mechanism(text: str) -> Any:
    """Return the mechanism that a card describes, built and proven anew.

    Parameters
    ----------
    text : str
        What ``to_json`` returned.

    Raises
    ------
    CardError
        If the card is damaged, was tampered with, or its counts cannot be rebuilt.
    PrivacyProofError
        If the counts do not satisfy what the card promises.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> ldp.load_mechanism(mech.to_json()) == mech
    True
    """
    return read_content(card_format.parse(text)).terms.mechanisms[0]


def read_any_card(text: str) -> ReadCard:
    """Return what a card says, if it holds.

    Parameters
    ----------
    text : str
        What ``to_json`` or ``to_card`` returned.

    Raises
    ------
    CardError
        If the text is not a card, or the card is damaged or contradicts itself.
    PrivacyProofError
        If a mechanism does not satisfy what it promises.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import read_any_card
    >>> read_any_card(ldp.Laplace(bounds=(0, 5), epsilon=1.0).to_json()).kind
    'mechanism'
    """
    return read_content(card_format.parse(text, *CARDS))


def read_content(content: Data) -> ReadCard:
    """Return what a card says whose text was parsed, as `read_any_card` does."""
    kind = content["schema"].removeprefix("labeldp.")
    _refuse_many(content)
    if kind == "mechanism":
        return ReadCard(kind, content, _terms_of_mechanism(content))
    card = read(CARDS[content["schema"]], content)
    terms = _terms(kind, card)
    require_agreement(kind, card, terms)
    return ReadCard(kind, content, terms)


def _refuse_many(content: Data) -> None:
    """Refuse a card with more distinct mechanisms than allowed, before any is built."""
    count = len({canonical(entry) for entry in _mechanism_entries(content)})
    if count > MOST_MECHANISMS:
        raise CardError(f"the card has {count} distinct mechanisms, and may have {MOST_MECHANISMS}")


def _mechanism_entries(data: Any) -> Iterator[Any]:
    """Yield the mechanisms in a card: its own, and those that priors and mechanisms come from."""
    if isinstance(data, dict):
        for name, value in data.items():
            if name == "mechanisms" and isinstance(value, list):
                yield from value
            if name == "reports":
                yield value
            if name in ("mechanisms", "priors", "origin", "reports"):
                yield from _mechanism_entries(value)
    elif isinstance(data, list):
        for item in data:
            yield from _mechanism_entries(item)


def _terms_of_mechanism(content: Data) -> Terms:
    """Return a mechanism that was not used yet as terms: it has no rows and no charges."""
    entry = {name: value for name, value in content.items() if name not in ("schema", "version")}
    mechanism: Mechanism = READERS[Mechanism](entry)
    if mechanism.origin is not None:
        charge_of_origin(mechanism.origin)
    secure = mechanism.origin is None or mechanism.origin.secure
    return Terms(0, (mechanism,), (None,), (), (mechanism.domain,), "local", secure)


def _terms(kind: str, card: Data) -> Terms:
    """Return what a card says as a value: each part has one of its mechanisms, which are listed once."""
    distinct, parts = card["mechanisms"], card["parts"]
    if not parts and kind != "model":
        raise CardError("the card shows no mechanism, so nothing says how labels were released")
    if list(dict.fromkeys(parts)) != list(range(len(distinct))):
        raise CardError("the card must list each mechanism once, in the order in which its parts name them")
    return Terms(
        rows=card["rows"],
        mechanisms=tuple(distinct[part] for part in parts),
        priors=tuple(card["priors"]),
        charges=tuple(card["charges"]),
        bounds=tuple(map(tuple, card["bounds"])),
        trust=card["trust"],
        secure=card["secure"],
        statistics=tuple(card["statistics"]),
        split=card.get("split"),
        declaration=Declaration(card.get("purpose"), card.get("recipient"), card.get("bounds_reason")),
        label_transform=card.get("label_transform"),
    )
