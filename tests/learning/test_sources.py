"""A category counts as one column, whatever its number of levels, in a data frame and in an array."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import check_grad

import labeldp as ldp
from helpers import seeded
from labeldp.learning import features
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import Limits
from labeldp.learning.length_scales import Averages, MarginalLikelihood, equal_length_scales
from labeldp.learning.measurements import PrivateRows
from labeldp.learning.sources import SourceColumns

ROWS = 4_000


def indicators(levels, seed=0, rows=ROWS):
    return np.eye(levels)[np.random.default_rng(seed).integers(0, levels, rows)]


def test_columns_of_0_and_1_are_one_category_if_they_exclude_each_other_by_more_than_chance():
    rng = np.random.default_rng(1)
    flags = (rng.random((ROWS, 3)) < 0.3).astype(float)
    rare = np.zeros((ROWS, 2))
    rare[[3, 40], [0, 1]] = 1  # two ones that miss each other by chance
    X = np.column_stack([rng.normal(size=ROWS), indicators(4), flags, indicators(5)[:, 1:], rare])
    sources = SourceColumns.find(X)
    assert sorted(zip(sources.levels.tolist(), sources.category.tolist(), strict=True)) == [
        *((k, 0) for k in range(1, 5)),
        *((k, 1) for k in range(8, 12)),
    ]
    assert sources.quantities.tolist() == [0, 5, 6, 7, 12, 13]


def averages_of(table, y):
    rows = np.arange(len(y))
    return Averages.of(table, Limits(-4.0, 4.0), [], [PrivateRows(rows, y, 0.01, 0)], 0.01)


@pytest.mark.parametrize("rows", [60, 700])  # in the dimension of labels, and of features
def test_the_gradient_of_the_evidence_in_strengths_and_length_scales_is_that_of_finite_differences(rows):
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(rows, 2)), indicators(4, 3, rows), indicators(3, 4, rows)])
    y = X[:, 0] + X[:, 3] - X[:, 2] * X[:, 1] + 0.1 * rng.normal(size=rows)
    table = FeatureTable.fit(X)
    likelihood = MarginalLikelihood(table, averages_of(table, y), np.log(np.full(3, 0.2)))
    assert (table.sources, likelihood.kind) == (4, np.float64)
    center = np.log(equal_length_scales(table.sources))
    point = 0.3 * rng.normal(size=3 + 2 + 1 + 4)
    value = lambda point: likelihood.loss(point, center)[0]  # noqa: E731
    gradient = lambda point: likelihood.loss(point, center)[1]  # noqa: E731
    assert check_grad(value, gradient, point) < 1e-3 * np.abs(gradient(point)).max()


@pytest.mark.slow
def test_a_category_that_says_nothing_costs_next_to_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (ROWS, 6))
    y = 2 * X[:, 0] + 3 * X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=ROWS)
    more = np.column_stack([X, indicators(120)])

    def r2(X):
        fitted = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(-6, 6), random_state=seeded(6)).fit(X, y)
        return 1 - np.mean((fitted.predict(X) - y) ** 2) / np.var(y)

    without = r2(X)
    assert r2(more) > without - 0.05
    monkeypatch.setattr(features.SourceColumns, "find", lambda X, _: SourceColumns.all_quantities(X.shape[1]))
    assert r2(more) < without - 0.1  # the twin: each level is a column of its own


def test_text_is_one_source_in_a_data_frame_also_with_few_rows():
    frame = pd.DataFrame({"size": np.arange(30.0), "town": [f"town {k % 7}" for k in range(30)]})
    model = ldp.ModelReleaseRegressor(epsilon=2.0, bounds=(0, 30), random_state=seeded(9)).fit(
        frame, np.arange(30.0)
    )
    assert model.public_model()[0].source.tolist() == [0, *[1] * 7]


def test_a_saved_model_of_categories_predicts_the_same_bits(tmp_path):
    X = np.column_stack([indicators(3), np.random.default_rng(7).normal(size=(ROWS, 2)), indicators(2)])
    model = ldp.ModelReleaseRegressor(epsilon=2.0, bounds=(-4, 4), random_state=seeded(8)).fit(
        X, X[:, 1] * X[:, 4]
    )
    assert model.public_model()[0].sources.levels.size == 5
    ldp.save_model(model, tmp_path / "model")
    assert ldp.load_model(tmp_path / "model").predict(X).tobytes() == model.predict(X).tobytes()
