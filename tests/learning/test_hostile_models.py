"""Whoever made a model: nothing in it is run, and it is used only if it is what a model is."""

import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import labeldp as ldp
from forged_cards import forged
from helpers import posix_only
from labeldp.learning import models
from labeldp.learning.model_arrays import MODEL_ARRAYS
from model_cases import arrays_in, fitted, saved, table, with_arrays, with_columns


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
        with pytest.raises(ldp.errors.CardError):
            ldp.load_model(with_arrays(path, raw))
        assert not target.exists()
    with np.load(path / "model.npz", allow_pickle=True) as stored:  # the twin: whoever unpickles runs it
        _ = stored["linear_weights"]
    assert target.exists()


def tree_change(name, value):
    def change(arrays):
        inner = int(np.flatnonzero(arrays["trees_is_leaf"] == 0)[1])  # of the first tree, below its root
        changed = arrays[f"trees_{name}"].copy()
        changed[inner] = value(inner) if callable(value) else value
        return {f"trees_{name}": changed}

    return change


HOSTILE = {
    "a node that leads back": tree_change("left", 0),
    "a node that leads to itself": tree_change("left", lambda node: node),
    "a node that leads out": tree_change("right", 10**6),
    "more trees than a model has": lambda a: {
        name: np.tile(array, 300) for name, array in a.items() if name.startswith("trees_") and array.ndim
    },
    "a column that is not there": tree_change("feature_idx", 10**9),
    "a tree of no nodes": lambda a: {"trees_sizes": np.append(a["trees_sizes"], 0)},
    "fewer features than the maps make": lambda a: {
        f"public_{name}": a[f"public_{name}"][:-1] for name in ("means", "norms")
    },
    "an array too many": lambda a: {"more": np.zeros(3)},
    "other bounds than the card's": lambda a: {"known_high": np.array(9.0)},
}


def unlike(spec, array):
    """Yield arrays of other dtypes, of another shape, and with numbers out of range."""
    yield from (array.astype("<f2"), array.astype("<U9"), array[None])
    if array.ndim:
        yield from (array[0], array[:0], array[..., 1:])
    if array.dtype.kind == "f":
        yield np.full_like(array, np.nan)
    for number in (spec.low - 1, spec.high + 1):
        if abs(number) < 1 << 31:
            yield np.full(array.shape, number).astype(array.dtype)


@pytest.mark.parametrize("name", MODEL_ARRAYS)
def test_an_array_that_is_not_as_the_table_says_is_refused(name, path_of_trees):
    arrays, spec = arrays_in(path_of_trees), MODEL_ARRAYS[name]
    for other in unlike(spec, arrays.get(name, np.zeros((1,) * len(spec.shape)))):
        with pytest.raises(ldp.errors.CardError):
            ldp.load_model(with_arrays(path_of_trees, {**arrays, name: other}))


@pytest.mark.parametrize("what", HOSTILE)
def test_numbers_that_make_no_model_are_refused_though_the_hashes_fit(what, path_of_trees):
    ldp.load_model(with_arrays(path_of_trees, {}))
    with pytest.raises(ldp.errors.CardError):
        ldp.load_model(with_arrays(path_of_trees, HOSTILE[what](arrays_in(path_of_trees))))


def npz(shape=(8,), kind=zipfile.ZIP_STORED, members=1):
    """Return an archive of arrays, with 64 bytes of whatever shape they say."""
    packed, head = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(packed, "w", kind) as out:
        for name in ["linear_weights", *range(members - 1)]:
            out.writestr(f"{name}.npy", head.getvalue() + bytes(64))
    return packed.getvalue()


ARCHIVES = {
    "more memory than the file has bytes": (npz((10**12,)), "model.npz"),
    "more memory than there is": (npz((2**40, 2**40)), "model.npz"),
    "a negative size": (npz((-1,)), "model.npz"),
    "compressed by LZMA": (npz(kind=zipfile.ZIP_LZMA), "compressed in an unknown way"),
    "compressed by bzip2": (npz(kind=zipfile.ZIP_BZIP2), "compressed in an unknown way"),
    "many members": (npz(members=500), "more arrays than expected"),
    "no archive": (b"PK no zip at all", "model.npz"),
}


