"""A transform: learnt in place of the label, with predictions, scores and intervals in the label's own unit."""

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import labeldp as ldp
from helpers import seeded

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (4000, 3))
MEAN = 9_000 * np.exp(1.2 * X[:, 0] + 0.8 * X[:, 1] + 0.6**2 / 2)
Y = MEAN * np.exp(0.6 * RNG.normal(size=4000) - 0.6**2 / 2)
BOUNDS = (200.0, 400_000.0)
FIT, FRESH = slice(0, 2500), slice(2500, 4000)
MAKERS = {
    "model": ldp.ModelReleaseRegressor,
    "labels": ldp.LabelReleaseRegressor,
    "ridge": lambda **how: ldp.LabelReleaseRegressor(Ridge(), **how),
}


def fitted(kind, transform, **how):
    how = {"epsilon": 2.0, "bounds": BOUNDS, "random_state": seeded(1), **how}
    return MAKERS[kind](label_transform=transform, **how).fit(X[FIT], Y[FIT].copy())


@pytest.mark.parametrize("kind", MAKERS)
def test_a_logarithm_comes_closer_to_the_mean_of_skewed_labels(kind):
    """The negative control: without the correction by the paid spread, predictions are too low by a seventh."""
    errors = {}
    for transform in (None, "log"):
        predicted = fitted(kind, transform).predict(X[FRESH])
        errors[transform] = np.mean((predicted - MEAN[FRESH]) ** 2)
    assert errors["log"] < 0.8 * errors[None]
    share = predicted.mean() / Y[FRESH].mean()
    assert 0.9 < share < 1.12
    assert share * np.exp(-(0.6**2) / 2) < 0.95


@pytest.mark.parametrize("transform", ["log", "sqrt"])
@pytest.mark.parametrize("kind", ["model", "labels"])
def test_a_transform_is_on_the_ledger_and_the_cards_and_comes_back_with_a_saved_model(kind, transform, tmp_path):
    ledger = ldp.Ledger()
    model = fitted(kind, transform, ledger=ledger, random_state=None)
    assert all(charge.description.endswith(f"({transform})") for charge in ledger.charges)
    ldp.save_model(model, tmp_path / "model")
    card = (tmp_path / "model" / "card.json").read_text()
    assert json.loads(card)["label_transform"] == transform
    assert ldp.verify_card(card).verdict == "valid"
    again = ldp.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    if kind == "labels":
        release = ldp.learning.RowRelease.load(tmp_path / "model" / "release.npz")
        np.testing.assert_allclose(release.labels.mean(), getattr(np, transform)(Y).mean(), rtol=0.1)


@pytest.mark.parametrize(
    ("transform", "low"), [("log", 0.0), ("log", -1.0), ("sqrt", -1.0), ("log1p", 1.0), (np.log, 1)]
)
def test_a_transform_that_the_bounds_cannot_take_is_refused_before_any_charge(transform, low):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.errors.ParameterError) as caught:
        fitted("model", transform, bounds=(low, 5.0), ledger=ledger)
    assert caught.value.option == "label_transform"
    assert transform != "log" or "such as 0.05" in str(caught.value)
    assert not ledger.charges


def test_intervals_of_a_logarithm_are_factors_and_cover():
    model = fitted("model", "log")
    ask = {"epsilon": 1.0, "bounds": BOUNDS, "random_state": seeded(2)}
    intervals = ldp.private_intervals(model, X[2500:3500], Y[2500:3500], **ask)
    low, high = intervals.predict_interval(X[3500:]).T
    inside = (low > BOUNDS[0]) & (high < BOUNDS[1])
    assert inside.mean() > 0.5
    np.testing.assert_allclose((high / low)[inside], np.exp(2 * intervals.half_width), rtol=1e-6)
    assert np.mean((low <= Y[3500:]) & (Y[3500:] <= high)) > 0.85
    assert "a factor of" in intervals.summary()
