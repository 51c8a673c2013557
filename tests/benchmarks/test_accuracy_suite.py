"""The accuracy suite measures by its definition, and continues where it stopped."""

import math

import numpy as np
import pytest
from benchmarks.accuracy.methods import Cell, measure
from benchmarks.accuracy.runner import Place, plan, read, run
from benchmarks.accuracy.tables import TABLES, load, names, write

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if not table.real and name != "many"])
def test_a_synthetic_table_is_the_same_every_time_and_nearly_all_its_labels_lie_in_the_bounds(name):
    X, y, (low, high) = load(name)
    again = TABLES[name].load()
    assert np.array_equal(X, again[0])
    assert np.array_equal(y, again[1])
    assert np.mean((y < low) | (y > high)) < 0.002


def test_a_written_table_is_read_from_its_folder(tmp_path, monkeypatch):
    X, y, bounds = load("sobol")
    assert write("sobol", tmp_path).startswith("sobol: 6,000 × 12, ")
    monkeypatch.setenv("LABELDP_TABLES", str(tmp_path))
    assert names("heldout") == ["sobol"]
    read_again = load.__wrapped__("sobol")
    assert np.array_equal(read_again.X, X)
    assert np.array_equal(read_again.y, y)
    assert read_again.bounds == bounds


def test_the_private_constant_errs_by_the_variance_and_its_noise():
    cell = measure(Cell(0, 0, "scores", "constant", 0.5))
    y = load("scores").y
    rows = np.random.default_rng(0).permutation(2000)
    expected = np.mean((y[rows[1600:]] - y[rows[:1600]].mean()) ** 2) + 2 * (100 / 1600 / 0.5) ** 2
    assert cell["error"] == pytest.approx(expected, rel=1e-3)
    assert cell["quantiles"] == sorted(cell["quantiles"])


@pytest.mark.slow
def test_two_versions_meet_the_same_words():
    old, new = (measure(Cell(0, 0, "scores", "laplace", 1.0, rows=60, label=label)) for label in ("old", "new"))
    assert old["error"] == new["error"]
    assert measure(Cell(0, 1, "scores", "laplace", 1.0, rows=60))["error"] != old["error"]


def test_other_methods_and_large_tables_have_three_splits_and_each_version_has_its_own_cells():
    jobs = plan(["scores", "many"], range(8), ["labels", "ebm"], [0.1, 1.0], ["1"], 0, 1, ["this", "0.2.0"])
    ours = [(cell.table, cell.split) for cell in jobs if cell.method == "labels"]
    assert (ours.count(("scores", 7)), ours.count(("many", 2)), ours.count(("many", 3))) == (4, 4, 0)
    assert {(cell.split, cell.epsilon, cell.label) for cell in jobs if cell.method == "ebm"} == {
        (split, 1.0, "") for split in range(3)
    }
    assert [cell.split for cell in jobs] == sorted(cell.split for cell in jobs)


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
