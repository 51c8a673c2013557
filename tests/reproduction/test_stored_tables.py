"""Tables in docs/reproduction are of this version, and show what is in the files beside them."""

import csv
import json
import math
from pathlib import Path

import pytest

import labeldp as ldp
from reproduction.columns import NO_PRIVACY, find_column
from reproduction.store import Result
from reproduction.summary import Summary

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"
TABLES = sorted(path.parent for path in FOLDER.glob("*/table.md"))


def stored_results(folder):
    """Return the results of a stored table."""
    rows = csv.DictReader((folder / "results.csv").read_text("utf-8").splitlines())
    numbers = {"trial": int, "epsilon": float, "mse": float, "cost_epsilon": float, "cost_delta": float}
    for row in rows:
        converted = {name: convert(row[name]) for name, convert in numbers.items()}
        yield Result(**{**row, **converted, "private": row["private"] == "True"})


@pytest.mark.parametrize("page", sorted(FOLDER.rglob("*.md")), ids=lambda page: str(page.relative_to(FOLDER)))
def test_every_page_of_results_is_of_this_version(page):
    assert f"Version {ldp.__version__}." in page.read_text("utf-8"), "compute it again, or delete it"
    assert page.name != "table.md" or {path.name for path in page.parent.iterdir()} == {
        "manifest.json",
        "plot.png",
        "results.csv",
        "table.md",
    }


@pytest.mark.parametrize("folder", TABLES, ids=lambda folder: folder.name)
def test_a_stored_table_shows_its_results_and_each_cost_its_epsilon(folder):
    settings = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert settings["version"] == ldp.__version__
    assert not any("dirty" in commit for commit in settings["commits"])
    results = list(stored_results(folder))
    assert all(result.cost_epsilon == result.epsilon for result in results if result.private)
    summary = Summary(results, tuple(map(find_column, settings["columns"])))
    assert {mean.trials for mean in summary.means.values()} == {settings["trials"]}
    assert summary.budgets == sorted(map(float, settings["budgets"]))
    lines = (folder / "table.md").read_text("utf-8").splitlines()
    for (column, epsilon), mean in summary.means.items():
        row = "| +∞ |" if epsilon == math.inf else f"| {epsilon:g} |"
        assert any(line.startswith(row) and mean.text in line for line in lines), (column, epsilon)
    columns = {column for column, _ in summary.means} - {NO_PRIVACY.key}
    assert columns == set(settings["columns"])
