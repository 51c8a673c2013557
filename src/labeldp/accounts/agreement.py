"""Contradictions in a card: the rules under "Agreement" in docs/formats.md, in their order.

A checksum is no signature: a forger can write a consistent card that is false. But a card that is inconsistent
cannot be true of any release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from labeldp._values import Data
from labeldp.accounts.budget import Charge, exact_sum, total_of
from labeldp.accounts.statistic import Origin, origins_of, proven_cost
from labeldp.errors import CardError
from labeldp.mechanisms.base import fingerprint, is_pure, join_fingerprints
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.typed_data import canonical, plain

if TYPE_CHECKING:
    from labeldp.accounts.terms import Terms

_NO_SOURCE = "its charges do not fit the source of a prior"
_OTHER_PEOPLE = "all of its charges must have the same rows_per_person"
_NOT_PURE = "a mechanism has a δ, and charges pay for pure ε"
_UNPAID_PRIOR = "the noise of a prior costs more than is charged for it"
ROUNDING = 1e-9
"""Share of the bounds' width by which a prior may reach beyond them: its nodes are rounded."""
ESTIMATED_ALONE = ", estimated alone"
"""The end of the description of a charge for a prior that may be of other rows."""
LOWEST_LABELS = {None: -math.inf, "sqrt": 0.0, "log": math.ulp(0.0)}
"""The least lower bound of labels, by their transform."""


def require(holds: bool, contradiction: str) -> None:
    """Refuse a card that contradicts itself."""
    if not holds:
        raise CardError(f"the card contradicts itself: {contradiction}")


def require_agreement(kind: str, entries: Data, terms: Terms) -> None:
    """Refuse a card that contradicts itself; later rules rely on the earlier ones."""
    require(len(terms.bounds) == 1, "it must have one pair of bounds")
    _require_charges(entries, terms)
    _require_statistics(terms)
    _require_mechanisms(kind, entries, terms)
    _require_origins(entries, terms)
    if kind == "release":
        _require_release(entries, terms)
        _require_purpose(entries, terms)
    elif kind == "row-release":
        _require_knowledge(entries, terms)
    else:
        _require_model(entries, terms)


def require_joint_agreement(entries: Data, terms: Terms, labels: Sequence[Data]) -> None:
    """Refuse the card of several labels if it contradicts itself or one of them; each agrees with itself."""
    names = [label.get("label") for label in labels]
    require(None not in names and len(set(names)) == len(names), "each of its labels must have a name of its own")
    _require_joint_statements(entries, terms)
    _require_scope(terms)
    rows = {entries["rows"], entries.get("file", entries)["rows"], *(label["rows"] for label in labels)}
    require(len(rows) == 1, "its labels and its file must have the same rows")
    require(len({charge.rows_per_person for charge in terms.charges}) == 1, _OTHER_PEOPLE)
    columns = entries.get("file", {}).get("columns")
    for label in labels:
        features = set(label.get("features", ()))
        require(not features & set(names), "a label is a feature of another")
        is_public = columns is None or features <= set(columns)
        require(is_public, "its features are not public columns of its file")
    require(columns is None or set(names) <= set(columns), "its file lacks a label")
    require("column" not in entries.get("file", {}), "its file has several private columns")


def require_fits_agreement(entries: Data, terms: Terms) -> None:
    """Refuse the card of a model that learnt on if it contradicts itself; each of its fits agrees with itself."""
    fits = terms.fits
    units = {(fit.bounds, fit.label_transform, fit.trust) for fit in fits}
    require(len(units) == 1, "its fits are of labels in different units, or of different trust")
    require(not any(fit.charges_for("score") or fit.split for fit in fits), "a score is of one of its fits alone")
    require(entries["rows"] == terms.rows, "its rows are those of all fits")
    _require_joint_statements(entries, terms)
    partitions = {charge.segments.partition for charge in terms.charges if charge.segments is not None}
    require(len(partitions - {None}) <= 1, "its segments are of different partitions")


