"""Both regressors: each label once, everything charged, and what cannot work refused before anything is spent."""

import dataclasses
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

import labeldp as ldp
from helpers import seeded
from labeldp.learning import label_rounds, threads
from labeldp.learning.features import PIECE

RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 2))
Y = np.clip(2.5 + X[:, 0] + 0.3 * RNG.normal(size=300), 0, 5)
BOUNDS = (0.0, 5.0)
REGRESSORS = {"labels": ldp.LabelReleaseRegressor, "model": ldp.ModelReleaseRegressor}
SUMS, LABELS = 1.0, 8.0
"""Budgets at which a model of these rows is learnt from sums, or from labels."""

both = pytest.mark.parametrize("regressor", REGRESSORS.values(), ids=REGRESSORS)
each_way = pytest.mark.parametrize("epsilon", [SUMS, LABELS], ids=["sums", "labels"])


def label_model(estimator=None, **options):
    return ldp.LabelReleaseRegressor(estimator, **{"epsilon": 1.0, "bounds": BOUNDS, **options})


@pytest.mark.slow
@parametrize_with_checks([make(epsilon=1.0, bounds=(-1000.0, 1000.0)) for make in REGRESSORS.values()])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# ---- charges ----------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 7.3])
@pytest.mark.parametrize("rows_per_person", [1, 3])
def test_charges_sum_to_epsilon_exactly_and_stay_within_the_limit(regressor, epsilon, rows_per_person):
    total = rows_per_person * Fraction(repr(epsilon))
    ledger = ldp.Ledger(limit=ldp.Budget(total))
    model = regressor(epsilon=epsilon, bounds=BOUNDS, rows_per_person=rows_per_person, ledger=ledger).fit(X, Y)
    assert ledger.total.exact_epsilon == total
    assert model.charges_ == ledger.charges
    assert {charge.rows_per_person for charge in model.charges_} == {rows_per_person}
    with pytest.raises(ldp.BudgetError):
        clone(model).fit(X, Y)
    spent = sum(statistic.epsilon for statistic in model.terms_.statistics)
    labels = max((Fraction(repr(mechanism.epsilon)) for mechanism in model.mechanism_), default=Fraction(0))
    assert spent + labels <= Fraction(repr(epsilon)), "sums and labels cost no more than the charge, for each row"


WIDE = RNG.uniform(-1, 1, size=(6000, 4))
INTERACTION = 4 * np.sign(np.sin(9 * WIDE[:, 0]) * np.sin(9 * WIDE[:, 1]))


def test_labels_get_the_rest_of_epsilon_where_sums_explain_little():
    model, linear = (
        ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(-10, 10), random_state=seeded(1)).fit(WIDE, labels)
        for labels in (INTERACTION, 8 * WIDE[:, 0])
    )
    plan = model.request().plan(6000)
    labels, spent = model.mechanism_[0].epsilon, sum(one.epsilon for one in model.terms_.statistics)
    assert spent < plan.for_sums
    assert plan.for_labels < Fraction(repr(labels)) <= 1 - spent
    assert sum(one.epsilon for one in linear.terms_.statistics) == plan.for_sums


def test_sums_and_labels_of_one_charge_may_not_cost_more_than_it():
    model = ldp.ModelReleaseRegressor(epsilon=LABELS, bounds=BOUNDS).fit(X, Y)
    assert ldp.verify_card(model.to_card()).holds
    (charge,) = model.terms_.charges
    less = dataclasses.replace(charge, budget=ldp.Budget(LABELS - 0.001))
    forged = dataclasses.replace(model.terms_, charges=(less,)).to_card("labeldp.model", model="m")
    assert ldp.verify_card(forged).verdict == "not valid"
    *_, last = model.terms_.statistics
    note = f"{last}; {charge.mechanism[charge.mechanism.index('part 1') :]}"
    hidden = dataclasses.replace(charge, mechanism=note)
    terms = dataclasses.replace(model.terms_, charges=(hidden,), statistics=(last,))
    assert ldp.verify_card(terms.to_card("labeldp.model", model="m")).verdict == "cannot verify"


# ---- refused before anything is spent ---------------------------------------------------------------------

WILD = np.where(np.arange(300) % 3 == 0, 1e308, np.where(np.arange(300) % 3 == 1, -1e308, 5e-324))


BAD = {
    "the smaller first": {"bounds": (5, 0)},
    "change the unit": {"bounds": (0, 1e150)},
    "subtract a public offset": {"bounds": (1e15, 1e15 + 1)},
    "random_state": {"random_state": "x"},
    "epsilon": {"epsilon": 0.0},
    r"Ledger\.open": {"ledger": 3.0},
}


@both
@pytest.mark.parametrize("says", BAD)
def test_bad_parameters_of_both_cost_nothing(regressor, says):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.errors.ParameterError, match=says):
        regressor(**{"epsilon": 1.0, "bounds": BOUNDS, "ledger": ledger} | BAD[says]).fit(X, WILD)
    assert not ledger.charges


