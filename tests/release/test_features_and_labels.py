"""`privatize` with public features, and of several labels: what is released, what it costs, what its card says."""

import json
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import labeldp as ldp
from forged_cards import forged
from helpers import seeded
from labeldp.errors import RepeatedReleaseWarning, WeakModelWarning

RNG = np.random.default_rng(40)
ROWS = 1_500
X = pd.DataFrame(RNG.normal(size=(ROWS, 3)), columns=["age", "area", "rooms"])
Y = pd.DataFrame({
    "pay": 2.5 + X["age"] + 0.5 * RNG.normal(size=ROWS),
    "rent": 1.0 + 0.3 * X["area"] + 0.1 * RNG.normal(size=ROWS),
})  # fmt: skip
BOUNDS = [(0, 5), (0, 2)]


def release(labels=Y, *, seed=1, **how):
    return ldp.privatize(labels, **{"epsilon": 1.0, "bounds": BOUNDS, "random_state": seeded(seed)} | how)


@pytest.fixture(scope="module")
def one():
    return release(Y["pay"], X=X, bounds=(0, 5), ledger=ldp.Ledger(), random_state=None)


@pytest.fixture(scope="module")
def both():
    return release(X=X, ledger=ldp.Ledger(), shares=[3, 1], epsilon=2.0, random_state=None)


# ---- with features -----------------------------------------------------------------------------------------


def test_labels_are_predictions_and_a_part_of_each_rows_own_private_label(one):
    """Rows that were held out have no private label."""
    train, test = one.error.split.indices()
    predicted, private = one.model.predict(X), one.model.release_
    variance = private.noise + private.hidden
    weight = one.error.mse / (one.error.mse + variance)
    posterior = predicted[train] + weight * (private.labels - predicted[train])
    np.testing.assert_allclose(one.labels[train], np.clip(posterior, 0, 5), rtol=1e-12)
    np.testing.assert_array_equal(one.labels[test], predicted[test])


def test_that_labels_are_too_few_to_learn_from_is_said_before_the_charge():
    ledger = ldp.Ledger()
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakModelWarning)
        for few in ({"X": X, "epsilon": 0.03}, {"epsilon": 0.3}):
            with pytest.raises(WeakModelWarning, match="private mean"):
                release(Y["pay"], bounds=(0, 5), ledger=ledger, **few)
    assert not ledger.charges


def test_strict_settings_of_a_user_lose_no_paid_labels():
    """Labels that are all the same give a weak model, which is said after the charge."""
    ledger, same = ldp.Ledger(), {"X": X[:60], "bounds": (0, 5), "epsilon": 2.0, "seed": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakModelWarning)
        made = release(np.full(60, 2.5), ledger=ledger, **same)
    assert (made.labels.shape, ledger.total) == ((60,), ldp.Budget(2))
    with pytest.warns(WeakModelWarning, match="nearly the same for all rows"):
        release(np.full(60, 2.5), **same)


@pytest.mark.statistical
def test_the_private_mean_of_skewed_labels_is_unbiased():
    """Fixed seeds. The mean of ten draws of Laplace noise passes five standard errors once in 100,000 times.

    Sums of clipped residuals, as a fit to features releases them, were off by a quarter of a standard deviation.
    """
    labels = np.random.default_rng(3).gamma(0.5, 4.0, 2_000)
    with pytest.warns(WeakModelWarning):
        means = [release(labels, bounds=(0, 20), epsilon=0.3, seed=seed).labels[0] for seed in range(10)]
    standard_error = 1.1 * 2**0.5 * 20 / (0.3 * labels.size) / 10**0.5
    assert abs(np.mean(means) - labels.clip(0, 20).mean()) < 5 * standard_error


