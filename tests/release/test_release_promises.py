"""What a release tells, and the mistakes that it does not let pass."""

import json
import os
import pickle

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.release.numbers import number

RNG = np.random.default_rng(5)
LABELS = RNG.gamma(2.0, 0.7, 4000)


def test_a_forked_child_cannot_spend_from_the_parents_memory():
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon=1.0))
    child = os.fork()
    if child == 0:  # the twin, a ledger that let this pass, would end with 0
        try:
            ledger.charge("labels", epsilon=1.0)
        except ldp.LedgerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ledger.charge("labels", epsilon=1.0)


def test_a_seeded_release_says_that_it_is_not_private():
    for source, secure in ((seeded(1), False), (None, True)):
        release = ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), random_state=source)
        card = json.loads(release.to_card())
        assert release.secure is secure
        told = [release.summary(), card["words"], card["guarantee"]]
        assert all(("NOT PRIVATE" in text) is not secure for text in told)


def test_what_a_channel_does_not_write_shows_nothing_that_was_in_memory(monkeypatch):
    mechanism = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    monkeypatch.setattr(type(mechanism.channel), "sample", lambda self, labels, source, out: None)
    for _ in range(3):
        labels = LABELS + 1.0  # its memory is used again at once
        del labels
        assert np.isnan(mechanism.randomize(LABELS)).all()
        assert np.isnan(ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), mechanism=mechanism).labels).all()


def test_a_prior_is_of_one_column_only():
    with pytest.raises(ldp.LabelError, match="one label column"):
        ldp.estimate_prior(np.ones((50, 2)), epsilon=1.0, bounds=(0, 5))


def test_a_prior_is_charged_for_all_rows_of_a_person():
    ledger = ldp.Ledger()
    ldp.estimate_prior(LABELS, epsilon=0.5, bounds=(0, 5), ledger=ledger, rows_per_person=np.int64(3))
    assert ledger.total == ldp.Budget(1.5)


def test_a_known_prior_is_cut_to_the_bounds():
    wide = ldp.Histogram([0, 5, 100], [0.5, 0.5])
    release = ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), mechanism="laplace", prior=wide)
    low, high = release.mechanism.bounds
    assert 0 <= low < high <= 5
    assert release.prior.bounds == (0, 5)
    with pytest.raises(ldp.ParameterError, match="outside the bounds"):
        ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), prior=ldp.Histogram([100, 200], [1]))


def test_every_column_has_a_prior_of_its_own():
    two = np.column_stack([LABELS, 1000 * LABELS])
    priors = [ldp.Histogram([0, 2, 5], [1, 1]), ldp.Histogram([0, 2000, 5000], [1, 1])]
    release = ldp.privatize(two, epsilon=1.0, bounds=[(0, 5), (0, 5000)], prior=priors)
    assert release.mechanisms[0].bounds[1] <= 5
    assert release.mechanisms[1].bounds[1] > 1000
    with pytest.raises(ldp.ParameterError, match="for each label column"):
        ldp.privatize(two, epsilon=1.0, bounds=[(0, 5), (0, 5000)], prior=priors[0])


def test_a_mechanism_made_already_is_used_as_it_is():
    mechanism = ldp.RPWithPrior(interval=(1, 3), zeta=0.5, epsilon=0.7, outside="uniform")
    release = ldp.privatize(LABELS, epsilon=0.7, bounds=(0, 5), mechanism=mechanism)
    assert release.mechanism is mechanism
    assert release.cost == ldp.Budget(0.7)
    for wrong in (ldp.TwoPoint(bounds=(0, 5), epsilon=0.8), ldp.NoPrivacy()):
        with pytest.raises(ldp.ParameterError):
            ldp.privatize(LABELS, epsilon=0.7, bounds=(0, 5), mechanism=wrong)