def _require_joint_statements(entries: Data, terms: Terms) -> None:
    """Require the guarantee, cost and security of all labels or fits, and a charge for one of them alone."""
    _require_statements(entries, terms)
    require(entries["secure"] == terms.secure, "it is as secure as the least secure of its parts")
    require(
        len({charge.key for charge in terms.charges}) == len(terms.charges), "a charge pays for one part alone"
    )


def _require_statements(entries: Data, terms: Terms) -> None:
    """Require the guarantee and the cost that follow from the charges."""
    require(
        entries["guarantee"] == terms.guarantee_of(entries.get("file", {})),
        "its charges do not give the guarantee it states",
    )
    require(entries["cost"] == terms.stated_cost, "its charges do not give the cost it states")


def cost_of_statistics(terms: Terms, purpose: str) -> Fraction:
    """Return the cost of a card's statistics of a purpose, for all rows of a person."""
    costs = (statistic.epsilon for statistic in terms.statistics if statistic.purpose == purpose)
    return terms.rows_per_person * exact_sum(costs)


def noise_notes(terms: Terms, purpose: str) -> list[str]:
    """Return a card's statistics of a purpose as charges note them."""
    return [str(statistic) for statistic in terms.statistics if statistic.purpose == purpose]


def charged_for(terms: Terms, purpose: str) -> Fraction:
    """Return the sum of all charges with a purpose."""
    return total_of(terms.charges_for(purpose)).exact_epsilon


def cost_of_mechanisms(terms: Terms) -> Fraction:
    """Return the cost of the dearest mechanism, for all rows of a person."""
    mechanisms = {id(mechanism): mechanism for mechanism in terms.mechanisms}.values()
    return terms.rows_per_person * max(proven_cost(mechanism).exact_epsilon for mechanism in mechanisms)


def _require_charges(entries: Data, terms: Terms) -> None:
    """Require charges that add up to the stated cost and guarantee."""
    charges = terms.charges
    is_positive = all(charge.budget.exact_epsilon > 0 for charge in charges)
    require(bool(charges) and is_positive, "it must list charges, each with a positive epsilon")
    rows_per_person = {charge.rows_per_person for charge in charges}
    require(len(rows_per_person) == 1, _OTHER_PEOPLE)
    _require_statements(entries, terms)
    _require_scope(terms)
    is_summed = bool(terms.statistics) or any(map(terms.charges_for, ("sums", "mean", "score")))
    is_trusted = terms.trust == "curator" or not is_summed
    require(is_trusted, "with local trust nobody can sum labels, and it charges for sums")


def _is_alone(charge: Charge) -> bool:
    """Return whether a charge is for a prior that may be of other rows than those of the card."""
    return charge.purpose == "prior" and charge.description.endswith(ESTIMATED_ALONE)


def _require_scope(terms: Terms) -> None:
    """Require one scope of all charges but those of priors estimated alone, and enough people for the rows."""
    segments = {charge.segments for charge in terms.charges if not _is_alone(charge)}
    require(len(segments) <= 1, "charges for the same rows are in different segments")
    people = terms.people
    if people is not None:
        is_possible = people.people <= terms.rows <= people.people * terms.rows_per_person
        limit = people.most_rows_per_person or terms.rows_per_person
        require(is_possible and terms.rows_per_person <= limit, "its people do not have so many rows")
        require(people.exhausted <= people.rows_left_out, "people without budget have rows that are left out")


def _require_statistics(terms: Terms) -> None:
    """Require charges that pay for all statistics, of purposes that statistics may have."""
    for purpose in {statistic.purpose for statistic in terms.statistics}:
        is_held_out = purpose == "score" and terms.split is not None  # rows that did not spend ε on the fit
        charged = terms.cost.exact_epsilon if is_held_out else charged_for(terms, purpose)
        is_paid = cost_of_statistics(terms, purpose) <= charged
        may_pay = purpose not in ("labels", "prior")
        require(may_pay and is_paid, f"its statistics cost more than it charges for {purpose}")


