"""What a card may not say at once: the rules under "Agreement" in docs/formats.md.

A checksum is no signature: whoever writes a card can make one that agrees with itself and is false. What is found
here cannot be true of any release.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labeldp.accounts.budget import Budget, Charge, group_budget, name_of_charge, total_of
from labeldp.accounts.statistic import Origin, origins_of
from labeldp.accounts.terms import Terms
from labeldp.exact.proof import fingerprint, join_fingerprints
from labeldp.mechanisms.typed_data import canonical, plain


def contradictions(kind: str, card: dict[str, Any], terms: Terms) -> Iterator[str]:
    """Yield what a card contradicts itself in; what is checked later relies on what was checked before."""
    yield from _wrong_charges(card, terms)
    yield from _unpaid_mechanisms(kind, terms)
    if kind == "release":
        yield from _misplaced_columns(terms)
        if card.get("file", {}).get("rows", terms.rows) != terms.rows:
            yield "its file has other rows than its labels"
    elif len(terms.bounds) != 1 or terms.priors:
        yield "it must have one pair of bounds, and no prior beside it"
    yield from _unpaid_origins(terms)
    if kind == "row-release":
        yield from _unpaid_knowledge(card["knowledge"], terms)
    if kind == "model":
        yield from _unpaid_score(card, terms)
    if len(card.get("rounding", terms.bounds)) != len(terms.bounds):
        yield "it must say of each column to which step its values were rounded"


def _wrong_charges(card: dict[str, Any], terms: Terms) -> Iterator[str]:
    """Find charges that do not add up to what is stated, and statistics that they do not pay for."""
    charges, cost = terms.charges, terms.cost
    if not charges or not all(charge.budget.exact_epsilon for charge in charges):
        yield "it must have charges, each for more than nothing and for less than everything"
    if len({charge.rows_per_person for charge in charges}) != 1:
        yield "all of its charges must have the same rows_per_person"
    if card["guarantee"] != terms.guarantee:
        yield "its charges do not give the guarantee it states"
    if card["cost"] != cost.rounded():
        yield "its charges do not give the cost it states"
    if terms.trust == "local" and any(charge.purpose in ("sums", "mean", "score") for charge in charges):
        yield "with local trust nobody can sum labels, and it charges for sums"
    for purpose, spent in spent_on_statistics(terms).items():
        if purpose in ("labels", "prior"):
            yield f"its statistics spend what it charges for {purpose}, which pays for something else"
        if not spent <= charged_for(terms, purpose):
            yield f"its statistics cost more than it charges for {purpose}"


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
    for column, (mechanism, prior, (low, high)) in enumerate(
        zip(terms.mechanisms, terms.priors, terms.bounds, strict=True)
    ):
        rounding = 1e-9 * (high - low)
        origin: Origin | None = None if prior is None else prior.origin
        reported = origin is not None and origin.reports is not None  # a histogram of reports may be wider
        first, last = (low, high) if prior is None or reported else prior.bounds
        if first < low - rounding or high + rounding < last:
            yield "a prior lies outside its bounds"
        if mechanism.domain[1] <= low or high <= mechanism.domain[0]:
            yield "a mechanism is for labels outside its bounds"
        if origin is not None and origin.charge is not None and origin.charge.column is not None:
            name = name_of_charge(f"prior ({terms.trust})", column, len(terms.priors))
            if (origin.charge.column, origin.charge.what) != (column, name):
                yield "its charges and trust do not fit the source of a prior"
            if terms.trust == "local" and origin.statistics:
                yield "with local trust nobody can count labels, and its prior is from counts"


def origin_problem(origin: Origin) -> str | None:
    """Return what is wrong with the origin of a prior by itself; None if nothing is."""
    charge, reports = origin.charge, origin.reports
    if charge is None or charge.purpose != "prior" or not charge.what.startswith("prior ("):
        return "its charges do not fit the source of a prior"
    if any(one.purpose != "prior" for one in origin.statistics):
        return "the statistics of a prior must have its purpose"
    if reports is not None and (origin.statistics or reports.origin is not None):
        return "a prior is either from counts or from reports, which have no prior of their own"
    if origin.cost is not None and not group_budget(origin.cost, charge.rows_per_person) <= charge.budget:
        return "the noise of a prior costs more than is charged for it"
    return None


def _unpaid_origins(terms: Terms) -> Iterator[str]:
    """Find priors whose charge is not on the card, or whose noise costs more, and charges for no prior."""
    paying = [charge for charge in terms.charges if charge.purpose == "prior"]
    known, used = set(paying), dict[Charge, dict[str, Budget]]()
    for origin in origins_of([*terms.priors, *{id(one): one for one in terms.mechanisms}.values()]):
        if (problem := origin_problem(origin)) or origin.charge is None or origin.charge not in known:
            yield problem or "its charges do not fit the source of a prior"
            continue
        if not origin.secure and terms.secure:
            yield "a prior came from a seed, and it calls itself secure"
        noise = used.setdefault(origin.charge, {})
        if origin.cost is not None:  # priors from the same noise, of several columns, are paid for once
            cost = group_budget(origin.cost, terms.rows_per_person)
            noise[canonical(plain([origin.statistics, origin.reports]))] = cost
    for charge, costs in used.items():
        if not sum(costs.values(), Budget(0)) <= charge.budget:
            yield "the noise of a prior costs more than is charged for it"
    if len(used) != len(paying):
        yield "it charges for a prior that it does not show"


def _unpaid_knowledge(known: Any, terms: Terms) -> Iterator[str]:
    """Find what is known of all labels, beyond the bounds, and was not paid for."""
    low, high = terms.bounds[0]
    if known["variance"] <= 0 or known["residual"] < 0:
        yield "what is known of its rows cannot be"
    if not low <= known["low"] < known["high"] <= high:
        yield "what is known of its rows lies outside its bounds"
    free = {"low": low, "high": high, "variance": (high - low) ** 2 / 20, "residual": 0, "sums": 0}
    if known != free and "sums" not in {charge.purpose for charge in terms.charges}:
        yield "it shows what it does not charge for, of all labels"


def _unpaid_score(card: dict[str, Any], terms: Terms) -> Iterator[str]:
    """Find a score that is not paid for, or paid for and not shown, and rows that were split in another way."""
    quality, split = card.get("quality"), terms.split
    if (quality is not None) != any(charge.purpose == "score" for charge in terms.charges):
        yield "a score must be charged for, and a charge for a score must show it"
    scored = None if quality is None else quality["rows"]
    if split is not None and (split.train_rows, split.test_rows) != (terms.rows, scored):
        yield "its rows were split in another way than it shows"
    table = card.get("regression", {})
    if len({len(column) for column in table.values()}) > 1:
        yield "the columns of its table of coefficients are not equally long"
