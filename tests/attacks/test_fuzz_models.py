"""A saved model of any content: used, or refused by an error of this package."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
from forged_cards import forged, put
from fuzzing import places, tries, values
from labeldp.files import models
from labeldp.files.models import load_model, write_model
from labeldp.files.places import sha256
from labeldp.tabular import TableEncoder

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(3)
TABLE = pa.table({"a": RNG.normal(size=80), "town": RNG.choice(["x", "y", "z"], 80)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model."""
    path = tmp_path_factory.mktemp("model")
    encoder = TableEncoder.fit(TABLE, TABLE.column_names)
    fitted = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5)).fit(
        encoder.transform(TABLE), np.linspace(1, 4, 80)
    )
    write_model(fitted, encoder, path, label="price")
    return path


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Where a copy of it is changed."""
    return tmp_path_factory.mktemp("changed") / "model"


def restored(folder, changed):
    shutil.copytree(folder, changed, dirs_exist_ok=True)


def sealed(path):
    """Give a model's card the hashes that its files have now."""
    content = json.loads((path / "card.json").read_text())
    content["files"] = {name: sha256(path / name) for name in content["files"]}
    (path / "card.json").write_text(forged(content))


def used(path):
    """Load and use a model; return whether it was taken."""
    try:
        model = load_model(path)
        predicted = model.predict(TABLE)
    except ldp.LabelDPError:
        return False
    assert (
        np.isnan(predicted) | ((predicted >= 0) & (predicted <= 5))
    ).all()  # inside the bounds, or plainly nothing
    return True


def test_a_model_that_was_sealed_again_is_taken(folder, changed):
    restored(folder, changed)
    sealed(changed)
    assert used(changed)


@pytest.mark.parametrize("name", ["card.json", "columns.json", "model.npz"])
@tries(25)
@given(data=st.data())
def test_a_model_with_bytes_changed_is_refused(folder, changed, name, data):
    restored(folder, changed)
    whole = (folder / name).read_bytes()
    at, gone = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 4))
    now = whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + gone :]
    (changed / name).write_bytes(now)
    assert used(changed) <= (now == whole or name == "card.json")


@tries(60)
@given(data=st.data())
def test_columns_with_any_value_replaced_and_the_hash_forged_are_used_or_refused(folder, changed, data):
    restored(folder, changed)
    content = json.loads((folder / "columns.json").read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        content = put(content, data.draw(st.sampled_from(places(content) or [("more",)])), data.draw(values))
    (changed / "columns.json").write_text(json.dumps(content))
    sealed(changed)
    used(changed)


odd_numbers = st.sampled_from([0.0, -1.0, 1e308, -1e308, 1e-320, 0.5, 2.0**31, 2.0**63, np.nan, np.inf, 7.0])


def bent(array, data):  # noqa: PLR0911
    """Return an array with a number, its shape, its type or all of it changed."""
    how = data.draw(st.sampled_from(["number", "shape", "type", "longer", "shorter", "empty", "all"]))
    array = np.array(array)
    if array.dtype.kind == "U":
        return array
    if how == "number" and array.size and array.dtype == np.float64:
        array.reshape(-1)[data.draw(st.integers(0, array.size - 1))] = data.draw(odd_numbers)
    elif how == "shape":
        return array.reshape(-1) if array.ndim != 1 else array[:, None]
    elif how == "type":
        with np.errstate(all="ignore"):
            return array.real.astype(data.draw(st.sampled_from(["f2", "f4", "i1", "u8", "?", "c16", "U3"])))
    elif how == "longer":
        return np.concatenate([array.reshape(-1), [3]])
    elif how == "shorter":
        return array.reshape(-1)[: array.size // 2]
    elif how == "empty":
        return np.zeros((0, *array.shape[1:]))
    else:
        return np.full(array.shape, data.draw(odd_numbers))
    return array


@tries(60)
@given(data=st.data())
def test_numbers_with_anything_changed_and_the_hash_forged_are_used_or_refused(folder, changed, data):
    restored(folder, changed)
    with np.load(folder / "model.npz") as stored:
        arrays = dict(stored)
    for _ in range(data.draw(st.integers(1, 2))):
        name = data.draw(st.sampled_from(sorted(arrays)))
        if data.draw(st.integers(0, 9)) == 0:
            del arrays[name]
        else:
            arrays[name] = bent(arrays[name], data)
    np.savez(changed / "model.npz", **arrays)
    sealed(changed)
    used(changed)


def test_the_fuzzer_would_notice_a_model_that_crashes(folder, changed, monkeypatch):
    restored(folder, changed)
    monkeypatch.setattr(models, "from_arrays", lambda arrays: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        used(changed)
