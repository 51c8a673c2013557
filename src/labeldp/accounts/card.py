"""A card: one parser, for the card of a mechanism, a release, rows or a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labeldp._values import Data
from labeldp.accounts.agreement import (
    charge_of_origin,
    require,
    require_agreement,
    require_fits_agreement,
    require_joint_agreement,
)
from labeldp.accounts.budget import Charge, Declaration, missing_charges, total_of
from labeldp.accounts.explanation import Explanation, explain, explain_labels
from labeldp.accounts.schema import CARDS
from labeldp.accounts.terms import Terms, join_fits, join_terms
from labeldp.errors import CardError
from labeldp.mechanisms import card_format
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.typed_data import READERS, read, refuse_other_errors


@dataclass(frozen=True, slots=True)
class Card:
    """A card that was parsed, agrees with itself, and whose mechanisms were proven again.

    Attributes
    ----------
    kind : {"mechanism", "release", "releases", "row-release", "model"}
        The subject of the card; "releases" are several labels of the same rows. A model may have learnt on.
    content : dict
        All entries, as docs/formats.md has them.
    terms : Terms
        With mechanisms built anew from their parameters. Those of a mechanism alone have no rows and no charges.
    labels : dict of Card
        By name, each of several labels as a release of its own; empty for another kind.
    fits : sequence of Card
        The first fit and the updates of a model that learnt on, each as a model of its own.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import Card
    >>> card = Card.parse(ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5)).to_card())
    >>> card.kind, card.terms.cost
    ('release', Budget(epsilon=1.0))
    """

    kind: str
    content: Data
    terms: Terms
    labels: Mapping[str, Card] = field(default_factory=dict)
    fits: Sequence[Card] = ()

    @classmethod
    def parse(cls, text: str) -> Card:
        """Return a card from the text that ``to_json`` or ``to_card`` returned.

        Raises
        ------
        CardError
            If the text is not a card, or the card is damaged or contradicts itself.
        PrivacyProofError
            If a mechanism does not satisfy its promise.
        """
        with refuse_other_errors("the card"):
            return cls.of_content(card_format.parse(text, *CARDS))

    @property
    def releases(self) -> dict[Any, Card]:
        """The release of each label by the name of its column, None where the card does not say it."""
        if self.labels:
            return dict(self.labels)
        return {self.content.get("file", {}).get("column", self.content.get("label")): self}

    @classmethod
    def of_content(cls, content: Data) -> Card:
        """Return the card of parsed text; its schema is read first, and all else relies on it."""
        entries = read(CARDS[content["schema"]], content)
        kind = content["schema"].removeprefix("labeldp.")
        if kind == "mechanism":
            return cls(kind, content, _terms_of_mechanism(content))
        if kind == "releases":
            cards = cls._each_of(entries, "labels", "labeldp.release")
            terms = join_terms([card.terms for card in cards])
            require_joint_agreement(entries, terms, [card.content for card in cards])
            return cls(kind, content, terms, {card.content["label"]: card for card in cards})
        if kind == "updated-model":
            cards = cls._each_of(entries, "fits", "labeldp.model", model=entries["model"])
            terms = join_fits([card.terms for card in cards])
            require_fits_agreement(entries, terms)
            return cls("model", content, terms, fits=cards)
        terms = _terms(kind, entries)
        require_agreement(kind, entries, terms)
        return cls(kind, content, terms)

    @classmethod
    def _each_of(cls, entries: Data, name: str, schema: str, **shared: Any) -> tuple[Card, ...]:
        """Return each of several labels or fits as a card of its own, with the entries that all share."""
        require(len(entries[name]) > 1, f"it must have several {name}")
        shared |= {"schema": schema, "version": card_format.VERSION}
        if any({"file", *shared} & entry.keys() for entry in entries[name]):
            raise CardError("a part of a card must have no schema, version, file or model of its own")
        return tuple(cls.of_content({**entry, **shared}) for entry in entries[name])

    def explain(self, recorded: Sequence[Charge] | None = None) -> Explanation:
        """Return the meaning of the card, in sentences.

        Parameters
        ----------
        recorded : sequence of Charge, optional
            All charges of a ledger, to say what everything in it means.
        """
        ledger_cost = None
        if recorded is not None:
            further = missing_charges(recorded, self.terms.charges)
            ledger_cost = total_of([*self.terms.charges, *further], self.terms.segments)
        if self.labels:
            contents = {name: (card.terms, card.content) for name, card in self.labels.items()}
            return explain_labels(self.terms, contents, ledger_cost)
        return explain(self.terms, self.kind, self.content, ledger_cost)


def load_mechanism(text: str) -> Any:
    """Return the mechanism that a card describes, built and proven anew.

    Parameters
    ----------
    text : str
        The text that ``to_json`` returned.

    Raises
    ------
    CardError
        If the card is damaged, was tampered with, or its counts cannot be rebuilt.
    PrivacyProofError
        If the counts do not satisfy the promise of the card.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> ldp.load_mechanism(mech.to_json()) == mech
    True
    """
    with refuse_other_errors("the card"):
        return Card.of_content(card_format.parse(text)).terms.mechanisms[0]


def _terms_of_mechanism(content: Data) -> Terms:
    """Return the terms of a mechanism that was not used yet: no rows and no charges."""
    entry = {name: value for name, value in content.items() if name not in ("schema", "version")}
    mechanism: Mechanism = READERS[Mechanism](entry)
    is_secure = True
    if mechanism.origin is not None:
        charge_of_origin(mechanism.origin)
        is_secure = mechanism.origin.secure
    return Terms(0, (mechanism,), (None,), (), (mechanism.domain,), "local", is_secure)


def _terms(kind: str, entries: Data) -> Terms:
    """Return the terms of a release or a model: each part has one of the mechanisms, which are listed once."""
    mechanisms, numbers = entries["mechanisms"], entries["parts"]
    if not numbers and kind != "model" and "features" not in entries:
        raise CardError("the card shows no mechanism, so nothing says how labels were released")
    if list(dict.fromkeys(numbers)) != list(range(len(mechanisms))):
        raise CardError("the card must list each mechanism once, in the order in which its parts name them")
    names = ("rows", "trust", "secure", "split", "label_transform", "people")
    statements = ("intended_use", "recipient", "bounds_reason")
    fields: Data = {name: entries.get(name) for name in names}
    fields |= {name: tuple(entries[name]) for name in ("priors", "charges", "statistics")}
    return Terms(
        mechanisms=tuple(mechanisms[number] for number in numbers),
        bounds=tuple(map(tuple, entries["bounds"])),
        declaration=Declaration(**{name: entries.get(name) for name in statements}),
        **fields,
    )