@pytest.mark.parametrize("what", ARCHIVES)
def test_an_archive_that_is_not_as_a_models_is_refused_before_its_arrays_are_made(what, path):
    content, says = ARCHIVES[what]
    with pytest.raises(ldp.errors.CardError, match=says):
        ldp.load_model(with_arrays(path, content))


def test_a_model_whose_numbers_overflow_is_refused_when_it_predicts(path):
    weights = arrays_in(path)["linear_weights"]
    weights[:] = np.where(np.arange(weights.size) % 2, 3e38, -3e38)
    with pytest.raises(ldp.errors.CardError, match="not a number"):
        ldp.load_model(with_arrays(path, {"linear_weights": weights})).predict(table())


HIDDEN = [("price", "PRICE"), ("Sal\u00e1rio", "sala\u0301rio")]


@pytest.mark.parametrize(("label", "column"), HIDDEN)
def test_another_case_or_unicode_form_does_not_hide_a_label_among_the_columns(label, column, path):
    """The label as it is written, left out or used: tests/interference/test_commands.py."""
    with pytest.raises(ldp.errors.CardError, match="the model predicts"):
        ldp.load_model(with_columns(path, lambda columns: columns["left_out"].append([column, ""]), label=label))


def test_a_model_cannot_be_saved_under_a_label_that_is_a_feature(tmp_path):
    for label in ("a", "TOWN"):
        with pytest.raises(ldp.errors.ParameterError, match="rename one of them"):
            saved(fitted(), tmp_path / "model", label=label)
    assert not list(tmp_path.iterdir())


def test_columns_other_than_those_on_the_card_are_refused(path):
    for features in (["a", "b"], ["a", "b", "town", "more"]):
        with pytest.raises(ldp.errors.CardError, match="other columns"):
            ldp.load_model(with_columns(path, lambda columns: None, features=features))


def test_a_text_column_with_more_text_than_a_model_holds_is_refused_when_it_is_saved(tmp_path, set_constants):
    set_constants({"learning.models.MAX_COLUMNS": 100})
    with pytest.raises(ldp.errors.ParameterError, match="drop columns, or shorten values"):
        ldp.save_model(fitted(), tmp_path / "model", label="price")


@posix_only
@pytest.mark.parametrize("name", ["card.json", "columns.json", "model.npz", "release.npz"])
def test_files_larger_than_a_models_are_refused_unread(name, path_of_labels):
    os.truncate(path_of_labels / name, 1 << 32)  # sparse
    with pytest.raises(ldp.errors.DataError, match="too large"):
        ldp.load_model(path_of_labels)


def test_a_card_of_another_kind_or_format_or_with_other_files_is_refused(path):
    content = json.loads((path / "card.json").read_text())
    outside = {**content["files"], "../../etc/passwd": "sha256:0"}
    for change in (
        {"format": 0},
        {"format": 4},
        {"files": outside},
        {"files": []},
        {"label": None, "guarantee": "none"},
    ):
        (path / "card.json").write_text(forged({**content, **change}))
        with pytest.raises(ldp.errors.CardError):
            ldp.load_model(path)
    (path / "card.json").write_text(fitted().to_card())
    with pytest.raises(ldp.errors.CardError, match="not the card of a saved model"):
        ldp.load_model(path)


@pytest.mark.parametrize("name", ["columns.json", "model.npz"])
def test_a_file_that_is_not_the_one_on_the_card_is_refused(name, path):
    content = (path / name).read_bytes()
    (path / name).write_bytes(content + b" ")
    with pytest.raises(ldp.errors.CardError, match="changed or mixed up"):
        ldp.load_model(path)


def test_any_error_of_a_damaged_model_is_one_refusal(path, monkeypatch):
    monkeypatch.setattr(models, "read_model_arrays", lambda *_: {}["a key that no schema foresaw"])
    with pytest.raises(ldp.errors.CardError, match=r"damaged.*KeyError"):
        ldp.load_model(path)
