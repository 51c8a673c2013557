"""The paper's experiments: figures as printed, columns that cost what they say, formulas that hold."""

import math

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.paper import published
from labeldp.paper.as_published import leaking_interval
from labeldp.paper.columns import COLUMNS, Cell, chosen_columns
from labeldp.paper.data import subsample
from labeldp.paper.error_formula import as_markdown as error_markdown
from labeldp.paper.error_formula import error_rows
from labeldp.paper.labels import constant, labels_for
from labeldp.paper.protocol import checked_budgets, prepared, protocol_for, seed_of, split
from labeldp.paper.runtime import GROWTH, grown, timings
from labeldp.paper.runtime import as_markdown as runtime_markdown
from paper_cases import small

BUDGETS = (0.05, 1.0, 8.0)


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
    assert published.parameters("criteo", 8.0) == (0.002, 70.0)


# ---- the protocol -----------------------------------------------------------------------------------


def test_schedules_are_those_of_the_text_and_of_the_code():
    text, code = protocol_for("crime"), protocol_for("crime", "code")
    assert (text.activation, code.activation) == ("relu", "elu")
    assert text.learning_rates() == pytest.approx([1e-3] * 25 + [1e-4] * 25)
    assert code.learning_rates() == pytest.approx([1e-3 * 0.5 ** (k // 10) for k in range(50)])
    criteo = protocol_for("criteo")
    assert (criteo.batch, criteo.optimiser, criteo.activation) == (8192, "rmsprop", "relu")
    wave = [1e-3 * (1 + math.cos(math.pi * k / 50)) / 2 for k in range(50)]
    assert criteo.learning_rates() == pytest.approx(wave)
    floor = [5e-6 + (1e-3 - 5e-6) * (1 + math.cos(math.pi * k / 50)) / 2 for k in range(50)]
    assert protocol_for("criteo", "code").learning_rates() == pytest.approx(floor)


def test_features_are_scaled_by_training_rows_alone():
    data = small()
    train, test = split(len(data.y), "housing", 0)
    scaled = protocol_for("housing", scale="standard")
    before = prepared(data, scaled, train)
    data.X[test] *= 100
    assert np.array_equal(prepared(data, scaled, train)[train], before[train])
    assert abs(before[train].mean()) < 1e-6
    assert np.array_equal(prepared(data, protocol_for("housing"), train), data.X.astype(np.float32))


def test_splits_and_seeds_depend_on_names_alone():
    train, test = split(100, "crime", 3)
    assert len(train) == 80
    assert sorted([*train, *test]) == list(range(100))
    assert np.array_equal(train, split(100, "crime", 3)[0])
    assert not np.array_equal(train, split(100, "crime", 4)[0])
    assert (
        seed_of("crime", 1) == 18945536972052580
    )  # the same on every machine, or results could not be made again
    assert seed_of("a", "bc") != seed_of("ab", "c")


@pytest.mark.parametrize("budgets", [[], [0.0], [-1.0], [30.0], [math.nan]])
def test_budgets_that_cannot_be_run_are_refused(budgets):
    with pytest.raises(ldp.ParameterError):
        checked_budgets(budgets)


def test_a_subsample_is_the_same_each_time_and_has_another_name():
    one, two = subsample(small(), 40), subsample(small(), 40)
    assert np.array_equal(one.X, two.X)
    assert published.figure(one.name, "Ours", 1.0) is None


# ---- columns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [k for k, c in COLUMNS.items() if c.private and c.kind == "network"])
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_every_private_column_costs_its_epsilon_in_all(key, epsilon):
    y = np.random.default_rng(0).uniform(0.2, 4.8, 400)
    made = labels_for(COLUMNS[key], y, (0.0, 5.0001), "housing", Cell(0, key, epsilon), 256)
    assert made.epsilon == epsilon
    assert made.delta == (1e-4 if key == "gaussian" else 0.0)
    again = labels_for(COLUMNS[key], y, (0.0, 5.0001), "housing", Cell(0, key, epsilon), 256)
    assert np.array_equal(made.values, again.values)
    other = labels_for(COLUMNS[key], y, (0.0, 5.0001), "housing", Cell(1, key, epsilon), 256)
    assert not np.array_equal(made.values, other.values)


def test_the_letter_is_algorithm_4_with_the_papers_parameters():
    y = np.random.default_rng(0).uniform(0.2, 4.8, 400)
    made = labels_for(COLUMNS["rp-letter"], y, (0.0, 5.0001), "housing", Cell(0, "rp-letter", 1.0), 256)
    assert "zeta 1.5, epsilon 0.992" in made.detail


def test_biased_and_debiased_columns_use_one_release():
    y = np.random.default_rng(0).uniform(0.2, 4.8, 400)
    plain, fair = (
        labels_for(COLUMNS[key], y, (0.0, 5.0001), "housing", Cell(0, key, 1.0), 256)
        for key in ("rp", "rp-debiased")
    )
    assert plain.detail == fair.detail
    slope, offset = np.polyfit(plain.values, fair.values, 1)
    assert np.allclose(slope * plain.values + offset, fair.values)


def test_what_is_published_leaks_and_says_so():
    y = np.random.default_rng(0).uniform(0.2, 4.8, 2000)
    column = COLUMNS["as-published"]
    made = labels_for(column, y, (0.0, 5.0001), "housing", Cell(0, column.key, 0.05), 256)
    assert math.isinf(made.epsilon)
    assert made.detail.startswith("NOT PRIVATE")
    assert column.heading.endswith("NOT PRIVATE")
    # One label moves the interval, with the same noise: no ε allows that.
    moved = y.copy()
    moved[0] = 0.01
    one, other = (leaking_interval(labels, "housing", 8.0, 256, seeded(1))[0] for labels in (y, moved))
    assert one != other
    with pytest.raises(ldp.ParameterError, match="no parameters"):
        leaking_interval(y, "housing", 0.7, 256, seeded(1))


def test_leaking_columns_need_a_word():
    assert "as-published" not in {c.key for c in chosen_columns()}
    assert "as-published" in {c.key for c in chosen_columns(include_non_private=True)}
    with pytest.raises(ldp.ParameterError, match="leaks"):
        chosen_columns(["as-published"])
    with pytest.raises(ldp.ParameterError, match="no column"):
        chosen_columns(["laplace", "lapalce"])


def test_the_private_constant_is_near_the_mean_and_pays_all():
    y = np.random.default_rng(0).uniform(0.2, 4.8, 5000)
    mean, cost = constant(y, (0.0, 5.0001), "housing", Cell(0, "constant", 1.0))
    assert cost == ldp.Budget(1.0)
    assert mean == pytest.approx(y.mean(), abs=14 * 5 / 5000)  # e^-14: a millionth
    assert mean != y.mean()


# ---- formulas, runtimes and growth ----------------------------------------------------------------------


def test_the_corrected_formula_agrees_with_counts_and_simulation():
    rows = list(error_rows(small(500), draws=20))
    assert len(rows) == 12
    for row in rows:
        assert row.formula == pytest.approx(row.exact, rel=1e-3)
        assert abs(row.deviations) < 5.5  # 12 rows: a false alarm in 10^6
        assert row.paper != pytest.approx(row.exact / 2, rel=0.02)
    assert "| housing | 0.05 |" in error_markdown(rows)


def test_runtimes_and_growth_are_measured():
    times = list(timings(small(200), rounds=1))
    assert {t.column for t in times} >= {"laplace", "rp-letter", "unbiased"}
    assert all(t.seconds > 0 and t.distinct <= t.rows == 160 for t in times)
    growths = {g.name: grown(g, (8, 16, 32), rounds=1) for g in GROWTH}
    text = runtime_markdown(times, growths)
    assert "6.19" in text
    assert "O(n₂²)" in text


def test_the_papers_search_and_ours_find_the_same_interval():
    search, ours = GROWTH[1].design, GROWTH[2].design
    prior = ldp.Histogram.from_counts(np.random.default_rng(1).random(60), (0.0, 1.0))
    assert search(prior, 60) == pytest.approx(ours(prior, 60))
