"""What a curator takes from labels: one label moves each statistic by what its noise is calibrated for."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import paid_access, seeded
from labeldp.accounts.scope import Scope
from labeldp.learning import base
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import FitRequest, Limits
from labeldp.learning.label_queries import STEPS, DistanceCounts, GroupSums, RowRules, find_range
from labeldp.learning.sum_model import SumModel, fit_sums
from labeldp.release.label_access import LabelAccess

BOUNDS = Limits(1.0, 6.0)
ROWS = 90
WORST = (-1e308, 1.0, 5e-324, 3.3, 6.0, 1e308)
"""Labels inside, at and far outside the bounds."""


def full_table(rows, columns=2):
    X = np.random.default_rng(1).normal(size=(rows, columns))
    X[:, 0] = np.rint(X[:, 0])
    return FeatureTable.fit(X)


def random_labels(seed, rows=ROWS):
    """Return labels in one or two heaps, some outside the bounds."""
    rng = np.random.default_rng(seed)
    heaps = rng.normal(rng.uniform(0, 7, 2)[:, None], rng.choice([0.001, 0.1, 3.0], 2)[:, None], (2, rows))
    return np.where(rng.random(rows) < rng.random(), *heaps)


@pytest.fixture
def scripted(monkeypatch):
    """Let noise give out numbers that no label reached; return what it was asked to hide, and how well."""
    asked = []

    def release(noise, exact, source):
        asked.append((noise.scale, exact.tolist()))
        return source.integers(0, 4 * STEPS if exact.max() > 4 * ROWS else 2 * ROWS, exact.size)

    monkeypatch.setattr(ldp.exact.DiscreteLaplace, "release", release)
    return asked


def spent(one, other):
    """Return the ε of statistics that move from one list to the other, by Laplace noise on each integer."""
    assert [scale for scale, _ in one] == [scale for scale, _ in other]
    return sum(
        Fraction(sum(abs(a - b) for a, b in zip(before, after, strict=True))) / scale
        for (scale, before), (_, after) in zip(one, other, strict=True)
    )


# ---- the budget ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 20, 300, 4_177, 16_000, 10**6, 10**9])
@pytest.mark.parametrize("epsilon", ["0.002", "0.01", "0.05", "1/3", "1", "2.7", "7.3", "20"])
@pytest.mark.parametrize("labels", [False, True])
def test_charges_sum_to_epsilon_exactly(epsilon, rows, labels):
    request = FitRequest(epsilon=float(Fraction(epsilon)), bounds=(0, 5), scope=Scope.parse(3), labels=labels)
    plan, exact = request.plan(rows), Fraction(repr(float(Fraction(epsilon))))
    assert plan.for_labels >= 0
    assert plan.for_sums > 0, "nothing is known of labels without it"
    assert plan.for_labels + plan.for_sums == exact
    charges = plan.charges()
    assert sum(charge.budget.exact_epsilon for charge in charges) == 3 * exact
    assert all(charge.budget.exact_epsilon for charge in charges)
    if labels:
        assert plan.for_labels >= Fraction(1, 1000), "enough for a mechanism"


# ---- the range ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_one_label_moves_the_count_of_a_window_by_one_and_the_counts_by_two(seed, scripted):
    """Whatever was found before: the second labels get the answers of the first."""
    epsilon, runs = Fraction(3), []
    labels = random_labels(seed)
    for label in (labels[7], *WORST):
        scripted.clear()
        labels[7] = label
        access = paid_access(labels, epsilon, np.random.default_rng(seed))
        found = find_range(access, BOUNDS)
        runs.append((found, list(scripted)))
        assert sum(Fraction(1 if len(exact) == 1 else 2) / scale for scale, exact in scripted) <= epsilon
        assert access.remaining >= 0
    assert len({found for found, _ in runs}) == 1, "the same answers, the same range"
    for _, asked in runs:
        assert len(asked) <= 8, "a test, at most four steps, a wider window once or twice, and counts"
        for (_, exact), (_, before) in zip(asked, runs[0][1], strict=True):
            assert len(exact) == 1 or sum(exact) == ROWS
            assert sum(abs(a - b) for a, b in zip(exact, before, strict=True)) <= min(2, len(exact))
        assert spent(runs[0][1], asked) <= epsilon


@pytest.mark.parametrize("middle", [1.0, 1.2, 3.0, 5.999])
@pytest.mark.parametrize("width", [0.01, 0.3, 5.0])
def test_a_range_lies_inside_the_bounds_and_holds_nearly_all_labels(middle, width):
    labels = np.clip(np.random.default_rng(1).normal(middle, width / 4, 20_000), *BOUNDS)
    low, high = find_range(paid_access(labels, Fraction(1, 2), seeded(1)), BOUNDS)
    assert BOUNDS[0] <= low < high <= BOUNDS[1]
    assert ((labels >= low) & (labels <= high)).mean() > 0.99
    assert high - low <= max(12 * width, 0.01)


def test_the_bounds_are_kept_where_most_labels_are_one_value_and_left_where_they_are_far_too_wide():
    """The window of the no's alone predicted that nobody says yes."""
    rng = np.random.default_rng(3)
    for yes in (0.06, 0.11, 0.14, 0.198):
        labels = np.where(rng.random(20_000) < yes, *BOUNDS[::-1])
        ranges = [find_range(paid_access(labels, Fraction(1, 2), seeded(seed)), BOUNDS) for seed in range(100)]
        assert np.mean([found == BOUNDS for found in ranges]) > 0.85
    access = paid_access(labels, Fraction(1, 2), seeded(0))
    assert find_range(access, BOUNDS) == BOUNDS
    counts = access.statistics
    assert counts[-1].epsilon != counts[-2].epsilon, "one count shows clearly that many labels are elsewhere"
    wide = (0.0, 1e9)
    incomes = np.clip(rng.lognormal(10, 0.6, 20_000), *wide)
    low, high = find_range(paid_access(incomes, Fraction(1, 2), seeded(1)), wide)
    assert high - low < 4e6


