"""private_score: how wrong a model is on fresh labels, for a stated price, with the ± that was expected."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge

import labeldp as ldp
from helpers import paid_access, seeded
from labeldp.accounts.statistic import RULES
from labeldp.learning import private_scores, score_sums
from labeldp.learning.score_sums import ScorePlan

RNG = np.random.default_rng(8)
ROWS = 6_000
X = RNG.normal(size=(ROWS, 3))
Y = np.clip(1.5 + X[:, 0] + 0.4 * RNG.normal(size=ROWS), 0, 5)
BOUNDS = (0.0, 5.0)
MODELS = {
    "good": Ridge().fit(X[:500], Y[:500]),
    **{
        name: DummyRegressor(strategy="constant", constant=value).fit(X, Y)
        for name, value in {"constant": 3.0, "far": 50.0, "beyond": 1.4e154}.items()
    },
}


def score(model="good", rows=slice(None), labels=Y, **options):
    return ldp.private_score(MODELS[model], X[rows], labels[rows], **{"epsilon": 1.0, "bounds": BOUNDS, **options})


def test_a_score_is_the_error_on_fresh_labels_for_its_price():
    ledger = ldp.Ledger(limit=ldp.Budget(1.0))
    risk = score(epsilon=0.5, ledger=ledger)
    errors = MODELS["good"].predict(X) - Y
    truths = {"mse": np.mean(errors**2), "rmse": np.sqrt(np.mean(errors**2)), "mae": np.abs(errors).mean()}
    for name, value in truths.items():
        figure = risk.figures[name]
        assert getattr(risk, name) == figure.value
        assert abs(figure.value - value) < 6 * figure.standard_error < 0.5 + 6 * (name != "mae")
    assert risk.cost == ledger.total == ldp.Budget(0.5)
    assert "discrete Laplace noise of scale" in ledger.charges[0].mechanism
    assert score(epsilon=0.25, rows_per_person=2).cost.epsilon == 0.5
    with pytest.raises(ldp.BudgetError):
        score(epsilon=0.6, ledger=ledger)


def test_r2_compares_with_the_mean_prediction_and_is_paid_from_the_same_epsilon():
    ledger = ldp.Ledger(limit=ldp.Budget(4.0))
    risk = score(epsilon=4.0, r2=True, ledger=ledger)
    predicted = np.clip(MODELS["good"].predict(X), *BOUNDS)
    truth = 1 - np.mean((predicted - Y) ** 2) / np.mean((predicted.mean() - Y) ** 2)
    assert abs(risk.figures["r2"].value - truth) < 2 * risk.figures["r2"].standard_error < 0.5
    assert risk.cost == ledger.total == ldp.Budget(4.0)
    assert [statistic.epsilon for statistic in risk.statistics] == [Fraction(8, 3), Fraction(4, 3)]
    assert "R²" in risk.summary()
    hidden = score(rows=slice(100), epsilon=0.5, r2=True)
    assert "r2" not in hidden.figures
    assert "R² is left out" in hidden.summary()
    assert "R² is left out" not in risk.summary() + score().summary()


def test_r2_takes_a_third_of_epsilon_and_the_errors_of_the_mean_in_their_own_range():
    """Twice its ± was 0.91 before, with halves of ε and one largest error for both; it is 0.45 in the median."""
    plan, labels = ScorePlan.of(500, Fraction(1), (0.0, 1.0), has_reference=True), np.linspace(0, 1, 500)
    predicted = np.clip(labels + np.where(np.arange(500) % 2, 0.2, -0.2), 0, 1)
    truth = 1 - np.mean((predicted - labels) ** 2) / np.mean((predicted.mean() - labels) ** 2)
    draws = [figures(plan, predicted, labels, seeded(k)) for k in range(200)]
    assert all(abs(draw["r2"].value - truth) <= 2 * draw["r2"].standard_error for draw in draws)
    assert np.median([2 * draw["r2"].standard_error for draw in draws]) < 0.6
    assert np.std([draw["mae"].value for draw in draws]) < 1.8 * np.sqrt(2) / 500


def test_groups_are_scored_for_one_charge_each_by_its_own_rows():
    """Six standard errors of noise and chance: the north is two units off, the south right but for its noise."""
    ledger, region = ldp.Ledger(), np.where(np.arange(ROWS) % 3 == 0, "north", "south")
    labels = np.where(region == "north", 5.0, Y)
    given = {"epsilon": 1.0, "bounds": BOUNDS, "ledger": ledger}
    scores = private_scores(MODELS["constant"], X, labels, by=region, **given)
    assert {name: risk.rows for name, risk in scores.items()} == {"north": ROWS // 3, "south": ROWS * 2 // 3}
    for name, risk in scores.items():
        mae = np.abs(3.0 - labels[region == name]).mean()
        assert abs(risk.mae - mae) < 6 * risk.figures["mae"].standard_error < 0.5
        assert risk.cost == ldp.Budget(1.0)
    assert (ledger.total, len(ledger.charges)) == (ldp.Budget(1.0), 1)
    assert not any(risk.note for risk in scores.values())
    small = private_scores(MODELS["good"], X, Y, by=np.arange(ROWS) < ROWS // 5, epsilon=1.0, bounds=BOUNDS)
    assert "4 times that of the largest group" in small[True].summary()
    assert not small[False].note
    for by in (region[:5], np.where(np.arange(ROWS) < 3, "few", "many"), [None, "x"] * (ROWS // 2)):
        with pytest.raises(ldp.errors.ParameterError):
            private_scores(MODELS["constant"], X, labels, by=by, **given)
    assert len(ledger.charges) == 1


def figures(plan, predicted, labels, source):
    """Return the figures of a score of these predictions."""
    return plan.measure(predicted, paid_access(labels, plan.epsilon, source, purpose="score"))


def test_one_label_moves_the_sums_by_no_more_than_their_noise_is_calibrated_for(monkeypatch, set_constants):
    """Predictions and labels in and out of the bounds, every pair of labels; the worst pair reaches it."""
    set_constants({"learning.score_sums.STEPS": 32, "learning.score_sums.ErrorSums.largest": 32})
    rule = RULES["score"]
    fewer = {size: steps >> 26 for size, steps in rule.steps.items()}  # 32² of (2^18)²
    monkeypatch.setitem(RULES, "score", rule._replace(steps=fewer))
    places, most = np.append(np.linspace(*BOUNDS, 33), [-3.0, 8.0]), 0.0
    for prediction in (0.0, 0.7, 2.5, 5.0, 6.0):
        largest = max(min(prediction, 5.0), 5.0 - prediction)
        plan = ScorePlan(1, Fraction(1), BOUNDS, largest)
        sums = np.array([plan.query(np.array([prediction])).answer(np.array([place]))[0] for place in places])
        moves = np.abs(sums[:, None] - sums[None]).sum(axis=2)
        assert moves.max() <= plan.query().sensitivity == plan.statistics[0].noise.scale == 32**2
        most = max(most, moves.max() / 32**2)
    assert most == 1.0


@pytest.mark.statistical
def test_the_noise_in_each_figure_is_what_was_expected_of_it():
    """400 draws: a deviation that is off by a fifth would be seen; fixed seeds, 7 deviations of the deviation."""
    plan = ScorePlan.of(2000, Fraction(1), BOUNDS)
    labels = np.linspace(*BOUNDS, 2000)
    draws = [figures(plan, np.full(2000, 2.5), labels, seeded(k)) for k in range(400)]
    truths = {"mse": labels.var(), "mae": np.abs(labels - 2.5).mean()}
    deviation = np.sqrt(2) / 2000  # of the noise of a mean, in widths of the bounds
    for name, expected in {"mse": 25 * np.sqrt(2) * deviation, "mae": 5 * deviation}.items():
        errors = np.array([draw[name].value for draw in draws]) - truths[name]
        assert 0.8 < np.sqrt(np.mean(errors**2)) / expected < 1.2
        assert all(draw[name].standard_error >= 0.9 * expected for draw in draws)


HIDDEN = {"model": "constant", "epsilon": 0.1, "rows": slice(100)}
REFUSED = [
    ({**HIDDEN, "rows": slice(40)}, "say nothing"),
    ({"labels": np.where(np.arange(ROWS) == 3, np.nan, Y)}, "label"),
    ({"labels": Y[:10]}, "rows"),
    ({"labels": Y[:, None]}, "one column"),
    ({"epsilon": 0.0}, "epsilon"),
]


def test_predictions_outside_the_bounds_count_as_the_bounds():
    assert score("far", random_state=seeded(1)).rmse == score("beyond", random_state=seeded(1)).rmse > 3


@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_what_noise_would_hide_and_bad_input_are_refused_and_cost_nothing(options, says):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.LabelDPError, match=says):
        score(**options, ledger=ledger)
    assert not ledger.charges


def coins(share):
    return lambda rng, rows: rng.random(rows) < share


POPULATIONS = {
    "rare 0.05 %": (coins(0.0005), 0.0),
    "rare 1 %": (coins(0.01), 0.0),
    "0/1 half": (coins(0.5), 0.5),
    "Pareto tails": (lambda rng, rows: 0.01 * rng.pareto(1.5, rows), 0.02),
    "normal": (lambda rng, rows: 0.5 + 0.05 * rng.normal(size=rows), 0.5),
}
"""How labels are drawn, to be cut to [0, 1], and what is predicted for all of them."""


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", POPULATIONS)
def test_twice_the_standard_error_covers_the_error_of_the_population_in_95_percent_of_runs(name):
    """800 runs of rows and noise each, seeds fixed: the lowest share is 97.6 %, and 95 % would fail here.

    Before, with the variance plugged in, 29 to 43 % of runs missed where large errors were rare.
    """
    draw, middle = POPULATIONS[name]
    errors, rng = np.clip(draw(np.random.default_rng(0), 2_000_000), 0, 1) - middle, np.random.default_rng(1)
    truths = {"mse": np.mean(errors**2), "rmse": np.mean(errors**2) ** 0.5, "mae": np.abs(errors).mean()}
    for rows, epsilon in ((60, 5), (300, 1), (2000, 20)):
        plan, source = ScorePlan.of(rows, Fraction(epsilon), (0.0, 1.0)), seeded(rows)
        covered = dict.fromkeys(truths, 0)
        for _ in range(800):
            labels = np.clip(draw(rng, rows), 0.0, 1.0)
            found = figures(plan, np.full(rows, middle), labels, source)
            for what, figure in found.items():
                assert figure.value >= 0
                covered[what] += abs(figure.value - truths[what]) <= 2 * figure.standard_error
        assert all(covered[what] >= 0.97 * 800 for what in found), (rows, epsilon, covered)


@pytest.mark.statistical
def test_a_variance_that_is_plugged_in_would_be_found_out_by_rare_large_errors(monkeypatch):
    """The twin: the ± of before covers in 70 % of runs, where one row in 2,000 is off by all of the bounds."""

    def plugged(share, noise, rows, square=1.0):
        return 2 * float(np.sqrt(noise**2 + max(min(share, square) - share**2, 0.0) / rows))

    rng, covered = np.random.default_rng(0), {}
    for reach in (score_sums.wilson_reach, plugged):
        monkeypatch.setattr(score_sums, "wilson_reach", reach)
        plan, source = ScorePlan.of(2000, Fraction(20), (0.0, 1.0)), seeded(0)
        draws = [figures(plan, np.zeros(2000), rng.random(2000) < 0.0005, source) for _ in range(300)]
        missed = [abs(draw["mse"].value - 0.0005) > 2 * draw["mse"].standard_error for draw in draws]
        covered[reach.__name__] = 1 - np.mean(missed)
    assert covered["wilson_reach"] >= 0.97
    assert covered["plugged"] < 0.8
