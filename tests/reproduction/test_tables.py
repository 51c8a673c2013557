"""The paper's experiments: figures as printed, columns that cost what they say, formulas that hold."""

import math

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from reproduction import error_formula, published, runtime
from reproduction.as_published import leaking_interval
from reproduction.columns import COLUMNS, Cell, choose_columns
from reproduction.data import load, subsample
from reproduction.labels import labels_for, private_mean
from reproduction.protocol import network_features, parse_budgets, protocol_for, seed_of, split
from reproduction_cases import small

BOUNDS = (0.0, 5.0001)


def released(key, epsilon=1.0, *, trial=0, rows=400):
    """Return the labels of a column on synthetic data with Housing's bounds and parameters."""
    y = np.random.default_rng(0).uniform(0.2, 4.8, rows)
    return labels_for(Cell(trial, key, epsilon), y, BOUNDS, "housing", 256)


# ---- what the paper prints --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "column", "epsilon", "text", "bold"),
    [
        ("crime", "Laplace", 0.05, "8.3956 ± 3.1062", False),
        ("crime", "Ours", 0.05, "0.0679 ± 0.0070", True),
        ("crime", "Gaussian", math.inf, "0.0182 ± 0.0016", True),
        ("crime", "Unbiased", 8.0, "0.0204 ± 0.0017", True),
        ("housing", "Unbiased", 0.8, "1.42420 ± 0.0700", False),
        ("housing", "Ours", 8.0, "0.5990 ± 0.0258", True),
        ("housing", "RRonBins", 2.0, "1.0917 ± 0.1835", False),
        ("criteo", "Ours", 0.5, "6302.61 ± 6246", False),
        ("criteo", "Gaussian", 0.05, "16803328.94 ± 998367.25", False),
        ("criteo", "Unbiased", math.inf, "2798.53 ± 29.11", True),
    ],
)
def test_figures_are_those_printed_in_the_paper(dataset, column, epsilon, text, bold):
    figure = published.figure(dataset, column, epsilon)
    assert (figure.text, figure.bold) == (text, bold)


def test_every_table_has_all_budgets_and_columns():
    for dataset in ("crime", "housing", "criteo"):
        for epsilon in published.BUDGETS:
            assert all(published.figure(dataset, column, epsilon) for column in published.COLUMNS)
            assert (published.parameters(dataset, epsilon) is None) == math.isinf(epsilon)
    assert published.figure("diabetes", "Ours", 1.0) is None
    assert published.parameters("crime", 4.0) == (4 / 3.5, 0.4)
    assert published.parameters("housing", 0.8) == (0.01, 2.2)
    assert published.parameters("criteo", 8.0) == (0.002, 70.0)


# ---- the protocol -----------------------------------------------------------------------------------


