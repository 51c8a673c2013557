"""private_risk: the true error, from private labels only, and never worse than it says."""

import warnings

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import labeldp as ldp
from helpers import seeded

RNG = np.random.default_rng(8)
ROWS = 6_000
X = RNG.normal(size=(ROWS, 3))
Y = np.clip(1.5 + X[:, 0] + 0.4 * RNG.normal(size=ROWS), 0, 5)
BOUNDS = (0.0, 5.0)
MODELS = {
    "good": Ridge().fit(X[:500], Y[:500]),
    "constant": DummyRegressor(strategy="constant", constant=3.0).fit(X, Y),
}


def truth(model, rows=slice(None)):
    return float(np.mean((model.predict(X[rows]) - Y[rows]) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rp", "laplace", "gaussian"])
def test_without_clipping_the_estimate_is_unbiased_and_its_error_is_what_it_says(name):
    """Over 25 releases the mean is within 5 of its deviations, and the deviation within half of what is said."""
    how = {"delta": 1e-6} if name == "gaussian" else {}
    first = ldp.privatize(Y, epsilon=2.0, bounds=BOUNDS, mechanism=name, epsilon_prior=0, **how)
    fixed = {"epsilon": 2.0, "bounds": BOUNDS, "mechanism": first.mechanism}  # proven once
    releases = [ldp.privatize(Y, random_state=seeded(k), **fixed) for k in range(25)]
    for model in MODELS.values():
        risks = [ldp.private_risk(model, X, release) for release in releases]
        assert {(risk.how, risk.hidden) for risk in risks} == {("unbiased", 0.0)}
        errors = np.array([risk.mse for risk in risks]) - truth(model)
        deviation = np.mean([risk.standard_error for risk in risks])
        assert abs(errors.mean()) < 5 * deviation / np.sqrt(25)
        assert 0.5 * deviation < np.sqrt(np.mean(errors**2)) < 1.5 * deviation


def test_an_estimate_that_forgot_the_noise_would_be_far_off():
    release = ldp.privatize(Y, epsilon=2.0, bounds=BOUNDS, mechanism="rp", epsilon_prior=0)
    risk = ldp.private_risk(MODELS["good"], X, release)
    naive = np.mean((MODELS["good"].predict(X) - release.debiased) ** 2)
    assert abs(risk.mse - truth(MODELS["good"])) < 6 * risk.standard_error < 0.2 * naive


@pytest.mark.parametrize("name", ["auto", "rp", "unbiased"])
def test_with_a_private_prior_it_is_right_within_what_it_says(name):
    for k in range(2):
        release = ldp.privatize(Y, epsilon=2.0, bounds=BOUNDS, mechanism=name, random_state=seeded(k))
        for model in MODELS.values():
            risk = ldp.private_risk(model, X, release)
            assert risk.how in ("prior", "unbiased")
            assert abs(risk.mse - truth(model)) < 6 * risk.standard_error + risk.hidden + 0.02 * Y.var()
            assert "prior" in risk.summary() or risk.how == "unbiased"


def test_it_is_refused_where_nothing_tells_the_spread_of_labels():
    release = ldp.privatize(Y, epsilon=2.0, bounds=BOUNDS, mechanism="two-point", epsilon_prior=0)
    with pytest.raises(ldp.NotUnbiasedError, match="middle"):
        ldp.private_risk(MODELS["good"], X, release)
    inside = ldp.RPWithPrior(interval=(1.0, 3.0), zeta=1.0, epsilon=2.0)
    clipped = ldp.privatize(Y, epsilon=2.0, bounds=BOUNDS, mechanism=inside)
    with pytest.raises(ldp.NotUnbiasedError, match="clipped"):
        ldp.private_risk(MODELS["good"], X, clipped)
    bins = ldp.privatize(Y, epsilon=2.0, bounds=BOUNDS, mechanism="rr-on-bins")
    with pytest.raises(ldp.NotUnbiasedError):
        ldp.private_risk(MODELS["good"], X, bins)


def test_rows_that_trained_a_model_are_left_out_by_naming_the_others():
    release = ldp.privatize(Y, epsilon=2.0, bounds=BOUNDS, mechanism="rp", epsilon_prior=0)
    others = np.arange(ROWS) >= 500
    risk = ldp.private_risk(MODELS["good"], X[others], release, rows=others)
    assert risk.rows == 5_500
    assert abs(risk.mse - truth(MODELS["good"], others)) < 6 * risk.standard_error
    for bad in ([], [0, 0], [-1], [ROWS], ["a"], np.ones(3, dtype=bool)):
        with pytest.raises(ldp.ParameterError, match="rows"):
            ldp.private_risk(MODELS["good"], X[:3], release, rows=bad)
    with pytest.raises(ldp.ParameterError, match="predicts"):
        ldp.private_risk(MODELS["good"], X[:3], release)
    with pytest.raises(ldp.ParameterError, match="privatize"):
        ldp.private_risk(MODELS["good"], X, release.labels)


@pytest.mark.parametrize(("own", "epsilon"), [(None, 2.0), (Ridge(), 4.0)])
def test_a_regressor_is_judged_on_its_own_release_by_rows_held_out_of_the_last_round(own, epsilon):
    how = {"mechanism": "rp", "random_state": seeded(1)}
    model = ldp.LabelReleaseRegressor(own, epsilon=epsilon, bounds=BOUNDS, **how).fit(X[:300], Y[:300])
    risk = ldp.private_risk(model, X[:300], model.release_)
    assert risk.rows == 150, "half of the rows are in the last round"
    error = truth(model, slice(300, None))
    assert abs(risk.mse - error) < 5 * risk.standard_error + risk.hidden + 0.1 * error
    assert model.ledger_.total == ldp.Budget(epsilon), "judging cost nothing"


def test_where_there_is_nothing_to_learn_a_regressor_does_not_look_better_than_it_is():
    """Noisy sums hold the labels that judge: on pure noise, six fits look no better than on fresh labels."""
    rows, gaps, doubts = 300, [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        noise, labels = rng.normal(size=(rows, 4)), np.clip(rng.normal(2.5, 0.8, rows), *BOUNDS)
        model = ldp.LabelReleaseRegressor(
            epsilon=8.0, bounds=BOUNDS, mechanism="rp", rounds=2, random_state=seeded(seed)
        ).fit(noise, labels)
        risk = ldp.private_risk(model, noise, model.release_)
        fresh = np.clip(rng.normal(2.5, 0.8, (50, rows)), *BOUNDS)
        gaps.append(risk.mse + risk.hidden - float(np.mean((fresh - model.predict(noise)) ** 2)))
        doubts.append(risk.standard_error)
    assert np.mean(gaps) > -3 * np.sqrt(np.mean(np.square(doubts)) / 6)


def test_labels_at_the_middle_and_at_both_ends_are_not_told_apart_so_nothing_is_claimed():
    """Two-point rows whose spread was not measured: any figure would be invented."""
    constant = DummyRegressor(strategy="constant", constant=2.5).fit(X, Y)
    for trust in ("local", "curator"):
        for labels in (np.full(300, 2.5), np.where(np.arange(300) % 2, 0.0, 5.0)):
            model = ldp.LabelReleaseRegressor(
                Ridge(), epsilon=0.5, bounds=BOUNDS, mechanism="two-point", rounds=1, trust=trust
            ).fit(X[:300], labels)
            with pytest.raises(ldp.NotUnbiasedError, match="middle"):
                ldp.private_risk(constant, X[:300], model.release_)


@pytest.mark.parametrize("mechanism", ["two-point", "auto"])
def test_another_model_is_judged_on_a_regressors_release_whichever_rows_are_chosen(mechanism):
    first = ldp.LabelReleaseRegressor(
        Ridge(), epsilon=9.0, bounds=BOUNDS, mechanism=mechanism, random_state=seeded(3)
    )
    release = first.fit(X[:2000], Y[:2000]).release_
    width = release.high - release.low
    for rows in (np.arange(2000), np.flatnonzero(width <= np.quantile(width, 0.5))):
        for model in MODELS.values():
            risk = ldp.private_risk(model, X[rows], release, rows=rows)
            assert risk.how == "assumed" or mechanism == "auto"
            slack = (0.05 if rows.size == 2000 else 0.3) * Y.var()  # a part need not have all labels' spread
            assert abs(risk.mse - truth(model, rows)) < 6 * risk.standard_error + risk.hidden + slack


def test_a_model_is_never_judged_by_the_labels_it_was_trained_on(tmp_path):
    model = ldp.LabelReleaseRegressor(
        DecisionTreeRegressor(random_state=0), epsilon=2.0, bounds=BOUNDS, rounds=1, mechanism="rp"
    ).fit(X[:2000], Y[:2000])
    model.release_.save(tmp_path / "release.npz")
    again = ldp.RowRelease.load(tmp_path / "release.npz")
    for release in (model.release_, again):
        risk = ldp.private_risk(model, X[:2000], release)
        assert abs(risk.mse - truth(model, slice(2000, None))) < 5 * risk.standard_error + risk.hidden
        with pytest.raises(ldp.ParameterError, match="very labels"):
            ldp.private_risk(model, X[:2000], release, rows=np.arange(2000))
        with pytest.raises(ldp.ParameterError, match="very labels"):
            ldp.private_risk(model, X[:100], release)


@pytest.mark.parametrize("source", [None, 3])
def test_an_estimate_made_with_a_seed_says_that_it_is_not_private(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        warnings.filterwarnings(
            "ignore", "the estimate is clearly below 0"
        )  # one secure noise in forty makes it so
        how = {"epsilon": 2.0, "bounds": BOUNDS, "random_state": source}
        release = ldp.privatize(Y[:500], mechanism="rp", epsilon_prior=0, **how)
        rows = ldp.LabelReleaseRegressor(Ridge(), mechanism="rp", rounds=1, **how).fit(X[:500], Y[:500]).release_
        found = [
            ldp.private_score(MODELS["good"], X[:500], Y[:500], **how),
            ldp.private_risk(MODELS["good"], X[:500], release),
            ldp.private_risk(MODELS["good"], X[:500], rows),
        ]
    for risk in found:
        assert risk.secure is (source is None)
        for text in (repr(risk), str(risk), risk.summary()):
            assert ("NOT PRIVATE" in text) is (source is not None)


def pipeline_model(**options):
    how = {"epsilon": 8.0, "bounds": BOUNDS, "mechanism": "rp", "rounds": 1, **options}
    return ldp.LabelReleaseRegressor(DecisionTreeRegressor(random_state=0), **how)


@pytest.mark.filterwarnings("ignore::labeldp.errors.RepeatedReleaseWarning")
def test_a_regressor_is_found_in_pipelines_searches_and_frozen_models_and_judged_by_rows_held_out():
    some, labels = X[:400], Y[:400]
    pipe = make_pipeline(StandardScaler(), PCA(2), pipeline_model()).fit(some, labels)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), pipeline_model()), {"standardscaler__with_mean": [True]}, cv=2
    ).fit(some, labels.copy())
    for model, inner in ((pipe, pipe), (FrozenEstimator(pipe), pipe), (search, search.best_estimator_)):
        own = inner[-1]
        risk = ldp.private_risk(model, some, own.release_)
        assert risk == ldp.private_risk(own, inner[:-1].transform(some), own.release_)
        assert risk.rows == 400
        with pytest.raises(ldp.ParameterError, match="very labels"):
            ldp.private_risk(model, some[:50], own.release_, rows=np.arange(50))


@pytest.mark.filterwarnings("ignore::labeldp.errors.RawLabelWarning")
def test_a_model_of_which_only_a_part_was_trained_on_the_release_is_refused():
    vote = VotingRegressor([("own", pipeline_model()), ("other", DummyRegressor())]).fit(X[:300], Y[:300])
    target = TransformedTargetRegressor(pipeline_model(), func=np.sqrt, inverse_func=np.square)
    target.fit(X[:300], Y[:300].copy())
    staged = make_pipeline(StandardScaler(), vote)
    for model, own in ((vote, vote.estimators_[0]), (target, target.regressor_), (staged, vote.estimators_[0])):
        with pytest.raises(ldp.ParameterError, match="a regressor inside this"):
            ldp.private_risk(model, X[:300], own.release_)
    fresh = pipeline_model().fit(X[300:900], Y[300:900])
    assert ldp.private_risk(vote, X[300:900], fresh.release_).mse > 0, "labels that no part of it has seen"


def test_a_clearly_negative_error_is_never_returned_without_a_warning():
    release = ldp.privatize(Y, epsilon=2.0, bounds=BOUNDS, mechanism="rp", epsilon_prior=0)
    parrot = DecisionTreeRegressor(random_state=0).fit(X, release.debiased)
    with pytest.warns(UserWarning, match="clearly below 0.*learnt from these very labels") as caught:
        risk = ldp.private_risk(parrot, X, release)
    assert caught[0].filename == __file__
    assert risk.mse < 0 == risk.rmse


@pytest.mark.parametrize("kind", ["release", "prior", "rows"])
def test_r2_from_a_release_is_right_within_what_it_says_and_uses_private_estimates_only(kind):
    if kind == "rows":
        how = {"mechanism": "rp", "rounds": 2, "random_state": seeded(2)}
        release = ldp.LabelReleaseRegressor(Ridge(), epsilon=6.0, bounds=BOUNDS, **how).fit(X, Y).release_
    else:
        parts = {"epsilon_prior": 0} if kind == "release" else {}
        release = ldp.privatize(Y, epsilon=4.0, bounds=BOUNDS, mechanism="rp", random_state=seeded(2), **parts)
    for model in MODELS.values():
        risk = ldp.private_risk(model, X, release, metrics=["rmse", "r2"])
        expected, slack = 1 - truth(model) / Y.var(), risk.hidden / Y.var() + (kind != "release") * 0.05
        assert abs(risk.r2 - expected) < 6 * risk.figures["r2"].standard_error + slack
        assert "private estimates" in risk.summary()
    with pytest.raises(ldp.NotUnbiasedError, match="mean absolute error cannot be estimated"):
        ldp.private_risk(MODELS["good"], X, release, metrics=["mae"])


def test_r2_is_not_told_where_the_labels_spread_drowns_in_noise():
    flat = np.full(300, 2.0)
    release = ldp.privatize(flat, epsilon=1.0, bounds=BOUNDS, mechanism="laplace", random_state=seeded(0))
    risk = ldp.private_risk(MODELS["constant"], X[:300], release, metrics="r2")
    assert np.isnan(risk.r2)
    assert "R² cannot be told" in risk.summary()


def test_a_regressor_is_judged_by_the_learner_that_was_fitted_whatever_is_set_since():
    model = ldp.LabelReleaseRegressor(Ridge(), epsilon=4.0, bounds=BOUNDS, rounds=1, mechanism="rp")
    before = ldp.private_risk(model.fit(X[:400], Y[:400]), X[:400], model.release_)
    for other in (DummyRegressor(), None):
        assert ldp.private_risk(model.set_params(estimator=other), X[:400], model.release_) == before


def test_where_bounds_were_narrowed_the_error_outside_is_not_guessed():
    """15 % of labels lie far outside the range that is found: an estimate from inside would be absurdly small."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4_000, 3))
    y = np.where(rng.random(4_000) < 0.85, rng.normal(5, 2, 4_000), rng.uniform(0, 1000, 4_000))
    model = ldp.LabelReleaseRegressor(epsilon=4.0, bounds=(0, 1000), random_state=seeded(1)).fit(X, y)
    assert model.release_.knowledge.high < 1000
    assert model.release_.clipped
    with pytest.raises(ldp.NotUnbiasedError, match="narrower range"):
        ldp.private_risk(model, X, model.release_)
