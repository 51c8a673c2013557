"""What is computed by a fast way is what the plain formula gives."""

import numpy as np
import pytest

from labeldp.learning import bayes
from labeldp.learning.bayes import fit_linear, unknown_variance
from labeldp.learning.features import FeatureTable

COLUMNS = {"pairs of columns": 3, "many columns": 11, "pairs of directions": 14, "few waves": 30}


def table_of(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    X[:, 0] = np.round(X[:, 0])  # ties
    X[:, 1] = np.exp(3 * X[:, 1])
    X[:, 2] = 7.0
    return X, FeatureTable.fit(X)


def plain_ranks(values, quantiles):
    grid = np.linspace(0, 1, len(quantiles))
    ranks = np.zeros(values.shape)
    for j, (column, known) in enumerate(zip(values.T, quantiles.T, strict=True)):
        left, right = (np.searchsorted(known, column, side=side) for side in ("left", "right"))
        ties = (left + right - 1) / 2 / (len(grid) - 1)
        ranks[:, j] = np.where(right - left > 1, ties, np.interp(column, known, grid))
    return np.clip(ranks, 0, 1)


def plain_features(public, X):
    """Return the features by their formulas, one after the other, in double precision."""
    standard = np.clip((X - public.center) / public.scale, -5, 5)
    rank = plain_ranks(X, public.ranks)
    waves = [np.cos(np.pi * k * rank[:, j]) / k for k in range(1, public.waves + 1) for j in range(X.shape[1])]
    if public.directions is not None:
        rank = plain_ranks(standard @ public.directions, public.direction_ranks)
    count = rank.shape[1]
    products = range(1, (4 if count <= 8 else 2) + 1)
    pairs = [
        np.cos(np.pi * a * rank[:, i]) / a * np.cos(np.pi * b * rank[:, j]) / b
        for i in range(count)
        for j in range(i + 1, count)
        for a in products
        for b in products
    ]
    fourier = np.cos(np.clip(standard, -3, 3) @ public.weights + public.phases)
    features = np.column_stack([standard, *waves, *pairs, fourier])
    return np.column_stack([(features - public.means) / public.norms, np.ones(len(X))])


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_features_are_those_of_their_formulas_for_rows_seen_and_unseen(columns):
    X, table = table_of(500, columns)
    fresh = table_of(60, columns, seed=1)[0]
    fresh[:2] = [[-1e9], [1e9]]
    for rows, known in ((X, table), (fresh, FeatureTable(table.public, fresh))):
        ((_, features),) = known.pieces(np.arange(len(rows)))
        np.testing.assert_allclose(features, plain_features(table.public, rows), atol=2e-5)
        spots = [np.searchsorted(table.public.ranks[:, j], rows[:, j], side="right") for j in range(columns)]
        assert np.array_equal(known.codes(np.arange(len(rows))).T, spots)


def test_the_average_over_choices_is_that_of_dense_formulas():
    X, table = table_of(90, 4)
    labels, block = X[:, 3] + 0.1 * X[:, 1].clip(0, 9), table.public.block
    observed = [table.observations(np.arange(90), labels, 0.3)]
    choices = unknown_variance(6.0, few=True)[::5]
    model = fit_linear(observed, block, mean=0.0, mean_variance=3.0, choices=choices)
    features, totals = plain_features(table.public, X), sorted({e + r for _, e, r in choices})
    scores, weights = [], []
    for k, (mix, e, r) in enumerate([*(((0,) * 4, 0, total) for total in totals), *choices]):
        prior = np.append(np.array(mix)[block] * e, 3.0)
        covariance = (features * prior) @ features.T + (r + 0.3) * np.eye(90)
        dual = np.linalg.solve(covariance, labels)
        chance = 0.1 / len(totals) if k < len(totals) else 0.9 / len(choices)
        scores.append(np.log(chance) - 0.5 * labels @ dual - 0.5 * np.linalg.slogdet(covariance)[1])
        weights.append(prior * (features.T @ dual))
    posterior = np.exp(np.array(scores) - max(scores))
    np.testing.assert_allclose(model.weights, posterior / posterior.sum() @ np.array(weights), atol=1e-3)


@pytest.mark.parametrize("noise", [0.01, 1.0, 100.0])
def test_choices_that_are_left_out_have_no_weight_to_speak_of(noise):
    X, table = table_of(1500, 5)
    labels = np.sin(2 * X[:, 4]) + X[:, 3] + np.sqrt(noise) * np.random.default_rng(1).normal(size=1500)
    observed, options = [table.observations(np.arange(1500), labels, noise)], unknown_variance(8.0)
    averages = []
    for solve in (bayes.solve, bayes.solve_many):
        log_evidence, weights = solve(observed, table.public.block, 5.0, options)
        posterior = np.exp(log_evidence - log_evidence.max())
        averages.append(posterior / posterior.sum() @ weights)
    np.testing.assert_allclose(*averages, atol=2e-3)
    if noise < 1:
        assert np.isinf(bayes.solve(observed, table.public.block, 5.0, options)[0]).sum() > 20
