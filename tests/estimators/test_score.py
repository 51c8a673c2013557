"""private_score: how wrong a model is on fresh labels, for a stated price, with the ± that was expected."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labeldp as ldp
from helpers import seeded
from labeldp.estimators import score_sums
from labeldp.estimators.quality import Risk, rmse_of
from labeldp.estimators.score_sums import ScorePlan
from labeldp.release.scores import Figure

RNG = np.random.default_rng(8)
ROWS = 6_000
X = RNG.normal(size=(ROWS, 3))
Y = np.clip(1.5 + X[:, 0] + 0.4 * RNG.normal(size=ROWS), 0, 5)
BOUNDS = (0.0, 5.0)
MODELS = {
    "good": Ridge().fit(X[:500], Y[:500]),
    "constant": DummyRegressor(strategy="constant", constant=3.0).fit(X, Y),
}


def truth(model):
    return float(np.mean((model.predict(X) - Y) ** 2))


def test_a_score_is_the_error_on_fresh_labels_for_its_price():
    ledger = ldp.Ledger(limit=ldp.Budget(1.0))
    risk = ldp.private_score(MODELS["good"], X, Y, epsilon=0.5, bounds=BOUNDS, ledger=ledger)
    assert abs(risk.mse - truth(MODELS["good"])) < 5 * risk.standard_error
    assert risk.cost == ledger.total == ldp.Budget(0.5)
    assert "DiscreteLaplace" in ledger.charges[0].mechanism
    assert (
        ldp.private_score(MODELS["good"], X, Y, epsilon=0.25, bounds=BOUNDS, rows_per_person=2).cost.epsilon == 0.5
    )
    with pytest.raises(ldp.BudgetError):
        ldp.private_score(MODELS["good"], X, Y, epsilon=0.6, bounds=BOUNDS, ledger=ledger)


@pytest.mark.parametrize("metrics", [["mse"], ["mae"], ["mse", "mae"], ["r2"], ["mse", "mae", "r2"]], ids="-".join)
def test_one_label_moves_the_sums_by_no_more_than_their_noise_is_calibrated_for(metrics, monkeypatch):
    """Predictions and labels in and out of the bounds, every pair of labels; the worst pair reaches it."""
    monkeypatch.setattr(score_sums, "STEPS", 32)
    places, most = np.append(np.linspace(*BOUNDS, 33), [-3.0, 8.0]), 0.0
    for prediction in (0.0, 0.7, 2.5, 5.0, 6.0):
        largest = max(prediction, abs(5.0 - prediction))
        plan = ScorePlan(1, Fraction(1), BOUNDS, largest, frozenset(metrics))
        sums = np.array([plan.sums(np.array([prediction]), np.array([place])) for place in places])
        moves = np.abs(sums[:, None] - sums[None]).sum(axis=2)
        assert moves.max() <= plan.noise.scale == 32**2 * plan.blocks
        most = max(most, moves.max() / (32**2 * plan.blocks))
    assert most == 1.0


@pytest.mark.statistical
@pytest.mark.parametrize("metrics", [["mse"], ["mae"], ["mse", "mae"], ["mse", "mae", "r2"]], ids="-".join)
def test_the_noise_in_each_figure_is_what_was_expected_of_it(metrics):
    """400 draws: a deviation that is off by a fifth would be seen; fixed seeds, 7 deviations of the deviation."""
    plan = ScorePlan.of(2000, Fraction(1), BOUNDS, metrics)
    labels = np.linspace(*BOUNDS, 2000)
    exact = plan.sums(np.full(2000, 2.5), labels)
    draws = [plan.figures(exact, seeded(k)) for k in range(400)]
    truths = {"mse": labels.var(), "mae": np.abs(labels - 2.5).mean(), "r2": 0.0}
    for name, expected in plan.expected().items():
        errors = np.array([draw[name].value for draw in draws]) - truths[name]
        assert 0.8 < np.sqrt(np.mean(errors**2)) / expected < 1.2
        assert all(draw[name].standard_error >= 0.9 * expected for draw in draws)


def test_figures_that_share_one_budget_are_right_and_say_what_that_does():
    ledger, figures = ldp.Ledger(), ["rmse", "mae", "r2"]
    risk = ldp.private_score(MODELS["good"], X, Y, epsilon=2.0, bounds=BOUNDS, metrics=figures, ledger=ledger)
    errors = MODELS["good"].predict(X) - Y
    truths = {"mse": np.mean(errors**2), "rmse": np.sqrt(np.mean(errors**2)), "mae": np.abs(errors).mean()}
    truths["r2"] = 1 - truths["mse"] / Y.var()
    for name, value in truths.items():
        figure = risk.figures[name]
        assert getattr(risk, name) == figure.value
        assert abs(figure.value - value) < 6 * figure.standard_error < 0.5
    assert ledger.total == ldp.Budget(2.0), "one charge for all"
    assert (
        "mean squared error is 2.83 times what it would be alone, that of the mean absolute error 2."
        in risk.summary()
    )
    with pytest.raises(ldp.ParameterError, match="metrics"):
        ldp.private_score(MODELS["good"], X, Y, epsilon=1.0, bounds=BOUNDS, metrics=["rmsle"])
    few = {"epsilon": 1.0, "bounds": BOUNDS, "metrics": ["rmse", "mae"]}
    tight = ldp.private_score(MODELS["good"], X[:100], Y[:100], **few)
    assert tight.rmse >= max(tight.mae, 0.0) - 1e-12, "noise does not make figures contradict each other"
    only = ldp.private_score(MODELS["good"], X, Y, epsilon=1.0, bounds=BOUNDS, metrics="mae", ledger=ledger)
    with pytest.raises(ldp.ParameterError, match="mean squared error was not estimated"):
        _ = only.mse


def test_what_noise_to_expect_is_said_before_the_charge_and_a_score_of_nothing_but_noise_is_refused(capsys):
    ledger, some = ldp.Ledger(), {"epsilon": 0.1, "bounds": BOUNDS}
    with pytest.raises(ldp.ParameterError, match=r"say nothing.*ε = 0.123 or more, or 124 rows"):
        ldp.private_score(MODELS["constant"], X[:100], Y[:100], ledger=ledger, **some)
    assert not ledger.charges
    ldp.private_score(MODELS["constant"], X[:400], Y[:400], ledger=ledger, verbose=True, **some)
    assert "400 rows for ε = 0.1 will have noise of: mean squared error ± 0.32" in capsys.readouterr().err
    ldp.private_score(MODELS["constant"], X[:100], Y[:100], ledger=ledger, metrics="mae", **some)
    far = DummyRegressor(strategy="constant", constant=50.0).fit(X, Y)
    with pytest.raises(ldp.ParameterError, match="clipped to the bounds"):
        ldp.private_score(far, X[:400], Y[:400], ledger=ledger, **some)


def test_bad_input_to_a_score_costs_nothing():
    ledger = ldp.Ledger()
    good = MODELS["good"]
    for labels, error in (
        (np.where(np.arange(ROWS) == 3, np.nan, Y), ldp.LabelError),
        (Y[:10], ldp.ParameterError),
        (Y[:, None], ldp.LabelError),
    ):
        with pytest.raises(error):
            ldp.private_score(good, X, labels, epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    far = DummyRegressor(strategy="constant", constant=1.4e154).fit(X, Y)
    with pytest.raises(ldp.ParameterError, match="too far"):
        ldp.private_score(far, X, Y, epsilon=1.0, bounds=(-1e139, 1e139), ledger=ledger)
    with pytest.raises(ldp.ParameterError):
        ldp.private_score(good, X, Y, epsilon=0.0, bounds=BOUNDS, ledger=ledger)
    with pytest.raises(ldp.ParameterError):
        ldp.private_score(good, X, Y, epsilon=1.0, bounds=BOUNDS, ledger=3.0)
    assert not ledger.charges


@pytest.mark.parametrize("true", [0.0, 0.5, 1.5, 4.0, 100.0])
def test_the_root_of_an_error_is_within_twice_its_noise_whenever_the_square_is(true):
    for estimate in np.linspace(true - 2, true + 2, 41):  # the square is ± 1, and may come out below 0
        rmse = rmse_of(Figure(estimate, 1.0))
        assert abs(rmse.value - true**0.5) <= 2 * rmse.standard_error + 1e-9
    assert rmse_of(Figure(1e4, 1.0)).standard_error == pytest.approx(
        1 / 200, rel=0.01
    )  # no more than by its slope


def test_a_repr_tells_the_estimates_their_rows_and_their_price():
    mse = Figure(72_000.0, 3_100.0)
    risk = Risk({"mse": mse, "rmse": rmse_of(mse)}, 0.0, "curator", 4000, ldp.Budget(0.2), secure=True)
    untold = replace(risk, figures={"rmse": rmse_of(mse), "r2": Figure(np.nan, np.inf)})
    assert untold.table() == [["typical error (RMSE)", "268.3 ± 5.9"], ["R²", "not told"]]
    says = "typical error (RMSE) 268.3 ± 5.9, mean squared error 72,000 ± 3,100 from 4,000 rows"
    assert repr(risk) == f"<Risk: {says}, ε = 0.2, secure>"


def test_where_clipping_may_hide_more_than_the_noise_repr_and_summary_say_what_the_error_stays_below():
    mse = Figure(100.0, 13.0)
    plain = Risk({"mse": mse, "rmse": rmse_of(mse)}, 0.0, "unbiased", 250, ldp.Budget(0), secure=True)
    clipped = replace(plain, hidden=130.0, how="assumed")
    assert "RMSE <" not in plain.summary() + repr(plain)
    for text in (repr(clipped), clipped.summary()):
        assert "RMSE < 16" in text  # the root of 100 + 2 · 13 + 130


def test_rows_that_a_regressor_was_trained_on_are_not_scored_where_that_can_be_told():
    ledger = ldp.Ledger()
    model = ldp.ModelReleaseRegressor(epsilon=0.5, bounds=BOUNDS)
    for fitted in (clone(model), make_pipeline(StandardScaler(), clone(model))):
        fitted.fit(X[:200], Y[:200].copy())
        with pytest.raises(ldp.ParameterError, match="a score would be too good"):
            ldp.private_score(fitted, X[:200], Y[:200], epsilon=1.0, bounds=BOUNDS, ledger=ledger)
        assert not ledger.charges
        ldp.private_score(fitted, X[200:400], Y[200:400], epsilon=1.0, bounds=BOUNDS)


@pytest.mark.filterwarnings("error::labeldp.errors.RepeatedReleaseWarning")
def test_scoring_the_same_labels_again_without_a_ledger_warns():
    labels, how = Y[:200].copy(), {"epsilon": 1.0, "bounds": BOUNDS}
    for _ in range(2):  # a ledger counts: no warning
        ldp.private_score(MODELS["good"], X[:200], labels, ledger=ldp.Ledger(), **how)
    with pytest.raises(ldp.ParameterError):
        ldp.private_score(MODELS["good"], X[:200], labels, epsilon=-1.0, bounds=BOUNDS)
    ldp.private_score(MODELS["good"], X[:200], labels, **how)
    with pytest.warns(ldp.RepeatedReleaseWarning, match="released before") as caught:
        ldp.private_score(MODELS["good"], X[:200], labels, **how)
    assert caught[0].filename == __file__
    with pytest.warns(ldp.RepeatedReleaseWarning):
        ldp.privatize(labels, **how)
