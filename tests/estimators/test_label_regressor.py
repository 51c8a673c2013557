"""LabelReleaseRegressor: each label once, everything charged, and better than the private constant."""

import ast
import copy
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
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import labeldp as ldp
from helpers import seeded
from labeldp import card_format
from labeldp.estimators import LabelReleaseRegressor, RowRelease
from labeldp.estimators.label_rounds import RowsHere

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3000, 4))
Y = np.clip(2.5 + X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.3 * RNG.normal(size=3000), 0, 5)
BOUNDS = (0.0, 5.0)
REGRESSORS = [LabelReleaseRegressor, ldp.ModelReleaseRegressor]

both = pytest.mark.parametrize("regressor", REGRESSORS)


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
    model = LabelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, trust=trust, ledger=ledger).fit(X, Y)
    assert ledger.total.exact_epsilon == Fraction(repr(epsilon))
    labels = next(c.budget.exact_epsilon for c in ledger.charges if c.what == "labels")
    assert all(Fraction(repr(m.epsilon)) <= labels for m in model.release_.mechanisms)
    with pytest.raises(ldp.BudgetError):
        clone(model).fit(X, Y)
    if trust == "local":
        assert [c.what for c in ledger.charges] == ["labels"], "nothing but randomised labels leaves a person"


def test_every_row_is_released_once_in_one_round_inside_the_bounds():
    release = LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS).fit(X, Y).release_
    assert sorted(np.unique(release.round)) == [0, 1, 2]
    assert np.concatenate([b.rows for b in release.blocks()]).size == len(X)
    assert (release.low >= BOUNDS[0]).all()
    assert (release.high <= BOUNDS[1]).all()
    assert (release.low < release.high).all()
    widths = [np.mean((release.high - release.low)[release.round == k]) for k in range(3)]
    assert widths[2] < widths[0], "later rounds look closer"


@both
@pytest.mark.parametrize("wrong", ["a row lost", "a row twice"])
def test_a_row_that_is_not_drawn_exactly_once_releases_nothing(regressor, wrong, monkeypatch):
    """Undrawn entries would show whatever was in memory before: true labels."""
    take = {"a row lost": lambda part: part.private.rows[1:], "a row twice": lambda part: part.private.rows // 2}
    draw = RowsHere.draw

    def broken(self, plan):
        part = draw(self, plan)
        rows = take[wrong](part)
        keep = slice(part.private.rows.size - rows.size, None)
        return dataclasses.replace(
            part,
            private=dataclasses.replace(part.private, rows=rows, labels=part.private.labels[keep]),
            **{name: getattr(part, name)[keep] for name in ("low", "high", "offset", "scale", "noise")},
        )

    monkeypatch.setattr(RowsHere, "draw", broken)
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
    files = [file for room in rooms for file in (package / room).glob("*.py")] + [
        package / "mechanisms" / "base.py"
    ]
    assert len(files) > 20
    for file in files:
        names = {
            ast.unparse(node) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)
        }
        assert not names & {"np.empty", "np.empty_like"}, file.name


def test_every_charge_names_its_mechanism():
    ledger = LabelReleaseRegressor(epsilon=8.0, bounds=BOUNDS).fit(X, Y).ledger_
    assert [charge.what for charge in ledger.charges] == ["labels", "mean", "prior"]
    assert all(charge.mechanism for charge in ledger.charges)
    assert ledger.charges[0].mechanism.count("sha256") == 3, "one for each round"


def test_a_seeded_release_says_that_it_is_not_private(tmp_path):
    model = LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1, random_state=seeded(1)).fit(X, Y)
    model.release_.save(tmp_path / "r.npz")
    for release in (model.release_, RowRelease.load(tmp_path / "r.npz")):
        assert "NOT PRIVATE" in release.summary()
        assert "NOT PRIVATE" in release.to_card()
    sound = LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1).fit(X, Y).release_
    assert "NOT PRIVATE" not in sound.summary() + sound.to_card()
    assert "label differential privacy" in sound.to_card()


