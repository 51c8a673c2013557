"""Results do not depend on the label's unit: fits work in units of the bounds, and none fails after the charge."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

import labeldp as ldp
from helpers import seeded
from labeldp.learning.fit_plan import from_units, unit_labels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
PLACE = np.clip(0.5 + 0.2 * X[:, 0], 0, 1)

UNITS = {
    "thousands": (0.0, 1000.0),
    "1e-11": (0.0, 1e-11),
    "1e-12": (0.0, 1e-12),
    "1e15": (0.0, 1e15),
    "1e-100": (0.0, 1e-100),
    "1e100": (-1e100, 1e100),
    "far from zero": (1e6, 1e6 + 5),
    "as far as is accepted": (1.0, 1.0 + 2.0**-17),
    "far below zero": (-1e14 - 1e9, -1e14),
}


def in_units(values, bounds):
    return (values - bounds[0]) / (bounds[1] - bounds[0])


def unit_predictions(regressor, bounds, **options):
    """Return a model fitted with the same words, and its predictions in units of the bounds."""
    labels = from_units(PLACE, bounds)
    ledger = ldp.Ledger()
    model = regressor(epsilon=2.0, bounds=bounds, random_state=seeded(3), ledger=ledger, **options).fit(X, labels)
    predicted = model.predict(X)
    assert ((predicted >= bounds[0]) & (predicted <= bounds[1])).all()
    assert ledger.total == ldp.Budget(2)
    return model, in_units(predicted, bounds)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("regressor", [ldp.ModelReleaseRegressor, ldp.LabelReleaseRegressor])
def test_the_same_words_give_the_same_predictions_in_any_unit(regressor, bounds):
    _, expected = unit_predictions(regressor, (0.0, 1.0))
    _, predicted = unit_predictions(regressor, bounds)
    np.testing.assert_allclose(predicted, expected, atol=1e-9)
    assert predicted.std() > 0.01


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**30, 1e-6, 1e3, 1e9])
@pytest.mark.parametrize(
    "estimator", [Ridge(), HistGradientBoostingRegressor(max_iter=20)], ids=["ridge", "trees"]
)
def test_an_estimator_of_the_user_learns_the_same_in_any_unit(estimator, factor):
    """With unscaled weights of 1 / variance, Ridge's penalty would be nothing in one unit and all in another."""
    _, expected = unit_predictions(ldp.LabelReleaseRegressor, (0.0, 1.0), estimator=estimator)
    _, predicted = unit_predictions(ldp.LabelReleaseRegressor, (0.0, factor), estimator=estimator)
    if np.log2(factor).is_integer():
        np.testing.assert_array_equal(predicted, expected)
    np.testing.assert_allclose(predicted, expected, atol=1e-6)
    assert r2_score(PLACE, predicted) > 0.6


@pytest.mark.parametrize("bounds", [(0.0, 1e-11), (-1e100, 1e100), (1e6, 1e6 + 5)])
def test_a_release_is_in_the_label_s_unit(bounds):
    first, _ = unit_predictions(ldp.LabelReleaseRegressor, (0.0, 1.0), mechanism="rp", rounds=2)
    other, _ = unit_predictions(ldp.LabelReleaseRegressor, bounds, mechanism="rp", rounds=2)
    width, expected, release = bounds[1] - bounds[0], first.release_, other.release_
    for name in ("labels", "offset", "low", "high", "start"):
        values = in_units(getattr(release, name), bounds)
        np.testing.assert_allclose(values, getattr(expected, name), atol=1e-9, err_msg=name)
    np.testing.assert_allclose(release.scale / width, expected.scale, rtol=1e-9)
    np.testing.assert_allclose(release.noise / width**2, expected.noise, rtol=1e-9)
    cells = (release.labels - release.offset) / release.scale
    np.testing.assert_allclose(cells, (expected.labels - expected.offset) / expected.scale, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(0.0, 1e-11), (0.0, 1e100), (1e6, 1e6 + 5)])
def test_a_saved_model_predicts_the_same_in_any_unit(tmp_path, bounds):
    for regressor in (ldp.ModelReleaseRegressor, ldp.LabelReleaseRegressor):
        model, _ = unit_predictions(regressor, bounds)
        ldp.save_model(model, tmp_path / regressor.__name__)
        np.testing.assert_array_equal(ldp.load_model(tmp_path / regressor.__name__).predict(X), model.predict(X))
    again = ldp.learning.RowRelease.load(
        tmp_path / regressor.__name__ / "release.npz"
    )  # every label is a possible one
    np.testing.assert_array_equal(again.labels, model.release_.labels)


@pytest.mark.slow
def test_trees_do_not_depend_on_the_unit_either():
    rows = 30_000
    X = np.random.default_rng(1).uniform(-1, 1, size=(rows, 2))
    place = np.where(X[:, 0] * X[:, 1] > 0, 0.8, 0.2)
    found = []
    for bounds in ((0.0, 1.0), (0.0, 1e-11), (1e6, 1e6 + 5)):
        model = ldp.LabelReleaseRegressor(epsilon=8.0, bounds=bounds, random_state=seeded(5), rounds=2)
        model.fit(X, from_units(place, bounds))
        assert model._ensemble.trees is not None
        found.append(in_units(model.predict(X), bounds))
    for other in found[1:]:
        assert np.abs(other - found[0]).mean() < 1e-3  # rounding may move a cut of a tree


def test_units_go_there_and_back_and_end_at_the_bounds():
    bounds = (0.1, 0.3)
    values = np.linspace(*bounds, 1001)
    assert from_units(np.array([0.0, 1.0]), bounds).tolist() == list(bounds)
    np.testing.assert_allclose(from_units(in_units(values, bounds), bounds), values, rtol=1e-15)
    many = np.sort(np.concatenate([np.linspace(-1, 2, 3001), np.nextafter([0.0, 0.5, 1.0], 9), [0.5, 1.0]]))
    for pair in (bounds, (-0.7, 0.1), (1.0, 1.0 + 2.0**-17)):
        found = from_units(many, pair)
        assert (np.diff(found) >= 0).all()
        assert ((found >= pair[0]) & (found <= pair[1]) | (many < 0) | (many > 1)).all()
    with np.errstate(all="raise"):
        assert unit_labels(np.array([-1e308, 0.2, 1e308]), bounds).tolist() == [0.0, pytest.approx(0.5), 1.0]
