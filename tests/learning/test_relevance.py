"""Lengths of columns: learnt from noisy sums and private labels alone, and worth it where few columns interact."""

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.learning import relevance
from labeldp.learning.bayes import Posterior, fit_linear, unknown_variance
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import Limits
from labeldp.learning.groups import Groups, NoisySums
from labeldp.learning.learner import PrivateRows
from labeldp.learning.relevance import first_lengths

COLUMNS = 6


def table_of(rows, columns=COLUMNS):
    X = np.random.default_rng(0).uniform(-1, 1, (rows, columns))
    return FeatureTable.fit(X)


def noisy_sums(table, groups):
    """Sums over groups of an interaction of the first two columns."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, groups, table.rows)
    members = np.eye(groups, dtype=np.float32)[group]
    features = members.T @ np.concatenate([piece for _, piece in table.pieces(np.arange(table.rows))])
    sums = members.T @ (0.3 * table.X[:, 0] * table.X[:, 1]) + rng.normal(size=groups)
    sizes = members.sum(axis=0).astype(float)
    return NoisySums(Groups(group, sizes, features, sizes), sums, 1.0)


@pytest.mark.parametrize(
    ("labels", "noise", "step"),
    [(0, 0.05, 0.02), (900, 0.05, 0.02), (900, 1e-6, 0.002)],
    ids=["few averages", "more averages than features", "hardly any noise"],
)
def test_the_slope_of_the_evidence_is_that_of_differences(labels, noise, step):
    table, rng = table_of(1_000).with_lengths(first_lengths(COLUMNS), 0.0), np.random.default_rng(2)
    linear = Posterior(np.zeros(1), 0.5, 0.02, noise / 5, (), (0.01, 0.005, 0.001, 0.001, 0.01))
    rows = np.arange(labels)
    private = [PrivateRows(rows, 0.5 + 0.3 * table.X[rows, 0] * table.X[rows, 1], noise, 0)] if labels else []
    sums, limits = [noisy_sums(table, 40)], Limits(0.0, 1.0)
    evidence = relevance.gather_evidence(table, linear, limits, sums, private, 0.05)
    center, point = np.log(first_lengths(COLUMNS)), 0.3 * rng.normal(size=4 + COLUMNS)
    slope = evidence.loss(point, center)[1]
    for k in range(point.size):
        move = step * np.eye(point.size)[k]
        difference = evidence.loss(point + move, center)[0] - evidence.loss(point - move, center)[0]
        assert slope[k] == pytest.approx(difference / (2 * step), rel=0.02, abs=0.02)


def fit(X, y, epsilon=1.0):
    return ldp.ModelReleaseRegressor(epsilon=epsilon, bounds=(-4, 4), random_state=seeded(5)).fit(X, y)


@pytest.mark.slow
def test_two_columns_of_eight_that_interact_are_found(set_constants):
    X = np.random.default_rng(4).uniform(-1, 1, (6_000, 8))
    y = 4 * X[:, 2] * X[:, 5] + 0.3 * np.random.default_rng(5).normal(size=6_000)
    model = fit(X[:5_000], y[:5_000])
    public, _ = model.public_model()
    assert set(np.argsort(-np.abs(public.turns).mean(axis=1))[:2]) == {2, 5}

    def error(model):
        return np.mean((model.predict(X[5_000:]) - y[5_000:]) ** 2)

    set_constants({"learning.relevance.MOST_COLUMNS": 1})
    assert error(model) < 0.5 * error(fit(X[:5_000], y[:5_000]))


def test_a_saved_model_with_interactions_predicts_the_same_bits(tmp_path):
    X = np.random.default_rng(6).uniform(-1, 1, (1_500, 3))
    model = fit(X, 3 * X[:, 0] * X[:, 1])
    assert model.public_model()[0].turns is not None
    ldp.save_model(model, tmp_path / "m.json")
    assert ldp.load_model(tmp_path / "m.json").predict(X).tobytes() == model.predict(X).tobytes()


def test_the_average_over_choices_is_that_of_dense_formulas():
    X = np.random.default_rng(0).normal(size=(90, 4))
    table = FeatureTable.fit(X)
    labels, block, rows = X[:, 3] + 0.1 * X[:, 1], table.public.block, np.arange(90)
    choices = unknown_variance(6.0, few=True)[::5]
    observed = [table.observations(rows, labels, 0.3)]
    model = fit_linear(observed, block, mean=0.0, mean_variance=3.0, choices=choices)
    features, totals = table.features(rows).astype(float), sorted({e + r for _, e, r in choices})
    scores, weights = [], []
    for k, (mix, e, r) in enumerate([*(((0,) * 5, 0, total) for total in totals), *choices]):
        prior = np.append(np.array(mix)[block] * e, 3.0)
        covariance = (features * prior) @ features.T + (r + 0.3) * np.eye(90)
        dual = np.linalg.solve(covariance, labels)
        chance = 0.1 / len(totals) if k < len(totals) else 0.9 / len(choices)
        scores.append(np.log(chance) - 0.5 * labels @ dual - 0.5 * np.linalg.slogdet(covariance)[1])
        weights.append(prior * (features.T @ dual))
    posterior = np.exp(np.array(scores) - max(scores))
    np.testing.assert_allclose(model.weights, posterior / posterior.sum() @ np.array(weights), atol=1e-2)
