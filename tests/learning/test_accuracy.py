"""A small version of benchmarks/accuracy: would catch a regressor that got worse."""

import os
from pathlib import Path

import numpy as np
import pytest
from benchmarks.accuracy.methods import Cell, measure

import labeldp as ldp
from helpers import seeded

FOLDER = Path(os.environ.get("LABELDP_DATA", "nowhere"))
needs_data = pytest.mark.skipif(
    not (FOLDER / "communities.data.gz").exists(), reason="set LABELDP_DATA to a folder with communities.data.gz"
)


MEASURED = {
    ("labels", 1.0): (0.0216, 0.0025),
    ("model", 0.3): (0.0260, 0.0027),
}
"""Mean and standard deviation over splits, from benchmarks/accuracy.md; the private constant has 0.0534."""


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize(("regressor", "epsilon"), MEASURED)
def test_errors_on_crime_stay_near_what_was_measured(regressor, epsilon):
    """Two splits are within five standard deviations of their mean: a false alarm in a million runs."""
    errors = [measure(Cell(split, 0, "crime", regressor, epsilon))["error"] for split in range(2)]
    mean, deviation = MEASURED[regressor, epsilon]
    assert np.mean(errors) < mean + 5 * deviation / np.sqrt(2) < 0.0534


SURVEY = ldp.evidence.make_survey(3500)


def relative_error(regressor, epsilon, seed):
    """Return the error on a synthetic survey over that of the private mean with the whole ε, as expected."""
    X, y, (low, high) = SURVEY.features, SURVEY.income, SURVEY.bounds
    rows = np.random.default_rng(seed).permutation(len(y))
    train, test = rows[:1500], rows[1500:]
    model = regressor(epsilon=epsilon, bounds=(low, high), random_state=seeded(seed)).fit(X[train], y[train])
    noise = 2 * ((high - low) / train.size / epsilon) ** 2
    constant = np.mean((y[test] - y[train].mean()) ** 2) + noise
    return np.mean((model.predict(X[test]) - y[test]) ** 2) / constant


@pytest.mark.slow
@pytest.mark.parametrize("regressor", [ldp.LabelReleaseRegressor, ldp.ModelReleaseRegressor])
def test_on_a_synthetic_survey_nothing_is_worse_than_the_private_mean_and_a_fair_budget_is_much_better(regressor):
    tiny = [relative_error(regressor, 0.03, seed) for seed in range(3)]
    assert np.mean(tiny) < 1.1
    assert relative_error(regressor, 3.0, seed=0) < 0.75
