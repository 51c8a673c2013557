"""Cards of version 2, written by 0.2.0: their data in the form of version 3, by which they are read and verified.

Mechanisms are cards in text, with a hash of their channel by the names that its class and fields had then. A score
on rows held out is not among the charges; here it is, as it is in the ledger.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from labeldp._values import Data, Interval
from labeldp.accounts.agreement import require
from labeldp.accounts.budget import Charge, group_budget, total_of
from labeldp.accounts.schema import Statistics, build_mechanism
from labeldp.accounts.statistic import RULES, Statistic, cost_of
from labeldp.accounts.terms import Terms
from labeldp.errors import CardError, UncheckableError
from labeldp.exact.proof import array_bytes, fingerprint, join_fingerprints
from labeldp.mechanisms import card_format
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.typed_data import plain, read

_HASHED = {
    "shift": ("ShiftChannel", "low", "high", "steps", "margin", "reach", "table", "promise"),
    "table": ("TableChannel", "low", "high", "values", "table", "promise"),
    "window": ("WindowChannel", *("low", "high", "cells", "window", "background", "extra", "promise"),
               *("bins", "cuts", "values", "spread_outside")),
}  # fmt: skip
"""What version 2 hashes of a channel: names of 0.2.0, which no renaming changes."""

_SAME = {
    *("schema", "version", "rows", "trust", "bounds", "file", "label", "id", "release", "rounds", "knowledge"),
    *("arrays", "model", "note", "features", "format", "files", "versions"),
}
"""Entries that are the same in version 3; others of a model's or a release's owner are left out."""

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
        return _upgrade_terms(content)
    except CardError:
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


def _build(card: Data) -> Mechanism:
    """Return the mechanism of a card, if its counts have the hash and the proof that are stated."""
    mechanism = build_mechanism(card.get("mechanism"), card.get("parameters", {}))
    if set(card) != {"schema", "version", "mechanism", "parameters", "channel", "proof"}:
        raise CardError("the card has other entries than a card of a mechanism")
    if fingerprint_2(mechanism.channel) != card["channel"]:
        raise CardError("the card's counts cannot be rebuilt from its parameters")
    proof = mechanism.verify().as_data()
    if card["proof"] != {name: proof[name] for name in ("epsilon", "delta")}:
        raise CardError("the card claims another proof than its counts give")
    return mechanism


def _upgrade_terms(content: Data) -> Data:
    built = {text: _build(card_format.parse(text)) for text in dict.fromkeys(content["mechanisms"])}
    mechanisms = [built[text] for text in content["mechanisms"]]
    charges: list[Charge] = read(list[Charge], content["charges"], "charges")
    terms = Terms(1, (), (), tuple(charges), (), "local", content["words"] == "secure")
    sentence = terms.guarantee.replace(" for all that this card lists", "").replace(
        "any of it", "anything released"
    )
    is_stated = (content["guarantee"], content["cost"]) == (sentence, terms.cost.rounded())
    require(is_stated, "its charges do not give the guarantee and the cost it states")
    one_each = content["schema"] == "labeldp.release"
    statistics = _statistics(content.get("statistics", []))
    charges = [_rename(charge, mechanisms, statistics, one_each=one_each) for charge in charges]
    more = {name: content[name] for name in _SAME & content.keys()}
    priors = [_prior(entry, column, charges) for column, entry in enumerate(content["priors"])]
    if "quality" in content:
        more |= _score(content["quality"], charges, statistics, has_labels=bool(mechanisms))
    terms = replace(terms, charges=tuple(charges))
    numbers = {text: number for number, text in enumerate(built)}
    return {
        **more,
        "guarantee": terms.guarantee,
        "cost": terms.cost.rounded(),
        "secure": terms.secure,
        "mechanisms": [mechanism.as_data() for mechanism in built.values()],
        "parts": [numbers[text] for text in content["mechanisms"]],
        "priors": priors if one_each or any(priors) else [],
        "charges": plain(charges),
        "statistics": plain(statistics),
    }


def _statistics(entries: list[Data]) -> list[Statistic]:
    """Return what was released with noise; why its sensitivity is what it is follows from its kind."""
    data = []
    for entry in entries:
        size, because = entry["integers"], entry["because"]
        is_known = entry["kind"] not in RULES or because == RULES[entry["kind"]].reason
        require(is_known, "the sensitivity of a statistic follows from something else than it states")
        same = {name: value for name, value in entry.items() if name not in ("integers", "because")}
        data.append({**same, "size": size})
    statistics: list[Statistic] = read(Statistics, data, "statistics")
    return statistics


def _rename(charge: Charge, mechanisms: list[Mechanism], listed: list[Statistic], *, one_each: bool) -> Charge:
    """Return a charge that notes by the names of version 3 what it was spent on, if its note is right."""
    if charge.purpose != "labels":
        own = [one for one in listed if one.purpose == charge.purpose]
        noise = [f"DiscreteLaplace(scale={one.noise.scale!r})" for one in own]
        named = [f"{one.what}: {text}" for one, text in zip(own, noise, strict=True)]
        is_right = own and charge.mechanism in ("; ".join(noise), "; ".join(named))
        return replace(charge, mechanism="; ".join(map(str, own))) if is_right else charge
    paid = [mechanisms[charge.column]] if one_each and charge.column is not None else mechanisms
    noted = join_fingerprints([fingerprint_2(one.channel) for one in paid] or [""])
    require(charge.mechanism == noted, "it charges for another mechanism than it shows")
    return replace(charge, mechanism=join_fingerprints([fingerprint(one.channel) for one in paid]))


def _prior(entry: Any, column: int, charges: list[Charge]) -> Data | None:
    """Return a prior with its origin: public, or paid for by a charge that it names, or by its column's."""
    if entry is None:
        return None
    shown = {"nodes": entry["nodes"], "masses": entry["masses"]}
    if entry["source"] == "public" and "charge" not in entry:
        return shown
    own = [number for number, one in enumerate(charges) if (one.purpose, one.column) == ("prior", column)]
    number = entry.get("charge", own[0] if own else None)
    is_paid = entry["source"] == "paid for" and type(number) is int and 0 <= number < len(charges)
    require(is_paid, "its charges do not fit the source of a prior")
    statistics = plain(_statistics(entry.get("statistics", [])))
    origin = {"charge": plain(charges[number]), "secure": True, "statistics": statistics}
    if "reports" in entry:
        origin["reports"] = _build(card_format.parse(entry["reports"])).as_data()
    return {**shown, "origin": origin}


