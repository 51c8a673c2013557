"""Chunks are whole or absent, other settings are refused, and the command line works."""

import csv
import math
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import pytest
from tests.reproduction.tiny_tables import small, tiny
from typer.testing import CliRunner

import helpers
from labeldp.errors import ParameterError
from reproduction import datasets
from reproduction.cli import app
from reproduction.run import run
from reproduction.store import Store, current_commit

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run, and its results."""
    folder = tmp_path_factory.mktemp("finished") / "results"
    return folder, run(tiny(trials=1), folder)


@pytest.mark.slow
def test_every_private_result_cost_its_epsilon(tmp_path):
    keys = ("laplace", "algorithm-4", "labels-with-x", "labels-regressor", "constant", "as-published")
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


MINE = """
from dataclasses import dataclass
from labeldp.mechanisms import WORDS, Mechanism, Promise, TableChannel, channel_field, exp_lower, register

@register("mine")
@dataclass(frozen=True, slots=True, kw_only=True)
class Mine(Mechanism):
    bounds: tuple[float, float]
    epsilon: float
    channel: TableChannel = channel_field()

    def _build(self):
        low, high = self.bounds
        promise = Promise.of(self.epsilon)
        lie = -(-WORDS // (1 + exp_lower(promise.epsilon)))
        counts = [[WORDS - lie, lie], [lie, WORDS - lie]]
        reach = lie / (WORDS - 2 * lie) * (high - low)
        return TableChannel.from_counts(low, high, [low - reach, high + reach], counts, promise)
"""


@pytest.mark.slow
def test_a_mechanism_of_ones_own_is_a_column_in_every_worker(tmp_path):
    module, out = tmp_path / "mine.py", tmp_path / "results"
    module.write_text(MINE)
    options = "--columns mine,two-point --trials 1 --budgets 1 --epochs 1 --workers 2"
    command = ["diabetes", *options.split(), "--import", str(module), "--out", str(out)]
    helpers.python(f"from reproduction.cli import app; app({command})", check=True, cwd=ROOT)
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert {row["column"]: row["detail"] for row in rows} == {
        "mine": "mine, epsilon 1",
        "two-point": "two-point, epsilon 1",
    }


def test_a_commit_is_dirty_if_the_source_differs_and_not_if_a_page_does(tmp_path):
    def git(*command):
        settings = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *settings, *command], cwd=tmp_path, check=True, capture_output=True)  # noqa: S603, S607

    git("init")
    for name in ("src/a.py", "reproduction/b.py", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-m", "first")
    clean = current_commit.__wrapped__(tmp_path / "reproduction")
    assert len(clean) == 12
    for name, ending in (("README.md", ""), ("src/a.py", "-dirty")):
        (tmp_path / name).write_text("2\n")
        assert current_commit.__wrapped__(tmp_path / "reproduction") == clean + ending


def test_a_folder_of_another_version_is_refused_and_commits_are_noted(tmp_path, monkeypatch):
    store = Store(tmp_path / "results")
    store.begin({"version": "1"})
    for commit in ("a", "a", "b"):
        monkeypatch.setattr("reproduction.store.current_commit", lambda commit=commit: commit)
        store.begin({"version": "1"})
        store.write("chunk", [])
    assert store.settings()["commits"] == ["a", "b"]
    with pytest.raises(ParameterError, match="version was 1, is 2"):
        store.begin({"version": "2"})


@pytest.mark.slow
def test_more_trials_continue_a_folder_to_the_same_results(tmp_path, finished):
    folder, before = finished
    grown = tmp_path / "results"
    shutil.copytree(folder, grown)
    chunks = {path: path.stat().st_mtime_ns for path in (grown / "chunks").iterdir()}
    at_once = run(tiny(trials=2), tmp_path / "at once")
    assert run(tiny(trials=2), grown) == at_once
    assert [result for result in at_once if result.trial == 0] == before
    assert {path: path.stat().st_mtime_ns for path in chunks} == chunks
    assert Store(grown).settings() == Store(tmp_path / "at once").settings()
    with pytest.raises(ParameterError, match="trials was 2, is 1"):
        run(tiny(trials=1), grown)


def test_the_library_does_without_the_reproduction():
    sources = (path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert not any("reproduction" in source for source in sources)
