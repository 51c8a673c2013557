"""The paper's experiments: figures as printed, columns that cost what they say, networks, and what people see."""

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.paper import OneAtATime
from tests.reproduction.tiny_tables import quick, small, tiny

import labeldp as ldp
from helpers import seeded
from reproduction import as_published, errata, error_formula
from reproduction.as_published import leaking_interval
from reproduction.columns import COLUMNS, NO_PRIVACY, Cell, choose_columns
from reproduction.labels import TrainingRows, labels_for
from reproduction.networks import Network
from reproduction.plot import draw
from reproduction.protocol import seed_of, split
from reproduction.report import as_markdown
from reproduction.run import batch_of, plan
from reproduction.store import Result
from reproduction.summary import Summary
from reproduction.train import Trainer
from reproduction.workers import make_labels, pool

BOUNDS = (0.0, 5.0001)


def training_rows(rows=400):
    """Return synthetic rows with Housing's bounds and parameters."""
    y = np.random.default_rng(0).uniform(0.2, 4.8, rows)
    X = np.column_stack([y + np.random.default_rng(1).normal(size=rows), np.arange(rows) % 7])
    return TrainingRows(X, y, BOUNDS, "housing")


ROWS = training_rows()


def released(key, epsilon=1.0, *, trial=0, rows=ROWS):
    """Return the labels of a column."""
    return labels_for(Cell(trial, key, epsilon), rows)


# ---- the protocol -----------------------------------------------------------------------------------


def test_splits_and_seeds_depend_on_names_alone():
    train, test = split(100, "crime", 3)
    assert len(train) == 80
    assert sorted([*train, *test]) == list(range(100))
    assert np.array_equal(train, split(100, "crime", 3)[0])
    assert not np.array_equal(train, split(100, "crime", 4)[0])
    assert seed_of("crime", 1) == 18945536972052580  # on every machine, or results could not be repeated
    assert seed_of("a", "bc") != seed_of("ab", "c")


# ---- columns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [k for k, c in COLUMNS.items() if c.private and c.kind == "network"])
def test_every_private_column_costs_its_epsilon_in_all(key):
    labels = released(key)
    assert labels.epsilon == 1.0
    assert labels.delta == (1e-4 if key == "gaussian" else 0.0)
    assert np.array_equal(labels.values, released(key).values)
    assert not np.array_equal(labels.values, released(key, trial=1).values)
    assert key != "algorithm-4" or "zeta 1.5, epsilon 0.992" in labels.detail, (
        "Algorithm 4 with the paper's parameters"
    )


def test_what_is_published_leaks_and_says_so():
    labels = released("as-published", 0.05, rows=training_rows(2000))
    assert math.isinf(labels.epsilon)
    assert labels.detail.startswith("NOT PRIVATE")
    assert COLUMNS["as-published"].heading.endswith("NOT PRIVATE")
    # One label moves the interval, with the same noise: no ε allows that.
    y = training_rows(2000).y
    moved = np.concatenate([[0.01], y[1:]])
    one, other = (leaking_interval(labels, "housing", 8.0, 256, seeded(1))[0] for labels in (y, moved))
    assert one != other
    with pytest.raises(ldp.errors.ParameterError, match="no parameters"):
        leaking_interval(y, "housing", 0.7, 256, seeded(1))


def test_leaking_columns_must_be_asked_for():
    assert "as-published" not in {c.key for c in choose_columns()}
    assert "as-published" in {c.key for c in choose_columns(include_non_private=True)}
    for key in ("as-published", "gaussian-published", "as-published*zeta=2"):
        with pytest.raises(ldp.errors.ParameterError, match="leak"):
            choose_columns([key])


def test_a_column_that_does_not_exist_is_an_error_and_any_mechanism_is_a_column():
    with pytest.raises(ldp.errors.ParameterError, match="no column lapalce"):
        choose_columns(["laplace", "lapalce"])
    for key in ("laplace*zeta=2", "algorithm-4*rho=2", "algorithm-4*zeta=0"):
        with pytest.raises(ldp.errors.ParameterError):
            choose_columns([key])
    with pytest.raises(ldp.errors.ParameterError):
        labels_for(Cell(0, "mine", 1.0), ROWS)
    two_points = released("two-point")
    assert np.unique(two_points.values).size == 2
    assert two_points.epsilon == 1.0


def test_multiples_of_zeta_and_sigma_have_the_same_noise_and_other_parameters():
    columns = choose_columns(["algorithm-4", "laplace"], zeta="×0.5,1,2", sigma="2")
    keys = [column.key for column in columns]
    assert keys == ["algorithm-4", "laplace", *(f"algorithm-4*{c}" for c in ("zeta=0.5", "zeta=2", "sigma=2"))]
    usual, half, wide = (released(key).detail for key in (keys[0], keys[2], keys[4]))
    assert "zeta 1.5" in usual
    assert "zeta 0.75" in half
    assert "zeta 1.5" in wide
    assert wide != usual


# ---- as published -----------------------------------------------------------------------------------


def test_baselines_as_published_have_five_outputs_and_rounded_labels():
    assert np.unique(released("unbiased-published").values).size <= 5
    labels, bins = as_published.DESIGNS["rr-on-bins-published"](ROWS.y, "housing", BOUNDS, 1.0)
    assert np.allclose(labels * 100, np.rint(labels * 100))
    assert len(bins.outputs) > 1
    noise = released("gaussian-published", 8.0).values - ROWS.y
    classical = as_published.classical_sigma("housing", BOUNDS, 8.0, 1e-4)
    assert abs(noise.std() / classical - 1) < 0.2  # 400 draws: a false alarm in 10^7