def _score(quality: Data, charges: list[Charge], statistics: list[Statistic], *, has_labels: bool) -> Data:
    """Return the score as version 3 shows it, and add what was paid for it, on rows held out, to the charges.

    One that was estimated from private labels, at no cost, is left out.
    """
    bought = _statistics(quality.get("statistics", []))
    paid = [one for one in statistics if one.purpose == "score"]
    if not bought and not paid and not quality.get("epsilon"):
        if quality.get("how") not in _FREE or not has_labels:
            raise UncheckableError("the card shows a score, and does not say with which noise it was released")
        return {}
    people = max(charge.rows_per_person for charge in charges)
    price = group_budget(cost_of(bought), people)
    is_stated = quality.get("epsilon", price.epsilon) == price.epsilon and (not paid or paid == bought)
    require(is_stated, "it charges for another score than it shows")
    if not paid:
        require(people == 1 and price <= total_of(charges), f"its guarantee leaves out {price} for a score")
        noted = quality.get("charge", plain(Charge("score", price, "", purpose="score")))
        charges.append(replace(read(Charge, noted, "the charge of the score"), mechanism=None))
        statistics += bought
    pairs = read(dict[str, Interval], quality.get("figures", {}), "figures")
    figures = {name: {"value": value, "standard_error": error} for name, (value, error) in pairs.items()}
    return {"quality": {"rows": quality.get("rows", 1), "figures": figures}}