@pytest.mark.parametrize("epsilon", [1, 3])
def test_a_yes_of_one_in_ten_is_not_clipped_away(epsilon):
    """Residuals were clipped to the spread of the no's, so that the mean of predictions was far too low."""
    table, yes = full_table(8_000), np.random.default_rng(3).random(8_000) < 0.1
    means = []
    for seed in range(6):
        model = fit_sums(table, Limits(0.0, 1.0), paid_access(yes.astype(float), Fraction(epsilon), seeded(seed)))
        means.append(model.predictor().of(model.table).mean())
    assert abs(np.mean(means) - 0.1) < 0.03


def test_noise_does_not_pass_for_labels_far_from_all_others():
    """It did in one count of forty, after which residuals were clipped too far out, at three times the error."""
    rows, rng = 2_000, np.random.default_rng(3)
    model = SumModel.before_sums(full_table(rows), BOUNDS)
    row_rules = RowRules(prediction=np.full(rows, BOUNDS.middle))
    near, far = rng.normal(BOUNDS.middle, 0.3, rows), np.where(rng.random(rows) < 0.2, BOUNDS[1], BOUNDS.middle)

    def measured(labels, seed):
        access = paid_access(labels, Fraction(1, 2), seeded(seed))
        return model.measure_error(access, row_rules).outliers.sum()

    assert sum(measured(near, seed) > 0 for seed in range(400)) <= 2
    assert sum(measured(far, seed) > 0.1 for seed in range(400)) >= 396


# ---- sums ---------------------------------------------------------------------------------------------------

