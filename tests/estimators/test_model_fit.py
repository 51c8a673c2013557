"""`ModelReleaseRegressor.fit` step by step: sums or labels, what is charged and noted, and what predicts."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.estimators import learner
from labeldp.estimators import model_regressor as room
from labeldp.estimators.label_statistics import LabelBudget
from labeldp.estimators.model_regressor import ModelReleaseRegressor, _few
from labeldp.estimators.sums import SumBudget
from labeldp.noise import DiscreteLaplace, LatticeNorm

X = np.random.default_rng(1).normal(size=(260, 2))
Y = np.clip(2.5 + X[:, 0], 0, 5)
BOUNDS = (0.0, 5.0)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Trees take long."""
    monkeypatch.setattr(learner, "_WORTH", 1e9)


def test_sums_serve_up_to_four_thousand_rows_at_epsilon_one():
    assert _few(3999, 1.0)
    assert not _few(4000, 1.0)
    assert _few(999, 2.0)
    assert not _few(1000, 2.0)


def test_a_fit_from_sums_charges_for_each_stage_and_notes_its_noise():
    ledger = ldp.Ledger()
    model = ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger, random_state=seeded(1)).fit(X, Y)
    budget = SumBudget.plan(Fraction(1), 260)
    assert [charge.what for charge in ledger.charges] == ["rough sums", "sums"]
    assert [charge.budget.exact_epsilon for charge in ledger.charges] == [budget.rough, budget.fine]
    assert [charge.mechanism for charge in ledger.charges] == [str(noise) for noise in model.mechanism_]
    assert all(isinstance(noise, DiscreteLaplace | LatticeNorm) for noise in model.mechanism_)
    assert model.charges_ == ledger.charges
    assert model.rows_ == 260
    assert not model.secure_


def test_a_fit_from_labels_charges_for_mean_prior_and_labels_and_notes_each_round():
    ledger = ldp.Ledger()
    model = ModelReleaseRegressor(epsilon=8.0, bounds=BOUNDS, ledger=ledger, random_state=seeded(1)).fit(X, Y)
    spectrum = room.FeatureTable(model._public, X).spectrum()
    budget = LabelBudget.plan(Fraction(8), 260, spectrum, "curator")
    assert {charge.what: charge.budget for charge in ledger.charges} == budget.parts()
    assert {charge.what: charge.mechanism for charge in ledger.charges} == budget.mechanisms(model.mechanism_)
    assert len(model.mechanism_) == 3, "a mechanism a round"
    assert all(isinstance(each, ldp.Mechanism) for each in model.mechanism_)
    assert model.rows_ == 260
    assert not model.secure_
    assert np.mean((model.predict(X) - Y) ** 2) < 0.5 * Y.var()


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_person_with_three_rows_is_charged_three_times(epsilon):
    model = ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, rows_per_person=3).fit(X, Y)
    assert model.ledger_.total.exact_epsilon == 3 * Fraction(repr(epsilon))
    assert {charge.rows_per_person for charge in model.charges_} == {3}
    assert model.secure_


def test_a_cluster_that_has_a_sample_only_learns_from_labels(monkeypatch):
    monkeypatch.setattr(room.RowsHere, "all_here", False)
    model = ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, Y)
    assert model.charges_[0].what == "labels"


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("bad", [{"delta": -1e-9}, {"delta": 1.0}, {"bounds": (5, 0)}, {"random_state": "x"}])
def test_what_is_wrong_is_refused_before_anything_is_charged(epsilon, bad):
    ledger = ldp.Ledger()
    model = ModelReleaseRegressor(**{"epsilon": epsilon, "bounds": BOUNDS, "ledger": ledger} | bad)
    with pytest.raises(ldp.ParameterError):
        model.fit(X, Y)
    assert not ledger.charges


def test_the_seed_repeats_a_fit_and_the_labels_are_what_is_learnt_from():
    for epsilon in (1.0, 8.0):
        how = {"epsilon": epsilon, "bounds": BOUNDS}
        fits = [ModelReleaseRegressor(random_state=seeded(2), **how).fit(X, y) for y in (Y, Y, 5 - Y)]
        predicted = [fit.predict(X) for fit in fits]
        np.testing.assert_array_equal(predicted[0], predicted[1])
        assert np.corrcoef(predicted[0], predicted[2])[0, 1] < -0.5


def test_predictions_are_the_models_clipped_to_the_bounds_of_the_fit():
    model = ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, random_state=seeded(3)).fit(X, Y)
    far = 20 * X
    features = model._public.transform(far)
    plain = features @ model._model.weights + model._model.mean
    assert plain.min() < 0 or plain.max() > 5
    model.set_params(bounds=(-99.0, 99.0))
    np.testing.assert_allclose(model.predict(far), np.clip(plain, 0, 5), rtol=1e-5, atol=1e-5)


def test_every_step_is_told(monkeypatch):
    asked, told = [], []

    @contextmanager
    def steps(total, *, shown):
        asked.append((total, shown))
        yield told.append

    monkeypatch.setattr(room, "steps", steps)
    ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, Y)
    ModelReleaseRegressor(epsilon=8.0, bounds=BOUNDS, verbose=True).fit(X, Y)
    assert asked == [(5, False), (5, True)]
    assert told[:4] == ["public features", "rough sums", "sums of residuals", "model"]
    assert told[4:] == ["public features", "round 1 of 3", "round 2 of 3", "round 3 of 3", "model"]
