"""The accuracy suite measures by its definition, and continues where it stopped."""

import math

import pytest
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
