"""Reading any card: its kind, its terms, whether it agrees with itself, and its proofs run again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from labeldp import card_format
from labeldp._values import Bounds
from labeldp.cards.contradictions import contradictions
from labeldp.channels.proof import fingerprint
from labeldp.errors import CardError, LabelDPError, PrivacyProofError, UncheckableError
from labeldp.histogram import Histogram
from labeldp.ledger import Charge, Statistic
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.registry import registered_class
from labeldp.priors.origin import Origin
from labeldp.release.costs import Costs
from labeldp.release.explanation import Explanation, explain
from labeldp.release.scores import score_charges
from labeldp.release.terms import Terms

SCHEMAS = (card_format.SCHEMA, "labeldp.release", "labeldp.row-release", "labeldp.model")
MOST_MECHANISMS = 16
"""A card with more distinct ones is refused: proving one can take a second."""

MOST_STATISTICS = 256


@dataclass(frozen=True, slots=True)
class ReadCard:
    """A card that was read, checked and proven again.

    Attributes
    ----------
    kind : {"mechanism", "release", "row-release", "model"}
        What it is the card of.
    content : dict
        All that it says.
    terms : Terms
        With mechanisms built anew from their parameters. Those of a mechanism alone have no rows and no charges.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.cards import read_any_card
    >>> read = read_any_card(ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5)).to_card())
    >>> read.kind, read.terms.cost
    ('release', Budget(epsilon=1.0))
    """

    kind: str
    content: dict[str, Any]
    terms: Terms

    def costs(self, recorded: Sequence[Charge] | None = None, besides: Sequence[Charge] = ()) -> Costs:
        """Return what was paid, and what else a ledger counts.

        Parameters
        ----------
        recorded : sequence of Charge, optional
            All charges of a ledger.
        besides : sequence of Charge
            What was paid for together with it, for other rows; by default the score that is on the card.
        """
        return Costs.of(self.terms.charges, besides or score_charges(self.terms, self.content), recorded)

    def explain(self, costs: Costs | None = None) -> Explanation:
        """Return what the card says, in words."""
        return explain(self.terms, self.kind, self.content, costs or self.costs())


def load_mechanism(text: str, *, allow_no_privacy: bool = False) -> Any:
    """Return the mechanism that a card describes, built and proven anew.

    Parameters
    ----------
    text : str
        What ``to_json`` returned.
    allow_no_privacy : bool
        Whether a card of `NoPrivacy` may be loaded.

    Raises
    ------
    CardError
        If the card is damaged, was tampered with, or its counts cannot be rebuilt.
    PrivacyProofError
        If the counts do not keep the card's promise.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> ldp.load_mechanism(mech.to_json()) == mech
    True
    """
    content = card_format.parse(text)
    cls = registered_class(content.get("mechanism"))
    if set(content) != {"schema", "version", "mechanism", "parameters", "channel", "proof"}:
        raise CardError("the card has other entries than a card of a mechanism")
    try:
        mechanism: Mechanism = cls.from_parameters(content["parameters"])
    except LabelDPError:
        raise
    except Exception:
        raise CardError("the card's parameters are not those of its mechanism") from None
    if fingerprint(mechanism.channel) != content["channel"]:
        raise CardError("the card's counts cannot be rebuilt from its parameters")
    proof = mechanism.verify()
    if math.isinf(proof.epsilon) and not allow_no_privacy:
        raise CardError("this card gives no privacy at all; say allow_no_privacy=True if you mean it")
    if content["proof"] != proof.as_data():
        raise CardError("the card claims another proof than its counts give")
    return mechanism


def read_any_card(
    text: str, *, allow_no_privacy: bool = False, most_mechanisms: int = MOST_MECHANISMS
) -> ReadCard:
    """Return what a card says, if it holds.

    Parameters
    ----------
    text : str
        What ``to_json`` or ``to_card`` returned.
    allow_no_privacy : bool
        Whether a card of `NoPrivacy` may be read.
    most_mechanisms : int
        A card with more distinct ones is refused, because a hostile one could keep the prover busy for hours.

    Raises
    ------
    CardError
        If the text is not a card, or the card is damaged or contradicts itself.
    PrivacyProofError
        If a mechanism does not keep its promise.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.cards import read_any_card
    >>> read_any_card(ldp.Laplace(bounds=(0, 5), epsilon=1.0).to_json()).kind
    'mechanism'
    """
    content = card_format.parse(text, *SCHEMAS)
    kind = content["schema"].removeprefix("labeldp.")
    try:
        if kind == "mechanism":
            mechanism = load_mechanism(text, allow_no_privacy=allow_no_privacy)
            bounds = (mechanism.domain,) if mechanism.private else ()
            terms = Terms(0, (mechanism,), (None,), (), bounds, "local", True)
        else:
            terms = _terms(kind, content, most_mechanisms)
            for contradiction in contradictions(kind, content, terms):
                raise CardError(f"the card contradicts itself: {contradiction}")
            if isinstance(quality := content.get("quality"), dict):
                parse_statistics(quality.get("statistics", []))
    except (CardError, PrivacyProofError):
        raise
    except LabelDPError as error:
        raise CardError(f"the card cannot be used: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise CardError(f"the card lacks what a card of a {kind} has") from None
    return ReadCard(kind, content, terms)


def read_release_card(text: str, *, most_mechanisms: int = MOST_MECHANISMS) -> dict[str, Any]:
    """Return the content of a release's card, checked: its checksum fits, its mechanisms prove again.

    Parameters
    ----------
    text : str
        What `Release.to_card` returned.
    most_mechanisms : int
        A card with more distinct ones is refused, because a hostile one could keep the prover busy for hours.

    Returns
    -------
    dict
        All entries of the card; ``"mechanisms"`` are mechanisms, built anew.

    Raises
    ------
    CardError
        If the card was changed, contradicts itself, or is not a release's.
    PrivacyProofError
        If a mechanism does not keep its promise.

    Examples
    --------
    >>> import labeldp as ldp
    >>> card = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), mechanism="laplace").to_card()
    >>> content = ldp.read_release_card(card)
    >>> content["cost"], content["rows"], content["mechanisms"][0]
    ({'delta': 0.0, 'epsilon': 1.0}, 2, Laplace(bounds=(0.0, 5.0), epsilon=1.0))
    """
    card_format.parse(text, "labeldp.release")
    card = read_any_card(text, most_mechanisms=most_mechanisms)
    return {**card.content, "mechanisms": list(card.terms.mechanisms)}


def load_all(texts: Any, most: int = MOST_MECHANISMS) -> list[Mechanism]:
    """Return the mechanisms of several cards, each distinct one built and proven once."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise CardError("the card's mechanisms are not a list of cards")
    if not texts:
        raise CardError("the card shows no mechanism, so nothing says how labels were released")
    distinct = dict.fromkeys(texts)
    if len(distinct) > most:
        raise CardError(
            f"the card has {len(distinct)} distinct mechanisms, and proving them may take a second each: if you "
            f"trust its writer, read it in Python with most_mechanisms={len(distinct)}"
        )
    loaded = {text: load_mechanism(text) for text in distinct}
    return [loaded[text] for text in texts]


