"""What a card may not say at once.

A checksum is no signature: whoever writes a card can make one that agrees with itself and is false. What is found
here cannot be true of any release.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from labeldp.channels.proof import fingerprint, join_fingerprints
from labeldp.ledger import Budget, group_budget, name_of_charge, total_of
from labeldp.release.terms import Terms


def contradictions(kind: str, content: dict[str, Any], terms: Terms) -> Iterator[str]:
    """Yield what a card contradicts itself in; what is checked later relies on what was checked before."""
    charges, cost = terms.charges, terms.cost
    if not charges or not all(charge.budget.exact_epsilon for charge in charges):
        yield "it must have charges, each for more than nothing and for less than everything"
    if content["guarantee"] != terms.guarantee:
        yield "its charges do not give the guarantee it states"
    if content["cost"] != {"epsilon": cost.epsilon, "delta": cost.delta}:
        yield "its charges do not give the cost it states"
    if len({charge.rows_per_person for charge in charges}) != 1:
        yield "all of its charges must have the same rows_per_person"
    if terms.trust == "local" and any(charge.purpose in ("sums", "mean") for charge in charges):
        yield "with local trust nobody can sum labels, and it charges for sums"
    for purpose, spent in spent_on_statistics(terms).items():
        if purpose in ("labels", "prior"):
            yield f"its statistics spend what it charges for {purpose}, which pays for something else"
        if not spent <= charged_for(terms, purpose):
            yield f"its statistics cost more than it charges for {purpose}"
    yield from _unpaid_mechanisms(kind, terms)
    if kind == "release":
        yield from _misplaced_columns(terms)
        yield from _unpaid_priors(content["priors"], terms)
    elif len(terms.bounds) != 1 or any(prior is not None for prior in terms.priors):
        yield "it must have one pair of bounds, and no prior beside it"
    if kind == "row-release":
        yield from _unpaid_knowledge(content["knowledge"], terms)


def charged_for(terms: Terms, purpose: str) -> Budget:
    """Return what was charged for a purpose."""
    return total_of(charge for charge in terms.charges if charge.purpose == purpose)


def spent_on_statistics(terms: Terms) -> dict[str, Budget]:
    """Return what a card's statistics cost, for all rows of a person, by the purpose of their charge."""
    spent: dict[str, Budget] = {}
    for statistic in terms.statistics:
        cost = group_budget(Budget(statistic.epsilon), terms.rows_per_person)
        spent[statistic.purpose] = spent.get(statistic.purpose, Budget(0)) + cost
    return spent


def _unpaid_mechanisms(kind: str, terms: Terms) -> Iterator[str]:
    """Find mechanisms that are not paid for: by their column's charge, or else by the one charge for labels."""
    mechanisms = terms.mechanisms
    paying = [charge for charge in terms.charges if charge.purpose == "labels"]
    if kind == "release":
        groups = [[mechanism] for mechanism in mechanisms]
        if [charge.column for charge in paying] != list(range(len(mechanisms))):
            yield "each of its mechanisms needs a charge of its own, for labels of its column"
    else:
        groups = [list(mechanisms)] if mechanisms else []
        if len(paying) != len(groups):
            yield "its mechanisms need one charge for labels, and such a charge needs mechanisms"
    distinct = {id(mechanism): mechanism for mechanism in mechanisms}  # a card may name one ten thousand times
    proofs = {key: mechanism.verify() for key, mechanism in distinct.items()}
    prints = {key: fingerprint(mechanism.channel) for key, mechanism in distinct.items()}
    for group, charge in zip(groups, paying, strict=True):
        for proof in {id(mechanism): proofs[id(mechanism)] for mechanism in group}.values():
            if not group_budget(Budget(proof.epsilon, proof.delta), charge.rows_per_person) <= charge.budget:
                yield "its mechanisms cost more than it charges"
        if charge.mechanism != join_fingerprints([prints[id(mechanism)] for mechanism in group]):
            yield "it charges for another mechanism than it shows"


def _misplaced_columns(terms: Terms) -> Iterator[str]:
    """Find priors outside their bounds, and mechanisms for other labels only; they may be for more labels."""
    if not len(terms.bounds) == len(terms.priors) == len(terms.mechanisms):
        yield "each mechanism needs bounds, and a prior or none"
    for mechanism, prior, (low, high) in zip(terms.mechanisms, terms.priors, terms.bounds, strict=True):
        rounding = 1e-9 * (high - low)
        reports = prior is not None and prior.origin is not None and prior.origin.reports is not None
        lies_outside = prior is not None and (
            prior.bounds[0] < low - rounding or high + rounding < prior.bounds[1]
        )
        if lies_outside and not reports:  # a histogram of reports may be wider
            yield "a prior lies outside its bounds"
        if mechanism.domain[1] <= low or high <= mechanism.domain[0]:
            yield "a mechanism is for labels outside its bounds"


def _unpaid_priors(entries: list[Any], terms: Terms) -> Iterator[str]:
    """Find priors that were paid for without a charge, or by another's, or cost more, and charges for no prior."""
    sources = {column: entry["source"] for column, entry in enumerate(entries) if entry is not None}
    if not set(sources.values()) <= {"public", "paid for"}:
        yield 'the source of a prior must be "public" or "paid for"'
    used: dict[int, dict[str, Budget]] = {}
    for column, source in sources.items():
        place, prior = terms.prior_charge(column), terms.priors[column]
        named = entries[column].get("charge", place)
        if (source == "paid for") != (place is not None) or (type(named), named) != (type(place), place):
            yield "its charges do not fit the source of a prior"
        if place is None or prior is None:
            continue
        charge = terms.charges[place]
        name = name_of_charge(f"prior ({terms.trust})", column, len(entries))
        if charge.what != name if charge.column is not None else not charge.what.startswith("prior ("):
            yield "its charges and trust do not fit the source of a prior"
        noise = {} if prior.origin is None else prior.origin.as_data()
        cost = None if prior.origin is None else prior.origin.cost
        if terms.trust == "local" and charge.column is not None and "statistics" in noise:
            yield "with local trust nobody can count labels, and its prior is from counts"
        if cost is not None:  # priors from the same noise, of several columns, are paid for once
            people = group_budget(cost, charge.rows_per_person)
            used.setdefault(place, {})[json.dumps(noise, sort_keys=True)] = people
    for place, costs in used.items():
        if not sum(costs.values(), Budget(0)) <= terms.charges[place].budget:
            yield "the noise of a prior costs more than is charged for it"
    paying = {terms.prior_charge(column) for column, source in sources.items() if source == "paid for"}
    if paying != {place for place, charge in enumerate(terms.charges) if charge.purpose == "prior"}:
        yield "it charges for a prior that it does not show"


def _unpaid_knowledge(known: Any, terms: Terms) -> Iterator[str]:
    """Find what is known of all labels, beyond the bounds, and was not paid for."""
    low, high = terms.bounds[0]
    numbers = [known[name] for name in ("low", "high", "variance", "residual")]
    if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        yield "what is known of its rows must be finite numbers"
    if known["variance"] <= 0 or known["residual"] < 0 or type(known["sums"]) is not int or known["sums"] < 0:
        yield "what is known of its rows cannot be"
    if not low <= known["low"] < known["high"] <= high:
        yield "what is known of its rows lies outside its bounds"
    free = {"low": low, "high": high, "variance": (high - low) ** 2 / 20, "residual": 0, "sums": 0}
    shown = any(known[name] != value for name, value in free.items())
    if shown and "sums" not in {charge.purpose for charge in terms.charges}:
        yield "it shows what it does not charge for, of all labels"
