"""Results do not depend on the label's unit: fits work in units of the bounds, and none fails after the charge."""

from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

import labeldp as ldp
from helpers import seeded

X = np.random.default_rng(0).normal(size=(1200, 3))
PLACE = np.clip(0.5 + 0.2 * X[:, 0], 0, 1)
FIT, FRESH = slice(0, 600), slice(600, 1200)
ESTIMATORS = {
    "ridge": Ridge(),
    "boosted trees": HistGradientBoostingRegressor(max_iter=20, random_state=0),
    "forest": RandomForestRegressor(100, random_state=0),  # with few trees R² depends on chance
}
LEARNERS = ("model", "labels", *ESTIMATORS)


def fitted(learner, bounds, labels, ledger=None, transform=None):
    options = {
        "epsilon": 2.0,
        "bounds": bounds,
        "ledger": ledger,
        "random_state": seeded(3),
        "label_transform": transform,
    }
    if learner == "model":
        return ldp.ModelReleaseRegressor(**options).fit(X[FIT], labels)
    return ldp.LabelReleaseRegressor(ESTIMATORS.get(learner), **options).fit(X[FIT], labels)


@cache
def results(learner, unit, transform=None):
    """Return all that is released for labels in some unit, each in that unit, and what it cost."""
    least = 0.05 if transform == "log" else 0.0
    labels, bounds, ledger = unit * PLACE, (unit * least, unit), ldp.Ledger()
    model = fitted(learner, bounds, labels[FIT], ledger, transform)
    ask = {"epsilon": 2.0, "bounds": bounds, "ledger": ledger}
    fresh = X[FRESH], labels[FRESH]
    score = ldp.private_score(model, *fresh, random_state=seeded(4), **ask)
    intervals = ldp.private_intervals(model, *fresh, random_state=seeded(5), **ask)
    assert ledger.total == ldp.Budget(6)
    predicted = model.predict(X[FRESH]) / unit
    found = {"predicted": predicted, "R²": r2_score(PLACE[FRESH], predicted)}
    if learner != "model":
        scale = {None: (0, unit), "log": (np.log(unit), 1), "sqrt": (0, np.sqrt(unit))}[transform]
        found["labels"] = (model.release_.labels - scale[0]) / scale[1]
    for name, power in {"rmse": 1, "mae": 1, "mse": 2}.items():
        figure = score.figures[name]
        found[name] = np.array([figure.value, figure.standard_error]) / unit**power
    return {**found, "intervals": intervals.predict_interval(X[FRESH]) / unit}


@pytest.mark.parametrize("unit", [2.0**-20, 1e9])
@pytest.mark.parametrize("learner", LEARNERS)
def test_labels_and_bounds_in_another_unit_give_the_same_results_in_that_unit(learner, unit):
    """Bits are the same for powers of two. Forests break ties by rounding: their R² is the same within 0.01."""
    expected, found = results(learner, 1.0), results(learner, unit)
    assert expected["R²"] > 0.5
    for name, value in expected.items():
        if learner != "forest" or name == "labels":
            most = 0.0 if np.log2(unit).is_integer() else 1e-6
            np.testing.assert_allclose(found[name], value, rtol=0, atol=most, err_msg=name)
    assert found["R²"] == pytest.approx(expected["R²"], abs=0.01)


FAR = [(0.0, 1e-100), (-1e100, 1e100), (1.0, 1.0 + 2.0**-17)]


@pytest.mark.slow
@pytest.mark.parametrize("bounds", FAR, ids=str)
@pytest.mark.parametrize("learner", ["model", "labels"])
def test_bounds_of_any_size_and_place_give_the_same_model_also_when_it_is_saved(learner, bounds, tmp_path):
    low, high = bounds
    labels = np.clip(low + (high - low) * PLACE[FIT], low, high)
    model, expected = fitted(learner, bounds, labels), results(learner, 1.0)
    predicted = model.predict(X[FRESH])
    assert ((predicted >= low) & (predicted <= high)).all()
    np.testing.assert_allclose((predicted - low) / (high - low), expected["predicted"], atol=1e-6)
    ldp.save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(ldp.load_model(tmp_path / "model").predict(X[FRESH]), predicted)
    if learner == "labels":
        ldp.learning.RowRelease.load(tmp_path / "model" / "release.npz")  # every label is a possible one