GROUP = np.random.default_rng(4).integers(0, 8, ROWS)
PREDICTION = np.random.default_rng(3).uniform(1, 6, ROWS)
QUERIES = {
    "labels": GroupSums(BOUNDS, RowRules(group=GROUP), 8),
    "one sum": GroupSums(BOUNDS),
    "residuals": GroupSums(BOUNDS, RowRules(group=GROUP, prediction=PREDICTION), 8, 1.25),
}
each_query = pytest.mark.parametrize("name", QUERIES)


def position(name, label, prediction):
    """Return what is summed of a label, from 0 to 1."""
    inside = min(max(label, 1.0), 6.0)
    gap = min(max(inside - prediction, -1.25), 1.25)
    return (gap + 1.25) / 2.5 if name == "residuals" else (inside - 1) / 5


@each_query
def test_sums_of_labels_are_exact_and_add_up_from_parts(name):
    query, labels = QUERIES[name], random_labels(2)
    labels[: len(WORST)] = WORST
    expected = [0] * query.groups
    for row, label in enumerate(labels.tolist()):
        group = 0 if query.row_rules.group is None else GROUP[row]
        expected[group] += round(position(name, label, float(PREDICTION[row])) * STEPS)
    answer = query.answer(labels)
    assert answer[0].tolist() == expected
    assert answer.shape == query.shape
    order = np.random.default_rng(3).permutation(ROWS)
    total = np.zeros_like(answer)
    for rows in (order[:31], order[31:]):
        known = {name: getattr(query.row_rules, name) for name in ("group", "prediction")}
        some = {name: values[rows] for name, values in known.items() if values is not None}
        total += replace(query, row_rules=RowRules(**some)).answer(labels[rows])
    assert np.array_equal(total, answer)


@each_query
def test_one_label_moves_one_sum_by_what_its_noise_is_for(name):
    query, worst = QUERIES[name], 0
    for row in range(ROWS):
        labels, sums = random_labels(row), []
        for label in (labels[row], *WORST):
            labels[row] = label
            sums.append(query.answer(labels)[0])
        gaps = [np.abs(one - other) for one in sums for other in sums]
        assert max(np.count_nonzero(gap) for gap in gaps) <= 1
        worst = max(worst, *(int(gap.sum()) for gap in gaps))
    assert STEPS / 2 < worst <= STEPS == query.sensitivity


def test_one_label_moves_the_counts_of_distances_by_two():
    query = DistanceCounts(BOUNDS, RowRules(prediction=PREDICTION))
    labels = random_labels(5)
    (before,) = query.answer(labels)
    distances = np.abs(np.clip(labels, *BOUNDS) - PREDICTION)
    by_hand = [int(((distances <= 5 / 2**k) & (distances > 5 / 2 ** (k + 1))).sum()) for k in range(8)]
    assert before[:8].tolist() == by_hand
    assert before.sum() == ROWS
    for row in range(ROWS):
        for label in WORST:
            other = labels.copy()
            other[row] = label
            assert np.abs(query.answer(other) - before).sum() <= 2 == query.sensitivity


EPSILON = Fraction(5)
"""For 300 rows: three stages of sums, and the counts of distances between them."""


class Recorder(LabelAccess):
    """Remembers all queries."""

    def measure(self, query, epsilon):
        self.queries = [*getattr(self, "queries", []), query]
        return super().measure(query, epsilon)


def recorder(labels, epsilon, source):
    """Return an access that remembers queries, for ε that is paid."""
    return paid_access(labels, epsilon, source, Recorder)


def test_what_is_summed_follows_from_features_and_noisy_sums_alone(scripted):
    """Groups, predictions and limits are the same for other labels; each row is in one group of each stage."""
    table, runs = full_table(300), []
    for seed in (1, 2):
        access = recorder(random_labels(seed, 300), EPSILON, np.random.default_rng(5))
        model = fit_sums(table, BOUNDS, access)
        assert access.remaining == 0
        assert len(access.statistics) == len(access.queries) == 6, "one kind of counts was suspicious"
        runs.append((access.queries, model))
    for one, other in zip(runs[0][0], runs[1][0], strict=True):
        assert replace(one, row_rules=None) == replace(other, row_rules=None)
        assert np.array_equal(one.row_rules.group, other.row_rules.group)
        assert np.array_equal(one.row_rules.prediction, other.row_rules.prediction)
        if one.row_rules.group is not None:
            group = one.row_rules.group
            assert group.shape == (300,)
            assert np.unique(group).tolist() == list(range(one.groups)), "no group is empty or missing"
    assert np.array_equal(runs[0][1].linear.weights, runs[1][1].linear.weights)


