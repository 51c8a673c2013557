"""`privatize` held to an account of it in a plain loop over columns, and what it remembers of labels: nothing."""

import dataclasses
import gc
import pickle
import warnings

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.ledger import repetition
from labeldp.ledger.repetition import warn_if_seen
from labeldp.mechanisms.base import fingerprint
from labeldp.release import Release
from labeldp.release.arrays import private_prior
from labeldp.release.plan import Request

BOUNDS = ((0.0, 5.0), (-1.0, 4.0))
LABELS = np.random.default_rng(2).gamma(2.0, 0.8, (400, 2))
LABELS[:3] = [[1e308, -1e308], [-1e308, 1e308], [0.0, 5e-324]]
PRIORS = [ldp.Histogram([low, low + 1, high], [2, 1]) for low, high in BOUNDS]
ORDERS = {
    "as it comes": {},
    "part for the prior": {"epsilon_prior": 0.5, "mechanism": "rp"},
    "no prior": {"epsilon_prior": 0},
    "known priors": {"prior": PRIORS, "mechanism": "rp"},
    "window": {"zeta": 0.7},
    "counts": {"method": "counts", "mechanism": "rp"},
    "nobody trusted": {"trust": "local", "method": "laplace", "epsilon_prior": 0.5, "mechanism": "rp"},
    "delta": {"mechanism": "gaussian", "delta": 1e-4},
    "free of priors": {"mechanism": "two-point"},
}


def by_hand(columns, bounds, source, how):
    """Return labels, mechanisms and priors, column by column: first all priors, then all labels."""
    plan = Request(epsilon=4.0, bounds=bounds, rows_per_person=2, **how).plan(len(columns[0]))
    priors = tuple(private_prior(plan, column, source, k) for k, column in enumerate(columns))
    mechanisms = tuple(plan.design(prior, pair) for prior, pair in zip(priors, bounds, strict=True))
    out = [made.randomize(column, random_state=source) for made, column in zip(mechanisms, columns, strict=True)]
    return out, mechanisms, priors, plan


@pytest.mark.parametrize("how", ORDERS.values(), ids=ORDERS)
def test_a_release_is_what_its_account_says(how):
    ledger = ldp.Ledger()
    ledger.charge("earlier", epsilon=0.1)
    made = ldp.privatize(
        LABELS, epsilon=4.0, bounds=BOUNDS, ledger=ledger, rows_per_person=2, random_state=seeded(4), **how
    )
    out, mechanisms, priors, plan = by_hand(LABELS.T, BOUNDS, seeded(4), how)
    np.testing.assert_array_equal(made.labels, np.column_stack(out))
    assert (made.mechanisms, made.priors, made.bounds) == (mechanisms, priors, BOUNDS)
    assert (made.trust, made.secure, made.ledger) == (how.get("trust", "curator"), False, ledger)
    prints = [fingerprint(mechanism.channel) for mechanism in mechanisms]
    wanted = plan.charges()
    assert made.charges == ledger.charges[1:]
    for charge, asked, print_of in zip(made.charges, wanted, [*prints, None, None], strict=False):
        assert charge == dataclasses.replace(asked, when=charge.when, mechanism=print_of)
    assert len(made.charges) == len(wanted)
    assert ledger.charges[0].mechanism is None


@pytest.mark.parametrize("shape", [(400,), (400, 1)])
def test_one_column_is_released_in_its_shape(shape):
    for bounds in ((0, 5), [0.0, 5.0]):
        made = ldp.privatize(
            LABELS[:, 0].reshape(shape), epsilon=4.0, bounds=bounds, mechanism="rp", random_state=seeded(4)
        )
        out, mechanisms, priors, _ = by_hand(LABELS.T[:1], BOUNDS[:1], seeded(4), {"mechanism": "rp"})
        np.testing.assert_array_equal(made.labels, out[0].reshape(shape))
        assert (made.mechanism, made.prior) == (mechanisms[0], priors[0])
        assert [(c.what, c.rows_per_person) for c in made.charges] == [("labels", 1), ("prior (curator)", 1)]
        assert made.cost == ldp.Budget(4.0)


@pytest.mark.parametrize(
    "labels", [3.0, np.zeros((2, 2, 2)), np.zeros((2, 0)), np.zeros((0, 2)), [], [1.0, np.nan]], ids=np.shape
)
def test_labels_that_are_no_columns_are_refused_and_cost_nothing(labels):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.LabelError):
        ldp.privatize(labels, epsilon=1.0, bounds=(0, 5), ledger=ledger)
    assert ledger.charges == ()


