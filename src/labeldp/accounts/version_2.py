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
from labeldp.accounts.budget import Charge, group_budget, total_of
from labeldp.accounts.schema import Statistics, build_mechanism
from labeldp.accounts.statistic import RULES, cost_of
from labeldp.accounts.terms import Terms
from labeldp.errors import CardError, LabelDPError, UncheckableError
from labeldp.exact.proof import array_bytes, fingerprint, join_fingerprints
from labeldp.mechanisms import card_format
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.typed_data import parse_fraction, read

_HASHED = {
    "shift": ("ShiftChannel", "low", "high", "steps", "margin", "reach", "table", "promise"),
    "table": ("TableChannel", "low", "high", "values", "table", "promise"),
    "window": ("WindowChannel", *("low", "high", "cells", "window", "background", "extra", "promise"),
               *("bins", "cuts", "values", "spread_outside")),
}  # fmt: skip
"""What version 2 hashes of a channel: names of 0.2.0, which no renaming changes."""

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


def _build(card: Data) -> Mechanism:
    """Return the mechanism of a card, if its counts have the hash and the proof that are stated."""
    mechanism = build_mechanism(card.get("mechanism"), card.get("parameters", {}))
    proof = mechanism.verify().as_data()
    del proof["ratio"]
    stated = {"schema", "version", "mechanism", "parameters", "channel", "proof"}
    is_built = set(card) == stated and card["channel"] == fingerprint_2(mechanism.channel)
    if not is_built or card["proof"] != proof:
        raise CardError("the card's counts and its proof cannot be rebuilt from its parameters")
    return mechanism


def _upgrade_terms(card: Data) -> Data:
    built = {text: _build(card_format.parse(text)) for text in dict.fromkeys(card["mechanisms"])}
    parts = [built[text] for text in card["mechanisms"]]
    secure = card.pop("words") == "secure"
    stated = _state(card["charges"], secure=secure)
    sentence = (
        stated["guarantee"].replace(" for all that this card lists", "").replace("any of it", "anything released")
    )
    is_stated = (card["guarantee"], card["cost"]) == (sentence, stated["cost"])
    require(is_stated, "its charges do not give the guarantee and the cost it states")
    statistics = _statistics(card.get("statistics", []))
    one_each = card["schema"] == "labeldp.release"
    charges = [_charge(one, parts, statistics, one_each=one_each) for one in card["charges"]]
    priors = [_prior(entry, charges) for entry in card["priors"]]
    quality = card.pop("quality", None)
    if quality and quality.get("statistics"):
        bought = _statistics(quality["statistics"])
        card["quality"] = _score(quality)
        is_charged = any(one["purpose"] == "score" for one in charges)
        _check_price(quality, bought, charges, statistics, is_charged=is_charged)
        if not is_charged:
            charges.append({**quality["charge"], "mechanism": None})
            statistics += bought
    elif quality and (quality["how"] not in _FREE or quality.get("epsilon") or not parts):
        raise UncheckableError("the card shows a score, and does not say with which noise it was released")
    numbers = {text: number for number, text in enumerate(built)}
    return {
        **card,
        **_state(charges, secure=secure),
        "mechanisms": [mechanism.as_data() for mechanism in built.values()],
        "parts": [numbers[text] for text in card["mechanisms"]],
        "priors": priors if one_each or any(priors) else [],
        "charges": charges,
        "statistics": statistics,
    }


def _state(charges: list[Data], *, secure: bool) -> Data:
    """Return what version 3 states of charges: the guarantee, the cost, and whether they are private."""
    spent = tuple(read(list[Charge], charges, "charges"))
    terms = Terms(1, (), (), spent, (), "local", secure)
    return {"guarantee": terms.guarantee, "cost": terms.cost.rounded(), "secure": secure}


def _statistics(entries: list[Data]) -> list[Data]:
    """Return what was released with noise; why its sensitivity is what it is follows from its kind."""
    for one in entries:
        rule = RULES.get(one["kind"])
        is_known = rule is None or one["because"] == rule.reason
        require(is_known, "the sensitivity of a statistic follows from something else than it states")
    renamed = {"integers": "size"}
    return [{renamed.get(key, key): one[key] for key in one if key != "because"} for one in entries]


def _charge(charge: Data, parts: list[Mechanism], statistics: list[Data], *, one_each: bool) -> Data:
    """Return a charge that notes by the names of version 3 what it was spent on, if its note is right."""
    if charge["purpose"] == "labels":
        paid = [parts[charge["column"]]] if one_each else parts
        noted, note = (
            join_fingerprints([hashed(one.channel) for one in paid]) for hashed in (fingerprint_2, fingerprint)
        )
        require(charge["mechanism"] == noted, "it charges for another mechanism than it shows")
        return {**charge, "mechanism": note}
    own = [(one["what"], one["scale"]) for one in statistics if one["purpose"] == charge["purpose"]]
    noted = "; ".join(f"{what}: DiscreteLaplace(scale={parse_fraction(scale)!r})" for what, scale in own)
    note = "; ".join(f"{what}: discrete Laplace noise of scale {scale}" for what, scale in own)
    return {**charge, "mechanism": note} if own and charge["mechanism"] == noted else charge


def _prior(entry: Any, charges: list[Data]) -> Data | None:
    """Return a prior with its origin: public, or paid for by a charge that it names."""
    if entry is None:
        return None
    shown = {"nodes": entry["nodes"], "masses": entry["masses"]}
    if entry["source"] == "public" and "charge" not in entry:
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


def _check_price(
    quality: Data, bought: list[Data], charges: list[Data], statistics: list[Data], *, is_charged: bool
) -> None:
    """Refuse a score at another price than it states, or a guarantee that wrongly leaves it out.

    The guarantee may leave it out if it is on rows held out, nobody has two rows, and it costs no more.
    """
    spent: list[Charge] = read(list[Charge], charges, "charges")
    people = max(charge.rows_per_person for charge in spent)
    price = group_budget(cost_of(read(Statistics, bought, "statistics")), people)
    listed = [one for one in statistics if one["purpose"] == "score"]
    is_stated = quality.get("epsilon", price.epsilon) == price.epsilon and listed == (bought if is_charged else [])
    require(is_stated, "it charges for another score than it shows")
    is_covered = is_charged or (people == 1 and price <= total_of(spent))
    require(is_covered, f"its guarantee leaves out {price} for a score")


def _score(quality: Data) -> Data:
    """Return the figures of a score as version 3 shows them."""
    pairs = quality["figures"].items()
    figures = {name: {"value": value, "standard_error": error} for name, (value, error) in pairs}
    return {"rows": quality["rows"], "figures": figures}