def _terms(kind: str, content: dict[str, Any], most_mechanisms: int) -> Terms:
    """Return what a card says as a value, if each entry is of its kind: others print and compute with them."""
    rows, trust = content["rows"], content["trust"]
    if type(rows) is not int or not 1 <= rows < 1 << 63:
        raise CardError("the card's rows must be a positive integer of 63 bits")
    if trust not in ("curator", "local"):
        raise CardError('the card\'s trust must be "curator" or "local"')
    from_sums = kind == "model" and content["mechanisms"] == []
    charges = tuple(_charge(place, data) for place, data in enumerate(content["charges"]))
    return Terms(
        rows=rows,
        mechanisms=() if from_sums else tuple(load_all(content["mechanisms"], most_mechanisms)),
        priors=_priors(content["priors"], charges, most_mechanisms),
        charges=charges,
        bounds=tuple(Bounds(pair) for pair in content["bounds"]),
        trust=trust,
        secure=content["words"] == "secure",
        statistics=parse_statistics(content.get("statistics", [])),
    )


def _charge(place: int, data: Any) -> Charge:
    try:
        return Charge.from_data(data)
    except LabelDPError as error:
        raise CardError(f"charges[{place}] is not a valid charge: {error}") from None


def _priors(entries: list[Any], charges: tuple[Charge, ...], most_mechanisms: int) -> tuple[Histogram | None, ...]:
    """Return the priors, each with its noise computed or proven again; older cards show none."""
    texts = [entry["reports"] for entry in entries if entry is not None and "reports" in entry]
    loaded = dict(zip(texts, load_all(texts, most_mechanisms), strict=True)) if texts else {}

    def read(entry: dict[str, Any]) -> Histogram:
        place = entry.get("charge")
        paid = charges[place] if type(place) is int and 0 <= place < len(charges) else None
        before = None if paid is None or paid.column is not None else paid  # else this release paid for it
        statistics = parse_statistics(entry.get("statistics", []))
        origin = Origin(statistics, loaded.get(entry.get("reports")), before)
        return Histogram(entry["nodes"], entry["masses"], None if origin == Origin() else origin)

    return tuple(None if entry is None else read(entry) for entry in entries)


def parse_statistics(entries: Any) -> tuple[Statistic, ...]:
    """Return what left with noise, each with its noise computed again; older cards list none."""
    if not isinstance(entries, list) or len(entries) > MOST_STATISTICS:
        raise CardError(f"the card's statistics must be a list of at most {MOST_STATISTICS}")
    statistics = []
    for place, data in enumerate(entries):
        try:
            statistics.append(Statistic.from_data(data))
        except UncheckableError:
            raise
        except LabelDPError as error:
            raise CardError(f"statistics[{place}] does not hold: {error}") from None
    return tuple(statistics)