@pytest.mark.parametrize("columns", [2, 15, 301])
def test_rows_have_the_same_group_and_prediction_in_any_batch(columns):
    table, access = full_table(320, columns), recorder(random_labels(3, 320), Fraction(4), seeded(1))
    fit_sums(table, BOUNDS, access)
    queries = access.queries
    assert max(query.size for query in queries if query.row_rules.group is not None) > 2
    order = np.random.default_rng(1).permutation(320)
    for known in (query.row_rules for query in queries):
        for rows in (order[:1], order[1:18], order[18:]):
            again = known.without_rows().on(table.X[rows])
            assert known.group is None or (again.group == known.group[rows]).all()
            assert known.prediction is None or (again.prediction == known.prediction[rows]).all()


@pytest.mark.parametrize("seed", range(2))
def test_one_label_spends_no_more_than_epsilon_over_all_stages(seed, scripted):
    table, runs, labels = full_table(300), [], random_labels(seed, 300)
    for label in (labels[9], *WORST):
        scripted.clear()
        labels[9] = label
        fit_sums(table, BOUNDS, paid_access(labels, EPSILON, np.random.default_rng(seed)))
        runs.append(list(scripted))
    most = max(spent(one, other) for one in runs for other in runs)
    assert 0 < most <= EPSILON


# ---- nobody trusted -------------------------------------------------------------------------------------------


class TouchedError(Exception):
    """Labels were counted or summed."""


@pytest.fixture
def untouchable(monkeypatch):
    def touch(*_):
        raise TouchedError

    monkeypatch.setattr(LabelAccess, "_add_up", touch)


def fit_locally(rows=2_000):
    model = ldp.LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS, trust="local", rounds=2, random_state=seeded(1))
    return model.fit(np.random.default_rng(1).normal(size=(rows, 2)), np.full(rows, 2.0))


def test_with_local_trust_no_sum_count_or_range_is_computed(untouchable):
    model = fit_locally()
    assert [charge.description for charge in model.charges_] == ["labels"]
    known = model.release_.label_summary
    assert (known.low, known.high, known.sums) == (*BOUNDS, 0)


def test_a_variant_that_forgets_local_trust_is_detected(untouchable, monkeypatch):
    release_sums = base.release_sums

    def forgets(table, access, plan, announce, earlier=None):
        access.remaining = plan.for_labels
        return release_sums(table, access, FitRequest(epsilon=2.0, bounds=BOUNDS).plan(access.rows), announce)

    monkeypatch.setattr(base, "release_sums", forgets)
    with pytest.raises(TouchedError):
        fit_locally()


# ---- loose bounds ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bounds_a_hundred_times_too_wide_cost_little(set_constants):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3_000, 3))
    y = np.clip(2.5 + X[:, 0] + 0.4 * rng.normal(size=3_000), 0, 5)

    def error(bounds):
        model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=bounds, random_state=seeded(3))
        return np.mean((model.fit(X[:2_000], y[:2_000]).predict(X[2_000:]) - y[2_000:]) ** 2)

    tight, wide = error((0.0, 5.0)), error((-100.0, 400.0))
    assert wide < 1.6 * tight < 0.6 * y.var()
    set_constants({f"learning.epsilon_split.FEWEST_FOR_{name}": np.inf for name in ("RANGE", "SPREAD")})
    assert error((-100.0, 400.0)) > 1.6 * tight, "it is the search for place and scale that helps"