REFUSED = [
    *[({"rounds": rounds}, "rounds must be") for rounds in (0, 11, True, 1.5, None, "3", [1.0])],
    ({"rounds": 10, "rows": 54}, "needs 55 rows"),
    ({"trust": "me"}, "trust"),
    ({"epsilon": 0.001}, "too small to be split"),
    ({"estimator": Ridge}, "cannot learn"),
    ({"estimator": StandardScaler()}, "must have fit and predict"),
    ({"mechanism": ldp.Laplace(bounds=(0, 1), epsilon=1.0)}, "one of"),
    ({"mechanism": "gaussian"}, "mechanism"),
    ({"mechanism": "rr-on-bins"}, "unbiased label"),
    ({"mechanism": "none"}, "one of"),
]


@pytest.mark.parametrize(("bad", "error"), REFUSED, ids=lambda value: str(value)[:30])
def test_bad_parameters_of_a_release_cost_nothing_and_do_not_count_as_one(bad, error):
    rows = bad.get("rows", 300)
    bad, ledger, y = {name: value for name, value in bad.items() if name != "rows"}, ldp.Ledger(), Y.copy()
    for options in ({"ledger": ledger}, {}):
        with pytest.raises(ldp.errors.ParameterError, match=error):
            label_model(**options | bad).fit(X[:rows], y[:rows] if rows < 300 else y)
    assert not ledger.charges
    with warnings.catch_warnings():
        warnings.simplefilter("error", ldp.errors.RepeatedReleaseWarning)
        label_model(Ridge(), rounds=1).fit(X, y)


@both
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_and_weights_are_refused_at_no_cost(regressor, bad):
    features, ledger = X.copy(), ldp.Ledger()
    features[7, 1] = bad
    for table in (features, sparse.csr_array(features)):
        with pytest.raises(ldp.errors.DataError, match=r"X contains NaN or infinity: .*fit to a data frame"):
            regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(table, Y)
    with pytest.raises(ldp.errors.ParameterError, match="weights"):
        regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(X, Y, sample_weight=np.ones(300))
    assert not ledger.charges
    with pytest.raises(ldp.errors.DataError, match="fit to a data frame"):
        regressor(epsilon=1.0, bounds=BOUNDS).fit(X, Y).predict(features)


@both
def test_a_parameter_of_the_regressor_given_to_its_fit_is_named_with_the_place_for_it(regressor):
    ledger = ldp.Ledger()
    private = regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    for name, value in {"epsilon": 2.0, "bounds": (0, 1)}.items():
        with pytest.raises(ldp.errors.ParameterError, match=rf"set_params\({name}=") as error:
            private.fit(X, Y, **{name: value})
        assert "weight" not in str(error.value)
    with pytest.raises(TypeError, match=r"segmet is not supported: .* takes segment, id"):
        private.fit(X, Y, segmet="May")
    assert not ledger.charges


@both
@pytest.mark.parametrize("labels", [WILD, np.full(300, 2.0)], ids=["wild", "constant"])
@each_way
def test_no_label_however_extreme_raises_or_warns(regressor, labels, epsilon):
    assert np.isfinite(regressor(epsilon=epsilon, bounds=BOUNDS).fit(X, labels).predict(X)).all()


# ---- each row once ----------------------------------------------------------------------------------------


SIZES = [("auto", 199, [199]), ("auto", 200, [40, 60, 100]), (np.int64(2), 9, [3, 6]), (10, 55, [*range(1, 11)])]


@pytest.mark.parametrize(("rounds", "rows", "sizes"), SIZES)
def test_every_row_is_released_once_in_rounds_of_the_sizes_that_were_asked_for(rounds, rows, sizes):
    release = label_model(Ridge(), rounds=rounds).fit(X[:rows], Y[:rows]).release_
    assert np.bincount(release.round).tolist() == sizes
    assert np.isfinite(release.labels).all()
    assert (release.part >= 0).all()
    assert ((release.low >= BOUNDS[0]) & (release.high <= BOUNDS[1]) & (release.low < release.high)).all()


BROKEN_ROUNDS = {
    "a round lost": lambda rows, earlier: rows[:0],
    "a row lost": lambda rows, earlier: rows[1:],
    "rows twice": lambda rows, earlier: np.repeat(rows[::2], 2),
    "rows of an earlier round": lambda rows, earlier: np.append(rows[1:], earlier[0]),
}


@both
@pytest.mark.parametrize("broken", BROKEN_ROUNDS.values(), ids=BROKEN_ROUNDS)
def test_rows_that_are_not_drawn_exactly_once_release_nothing(regressor, broken, monkeypatch):
    """Undrawn entries would show whatever was in memory before, and a row drawn twice costs twice."""
    round_rows = label_rounds.round_rows

    def broken_rows(ends, rows):
        *earlier, last = round_rows(ends, rows)
        return [*earlier, broken(last, earlier[0])]

    monkeypatch.setattr(label_rounds, "round_rows", broken_rows)
    model = regressor(epsilon=LABELS, bounds=BOUNDS)
    with pytest.raises(ldp.errors.PrivacyProofError, match="exactly once"):
        model.fit(X, Y)
    assert not hasattr(model, "release_")
    with pytest.raises(NotFittedError):
        model.to_card()


