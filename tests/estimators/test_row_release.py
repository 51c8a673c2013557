"""A saved release comes back proven, and a file that was changed, forged or seeded says so or is refused."""

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import labeldp as ldp
from forged_cards import forged
from helpers import seeded
from labeldp import RowRelease

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 4))
Y = np.clip(2.5 + X[:, 0] + 0.3 * RNG.normal(size=400), 0, 5)
BOUNDS = (0.0, 5.0)


def release(**more):
    return ldp.LabelReleaseRegressor(Ridge(), epsilon=1.0, bounds=BOUNDS, rounds=2, **more).fit(X, Y).release_


def test_a_seeded_release_says_that_it_is_not_private(tmp_path):
    experiment = release(random_state=seeded(1))
    experiment.save(tmp_path / "r.npz")
    for one in (experiment, RowRelease.load(tmp_path / "r.npz")):
        assert "NOT PRIVATE" in one.summary()
        assert "NOT PRIVATE" in one.to_card()
    sound = release()
    assert "NOT PRIVATE" not in sound.summary() + sound.to_card()
    assert "label differential privacy" in sound.to_card()


def test_a_release_is_saved_whole_and_comes_back_proven(tmp_path):
    original, path = release(), tmp_path / "release.npz"
    original.save(path)
    loaded = RowRelease.load(path)
    assert np.array_equal(loaded.labels, original.labels)
    assert (loaded.terms, loaded.knowledge) == (original.terms, original.knowledge)
    assert loaded.cost == ldp.Budget(1.0)
    assert "each row once" in loaded.summary()
    assert [p.name for p in tmp_path.iterdir()] == ["release.npz"]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ldp.CardError):
        RowRelease.load(path)


def test_a_file_that_is_none_or_missing_is_told_apart(tmp_path):
    (tmp_path / "empty.npz").touch()
    with pytest.raises(ldp.CardError, match="not a saved release"):
        RowRelease.load(tmp_path / "empty.npz")
    with pytest.raises(FileNotFoundError):
        RowRelease.load(tmp_path / "nowhere.npz")


def test_a_release_whose_labels_were_changed_is_refused(tmp_path):
    path = tmp_path / "release.npz"
    release().save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    for name in ("labels", "part", "scale"):
        np.savez(path, **{**arrays, name: arrays[name] + 1})
        with pytest.raises(ldp.CardError, match="other labels"):
            RowRelease.load(path)


def lying(card, lie):
    """Return a card whose content was changed and whose checksum fits again."""
    content = json.loads(card)
    lie(content)
    return forged(content)


LIES = {
    "a smaller charge": lambda c: c["charges"][0].update(budget=["1/10", "0"]),
    "a charge left out": lambda c: c["charges"].pop(),
    "another cost": lambda c: c["cost"].update(epsilon=0.1),
    "another guarantee": lambda c: c.update(guarantee="label differential privacy with ε = 0.1"),
    "seeded noise called secure": lambda c: c.update(words="secure"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_card_that_contradicts_itself_is_refused(lie, tmp_path):
    path = tmp_path / "release.npz"
    release(random_state=seeded(1)).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, "card": np.array(lying(str(arrays["card"]), lie))})
    with pytest.raises(ldp.CardError, match="contradicts"):
        RowRelease.load(path)
    other = ldp.privatize(Y, epsilon=1.0, bounds=BOUNDS, random_state=seeded(1), epsilon_prior=0.1)
    with pytest.raises(ldp.CardError, match="contradicts"):
        ldp.read_release_card(lying(other.to_card(), lie))
