"""Chunks are whole or absent, other settings are refused, and the command line works."""

import math
from pathlib import Path
from unittest import mock

import pytest
from tests.reproduction.tiny_tables import small, tiny
from typer.testing import CliRunner

from reproduction import datasets
from reproduction.cli import app
from reproduction.run import run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run, and its results."""
    folder = tmp_path_factory.mktemp("finished") / "results"
    return folder, run(tiny(trials=1), folder)


@pytest.mark.slow
def test_every_private_result_cost_its_epsilon(tmp_path):
    keys = ("laplace", "rp-letter", "rp", "labels-regressor", "model-regressor", "constant", "as-published")
    table = tiny(keys, budgets=(1.0, math.inf), trials=1, data=small(260))
    results = run(table, tmp_path / "results")
    assert {r.column for r in results} == {*keys, "no-privacy"}
    for r in results:
        assert r.private == (r.column not in ("as-published", "no-privacy"))
        assert r.cost_epsilon == (1.0 if r.private else math.inf)
        assert math.isfinite(r.mse)


# ---- the command line -----------------------------------------------------------------------------------


@pytest.fixture
def housing():
    """Synthetic data instead of Housing."""
    with mock.patch.object(datasets, "load_housing", return_value=small(120)):
        yield


OPTIONS = "--trials 2 --budgets 1,8,inf --columns laplace,constant --include-non-private --epochs 2 --workers 2"


@pytest.mark.slow
@pytest.mark.usefixtures("housing")
def test_the_command_makes_a_table_and_a_plot_and_continues_where_it_was(tmp_path):
    out = tmp_path / "results"
    command = ["housing", *OPTIONS.split(), "--out", str(out)]
    shown = CliRunner().invoke(app, command, env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    assert "NOT PRIVATE" in shown.output
    assert "0.5990 ± 0.0258" in shown.output
    assert "Not the paper's protocol" in shown.output
    names = {"results.csv", "table.md", "plot.png", "plot.svg", "manifest.json", "chunks"}
    assert {path.name for path in out.iterdir()} == names
    before = {path: path.stat().st_mtime_ns for path in (out / "chunks").iterdir()}
    table = (out / "table.md").read_text()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "chunks").iterdir()} == before
    assert (out / "table.md").read_text() == table
    other = CliRunner().invoke(app, [*command, "--protocol", "code"])
    assert other.exit_code == 2
    assert "other settings" in other.output


def test_the_library_does_without_the_reproduction():
    sources = (path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert not any("reproduction" in source for source in sources)