def test_schedules_are_those_of_the_text_and_of_the_code():
    wave = (1 + np.cos(np.pi * np.arange(50) / 50)) / 2
    for dataset, source, rates in (
        ("crime", "text", [1e-3] * 25 + [1e-4] * 25),
        ("crime", "code", [1e-3 * 0.5 ** (k // 10) for k in range(50)]),
        ("criteo", "text", 1e-3 * wave),
        ("criteo", "code", 5e-6 + (1e-3 - 5e-6) * wave),
    ):
        assert protocol_for(dataset, source).learning_rates() == pytest.approx(rates)


def test_networks_are_those_of_the_text_and_of_the_code():
    assert [protocol_for("crime", source).activation for source in ("text", "code")] == ["relu", "elu"]
    criteo = protocol_for("criteo")
    assert (criteo.batch, criteo.optimiser, criteo.activation) == (8192, "rmsprop", "relu")


def test_features_are_scaled_by_training_rows_alone():
    data = small()
    train, test = split(len(data.y), "housing", 0)
    scaled = protocol_for("housing", scale="standard")
    before = network_features(data, scaled, train)
    data.X[test] *= 100
    assert np.array_equal(network_features(data, scaled, train)[train], before[train])
    assert abs(before[train].mean()) < 1e-6
    assert np.array_equal(network_features(data, protocol_for("housing"), train), data.X.astype(np.float32))


def test_splits_and_seeds_depend_on_names_alone():
    train, test = split(100, "crime", 3)
    assert len(train) == 80
    assert sorted([*train, *test]) == list(range(100))
    assert np.array_equal(train, split(100, "crime", 3)[0])
    assert not np.array_equal(train, split(100, "crime", 4)[0])
    assert seed_of("crime", 1) == 18945536972052580  # on every machine, or results could not be repeated
    assert seed_of("a", "bc") != seed_of("ab", "c")


@pytest.mark.parametrize("budgets", ["", "one", "0", "-1", "30", "nan"])
def test_budgets_that_cannot_be_run_are_refused(budgets):
    with pytest.raises(ldp.ParameterError, match="budgets must be numbers"):
        parse_budgets(budgets)


def test_data_and_protocols_that_do_not_exist_are_refused():
    for call, message in (
        (lambda: load("diabetes"), "data sets are crime, housing, criteo"),
        (lambda: load("crime", twin=1000), "only criteo has a twin"),
        (lambda: protocol_for("crime", "both"), "text or code"),
        (lambda: protocol_for("crime", scale="log"), "auto, none or standard"),
    ):
        with pytest.raises(ldp.ParameterError, match=message):
            call()


@pytest.mark.parametrize("categories", [False, True])
def test_a_subsample_is_the_same_each_time_and_has_no_published_figures(categories):
    one, two = (subsample(small(categories=categories), 40) for _ in range(2))
    assert one.X.shape == (40, 5)
    assert np.array_equal(one.X, two.X)
    assert not categories or one.ids.shape == (40, 2)
    assert published.figure(one.name, "Ours", 1.0) is None


# ---- columns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [k for k, c in COLUMNS.items() if c.private and c.kind == "network"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_every_private_column_costs_its_epsilon_in_all(key, epsilon):
    labels = released(key, epsilon)
    assert labels.epsilon == epsilon
    assert labels.delta == (1e-4 if key == "gaussian" else 0.0)
    assert np.array_equal(labels.values, released(key, epsilon).values)
    assert not np.array_equal(labels.values, released(key, epsilon, trial=1).values)


def test_the_letter_is_algorithm_4_with_the_papers_parameters():
    assert "zeta 1.5, epsilon 0.992" in released("rp-letter").detail


def test_biased_and_debiased_columns_use_one_release():
    biased, debiased = released("rp"), released("rp-debiased")
    assert biased.detail == debiased.detail
    slope, offset = np.polyfit(biased.values, debiased.values, 1)
    assert np.allclose(slope * biased.values + offset, debiased.values)


def test_what_is_published_leaks_and_says_so():
    labels = released("as-published", 0.05, rows=2000)
    assert math.isinf(labels.epsilon)
    assert labels.detail.startswith("NOT PRIVATE")
    assert COLUMNS["as-published"].heading.endswith("NOT PRIVATE")
    # One label moves the interval, with the same noise: no ε allows that.
    y = np.random.default_rng(0).uniform(0.2, 4.8, 2000)
    moved = np.concatenate([[0.01], y[1:]])
    one, other = (leaking_interval(labels, "housing", 8.0, 256, seeded(1))[0] for labels in (y, moved))
    assert one != other
    with pytest.raises(ldp.ParameterError, match="no parameters"):
        leaking_interval(y, "housing", 0.7, 256, seeded(1))


def test_leaking_columns_must_be_asked_for():
    assert "as-published" not in {c.key for c in choose_columns()}
    assert "as-published" in {c.key for c in choose_columns(include_non_private=True)}
    with pytest.raises(ldp.ParameterError, match="leaks"):
        choose_columns(["as-published"])
    with pytest.raises(ldp.ParameterError, match="no column lapalce"):
        choose_columns(["laplace", "lapalce"])


def test_criteo_runs_regressors_only_if_named():
    assert "regressor" not in {c.kind for c in choose_columns(dataset="criteo")}
    assert choose_columns(["model-regressor"], dataset="criteo") == (COLUMNS["model-regressor"],)


def test_the_private_constant_is_near_the_mean_and_costs_epsilon():
    y = np.random.default_rng(0).uniform(0.2, 4.8, 5000)
    mean, cost = private_mean(Cell(0, "constant", 1.0), y, BOUNDS, "housing")
    assert cost == ldp.Budget(1.0)
    assert mean == pytest.approx(y.mean(), abs=14 * 5 / 5000)  # e^-14: a millionth
    assert mean != y.mean()


# ---- formulas, runtimes and growth ----------------------------------------------------------------------


def test_the_corrected_formula_agrees_with_counts_and_simulation():
    rows = list(error_formula.error_rows(small(500), draws=20))
    assert len(rows) == 12
    for row in rows:
        assert row.formula == pytest.approx(row.exact, rel=1e-3)
        assert abs(row.deviations) < 5.5  # 12 rows: a false alarm in 10^6
        assert row.paper != pytest.approx(row.exact / 2, rel=0.02)
    assert "| housing | 0.05 |" in error_formula.as_markdown(rows)


def test_runtimes_and_growth_are_measured_beside_the_papers():
    times = list(runtime.timings(small(200), rounds=1))
    assert {t.column for t in times} >= {"laplace", "rp-letter", "unbiased"}
    assert all(t.seconds > 0 and t.distinct <= t.rows == 160 for t in times)
    growths = {g.name: runtime.design_times(g, (8, 16, 32), rounds=1) for g in runtime.GROWTH}
    text = runtime.as_markdown(times, growths)
    assert "6.19" in text
    assert "O(n₂²)" in text


def test_the_papers_search_and_ours_find_the_same_interval():
    search, ours = runtime.GROWTH[1].design, runtime.GROWTH[2].design
    prior = ldp.Histogram.from_counts(np.random.default_rng(1).random(60), (0.0, 1.0))
    assert search(prior, 60) == pytest.approx(ours(prior, 60))
