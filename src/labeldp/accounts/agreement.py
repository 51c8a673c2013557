"""Contradictions in a card: the rules under "Agreement" in docs/formats.md.

A checksum is no signature: a forger can write a consistent card that is false. But a card that is inconsistent
cannot be true of any release.
"""

from __future__ import annotations

import math
from typing import Any

from labeldp._values import Data
from labeldp.accounts.budget import Budget, Charge, group_budget, name_of_charge, total_of
from labeldp.accounts.statistic import Origin, origins_of, proven_cost
from labeldp.accounts.terms import Terms
from labeldp.errors import CardError
from labeldp.exact.proof import fingerprint, join_fingerprints
from labeldp.mechanisms.typed_data import canonical, plain

_NO_SOURCE = "its charges do not fit the source of a prior"
_DEAR_PRIOR = "the noise of a prior costs more than is charged for it"


def require(holds: bool, contradiction: str) -> None:
    """Refuse a card that contradicts itself."""
    if not holds:
        raise CardError(f"the card contradicts itself: {contradiction}")


def require_agreement(kind: str, card: Data, terms: Terms) -> None:
    """Refuse a card that contradicts itself; what is checked later relies on what was checked before."""
    _check_charges(card, terms)
    _check_mechanisms(kind, card, terms)
    if kind == "release":
        _check_columns(terms)
        file_rows = card.get("file", {}).get("rows", terms.rows)
        require(file_rows == terms.rows, "its file has another number of rows than its labels")
    else:
        has_one_column = len(terms.bounds) == 1 and not terms.priors
        require(has_one_column, "it must have one pair of bounds, and no prior beside it")
    _check_origins(card, terms)
    if kind == "row-release":
        _check_knowledge(card["knowledge"], terms)
    if kind == "model":
        _check_score(card, terms)
        least = {None: -math.inf, "sqrt": 0.0, "log": math.ulp(0.0)}[terms.transform]
        require(terms.bounds[0][0] >= least, "its lower bound is too small for its transform")
    steps = card.get("rounding", terms.bounds)
    require(len(steps) == len(terms.bounds), "rounding must have one entry for each column")


def _check_charges(card: Data, terms: Terms) -> None:
    """Require charges that add up to what is stated, and pay for statistics."""
    charges = terms.charges
    is_paid = bool(charges) and all(0 < charge.budget.exact_epsilon < math.inf for charge in charges)
    require(is_paid, "it must list charges, each with a positive and finite epsilon")
    same_rows = len({charge.rows_per_person for charge in charges}) == 1
    require(same_rows, "all of its charges must have the same rows_per_person")
    guarantees = (terms.guarantee, terms.guarantee_of(card.get("file", {})))  # the first also in older files
    require(card["guarantee"] in guarantees, "its charges do not give the guarantee it states")
    require(card["cost"] == terms.cost.rounded(), "its charges do not give the cost it states")
    trusted = terms.trust == "curator" or not any(map(terms.charges_for, ("sums", "mean", "score")))
    require(trusted, "with local trust nobody can sum labels, and it charges for sums")
    for purpose in dict.fromkeys(statistic.purpose for statistic in terms.statistics):
        has_own_charge = purpose not in ("labels", "prior")
        require(
            has_own_charge, f"statistics cannot have the purpose {purpose}, whose charge pays for something else"
        )
        is_paid = spent_on(terms, purpose) <= total_of(terms.charges_for(purpose))
        require(is_paid, f"its statistics cost more than it charges for {purpose}")


def spent_on(terms: Terms, purpose: str) -> Budget:
    """Return what a card's statistics of a purpose cost, for all rows of a person."""
    listed = [Budget(one.epsilon) for one in terms.statistics if one.purpose == purpose]
    return sum((group_budget(cost, terms.rows_per_person) for cost in listed), Budget(0))


def _check_mechanisms(kind: str, card: Data, terms: Terms) -> None:
    """Require that mechanisms are paid for: by their column's charge, or else by the one charge for labels."""
    distinct, parts = card["mechanisms"], card["parts"]
    paying = terms.charges_for("labels")
    if kind == "release":
        groups = [[part] for part in parts]
        one_each = [charge.column for charge in paying] == list(range(len(parts)))
        require(one_each, "each of its mechanisms needs a charge of its own, for labels of its column")
    else:
        groups = [parts] if parts else []
        one_for_all = len(paying) == len(groups)
        require(one_for_all, "its mechanisms need one charge for labels, and such a charge needs mechanisms")
    costs = [group_budget(proven_cost(mechanism), terms.rows_per_person) for mechanism in distinct]
    prints = [fingerprint(mechanism.channel) for mechanism in distinct]
    for group, charge in zip(groups, paying, strict=True):
        is_paid = all(costs[part] <= charge.budget for part in set(group))
        require(is_paid, "its mechanisms cost more than it charges")
        noted = join_fingerprints([prints[part] for part in group])
        require(charge.mechanism == noted, "it charges for another mechanism than it shows")


