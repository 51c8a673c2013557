"""The accuracy suite measures what it says, continues where it stopped, and prints its verdicts."""

import json
import math

import numpy as np
import pytest
from benchmarks.accuracy.methods import Cell, measure
from benchmarks.accuracy.runner import plan, read, run
from benchmarks.accuracy.tables import TABLES, load
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


def test_each_half_has_tables_of_both_kinds_and_the_choosing_half_has_crime_and_housing():
    for half in ("choose", "judge"):
        kinds = [table.real for table in TABLES.values() if table.half == half]
        assert (kinds.count(True), kinds.count(False)) == (7, 5)
    assert TABLES["crime"].half == TABLES["housing"].half == "choose"


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if not table.real and name != "many"])
def test_a_synthetic_table_is_the_same_every_time_and_nearly_all_its_labels_lie_in_the_bounds(name):
    X, y = load(name)
    again = TABLES[name].load()
    assert np.array_equal(X, again[0])
    assert np.array_equal(y, again[1])
    low, high = TABLES[name].bounds
    assert np.mean((y < low) | (y > high)) < 0.002


def test_the_private_constant_errs_by_the_variance_and_its_noise():
    cell = measure(Cell(0, 0, "scores", "constant", 0.5))
    _, y = load("scores")
    rows = np.random.default_rng(0).permutation(2000)
    expected = np.mean((y[rows[1600:]] - y[rows[:1600]].mean()) ** 2) + 2 * (100 / 1600 / 0.5) ** 2
    assert cell["error"] == pytest.approx(expected, rel=1e-3)
    assert cell["quantiles"] == sorted(cell["quantiles"])


@pytest.mark.slow
def test_two_versions_meet_the_same_words():
    old, new = (measure(Cell(0, 0, "scores", "laplace", 1.0, rows=60, label=label)) for label in ("old", "new"))
    assert old["error"] == new["error"]
    assert measure(Cell(0, 1, "scores", "laplace", 1.0, rows=60))["error"] != old["error"]


@pytest.mark.slow
def test_a_stopped_run_continues_and_keeps_every_cell_once(tmp_path):
    jobs = plan(["scores"], range(2), ["constant", "laplace"], [0.5, 1.0], ["1"], 60, 1, "new")
    assert len(jobs) == 2 * (2 + 2)
    out = tmp_path / "cells.jsonl"
    run(jobs[:4], out, workers=1, most_seconds=math.inf)
    out.write_text(out.read_text() + '{"split": 0, "rep')  # the machine went away
    run(jobs, out, workers=1, most_seconds=math.inf)
    found = read([out])
    assert len(found) == len(jobs) == len({(c["split"], c["method"], c["epsilon"]) for c in found})


def test_the_table_shows_ratios_targets_and_what_breaks_a_rule(tmp_path):
    rows = [*base("crime"), *cells(table="crime", error=0.02), *base(), *cells(error=1.2)]
    rows += [*cells(error=1.3, epsilon=2.0), *cells("", 1.0, "constant", epsilon=2.0, quantiles=[1.0] * 20)]
    text = printed(tmp_path, rows)
    assert "| labels new | scores | 1.200 / 2.40 ± 0% | 1.300 / 2.60 ± 0% |" in text
    assert "| crime, labels new, ε = 1 | 0.02002 ± 1.2e-05 | 0.021: met |" in text
    assert "**Never behind a constant** (at most 1.03): 1 of 3 hold." in text
    assert (
        "**More budget is never worse** (at most 1.02): 0 of 1 hold.\n- scores, labels new, ε = 2: 1.083" in text
    )


def test_two_versions_are_compared_on_the_same_splits_and_tables_without_signal_do_not_count(tmp_path):
    rows = [*base("counts"), *cells(table="counts", error=0.9), *cells("old", table="counts")]
    rows += [*base("checkers"), *cells(table="checkers", error=1.1), *cells("old", table="checkers")]
    rows += [*base(trees=1.0), *cells(error=5.0), *cells("old")]
    text = printed(tmp_path, rows, "--new", "new", "--old", "old")
    assert "| counts, labels new, ε = 1 | 0.900 ± 0.000 |  |" in text
    assert "| checkers, labels new, ε = 1 | 1.100 ± 0.000 | **worse** |" in text
    assert "| scores, labels new, ε = 1 | 5.000 ± 0.000 | no signal |" in text
    assert "**0.995 ± 0.000** | goal 0.92: **missed** |" in text


def test_loose_bounds_and_the_lottery_are_judged(tmp_path):
    rows = [*base("counts"), *cells(table="counts"), *cells(table="counts", error=1.2, loose="10left")]
    rows += [*cells("", 2.0, "constant", "counts", loose="10left", quantiles=[2.0] * 20)]
    rows += [*cells(table="counts", error=1.1, repeat=1), *cells("old", 1.0, table="counts")]
    rows += [*cells("old", 1.5, table="counts", repeat=1)]
    text = printed(tmp_path, rows, "--new", "new", "--old", "old")
    assert "**Bounds × 10** (at most 1.1): 0 of 1 hold." in text
    assert "| counts, labels new, ε = 1 | 6.7% |" in text
    assert "**No lottery** (at most 0.5): 1 of 1 hold." in text
