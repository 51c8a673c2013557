"""fit_and_score: rows held out by the library, the larger cost in the ledger, and the split on the card."""

import json
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labeldp as ldp
from helpers import seeded
from labeldp.errors import ParameterError
from labeldp.learning.quality import terms_with_score
from labeldp.learning.score import NOT_SCORED

ROWS = 800
X = np.random.default_rng(3).normal(size=(ROWS, 2))
Y = np.clip(2.5 + X[:, 0], 0, 5)
BOUNDS = (0.0, 5.0)


def regressor(**options):
    return ldp.ModelReleaseRegressor(**{"epsilon": 1.0, "bounds": BOUNDS, **options})


def both(model, X=X, y=Y, **options):
    return ldp.fit_and_score(model, X, y, **{"epsilon": 0.5, **options})


class Spy(ldp.ModelReleaseRegressor):
    """Keeps the rows that it learns from."""

    def fit(self, X, y):
        self.learnt = X
        return super().fit(X, y)


@pytest.mark.parametrize(("epsilon", "purposes"), [(0.5, ["sums"]), (1.0, ["sums"]), (2.5, ["sums", "score"])])
def test_the_larger_cost_is_charged_and_no_row_is_both_learnt_from_and_scored(epsilon, purposes):
    ledger = ldp.Ledger(limit=ldp.Budget(max(1.0, epsilon)))
    model, score = both(given := Spy(epsilon=1.0, bounds=BOUNDS, ledger=ledger), test_size=0.25, epsilon=epsilon)
    assert model is given
    assert model.terms_.rows == 600
    assert [charge.purpose for charge in ledger.charges] == purposes
    assert ledger.total == ledger.limit
    assert score.cost == ldp.Budget(epsilon)
    train, test = score.split.indices()
    assert np.array_equal(model.learnt, X[train])
    assert np.array_equal(np.sort([*train, *test]), np.arange(ROWS))
    assert score.rows == len(test) == 200
    truth = np.abs(model.predict(X[test]) - Y[test]).mean()
    assert abs(score.mae - truth) < 6 * score.figures["mae"].standard_error


def test_the_split_follows_from_random_words_and_never_from_labels():
    seeds = [both(regressor(), y=y, random_state=seeded(5))[1].split.seed for y in (Y.copy(), 5 - Y)]
    assert seeds[0] == seeds[1]
    fresh = {both(regressor(), y=Y.copy())[1].split.seed for _ in range(2)}
    assert len(fresh) == 2, "fresh by default"