def test_fits_of_one_estimator_add_up_and_are_warned_about():
    model = LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1)
    y = Y[:400].copy()
    model.fit(X[:400], y)
    with pytest.warns(ldp.RepeatedReleaseWarning, match="released before"):
        model.fit(X[:400], y)
    assert model.ledger_.total == ldp.Budget(2.0)
    assert sum(charge.budget.epsilon for charge in model.charges_) == 1.0
    from sklearn.ensemble import BaggingRegressor

    with pytest.warns(ldp.RepeatedReleaseWarning, match="ensemble"), pytest.warns(ldp.InsecureRandomnessWarning):
        BaggingRegressor(clone(model), n_estimators=2).fit(X[:400], y)


COPIES = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "clone": clone,
    "clone of deepcopy": lambda model: clone(copy.deepcopy(model)),
    "deepcopy of pipeline": lambda model: clone(copy.deepcopy(make_pipeline(StandardScaler(), model)))[-1],
}
PICKLES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "clone of pickle": lambda model: clone(pickle.loads(pickle.dumps(model))),
    "pickle of pickle": lambda model: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model)))),
    "clone of deepcopy of pickle": lambda model: clone(copy.deepcopy(pickle.loads(pickle.dumps(model)))),
}


@pytest.mark.parametrize(("way", "fitted"), [*((way, False) for way in COPIES), ("clone", True)])
@both
def test_a_copy_spends_from_the_same_ledger(regressor, way, fitted):
    ledger = ldp.Ledger(limit=ldp.Budget(1.0))
    model = regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    if fitted:
        model.fit(X[:40], Y[:40])
    other = COPIES[way](model)
    assert other.ledger is ledger
    if not fitted:
        other.fit(X[:40], Y[:40])
    for one in (model, other):
        with pytest.raises(ldp.BudgetError):
            one.fit(X[:40], Y[:40])
    assert ledger.total == ldp.Budget(1.0)


@pytest.mark.parametrize(("way", "fitted"), [*((way, False) for way in PICKLES), ("pickle", True)])
@both
def test_a_pickle_of_a_ledger_in_memory_tells_what_was_spent_and_pays_for_nothing(regressor, way, fitted):
    ledger = ldp.Ledger(limit=ldp.Budget(3.0))
    model = regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    if fitted:
        model.fit(X[:40], Y[:40])
    there = PICKLES[way](model)
    assert there.ledger.limit == ldp.Budget(3.0)
    assert there.ledger.total == ledger.total == ldp.Budget(1.0 if fitted else 0.0)
    with pytest.raises(ldp.LedgerError, match=r"stayed behind.*set_params"):
        there.fit(X[:40], Y[:40])
    assert there.set_params(ledger=ldp.Ledger()).fit(X[:40], Y[:40]).ledger_.total == ldp.Budget(1.0)


@both
def test_a_model_fitted_with_a_ledger_in_memory_predicts_wherever_it_travels(regressor):
    model = regressor(epsilon=1.0, bounds=BOUNDS, ledger=ldp.Ledger(limit=ldp.Budget(1.0))).fit(X[:40], Y[:40])
    there = pickle.loads(pickle.dumps(model))
    assert np.array_equal(there.predict(X[:5]), model.predict(X[:5]))
    assert there.charges_ == model.charges_
    assert there.to_card() == model.to_card()
    with pytest.raises(ldp.LedgerError, match="stayed behind"):
        there.set_params(ledger=None).fit(X[:40], Y[:40])  # its limit is not lost by leaving it out


@both
def test_a_model_without_a_ledger_of_its_users_may_be_fitted_where_it_travels(regressor):
    model = regressor(epsilon=1.0, bounds=BOUNDS).fit(X[:40], Y[:40])
    there = pickle.loads(pickle.dumps(model))
    assert there.ledger_.total == ldp.Budget(1.0)
    assert there.fit(X[:40], Y[:40]).ledger_.total == ldp.Budget(1.0)
    assert model.ledger_.total == ldp.Budget(1.0)


