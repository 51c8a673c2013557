"""Both regressors and their ledgers: copies share one, pickles pay for nothing, repeats are warned of."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labeldp as ldp

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 4))
Y = np.clip(2.5 + X[:, 0] + 0.3 * RNG.normal(size=400), 0, 5)
BOUNDS = (0.0, 5.0)

both = pytest.mark.parametrize("regressor", [ldp.LabelReleaseRegressor, ldp.ModelReleaseRegressor])


def test_fits_of_one_estimator_add_up_and_are_warned_about():
    model = ldp.LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1)
    y = Y.copy()
    model.fit(X, y)
    with pytest.warns(ldp.errors.RepeatedReleaseWarning, match="released before"):
        model.fit(X, y)
    assert model.ledger_.total == ldp.Budget(2.0)
    assert sum(charge.budget.epsilon for charge in model.charges_) == 1.0


def test_cross_validation_is_stopped_by_a_ledger():
    ledger = ldp.Ledger(limit=ldp.Budget(2.0))
    model = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, rounds=1, ledger=ledger)
    with pytest.raises(ldp.BudgetError):
        cross_val_score(model, X, Y, cv=5, error_score="raise")
    assert ledger.total == ldp.Budget(2.0)


def test_cross_validation_without_a_ledger_is_warned_about_in_its_first_fit():
    model = ldp.LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1)
    with warnings.catch_warnings(record=True, action="always") as caught:
        cross_val_score(model, X, Y, cv=2)
    costs = [one for one in caught if one.category is ldp.errors.RepeatedReleaseWarning]
    assert ["cross-validation releases" in str(one.message) for one in costs] == [True, True]


def pickled(model):
    return pickle.loads(pickle.dumps(model))


COPIES = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "clone": clone,
    "in a pipeline": lambda model: clone(copy.deepcopy(make_pipeline(StandardScaler(), model)))[-1],
}


@pytest.mark.parametrize("way", COPIES)
@both
def test_a_copy_spends_from_the_same_ledger(regressor, way):
    ledger = ldp.Ledger(limit=ldp.Budget(1.0))
    model = regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    other = COPIES[way](model)
    assert other.ledger is ledger
    other.fit(X[:40], Y[:40])
    for one in (model, other, clone(other)):
        with pytest.raises(ldp.BudgetError):
            one.fit(X[:40], Y[:40])
    assert ledger.total == ldp.Budget(1.0)


@pytest.mark.parametrize("spent", [0.0, 1.0])
@both
def test_a_pickle_of_a_ledger_in_memory_tells_what_was_spent_and_pays_for_nothing(regressor, spent):
    ledger = ldp.Ledger(limit=ldp.Budget(3.0))
    model = regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    if spent:
        model.fit(X[:40], Y[:40])
    for there in (pickled(model), pickled(pickled(model)), clone(copy.deepcopy(pickled(model)))):
        assert there.ledger.limit == ldp.Budget(3.0)
        assert there.ledger.total == ledger.total == ldp.Budget(spent)
        with pytest.raises(ldp.errors.LedgerError, match=r"copy of a ledger.*set_params"):
            there.fit(X[:40], Y[:40])
        assert there.set_params(ledger=ldp.Ledger()).fit(X[:40], Y[:40]).ledger_.total == ldp.Budget(1.0)
    if spent:
        there = pickled(model)
        assert np.array_equal(there.predict(X[:5]), model.predict(X[:5])), "it predicts wherever it travels"
        assert there.to_card() == model.to_card()
        with pytest.raises(ldp.errors.LedgerError, match="copy of a ledger"):
            there.set_params(ledger=None).fit(X[:40], Y[:40])  # its limit is not lost by leaving it out


@both
def test_a_model_without_a_ledger_of_its_users_may_be_fitted_where_it_travels(regressor):
    model = regressor(epsilon=1.0, bounds=BOUNDS).fit(X[:40], Y[:40])
    there = pickled(model)
    assert there.ledger_.total == ldp.Budget(1.0)
    assert there.fit(X[:40], Y[:40]).ledger_.total == model.ledger_.total == ldp.Budget(1.0)