FRAME = pd.DataFrame(X, columns=["a", "b"], index=np.arange(ROWS)[::-1])
KINDS = {
    "arrays": (X, Y),
    "lists": (X.tolist(), Y.tolist()),
    "pandas": (FRAME, pd.Series(Y, index=FRAME.index)),
    "polars": (pl.DataFrame(X, schema=["a", "b"]), pl.Series("price", Y)),
    "arrow": (pa.table({"a": X[:, 0], "b": X[:, 1]}), pa.array(Y)),
    "sparse": (sparse.coo_array(X), Y),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_table_that_a_regressor_takes_can_be_split(kind):
    model, score = both(regressor(), *KINDS[kind], epsilon=2.0)
    assert (model.terms_.rows, score.rows) == (720, 80)


BAD = {
    "got Ridge": {"model": Ridge()},
    "epsilon": {"epsilon": 0.0},
    "would say nothing": {"epsilon": 0.01},
    "test_size": {"test_size": 1.0},
    "800 rows of X": {"y": Y[:-1]},
    "label": {"y": np.where(np.arange(ROWS) == 3, np.nan, Y)},
    "60 rows are too few": {"X": X[:60], "y": Y[:60]},
    "random_state": {"random_state": "now"},
    "Budget exceeded": {"epsilon": 3.1},
}


@pytest.mark.parametrize("says", BAD)
def test_what_cannot_be_scored_is_refused_before_anything_is_charged(says):
    ledger = ldp.Ledger(limit=ldp.Budget(3))
    with pytest.raises(ldp.LabelDPError, match=says):
        both(**{"model": regressor(ledger=ledger), **BAD[says]})
    assert ledger.charges == ()


def test_a_person_with_most_rows_is_in_the_fit_and_there_is_no_score():
    ledger, person = ldp.Ledger(), np.minimum(np.arange(ROWS), 50)
    with pytest.raises(ldp.errors.ParameterError, match="one person has 750 of 800 rows"):
        both(regressor(ledger=ledger), person=person)
    assert ledger.charges == ()
    release = ldp.privatize(Y, X=X, epsilon=1.0, bounds=BOUNDS, person=person, ledger=ledger)
    assert release.error is None
    assert ledger.total == ldp.Budget(750.0)


@pytest.mark.parametrize(
    ("people", "epsilon", "cost"), [(1, 0.5, 1.0), (1, 2.0, 2.0), (2, 0.5, 2.0), (2, 3.0, 6.0)]
)
def test_a_card_costs_what_the_ledger_was_charged(people, epsilon, cost, tmp_path):
    """With a split of this library that is the larger of two costs, and without one their sum."""
    ledger = ldp.Ledger()
    model, score = both(regressor(rows_per_person=people, ledger=ledger), epsilon=epsilon)
    ldp.save_model(model, tmp_path / "split", quality=score)
    card = json.loads((tmp_path / "split" / "card.json").read_text())
    assert card["cost"]["epsilon"] == ledger.total.epsilon == cost
    times = {charge["purpose"]: charge["when"] for charge in card["charges"]}
    assert card["split"] == {
        "method": "shuffled",
        "seed": score.split.seed,
        "train_rows": 720,
        "test_rows": 80,
        "fit_charges": [times["sums"]],
    }
    fresh = np.random.default_rng(4).normal(size=(100, 2))
    options = {"epsilon": epsilon, "bounds": BOUNDS, "rows_per_person": people, "ledger": ledger}
    given = ldp.private_score(model, fresh, np.clip(2.5 + fresh[:, 0], 0, 5), **options)
    ldp.save_model(model, tmp_path / "given", quality=given)
    card = json.loads((tmp_path / "given" / "card.json").read_text())
    assert card["cost"]["epsilon"] == people * (1.0 + epsilon)
    assert ledger.total == ldp.Budget(cost + people * epsilon)
    assert "split" not in card


# ---- the larger cost belongs to the very charges that were made disjoint ---------------------------------------


def cost_on_card(model, score, folder):
    ldp.save_model(model, folder, quality=score, force=True)
    assert ldp.verify_card((folder / "card.json").read_text()).holds
    return ldp.load_model(folder).terms_.cost


def test_a_card_with_a_score_trusts_a_curator_who_sums_labels(tmp_path):
    ledger = ldp.Ledger()
    model = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, trust="local", ledger=ledger)
    model, score = both(model, epsilon=2.0)
    assert cost_on_card(model, score, tmp_path / "model") == ldp.Budget(2.0)
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert (model.terms_.trust, card["trust"]) == ("local", "curator")


@pytest.mark.parametrize("form", ["as returned", "pickled", "other parameters", "fitted before", "pipeline"])
def test_the_model_that_was_scored_keeps_the_larger_cost(form, tmp_path):
    model = regressor()
    if form == "fitted before":
        model.fit(X, Y.copy())
    model, score = both(make_pipeline(StandardScaler(), model) if form == "pipeline" else model, y=Y.copy())
    model = model[-1] if form == "pipeline" else model
    if form == "pickled":
        model, score = pickle.loads(pickle.dumps((model, score)))
    if form == "other parameters":
        model.set_params(epsilon=9.0, rows_per_person=3)
    assert cost_on_card(model, score, tmp_path / "model") == ldp.Budget(1.0)


def model_entries(model, folder, score):
    """Return the entries of a model's card that are not terms."""
    ldp.save_model(model, folder / "entries")
    entries = json.loads((folder / "entries" / "card.json").read_text())
    names = ("model", "label", "note", "features", "format", "files", "versions")
    return {name: entries[name] for name in names if name in entries} | {"quality": score.as_data()}


OTHER_FITS = {
    "fitted again": lambda model, train: model.fit(X[train], Y[train]),
    "scored again": lambda model, train: both(model)[0],
    "cloned": lambda model, train: clone(model).fit(X[train], Y[train]),
    "another": lambda model, train: regressor().fit(X[:720], Y[:720]),
    "on all rows": lambda model, train: regressor().fit(X, Y),
}


@pytest.mark.parametrize("change", OTHER_FITS)
def test_a_score_is_not_saved_with_another_fit(change, tmp_path):
    model, score = both(regressor(), y=Y.copy())
    other = OTHER_FITS[change](model, score.split.indices()[0])
    with pytest.raises(ParameterError, match="another fit"):
        ldp.save_model(other, tmp_path / "model", quality=score)
    assert not (tmp_path / "model").exists()
    terms = replace(other.terms_, statistics=(*other.terms_.statistics, *score.statistics), split=score.split)
    card = terms.to_card("labeldp.model", **model_entries(other, tmp_path, score))
    assert "the split" in ldp.verify_card(card).checks[-1].detail


