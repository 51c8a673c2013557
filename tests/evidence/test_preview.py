"""A preview says before any label is read what a release, a score and a model would have."""

import importlib
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import labeldp as ldp
from helpers import seeded

SITE = Path(__file__).parents[2] / "docs" / "choose.md"
BOUNDS = (0.0, 200.0)
ROWS = 20_000
LABELS = np.random.default_rng(0).uniform(*BOUNDS, ROWS)


class Zero:
    """A model at the lower bound: one label moves its squared error as far as it can."""

    def predict(self, X):
        return np.zeros(len(X))


def expected(epsilon, **options):
    return ldp.preview(rows=ROWS, bounds=BOUNDS, epsilon=epsilon, **options).budgets[0]


@pytest.mark.parametrize("prior", [None, ldp.Histogram([0, 50, 200], [0.9, 0.1])])
def test_the_error_of_a_label_is_that_of_a_release(prior):
    """The mean square of 20,000 noises varies by about 1 %: 6 % is beyond five standard errors."""
    rng = np.random.default_rng(1)
    labels = LABELS if prior is None else np.where(rng.random(ROWS) < 0.9, LABELS / 4, 50 + 0.75 * LABELS)
    how = {"epsilon_prior": 0} if prior is None else {"prior": prior}
    release = ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, random_state=seeded(0), **how)
    error = math.sqrt(np.mean((release.labels - labels) ** 2))
    assert error == pytest.approx(expected(1.0, prior=prior).label, rel=0.06)


def test_a_score_at_the_stated_error_is_twice_its_noise():
    """The squares of 200 scores' errors have a mean that varies by 16 %: 80 % is five standard errors."""
    least = expected(0.5).score
    X, labels = np.zeros((ROWS // 10, 1)), np.full(ROWS // 10, least)
    paid = {"epsilon": 0.5, "bounds": BOUNDS, "ledger": ldp.Ledger()}
    scores = [ldp.private_score(Zero(), X, labels, random_state=seeded(k), **paid).mse for k in range(200)]
    noise = math.sqrt(np.mean((np.array(scores) - least**2) ** 2))
    assert 2 * noise == pytest.approx(least**2, rel=0.4)


def test_where_a_score_would_be_refused_it_shows_nothing():
    assert math.isinf(ldp.preview(rows=100, bounds=BOUNDS, epsilon=0.1).budgets[0].score)
    with pytest.raises(ldp.errors.ParameterError, match="would say nothing"):
        ldp.private_score(Zero(), np.zeros((10, 1)), np.zeros(10), epsilon=0.1, bounds=BOUNDS)
    assert "nothing" in ldp.preview(rows=100, bounds=BOUNDS, epsilon=0.1).summary()


@pytest.mark.slow
def test_more_budget_is_never_worse_and_the_curator_knows_the_mean_best():
    curve = ldp.preview(rows=ROWS, bounds=BOUNDS, epsilon=np.geomspace(0.02, 20, 25)).budgets
    for name in ("label", "hundred", "thousand", "mean", "curator_mean", "score"):
        values = [getattr(point, name) for point in curve]
        assert values == sorted(values, reverse=True)
    assert all(p.curator_mean < p.mean < p.thousand < p.hundred < p.label for p in curve)


@pytest.mark.parametrize("target", ["label", "mean", "curator_mean", "score", "coefficient"])
def test_an_error_that_is_needed_gives_the_least_epsilon_that_reaches_it(target):
    options = {"rows": ROWS, "bounds": BOUNDS, "columns": 4}
    needed = getattr(ldp.preview(**options, epsilon=0.8).budgets[0], target)
    (found,) = ldp.preview(**options, target_error=needed, target=target).budgets
    below = ldp.preview(**options, epsilon=round(found.epsilon - 0.01, 4)).budgets[0]
    assert found.epsilon <= 0.8
    assert getattr(found, target) <= needed < getattr(below, target)


UNREACHABLE = {
    "target_error": {"target_error": 1e-9},
    "epsilon": {"target_error": 1.0, "epsilon": 1.0},
    "target": {"target_error": 1.0, "target": "coefficient"},
}


@pytest.mark.parametrize("option", UNREACHABLE)
def test_an_error_that_no_epsilon_reaches_is_refused(option):
    with pytest.raises(ldp.errors.ParameterError) as refused:
        ldp.preview(rows=ROWS, bounds=BOUNDS, **UNREACHABLE[option])
    assert refused.value.option == option


def test_the_range_of_a_models_quality_holds_the_worst_and_the_best_table_measured():
    for share in (point.model for point in ldp.preview(rows=ROWS, bounds=BOUNDS).budgets):
        assert share.low < 0.2 < share.middle < share.high == 1.0  # a table of weak signal is among them
        assert share.tables >= 10


WRONG = {"rows": 2.5, "bounds": (1, 1), "epsilon": [], "columns": ROWS, "prior": [1, 2], "rows_per_person": 0}


@pytest.mark.parametrize("option", WRONG)
def test_what_cannot_be_planned_is_refused_by_its_option(option):
    with pytest.raises(ldp.errors.ParameterError) as refused:
        ldp.preview(**{"rows": ROWS, "bounds": BOUNDS, option: WRONG[option]})
    assert refused.value.option == option


def test_odds_and_cautions_are_those_of_a_person_with_several_rows():
    plan = ldp.preview(rows=20_000, bounds=(0, 1), epsilon=2, rows_per_person=3)
    assert plan.table()[1][0] == ["odds grow by up to", "404×"]
    assert plan.cautions() == ldp.preview(rows=20_000, bounds=(0, 1), epsilon=6).cautions()
    assert plan.budgets == ldp.preview(rows=20_000, bounds=(0, 1), epsilon=2).budgets


def test_the_site_has_the_tables_of_today(monkeypatch):
    monkeypatch.syspath_prepend(SITE.parent)
    text = SITE.read_text(encoding="utf-8")
    assert importlib.import_module("choose").with_tables(text) == text


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::labeldp.errors.RepeatedReleaseWarning")
@pytest.mark.parametrize(("columns", "on"), [(0, "1"), (4, "a + b + c + d")])
def test_intervals_of_regression_tables_are_hardly_wider_than_forecast(columns, on):
    """A search for the range of labels takes a part of ε; medians of widths vary by a few percent."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(4000, 4)), columns=list("abcd"))
    y = np.clip(rng.normal(80, 20, 4000), *BOUNDS)
    plan = ldp.preview(rows=4000, bounds=BOUNDS, columns=columns, epsilon=0.3)
    tables = [ldp.private_ols(X, y, on=on, label="y", epsilon=0.3, bounds=BOUNDS) for _ in range(9)]
    halves = [np.diff(np.asarray(table.conf_int()), axis=1).ravel() / 2 for table in tables]
    found = np.median([half[-columns:].mean() for half in halves])
    assert found < 1.2 * plan.budgets[0].coefficient
