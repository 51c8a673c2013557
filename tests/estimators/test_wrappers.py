"""What is around a private regressor and sees the labels themselves is named: no ε covers it."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    GradientBoostingRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    SequentialFeatureSelector,
    VarianceThreshold,
    f_regression,
)
from sklearn.impute import IterativeImputer
from sklearn.linear_model import Lasso, RANSACRegressor, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler, TargetEncoder

import labeldp as ldp

BOUNDS = (0.0, 5.0)
RNG = np.random.default_rng(4)
X = RNG.normal(size=(50, 4))
Y = RNG.uniform(0, 5, 50)


@pytest.fixture(params=[ldp.LabelReleaseRegressor, ldp.ModelReleaseRegressor])
def private(request):
    return request.param(epsilon=1.0, bounds=BOUNDS)


def warned(estimator, y=Y, fit=None):
    """Return what a fit warns of, by the kind of warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (fit or (lambda: estimator.fit(X, y)))()
    texts = {}
    for one in caught:
        texts[one.category] = texts.get(one.category, "") + f"{one.message}\n"
    return texts


class AdaBoostOnce(AdaBoostRegressor):
    """One of a module of its own, as people write them."""


class Undeclared(TransformerMixin, BaseEstimator):
    """A transformer that scikit-learn's tags say nothing about."""

    def fit(self, X, y):
        return self

    def transform(self, X):
        return X


def no_importance(model):
    """Return the same importance for each column that a model was fitted to."""
    return np.ones(model[-1].n_features_in_)


def best_weights(search):
    return search.best_estimator_.coef_


def scores(*both):
    return np.abs(both[0].T @ both[1])


BEST = SelectKBest(f_regression, k=1)
STEPS = {
    "SelectKBest": BEST,
    "SelectPercentile": SelectPercentile(scores),
    "SelectFromModel": SelectFromModel(
        GridSearchCV(Lasso(), {"alpha": [0.01]}, cv=2), importance_getter=best_weights
    ),
    "RFE": RFE(Ridge()),
    "SequentialFeatureSelector": SequentialFeatureSelector(Ridge(), cv=2),
    "TargetEncoder": TargetEncoder(target_type="continuous"),
    "GridSearchCV": GridSearchCV(PLSRegression(1), {"scale": [True]}, cv=2),
    "Undeclared": Undeclared(),
    "ColumnTransformer": ColumnTransformer([("a", Pipeline([("b", BEST), ("c", PCA(1))]), [0, 1])]),
    "FeatureUnion": FeatureUnion([("a", "passthrough"), ("b", BEST)]),
}
SEES_LABELS = {
    **{name: lambda model, step=step: make_pipeline(step, model) for name, step in STEPS.items()},
    "SelectKBest ": lambda model: make_pipeline(BEST, GridSearchCV(model, {"verbose": [False]}, cv=2)),
    "TransformedTargetRegressor": lambda model: TransformedTargetRegressor(
        model, transformer=MinMaxScaler((0, 5))
    ),
    "TransformedTargetRegressor ": lambda model: TransformedTargetRegressor(
        model, func=np.sqrt, inverse_func=np.square
    ),
    "stacking": lambda model: StackingRegressor([("a", model), ("b", Ridge())], cv=2),
    "stacking ": lambda model: StackingRegressor([("b", Ridge())], model, cv=2),
    "AdaBoost": lambda model: AdaBoostRegressor(model, n_estimators=2, random_state=0),
    "AdaBoost ": lambda model: AdaBoostOnce(model, n_estimators=2, random_state=0),
    "boosting": lambda model: GradientBoostingRegressor(init=model, n_estimators=2),
    "RFECV": lambda model: RFECV(make_pipeline(model), importance_getter=no_importance, cv=2),
    "RANSAC": lambda model: RANSACRegressor(
        make_pipeline(model), max_trials=2, min_samples=25, residual_threshold=9.0, random_state=0
    ),
}
"""Ways around a regressor by a word of the warning; a space tells two of one name apart."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEES_LABELS)
def test_a_wrapper_that_sees_labels_is_named_and_said_to_have_no_epsilon(name, private):
    text = warned(SEES_LABELS[name](private))[ldp.RawLabelWarning]
    assert name.strip() in text
    assert "no epsilon at all" in text
    assert "privatize" in text, "it says what to do"


def test_every_fit_inside_a_stack_warns_of_both(private):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        StackingRegressor([("a", private), ("b", Ridge())], cv=3).fit(X, Y)
    kinds = [one.category for one in caught]
    assert kinds.count(ldp.RawLabelWarning) == kinds.count(ldp.RepeatedReleaseWarning) == 4


def test_the_warning_points_at_whoever_calls_the_fit(private):
    class Mine(Pipeline):
        def fit(self, X, y):
            self.steps[-1][1].fit(X, y)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Mine([("a", SelectKBest(f_regression)), ("b", private)]).fit(X, Y)
    assert [(one.category, one.filename) for one in caught if one.category is ldp.RawLabelWarning] == [
        (ldp.RawLabelWarning, __file__)
    ]


@pytest.mark.parametrize("inside", [False, True], ids=["around", "in a step"])
def test_a_cache_of_a_pipeline_is_named_for_it_writes_labels_to_disk(private, inside, tmp_path):
    scale, folder = ("scale", StandardScaler()), str(tmp_path)
    if inside:
        scale = ("scale", ColumnTransformer([("some", Pipeline([scale, ("pca", PCA(1))], memory=folder), [0, 1])]))
    cached = Pipeline([scale, ("model", private)], memory=None if inside else folder)
    assert "cache folder" in warned(cached)[ldp.RawLabelWarning]
    assert any(str(Y[0])[:8] in file.read_text() for file in tmp_path.rglob("metadata.json")), "it does write them"


def test_a_stack_in_threads_is_named_as_it_is_without(private):
    stack = StackingRegressor([("a", private), ("b", Ridge())], cv=2, n_jobs=2)
    with joblib.parallel_config("threading"):
        assert "stacking" in warned(stack)[ldp.RawLabelWarning]


def test_a_fit_in_a_thread_is_not_warned_about_a_stack_in_another(private):
    class Around(RegressorMixin, BaseEstimator):
        """A member of a stack, during whose fit somebody else fits a private regressor in a thread."""

        def fit(self, X, y):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(private.fit, X, y).result()
            return self

        def predict(self, X):
            return np.zeros(len(X))

    assert ldp.RawLabelWarning not in warned(StackingRegressor([("a", Around())], Ridge(), cv=2))


def test_a_chain_makes_features_of_labels(private):
    chain = RegressorChain(private)
    assert "chain" in warned(chain, np.column_stack([Y, Y]))[ldp.RawLabelWarning]


class Odd:
    """Not an estimator, but it has a fit."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X

    def __sklearn_tags__(self):
        raise RuntimeError


