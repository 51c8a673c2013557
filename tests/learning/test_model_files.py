"""A saved model: the same predictions, and whole or not there; tests/attacks look for labels in it."""

import json
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import Ridge

import labeldp as ldp
import model_cases
from labeldp.app.model_predictions import predict_file
from labeldp.learning.model_arrays import Forest
from labeldp.learning.models import model_folder
from model_cases import BOUNDS, saved


@pytest.mark.parametrize("make", [model_cases.fitted, model_cases.with_trees, model_cases.released])
def test_a_loaded_model_predicts_the_same_to_the_last_bit(make, tmp_path):
    model, table = make(), model_cases.table()
    again = ldp.load_model(saved(model, tmp_path / "model"))
    assert np.array_equal(again.predict(table), model.predict(model_cases.encoder().transform(table)))
    assert np.ptp(again.predict(table)) > 0.1
    assert (again.label, again.card.terms.bounds[0], again.card.kind) == ("price", BOUNDS, "model")
    assert again.card.terms.cost == ldp.Budget(model.epsilon)
    assert again.predict(table.slice(0, 0)).shape == (0,)


FORMAT_1 = """
blend_error blend_rest blend_weight known_high known_low known_sums known_variance linear_mean
linear_residual_variance linear_signal_variance linear_weights public_center public_means public_norms
public_phases public_ranks public_scale public_weights source_levels source_quantities
trees_baseline trees_feature_idx trees_is_leaf trees_left trees_num_threshold trees_right trees_sizes trees_value
"""


def test_a_name_that_changes_in_the_code_does_not_change_the_format_of_models(tmp_path):
    arrays = model_cases.arrays_in(saved(model_cases.with_trees(), tmp_path / "model"))
    assert sorted(arrays) == FORMAT_1.split()


def test_released_labels_lie_in_the_folder_and_say_what_they_are(path_of_labels):
    labels = ldp.learning.RowRelease.load(path_of_labels / "release.npz").labels
    assert np.array_equal(labels, model_cases.released().release_.labels)


def test_an_estimator_of_the_users_is_not_pickled(tmp_path):
    own = ldp.LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1)
    own.fit(model_cases.encoder().transform(model_cases.table()), model_cases.labels())
    with pytest.raises(ldp.errors.ParameterError, match="estimator of yours"):
        saved(own, tmp_path / "model")
    assert not list(tmp_path.iterdir())


# ---- whole or not at all ----------------------------------------------------------------------------------


def test_a_model_that_could_not_be_finished_leaves_nothing_and_the_old_one_stays(path, tmp_path):
    before = {each.name: each.read_bytes() for each in path.iterdir()}

    def stopped(error):
        with model_folder(path, force=True) as draft:
            (draft / "model.npz").write_bytes(b"half of")
            raise error

    for error in (KeyboardInterrupt, OSError):
        with pytest.raises(error):
            stopped(error)
    assert {each.name: each.read_bytes() for each in path.iterdir()} == before
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_a_model_is_replaced_only_by_force_and_anything_else_never(path, tmp_path):
    with pytest.raises(ldp.errors.ParameterError):
        saved(model_cases.fitted(), path)
    (path / "card.report.html").write_text("a page about the old model")
    saved(model_cases.fitted(), path, label="other", force=True)
    assert not (path / "card.report.html").exists()
    assert ldp.load_model(path).label == "other"
    (path / "thesis.tex").write_text("years of work")
    with pytest.raises(ldp.errors.ParameterError):
        saved(model_cases.fitted(), path, force=True)
    assert (path / "thesis.tex").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    assert ldp.load_model(saved(model_cases.fitted(), tmp_path / "empty")).label == "price"
    (tmp_path / "file").write_text("a file")
    with pytest.raises(ldp.errors.LabelDPError):
        saved(model_cases.fitted(), tmp_path / "file", force=True)
    with pytest.raises(ldp.errors.ParameterError):
        saved(model_cases.fitted(), tmp_path / "no" / "where")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "file", "model"]


def test_the_trees_predict_as_scikit_learn_does():
    """What is private to scikit-learn is read in `Forest`: look there before another version joins this list."""
    assert sklearn.__version__.rpartition(".")[0] in ("1.7", "1.8", "1.9")
    booster = model_cases.with_trees()._ensemble.trees
    inputs = np.random.default_rng(3).normal(size=(500, booster.n_features_in_))
    again = Forest.of(booster)
    assert np.array_equal(again.predict(inputs), booster.predict(inputs))
    with pytest.raises(ldp.errors.CardError, match="columns"):
        again.predict(inputs[:, 1:])


# ---- its place is kept while others write and charge --------------------------------------------------------


def fit(ledger, **options):
    Path("in.csv").write_text("a,price\n" + "".join(f"{i % 7},{i % 5}.5\n" for i in range(400)))
    fixed = {"label": "price", "bounds": (0, 5), "epsilon": 1, "score": 2.0}
    return ldp.fit_file("in.csv", "model", ledger=ledger, **{**fixed, **options})


class Racing(ldp.Ledger):
    """Lets another fit try to write to the same place whenever it is charged."""

    races = 0

    def charge_all(self, charges, scope=None):
        other = ldp.Ledger()
        with pytest.raises(ldp.errors.ParameterError, match="another release is being written to"):
            fit(other, force=True)
        assert other.charges == ()
        self.races += 1
        return super().charge_all(charges, scope)


def test_a_models_name_is_kept_until_it_is_written_with_its_score():
    done = fit(book := Racing())
    assert book.races == len(book.charges) == 2
    assert done.score_error is None
    assert Path("model/card.json").read_text() == done.card
    ldp.load_model("model")


class Full(ldp.Ledger):
    """Finds no space for a second charge."""

    def charge_all(self, charges, scope=None):
        if self.charges:
            raise OSError(28, "No space left on device")
        return super().charge_all(charges, scope)


def test_a_model_that_was_paid_for_is_written_if_its_score_fails():
    done = fit(book := Full())
    assert isinstance(done.score_error, OSError)
    assert "quality" not in json.loads(done.card)
    assert book.total == ldp.Budget(1)
    ldp.load_model("model")


def test_a_model_is_not_paid_for_if_nothing_is_left_for_its_score():
    book = ldp.Ledger.open("budget.db", limit=ldp.Budget(2))

    def charge(what, done, total):
        if what == "Fitting":
            ldp.Ledger.open("budget.db").charge("another's", epsilon=0.5)

    with pytest.raises(ldp.BudgetError):
        fit(book, progress=charge)
    assert book.total == ldp.Budget(0.5)


def test_a_column_for_predictions_that_is_not_unicode_is_refused(tmp_path):
    with pytest.raises(ldp.errors.ParameterError, match="column is not valid Unicode"):
        predict_file(tmp_path / "model", tmp_path / "in.csv", tmp_path / "out.csv", column="pr\udcff")
