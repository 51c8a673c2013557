"""A saved model: the same predictions, no label inside, nothing run when it is opened, and whole or not there."""

import io
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline

from labeldp import LabelReleaseRegressor, ModelReleaseRegressor, RowRelease, card_format
from labeldp.cards.reading import read_any_card
from labeldp.errors import CardError, DataNotFoundError, LabelDPError, ParameterError
from labeldp.estimators.features import FeatureTable
from labeldp.estimators.learner import Blend, Knowledge
from labeldp.files.forest import Forest
from labeldp.files.models import load_model, model_folder, save_model, write_model
from labeldp.files.places import sha256
from labeldp.tabular import TableEncoder
from object_graph import secrets_inside, secrets_of

BOUNDS = (0.0, 5.0)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pa.table({"a": rng.normal(size=300), "b": rng.normal(size=300), "town": rng.choice(["x", "y"], 300)})


@pytest.fixture(scope="module")
def labels(table):
    noise = np.random.default_rng(1).normal(size=300) * 0.1
    return 2.5 + np.tanh(table["a"].to_numpy()) + noise


@pytest.fixture(scope="module")
def encoder(table):
    return TableEncoder.fit(table, table.column_names)


@pytest.fixture(scope="module")
def fitted(table, labels, encoder):
    return ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(encoder.transform(table), labels)


@pytest.fixture(scope="module")
def with_trees(fitted, table, labels, encoder):
    """The same model with boosted trees blended in, as fits on many rows have them."""
    X = encoder.transform(table)
    known = Knowledge(*BOUNDS, variance=1.0, sums=3)
    inputs = FeatureTable(fitted._public, X).codes(np.arange(len(X)))
    made = np.random.default_rng(2).normal(size=len(X))
    trees = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5, max_features=0.6).fit(inputs, made)
    model = ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS)
    model.__dict__.update(fitted.__dict__)
    model._blend = Blend(fitted._blend.linear, trees, 0.5, 0.1, 0.2, known)
    return model


@pytest.fixture(scope="module")
def released(table, labels, encoder):
    return LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS, rounds=1).fit(encoder.transform(table), labels)


def saved(model, encoder, path):
    with model_folder(path) as draft:
        write_model(model, encoder, draft, label="price")
    return path


@pytest.fixture
def path(fitted, encoder, tmp_path):
    """The folder of a saved model."""
    return saved(fitted, encoder, tmp_path / "model")


@pytest.mark.parametrize("name", ["fitted", "with_trees", "released"])
def test_a_loaded_model_predicts_the_same_to_the_last_bit(name, request, table, encoder, tmp_path):
    model = request.getfixturevalue(name)
    again = load_model(saved(model, encoder, tmp_path / "model"))
    assert np.array_equal(again.predict(table), model.predict(encoder.transform(table)))
    assert np.ptp(again.predict(table)) > 0.1
    assert (again.label, again.card.terms.bounds[0], again.card.kind) == ("price", BOUNDS, "model")
    assert again.card.terms.cost == model.charges_[0].budget.__class__(model.epsilon)
    assert again.predict(table.slice(0, 0)).shape == (0,)


def test_wide_tables_come_back_too(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({f"c{k}": rng.normal(size=60) for k in range(310)})
    encoder = TableEncoder.fit(table, table.column_names)
    X = encoder.transform(table)
    model = ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, rng.uniform(0, 5, 60))
    again = load_model(saved(model, encoder, tmp_path / "model"))
    assert np.array_equal(again.predict(table), model.predict(X))


def test_the_card_of_the_folder_is_a_card_like_any_other_and_names_the_versions(path):
    card = read_any_card((path / "card.json").read_text())
    assert card.terms.cost.epsilon == 1.0
    assert set(card.content["versions"]) == {"python", "labeldp", "numpy", "scikit-learn"}
    assert {each.name for each in path.iterdir()} == {"card.json", "columns.json", "model.npz"}


def test_released_labels_lie_in_the_folder_and_say_what_they_are(released, encoder, tmp_path):
    path = saved(released, encoder, tmp_path / "model")
    assert np.array_equal(RowRelease.load(path / "release.npz").labels, released.release_.labels)


def test_an_estimator_of_the_users_is_not_pickled(table, labels, encoder, tmp_path):
    from sklearn.linear_model import Ridge

    own = LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=1)
    own.fit(encoder.transform(table), labels)
    with pytest.raises(ParameterError, match="estimator of yours"):
        saved(own, encoder, tmp_path / "model")
    assert not list(tmp_path.iterdir())


