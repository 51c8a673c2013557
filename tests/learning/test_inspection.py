"""What a private model shows of itself at no cost: that it is weak, and which columns matter."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, QuantileRegressor, Ridge, RidgeCV
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR

import labeldp as ldp
from helpers import seeded

WEAK = ldp.errors.WeakModelWarning
X = np.random.default_rng(0).normal(size=(1200, 3))
Y = np.clip(2.5 + X[:, 1], 0, 5)
REGRESSORS = {
    "model": ldp.ModelReleaseRegressor,
    "labels": ldp.LabelReleaseRegressor,
    "own": lambda **how: ldp.LabelReleaseRegressor(Ridge(), **how),
}


def model(kind="model", **how):
    return REGRESSORS[kind](**{"epsilon": 1.0, "bounds": (0, 5), "random_state": seeded(2), **how})


@pytest.mark.filterwarnings("always::labeldp.errors.WeakModelWarning")
@pytest.mark.parametrize("kind", REGRESSORS)
def test_a_fit_says_when_nearly_all_fitted_values_lie_at_a_bound(kind):
    for factor, bound in ((100, "5"), (-100, "0")):
        with pytest.warns(
            WEAK, match=f"lie at the bound {bound}: check that labels and bounds are in the same unit"
        ):
            weak = model(kind).fit(X, factor * Y)
        assert bound in weak.weakness_


FITS = {
    "fit": lambda private: private.fit(X, Y),
    "pipeline": lambda private: make_pipeline(private).fit(X, Y),
    "fit_and_score": lambda private: ldp.fit_and_score(private, X, Y, epsilon=5.0),
}


@pytest.mark.filterwarnings("always::labeldp.errors.WeakModelWarning")
@pytest.mark.parametrize("way", FITS)
def test_a_fit_says_at_the_line_of_its_user_when_an_estimator_learns_the_noise(way):
    forest = RandomForestRegressor(10, random_state=0)
    private = model("labels", epsilon=0.5, rounds=1, trust="local").set_params(estimator=forest)
    with pytest.warns(WEAK, match="RandomForestRegressor learns the noise.*min_samples_leaf=100") as caught:
        FITS[way](private)
    assert [one.filename for one in caught if one.category is WEAK] == [__file__]


NO_MEANS = {
    "HistGradientBoostingRegressor": HistGradientBoostingRegressor(loss="absolute_error"),
    "Pipeline": make_pipeline(QuantileRegressor()),
    "BaggingRegressor": BaggingRegressor(SVR()),
    "GridSearchCV": GridSearchCV(Ridge(), {"alpha": [1.0, 10.0]}, scoring="neg_median_absolute_error"),
    "RidgeCV": RidgeCV(scoring=make_scorer(mean_absolute_error, greater_is_better=False)),
}


@pytest.mark.parametrize("name", NO_MEANS)
def test_a_loss_that_is_no_mean_is_warned_about_before_the_charge(name):
    ledger = ldp.Ledger(limit=ldp.Budget(0.1))
    private = model("labels", epsilon=0.5, ledger=ledger).set_params(estimator=NO_MEANS[name])
    with (
        pytest.warns(WEAK, match=f"{name} minimises a loss that is no mean"),
        pytest.raises(ldp.errors.BudgetError),
    ):
        private.fit(X, Y)


@pytest.mark.filterwarnings("always::labeldp.errors.WeakModelWarning")
@pytest.mark.parametrize(("estimator", "epsilon"), [(SVR(C=100.0), 0.5), (SVR(), 0.1), (QuantileRegressor(), 0.1)])
def test_an_estimator_without_a_mean_gets_one_warning_and_no_second_diagnosis(estimator, epsilon, recwarn):
    """Medians of labels with much noise lie at a bound, which is no sign of labels in another unit."""
    fitted = model("labels", epsilon=epsilon).set_params(estimator=estimator).fit(X, Y)
    (warning,) = [str(one.message) for one in recwarn if one.category is WEAK]
    assert warning.startswith(f"{type(estimator).__name__} minimises")
    assert fitted.weakness_ is None


@pytest.mark.parametrize("classifier", [LogisticRegression(), make_pipeline(LogisticRegression())])
def test_a_classifier_is_refused_with_what_to_do_for_labels_0_and_1(classifier):
    ledger = ldp.Ledger()
    private = model("labels", ledger=ledger).set_params(estimator=classifier)
    with pytest.raises(ldp.errors.ParameterError, match=r"a regressor, got the classifier .*probability of 1"):
        private.fit(X, (Y > 2).astype(float))
    assert not ledger.charges


def test_a_loss_that_takes_no_label_outside_the_bounds_is_refused_before_the_charge():
    ledger = ldp.Ledger()
    private = model("labels", ledger=ledger).set_params(estimator=HistGradientBoostingRegressor(loss="poisson"))
    with pytest.raises(ldp.errors.ParameterError, match="outside the bounds"):
        private.fit(X, Y)
    assert not ledger.charges


@pytest.mark.filterwarnings("error::labeldp.errors.WeakModelWarning")
@pytest.mark.parametrize("kind", REGRESSORS)
def test_a_model_that_learned_something_is_not_called_weak(kind):
    assert model(kind).fit(X, Y).weakness_ is None


def test_importances_name_the_columns_that_matter_in_the_labels_unit_and_cost_nothing(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=np.where(X[:, 2] > 0, "York", "Bath"))
    fitted = model().fit(frame, Y + (X[:, 2] > 0))
    spent = fitted.ledger_.total
    found = fitted.importances(frame)
    assert set(found) == {*"abc", "town"}
    assert next(iter(found)) == "b"
    assert found["b"] == pytest.approx(np.sqrt(2), abs=0.4)  # of b and an independent copy of it
    assert max(found["a"], 0.1) < found["b"] / 3
    assert fitted.ledger_.total == spent
    ldp.save_model(fitted, tmp_path / "model")
    assert ldp.load_model(tmp_path / "model").importances(frame) == found
