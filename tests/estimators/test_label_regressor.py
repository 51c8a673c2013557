"""LabelReleaseRegressor: each label once, everything charged, and bad input refused at no cost."""

import ast
import dataclasses
import json
import pickle
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import labeldp as ldp
from helpers import seeded
from labeldp.estimators import LabelReleaseRegressor, learner
from labeldp.estimators.label_rounds import RowsHere

RNG = np.random.default_rng(3)
X = RNG.normal(size=(2000, 4))
Y = np.clip(2.5 + X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.3 * RNG.normal(size=2000), 0, 5)
BOUNDS = (0.0, 5.0)
REGRESSORS = [LabelReleaseRegressor, ldp.ModelReleaseRegressor]

both = pytest.mark.parametrize("regressor", REGRESSORS)


@pytest.fixture(autouse=True)
def without_trees(monkeypatch):
    """Trees take long."""
    monkeypatch.setattr(learner, "_WORTH", 1e9)


@pytest.mark.slow
@parametrize_with_checks([LabelReleaseRegressor(epsilon=8.0, bounds=(-1000.0, 1000.0))])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3])
@pytest.mark.parametrize("trust", ["curator", "local"])
def test_charges_sum_to_epsilon_exactly_and_mechanisms_stay_below(epsilon, trust):
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon))
    model = LabelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, trust=trust, ledger=ledger).fit(X[:300], Y[:300])
    assert ledger.total.exact_epsilon == Fraction(repr(epsilon))
    labels = next(c.budget.exact_epsilon for c in ledger.charges if c.purpose == "labels")
    assert all(Fraction(repr(m.epsilon)) <= labels for m in model.release_.mechanisms)
    with pytest.raises(ldp.BudgetError):
        clone(model).fit(X[:300], Y[:300])
    if trust == "local":
        assert [c.purpose for c in ledger.charges] == ["labels"], "nothing but randomised labels leaves a person"


def test_every_row_is_released_once_and_every_charge_names_its_mechanism():
    model = LabelReleaseRegressor(epsilon=8.0, bounds=BOUNDS).fit(X, Y)
    release, charges = model.release_, model.ledger_.charges
    assert sorted(np.concatenate([block.rows for block in release.blocks()]).tolist()) == list(range(len(X)))
    assert ((release.low >= BOUNDS[0]) & (release.high <= BOUNDS[1]) & (release.low < release.high)).all()
    assert [charge.purpose for charge in charges] == ["labels", "mean", "prior"]
    assert charges[0].mechanism.count("sha256") == len(np.unique(release.round)) == 3
    assert all("DiscreteLaplace" in charge.mechanism for charge in charges[1:])


@both
def test_a_row_that_is_not_drawn_exactly_once_releases_nothing(regressor, monkeypatch):
    """Undrawn entries would show whatever was in memory before: true labels."""
    draw = RowsHere.draw

    def lose_a_row(self, plan):
        part = draw(self, plan)
        arrays = {name: getattr(part, name)[1:] for name in ("low", "high", "offset", "scale", "noise")}
        return dataclasses.replace(part, private=part.private.without(part.private.rows[:1]), **arrays)

    monkeypatch.setattr(RowsHere, "draw", lose_a_row)
    model = regressor(epsilon=4.0, bounds=BOUNDS)
    with pytest.raises(ldp.PrivacyProofError, match="exactly once"):
        model.fit(X[:400], Y[:400])
    assert not hasattr(model, "release_")
    with pytest.raises(NotFittedError):
        model.to_card()


def test_what_leaves_starts_as_nothing_that_was_in_memory():
    """No `np.empty` where arrays leave: an entry that stays unwritten would show freed memory, labels maybe."""
    package = Path(ldp.__file__).parent
    rooms = ("estimators", "tabular", "release", "files/models")
    files = [package / "mechanisms/base.py", *(file for room in rooms for file in (package / room).glob("*.py"))]
    assert len(files) > 20
    for file in files:
        names = {
            ast.unparse(node) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)
        }
        assert not names & {"np.empty", "np.empty_like"}, file.name


