"""Cards of version 2, written by 0.2.0: they stay readable, and hold if they held.

Mechanisms are cards in text, with a hash of their channel by the names that its class and fields had then. A score
on rows held out is not among the charges; here it is, as it is in the ledger.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from labeldp import card_format
from labeldp._schema import plain, read
from labeldp._values import rounded_up
from labeldp.cards.schema import Statistics, build_mechanism
from labeldp.channels.proof import array_bytes, fingerprint, join_fingerprints
from labeldp.errors import CardError, UncheckableError
from labeldp.ledger import RULES, Budget, Charge, Statistic, group_budget, total_of
from labeldp.mechanisms.base import Mechanism
from labeldp.release.scores import Figure, describe_figures
from labeldp.release.terms import Terms

_HASHED = {
    "shift": ("ShiftChannel", "low", "high", "steps", "margin", "reach", "table", "promise"),
    "table": ("TableChannel", "low", "high", "values", "table", "promise"),
    "window": ("WindowChannel", *("low", "high", "cells", "window", "background", "extra", "promise"),
               *("bins", "cuts", "values", "spread_outside")),
    "identity": ("IdentityChannel",),
}  # fmt: skip
"""What version 2 hashes of a channel: names of 0.2.0, which no renaming changes."""

_FREE = ("unbiased", "prior", "assumed")
"""What a score rested on that cost nothing: labels that were private already."""


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


def load_mechanism(entry: dict[str, Any]) -> Mechanism:
    """Return the mechanism of a card, without its envelope, built and proven anew."""
    if set(entry) != {"mechanism", "parameters", "channel", "proof"}:
        build_mechanism(entry.get("mechanism"), {})  # says so first where it is not known
        raise CardError("the card has other entries than a card of a mechanism")
    mechanism = build_mechanism(entry["mechanism"], entry["parameters"])
    if fingerprint_2(mechanism.channel) != entry["channel"]:
        raise CardError("the card's counts cannot be rebuilt from its parameters")
    proof = mechanism.verify().as_data()
    if entry["proof"] != {name: proof[name] for name in ("epsilon", "delta")}:
        raise CardError("the card claims another proof than its counts give")
    return mechanism


def upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """Return what a card says in the fields of version 3, its mechanisms built; the rest is not checked.

    What version 2 alone has is checked here: its guarantee, its cost, its hashes and the price of its score.
    """
    try:
        return _upgraded(content)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, CardError):
            raise
        kind = content["schema"].removeprefix("labeldp.")
        raise CardError(f"the card lacks what a card of a {kind} has") from None


def _upgraded(content: dict[str, Any]) -> dict[str, Any]:
    kind, secure = content["schema"], content["words"] == "secure"
    mechanisms = _load_all(content["mechanisms"])
    charges: list[Charge] = read(list[Charge], content["charges"], "charges")
    statistics = _statistics(content.get("statistics", []))
    if content["guarantee"] != _guarantee(charges, secure=secure):
        raise _contradiction("its charges do not give the guarantee it states")
    cost = total_of(charges)
    if content["cost"] != {"epsilon": cost.epsilon, "delta": cost.delta}:
        raise _contradiction("its charges do not give the cost it states")
    charges = [_renamed(charge, mechanisms, statistics, one_each=kind == "labeldp.release") for charge in charges]
    more = {name: content[name] for name in _KEPT & content.keys()}
    priors = [_prior(entry, column, charges) for column, entry in enumerate(content["priors"])]
    if kind != "labeldp.release" and not any(priors):
        priors = []
    if "quality" in content:
        more |= _score(content, charges, statistics, has_labels=bool(mechanisms))
    distinct = list({id(mechanism): mechanism for mechanism in mechanisms}.values())
    terms = Terms(1, (), (), tuple(charges), (), "local", secure)
    return {
        **more,
        "guarantee": terms.guarantee,
        "cost": {"epsilon": terms.cost.epsilon, "delta": terms.cost.delta},
        "secure": secure,
        "mechanisms": distinct,
        "parts": [list(map(id, distinct)).index(id(mechanism)) for mechanism in mechanisms],
        "priors": priors,
        "charges": plain(charges),
        "statistics": plain(statistics),
    }


_KEPT = {
    *("schema", "version", "rows", "trust", "bounds", "file", "label", "id", "release", "rounds", "knowledge"),
    *("arrays", "model", "note", "features", "format", "files", "versions"),
}
"""Entries that are the same in version 3; others of a model's or a release's owner are left out."""


def _contradiction(what: str) -> CardError:
    return CardError(f"the card contradicts itself: {what}")


def _load_all(texts: Any) -> list[Mechanism]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise CardError("the card's mechanisms are not a list of cards")
    loaded = {}
    for text in dict.fromkeys(texts):
        entry = card_format.parse(text)
        loaded[text] = load_mechanism({key: entry[key] for key in entry if key not in ("schema", "version")})
    return [loaded[text] for text in texts]


def _guarantee(charges: list[Charge], *, secure: bool) -> str:
    if not secure:
        return "NOT PRIVATE: the noise can be repeated from a seed"
    cost, people = total_of(charges), max((charge.rows_per_person for charge in charges), default=1)
    who = "one row's label" if people == 1 else f"all labels of a person with up to {people} rows"
    return (
        f"label differential privacy with {cost}: changing {who} changes the probability of anything "
        f"released by at most a factor e^{rounded_up(cost.epsilon)}"
        + (f", up to {rounded_up(cost.delta, 3)}" if cost.delta else "")
        + "; features, the number and order of rows, and bounds are public"
    )


def _statistics(entries: Any) -> list[Statistic]:
    """Return what was released with noise; each says why its sensitivity is what it is."""
    if not isinstance(entries, list):
        raise CardError("the card's statistics must be a list")
    result = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or "integers" not in entry:
            raise CardError(f"statistics[{place}] does not hold: it must have the fields of a statistic")
        new = {name: value for name, value in entry.items() if name not in ("integers", "because")}
        result += [{**new, "size": entry["integers"]}]
        reason = RULES[entry["kind"]].reason if entry.get("kind") in RULES else entry.get("because")
        if entry.get("because") != reason:
            raise CardError(f"statistics[{place}] does not hold: its sensitivity follows from something else")
    made: list[Statistic] = read(Statistics, result, "statistics")
    return made


def _renamed(charge: Charge, mechanisms: list[Mechanism], listed: list[Statistic], *, one_each: bool) -> Charge:
    """Return a charge that notes by the names of version 3 what it was spent on, if its note is right."""
    if charge.purpose == "labels":
        paid = [mechanisms[charge.column]] if one_each and charge.column is not None else mechanisms
        if charge.mechanism != join_fingerprints([fingerprint_2(one.channel) for one in paid] or [""]):
            raise _contradiction("it charges for another mechanism than it shows")
        return replace(charge, mechanism=join_fingerprints([fingerprint(one.channel) for one in paid]))
    own = [one for one in listed if one.purpose == charge.purpose]
    noise = [f"DiscreteLaplace(scale={one.noise.scale!r})" for one in own]
    named = [f"{one.what}: {text}" for one, text in zip(own, noise, strict=True)]
    right = own and charge.mechanism in ("; ".join(noise), "; ".join(named))
    return replace(charge, mechanism="; ".join(map(str, own))) if right else charge


def _prior(entry: Any, column: int, charges: list[Charge]) -> dict[str, Any] | None:
    """Return a prior with its origin: public, or paid for by a charge that it names, or by its column's."""
    if entry is None:
        return None
    shown = {"nodes": entry["nodes"], "masses": entry["masses"]}
    if entry["source"] == "public" and "charge" not in entry:
        return shown
    own = [place for place, one in enumerate(charges) if (one.purpose, one.column) == ("prior", column)]
    place = entry.get("charge", own[0] if own else None)
    if entry["source"] != "paid for" or type(place) is not int or not 0 <= place < len(charges):
        raise _contradiction("its charges do not fit the source of a prior")
    origin = {"charge": plain(charges[place]), "secure": True}
    origin["statistics"] = plain(_statistics(entry.get("statistics", [])))
    if "reports" in entry:
        origin["reports"] = _load_all([entry["reports"]])[0]
    return {**shown, "origin": origin}