def test_a_given_score_is_not_saved_with_another_fit_either(tmp_path):
    model, other = regressor().fit(X[:600], Y[:600]), regressor(epsilon=0.1).fit(X[:600], Y[:600])
    score = ldp.private_score(model, X[600:], Y[600:], epsilon=0.5, bounds=BOUNDS)
    assert cost_on_card(model, score, tmp_path / "model") == ldp.Budget(1.5)
    loaded = ldp.load_model(tmp_path / "model")
    again = ldp.private_score(loaded, X[600:], Y[600:], epsilon=0.5, bounds=BOUNDS)
    assert cost_on_card(model, again, tmp_path / "model") == ldp.Budget(1.5)
    with pytest.raises(ParameterError, match="another fit"):
        ldp.save_model(other, tmp_path / "other", quality=score)


class Stays(ldp.ModelReleaseRegressor):
    """Does not fit again."""

    def fit(self, X, y):
        return self if hasattr(self, "terms_") else super().fit(X, y)


class FitsTwice(ldp.ModelReleaseRegressor):
    """Is charged for two fits."""

    def fit(self, X, y):
        return super().fit(X, y) and super().fit(X, y)


def search(model):
    return GridSearchCV(model, {"epsilon": [0.5, 1.0]}, cv=2).fit(X, Y.copy())


UNFIT = {
    "frozen": lambda ledger: FrozenEstimator(regressor(ledger=ledger).fit(X[:720], Y[:720])),
    "frozen in a pipeline": lambda ledger: make_pipeline(
        StandardScaler(), FrozenEstimator(regressor(ledger=ledger).fit(X[:720], Y[:720]))
    ),
    "search": lambda ledger: search(regressor(ledger=ledger)),
    "not fitted again": lambda ledger: Stays(epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(X, Y),
}


@pytest.mark.parametrize("form", UNFIT)
def test_a_model_that_one_fit_does_not_pay_for_is_refused_and_nothing_is_charged(form):
    model = UNFIT[form](ledger := ldp.Ledger())
    earlier = ledger.charges
    with pytest.raises(ParameterError):
        both(model)
    assert ledger.charges == earlier


def test_a_fit_that_charges_for_more_than_its_card_lists_gets_no_score():
    ledger = ldp.Ledger()
    with pytest.raises(ParameterError, match="more than one fit"):
        both(FitsTwice(epsilon=1.0, bounds=BOUNDS, ledger=ledger))
    assert [charge.purpose for charge in ledger.charges] == ["sums", "sums"]


# ---- predictions that are not one finite number for each row ----------------------------------------------------


class Column(LinearRegression):
    """Predicts a column: compared with a row of labels, a table of errors."""

    def predict(self, X):
        return super().predict(X)[:, np.newaxis]


class Holes(LinearRegression):
    """Predicts no number for some rows."""

    def predict(self, X):
        return np.where(np.arange(len(X)) % 7, super().predict(X), np.nan)


@pytest.mark.parametrize("estimator", [Column, Holes])
def test_an_estimator_that_predicts_no_number_for_a_row_is_refused_before_anything_is_charged(estimator):
    ledger = ldp.Ledger()
    with pytest.raises(ParameterError, match="a finite number for each"):
        both(ldp.LabelReleaseRegressor(estimator(), epsilon=1.0, bounds=BOUNDS, ledger=ledger))
    assert ledger.charges == ()


class TurnsToColumns(ldp.ModelReleaseRegressor):
    """Predicts a column, which no trial can show before the fit."""

    def predict(self, X):
        return super().predict(X)[:, np.newaxis]


def test_a_column_of_predictions_is_not_scored_as_one_label_would_move_all_errors():
    with pytest.raises(ParameterError, match="a finite number for each") as error:
        both(TurnsToColumns(epsilon=1.0, bounds=BOUNDS))
    assert NOT_SCORED in error.value.__notes__


def test_a_score_that_costs_nothing_more_leaves_no_record_in_a_ledger(tmp_path):
    ledger = ldp.Ledger.open(tmp_path / "ledger")
    both(regressor(ledger=ledger), epsilon=0.5)
    assert len(json.loads(ledger.to_extract())["records"]) == 2  # the header, and one charge


def test_the_score_of_several_fits_together_is_not_saved_with_one():
    models = [regressor().fit(X[:600], Y[:600]) for _ in range(2)]
    average = SimpleNamespace(predict=lambda X: (models[0].predict(X) + models[1].predict(X)) / 2)
    score = ldp.private_score(average, X[600:], Y[600:], epsilon=1.0, bounds=BOUNDS)
    with pytest.raises(ParameterError, match="another fit"):
        terms_with_score(models[0].terms_, score)
