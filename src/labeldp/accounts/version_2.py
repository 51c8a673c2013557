"""Cards of version 2, written by 0.2.0: their data in the form of version 3, by which they are read and verified.

Mechanisms are cards in text, with a hash of their channel by the names that its class and fields had then. A score
on rows held out is not among the charges; here it is, as it is in the ledger.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from labeldp._values import Data
from labeldp.accounts.agreement import require
from labeldp.accounts.budget import Charge, group_budget
from labeldp.accounts.schema import Statistics, build_mechanism
from labeldp.accounts.statistic import RULES, cost_of
from labeldp.accounts.terms import Terms
from labeldp.errors import CardError, LabelDPError, UncheckableError
from labeldp.mechanisms import card_format
from labeldp.mechanisms.base import Mechanism, array_bytes, fingerprint, join_fingerprints
from labeldp.mechanisms.typed_data import parse_fraction, read

_HASHED = {
    "shift": ("ShiftChannel", "low", "high", "steps", "margin", "reach", "table", "promise"),
    "table": ("TableChannel", "low", "high", "values", "table", "promise"),
    "window": ("WindowChannel", *("low", "high", "cells", "window", "background", "extra", "promise"),
               *("bins", "cuts", "values", "spread_outside")),
}  # fmt: skip
"""What version 2 hashes of a channel: names of 0.2.0, which no renaming changes."""

_FIELDS = {
    "card": "schema version guarantee cost words rows trust bounds mechanisms priors charges statistics file "
    "label id release rounds knowledge arrays model note features format files versions quality",
    "prior": "nodes masses source charge statistics reports",
    "score": "how rows figures epsilon charge statistics",
    "mechanism": "schema version mechanism parameters channel proof",
}
"""What version 2 has in a card, a prior, a score and a mechanism; other objects are as in version 3."""

_FREE = ("unbiased", "prior", "assumed")
"""What a score was estimated from at no cost: labels that were private already."""


def upgrade(content: Data) -> Data:
    """Return what a card says in the form of version 3, which its reader checks.

    What version 2 alone has is checked here: its hashes, its guarantee, its cost and the price of its score.
    """
    kind = content["schema"].removeprefix("labeldp.")
    try:
        if kind == "mechanism":
            return {"schema": content["schema"], "version": 2, **_build(content).as_data()}
        return _upgrade_terms(dict(content))
    except LabelDPError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        raise CardError(f"the card lacks what a card of a {kind} has") from None


def fingerprint_2(channel: Any) -> str:
    """Return the hash that version 2 has of a channel."""
    name, *fields = _HASHED[channel.as_data()["kind"]]
    digest = hashlib.sha256(name.encode())
    for field in fields:
        value = getattr(channel, field)
        if isinstance(value, np.ndarray):
            digest.update(field.encode() + array_bytes(value))
        elif field == "promise":
            digest.update(f"promise=Promise(epsilon={value.epsilon!r}, delta={value.delta!r});".encode())
        else:
            digest.update(f"{field}={value!r};".encode())
    return "sha256:" + digest.hexdigest()


def _refuse_unknown(data: Data, what: str) -> None:
    for name in sorted(data.keys() - set(_FIELDS[what].split())):
        raise CardError(f"the card has a field that version 2 does not have, {name[:60]!r}")


def _build(card: Data) -> Mechanism:
    """Return the mechanism of a card, if its counts have the hash and the proof that are stated."""
    _refuse_unknown(card, "mechanism")
    mechanism = build_mechanism(card["mechanism"], card["parameters"])
    proof = mechanism.verify()
    stated = {"epsilon": proof.epsilon, "delta": proof.delta}
    if (card["channel"], card["proof"]) != (fingerprint_2(mechanism.channel), stated):
        raise CardError("the card's counts and its proof cannot be rebuilt from its parameters")
    return mechanism


def _upgrade_terms(card: Data) -> Data:
    _refuse_unknown(card, "card")
    built = {text: _build(card_format.parse(text)) for text in dict.fromkeys(card["mechanisms"])}
    secure = card.pop("words") == "secure"
    stated = _terms_of(card["charges"], secure=secure)
    sentence = stated.guarantee.replace(" for all that this card lists", "").replace(
        "any of it", "anything released"
    )
    is_stated = (card["guarantee"], card["cost"]) == (sentence, stated.cost.rounded())
    require(is_stated, "its charges do not give the guarantee and the cost it states")
    statistics = _statistics(card.get("statistics", []))
    notes = _notes([built[text].channel for text in card["mechanisms"]], statistics)
    charges = [{**one, "mechanism": notes.get(one["mechanism"], one["mechanism"])} for one in card["charges"]]
    priors = [entry and _prior(entry, charges) for entry in card["priors"]]
    card |= _score(card.pop("quality", None), stated, charges, statistics)
    numbers = {text: number for number, text in enumerate(built)}
    terms = _terms_of(charges, secure=secure)
    return {
        **card,
        "guarantee": terms.guarantee,
        "cost": terms.cost.rounded(),
        "secure": secure,
        "mechanisms": [mechanism.as_data() for mechanism in built.values()],
        "parts": [numbers[text] for text in card["mechanisms"]],
        "priors": priors if card["schema"] == "labeldp.release" or any(priors) else [],
        "charges": charges,
        "statistics": statistics,
    }


def _terms_of(charges: list[Data], *, secure: bool) -> Terms:
    """Return terms that have charges alone, for what follows from these."""
    return Terms(1, (), (), tuple(read(list[Charge], charges, "charges")), (), "local", secure)


def _statistics(entries: list[Data]) -> list[Data]:
    """Return what was released with noise; why its sensitivity is what it is follows from its kind."""
    for one in entries:
        is_known = one["kind"] not in RULES or one["because"] == RULES[one["kind"]].reason
        require(is_known, "the sensitivity of a statistic follows from something else than it states")
    renamed = {"integers": "size"}
    return [{renamed.get(key, key): one[key] for key in one if key != "because"} for one in entries]


def _notes(channels: list[Any], statistics: list[Data]) -> dict[str | None, str]:
    """Return what version 3 notes on charges, by the notes of version 2; a wrong one is in neither of them."""
    old, new = (list(map(hashed, channels)) for hashed in (fingerprint_2, fingerprint))
    notes: dict[str | None, str] = dict(zip(old, new, strict=True))
    notes[join_fingerprints(old)] = join_fingerprints(new)
    for purpose in {one["purpose"] for one in statistics}:
        own = [(one["what"], one["scale"]) for one in statistics if one["purpose"] == purpose]
        noted = "; ".join(f"{what}: DiscreteLaplace(scale={parse_fraction(scale)!r})" for what, scale in own)
        notes[noted] = "; ".join(f"{what}: discrete Laplace noise of scale {scale}" for what, scale in own)
    return notes


def _prior(entry: Data, charges: list[Data]) -> Data:
    """Return a prior with its origin: public, or paid for by a charge that it names."""
    _refuse_unknown(entry, "prior")
    shown = {"nodes": entry["nodes"], "masses": entry["masses"]}
    if entry["source"] == "public" and entry.keys() == {*shown, "source"}:
        return shown
    require(entry["source"] == "paid for", "its charges do not fit the source of a prior")
    origin = {
        "charge": charges[entry["charge"]],
        "secure": True,
        "statistics": _statistics(entry.get("statistics", [])),
    }
    if "reports" in entry:
        origin["reports"] = _build(card_format.parse(entry["reports"])).as_data()
    return {**shown, "origin": origin}


def _score(quality: Data | None, stated: Terms, charges: list[Data], statistics: list[Data]) -> Data:
    """Return a score as version 3 has it, and add what was paid for it; one that cost nothing is left out.

    The guarantee may leave it out if it is on rows held out, nobody has two rows, and it costs no more.
    """
    if quality is None:
        return {}
    _refuse_unknown(quality, "score")
    if not quality.get("statistics"):
        if quality["how"] in _FREE and not quality.get("epsilon") and stated.charges_for("labels"):
            return {}
        raise UncheckableError("the card shows a score, and does not say with which noise it was released")
    bought, people = _statistics(quality["statistics"]), stated.rows_per_person
    price = group_budget(cost_of(read(Statistics, bought, "statistics")), people)
    listed = [one for one in statistics if one["purpose"] == "score"]
    is_charged = bool(stated.charges_for("score"))
    is_stated = quality.get("epsilon", price.epsilon) == price.epsilon and listed == (bought if is_charged else [])
    require(is_stated, "it charges for another score than it shows")
    if not is_charged:
        require(people == 1 and price <= stated.cost, f"its guarantee leaves out {price} for a score")
        charges.append({**quality["charge"], "mechanism": None})
        statistics += bought
    pairs = quality["figures"].items()
    figures = {name: {"value": value, "standard_error": error} for name, (value, error) in pairs}
    return {"quality": {"rows": quality["rows"], "figures": figures}}
