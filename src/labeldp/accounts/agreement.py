"""Contradictions in a card: the rules under "Agreement" in docs/formats.md.

A checksum is no signature: a forger can write a consistent card that is false. But a card that is inconsistent
cannot be true of any release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

from labeldp._values import Data
from labeldp.accounts.budget import Budget, Charge, group_budget, total_of
from labeldp.accounts.statistic import Origin, origins_of, proven_cost
from labeldp.accounts.terms import Terms
from labeldp.errors import CardError
from labeldp.mechanisms.base import fingerprint, is_pure, join_fingerprints
from labeldp.mechanisms.typed_data import canonical, plain

Rules = Iterator[tuple[bool, str]]
"""Whether a rule holds, and what contradicts it otherwise; what follows relies on what was checked before."""

_NO_SOURCE = "its charges do not fit the source of a prior"
_NOT_PURE = "a mechanism has a δ, and charges pay for pure ε"
_DEAR_PRIOR = "the noise of a prior costs more than is charged for it"


def require(holds: bool, contradiction: str) -> None:
    """Refuse a card that contradicts itself."""
    if not holds:
        raise CardError(f"the card contradicts itself: {contradiction}")


def require_agreement(kind: str, card: Data, terms: Terms) -> None:
    """Refuse a card that contradicts itself."""
    own = {"release": _columns, "row-release": _label_summary, "model": _model}[kind]
    for holds, contradiction in chain(
        _charges(card, terms), _labels(kind, card, terms), _origins(card, terms), own(card, terms)
    ):
        require(holds, contradiction)


def spent_on(terms: Terms, purpose: str) -> Budget:
    """Return what a card's statistics of a purpose cost, for all rows of a person."""
    listed = [Budget(one.epsilon) for one in terms.statistics if one.purpose == purpose]
    return sum((group_budget(cost, terms.rows_per_person) for cost in listed), Budget(0))


def _charges(card: Data, terms: Terms) -> Rules:
    """Require charges that add up to what is stated, and pay for statistics."""
    charges = terms.charges
    is_positive = all(charge.budget.exact_epsilon > 0 for charge in charges)
    yield bool(charges) and is_positive, "it must list charges, each with a positive epsilon"
    same_rows = len({charge.rows_per_person for charge in charges}) == 1
    yield same_rows, "all of its charges must have the same rows_per_person"
    guarantees = (terms.guarantee, terms.guarantee_of(card.get("file", {})))  # the first also in older files
    yield card["guarantee"] in guarantees, "its charges do not give the guarantee it states"
    yield card["cost"] == terms.cost.rounded(), "its charges do not give the cost it states"
    summed = any(map(terms.charges_for, ("sums", "mean", "score")))
    yield terms.trust == "curator" or not summed, "with local trust nobody can sum labels, and it charges for sums"
    for purpose in {statistic.purpose for statistic in terms.statistics}:
        is_paid = spent_on(terms, purpose) <= total_of(terms.charges_for(purpose))
        yield (
            purpose not in ("labels", "prior") and is_paid,
            f"its statistics cost more than it charges for {purpose}",
        )
    steps = card.get("rounding", terms.bounds)
    yield len(steps) == len(terms.bounds), "rounding must have one entry for each column"


def _labels(kind: str, card: Data, terms: Terms) -> Rules:
    """Require that mechanisms are paid for: by their column's charge, or else by the one charge for labels."""
    distinct, parts = card["mechanisms"], card["parts"]
    columns, paying = len(terms.bounds), terms.charges_for("labels")
    if kind == "release":
        groups = [[part] for part in parts]
        one_each = [charge.column for charge in paying] == list(range(len(parts)))
        yield one_each, "each of its mechanisms needs a charge of its own, for labels of its column"
        yield columns == len(terms.priors) == len(parts), "each mechanism needs bounds, and a prior or none"
    else:
        groups = [parts] if parts else []
        if groups and not paying:
            paying = terms.charges_for("sums")  # one charge for sums and for labels around them
        one_for_all = len(paying) == len(groups)
        yield one_for_all, "its mechanisms need one charge for labels, and such a charge needs mechanisms"
        yield columns == 1 and not terms.priors, "it must have one pair of bounds, and no prior beside it"
    yield all(map(is_pure, distinct)), _NOT_PURE
    costs = [group_budget(proven_cost(mechanism), terms.rows_per_person) for mechanism in distinct]
    prints = [fingerprint(mechanism.channel) for mechanism in distinct]
    for group, charge in zip(groups, paying, strict=True):
        sums = [str(one) for one in terms.statistics if one.purpose == charge.purpose]
        spent = spent_on(terms, charge.purpose)
        is_paid = all(spent + costs[part] <= charge.budget for part in set(group))
        yield is_paid, "its mechanisms cost more than it charges"
        noted = "; ".join([*sums, join_fingerprints([prints[part] for part in group])])
        yield charge.mechanism == noted, "it charges for another mechanism than it shows"


