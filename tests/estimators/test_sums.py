"""Sums over labels, beside a plain account: one label moves each by what its noise is calibrated for, at most."""

from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.estimators.designs import STEPS, PublicGeometry, _directions, _groups
from labeldp.estimators.feature_table import FeatureTable
from labeldp.estimators.label_statistics import LabelBudget, LabelSums
from labeldp.estimators.sums import Stage, SumBudget, SumPlan, fit_sums
from labeldp.noise import DiscreteGaussian, DiscreteLaplace, LatticeNorm
from labeldp.priors.curator import GRID

BOUNDS = (1.0, 6.0)
ROWS = 90


class Few:
    """Stands in for `PublicFeatures`: six features of two columns, so that plain loops do not take long."""

    block = np.array([0, 0, 1, 2, 3])

    def transform(self, X):
        a, b = X[:, 0], X[:, -1]
        features = np.column_stack([a, b, a**2 - 1, a * b, np.sin(a + b), np.ones(len(X))])
        return features.astype(np.float32)

    def standardised(self, X):
        return X

    def spectrum(self, features):
        return np.geomspace(0.3, 0.01, 5)


def small_table(rows):
    scale = np.array([[1.0, 0.3], [0.0, 0.6]])
    return FeatureTable(Few(), np.random.default_rng(1).normal(size=(rows, 2)) @ scale)


TABLE = small_table(ROWS)
GEOMETRY = PublicGeometry.of(TABLE, np.full(6, 0.1))
DESIGNS = {"groups": _groups(TABLE, GEOMETRY, 8), "directions": _directions(TABLE, GEOMETRY, 2)}
SPECTRUM = np.geomspace(0.3, 1e-3, 50)
WORST = (-1e308, 1.0, 5e-324, 3.3, 6.0, 1e308)
"""Labels inside, at and far outside the bounds."""

each_design = pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)


@pytest.mark.parametrize("rows", [20, 300, 16_000, 10**6])
@pytest.mark.parametrize("epsilon", ["0.002", "0.01", "1/3", "1", "7.3", "20"])
def test_the_parts_of_a_budget_sum_to_epsilon_and_delta_exactly(epsilon, rows):
    exact, delta = Fraction(epsilon), Fraction(1, 10**6)
    labels = LabelBudget.plan(exact, rows, SPECTRUM, "curator")
    assert labels.mean + labels.prior + labels.labels == exact
    assert labels.labels >= Fraction(1, 1000), "enough for a mechanism"
    sums = SumBudget.plan(exact, rows, delta)
    assert (sums.rough + sums.fine, sums.rough_delta + sums.fine_delta) == (exact, delta)
    for budget in (labels, sums):
        assert sum(charge.budget.exact_epsilon for charge in budget.charges(rows_per_person=3)) == 3 * exact


def test_noise_of_the_mean_and_of_the_prior_is_for_their_own_parts():
    budget = LabelBudget(Fraction(1, 3), Fraction(1, 7), Fraction(2))
    _, mean, prior = budget.descriptions([])
    assert mean == str(DiscreteLaplace(Fraction(3 * GRID)))
    assert prior == str(DiscreteLaplace(Fraction(2 * 7)))


def test_the_worst_change_of_one_label_moves_the_mean_and_the_counts_by_what_their_noise_is_calibrated_for():
    sums = []
    for label in WORST:
        labels = np.full(50, 1.0)
        labels[7] = label
        sums.append(LabelSums.of(labels, BOUNDS))
    assert max(abs(int(a.total[0] - b.total[0])) for a in sums for b in sums) == GRID
    assert max(int(np.abs(a.counts - b.counts).sum()) for a in sums for b in sums) == 2


def test_sums_are_exact_add_up_from_parts_and_show_nothing():
    """They are arrays: the time and memory of Python integers depend on their size."""
    labels = np.array(WORST)
    whole = LabelSums.of(labels, BOUNDS)
    parts = LabelSums.of(labels[:2], BOUNDS) + LabelSums.of(labels[2:], BOUNDS)
    places = [(min(max(y, 1.0), 6.0) - 1.0) / 5.0 for y in WORST]
    assert whole.total.tolist() == parts.total.tolist() == [sum(round(place * GRID) for place in places)]
    assert whole.counts.tolist() == parts.counts.tolist()
    assert (whole.counts[0], whole.counts.sum()) == (3, 6)
    assert whole.total.dtype == whole.counts.dtype == np.int64
    assert repr(whole) == "<6 labels, summed>"