@pytest.mark.parametrize("own", [Ridge, StandardScaler(), "ridge"])
def test_an_estimator_that_cannot_learn_costs_nothing(own):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.ParameterError, match="cannot learn"):
        LabelReleaseRegressor(own, epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(X[:400], Y[:400])
    assert not ledger.charges


def test_a_learner_that_fails_after_the_release_leaves_it_and_says_so():
    class Fussy(Ridge):
        def fit(self, X, y, sample_weight=None):
            if len(y) > 50:
                raise RuntimeError("too many rows for me")
            return super().fit(X, y)

    model = LabelReleaseRegressor(Fussy(), epsilon=1.0, bounds=BOUNDS, rounds=1)
    with pytest.raises(RuntimeError, match="too many") as caught:
        model.fit(X[:400], Y[:400])
    assert "release_.labels" in caught.value.__notes__[0]
    assert model.release_.labels.size == 400
    with pytest.raises(NotFittedError, match="no model"):
        model.predict(X[:5])


@both
def test_a_model_says_what_it_cost_and_whether_it_is_private(regressor):
    model = regressor(epsilon=0.5, bounds=BOUNDS).fit(X[:400], Y[:400])
    assert "label differential privacy with ε = 0.5" in model.summary()
    assert any(name in model.to_card() for name in ("DiscreteLaplace", "LatticeNorm"))
    assert json.loads(model.to_card())["words"] == "secure"
    seeded_one = regressor(epsilon=0.5, bounds=BOUNDS, random_state=seeded(1)).fit(X[:400], Y[:400])
    assert not seeded_one.secure_
    assert "NOT PRIVATE" in seeded_one.summary()
    assert "NOT PRIVATE" in seeded_one.to_card()


@both
def test_a_fit_that_is_refused_changes_nothing_of_what_a_model_says_of_itself(regressor):
    model = regressor(epsilon=0.5, bounds=BOUNDS, random_state=seeded(1), ledger=ldp.Ledger(ldp.Budget(0.5)))
    model.fit(X[:400], Y[:400])
    said, predicted = model.summary(), model.predict(X[:5])
    with pytest.raises(ldp.BudgetError):
        model.set_params(random_state=None, bounds=(-9.0, 9.0)).fit(X[:300], Y[:300])
    assert model.summary() == said
    assert "NOT PRIVATE" in model.to_card()
    assert np.array_equal(model.predict(X[:5]), predicted)


def test_a_fit_that_failed_does_not_count_as_a_release():
    y = Y[:300].copy()
    for bad in ({"mechanism": "magic"}, {"rounds": 0}):
        with pytest.raises(ldp.ParameterError):
            LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, **bad).fit(X[:300], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ldp.RepeatedReleaseWarning)
        LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1).fit(X[:300], y)


def forged(card, change):
    """Return a card whose content was changed and whose checksum fits again."""
    content = json.loads(card)
    schema = content.pop("schema")
    for name in ("version", "checksum"):
        content.pop(name)
    change(content)
    return card_format.dump(content, schema)


LIES = {
    "a smaller charge": lambda c: c["charges"][0].update(budget=["1/10", "0"]),
    "a charge left out": lambda c: c["charges"].pop(),
    "another cost": lambda c: c["cost"].update(epsilon=0.1),
    "another guarantee": lambda c: c.update(guarantee="label differential privacy with ε = 0.1"),
    "seeded noise called secure": lambda c: c.update(words="secure"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_card_that_contradicts_itself_is_refused(lie, tmp_path):
    model = LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1, random_state=seeded(1))
    release = model.fit(X[:400], Y[:400]).release_
    path = tmp_path / "release.npz"
    release.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, "card": np.array(forged(str(arrays["card"]), lie))})
    with pytest.raises(ldp.CardError, match="contradicts"):
        RowRelease.load(path)
    other = ldp.privatize(Y[:400], epsilon=1.0, bounds=BOUNDS, random_state=seeded(1), epsilon_prior=0.1)
    with pytest.raises(ldp.CardError, match="contradicts"):
        ldp.read_release_card(forged(other.to_card(), lie))


def test_a_file_that_is_none_or_missing_is_told_apart(tmp_path):
    (tmp_path / "empty.npz").touch()
    with pytest.raises(ldp.CardError, match="not a saved release"):
        RowRelease.load(tmp_path / "empty.npz")
    with pytest.raises(FileNotFoundError):
        RowRelease.load(tmp_path / "nowhere.npz")


