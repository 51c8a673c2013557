"""Labels are released through channels and integer noise only, and these are what the harness replays."""

import ast
import inspect
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import labeldp as ldp
from interference.harness import modules
from interference.replay import CHANNELS, MismatchError, seams
from labeldp.exact import DiscreteLaplace, SecureWords

ROOT = Path(ldp.__file__).parent
MECHANISM = ldp.TwoPoint(bounds=(0, 1), epsilon=1.0)


def test_every_channel_of_the_library_is_replayed():
    found = {
        kind
        for module in modules()
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if {"sample", "verify", "promise"} <= set(dir(kind)) and not getattr(kind, "_is_protocol", False)
    }
    assert found == set(CHANNELS)


def test_no_noise_releases_in_a_way_of_its_own():
    assert not DiscreteLaplace.__subclasses__()


def calls(tree):
    """Yield (receiver, method) of all calls of methods."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield ast.unparse(node.func.value), node.func.attr


def test_nothing_samples_but_channels_and_the_release_of_integer_noise():
    """Noise that is sampled without `release` would be added to a sum that nobody replays."""
    found = {
        (path.relative_to(ROOT).as_posix(), receiver)
        for path in ROOT.rglob("*.py")
        if path.parent.name != "evidence"  # checks a mechanism with labels of its own
        for receiver, method in calls(ast.parse(path.read_text(encoding="utf-8")))
        if method == "sample"
    }
    assert found
    others = {(path, receiver) for path, receiver in found if receiver.split(".")[-1] != "channel"}
    assert {receiver for _, receiver in others} <= {"self"}, others
    assert len(others) == 1  # DiscreteLaplace.release


def test_labels_are_randomised_and_sums_get_noise_in_one_place():
    """But for a mechanism that a user calls, and for trials on labels of the library's own."""
    places = {
        (path.relative_to(ROOT).as_posix(), method)
        for path in ROOT.rglob("*.py")
        if path.parent.name != "evidence"
        for receiver, method in calls(ast.parse(path.read_text(encoding="utf-8")))
        if method == "randomize_checked" or (method == "release" and receiver.endswith("noise"))
    }
    access = "release/label_access.py"
    assert places == {
        (access, "release"),
        (access, "randomize_checked"),
        ("mechanisms/base.py", "randomize_checked"),
    }


# ---- the replay itself --------------------------------------------------------------------------------------


def test_replay_gives_out_what_was_recorded():
    noise = DiscreteLaplace.calibrated(sensitivity=1, epsilon=Fraction(1))
    source = SecureWords()
    with seams() as tape:
        first = MECHANISM.randomize(np.linspace(0, 1, 100)), noise.release(np.arange(3), source)
    with seams(tape) as again:
        second = MECHANISM.randomize(np.full(100, 0.25)), noise.release(np.array([7, 7, 10**9]), source)
    assert [a.tobytes() for a in first] == [b.tobytes() for b in second]
    assert again.calls == tape.calls
    assert tape.inside[0] == 150
    assert again.inside == [0, 0]


def test_words_for_other_uses_are_the_same_whatever_the_seams_draw():
    words = np.zeros((2, 5), dtype=np.uint64)
    source = SecureWords()
    for row, labels in zip(words, (3, 1000), strict=True):
        with seams() as tape:
            MECHANISM.randomize(np.zeros(labels))
            source.fill(row)
        assert tape.outside == 5
    assert (words[0] == words[1]).all()


def test_another_call_than_the_recorded_one_is_refused():
    with seams() as tape:
        MECHANISM.randomize(np.zeros(3))
    with seams(tape) as again, pytest.raises(MismatchError, match="4 values, and 3 are left"):
        MECHANISM.randomize(np.zeros(4))
    assert again.mismatch
    with seams(tape), pytest.raises(MismatchError):
        ldp.TwoPoint(bounds=(0, 1), epsilon=1.1).randomize(np.zeros(3))