def test_what_cannot_be_is_refused_before_it_is_paid_for():
    ledger = ldp.Ledger()
    for wrong in ({"trust": "all"}, {"method": "laplace"}, {"random_state": "x"}, {"rows_per_person": 0}):
        with pytest.raises(ldp.ParameterError):
            ldp.privatize(LABELS, epsilon=4.0, bounds=BOUNDS, mechanism="two-point", ledger=ledger, **wrong)
    with pytest.raises(ldp.ParameterError, match="zeta"):  # the design fails, and needs no label
        ldp.privatize(LABELS, epsilon=4.0, bounds=BOUNDS, zeta=1e-300, prior=PRIORS, ledger=ledger)
    assert ledger.charges == ()
    for wrong in ("ledger.jsonl", 3, ldp.Budget(1)):
        with pytest.raises(ldp.ParameterError, match=r"Ledger\.open"):
            ldp.privatize(LABELS, epsilon=4.0, bounds=BOUNDS, ledger=wrong)


def test_words_are_secure_unless_another_source_is_given():
    made = ldp.privatize(LABELS[:, 0], epsilon=1.0, bounds=(0, 5), mechanism="two-point")
    assert made.secure
    assert made.ledger.charges == made.charges
    assert made.terms.secure
    for source in (1, seeded(1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
            made = ldp.privatize(
                LABELS[:, 0], epsilon=1.0, bounds=(0, 5), mechanism="two-point", random_state=source
            )
        assert not made.secure
        assert not made.terms.secure


def test_a_release_travels_whole_but_for_a_ledger_in_memory(tmp_path):
    how = {"epsilon": 4.0, "bounds": BOUNDS, "mechanism": "rp"}
    made = ldp.privatize(LABELS, **how)
    sent = pickle.loads(pickle.dumps(made))
    assert sent.ledger is None
    for field in dataclasses.fields(Release):
        if field.name not in ("labels", "ledger"):
            assert getattr(sent, field.name) == getattr(made, field.name), field.name
    np.testing.assert_array_equal(sent.labels, made.labels)
    kept = ldp.privatize(LABELS, ledger=ldp.Ledger.open(tmp_path / "ledger"), **how)
    assert pickle.loads(pickle.dumps(kept)).ledger.charges == kept.charges


# ---- labels that were released before -----------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch):
    monkeypatch.setattr(repetition, "_seen", {})
    return repetition._seen


def warned(labels):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_seen(labels, stacklevel=2)
    assert all(one.category is ldp.RepeatedReleaseWarning for one in caught)
    return len(caught)


def test_the_same_labels_are_noticed_and_their_equals_are_not(seen):
    labels = np.ones(5)
    assert [warned(labels) for _ in range(3)] == [0, 1, 1]
    assert warned(labels.copy()) == 0
    listed = [1.0]
    assert [warned(listed) for _ in range(2)] == [0, 0]  # a list cannot be remembered without being kept


def test_labels_that_are_gone_are_forgotten_and_never_taken_for_others(seen):
    labels, others = np.ones(5), np.ones(5)
    for one in (labels, others):
        warned(one)
    assert set(seen) == {id(labels), id(others)}
    stale = seen[id(labels)]
    del labels, one
    gc.collect()
    assert stale() is None
    new = np.ones(5)
    seen[id(new)] = stale  # memory is used again: the same place, and other labels
    assert warned(new) == 0
    assert set(seen) == {id(others), id(new)}
    assert seen[id(new)]() is new
    assert warned(new) == 1


def test_a_second_release_warns_and_one_with_a_ledger_does_not(seen):
    labels, how = LABELS[:, 0].copy(), {"epsilon": 1.0, "bounds": (0, 5), "mechanism": "two-point"}
    ldp.privatize(labels, ledger=ldp.Ledger(), **how)
    assert seen == {}
    ldp.privatize(labels, **how)
    assert [other() is labels for other in seen.values()] == [True]
    with pytest.warns(ldp.RepeatedReleaseWarning, match="released before"):
        ldp.privatize(labels, **how)


def test_the_warning_points_at_whoever_releases_again(seen):
    labels = LABELS[:, 0].copy()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            ldp.privatize(labels, epsilon=1.0, bounds=(0, 5), mechanism="two-point")
    assert [one.filename for one in caught] == [__file__]
    assert len(seen) == 1
