"""ModelReleaseRegressor: the labels stay; sums or labels behind the model are charged, and noted in the ledger."""

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import labeldp as ldp
from helpers import seeded
from labeldp.estimators import ModelReleaseRegressor, learner
from labeldp.estimators import model_regressor as room
from labeldp.noise import DiscreteLaplace, LatticeNorm

RNG = np.random.default_rng(3)
X = RNG.normal(size=(260, 2))
Y = np.clip(2.5 + X[:, 0] + 0.3 * RNG.normal(size=260), 0, 5)
BOUNDS = (0.0, 5.0)
EPSILONS = {"sums": 1.0, "labels": 8.0}
"""A model is learnt from sums up to 4,000 rows · ε²."""

each_way = pytest.mark.parametrize("epsilon", EPSILONS.values(), ids=EPSILONS)


@pytest.fixture(autouse=True)
def without_trees(monkeypatch):
    """Trees take long."""
    monkeypatch.setattr(learner, "_WORTH", 1e9)


@pytest.mark.slow
@parametrize_with_checks([ModelReleaseRegressor(epsilon=8.0, bounds=(-1000.0, 1000.0))])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 8.0])
def test_charges_sum_to_epsilon_exactly_and_stay_within_the_limit(epsilon):
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon))
    model = ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, ledger=ledger).fit(X, Y)
    assert ledger.total.exact_epsilon == Fraction(repr(epsilon))
    assert model.charges_ == ledger.charges
    with pytest.raises(ldp.BudgetError):
        ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, ledger=ledger).fit(X, Y)


def test_a_fit_from_sums_notes_the_noise_of_each_stage():
    model = ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, random_state=seeded(1)).fit(X, Y)
    assert [charge.what for charge in model.charges_] == ["rough sums", "sums"]
    assert {charge.purpose for charge in model.charges_} == {"sums"}
    assert [charge.mechanism for charge in model.ledger_.charges] == [str(noise) for noise in model.mechanism_]
    assert all(isinstance(noise, DiscreteLaplace | LatticeNorm) for noise in model.mechanism_)
    assert (model.terms_.rows, model.secure_) == (260, False)


def test_a_fit_from_labels_notes_the_mechanism_of_each_round():
    model = ModelReleaseRegressor(epsilon=8.0, bounds=BOUNDS, random_state=seeded(1)).fit(X, Y)
    assert [charge.purpose for charge in model.charges_] == ["labels", "mean"]
    assert model.ledger_.charges[0].mechanism.count("sha256") == len(model.mechanism_) == 3
    labels = model.charges_[0].budget.exact_epsilon
    assert all(Fraction(repr(mechanism.epsilon)) <= labels for mechanism in model.mechanism_)
    assert np.mean((model.predict(X) - Y) ** 2) < 0.5 * Y.var()


@each_way
def test_a_person_with_three_rows_is_charged_three_times(epsilon):
    model = ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, rows_per_person=3).fit(X, Y)
    assert model.ledger_.total.exact_epsilon == 3 * Fraction(repr(epsilon))
    assert {charge.rows_per_person for charge in model.charges_} == {3}
    assert model.secure_


def test_a_cluster_that_has_a_sample_only_learns_from_labels(monkeypatch):
    monkeypatch.setattr(room.RowsHere, "all_here", False)
    model = ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, Y)
    assert model.charges_[0].purpose == "labels"


@each_way
@pytest.mark.parametrize("bad", [{"delta": -1e-9}, {"delta": 1.0}, {"bounds": (5, 0)}, {"random_state": "x"}])
def test_what_is_wrong_is_refused_before_anything_is_charged(epsilon, bad):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.ParameterError):
        ModelReleaseRegressor(**{"epsilon": epsilon, "bounds": BOUNDS, "ledger": ledger} | bad).fit(X, Y)
    assert not ledger.charges


@each_way
def test_the_seed_repeats_a_fit_and_the_labels_are_what_is_learnt_from(epsilon):
    fits = [
        ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, random_state=seeded(2)).fit(X, y)
        for y in (Y, Y, 5 - Y)
    ]
    predicted = [fit.predict(X) for fit in fits]
    np.testing.assert_array_equal(predicted[0], predicted[1])
    assert np.corrcoef(predicted[0], predicted[2])[0, 1] < -0.5


@each_way
def test_predictions_stay_within_the_bounds_of_the_fit_and_the_model_pickles_without_labels(epsilon):
    model = ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS).fit(X, Y)
    far = model.set_params(bounds=(-99.0, 99.0)).predict(100 * X)
    assert BOUNDS[0] <= far.min() <= far.max() <= BOUNDS[1]
    data = pickle.dumps(model)
    assert np.array_equal(pickle.loads(data).predict(X), model.predict(X))
    assert not any(Y[i : i + 4].tobytes() in data for i in range(0, 260, 10))
    assert not hasattr(model, "release_"), "labels do not leave"


@each_way
def test_what_is_saved_predicts_as_the_model_does(epsilon):
    model = ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS).fit(X, Y)
    public, blend = model.public_model()
    predicted = blend.predict(room.FeatureTable(public, X), np.arange(len(X)))
    np.testing.assert_allclose(predicted, model.predict(X), rtol=1e-12)
