"""Length scales of columns: learnt from noisy sums and private labels alone; a gain where few columns interact."""

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import Limits
from labeldp.learning.model_average import average_priors, prior_grid


def fit(X, y, epsilon=1.0, seed=5):
    return ldp.ModelReleaseRegressor(epsilon=epsilon, bounds=(-4, 4), random_state=seeded(seed)).fit(X, y)


@pytest.mark.slow
def test_two_columns_of_eight_that_interact_are_found(set_constants):
    """In most fits: one in twenty has far more error by its noise."""
    X = np.random.default_rng(4).uniform(-1, 1, (6_000, 8))
    y = 4 * X[:, 2] * X[:, 5] + 0.3 * np.random.default_rng(5).normal(size=6_000)
    models = [fit(X[:5_000], y[:5_000], seed=seed) for seed in (5, 6, 7)]
    for model in models:
        public, _ = model.public_model()
        assert set(np.argsort(-np.abs(public.turns).mean(axis=1))[:2]) == {2, 5}

    def error(model):
        return np.mean((model.predict(X[5_000:]) - y[5_000:]) ** 2)

    errors = [error(model) for model in models]
    set_constants({"learning.length_scales.MAX_SOURCES": 1})
    assert np.median(errors) < 0.5 * error(fit(X[:5_000], y[:5_000]))


def test_a_saved_model_with_interactions_predicts_the_same_bits(tmp_path):
    X = np.random.default_rng(6).uniform(-1, 1, (1_500, 3))
    model = fit(X, 3 * X[:, 0] * X[:, 1])
    assert model.public_model()[0].turns is not None
    ldp.save_model(model, tmp_path / "m.json")
    assert ldp.load_model(tmp_path / "m.json").predict(X).tobytes() == model.predict(X).tobytes()


def test_the_average_over_priors_is_that_of_dense_formulas():
    X = np.random.default_rng(0).normal(size=(90, 4))
    table = FeatureTable.fit(X)
    labels, block, rows = X[:, 3] + 0.1 * X[:, 1], table.public.block, np.arange(90)
    priors = prior_grid(6.0, coarse=True)[::5]
    observed = [table.observation(rows, labels, 0.3)]
    strengths, limits = np.linspace(0.5, 2, block.size), Limits(-0.5, 0.5)
    model = average_priors(observed, block, priors, limits=limits, log_prior_odds=0.0, strengths=strengths)
    features, totals = table.features(rows).astype(float), sorted({e + r for _, e, r in priors})
    scores, weights = [], []
    for k, (shares, e, r) in enumerate([*(((0,) * 5, 0, total) for total in totals), *priors]):
        prior = np.append(np.array(shares)[block] * e * strengths, 25.0)
        covariance = (features * prior) @ features.T + (r + 0.3) * np.eye(90)
        dual = np.linalg.solve(covariance, labels)
        chance = 0.1 / len(totals) if k < len(totals) else 0.9 / len(priors)
        scores.append(np.log(chance) - 0.5 * labels @ dual - 0.5 * np.linalg.slogdet(covariance)[1])
        weights.append(prior * (features.T @ dual))
    posterior = np.exp(np.array(scores) - max(scores))
    np.testing.assert_allclose(model.weights, posterior / posterior.sum() @ np.array(weights), atol=1e-2)
