"""Reading any card: whose schema it is, whether it agrees with itself, and its proof run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labeldp import card_format
from labeldp._validation import as_bounds
from labeldp.errors import CardError, LabelDPError, PrivacyProofError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, total_of
from labeldp.mechanisms.base import MOST_MECHANISMS, Mechanism, load_all, load_mechanism
from labeldp.release.terms import read_release_card, refuse_contradictions, stated_charges

__all__ = ["ReadCard", "read_any_card", "schema_of"]


@dataclass(frozen=True, slots=True)
class ReadCard:
    """A card that was read, checked and proven again.

    Attributes
    ----------
    kind : {"mechanism", "release", "row-release", "model"}
    content : dict
        All that it says.
    mechanisms : tuple of Mechanism
        Built anew from its parameters; empty for a model, whose card carries none.
    charges : tuple of Charge
        What it cost; empty for a mechanism that was not used yet.
    priors : tuple of Histogram or None
    bounds : tuple of (lo, hi)
        One for each label column.
    """

    kind: str
    content: dict[str, Any]
    mechanisms: tuple[Mechanism, ...]
    charges: tuple[Charge, ...]
    priors: tuple[Histogram | None, ...]
    bounds: tuple[tuple[float, float], ...]

    @property
    def cost(self) -> Budget:
        """What all of it cost."""
        return total_of(self.charges)

    @property
    def secure(self) -> bool:
        """Whether the noise came from the secure source; a mechanism alone made none yet."""
        return bool(self.content.get("words", "secure") == "secure")


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
        If the card is damaged, contradicts itself, or is none.
    PrivacyProofError
        If a mechanism does not keep its promise.

    Examples
    --------
    >>> import labeldp as ldp
    >>> read_any_card(ldp.Laplace(bounds=(0, 5), epsilon=1.0).to_json()).kind
    'mechanism'
    """
    schema = schema_of(text)
    try:
        if schema == card_format.SCHEMA:
            return _mechanism(text, allow_no_privacy)
        return _READERS[schema](text, most_mechanisms)
    except (CardError, PrivacyProofError):
        raise
    except LabelDPError as error:
        raise CardError(f"the card cannot be used: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise CardError("the card lacks what a card of its kind has") from None


def schema_of(text: str) -> str:
    """Return which kind of card this is, by what it says of itself.

    Raises
    ------
    CardError
        If it is none.
    """
    card_format.refuse_too_long(text)
    try:
        schema = json.loads(text).get("schema")
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise CardError("this is no card: it is not valid JSON, or no object") from None
    if not isinstance(schema, str) or schema not in (card_format.SCHEMA, *_READERS):
        raise CardError(
            f"this is no card of labeldp; its schema is none of {', '.join((card_format.SCHEMA, *_READERS))}"
        )
    return schema


def _mechanism(text: str, allow_no_privacy: bool) -> ReadCard:
    content = card_format.parse(text)
    mechanism = load_mechanism(text, allow_no_privacy=allow_no_privacy)
    pair = getattr(mechanism, "bounds", None) or getattr(mechanism, "interval", None)
    return ReadCard("mechanism", content, (mechanism,), (), (None,), (pair,) if pair else ())


def _range_of(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return the lowest and the highest label that a mechanism is made for; None if it does not say."""
    named = (getattr(mechanism, name, None) for name in ("bounds", "interval", "edges"))
    edges = next((ends for ends in named if ends is not None), None)
    return (float(edges[0]), float(edges[-1])) if edges is not None else None


def _apart(own: tuple[float, float] | None, bounds: tuple[float, float]) -> bool:
    """Return whether two ranges share no label; one may be wider: a mechanism made already keeps its own."""
    return own is not None and (own[1] <= bounds[0] or bounds[1] <= own[0])


def _facts(content: dict[str, Any]) -> None:
    """Refuse public facts that are not of their kind: others print, format and compute with them."""
    rows, trust = content["rows"], content.get("trust", "curator")
    if type(rows) is not int or not 1 <= rows < 1 << 63 or trust not in ("curator", "local"):
        raise CardError("the card's rows or trust are none")


def _release(text: str, most: int) -> ReadCard:
    content = read_release_card(text, most_mechanisms=most)
    _facts(content)
    priors = tuple(None if p is None else Histogram(p["nodes"], p["masses"]) for p in content["priors"])
    bounds = tuple(as_bounds(pair) for pair in content["bounds"])
    if not len(bounds) == len(priors) == len(content["mechanisms"]):
        raise CardError("the card contradicts itself: each mechanism needs bounds, and a prior or none")
    if not all(_inside(prior, pair) for prior, pair in zip(priors, bounds, strict=True)):
        raise CardError("the card contradicts itself: a prior lies outside its bounds")
    if any(_apart(_range_of(one), pair) for one, pair in zip(content["mechanisms"], bounds, strict=True)):
        raise CardError("the card contradicts itself: a mechanism is made for labels outside its bounds")
    charges = tuple(stated_charges(content))
    return ReadCard("release", content, tuple(content["mechanisms"]), charges, priors, bounds)


def _inside(prior: Histogram | None, bounds: tuple[float, float]) -> bool:
    if prior is None:
        return True
    (low, high), rounding = bounds, 1e-9 * (bounds[1] - bounds[0])
    return low - rounding <= prior.bounds[0] and prior.bounds[1] <= high + rounding


def _row_release(text: str, most: int) -> ReadCard:
    content = card_format.parse(text, "labeldp.row-release")
    _facts(content)
    mechanisms = tuple(load_all(content["mechanisms"], most))
    charges = tuple(refuse_contradictions(content, mechanisms))
    known = content["knowledge"]
    bounds = ((float(known["low"]), float(known["high"])),)
    return ReadCard("row-release", content, mechanisms, charges, (), bounds)


def _model(text: str, _most: int) -> ReadCard:
    content = card_format.parse(text, "labeldp.model")
    _facts(content)
    return ReadCard("model", content, (), tuple(stated_charges(content)), (), (as_bounds(content["bounds"]),))


_READERS: dict[str, Callable[[str, int], ReadCard]] = {
    "labeldp.release": _release,
    "labeldp.row-release": _row_release,
    "labeldp.model": _model,
}
