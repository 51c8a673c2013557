"""ModelReleaseRegressor: only noisy sums of labels are used, with the sensitivity that was proven."""

import pickle
import warnings
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import labeldp as ldp
from helpers import seeded
from labeldp.estimators import ModelReleaseRegressor
from labeldp.estimators import designs as designs_module
from labeldp.estimators.designs import STEPS, PublicGeometry, _directions, _groups, balanced_groups
from labeldp.estimators.feature_table import FeatureTable
from labeldp.estimators.features import PublicFeatures
from labeldp.estimators.sums import SumBudget
from labeldp.noise import IntegerNoise

RNG = np.random.default_rng(3)
X = RNG.normal(size=(2000, 4))
Y = np.clip(2.5 + X[:, 0] + 0.3 * RNG.normal(size=2000), 0, 5)
BOUNDS = (0.0, 5.0)


@parametrize_with_checks([ModelReleaseRegressor(epsilon=8.0, bounds=(-1000.0, 1000.0))])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0])
def test_charges_sum_to_epsilon_exactly(epsilon):
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon))
    ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, ledger=ledger).fit(X, Y)
    assert ledger.total.exact_epsilon == Fraction(repr(epsilon))
    with pytest.raises(ldp.BudgetError):
        ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, ledger=ledger).fit(X, Y)


@pytest.mark.parametrize("rows", [100, 2000, 10**6])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0])
def test_the_split_sums_to_epsilon(rows, epsilon):
    budget = SumBudget.plan(Fraction(repr(epsilon)), rows)
    assert budget.rough + budget.fine == Fraction(repr(epsilon))
    assert budget.fine > 0
    assert (budget.rough > 0) == (rows * epsilon >= 60), "two stages only where the first is worth measuring from"


class Silent(IntegerNoise):
    """Stands in for a sampler: records the calibration, adds nothing."""

    seen: ClassVar[list] = []

    @classmethod
    def calibrated(cls, **how):
        cls.seen.append(how)
        return cls()

    def variance(self, size=1):
        return 1.0

    def sample(self, size, source):
        return np.zeros(size, dtype=np.int64)


@pytest.fixture
def table():
    return FeatureTable(PublicFeatures.fit(X), X)


@pytest.mark.parametrize(("kind", "delta"), [("groups", 0), ("directions", 0), ("directions", Fraction(1, 10**6))])
def test_the_worst_change_of_one_label_moves_sums_by_no_more_than_the_noise_is_made_for(
    kind, delta, table, monkeypatch
):
    geometry = PublicGeometry.of(table, np.full(table.public.block.size + 1, 0.01))
    design = _groups(table, geometry, 16) if kind == "groups" else _directions(table, geometry, 3)
    for name in ("DiscreteLaplace", "LatticeNorm", "DiscreteGaussian"):
        monkeypatch.setattr(designs_module, name, Silent)
    Silent.seen = []
    width = 5.0
    low, worst = np.zeros(2000), 0.0
    heaviest = 0 if kind == "groups" else int(np.argmax((design.weights**2).sum(axis=1)))
    for row in {0, 1999, heaviest}:
        for value in (width, 1e300, -1e300):
            high = low.copy()
            high[row] = value
            sums = []
            for labels in (low, high):
                averages = design.release(labels, width, design.noise(Fraction(1), delta), None)
                scale = design.sizes if kind == "groups" else designs_module._WEIGHTS / design.share
                sums.append(averages * scale * STEPS / width)
            gap = sums[1] - sums[0]
            worst = max(worst, float(np.abs(gap).sum() if kind == "groups" else np.sum(gap**2)))
    promised = Silent.seen[0]["sensitivity" if kind == "groups" else "squared_sensitivity"]
    assert all(how.get("squared_sensitivity", promised) == promised for how in Silent.seen)
    assert worst <= promised * (1 + 1e-9)
    assert worst >= 0.99 * promised, "the worst case is reached: noise made for less would break the promise"


def test_groups_are_balanced_and_hold_similar_rows():
    places = RNG.normal(size=(1000, 3))
    group = balanced_groups(places, 10)
    sizes = np.bincount(group)
    assert sizes.size == 100
    assert sizes.min() >= 8
    assert sizes.max() <= 12
    within = np.mean([places[group == g].var(axis=0).sum() for g in range(100)])
    assert within < 0.3 * places.var(axis=0).sum()


def test_it_learns_even_at_a_small_budget():
    model = ModelReleaseRegressor(epsilon=0.3, bounds=BOUNDS, random_state=seeded(5)).fit(X, Y)
    assert np.mean((model.predict(X) - Y) ** 2) < 0.6 * Y.var()


def test_predictions_stay_within_the_bounds_and_the_model_pickles_without_labels():
    for epsilon in (0.3, 4.0):
        model = ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS).fit(X, Y)
        far = model.predict(100 * X)
        assert BOUNDS[0] <= far.min() <= far.max() <= BOUNDS[1]
        data = pickle.dumps(model)
        assert np.array_equal(pickle.loads(data).predict(X), model.predict(X))
        assert not any(Y[i : i + 4].tobytes() in data for i in range(0, 2000, 50))
        assert not hasattr(model, "release_"), "labels do not leave"