PUBLIC = SequentialFeatureSelector(KMeans(2, n_init=1), n_features_to_select=2, cv=2)
SEES_NOTHING = {
    "alone": lambda model: model,
    "unsupervised steps": lambda model: make_pipeline(StandardScaler(), VarianceThreshold(), PCA(2), model),
    "a search without labels": lambda model: make_pipeline(GridSearchCV(PCA(1), {"whiten": [True]}, cv=2), model),
    "an imputer with a model of columns": lambda model: make_pipeline(
        IterativeImputer(Ridge(), max_iter=2), model
    ),
    "a selection by clusters": lambda model: make_pipeline(PUBLIC, model),
    "an odd step": lambda model: Pipeline([("odd", Odd()), ("model", model)]),
    "columns": lambda model: make_pipeline(
        ColumnTransformer([("a", StandardScaler(), [0])]), "passthrough", model
    ),
    "a union": lambda model: make_pipeline(FeatureUnion([("a", PCA(1)), ("b", FunctionTransformer())]), model),
    "a selector on private labels": lambda model: ldp.LabelReleaseRegressor(
        make_pipeline(SelectKBest(f_regression, k=2), Ridge()), epsilon=1.0, bounds=BOUNDS, rounds=1
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrap", SEES_NOTHING.values(), ids=SEES_NOTHING)
def test_what_sees_no_label_is_not_warned_about(wrap, private):
    assert ldp.RawLabelWarning not in warned(wrap(private))


@pytest.mark.parametrize(
    "repeat",
    [
        lambda model: cross_val_score(model, X, Y, cv=2),
        lambda model: GridSearchCV(model, {"verbose": [False]}, cv=2).fit(X, Y),
        lambda model: BaggingRegressor(model, n_estimators=2).fit(X, Y),
        lambda model: VotingRegressor([("a", model), ("b", Ridge())]).fit(X, Y),
        lambda model: RFE(make_pipeline(model), importance_getter=no_importance).fit(X, Y),
        lambda model: MultiOutputRegressor(model).fit(X, np.column_stack([Y, Y])),
        lambda model: RegressorChain(model).fit(X, np.column_stack([Y, Y])),
    ],
    ids=["cross-validation", "search", "bagging", "voting", "elimination", "columns of labels", "a chain"],
)
def test_whatever_fits_again_and_again_is_warned_about_and_what_it_does_with_labels(repeat, private):
    text = warned(None, fit=lambda: repeat(private))[ldp.RepeatedReleaseWarning]
    assert "costs epsilon again" in text
    assert "no epsilon at all" in text


@pytest.mark.parametrize(
    ("ensemble", "replaces"),
    [
        (lambda model: BaggingRegressor(model, n_estimators=2), True),
        (lambda model: BaggingRegressor(model, n_estimators=2, bootstrap=False), False),
        (lambda model: AdaBoostRegressor(model, n_estimators=2), True),
        (lambda model: VotingRegressor([("a", model)]), False),
    ],
    ids=["bagging", "bagging without replacement", "AdaBoost", "voting"],
)
def test_rows_that_an_ensemble_draws_several_times_are_warned_about(ensemble, replaces, private):
    text = warned(ensemble(make_pipeline(private)))[ldp.RepeatedReleaseWarning]
    assert ("drawn with replacement" in text) is replaces
    assert ("rows_per_person" in text) is replaces, "it says what to do"


def test_the_warning_contains_no_label_and_is_the_same_whatever_they_are(private):
    texts = {
        warned(make_pipeline(SelectKBest(f_regression, k=2), private), y)[ldp.RawLabelWarning] for y in (Y, 5 - Y)
    }
    assert len(texts) == 1
