"""A saved release comes back proven, and a file that was changed, forged or seeded says so or is refused."""

import hashlib
import json
import shutil
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import labeldp as ldp
from forged_cards import forged
from helpers import seeded
from labeldp.mechanisms.base import array_bytes

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 4))
Y = np.clip(2.5 + X[:, 0] + 0.3 * RNG.normal(size=400), 0, 5)
BOUNDS = (0.0, 5.0)


def release(**more):
    return ldp.LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=2, **more).fit(X, Y).release_


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved release of each kind of channel."""
    folder = tmp_path_factory.mktemp("saved")
    paths = {name: folder / f"{name}.npz" for name in ("two-point", "rp", "laplace")}
    for name, path in paths.items():
        release(mechanism=name).save(path)
    return paths


def test_a_release_is_saved_whole_and_comes_back_proven(tmp_path):
    original, path = release(), tmp_path / "release.npz"
    original.save(path)
    loaded = ldp.learning.RowRelease.load(path)
    assert np.array_equal(loaded.labels, original.labels)
    assert (loaded.terms, loaded.label_summary) == (original.terms, original.label_summary)
    assert loaded.cost == ldp.Budget(1.0)
    assert "each row once" in loaded.summary()
    assert [p.name for p in tmp_path.iterdir()] == ["release.npz"]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ldp.errors.CardError):
        ldp.learning.RowRelease.load(path)


def arrays_in(path):
    with np.load(path) as stored:
        return dict(stored)


def test_a_release_whose_labels_were_changed_is_refused(saved, tmp_path):
    path, arrays = tmp_path / "release.npz", arrays_in(saved["rp"])
    for name in ("labels", "part", "scale"):
        np.savez(path, **{**arrays, name: arrays[name] + 1})
        with pytest.raises(ldp.errors.CardError, match="other labels"):
            ldp.learning.RowRelease.load(path)


def with_arrays(path, changed, **card):
    """Change arrays of a saved release and its card, with checksums that fit."""
    arrays = {**arrays_in(path), **changed}
    content = json.loads(str(arrays.pop("card")))
    names = content["arrays"]
    content["arrays"] = {name: hashlib.sha256(array_bytes(arrays[name])).hexdigest() for name in names}
    np.savez(path, card=np.array(forged({**content, **card})), **arrays)
    return path


@pytest.mark.parametrize("lie", [{"cost": {"epsilon": 0.1, "label": 0.1}}, {"secure": True}], ids=str)
def test_a_card_that_contradicts_itself_is_refused(lie, tmp_path):
    """All that a card can lie about is in `tests/accounts/test_lies.py`."""
    path = tmp_path / "release.npz"
    release(random_state=seeded(1)).save(path)
    with pytest.raises(ldp.errors.CardError, match="contradicts"):
        ldp.learning.RowRelease.load(with_arrays(path, {}, **lie))


ROWS = len(Y)
HOSTILE = {
    "true labels": lambda a: {"labels": Y},
    "one true label": lambda a: {"labels": np.where(np.arange(ROWS) == 7, Y, a["labels"])},
    "labels beyond all outputs": lambda a: {"labels": a["labels"] + 1e6},
    "missing labels": lambda a: {"labels": np.full(ROWS, np.nan)},
    "infinite noise": lambda a: {"noise": np.full(ROWS, np.inf)},
    "a negative variance": lambda a: {"noise": -a["noise"]},
    "text": lambda a: {"labels": a["labels"].astype(str)},
    "labels of less precision": lambda a: {"labels": a["labels"].astype(np.float32)},
    "a table": lambda a: {"labels": a["labels"][:, None]},
    "3 rows": lambda a: {name: array[:3] for name, array in a.items()},
    "3 rows in one array": lambda a: {"part": a["part"][:3]},
    "a part that does not exist": lambda a: {"part": a["part"] + 2},
    "a part before the first": lambda a: {"part": a["part"] - 1},
    "a round for each row": lambda a: {"round": np.arange(ROWS)},
    "intervals outside the bounds": lambda a: {"high": a["high"] + 9},
    "intervals the wrong way round": lambda a: {"low": a["high"], "high": a["low"]},
    "a map that turns labels around": lambda a: {"scale": -a["scale"]},
    "an array too many": lambda a: {"more": np.zeros(ROWS)},
}


@pytest.mark.parametrize("mechanism", ["two-point", "rp", "laplace"])
@pytest.mark.parametrize("what", HOSTILE)
def test_what_cannot_be_a_release_is_refused_though_its_checksums_fit(what, mechanism, saved, tmp_path):
    path = shutil.copy(saved[mechanism], tmp_path / "release.npz")
    ldp.learning.RowRelease.load(with_arrays(path, {}))
    arrays = arrays_in(path)
    del arrays["card"]
    with pytest.raises(ldp.errors.CardError):
        ldp.learning.RowRelease.load(with_arrays(path, HOSTILE[what](arrays)))


def test_a_card_of_another_kind_is_refused(saved, tmp_path):
    path, other = tmp_path / "release.npz", ldp.privatize(Y, epsilon=1.0, bounds=BOUNDS).to_card()
    np.savez(path, **{**arrays_in(saved["rp"]), "card": np.array(other)})
    with pytest.raises(ldp.errors.CardError, match=r"holds other labels|not hold the card of a saved release"):
        ldp.learning.RowRelease.load(path)


# ---- memory ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved_rows(tmp_path_factory):
    labels = np.linspace(1, 4, 60)
    path = tmp_path_factory.mktemp("rows") / "rows.npz"
    ldp.LabelReleaseRegressor(epsilon=4.0, bounds=(0, 5)).fit(labels[:, None], labels).release_.save(path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("bomb", ["labels", "more"])
def test_a_small_file_that_unpacks_to_much_memory_is_refused(bomb, saved_rows):
    other, header = (
        saved_rows.with_name("bomb.npz"),
        {"descr": "<f8", "fortran_order": False, "shape": (40 << 20,)},
    )
    with zipfile.ZipFile(saved_rows) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("card.npy", old.read("card.npy"))
        with new.open(f"{bomb}.npy", "w") as member:
            np.lib.format.write_array_header_1_0(member, header)
            for _ in range(320):
                member.write(bytes(1 << 20))
        for name in old.namelist()[1:]:
            if name != f"{bomb}.npy":
                new.writestr(name, old.read(name))
    with pytest.raises(ldp.errors.CardError, match="unpack"):
        ldp.learning.RowRelease.load(other)
