"""Cards of each kind by hand: their terms, the card that states them, and what a reader says of it."""

import dataclasses
import json
from fractions import Fraction

import pytest

import labeldp as ldp
from forged_cards import forged
from helpers import MAKERS

fingerprint = ldp.mechanisms.base.fingerprint
Charge = ldp.accounts.Charge
Budget = ldp.Budget
SMALL = {
    **MAKERS,
    "gaussian": lambda e, b: ldp.Gaussian(bounds=b, epsilon=e, delta=0.01),
    "unbiased": lambda e, b: ldp.Unbiased.design(ldp.Histogram(b, [1]), e, size=4),
}
"""Mechanisms whose cards are short, by name."""
WHEN = "2026-01-01T00:00:00+00:00"
STRONG, WEAK = (ldp.TwoPoint(bounds=(0, 5), epsilon=epsilon) for epsilon in (1.0, 2.0))
PARTS = tuple(ldp.TwoPoint(bounds=(0, 1), epsilon=epsilon) for epsilon in (1.0, 0.9))
NORMAL = ldp.Gaussian(bounds=(0, 5), epsilon=16.0, delta=0.01)
"""A mechanism with a δ, which no card of a release may have."""
OTHERS = [
    ldp.RPWithPrior(interval=(0, 5), zeta=0.5, epsilon=1.0),
    ldp.RROnBins(edges=[0, 1, 5], outputs=[0.8, 2.1], epsilon=1.0),
]


def counts_of_labels(where, size, epsilon):
    """Return the statistic of a curator's counts."""
    return ldp.accounts.Statistic(f"counts of labels in {where}", "counts", size, 1, epsilon, "prior")


COUNTED = ldp.accounts.Origin((counts_of_labels("bins", 2, Fraction(1, 2)),))
PRIOR = ldp.Histogram([0, 1, 5], [1, 3], COUNTED)
"""A prior from two counts that cost a half; `release` makes a public one of it if there is no charge for it."""
REPORTED = ldp.Histogram([0, 1, 5], [1, 3], ldp.accounts.Origin(reports=ldp.TwoPoint(bounds=(0, 5), epsilon=0.5)))
"""A prior from labels that were randomised one by one."""
BOUNDS = (0.0, 5.0)


def paid(prior, charges):
    """Return a prior that says which charge paid for it; without one it is public."""
    if prior is None or prior.origin is None or prior.origin.charge is not None:
        return prior
    own = [one for one in charges if one.purpose == "prior"]
    origin = dataclasses.replace(prior.origin, charge=own[0]) if own else None
    return ldp.Histogram(prior.nodes, prior.masses, origin)


def labels(mechanism=STRONG, epsilon=1, *, people=1):
    return Charge(
        "labels",
        Budget(epsilon),
        WHEN,
        fingerprint(mechanism.channel),
        people,
        "labels",
    )


def prior(description="prior (curator)", epsilon=0.5, *, people=1):
    return Charge(description, Budget(epsilon), WHEN, None, people, "prior")


SUMS = (
    ldp.accounts.Statistic("counts of windows", "counts", 16, 1, Fraction(1, 25)),
    ldp.accounts.Statistic("9 sums", "sums", 9, 1 << 16, Fraction(3, 50)),
)
"""What a charge of a tenth for sums bought."""


def other(what, epsilon=0.1):
    """Return a charge for a statistic of all labels."""
    return Charge(what, Budget(epsilon), WHEN, "; ".join(map(str, SUMS)), 1, what)


def release(*charges, mechanisms=(STRONG,), priors=None, bounds=BOUNDS, trust="curator", secure=True):
    """Return the terms of a release; it has a prior unless another is given."""
    priors = tuple(paid(prior, charges) for prior in ((PRIOR,) if priors is None else priors))
    return ldp.accounts.Terms(70, mechanisms, priors, charges, (bounds,), trust, secure)


ALL_PARTS = "; ".join(f"part {k}: {fingerprint(part.channel)}" for k, part in enumerate(PARTS, 1))
IN_ROUNDS = Charge("labels", Budget(1), WHEN, ALL_PARTS, 1, "labels")
KNOWN = {"low": 0.0, "high": 5.0, "variance": 1.25, "sums": 0}
TERMS = {
    "release": release(labels(), prior()),
    "row-release": ldp.accounts.Terms(70, PARTS, (), (IN_ROUNDS, other("sums")), (BOUNDS,), "curator", True, SUMS),
    "model": ldp.accounts.Terms(70, PARTS, (), (IN_ROUNDS, other("sums")), (BOUNDS,), "curator", True, SUMS),
    "model of sums": ldp.accounts.Terms(70, (), (), (other("sums"),), (BOUNDS,), "curator", True, SUMS),
}
FILE = {
    "name": "out.csv", "format": "csv", "rows": 70, "rows_left_out": 0, "column": "price",
    "columns": ["price"], "types_changed": {},
    "sha256": "0" * 64, "row_order": "public, and kept", "not_copied": "metadata",
}  # fmt: skip
MODEL = {"model": "ModelReleaseRegressor"}
MORE = {
    **{"release": {"file": FILE, "purpose": "training"}, "row-release": {"knowledge": KNOWN, "rounds": 2}},
    **{"model": MODEL, "model of sums": MODEL},
}


def card(kind, **changes):
    """Return a card with other entries, or without those that are ``...``, and the checksum for it."""
    schema = f"labeldp.{kind.partition(' ')[0]}"
    content = {**json.loads(TERMS[kind].to_card(schema, **MORE.get(kind, {}))), **changes}
    return forged({key: value for key, value in content.items() if value is not ...})


def of_terms(kind, terms, **more):
    return terms.to_card(f"labeldp.{kind}", **{**MORE.get(kind, {}), **more})


def refuse(text, match="contradicts itself"):
    with pytest.raises(ldp.errors.CardError, match=match):
        ldp.accounts.Card.parse(text)
    assert not ldp.verify_card(text).holds
