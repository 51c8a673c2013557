"""Prediction intervals cover as often as they say, whatever the labels, and say so where they cannot."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labeldp as ldp
from helpers import seeded
from labeldp.learning import intervals as interval_module
from labeldp.learning.coverage_plan import CoveragePlan, most_misses, plan_coverage

BOUNDS = (0.0, 1.0)
PLAN = plan_coverage(300, Fraction(3, 10), Fraction(9, 10))
HELD_OUT = 40


class Constant:
    """A model that says the same for all."""

    def __init__(self, value=0.0):
        self.value = value

    def predict(self, X):
        return np.full(len(X), self.value)


def intervals(labels, *, model=None, **options):
    options = {"epsilon": 0.3, "bounds": BOUNDS, "ledger": ldp.Ledger(), **options}
    return ldp.private_intervals(model or Constant(), np.zeros((len(labels), 1)), labels, **options)


# ---- coverage -----------------------------------------------------------------------------------------------


HARD = PLAN.slack + float(PLAN.noise.scale) * np.repeat(
    [2.6, 2.0, 1.0, 0.5, 0.1, -0.3, -0.4], [7, 8, 8, 4, 2, 1, 1]
)
"""Rows outside each half width that are near the worst case, for five counts."""


def hard_labels():
    """Return labels of which so many lie outside each half width."""
    share = HARD / PLAN.rows
    outside = np.concatenate([[1.0], share, [0.0]]) * (PLAN.rows + HELD_OUT)
    widths = [PLAN.half_width(place, 1.0) for place in range(1, outside.size)]
    return np.repeat(widths, -np.diff(np.rint(outside).astype(int)))


LABELS = {
    "near the worst case": hard_labels(),
    "smooth": np.random.default_rng(3).beta(1, 6, PLAN.rows + HELD_OUT),
}


def mean_coverage(labels, draws=2000):
    """Calibrate on labels drawn at random, and see how many of the others are covered; with a standard error."""
    rng, shares = np.random.default_rng(1), []
    for draw in range(draws):
        fresh, known = np.split(rng.permutation(labels), [HELD_OUT])
        low, high = intervals(known, random_state=seeded(draw)).predict_interval(np.zeros((HELD_OUT, 1))).T
        shares.append(np.mean((low <= fresh) & (fresh <= high)))
    return np.mean(shares), np.std(shares) / np.sqrt(draws)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", LABELS)
@pytest.mark.filterwarnings("ignore:Intervals are the full bounds")
def test_fresh_labels_are_covered_as_often_as_stated(name):
    """Five standard errors are a false alarm of 3e-7, and at most 0.0125: so much less would be noticed."""
    coverage, error = mean_coverage(LABELS[name])
    assert coverage >= 0.9 - 5 * error
    assert error < 0.0025


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore:Intervals are the full bounds")
def test_a_search_that_does_not_make_up_for_noise_is_detected(monkeypatch):
    plain = CoveragePlan(PLAN.rows, PLAN.epsilon, PLAN.counts, (PLAN.rows + 1) // 10)
    monkeypatch.setattr(interval_module, "plan_coverage", lambda *_: plain)
    coverage, error = mean_coverage(LABELS["near the worst case"], draws=1000)
    assert coverage < 0.9 - 5 * error


def expected_misses(outside, plan):
    """Return how many rows lie outside what is found, in expectation, by all paths; ``outside`` is by place."""
    ratio = np.exp(-1 / float(plan.noise.scale))
    chances = ratio ** np.abs(np.arange(-4000, 4001)) * (1 - ratio) / (1 + ratio)

    def value(low, high):
        if high - low == 1:
            return outside[high]
        middle = (low + high) // 2
        passes = chances[4000 + outside[middle] - plan.slack :].sum()
        return passes * value(low, middle) + (1 - passes) * value(middle, high)

    return value(0, len(outside) - 1)


def test_no_labels_miss_more_often_than_the_plan_allows_and_some_nearly_do():
    scale, places = float(PLAN.noise.scale), 1 << PLAN.counts
    bound = most_misses(PLAN.slack, PLAN.rows, scale, PLAN.counts)
    assert bound <= 30.1
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(300):
        middle, width = PLAN.slack + scale * rng.normal(0.5), scale * abs(rng.normal())
        outside = np.clip(np.rint(middle + width * rng.normal(size=places)), 0, PLAN.rows + 1).astype(int)
        worst = max(worst, expected_misses([*np.sort(outside)[::-1], 0], PLAN))
    hardest = expected_misses([PLAN.rows + 1, *np.rint(HARD).astype(int), 0], PLAN)
    assert max(worst, hardest) <= bound
    assert hardest > 0.9 * bound


# ---- what is said -------------------------------------------------------------------------------------------


def test_rows_that_cannot_support_the_coverage_give_the_full_bounds_at_no_cost():
    ledger = ldp.Ledger()
    with pytest.warns(UserWarning, match="this ε show no narrower ones"):
        made = intervals(np.full(40, 0.2), ledger=ledger)
    assert made.full
    assert not ledger.charges
    assert made.cost == ldp.Budget(0)
    assert made.predict_interval(np.zeros((2, 1))).tolist() == [[0.0, 1.0]] * 2


def test_intervals_are_cut_to_the_bounds_and_the_charge_says_what_for():
    ledger = ldp.Ledger()
    made = intervals(np.full(4000, 0.5), model=Constant(0.45), ledger=ledger, rows_per_person=2)
    (charge,) = ledger.charges
    assert (charge.purpose, charge.budget) == ("intervals", ldp.Budget(0.6))
    assert "DiscreteLaplace" in charge.mechanism
    assert 0.05 <= made.half_width < 0.06
    X = np.zeros((3, 1))
    assert np.allclose(made.predict_interval(X), [[0.45 - made.half_width, 0.45 + made.half_width]] * 3)
    assert intervals(np.full(4000, 0.5), model=Constant(7.0)).predict_interval(X).max() == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coverage": 1.0}, "coverage must lie in"),
        ({"coverage": 0}, "coverage must lie in"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"bounds": (1, 0)}, "the smaller first"),
        ({"model": Constant(np.nan)}, "finite"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_charged(options, words):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.LabelDPError, match=words):
        intervals(np.full(500, 0.5), ledger=ledger, **options)
    assert not ledger.charges


# ---- rows that were used in training -------------------------------------------------------------------------

RNG = np.random.default_rng(5)
X = RNG.normal(size=(1200, 2))
Y = np.clip(0.5 + 0.2 * X[:, 0], 0, 1)


def calibrate(model, rows):
    return ldp.private_intervals(model, X[rows], Y[rows], epsilon=1.0, bounds=BOUNDS, ledger=ldp.Ledger())


@pytest.mark.parametrize("kind", [ldp.ModelReleaseRegressor, ldp.LabelReleaseRegressor])
def test_rows_of_the_training_are_refused_also_inside_a_pipeline_or_a_search(kind):
    how = {} if kind is ldp.ModelReleaseRegressor else {"estimator": Ridge(), "rounds": 1}
    model = kind(epsilon=1.0, bounds=BOUNDS, **how)
    search = GridSearchCV(model, {"rows_per_person": [1]}, cv=2)
    for trained in (model, make_pipeline(StandardScaler(), model), search):
        trained.fit(X[:600], Y[:600])
        with pytest.raises(ldp.errors.ParameterError, match="50 % of these rows have the features of rows"):
            calibrate(trained, slice(400, 800))
        assert not calibrate(trained, slice(600, 1200)).full


def test_fresh_rows_of_a_table_with_few_kinds_of_rows_are_not_refused():
    kinds = RNG.integers(0, 5, size=(1200, 2)).astype(float)
    model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(kinds[:600], Y[:600])
    ldp.private_intervals(model, kinds[600:], Y[600:], epsilon=1.0, bounds=BOUNDS)


def test_intervals_around_a_model_from_a_seed_are_not_private_either():
    for source in (None, seeded(1)):
        model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, random_state=source).fit(X[:400], Y[:400])
        made = calibrate(model, slice(400, 1200))
        assert made.secure is (source is None)
        assert ("NOT PRIVATE" in made.summary()) is (source is not None)
