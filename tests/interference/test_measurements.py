"""Measurements of `LabelAccess`: without noise, without a charge, or of something private, they are detected."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from interference import changes
from interference.harness import Way, assert_nothing_leaks, compared, overspending
from interference.replay import replaced
from labeldp.errors import PrivacyProofError
from labeldp.exact import SecureWords
from labeldp.learning import epsilon_split, label_queries, private_scores, sum_model
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import BinCounts, Cells

ROWS = 60
PAIR = [np.linspace(0, 5, ROWS), np.linspace(5, 4, ROWS)]
BOUNDS = changes.BOUNDS


def fitted(labels):
    X = np.random.default_rng(1).normal(size=(ROWS, 2))
    return ldp.ModelReleaseRegressor(epsilon=3.0, bounds=BOUNDS).fit(X, labels).predict(X)


def estimated(labels):
    return ldp.estimate_prior(labels, epsilon=1.0, bounds=BOUNDS).masses


def scored(labels):
    class Middle:
        def predict(self, X):
            return np.full(len(X), 2.0)

    return ldp.private_score(Middle(), np.zeros((ROWS, 1)), labels, epsilon=2.0, bounds=BOUNDS).rmse


def scored_in_groups(labels):
    class Middle:
        def predict(self, X):
            return np.full(len(X), 2.0)

    half = np.arange(ROWS) % 2
    shared = {"by": half, "epsilon": 4.0, "bounds": BOUNDS}
    scores = private_scores(Middle(), np.zeros((ROWS, 1)), labels, **shared)
    return [risk.rmse for risk in scores.values()]


def calibrated_in_groups(labels):
    class Middle:
        def predict(self, X):
            return np.full(len(X), 2.0)

    shared = {"by": np.arange(ROWS) % 2, "epsilon": 8.0, "bounds": BOUNDS, "coverage": 0.7}
    made = ldp.private_intervals(Middle(), np.zeros((ROWS, 1)), labels, **shared)
    return [group.half_width for group in made.groups.values()]


def regressed(labels):
    X = np.random.default_rng(1).normal(size=(ROWS, 1))
    return ldp.private_ols(X, labels, epsilon=4.0, bounds=BOUNDS).params


def released(labels):
    return ldp.privatize(labels, epsilon=8.0, bounds=BOUNDS).labels


WAYS = [fitted, estimated, scored, scored_in_groups, calibrated_in_groups, regressed, released]
each_way = pytest.mark.parametrize("act", WAYS, ids=lambda act: act.__name__)


@each_way
def test_measurements_with_noise_pass(act, tmp_path):
    assert_nothing_leaks(Way(act), *PAIR, tmp_path)
    assert not overspending(Way(act), *PAIR, tmp_path)


@each_way
def test_a_measurement_without_noise_is_detected(act, tmp_path):
    with replaced((LabelAccess, "_draw", lambda access, public_map, noise, exact: exact)):
        assert "value" in compared(Way(act), *PAIR, tmp_path)[1]


@each_way
def test_a_measurement_that_is_not_charged_is_detected(act, tmp_path):
    def allow(access, ledger, charges, scope=None, *, epsilon, for_labels=Fraction(0)):
        access.remaining += epsilon
        access.for_labels += for_labels

    with replaced((LabelAccess, "charge", allow)):
        assert overspending(Way(act), *PAIR, tmp_path)


def measured_twice(labels):
    """Return two measurements, each for all that was charged."""
    access = LabelAccess(labels, SecureWords())
    plan = ldp.release.Request(epsilon=1.0, bounds=BOUNDS).plan(ROWS)
    access.charge(ldp.Ledger(), plan.charges(), epsilon=Fraction(1))
    query = BinCounts.equal(Cells(BOUNDS, 4), 4, "counts")
    return [access.measure(query, Fraction(1)).values for _ in range(2)]


def test_a_budget_that_is_spent_twice_is_refused_and_detected_where_it_is_not(tmp_path):
    one = np.full(ROWS, 0.0)
    pair = one, np.append(one[1:], 6.0)
    with pytest.raises(PrivacyProofError, match="more than is left"):
        measured_twice(one)
    with replaced((LabelAccess, "_spend", lambda *_: None)):
        assert overspending(Way(measured_twice), *pair, tmp_path)


def test_a_measurement_of_something_private_is_detected(tmp_path):
    """Groups, predictions and intervals are compared, beside what is given out."""

    def raw_range(access, bounds):
        counts = access._add_up(Cells(bounds, label_queries.CELLS))
        return 0.0, float(1 - np.argmax(counts[::-1] > 0) / counts.size)

    few = [(epsilon_split, f"FEWEST_FOR_{name}", 0.0) for name in ("RANGE", "GROUPS")]
    with replaced(*few, (sum_model, "find_range", raw_range)):
        assert "calls" in compared(Way(fitted), PAIR[0], PAIR[0] / 2, tmp_path)[1]


def test_a_query_whose_integers_move_too_far_is_refused_before_labels_are_read():
    class Heavy(BinCounts):
        sensitivity = 3

    access = LabelAccess(np.zeros(5), SecureWords())
    access.charge(ldp.Ledger(), [], epsilon=Fraction(1))
    with pytest.raises(PrivacyProofError, match="moves them by 3"):
        access.measure(Heavy.equal(Cells((0.0, 1.0), 4), 4, "counts"), Fraction(1))
    assert access.remaining == 1


def test_labels_are_not_shown_copied_or_pickled():
    access = LabelAccess(np.full(5, 3.25), SecureWords())
    assert "3.25" not in repr(access)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="no cost"):
            copied(access)


def test_threads_spend_a_budget_once():
    """Sixteen threads ask for a quarter each: four get it."""
    access = LabelAccess(np.zeros(50), SecureWords())
    access.charge(ldp.Ledger(), [], epsilon=Fraction(1))
    query = BinCounts.equal(Cells((0.0, 1.0), 4), 4, "counts")

    def ask(_):
        try:
            return access.measure(query, Fraction(1, 4)).values.size
        except PrivacyProofError:
            return 0

    with ThreadPoolExecutor(16) as pool:
        assert sorted(pool.map(ask, range(16))) == [0] * 12 + [4] * 4
    assert access.remaining == 0
