"""The accuracy suite measures what it says, continues where it stopped, and prints its verdicts."""

import json
import math

import numpy as np
import pytest
from benchmarks.accuracy.methods import Cell, measure
from benchmarks.accuracy.runner import Place, plan, read, run
from benchmarks.accuracy.tables import TABLES, load, names, write
from typer.testing import CliRunner

pd = pytest.importorskip("pandas")


def cells(label="new", error=1.0, method="labels", table="scores", splits=3, **others):
    """Return cells as a run keeps them, with the same error on every split but for a little."""
    for split in range(splits):
        cell = {"split": split, "repeat": 0, "table": table, "method": method, "epsilon": 1.0, "loose": "1"}
        yield cell | {"rows": 0, "label": label, "error": error * (1 + 0.001 * split), "seconds": 1.0} | others


def base(table="scores", trees=0.5):
    yield from cells("", 1.0, "constant", table, quantiles=[1.0] * 20)
    yield from cells("", trees, "trees", table, epsilon=math.inf)


def printed(tmp_path, rows, *options):
    from benchmarks.accuracy.__main__ import app

    (tmp_path / "cells.jsonl").write_text("\n".join(map(json.dumps, rows)))
    result = CliRunner().invoke(app, ["table", str(tmp_path / "cells.jsonl"), *options])
    assert result.exit_code == 0, result.output
    return result.output


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


@pytest.mark.slow
def test_a_version_is_measured_with_its_own_sources_and_another_library_is_not_taken_for_it(tmp_path, capfd):
    fake = tmp_path / "older/src/labeldp"
    fake.mkdir(parents=True)
    regressor = (
        "def __init__(self, **_): pass\n fit = lambda self, X, y: self\n predict = lambda self, X: X[:, 0] * 0"
    )
    (fake / "__init__.py").write_text(f"class ModelReleaseRegressor:\n {regressor}\n")
    cells = [Cell(0, 0, "scores", "model", 1.0, label=label) for label in ("old", "none")]
    wrong = Place(sources=str(tmp_path / "elsewhere"))
    places = {"old": Place.of_library(tmp_path / "older"), "none": wrong}
    run(cells, tmp_path / "cells.jsonl", places, workers=1, minutes=1)
    (found,) = read([tmp_path / "cells.jsonl"])
    test = np.random.default_rng(0).permutation(2000)[1600:]
    assert found["error"] == pytest.approx(np.mean(load("scores").y[test] ** 2))
    assert "instead of" in capfd.readouterr().err


def test_the_table_shows_ratios_and_what_breaks_a_rule(tmp_path):
    rows = [*base(), *cells(error=1.2)]
    rows += [*cells(error=1.3, epsilon=2.0), *cells("", 1.0, "constant", epsilon=2.0, quantiles=[1.0] * 20)]
    text = printed(tmp_path, rows)
    assert "| labels new | scores | 1.200 / 2.40 ± 0% | 1.300 / 2.60 ± 0% |" in text
    assert "**Never behind a constant** (at most 1.03): 0 of 2 hold." in text
    assert (
        "**More budget is never worse** (at most 1.02): 0 of 1 hold.\n- scores, labels new, ε = 2: 1.083" in text
    )


def test_two_versions_are_compared_on_the_same_splits(tmp_path):
    rows = [*base("counts"), *cells(table="counts", error=0.9), *cells("old", table="counts")]
    rows += [*base("sobol"), *cells(table="sobol", error=1.1), *cells("old", table="sobol")]
    text = printed(tmp_path, rows, "--new", "new", "--old", "old")
    assert "| labels | ε = 1 |" in text
    assert "| counts | 0.900 ± 0.000 |" in text
    assert "| sobol | 1.100 ± 0.000 **worse** |" in text
    assert "| **geometric mean** | **0.995 ± 0.000** (goal 0.97: missed) |" in text
    assert "| **interactions of few columns** | **1.100 ± 0.000** |" in text


def test_loose_bounds_and_the_lottery_are_judged(tmp_path):
    rows = [*base("counts"), *cells(table="counts"), *cells(table="counts", error=1.2, loose="10left")]
    rows += [*cells("", 2.0, "constant", "counts", loose="10left", quantiles=[2.0] * 20)]
    rows += [*cells(table="counts", error=1.1, repeat=1), *cells("old", 1.0, table="counts")]
    rows += [*cells("old", 1.5, table="counts", repeat=1)]
    text = printed(tmp_path, rows, "--new", "new", "--old", "old")
    assert "**Bounds × 10** (at most 1.08): 0 of 1 hold." in text
    assert "| counts, labels new, ε = 1 | 6.7% |" in text
    assert "**No lottery** (at most 0.5): 1 of 1 hold." in text