def test_with_local_trust_no_sum_is_computed(monkeypatch):
    monkeypatch.setattr(LabelSums, "of", pytest.fail)
    model = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, trust="local")
    assert not model.fit(TABLE.X, np.full(ROWS, 2.0)).release_.knowledge.counted


def weights(design):
    """Return the integer weight of each row in each sum."""
    return np.eye(design.count, dtype=np.int64)[design.group] if design.weights is None else design.weights


@each_design
@pytest.mark.parametrize("guess", [False, True], ids=["labels", "residuals"])
def test_sums_of_a_stage_are_exact_and_add_up_from_parts(design, guess):
    labels = np.random.default_rng(2).uniform(0, 7, ROWS)
    labels[: len(WORST)] = WORST
    centre = np.random.default_rng(3).uniform(1, 6, ROWS)
    stage = Stage(design, BOUNDS, centre, 1.25) if guess else Stage(design, BOUNDS)
    expected = np.zeros(design.count, dtype=np.int64)
    for row, (label, near) in enumerate(zip(labels.tolist(), centre.tolist(), strict=True)):
        inside = min(max(label, 1.0), 6.0)
        place = (min(max(inside - near, -1.25), 1.25) + 1.25) / 2.5 if guess else (inside - 1) / 5
        expected += weights(design)[row] * round(place * STEPS)
    assert stage.sums(labels).tolist() == expected.tolist()
    order = np.random.default_rng(3).permutation(ROWS)
    parts = [stage.sums(labels[rows], rows) for rows in (order[:31], order[31:])]
    assert (parts[0] + parts[1]).tolist() == expected.tolist()


@each_design
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10)])
def test_the_worst_change_of_one_label_moves_sums_by_what_their_noise_is_calibrated_for(design, delta):
    epsilon, worst = Fraction(1, 10), 0
    for row in range(ROWS):
        labels = np.full(ROWS, 1.0)
        sums = []
        for label in WORST:
            labels[row] = label
            sums.append(Stage(design, BOUNDS).sums(labels))
        gap = max(sums, key=lambda some: int(np.abs(some - sums[0]).sum())) - sums[0]
        worst = max(worst, int(np.abs(gap).sum() if design.weights is None else (gap * gap).sum()))
    noise = design.noise(epsilon, delta)
    if design.weights is None:
        assert noise == DiscreteLaplace.calibrated(sensitivity=worst, epsilon=epsilon)
    elif delta:
        assert noise == DiscreteGaussian.calibrated(squared_sensitivity=worst, epsilon=epsilon, delta=delta)
    else:
        assert noise == LatticeNorm.calibrated(squared_sensitivity=worst, epsilon=epsilon)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1/50", "0"), ("1/10", "0"), ("1", "0"), ("4", "0"), ("1/2", "1/10")]
)
def test_each_stage_reads_labels_once_and_gets_noise_for_its_own_part_of_the_budget(epsilon, delta):
    table = small_table(300)
    labels = np.clip(3.5 + table.X[:, 0], *BOUNDS)
    plan, stages = SumPlan.make(table, BOUNDS, Fraction(epsilon), Fraction(delta)), []
    _, noises = fit_sums(plan, lambda stage: stages.append(stage) or stage.sums(labels), seeded(5))
    budget = plan.budget
    parts = [(budget.rough, budget.rough_delta), (budget.fine, budget.fine_delta)]
    parts = [part for part in parts if part[0]]
    assert sum(part for part, _ in parts) == Fraction(epsilon)
    assert sum(part for _, part in parts) in (0, Fraction(delta)), "all of δ, or none if it buys nothing"
    assert [stage.design.noise(*part) for stage, part in zip(stages, parts, strict=True)] == list(noises)
    assert len(budget.charges(1)) == len(stages)
