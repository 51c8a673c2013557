"""Both regressors: tables of odd shapes work or are refused before anything is spent."""

import numpy as np
import pytest
from scipy import sparse

import labeldp as ldp
from helpers import seeded
from labeldp.noise import DiscreteGaussian

RNG = np.random.default_rng(5)
REGRESSORS = [ldp.LabelReleaseRegressor, ldp.ModelReleaseRegressor]
BOUNDS = (0.0, 5.0)


def labels(rows):
    return RNG.uniform(0, 5, rows)


both = pytest.mark.parametrize("regressor", REGRESSORS)


@both
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused_at_no_cost(regressor, bad):
    X, ledger = RNG.normal(size=(50, 3)), ldp.Ledger()
    X[7, 1] = bad
    with pytest.raises(ValueError, match="X contains"):
        regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(X, labels(50))
    assert not ledger.charges


@both
@pytest.mark.parametrize("rows", [1, 2, 3, 30])
def test_a_handful_of_rows_gives_a_finite_prediction_within_the_bounds(regressor, rows):
    X = RNG.normal(size=(rows, 3))
    for epsilon in (0.05, 8.0):
        model = regressor(epsilon=epsilon, bounds=BOUNDS).fit(X, labels(rows))
        predicted = model.predict(RNG.normal(size=(5, 3)))
        assert ((predicted >= BOUNDS[0]) & (predicted <= BOUNDS[1])).all()
        assert model.ledger_.total == ldp.Budget(epsilon)


@pytest.mark.slow
@both
def test_constant_and_repeated_columns_do_no_harm(regressor):
    x = RNG.normal(size=1500)
    X = np.column_stack([x, np.full(1500, 7.0), x, np.zeros(1500)])
    y = np.clip(2.5 + x, 0, 5)
    model = regressor(epsilon=4.0, bounds=BOUNDS, random_state=seeded(1)).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.4 * y.var()
    only = regressor(epsilon=4.0, bounds=BOUNDS).fit(np.ones((300, 2)), labels(300))
    assert np.isfinite(only.predict(np.ones((2, 2)))).all()


@pytest.mark.slow
@both
def test_more_columns_than_rows_and_very_many_columns(regressor):
    signal = RNG.normal(size=190)
    X = 0.3 * RNG.normal(size=(190, 900)) + np.outer(signal, RNG.normal(size=900))
    y = np.clip(2.5 + signal, 0, 5)
    model = regressor(epsilon=6.0, bounds=BOUNDS, random_state=seeded(1)).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.6 * y.var()


@pytest.mark.slow
@both
def test_a_sparse_table_of_100_000_columns_works(regressor):
    X = sparse.random(190, 100_000, density=2e-4, random_state=1, format="csr")
    topic = np.arange(190) % 2
    X = sparse.hstack([X, sparse.csr_matrix(np.outer(topic, np.ones(50)))]).tocsr()
    y = 1.0 + 3.0 * topic
    model = regressor(epsilon=6.0, bounds=BOUNDS, random_state=seeded(1)).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.6 * y.var()
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :100])


@both
def test_progress_is_shown_when_asked_and_only_then(regressor, capsys):
    X, y = RNG.normal(size=(300, 2)), labels(300)
    regressor(epsilon=1.0, bounds=BOUNDS, verbose=True).fit(X, y)
    assert "public features" in capsys.readouterr().err
    regressor(epsilon=1.0, bounds=BOUNDS).fit(X, y)
    shown = capsys.readouterr()
    assert shown.err == shown.out == ""


@both
def test_a_ledger_must_be_one(regressor):
    with pytest.raises(ldp.ParameterError, match=r"Ledger\.open"):
        regressor(epsilon=1.0, bounds=BOUNDS, ledger=3.0).fit(RNG.normal(size=(30, 2)), labels(30))


@pytest.mark.parametrize("name", ["rp", "two-point", "unbiased", "laplace", "staircase"])
def test_labels_are_released_by_the_mechanism_that_was_asked_for(name):
    X = RNG.normal(size=(100, 2))
    y = np.clip(2.5 + X[:, 0], 0, 5)
    model = ldp.LabelReleaseRegressor(epsilon=3.0, bounds=BOUNDS, mechanism=name, rounds=2).fit(X, y)
    assert {m.name for m in model.release_.mechanisms} == {name}
    assert np.isfinite(model.predict(X)).all()


def test_a_mechanism_of_your_own_is_made_for_every_round_and_checked_before_anything_is_spent():
    X, y, ledger = RNG.normal(size=(250, 2)), labels(250), ldp.Ledger()

    def mine(prior, epsilon):
        return ldp.Laplace(bounds=(0, 1), epsilon=epsilon)

    model = ldp.LabelReleaseRegressor(epsilon=3.0, bounds=BOUNDS, mechanism=mine).fit(X, y)
    assert {type(m) for m in model.release_.mechanisms} == {ldp.Laplace}
    bad = {
        "keeps": lambda prior, epsilon: ldp.Laplace(bounds=(0, 1), epsilon=2 * epsilon),
        "beforehand": ldp.Laplace(bounds=(0, 1), epsilon=1.0),
        "delta": "gaussian",
    }
    for match, mechanism in bad.items():
        with pytest.raises(ldp.ParameterError, match=match):
            ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, mechanism=mechanism, ledger=ledger).fit(X, y)
    assert not ledger.charges


@pytest.mark.slow
def test_delta_is_charged_and_buys_gaussian_noise_where_that_is_less_and_only_there():
    X = RNG.normal(size=(12_000, 30))
    y = np.clip(2.5 + X.sum(axis=1) / 5, 0, 5)
    model = ldp.ModelReleaseRegressor(epsilon=0.4, delta=1e-3, bounds=BOUNDS).fit(X, y)
    assert any(isinstance(noise, DiscreteGaussian) for noise in model.mechanism_)
    assert model.ledger_.total == ldp.Budget(0.4, 1e-3)
    assert np.mean((model.predict(X) - y) ** 2) < 0.5 * y.var()
    X, y = X[:1000, :3], y[:1000]
    model = ldp.ModelReleaseRegressor(epsilon=0.4, delta=1e-9, bounds=BOUNDS).fit(X, y)
    assert not any(isinstance(noise, DiscreteGaussian) for noise in model.mechanism_)
    assert model.ledger_.total == ldp.Budget(0.4), "δ is not charged for nothing"
    for bad in (-1e-9, 1.0, float("nan")):
        with pytest.raises(ldp.ParameterError, match="delta"):
            ldp.ModelReleaseRegressor(epsilon=1.0, delta=bad, bounds=BOUNDS).fit(X, y)


def test_delta_at_large_budgets_is_not_spent_for_nothing():
    X, y = RNG.normal(size=(600, 3)), labels(600)
    model = ldp.ModelReleaseRegressor(epsilon=8.0, delta=1e-5, bounds=BOUNDS).fit(X, y)
    assert model.ledger_.total == ldp.Budget(8.0)
