"""A small version of benchmarks/accuracy: would catch a regressor that got worse."""

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded

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
