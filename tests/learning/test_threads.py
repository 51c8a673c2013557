"""Numerical libraries get no more threads than there are cores for them."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import labeldp as ldp
from labeldp.learning import learner, runtime


def pools():
    return {pool["num_threads"] for pool in threadpool_info()}


@pytest.fixture
def seen(monkeypatch):
    """Threads of all pools while trees grow; a pool has two to begin with, and trees get one."""
    found = []

    class Spy(learner.HistGradientBoostingRegressor):
        def fit(self, *rows):
            found.append(pools())
            with threadpool_limits(1):
                return super().fit(*rows)

    monkeypatch.setattr(learner, "HistGradientBoostingRegressor", Spy)
    monkeypatch.setattr("labeldp.learning.learner._WORTH", 0)
    with threadpool_limits(2):
        yield found


@pytest.mark.parametrize(("usable", "running", "expected"), [(1, 0, 1), (2, 5, 1), (8, 7, 1)])
def test_a_fit_has_no_more_threads_than_idle_cores_and_sets_all_back(monkeypatch, seen, usable, running, expected):
    monkeypatch.setattr("joblib.cpu_count", lambda: usable)
    monkeypatch.setattr("os.cpu_count", lambda: usable)
    monkeypatch.setattr(runtime, "count_others", lambda: running)
    X = np.random.default_rng(0).normal(size=(60, 2))
    ldp.LabelReleaseRegressor(epsilon=4.0, bounds=(0, 5)).fit(X, np.clip(2.5 + X[:, 0], 0, 5))
    assert seen
    assert all(max(found) <= expected for found in seen)
    assert pools() == {2}


def test_cores_of_others_are_counted_without_own_threads_as_far_as_the_system_reports(monkeypatch):
    assert runtime.count_others() >= 0
    assert 1 <= runtime.idle_cores() <= runtime.usable_cores()
    monkeypatch.setattr(runtime, "_LOAD", runtime.Path("no such file"))
    assert runtime.count_others() == 0