def _score(
    content: dict[str, Any], charges: list[Charge], statistics: list[Statistic], *, has_labels: bool
) -> dict[str, Any]:
    """Return the score as version 3 shows it, and add what was paid for it, on rows held out, to the charges.

    One that was estimated from private labels, at no cost, is a note.
    """
    quality = content["quality"]
    figures = {name: Figure(*read(tuple[float, float], pair)) for name, pair in quality.get("figures", {}).items()}
    bought = _statistics(quality.get("statistics", []))
    people = max(charge.rows_per_person for charge in charges)
    price = group_budget(Budget(sum((one.epsilon for one in bought), Fraction(0))), people)
    if quality.get("epsilon", price.epsilon) != price.epsilon:
        raise _contradiction(f"its score costs epsilon = {price.exact_epsilon}, and it states another")
    if not bought and quality.get("how") not in _FREE:
        raise UncheckableError("the card shows a score, and does not say with which noise it was released")
    if not bought:
        if not has_labels:
            raise _contradiction("its score follows from private labels, of which it has none")
        told = ", ".join(f"{name} {text}" for name, text in describe_figures(figures).items())
        said = (
            f"{told}, estimated from {quality.get('rows')} private labels, which nobody can check" if told else ""
        )
        return {"note": " ".join(filter(None, (content.get("note"), said)))}
    paid = [one for one in statistics if one.purpose == "score"]
    if paid and Counter(paid) != Counter(bought):
        raise _contradiction("it charges for another score than it shows")
    if not paid:
        if people > 1 or not price <= total_of(charges):
            raise _contradiction(f"its guarantee leaves out epsilon = {price.exact_epsilon} for a score")
        charges.append(_score_charge(quality, price, people, bought))
        statistics += bought
    shown = {name: plain(figure) for name, figure in figures.items()}
    return {"quality": {"rows": quality.get("rows", 1), "figures": shown}}


def _score_charge(quality: Any, price: Budget, people: int, bought: list[Statistic]) -> Charge:
    """Return the entry of the ledger for a score; cards that do not show it do not say when."""
    noted = read(Charge, quality["charge"], "the charge of the score") if "charge" in quality else None
    if noted is not None and (noted.budget, noted.rows_per_person, noted.purpose) != (price, people, "score"):
        raise _contradiction("the charge of its score is another than its noise costs")
    when = "" if noted is None else noted.when
    return Charge("score", price, when, "; ".join(map(str, bought)), people, "score")