def test_what_predicts_is_what_was_fitted():
    model = LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1).fit(X[:400], Y[:400])
    before = model.predict(X[:5])
    assert np.array_equal(model.set_params(estimator=None).predict(X[:5]), before)


def test_a_release_whose_labels_were_changed_is_refused(tmp_path):
    release = LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1).fit(X[:400], Y[:400]).release_
    path = tmp_path / "release.npz"
    release.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    for name in ("labels", "part", "scale"):
        np.savez(path, **{**arrays, name: arrays[name] + 1})
        with pytest.raises(ldp.CardError, match="other labels"):
            RowRelease.load(path)


def test_it_learns_what_the_budget_allows():
    errors = {}
    for epsilon in (0.5, 4.0):
        model = LabelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, random_state=seeded(2)).fit(
            X[:2400], Y[:2400]
        )
        errors[epsilon] = np.mean((model.predict(X[2400:]) - Y[2400:]) ** 2)
    assert errors[4.0] < errors[0.5] < 0.7 * Y.var()
    assert errors[4.0] < 0.2 * Y.var()


def test_at_a_tiny_budget_it_falls_back_to_the_private_mean():
    model = LabelReleaseRegressor(epsilon=0.02, bounds=BOUNDS, random_state=seeded(4)).fit(X, Y)
    assert np.mean((model.predict(X) - Y) ** 2) < 1.25 * Y.var()


def test_any_regressor_learns_from_the_release_and_predicts_within_the_bounds():
    model = LabelReleaseRegressor(Ridge(), epsilon=4.0, bounds=BOUNDS).fit(X, Y)
    far = model.predict(100 * X)
    assert far.min() >= BOUNDS[0]
    assert far.max() <= BOUNDS[1]
    pipe = make_pipeline(StandardScaler(), LabelReleaseRegressor(epsilon=4.0, bounds=BOUNDS, rounds=1))
    assert pipe.fit(X, Y).predict(X).shape == (3000,)


def test_a_release_is_saved_whole_and_comes_back_proven(tmp_path):
    model = LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS, rounds=2).fit(X, Y)
    path = tmp_path / "release.npz"
    model.release_.save(path)
    loaded = RowRelease.load(path)
    assert np.array_equal(loaded.labels, model.release_.labels)
    assert loaded.cost == ldp.Budget(2.0)
    assert "each row once" in loaded.summary()
    assert [p.name for p in tmp_path.iterdir()] == ["release.npz"]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ldp.CardError):
        RowRelease.load(path)


def test_cross_validation_is_warned_about_and_stopped_by_a_ledger():
    ledger = ldp.Ledger(limit=ldp.Budget(2.0))
    model = LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, rounds=1, ledger=ledger)
    with pytest.warns(ldp.RepeatedReleaseWarning), pytest.raises(ValueError, match="is left"):
        cross_val_score(model, X[:600], Y[:600], cv=5, error_score="raise")
    assert ledger.total == ldp.Budget(2.0)


def test_a_fitted_model_pickles_without_labels():
    model = LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS).fit(X, Y)
    data = pickle.dumps(model)
    assert np.array_equal(pickle.loads(data).predict(X), model.predict(X))
    assert not any(Y[i : i + 4].tobytes() in data for i in range(0, 3000, 50))


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
        LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(X, Y, sample_weight=np.ones(3000))
    assert not ledger.charges


@both
def test_no_label_however_extreme_raises_or_warns_and_cramped_bounds_are_refused_at_no_cost(regressor):
    wild = np.where(np.arange(400) % 3 == 0, 1e308, np.where(np.arange(400) % 3 == 1, -1e308, 5e-324))
    for labels in (wild, np.full(400, 2.0)):
        for epsilon in (0.3, 4.0):
            assert np.isfinite(regressor(epsilon=epsilon, bounds=BOUNDS).fit(X[:400], labels).predict(X)).all()
    ledger = ldp.Ledger()
    with pytest.raises(ldp.ParameterError, match="offset"):
        regressor(epsilon=1.0, bounds=(1e15, 1e15 + 200), ledger=ledger).fit(X[:400], wild)
    assert not ledger.charges