# ---- formulas, runtimes and growth ----------------------------------------------------------------------


def test_the_corrected_formula_agrees_with_counts_and_simulation():
    rows = list(error_formula.error_rows(small(500), draws=20))
    assert len(rows) == 12
    for row in rows:
        assert row.formula == pytest.approx(row.exact, rel=1e-3)
        assert abs(row.deviations) < 5.5  # 12 rows: a false alarm in 10^6
        assert row.paper != pytest.approx(row.exact / 2, rel=0.02)
    assert "| housing | 0.05 |" in error_formula.as_markdown(rows)


def test_faults_of_the_paper_are_counted():
    assert len(errata.bold_faults()) == 18
    nodes, densities = np.array([0.0, 1.0]), np.array([1.0])
    assert errata.algorithm_1(nodes, densities, 1.0, 0.05) == (1.0, 0.0)
    assert errata.algorithm_1(nodes, densities, 1.0, 0.5) == (0.0, 1.0)
    assert 0 < errata.count_reversed(50) < 50


# ---- networks ---------------------------------------------------------------------------------------------


def example(data, protocol, trials=2, columns=("laplace", "rp")):
    """Return a trainer, and a batch with the labels of some columns at two budgets."""
    table = tiny(columns, budgets=(1.0, 8.0), trials=trials, data=data, protocol=protocol)
    train, test = split(len(data.y), "housing", 0)
    trainer = Trainer(Network.of(data, protocol), protocol, len(train), len(test))
    (chunk,) = plan(table, 99, trainer.devices)
    with pool(data, protocol, 1):
        labels = [[make_labels(Cell(t, c.key, e)) for c, e in chunk.networks] for t in chunk.trials]
    return trainer, batch_of(table, chunk, labels)


@pytest.mark.slow
def test_networks_with_categories_together_equal_networks_one_at_a_time():
    protocol = quick(optimiser="rmsprop", scale="standard")
    trainer, batch = example(small(70, categories=True), protocol)
    errors = trainer.fit(batch)
    assert errors.shape[0] == 2
    alone = OneAtATime(trainer.network, protocol, trainer.rows, scan=True)
    for trial in range(2):
        for k in (0, 1, 3):
            assert alone.fit(batch, trial, k) == pytest.approx(errors[trial, k], rel=1e-4)


def test_labels_depend_on_no_test_row():
    data = small(120)
    _, test = split(len(data.y), "housing", 0)
    y = data.y.copy()
    y[test] = 0.0
    made = []
    for one in (data, replace(data, y=y)):
        with pool(one, quick(), 1):
            made.append([make_labels(Cell(0, key, 4.0)).values for key in ("rp", "labels-with-x")])
    assert all(np.array_equal(first, second) for first, second in zip(*made, strict=True))


# ---- what people see --------------------------------------------------------------------------------------


def summary_of(table, budgets=(1.0, 8.0), trials=2):
    """Return a summary of random results."""
    rng = np.random.default_rng(0)
    cells = [(c.key, b, c.private, rng.uniform(0.5, 2)) for c in table.columns for b in budgets]
    cells.append((NO_PRIVACY.key, math.inf, False, 0.6))
    results = [
        Result("housing", t, key, b, error * (1 + t / 50), private, b, 0.0, "")
        for t in range(trials)
        for key, b, private, error in cells
    ]
    return Summary(results, table.columns)


@pytest.mark.slow
def test_not_private_is_marked_in_table_and_plot():
    table = tiny(tuple(COLUMNS), budgets=(1.0, 8.0, math.inf))
    summary = summary_of(table)
    text = as_markdown(table, summary)
    for line in text.splitlines():
        if line.startswith("| +∞"):
            figures = [c for c in line.split("|")[2:-1] if "±" in c.split("<br>")[0]]
            assert figures
            assert all("NOT PRIVATE" in c or "Unbiased" in c for c in figures)
        if "as published" in line.lower() and line.startswith(("| ε", "- **")):
            assert "NOT PRIVATE" in line
    drawing = draw(table, summary)
    names = [t.get_text() for axis in drawing.axes if axis.get_legend() for t in axis.get_legend().get_texts()]
    for name in names:
        assert ("as published" in name or "true labels" in name) == ("NOT PRIVATE" in name)
    assert sum("NOT PRIVATE" in name for name in names) == 6


def test_bold_is_by_a_paired_test_over_trials():
    table = tiny(("laplace", "rp", "constant"), budgets=(1.0,), trials=6)
    splits = np.linspace(1.0, 3.0, 6)  # errors differ by split far more than by column
    errors = {"laplace": splits, "rp": splits * np.linspace(1.05, 1.06, 6), "constant": splits[::-1] * 1.1}
    rows = [
        Result("housing", trial, key, 1.0, float(error), True, 1.0, 0.0, "")
        for key, by_trial in errors.items()
        for trial, error in enumerate(by_trial)
    ]
    summary = Summary(rows, table.columns)
    bold = {column.key: summary.among_the_best(column, 1.0) for column in table.columns}
    assert bold == {"laplace": True, "rp": False, "constant": True}
    # Spreads overlap by far, so the paper's rule would print all three in bold.
    assert splits.std() > 5 * (errors["rp"] - splits).mean()


def test_the_papers_figures_of_the_real_log_stand_beside_the_twins():
    data = replace(small(), name="criteo twin")
    table = tiny(("laplace", "constant"), budgets=(1.0, 8.0), data=data)
    text = as_markdown(table, summary_of(table))
    assert "8854.12 ± 267.56" in text
    assert "of the real log" in text
    assert "× the paper's error" not in text