def _columns(card: Data, terms: Terms) -> Rules:
    """Require priors inside their bounds, and mechanisms that overlap them.

    A mechanism's domain may be wider than the bounds.
    """
    columns = zip(terms.mechanisms, terms.priors, terms.bounds, strict=True)
    for column, (mechanism, prior, (low, high)) in enumerate(columns):
        first, last = mechanism.domain
        yield first < high and low < last, "a mechanism is for labels outside its bounds"
        if prior is None:
            continue
        origin: Origin = prior.origin or Origin()
        (first, last), rounding = prior.bounds, 1e-9 * (high - low)
        is_inside = low - rounding <= first and last <= high + rounding
        yield is_inside or origin.reports is not None, "a prior lies outside its bounds"
        if origin.charge is not None and origin.charge.column is not None:
            name = f"prior ({terms.trust})" + (f", column {column}" if len(terms.priors) > 1 else "")
            yield (origin.charge.column, origin.charge.description) == (column, name), _NO_SOURCE
            trusted = terms.trust == "curator" or not origin.statistics
            yield trusted, "with local trust nobody can count labels, and its prior is from counts"
    rows = card.get("file", {}).get("rows", terms.rows)
    yield rows == terms.rows, "its file has another number of rows than its labels"


def charge_of_origin(origin: Origin) -> Charge:
    """Return what paid for a prior; refuse an origin that is wrong by itself."""
    charge, reports = origin.charge, origin.reports
    if charge is None or charge.purpose != "prior" or not charge.description.startswith("prior ("):
        raise CardError(f"the card contradicts itself: {_NO_SOURCE}")
    of_prior = all(one.purpose == "prior" for one in origin.statistics)
    one_source = reports is None or not (origin.statistics or reports.origin)
    require(
        of_prior and one_source, "a prior is either from counts or from reports, which have no prior of their own"
    )
    require(reports is None or is_pure(reports), _NOT_PURE)
    is_paid = origin.cost is None or group_budget(origin.cost, charge.rows_per_person) <= charge.budget
    require(is_paid, _DEAR_PRIOR)
    return charge


def _origins(card: Data, terms: Terms) -> Rules:
    """Require that the charges of priors are on the card and pay for their noise, and each is for a prior."""
    paying = [canonical(plain(charge)) for charge in terms.charges_for("prior")]
    noise: dict[str, dict[str, Budget]] = {name: {} for name in paying}
    for origin in origins_of([*terms.priors, *card["mechanisms"]]):
        name = canonical(plain(charge_of_origin(origin)))
        yield name in noise, _NO_SOURCE
        yield origin.secure or not terms.secure, "a prior came from a seed, and it calls itself secure"
        # priors from the same noise, of several columns, are paid for once
        key = canonical(plain([origin.statistics, origin.reports]))
        noise[name][key] = group_budget(origin.cost or Budget(0), terms.rows_per_person)
    is_shown = len(noise) == len(paying) and all(noise.values())
    yield is_shown, "it charges for a prior that it does not show"
    for charge, costs in zip(terms.charges_for("prior"), noise.values(), strict=True):
        yield sum(costs.values(), Budget(0)) <= charge.budget, _DEAR_PRIOR


def _label_summary(card: Data, terms: Terms) -> Rules:
    """Require a label summary inside the bounds, and a charge for sums unless it follows from the bounds."""
    known, (low, high) = card["knowledge"], terms.bounds[0]
    is_inside = low <= known["low"] < known["high"] <= high
    yield is_inside and known["variance"] > 0, "its knowledge of all labels is impossible"
    free = {"low": low, "high": high, "variance": (high - low) ** 2 / 20, "sums": 0}
    is_paid = known == free or bool(terms.charges_for("sums"))
    yield is_paid, "it shows knowledge of all labels that no charge pays for"


def _model(card: Data, terms: Terms) -> Rules:
    """Require a score that is paid for and shown, rows that were split as it says, and complete figures."""
    quality, split, fit = card.get("quality"), terms.split, card.get("fit", {})
    is_paid = bool(terms.charges_for("score"))
    yield is_paid == (quality is not None), "a score needs a charge, and a charge for a score needs a score"
    scored = None if quality is None else quality["rows"]
    is_split = split is None or (split.train_rows, split.test_rows) == (terms.rows, scored)
    yield is_split, "the split has other numbers of rows than the model and its score"
    is_own = split is None or split.separates(terms.charges)
    yield is_own, "the split is of other charges than those of the model and its score"
    lengths = {len(column) for column in card.get("regression", {}).values()}
    yield len(lengths) <= 1, "the columns of its table of coefficients are not equally long"
    yield ("rsquared" in fit) == ("standard_error" in fit), "R² is shown only with its standard error"
    least = {None: -math.inf, "sqrt": 0.0, "log": math.ulp(0.0)}[terms.label_transform]
    yield terms.bounds[0][0] >= least, "its lower bound is too small for its label_transform"