@pytest.mark.filterwarnings("error::labeldp.errors.RepeatedReleaseWarning")
def test_releasing_the_same_labels_again_without_a_ledger_warns():
    labels = LABELS.copy()
    ldp.privatize(labels, epsilon=1.0, bounds=(0, 5))
    with pytest.warns(ldp.RepeatedReleaseWarning, match="released before"):
        ldp.privatize(labels, epsilon=1.0, bounds=(0, 5))
    ledger = ldp.Ledger()
    for _ in range(2):  # a ledger counts: no warning
        ldp.privatize(labels, epsilon=1.0, bounds=(0, 5), ledger=ledger)
    ldp.privatize(labels.copy(), epsilon=1.0, bounds=(0, 5))


@pytest.mark.filterwarnings("error::labeldp.errors.RepeatedReleaseWarning")
def test_estimating_a_prior_counts_as_a_release():
    labels, how = LABELS.copy(), {"epsilon": 1.0, "bounds": (0, 5)}
    for _ in range(2):  # a ledger counts: no warning
        ldp.estimate_prior(labels, ledger=ldp.Ledger(), **how)
    ldp.estimate_prior(labels, **how)
    with pytest.warns(ldp.RepeatedReleaseWarning, match="released before") as caught:
        ldp.estimate_prior(labels, trust="local", **how)
    assert caught[0].filename == __file__
    with pytest.warns(ldp.RepeatedReleaseWarning):
        ldp.privatize(labels, **how)


def test_the_summary_says_where_labels_are_clipped_and_how_loud_the_noise_is():
    release = ldp.privatize(LABELS, epsilon=0.5, bounds=(0, 50))
    low, high = release.mechanism.interval if hasattr(release.mechanism, "interval") else release.mechanism.bounds
    assert f"clipped to ({number(low)}, {number(high)})" in release.summary()
    assert "lie outside, by the private prior" in release.summary()
    assert "carries noise of about ±" in release.summary()
    told = ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 50), mechanism="rr-on-bins").summary()
    assert "biased by design" in told


def test_labels_in_another_unit_than_the_bounds_are_pointed_out():
    assert "check the unit" in ldp.privatize(1000 + LABELS, epsilon=2.0, bounds=(0, 5)).summary()
    assert "check the unit" not in ldp.privatize(LABELS, epsilon=2.0, bounds=(0, 5)).summary()


def test_a_release_card_that_was_changed_is_refused():
    card = ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5)).to_card()
    content = ldp.read_release_card(card)
    assert content["cost"] == {"epsilon": 1.0, "delta": 0.0}
    assert "label differential privacy with ε = 1:" in content["guarantee"]
    with pytest.raises(ldp.CardError):
        ldp.read_release_card(card.replace('"rows":4000', '"rows":4001'))


def test_a_release_pickles_without_its_ledger_in_memory():
    release = ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5))
    copy = pickle.loads(pickle.dumps(release))
    assert np.array_equal(copy.labels, release.labels)
    assert copy.mechanism == release.mechanism
    assert copy.ledger is None


def test_missing_bounds_are_asked_for_with_the_reason():
    for call in (ldp.privatize, ldp.estimate_prior):
        with pytest.raises(ldp.ParameterError, match="known without looking at the labels"):
            call(LABELS, epsilon=1.0)


def test_a_path_for_a_ledger_is_refused_with_the_way_out():
    with pytest.raises(ldp.ParameterError, match=r"Ledger\.open"):
        ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), ledger="budget.jsonl")


def test_a_budget_too_small_for_its_columns_says_so():
    with pytest.raises(ldp.ParameterError, match="5 columns"):
        ldp.privatize(np.ones((50, 5)), epsilon=0.004, bounds=[(0, 5)] * 5)


def test_a_handful_of_labels_costs_no_prior():
    release = ldp.privatize([1.0, 2.0, 3.0], epsilon=1.0, bounds=(0, 5))
    assert release.prior is None
    assert len(release.charges) == 1