def _require_mechanisms(kind: str, entries: Data, terms: Terms) -> None:
    """Require one charge that pays for all mechanisms, and notes them."""
    mechanisms, numbers = entries["mechanisms"], entries["parts"]
    require(all(map(is_pure, mechanisms)), _NOT_PURE)
    paying = terms.charges_for("labels")
    if kind == "release" and "features" not in entries:
        require(len(numbers) == len(terms.priors) == 1, "it must have one mechanism, and a prior or none")
    else:
        require(not terms.priors, "it must have no prior beside its mechanisms")
        if numbers and not paying:
            paying = terms.charges_for("sums")  # one charge for sums and for labels around them
    is_paid_once = len(paying) == bool(numbers)
    require(is_paid_once, "its mechanisms need one charge, and a charge for labels needs mechanisms")
    for charge in paying:
        cost = cost_of_statistics(terms, charge.purpose) + cost_of_mechanisms(terms)
        require(cost <= charge.budget.exact_epsilon, "its mechanisms cost more than it charges")
        prints = [fingerprint(mechanism.channel) for mechanism in mechanisms]
        of_rows = join_fingerprints([prints[number] for number in numbers])
        note = "; ".join([*noise_notes(terms, charge.purpose), of_rows])
        require(charge.mechanism == note, "it charges for another mechanism than it shows")


def charge_of_origin(origin: Origin) -> Charge:
    """Return the charge that paid for a prior; refuse an origin that contradicts itself."""
    charge, reports = origin.charge, origin.reports
    if charge is None or charge.purpose != "prior" or not charge.description.startswith("prior ("):
        raise CardError(f"the card contradicts itself: {_NO_SOURCE}")
    are_for_priors = all(statistic.purpose == "prior" for statistic in origin.statistics)
    has_one_source = reports is None or not origin.statistics
    require(are_for_priors and has_one_source, "a prior is either from counts or from reports")
    require(reports is None or is_pure(reports), _NOT_PURE)
    require(_cost_of_origin(origin, charge) <= charge.budget.exact_epsilon, _UNPAID_PRIOR)
    return charge


def _cost_of_origin(origin: Origin, charge: Charge) -> Fraction:
    """Return the cost of the noise of a prior, for all rows of a person; 0 if the card does not say it."""
    cost = origin.cost
    return Fraction(0) if cost is None else charge.rows_per_person * cost.exact_epsilon


def _require_origins(entries: Data, terms: Terms) -> None:
    """Require that the charges of priors are on the card and pay for their noise, and each is for a prior."""
    charges = {canonical(plain(charge)): charge for charge in terms.charges_for("prior")}
    require(len(charges) == len(terms.charges_for("prior")), "it charges twice for a prior")
    noise: dict[str, dict[str, Fraction]] = {name: {} for name in charges}
    for origin in origins_of([*terms.priors, *entries["mechanisms"]]):
        charge = charge_of_origin(origin)
        name = canonical(plain(charge))
        require(name in noise, _NO_SOURCE)
        require(origin.secure or not terms.secure, "a prior came from a seed, and it calls itself secure")
        source = canonical(plain([origin.statistics, origin.reports]))  # the same noise is paid for once
        noise[name][source] = _cost_of_origin(origin, charge)
    require(all(noise.values()), "it charges for a prior that it does not show")
    for name, costs in noise.items():
        require(exact_sum(costs.values()) <= charges[name].budget.exact_epsilon, _UNPAID_PRIOR)


def _require_release(entries: Data, terms: Terms) -> None:
    """Require mechanisms that overlap the bounds, a prior inside them, and as many rows in the file."""
    file = entries.get("file", {"rows": terms.rows, "column": ""})
    require(file["rows"] == terms.rows, "its file has another number of rows than its labels")
    require("column" in file, "its file does not say which column is private")
    if "features" in entries:
        _require_score(entries, terms, fitted_rows=terms.rows - (terms.split.test_rows if terms.split else 0))
        return
    (mechanism,), (prior,), ((low, high),) = terms.mechanisms, terms.priors, terms.bounds
    first, last = mechanism.domain
    require(first < high and low < last, "its mechanism is for labels outside its bounds")
    if prior is not None:
        _require_prior(prior, terms)


