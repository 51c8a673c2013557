"""A saved model: the same predictions, and whole or not there; tests/attacks look for labels in it."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import Ridge

import labeldp as ldp
import model_cases
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


@pytest.mark.parametrize("columns", [25, 310])
def test_wide_tables_come_back_too(columns, tmp_path):
    model, own, table = model_cases.wide(columns)
    again = ldp.load_model(saved(model, tmp_path / "model", own))
    assert np.array_equal(again.predict(table), model.predict(own.transform(table)))


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
