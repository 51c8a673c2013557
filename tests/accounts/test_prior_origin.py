"""A prior on a card: public, or paid for, by which charge and with which noise, computed or proven again."""

import dataclasses
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from card_cases import PRIOR, STRONG, card, counts_of_labels, labels, prior, refuse, release
from forged_cards import forged, put
from labeldp.accounts import Card, Origin
from labeldp.errors import ParameterError

plain = ldp.mechanisms.typed_data.plain
Budget = ldp.Budget
BOUNDS = (0.0, 20.0)
Y = np.random.default_rng(3).gamma(2.0, 1.0, 2000)
SHOWN = json.loads(card("release"))["priors"][0]


def release_of(**options):
    return ldp.privatize(Y, bounds=BOUNDS, ledger=ldp.Ledger(), **{"epsilon": 1.0, **options})


def test_a_prior_that_was_estimated_before_is_not_called_public_and_its_cost_is_on_the_card_once():
    ledger = ldp.Ledger()
    known = ldp.estimate_prior(Y, epsilon=0.25, bounds=BOUNDS, ledger=ledger)
    for same in (known, pickle.loads(pickle.dumps(known)), known.restricted(0.0, 10.0)):
        used = ldp.privatize(Y, epsilon=1.0, bounds=BOUNDS, prior=same, ledger=ldp.Ledger())
        assert used.cost == Budget(1.25)
        assert used.charges[1] == ledger.charges[0]
        entry = json.loads(used.to_card())["priors"][0]
        assert entry["origin"]["charge"] == plain(ledger.charges[0])
        assert ldp.verify_card(used.to_card()).verdict == "valid"
        left = Card.parse(used.to_card()).explain().sections["What is released"]
        assert "The prior: about where labels lie, with noise." in left


def test_a_public_prior_costs_nothing_and_is_called_public():
    text = release_of(prior=ldp.Histogram([0, 4, 20], [3, 1])).to_card()
    shown = next(check for check in ldp.verify_card(text).checks if check.name == "prior")
    assert (shown.holds, "which nobody can check" in shown.detail) == (None, True)
    assert ldp.verify_card(text).verdict == "valid"
    assert Card.parse(text).terms.cost == Budget(1)


def test_what_uses_a_prior_from_a_seed_is_not_private_either():
    with pytest.warns(ldp.InsecureRandomnessWarning):
        seeded = ldp.estimate_prior(Y, epsilon=0.25, bounds=BOUNDS, random_state=1)
    assert not release_of(prior=seeded).secure


def test_a_prior_is_paid_for_persons_with_as_many_rows_as_its_release():
    ledger = ldp.Ledger()
    known = ldp.estimate_prior(Y, epsilon=0.25, bounds=BOUNDS, rows_per_person=2, ledger=ldp.Ledger())
    with pytest.raises(ParameterError, match="paid for with rows_per_person=2"):
        ldp.privatize(Y, epsilon=1.0, bounds=BOUNDS, prior=known, ledger=ledger)
    assert not ledger.charges
    assert release_of(prior=known, rows_per_person=2).cost == Budget(2.5)


def designed(**options):
    """Return a mechanism that was designed with a private prior, and the charge for it."""
    ledger = ldp.Ledger()
    prior = ldp.estimate_prior(Y, epsilon=0.5, bounds=BOUNDS, ledger=ledger, **options)
    return ldp.RPWithPrior.design(prior, epsilon=1.0), ledger.charges[0]


@pytest.mark.parametrize("name", ["rp", "two-point", "laplace", "rr-on-bins", "unbiased"])
def test_a_mechanism_carries_what_its_private_prior_cost_to_every_card(name):
    """Its interval follows from the labels: whoever sees a release with it sees the prior, too."""
    ledger = ldp.Ledger()
    prior = ldp.estimate_prior(Y, epsilon=0.5, bounds=BOUNDS, ledger=ledger)
    made = ldp.mechanisms.mechanism_class(name).design(prior, 1.0)
    for same in (made, pickle.loads(pickle.dumps(made)), ldp.load_mechanism(made.to_json())):
        assert same.origin.charge == ledger.charges[0]
        used = ldp.privatize(Y, epsilon=1.0, bounds=BOUNDS, mechanism=same, purpose="values", ledger=ldp.Ledger())
        assert used.cost == Budget(1.5)
        assert ldp.verify_card(used.to_card()).verdict == "valid"
        assert Card.parse(used.to_card()).terms == used.terms
    assert ldp.verify_card(made.to_json()).verdict == "valid"
    assert "for ε = 0.5 more, once" in Card.parse(made.to_json()).explain().text()