def _require_purpose(entries: Data, terms: Terms) -> None:
    """Require the promise of a purpose: a model is for training, and statistics are clipped by bounds alone."""
    purpose, has_model = entries["purpose"], "features" in entries
    require(has_model == ("residual_variance" in entries), "a model goes with the variance around it")
    require(has_model or not {"quality", "split"} & entries.keys(), "it has a score, and no model")
    require(purpose == "training" or not has_model, "labels from a model are for training")
    if has_model:
        _require_features(entries)
    if purpose == "statistics":
        is_clipped_by_bounds = terms.mechanisms[0].domain == terms.bounds[0] and terms.priors == (None,)
        require(is_clipped_by_bounds, "labels for statistics are clipped by their bounds alone")
    if purpose != "values":
        is_unbiased = all(type(mechanism).unbiased for mechanism in terms.mechanisms)
        require(is_unbiased, "a mechanism without unbiased labels is for values")


def _require_features(entries: Data) -> None:
    """Require features that are public columns, each once, and a residual variance that is the measured one."""
    features, file = entries["features"], entries.get("file")
    columns = set(features if file is None else file["columns"])
    columns -= {entries.get("label"), None if file is None else file["column"]}
    is_public = len(set(features)) == len(features) and columns.issuperset(features)
    require(is_public, "its features are not public columns of its file, each once")
    mse = entries.get("quality", {"figures": {}})["figures"].get("mse")
    is_measured = mse is None or mse.is_hidden or entries["residual_variance"] == mse.value
    require(is_measured, "the variance around its model is not the mean squared error that it states")


def _require_prior(prior: Histogram, terms: Terms) -> None:
    """Require a prior inside the bounds, from noise that the stated trust allows."""
    ((low, high),) = terms.bounds
    origin: Origin = prior.origin or Origin()
    margin = ROUNDING * (high - low)
    first, last = prior.bounds
    is_inside = low - margin <= first and last <= high + margin
    require(is_inside or origin.reports is not None, "a prior lies outside its bounds")
    charge = origin.charge
    if charge is None or _is_alone(charge):  # estimated before this release
        return
    if charge.description.startswith(("prior (curator)", "prior (local)")):
        require(charge.description.startswith(f"prior ({terms.trust})"), _NO_SOURCE)
        is_trusted = terms.trust == "curator" or not origin.statistics
        require(is_trusted, "with local trust nobody can count labels, and its prior is from counts")


def _require_knowledge(entries: Data, terms: Terms) -> None:
    """Require a label summary inside the bounds, and a charge for sums unless it follows from the bounds."""
    summary, ((low, high),) = entries["knowledge"], terms.bounds
    is_inside = low <= summary["low"] < summary["high"] <= high
    require(is_inside and summary["variance"] > 0, "its knowledge of all labels is impossible")
    free = {"low": low, "high": high, "variance": (high - low) ** 2 / 20, "sums": 0}
    is_paid = summary == free or bool(terms.charges_for("sums"))
    require(is_paid, "it shows knowledge of all labels that no charge pays for")


def _require_model(entries: Data, terms: Terms) -> None:
    """Require a score that is paid for and shown, rows that were split as stated, and complete figures."""
    _require_score(entries, terms, fitted_rows=terms.rows)
    fit = entries.get("fit", {})
    lengths = {len(column) for column in entries.get("regression", {}).values()}
    require(len(lengths) <= 1, "the columns of its table of coefficients are not equally long")
    require(("rsquared" in fit) == ("standard_error" in fit), "R² is shown only with its standard error")
    is_transformable = terms.bounds[0][0] >= LOWEST_LABELS[terms.label_transform]
    require(is_transformable, "its lower bound is too small for its label_transform")


def _require_score(entries: Data, terms: Terms, fitted_rows: int) -> None:
    """Require a score that is paid for and shown, and rows that were split as stated."""
    quality, split = entries.get("quality"), terms.split
    is_paid = bool(terms.charges_for("score")) or split is not None
    require(is_paid == (quality is not None), "a score needs a charge, and a charge for a score needs a score")
    if split is not None:
        rows = None if quality is None else quality["rows"]
        is_split = (split.train_rows, split.test_rows) == (fitted_rows, rows)
        require(is_split, "the split has other numbers of rows than the model and its score")
        require(split.separates(terms.charges), "the split is of other charges than those of the model")