def test_private_labels_are_unbiased_and_as_noisy_as_they_say():
    """Twenty thousand draws: a false alarm beyond five standard errors in a million runs."""
    labels = np.random.default_rng(1).uniform(0.0, 5.0, 20_000)
    model = label_model(Ridge(), epsilon=8.0, rounds=1, mechanism="laplace", random_state=seeded(1))
    release = model.fit(np.zeros((20_000, 1)), labels).release_
    errors = release.labels - labels
    assert abs(errors.mean()) < 5 * np.sqrt(release.noise.mean() / 20_000)
    assert errors.var() == pytest.approx(release.noise.mean(), rel=0.05)


# ---- the model ----------------------------------------------------------------------------------------------


@both
@each_way
def test_the_seed_repeats_a_fit_and_the_labels_are_what_is_learnt_from(regressor, epsilon):
    predicted = [
        regressor(epsilon=epsilon, bounds=BOUNDS, random_state=seeded(2)).fit(X[:150], y[:150]).predict(X)
        for y in (Y, Y, 5 - Y)
    ]
    np.testing.assert_array_equal(predicted[0], predicted[1])
    assert np.corrcoef(predicted[0], predicted[2])[0, 1] < -0.5


@pytest.mark.parametrize(
    "model",
    [
        label_model(Ridge(), epsilon=4.0),
        label_model(epsilon=4.0, rounds=1),
        ldp.ModelReleaseRegressor(epsilon=SUMS, bounds=BOUNDS),
        ldp.ModelReleaseRegressor(epsilon=LABELS, bounds=BOUNDS),
    ],
)
def test_what_predicts_is_what_was_fitted_within_the_bounds_of_the_fit(model):
    pipe = make_pipeline(StandardScaler(), clone(model)).fit(X, Y)
    before = pipe.predict(100 * X)
    assert BOUNDS[0] <= before.min() <= before.max() <= BOUNDS[1]
    pipe[-1].set_params(bounds=(-99.0, 99.0))
    assert np.array_equal(pipe.predict(100 * X), before)
    assert hasattr(pipe[-1], "release_") == hasattr(model, "estimator"), "labels do not leave with a model"


@both
@pytest.mark.parametrize("rows", [1, 2, 3, 30])
def test_a_handful_of_rows_gives_a_finite_prediction_within_the_bounds(regressor, rows):
    for epsilon in (0.05, 8.0):
        predicted = regressor(epsilon=epsilon, bounds=BOUNDS).fit(X[:rows], Y[:rows]).predict(X[:5])
        assert ((predicted >= BOUNDS[0]) & (predicted <= BOUNDS[1])).all()


@pytest.mark.slow
def test_more_columns_than_rows_dense_or_sparse():
    topic = np.arange(190) % 2
    dense = 0.3 * RNG.normal(size=(190, 220)) + np.outer(topic - 0.5, RNG.normal(size=220))
    many = sparse.random(190, 5_000, density=1e-3, random_state=1, format="csr")
    many = sparse.hstack([many, sparse.csr_matrix(np.outer(topic, np.ones(50)))]).tocsr()
    y = 1.0 + 3.0 * topic
    for table in (dense, many):
        model = ldp.ModelReleaseRegressor(epsilon=6.0, bounds=BOUNDS, random_state=seeded(1)).fit(table, y)
        assert np.mean((model.predict(table) - y) ** 2) < 0.6 * y.var()


# ---- promises of both regressors -----------------------------------------------------------------------


@pytest.mark.slow
@both
def test_a_seeded_model_and_its_labels_say_that_they_are_not_private(regressor):
    for source in (None, seeded(1)):
        model = regressor(epsilon=0.5, bounds=BOUNDS, random_state=source).fit(X, Y)
        assert model.secure_ is (source is None)
        for each in (model, getattr(model, "release_", model)):
            for text in (each.summary(), each.to_card()):
                assert ("NOT PRIVATE" in text) is (source is not None)


def test_a_model_does_not_depend_on_the_number_of_threads(monkeypatch):
    table = np.random.default_rng(0).normal(size=(PIECE + 500, 2))
    predictions = []
    for workers, library_threads in ((1, 1), (3, 2)):
        monkeypatch.setattr(threads, "worker_count", lambda workers=workers: workers)
        with threadpool_limits(library_threads):
            model = ldp.ModelReleaseRegressor(epsilon=0.5, bounds=BOUNDS, random_state=seeded(1))
            predictions.append(model.fit(table, 2.5 + table[:, 0]).predict(table))
            assert {library["num_threads"] for library in threadpool_info()} == {library_threads}
    np.testing.assert_array_equal(*predictions)


@both
def test_strict_settings_of_numpy_lose_no_fit_that_is_paid_for(regressor):
    table = np.random.default_rng(0).normal(size=(600, 3))
    with np.errstate(all="raise"):
        model = regressor(epsilon=8.0, bounds=BOUNDS, random_state=seeded(1)).fit(table, 2.5 + table[:, 0])
    assert model.score(table, 2.5 + table[:, 0]) > 0.5