def test_a_mechanism_designed_with_a_prior_from_a_seed_is_not_private_either():
    with pytest.warns(ldp.InsecureRandomnessWarning):
        made, _ = designed(random_state=1)
    used = release_of(mechanism=made)
    assert not used.secure
    for text in (used.to_card(), made.to_json()):
        assert ldp.verify_card(text).verdict == "not valid"
    content = json.loads(used.to_card())
    secure = dataclasses.replace(used.terms, secure=True)
    lie = {"secure": True, "guarantee": secure.guarantee}
    refuse(forged({**content, **lie}), "came from a seed")


def test_a_mechanism_whose_prior_is_not_paid_for_on_the_card_is_refused():
    made, charge = designed()
    terms = release_of(mechanism=made).terms
    refuse(dataclasses.replace(terms, charges=terms.charges[:1]).to_card(purpose="training"), "source of a prior")
    cheap = dataclasses.replace(made.origin, charge=dataclasses.replace(charge, budget=Budget(0.25)))
    for origin in (
        cheap,
        dataclasses.replace(made.origin, charge=None),
        dataclasses.replace(cheap, charge=labels()),
    ):
        refuse(made.with_origin(origin).to_json(), "contradicts itself")
    with pytest.raises(ParameterError, match="paid for with rows_per_person=1"):
        release_of(mechanism=made, rows_per_person=2)


# ---- lies ------------------------------------------------------------------------------------------------------


def test_a_prior_whose_noise_costs_more_than_its_charge_does_not_hold():
    dear = Origin((counts_of_labels("bins", 2, Fraction(1, 2)), counts_of_labels("bins", 2, Fraction(1, 10**9))))
    weak = Origin(reports=ldp.TwoPoint(bounds=(0, 5), epsilon=0.6))
    for origin in (dear, weak):
        shown = ldp.Histogram(PRIOR.nodes, PRIOR.masses, origin)
        refuse(
            release(labels(), prior(), priors=(shown,)).to_card(purpose="training"), "costs more than is charged"
        )
    refuse(
        release(labels(epsilon=3, people=3), prior(people=3)).to_card(purpose="training"),
        "costs more than is charged",
    )


def test_two_priors_of_their_own_noise_are_not_paid_for_by_one_charge():
    """One noise may serve a prior and a design; two draws of it may not be called one."""
    paid = prior()
    counted = dataclasses.replace(PRIOR.origin, charge=paid)
    other = Origin((counts_of_labels("other bins", 3, Fraction(1, 2)),), charge=paid)
    shown = (ldp.Histogram(PRIOR.nodes, PRIOR.masses, counted),)
    for origin, verdict in ((counted, "valid"), (other, "not valid")):
        text = release(labels(), paid, mechanisms=(STRONG.with_origin(origin),), priors=shown).to_card(
            purpose="training"
        )
        assert ldp.verify_card(text).verdict == verdict


def test_a_design_without_its_noise_cannot_be_checked_even_if_a_prior_of_the_same_charge_has_one():
    made = release_of(mechanism="rp")
    content = json.loads(made.to_card())
    assert content["priors"][0]["origin"] == content["mechanisms"][0]["origin"]
    bare = forged(put(content, ("mechanisms", 0, "origin", "statistics"), []))
    assert ldp.verify_card(bare).verdict == "cannot verify"


def test_a_prior_without_its_noise_cannot_be_checked_and_noise_that_does_not_follow_does_not_hold():
    bare = put(SHOWN, ("origin", "statistics"), [])
    assert ldp.verify_card(card("release", priors=[bare])).verdict == "cannot verify"
    refuse(card("release", priors=[put(SHOWN, ("origin", "statistics", 0, "scale"), "3")]), "is not valid")
    refuse(card("release", priors=[put(bare, ("origin", "reports"), STRONG.as_data())]), None)