def _check_columns(terms: Terms) -> None:
    """Require priors inside their bounds, and mechanisms that overlap them; they may be for more labels."""
    is_complete = len(terms.bounds) == len(terms.priors) == len(terms.mechanisms)
    require(is_complete, "each mechanism needs bounds, and a prior or none")
    for column, (low, high) in enumerate(terms.bounds):
        first, last = terms.mechanisms[column].domain
        require(first < high and low < last, "a mechanism is for labels outside its bounds")
        prior = terms.priors[column]
        origin: Origin | None = None if prior is None else prior.origin
        if prior is not None and (origin is None or origin.reports is None):  # one of reports may be wider
            first, last = prior.bounds
            rounding = 1e-9 * (high - low)
            require(low - rounding <= first and last <= high + rounding, "a prior lies outside its bounds")
        if origin is not None and origin.charge is not None and origin.charge.column is not None:
            name = name_of_charge(f"prior ({terms.trust})", column, len(terms.priors))
            require((origin.charge.column, origin.charge.what) == (column, name), _NO_SOURCE)
            trusted = terms.trust == "curator" or not origin.statistics
            require(trusted, "with local trust nobody can count labels, and its prior is from counts")


def charge_of_origin(origin: Origin) -> Charge:
    """Return what paid for a prior; refuse an origin that is wrong by itself."""
    charge, reports = origin.charge, origin.reports
    if charge is None or charge.purpose != "prior" or not charge.what.startswith("prior ("):
        raise CardError(f"the card contradicts itself: {_NO_SOURCE}")
    of_prior = all(one.purpose == "prior" for one in origin.statistics)
    require(of_prior, "the statistics of a prior must have its purpose")
    one_source = reports is None or not (origin.statistics or reports.origin)
    require(one_source, "a prior is either from counts or from reports, which have no prior of their own")
    is_paid = origin.cost is None or group_budget(origin.cost, charge.rows_per_person) <= charge.budget
    require(is_paid, _DEAR_PRIOR)
    return charge


def _check_origins(card: Data, terms: Terms) -> None:
    """Require that the charges of priors are on the card and pay for their noise, and each is for a prior."""
    paying = terms.charges_for("prior")
    known = set(paying)
    noise: dict[Charge, dict[str, Budget]] = {}
    for origin in origins_of([*terms.priors, *card["mechanisms"]]):
        charge = charge_of_origin(origin)
        require(charge in known, _NO_SOURCE)
        require(origin.secure or not terms.secure, "a prior came from a seed, and it calls itself secure")
        # priors from the same noise, of several columns, are paid for once
        key = canonical(plain([origin.statistics, origin.reports]))
        noise.setdefault(charge, {})[key] = group_budget(origin.cost or Budget(0), terms.rows_per_person)
    require(len(noise) == len(paying), "it charges for a prior that it does not show")
    for charge, costs in noise.items():
        require(sum(costs.values(), Budget(0)) <= charge.budget, _DEAR_PRIOR)


def _check_knowledge(known: Any, terms: Terms) -> None:
    """Require that what is known of all labels, beyond the bounds, is paid for."""
    low, high = terms.bounds[0]
    require(
        known["variance"] > 0 and known["residual"] >= 0,
        "knowledge must have a positive variance, and a residual of 0 or more",
    )
    is_inside = low <= known["low"] < known["high"] <= high
    require(is_inside, "knowledge must lie inside its bounds")
    free = {"low": low, "high": high, "variance": (high - low) ** 2 / 20, "residual": 0, "sums": 0}
    is_paid = known == free or bool(terms.charges_for("sums"))
    require(is_paid, "it shows knowledge of all labels that no charge pays for")


def _check_score(card: Data, terms: Terms) -> None:
    """Require a score that is paid for, and shown where it was, and rows that were split as it says."""
    quality, split = card.get("quality"), terms.split
    is_paid = bool(terms.charges_for("score"))
    require(is_paid == (quality is not None), "a score needs a charge, and a charge for a score needs a score")
    if split is not None:
        is_split = quality is not None and (split.train_rows, split.test_rows) == (terms.rows, quality["rows"])
        require(is_split, "the split has other numbers of rows than the model and its score")
    lengths = {len(column) for column in card.get("regression", {}).values()}
    require(len(lengths) <= 1, "the columns of its table of coefficients are not equally long")
