"""An order for batches asks for what `privatize` is asked for, to the last field; and pays in the same order."""

import dataclasses

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.errors import DataError
from labeldp.priors.curator import FINE
from labeldp.release.plan import Request
from labeldp.release.stream import LabelCounts, LabelStream, prepare_counts

LABELS = np.random.default_rng(6).gamma(2.0, 0.8, 2000)
PRIOR = ldp.Histogram([0, 1, 2, 5], [3, 2, 1])
BOUNDS = (0.0, 5.0)
ORDERS = {
    "as it comes": {},
    "part for the prior": {"epsilon_prior": 0.25},
    "no prior": {"epsilon_prior": 0},
    "known prior": {"prior": PRIOR},
    "window": {"zeta": 0.7},
    "delta": {"mechanism": "gaussian", "delta": 1e-5},
    "people": {"rows_per_person": 3},
    "made already": {"mechanism": ldp.TwoPoint(bounds=(1, 4), epsilon=1.0)},
    "nobody trusted": {"trust": "local"},
    "nobody trusted, and a prior": {"trust": "local", "epsilon_prior": 0.5, "mechanism": "rp"},
    "nobody trusted, and none": {"trust": "local", "epsilon_prior": 0},
}


def timeless(charges):
    return [dataclasses.replace(charge, when="") for charge in charges]


@pytest.mark.parametrize("how", ORDERS.values(), ids=ORDERS)
def test_an_order_asks_for_what_privatize_is_asked_for(how):
    whole = ldp.privatize(LABELS, epsilon=1.0, bounds=BOUNDS, random_state=seeded(3), **how)
    batches = [LABELS[:0], LABELS, []]
    ledger = ldp.Ledger()
    ledger.charge("earlier", epsilon=0.1)
    order = Request(epsilon=1.0, bounds=(0, 5), **how)
    stream = LabelStream(lambda: batches, order, ledger=ledger, random_state=seeded(3))
    parts = [stream.release(batch) for batch in batches]
    assert [part.shape for part in parts] == [(0,), LABELS.shape, (0,)]
    np.testing.assert_array_equal(parts[1], whole.labels)
    terms, asked = stream.finish(), whole.terms
    for name in ("rows", "mechanisms", "priors", "bounds", "trust", "secure", "cost"):
        assert getattr(terms, name) == getattr(asked, name), name
    assert timeless(terms.charges) == timeless(asked.charges)
    assert ledger.charges[1:] == terms.charges
    assert stream.mechanism is terms.mechanisms[0]


def test_words_that_are_secure_are_told_and_others_are_told_too():
    for state, secure in ((None, True), (seeded(1), False)):
        stream = LabelStream(lambda: [LABELS], Request(epsilon=1.0, bounds=BOUNDS), random_state=state)
        assert stream.terms.secure is secure


def test_a_ledger_that_is_asked_for_is_asked_once_after_all_labels_are_counted():
    seen, ledger = [], ldp.Ledger()

    def batches():
        seen.append("labels")
        yield LABELS
        seen.append("end")

    LabelStream(batches, Request(epsilon=1.0, bounds=BOUNDS), ledger=lambda: (seen.append("ledger"), ledger)[1])
    assert seen == ["labels", "end", "ledger"]
    assert ledger.total == ldp.Budget(1.0)


def test_labels_that_nobody_may_see_are_not_counted_and_none_at_all_are_refused():
    ledger, counts = ldp.Ledger(), LabelCounts.of(LABELS, BOUNDS)

    def prepared(counts=counts, **how):
        request = Request(epsilon=1.0, bounds=BOUNDS, **how)
        return prepare_counts(request, counts, ledger=ledger, source=seeded(1), reports=lambda _: 1 // 0)

    with pytest.raises(ldp.LabelError, match="no labels"):
        prepared(LabelCounts.none(), trust="local")
    assert ledger.charges == ()
    assert prepared(trust="local", mechanism="two-point").priors == (None,)
    whole = ldp.privatize(LABELS, epsilon=1.0, bounds=BOUNDS, mechanism="rp", random_state=seeded(1))
    assert prepared(mechanism="rp").priors == whole.priors


def test_a_design_that_fails_before_any_label_is_needed_costs_nothing():
    ledger = ldp.Ledger()
    order = Request(epsilon=1.0, bounds=BOUNDS, zeta=1e-300, prior=PRIOR)
    with pytest.raises(ldp.ParameterError, match="zeta"):
        LabelStream(lambda: [LABELS], order, ledger=ledger)
    assert ledger.charges == ()


def test_counts_are_those_of_a_plain_loop():
    assert (LabelCounts.none().rows, LabelCounts.none().fine.tolist()) == (0, [0] * FINE)
    assert LabelCounts.none().fine.dtype == np.int64
    few = np.array([[-1.0, 0.0], [2.5, 9.0]])
    counted = LabelCounts.of(few, BOUNDS) + LabelCounts.of([5.0], BOUNDS) + LabelCounts.of([], BOUNDS)
    assert counted.rows == 5
    assert {k: n for k, n in enumerate(counted.fine.tolist()) if n} == {0: 2, FINE // 2: 1, FINE - 1: 2}
    assert repr(LabelCounts(12345, counted.fine)) == "<12,345 labels, counted>"


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": (1e9, 1e9 + 1e-3)},
        {"trust": "all", "epsilon_prior": 0},
        {"rows_per_person": 0},
        {"epsilon_prior": 2.0},
        {"prior": "gamma"},
        {"zeta": 0.5, "mechanism": "laplace"},
        {"delta": 1e-5},
        {"mechanism": "gaussian"},
        {"mechanism": ldp.TwoPoint(bounds=(1, 4), epsilon=2.0)},
    ],
    ids=str,
)
def test_an_order_that_privatize_would_refuse_is_refused_before_labels_are_read(wrong):
    with pytest.raises(ldp.ParameterError):
        Request(**{"epsilon": 1.0, "bounds": BOUNDS, **wrong})


def test_every_label_is_released_once_and_no_more():
    stream = LabelStream(lambda: [LABELS], Request(epsilon=1.0, bounds=BOUNDS, mechanism="two-point"))
    stream.release(LABELS[:-1])
    with pytest.raises(DataError, match="fewer"):
        stream.finish()
    stream.release(LABELS[-1:])
    assert stream.finish() is stream.terms
    with pytest.raises(DataError, match="more"):
        stream.release(LABELS[:1])