def test_a_release_with_features_costs_epsilon_and_its_card_is_valid(one):
    assert one.ledger.total == one.cost == ldp.Budget(1.0)
    assert (one.error.rows, one.error.cost) == (ROWS // 10, ldp.Budget(1.0))
    assert one.columns["pay"].entries["features"] == list(X.columns)
    assert ldp.verify_card(one.to_card()).verdict == "valid"
    assert "far too small" in one.summary()
    assert "Labels outside the bounds, 0 to 5, were clipped to them, and labels far" in one.summary()
    assert "were clipped to them" in one.model.summary()
    sent = pickle.loads(pickle.dumps(one))
    assert (sent.terms, sent.ledger) == (one.terms, None)
    np.testing.assert_array_equal(sent.model.predict(X), one.model.predict(X))


# ---- several labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"X": X}, {"purpose": "statistics"}, {"trust": "local"}], ids=str)
@pytest.mark.parametrize("shares", [None, [2.0, 1.0]])
def test_charges_of_all_labels_add_up_to_epsilon(how, shares):
    ledger = ldp.Ledger(limit=ldp.Budget(1.0))
    made = release(ledger=ledger, shares=shares, **how)
    assert made.labels.shape == Y.shape
    assert sum(charge.budget.exact_epsilon for charge in ledger.charges) == 1
    names = [charge.description.partition(" of ")[2] for charge in ledger.charges]
    assert list(dict.fromkeys(names)) == ["'pay'", "'rent'"], "the ledger names the label of each charge"
    first, second = (column.cost.exact_epsilon for column in made.columns.values())
    assert abs(first - (2 if shares else 1) * second) < Fraction(1, 10**10)
    assert ldp.accounts.Card.parse(made.to_card()).terms == made.terms


def test_a_budget_for_some_labels_is_not_spent_on_them():
    ledger = ldp.Ledger(limit=ldp.Budget(0.9))
    with pytest.raises(ldp.BudgetError):
        release(X=X, ledger=ledger)
    assert ledger.charges == ()


def test_each_label_has_its_own_model_error_and_bounds(both):
    assert list(both.columns) == ["pay", "rent"]
    for (name, column), (low, high) in zip(both.columns.items(), BOUNDS, strict=True):
        assert (column.labels.min() >= low, column.labels.max() <= high) == (True, True)
        assert np.corrcoef(column.model.predict(X), Y[name])[0, 1] > 0.6
        assert column.entries["features"] == list(X.columns)
    with pytest.raises(ldp.errors.ParameterError, match="this release has 2 labels"):
        _ = both.model
    assert "all 2 labels of one row" in both.terms.guarantee
    assert "rent: How wrong" in both.summary()


@pytest.mark.parametrize("how", [{}, {"X": X}], ids=["alone", "with features"])
def test_no_label_has_a_part_in_another(how):
    """With the same random words, the first label is what it would be beside any other."""
    made = [release(Y.assign(rent=rent), **how).labels[:, 0] for rent in (Y["rent"], 2 - Y["rent"])]
    np.testing.assert_array_equal(*made)


def test_statistics_of_each_label():
    made = release(purpose="statistics")
    for name, (low, high) in zip(Y, BOUNDS, strict=True):
        mean = made.columns[name].means()[None]
        assert abs(mean.value - Y[name].clip(low, high).mean()) < 6 * mean.standard_error


REFUSED = {
    "a label among the features": {"X": X.assign(PAY=Y["pay"])},
    "two labels of one name": {"labels": pd.concat([Y, Y["pay"].rename("pay.1")], axis=1), "bounds": (0, 5)},
    "bounds of three": {"bounds": [(0, 5)] * 3},
    "bounds of the second": {"bounds": [(0, 5), (1, 1)]},
    "shares of three": {"shares": [1, 1, 1]},
    "no share": {"shares": [1, 0]},
    "a share too small": {"shares": [1, 1e-6]},
    "a model for statistics": {"X": X, "purpose": "statistics"},
    "a biased mechanism": {"mechanism": ["rp", "rr-on-bins"]},
    "rows in another order": {"X": X.iloc[::-1]},
    "rows of one label in another order": {"X": X.iloc[::-1], "labels": Y["pay"], "bounds": (0, 5)},
    "fewer features": {"X": X.iloc[1:]},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_released_is_refused_before_anything_is_charged(name):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.LabelDPError):
        release(**{"ledger": ledger} | REFUSED[name])
    assert ledger.charges == ()


def test_labels_that_were_not_released_are_not_said_to_have_been(recwarn):
    labels = Y.to_numpy().copy()
    with pytest.raises(ValueError, match="NaN"):
        release(labels, X=np.full((ROWS, 2), np.nan))
    release(labels)
    assert not [one for one in recwarn if issubclass(one.category, RepeatedReleaseWarning)]
    with pytest.warns(RepeatedReleaseWarning):
        release(labels)


def lies(content):
    """Yield cards of several labels that contradict themselves."""
    first, second = content["labels"]
    yield "a label is a feature", {"labels": [first, {**second, "features": ["pay"]}]}
    yield (
        "one charge for two",
        {"labels": [first, {**second, "charges": first["charges"], "split": first["split"]}]},
    )
    yield "one name", {"labels": [first, {**second, "label": "pay"}]}
    yield "no name", {"labels": [first, {name: second[name] for name in second if name != "label"}]}
    yield "one label", {"labels": [first]}
    yield "a smaller cost", {"cost": first["cost"]}
    yield "another guarantee", {"guarantee": first["guarantee"]}
    yield "other rows", {"rows": content["rows"] + 1}
    yield "a card in a card", {"labels": [first, {**second, "schema": "labeldp.release"}]}


def test_a_card_of_several_labels_that_lies_is_refused(both):
    content = json.loads(both.to_card())
    assert ldp.verify_card(forged(content)).holds
    for name, change in lies(content):
        assert not ldp.verify_card(forged({**content, **change})).holds, name