# ---- no label inside --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fitted", "released"])
def test_no_true_label_can_be_reached_from_a_model_or_its_files(name, request, labels, encoder, tmp_path):
    model = request.getfixturevalue(name)
    secrets = secrets_of(labels, BOUNDS)
    assert secrets_inside(model, secrets) == set()
    path = saved(model, encoder, tmp_path / "model")
    assert secrets_inside(load_model(path), secrets) == set()
    for each in path.iterdir():
        assert secrets_inside(each.read_bytes(), secrets) == set()


def test_a_model_that_kept_labels_would_be_caught(fitted, labels):
    leaky = ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS)
    leaky.__dict__.update(fitted.__dict__)
    leaky._kept = {"deep": [replace(fitted._blend.linear, weights=labels[:7])]}
    assert {f"label {k}" for k in range(7)} <= secrets_inside(leaky, secrets_of(labels, BOUNDS))


# ---- hostile files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["card.json", "columns.json", "model.npz", "release.npz"])
def test_one_changed_byte_is_noticed(name, released, encoder, tmp_path):
    path = saved(released, encoder, tmp_path / "model")
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (path / name).write_bytes(data)
    with pytest.raises(CardError):
        load_model(path)


def test_a_missing_file_is_said_to_be_missing(path):
    with pytest.raises(DataNotFoundError, match="no model here"):
        load_model(path / "nowhere")
    (path / "model.npz").unlink()
    with pytest.raises(DataNotFoundError, match="not complete"):
        load_model(path)


def forged(path, changed=None, raw=None):
    """Change a model's arrays, or its whole file, and make the hashes fit, as a forger would."""
    file = path / "model.npz"
    if raw is None:
        with np.load(file) as stored:
            arrays = {**{name: stored[name] for name in stored.files}, **changed}
        np.savez(file, **arrays)
    else:
        file.write_bytes(raw)
    content = card_format.parse((path / "card.json").read_text(), "labeldp.model")

    content["files"]["model.npz"] = sha256(file)
    content = {name: value for name, value in content.items() if name not in ("schema", "version")}
    (path / "card.json").write_text(card_format.dump(content, "labeldp.model"))
    return path


class Bomb:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


def test_a_pickle_in_the_arrays_is_refused_and_not_run(path):
    target = path.with_name("was-run")
    payload = pickle.dumps(np.array([Bomb(target)], dtype=object))
    bare = io.BytesIO()
    np.savez(bare, linear_weights=np.array([Bomb(target)], dtype=object))
    for raw in (payload, bare.getvalue()):
        with pytest.raises(CardError):
            load_model(forged(path, raw=raw))
        assert not target.exists()
    with np.load(path / "model.npz", allow_pickle=True) as stored:  # the twin: whoever unpickles runs it
        _ = stored["linear_weights"]
    assert target.exists()


def tree_change(name, value):
    def change(arrays):
        inner = int(np.flatnonzero(arrays["trees_leaf"] == 0)[0])
        changed = arrays[f"trees_{name}"].astype(np.int64 if name != "threshold" else float)
        changed[inner] = value
        return {f"trees_{name}": changed}

    return change