@pytest.mark.parametrize("own", [Ridge, StandardScaler(), "ridge"])
def test_an_estimator_that_cannot_learn_costs_nothing(own):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.ParameterError, match="cannot learn"):
        LabelReleaseRegressor(own, epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(X[:400], Y[:400])
    assert not ledger.charges


@both
def test_a_model_says_what_it_cost_and_whether_it_is_private(regressor):
    model = regressor(epsilon=0.5, bounds=BOUNDS).fit(X[:400], Y[:400])
    assert "for ε = 0.5 in all" in model.summary()
    card = json.loads(model.to_card())
    assert "label differential privacy with ε = 0.5" in card["guarantee"]
    assert any(name in str(card["charges"]) for name in ("DiscreteLaplace", "LatticeNorm"))
    assert card["words"] == "secure"
    seeded_one = regressor(epsilon=0.5, bounds=BOUNDS, random_state=seeded(1)).fit(X[:400], Y[:400])
    assert not seeded_one.secure_
    assert "NOT PRIVATE" in seeded_one.summary()
    assert "NOT PRIVATE" in seeded_one.to_card()


def test_a_fit_that_failed_does_not_count_as_a_release():
    y = Y[:300].copy()
    for bad in ({"mechanism": "magic"}, {"rounds": 0}):
        with pytest.raises(ldp.ParameterError):
            LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, **bad).fit(X[:300], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ldp.RepeatedReleaseWarning)
        LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1).fit(X[:300], y)


def test_what_predicts_is_what_was_fitted():
    model = LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1).fit(X[:400], Y[:400])
    before = model.predict(X[:5])
    assert np.array_equal(model.set_params(estimator=None).predict(X[:5]), before)


def test_any_regressor_learns_from_the_release_and_predicts_within_the_bounds():
    some, labels = X[:300], Y[:300]
    model = LabelReleaseRegressor(Ridge(), epsilon=4.0, bounds=BOUNDS).fit(some, labels)
    far = model.predict(100 * X)
    assert far.min() >= BOUNDS[0]
    assert far.max() <= BOUNDS[1]
    pipe = make_pipeline(StandardScaler(), LabelReleaseRegressor(epsilon=4.0, bounds=BOUNDS, rounds=1))
    assert pipe.fit(some, labels).predict(X).shape == (2000,)


@pytest.mark.slow
def test_a_fitted_model_pickles_without_labels(monkeypatch):
    monkeypatch.undo()  # with trees
    model = LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS).fit(X, Y)
    data = pickle.dumps(model)
    assert np.array_equal(pickle.loads(data).predict(X), model.predict(X))
    assert not any(Y[i : i + 4].tobytes() in data for i in range(0, 2000, 50))


@pytest.mark.parametrize(
    "bad",
    [
        {"trust": "me"},
        {"rounds": 0},
        {"rounds": "3"},
        {"rounds": (1e308, 1e308)},
        {"rounds": (1.0, 1e-12)},
    ],
)
def test_bad_parameters_cost_nothing(bad):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.ParameterError):
        LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger, **bad).fit(X, Y)
    with pytest.raises(ldp.ParameterError, match="weights"):
        LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(X, Y, sample_weight=np.ones(2000))
    assert not ledger.charges


@both
def test_no_label_however_extreme_raises_or_warns_and_cramped_bounds_are_refused_at_no_cost(regressor):
    wild = np.where(np.arange(400) % 3 == 0, 1e308, np.where(np.arange(400) % 3 == 1, -1e308, 5e-324))
    for labels, epsilon in ((wild, 0.3), (wild, 4.0), (np.full(400, 2.0), 4.0)):
        assert np.isfinite(regressor(epsilon=epsilon, bounds=BOUNDS).fit(X[:400], labels).predict(X)).all()
    ledger = ldp.Ledger()
    with pytest.raises(ldp.ParameterError, match="offset"):
        regressor(epsilon=1.0, bounds=(1e15, 1e15 + 200), ledger=ledger).fit(X[:400], wild)
    assert not ledger.charges
