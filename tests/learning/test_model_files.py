"""A saved model: the same predictions, no label inside, and whole or not there."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn

import labeldp as ldp
from labeldp import LabelReleaseRegressor, ModelReleaseRegressor
from labeldp.learning.model_arrays import Forest
from labeldp.learning.models import model_folder
from model_cases import BOUNDS, saved, wide, wide_table
from object_graph import secrets_inside, secrets_of


@pytest.mark.parametrize("name", ["fitted", "with_trees", "released"])
def test_a_loaded_model_predicts_the_same_to_the_last_bit(name, request, table, encoder, tmp_path):
    model = request.getfixturevalue(name)
    again = ldp.load_model(saved(model, encoder, tmp_path / "model"))
    assert np.array_equal(again.predict(table), model.predict(encoder.transform(table)))
    assert np.ptp(again.predict(table)) > 0.1
    assert (again.label, again.card.terms.bounds[0], again.card.kind) == ("price", BOUNDS, "model")
    assert again.card.terms.cost == model.charges_[0].budget.__class__(model.epsilon)
    assert again.predict(table.slice(0, 0)).shape == (0,)


@pytest.mark.parametrize("columns", [25, 310])
def test_wide_tables_come_back_too(columns, tmp_path):
    model, own = wide(columns)
    again = ldp.load_model(saved(model, own, tmp_path / "model"))
    table = wide_table(columns)
    assert np.array_equal(again.predict(table), model.predict(own.transform(table)))


def test_released_labels_lie_in_the_folder_and_say_what_they_are(released, encoder, tmp_path):
    path = saved(released, encoder, tmp_path / "model")
    assert np.array_equal(ldp.learning.RowRelease.load(path / "release.npz").labels, released.release_.labels)


def test_an_estimator_of_the_users_is_not_pickled(table, labels, encoder, tmp_path):
    from sklearn.linear_model import Ridge

    own = LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1)
    own.fit(encoder.transform(table), labels)
    with pytest.raises(ldp.errors.ParameterError, match="estimator of yours"):
        saved(own, encoder, tmp_path / "model")
    assert not list(tmp_path.iterdir())


# ---- no label inside --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fitted", "released"])
def test_no_true_label_can_be_reached_from_a_model_or_its_files(name, request, labels, encoder, tmp_path):
    model = request.getfixturevalue(name)
    secrets = secrets_of(labels, BOUNDS)
    assert secrets_inside(model, secrets) == set()
    path = saved(model, encoder, tmp_path / "model")
    assert secrets_inside(ldp.load_model(path), secrets) == set()
    for each in path.iterdir():
        assert secrets_inside(each.read_bytes(), secrets) == set()


def test_a_model_that_kept_labels_would_be_caught(fitted, labels):
    leaky = ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS)
    leaky.__dict__.update(fitted.__dict__)
    leaky._kept = {"deep": [replace(fitted._ensemble.linear, weights=labels[:7])]}
    assert {f"label {k}" for k in range(7)} <= secrets_inside(leaky, secrets_of(labels, BOUNDS))


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


def test_a_model_is_replaced_only_by_force_and_anything_else_never(path, fitted, encoder, tmp_path):
    with pytest.raises(ldp.errors.ParameterError, match="force=True"):
        saved(fitted, encoder, path)
    (path / "card.report.html").write_text("a page about the old model")
    saved(fitted, encoder, path, label="other", force=True)
    assert not (path / "card.report.html").exists()
    assert ldp.load_model(path).label == "other"
    (path / "thesis.tex").write_text("years of work")
    with pytest.raises(ldp.errors.ParameterError, match="other files"):
        saved(fitted, encoder, path, force=True)
    assert (path / "thesis.tex").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    assert ldp.load_model(saved(fitted, encoder, tmp_path / "empty")).label == "price"
    (tmp_path / "file").write_text("a file")
    with pytest.raises(ldp.errors.LabelDPError):
        saved(fitted, encoder, tmp_path / "file", force=True)
    with pytest.raises(ldp.errors.ParameterError, match="create it first"):
        saved(fitted, encoder, tmp_path / "no" / "where")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "file", "model"]


def test_the_trees_predict_as_scikit_learn_does(with_trees):
    """What is private to scikit-learn is read in `Forest`: look there before another version joins this list."""
    assert sklearn.__version__.rpartition(".")[0] in ("1.7", "1.8", "1.9")
    booster = with_trees._ensemble.trees
    inputs = np.random.default_rng(3).normal(size=(500, booster.n_features_in_))
    again = Forest.of(booster)
    assert np.array_equal(again.predict(inputs), booster.predict(inputs))
    with pytest.raises(ldp.errors.CardError, match="columns"):
        again.predict(inputs[:, 1:])
