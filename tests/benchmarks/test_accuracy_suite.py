"""The accuracy suite measures by its definition, and continues where it stopped."""

import math

import numpy as np
import pytest
from benchmarks.accuracy.label_private import fit_cond_dp, fit_noisy_moments
from benchmarks.accuracy.methods import Cell, measure
from benchmarks.accuracy.runner import Place, plan, read, run


@pytest.mark.slow
def test_two_versions_meet_the_same_words():
    old, new = (measure(Cell(0, 0, "scores", "laplace", 1.0, rows=60, label=label)) for label in ("old", "new"))
    assert old["error"] == new["error"]
    assert measure(Cell(0, 1, "scores", "laplace", 1.0, rows=60))["error"] != old["error"]


@pytest.mark.slow
def test_a_stopped_run_continues_and_keeps_every_cell_once(tmp_path):
    jobs = plan(["scores"], range(2), ["constant", "laplace"], [0.3, 1.0], ["1"], 60, 1, ["new"])
    assert len(jobs) == 2 * (2 + 2)
    out = tmp_path / "cells.jsonl"
    run(jobs[:4], out, {"": Place()}, workers=1, minutes=math.inf)
    out.write_text(out.read_text() + '{"split": 0, "rep')  # the machine went away
    run(jobs, out, {"": Place()}, workers=1, minutes=math.inf)
    found = read([out])
    assert len(found) == len(jobs) == len({(c["split"], c["method"], c["epsilon"]) for c in found})


def test_linear_peers_are_least_squares_where_noise_is_small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 5)) @ rng.normal(size=(5, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=2_000)
    bounds = (float(y.min()), float(y.max()))
    for fit in (fit_noisy_moments, fit_cond_dp):
        errors = [np.mean((fit(X, y, X, epsilon, bounds, 0) - y) ** 2) for epsilon in (0.01, 50.0)]
        assert errors[0] > 1.5
        assert errors[1] < 1.1  # the noise of the labels is 1
