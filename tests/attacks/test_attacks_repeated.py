"""Reconstruction from repeated release: it works, as fast as the theory says, and the ledger shows the price."""

import numpy as np
import pytest

import labeldp as ldp

ROWS = 3000
LABELS = np.random.default_rng(1).uniform(0, 5, ROWS)
EPSILON = 0.5


def release(ledger):
    return ldp.privatize(LABELS, epsilon=EPSILON, bounds=(0, 5), mechanism="two-point", ledger=ledger)


@pytest.mark.parametrize("times", [1, 16, 100])
def test_the_average_of_r_releases_is_root_r_closer_and_the_ledger_shows_r_times_epsilon(times):
    """The error of 3,000 averages is known to 1.3 %; 10 % off is eight standard deviations."""
    ledger = ldp.Ledger()
    releases = [release(ledger) for _ in range(times)]
    error = np.sqrt(np.mean((np.mean([r.labels for r in releases], axis=0) - LABELS) ** 2))
    one = np.sqrt(releases[0].mechanism.unbiased_variance(LABELS).mean())
    assert error == pytest.approx(one / np.sqrt(times), rel=0.1)
    assert ledger.total == ldp.Budget(times * EPSILON)
    assert len(ledger.charges) == times


def test_predicting_again_tells_nothing_new():
    """A fitted model is a constant: no noise is drawn that an average could take out."""
    X = np.random.default_rng(2).normal(size=(60, 2))
    for make in (ldp.LabelReleaseRegressor, ldp.ModelReleaseRegressor):
        model = make(epsilon=1.0, bounds=(0, 5)).fit(X, LABELS[:60])
        total = model.ledger_.total
        assert np.array_equal(model.predict(X), model.predict(X))
        assert model.ledger_.total == total == ldp.Budget(1.0)