HOSTILE = {
    "a node that leads back": tree_change("left", 0),
    "a node that leads out": tree_change("right", 10**6),
    "a node that leads far out": tree_change("right", 2**40),
    "a column that is not there": tree_change("feature", 10**9),
    "a column before the first": tree_change("feature", -1),
    "a threshold that is none": tree_change("threshold", np.nan),
    "sizes that do not fit": lambda a: {"trees_sizes": a["trees_sizes"][:-1]},
    "a tree of no nodes": lambda a: {"trees_sizes": np.append(a["trees_sizes"], 0)},
    "more columns than there are": lambda a: {"trees_features": np.array(99)},
    "weights that are no numbers": lambda a: {"linear_weights": np.full_like(a["linear_weights"], np.nan)},
    "weights of another size": lambda a: {"linear_weights": a["linear_weights"][1:]},
    "text": lambda a: {"linear_weights": np.array(["a"] * a["linear_weights"].size)},
    "a table of another width": lambda a: {"public_center": a["public_center"][1:]},
    "a scale of nothing": lambda a: {"public_scale": np.zeros_like(a["public_scale"])},
    "a block that is not there": lambda a: {"public_block": a["public_block"] + 4},
    "a million waves": lambda a: {"public_waves": np.array(10**6)},
    "other bounds than the card's": lambda a: {"known_high": np.array(9.0)},
    "bounds the wrong way round": lambda a: {"known_high": np.array(-9.0)},
    "a share above all": lambda a: {"blend_weight": np.array(2.0)},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_numbers_that_make_no_model_are_refused_though_the_hashes_fit(what, with_trees, encoder, tmp_path):
    path = saved(with_trees, encoder, tmp_path / "model")
    load_model(forged(path, {}))
    with np.load(path / "model.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    with pytest.raises(CardError):
        load_model(forged(path, HOSTILE[what](arrays)))


def npz(header, kind=zipfile.ZIP_STORED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", kind) as out:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, header)
        out.writestr("linear_weights.npy", head.getvalue() + bytes(64))
    return packed.getvalue()


def test_an_array_that_asks_for_more_memory_than_the_file_has_bytes_is_refused(path):
    for shape in [(10**12,), (2**40, 2**40), (-1,)]:
        with pytest.raises(CardError):
            load_model(forged(path, raw=npz({"descr": "<f8", "fortran_order": False, "shape": shape})))
    packed = npz({"descr": "<f8", "fortran_order": False, "shape": (8,)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(CardError, match="is compressed"):
        load_model(forged(path, raw=packed))
    with pytest.raises(CardError):
        load_model(forged(path, raw=b"PK no zip at all"))


def test_a_card_of_another_kind_or_format_or_with_other_files_is_refused(path, fitted):
    content = card_format.parse((path / "card.json").read_text(), "labeldp.model")
    content = {name: value for name, value in content.items() if name not in ("schema", "version")}
    outside = {**content["files"], "../../etc/passwd": "sha256:0"}
    for change in ({"format": 99}, {"files": outside}, {"files": []}, {"label": None, "guarantee": "none"}):
        (path / "card.json").write_text(card_format.dump({**content, **change}, "labeldp.model"))
        with pytest.raises(CardError):
            load_model(path)
    (path / "card.json").write_text(fitted.to_card())
    with pytest.raises(CardError, match="not the card of a saved model"):
        load_model(path)


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
    with pytest.raises(ParameterError, match="force=True"):
        saved(fitted, encoder, path)
    (path / "card.report.html").write_text("a page about the old model")
    with model_folder(path, force=True) as draft:
        write_model(fitted, encoder, draft, label="other")
    assert not (path / "card.report.html").exists()
    assert load_model(path).label == "other"
    (path / "thesis.tex").write_text("years of work")
    with pytest.raises(ParameterError, match="other files"), model_folder(path, force=True):
        pass
    assert (path / "thesis.tex").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    assert load_model(saved(fitted, encoder, tmp_path / "empty")).label == "price"
    (tmp_path / "file").write_text("a file")
    with pytest.raises(LabelDPError), model_folder(tmp_path / "file", force=True):
        pass
    with pytest.raises(ParameterError, match="create it first"), model_folder(tmp_path / "no" / "where"):
        pass
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "file", "model"]


def test_the_trees_predict_as_scikit_learn_does(with_trees):
    """What is private to scikit-learn is read in `forest`: look there before another version joins this list."""
    assert sklearn.__version__.rpartition(".")[0] in ("1.7", "1.8", "1.9")
    booster = with_trees._blend.trees
    inputs = np.random.default_rng(3).normal(size=(500, booster.n_features_in_))
    again = Forest.from_arrays(Forest.of(booster).as_arrays())
    assert np.array_equal(again.predict(inputs), booster.predict(inputs))
    with pytest.raises(CardError, match="columns"):
        again.predict(inputs[:, 1:])


def test_what_is_no_private_regressor_is_not_saved_and_is_named(fitted, tmp_path):
    for other in (make_pipeline(fitted), HistGradientBoostingRegressor()):
        with pytest.raises(ParameterError, match=f"can be saved, got {type(other).__name__}"):
            save_model(other, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_model_that_was_read_is_one_short_line_in_a_notebook(fitted, tmp_path):
    save_model(fitted, tmp_path / "model", label="price")
    assert repr(load_model(tmp_path / "model")) == "<SavedModel of 'price' from 4 columns, ε = 1>"
