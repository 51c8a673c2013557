"""Numerical libraries get no more threads than there are cores for them."""

import numpy as np
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_info, threadpool_limits

import labeldp as ldp

SEEN = []


def pools():
    return {pool["num_threads"] for pool in threadpool_info()}


class Spy(Ridge):
    """Notes how many threads there are while a model is fitted."""

    def fit(self, *rows, **options):
        SEEN.append(pools())
        return super().fit(*rows, **options)


def test_a_fit_has_no_more_threads_than_cores_and_sets_all_back(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    X = np.random.default_rng(0).normal(size=(60, 2))
    with threadpool_limits(2):
        ldp.LabelReleaseRegressor(Spy(), epsilon=4.0, bounds=(0, 5)).fit(X, np.clip(2.5 + X[:, 0], 0, 5))
        assert pools() == {2}
    assert SEEN[0] == {2}, "a trial before the fit"
    assert SEEN[-1] == {1}
