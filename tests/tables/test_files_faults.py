"""Killed at any moment, stopped by a signal, on a full disk: nothing half done is left, and nothing unpaid."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from fuzzing import LONG

resource = pytest.importorskip("resource", reason="Windows has no such forks, signals and limits")
from tables.killing import rounds_of_killing, start_workers  # noqa: E402


@pytest.fixture(scope="module")
def workers():
    with start_workers() as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["privatize", "fit", "replaced", "command", "modelled"])
def test_kill_9_at_any_moment_leaves_no_partial_file_no_unpaid_release_and_no_lock(workers, tmp_path, kind):
    kills = 1000 if LONG else 12
    finished, outputs, paid = rounds_of_killing(workers, kind, tmp_path, kills)
    assert 0 < finished <= outputs <= paid <= finished + kills


@pytest.mark.parametrize("kind", ["pays_late", "writes_in_place", "replaces_in_place"])
def test_work_done_in_the_wrong_order_is_caught(workers, tmp_path, kind):
    """Each stops between its two steps until it is killed there."""
    with pytest.raises((AssertionError, ValueError, OSError, KeyError, EOFError)):
        rounds_of_killing(workers, kind, tmp_path, kills=20)


@pytest.mark.parametrize("kind", ["locks_with_a_file", "child_keeps_the_lock"])
def test_a_lock_that_outlives_its_owner_is_caught(workers, tmp_path, kind):
    with pytest.raises((AssertionError, sqlite3.OperationalError), match=r"left behind|locked"):
        rounds_of_killing(workers, kind, tmp_path, kills=20)


# ---- signals and full disks, with the command itself --------------------------------------------------------

ROWS = 300_000
LATER = """
from labeldp.tables import writer
from labeldp.app.cli import app
writer.refuse_size = lambda *_: None  # as if the space were gone after it was checked
app()
"""
PAUSING = """
import contextlib, time, pathlib
from labeldp.tables import writer
from labeldp.app.cli import app
writer.GROUP_ROWS = 50_000  # so that a part of the table is on the disk
write = writer.TableWriter.write
def pause(self, batch):
    if self._written > 200_000:
        pathlib.Path("paused").touch()
        time.sleep(600)
    write(self, batch)
writer.TableWriter.write = pause
app()
"""
CARELESS = """
@contextlib.contextmanager
def straight(path, **_):
    yield pathlib.Path(path)
writer.atomic_file = straight
app()
"""


@pytest.fixture
def room(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=ROWS), "b": rng.integers(0, 9, ROWS), "price": rng.uniform(0, 5, ROWS)})
    pq.write_table(table, tmp_path / "in.parquet")
    return tmp_path


def start(code, room, out="out.parquet", *more, command="privatize", mechanism=("--mechanism=rp",), **options):
    words = ["--label=price", "--bounds", "0", "5", "--epsilon=1", *mechanism, "--ledger=budget.db"]
    command = [sys.executable, "-c", code, command, "in.parquet", "-o", out, *words, *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=room, env=environment, **pipes, **options)  # noqa: S603


def start_and_pause(code, room, out):
    process = start(code, room, out)
    while not (room / "paused").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


def assert_stopped(process, room, code, *words, left=()):
    """Check how a command ended and what it said; nothing is left of its work but the charge."""
    errors = process.communicate(timeout=300)[1].decode()
    assert process.returncode == code
    assert all(word in errors for word in words), errors
    assert "Traceback" not in errors
    names = {path.name for path in room.iterdir()} - {"in.parquet", "budget.db", "paused", "disk"}
    assert names == set(left)
    assert ldp.Ledger.open(room / "budget.db").total.epsilon == 1


@pytest.mark.slow
def test_a_signal_during_the_release_leaves_nothing_but_the_charge(room):
    process = start_and_pause(PAUSING, room, "out.parquet")
    (draft,) = (path for path in room.glob("*.part") if not path.name.endswith(".labeldp.part"))
    assert draft.stat().st_mode & 0o077 == 0
    process.send_signal(signal.SIGINT)
    assert_stopped(process, room, 130, "Stopped. A table that is there is whole")


@pytest.mark.slow
def test_a_writer_that_works_on_the_file_itself_leaves_a_part_of_it_and_is_caught(room):
    process = start_and_pause(PAUSING.replace("app()\n", CARELESS), room, "out.parquet")
    process.terminate()
    assert_stopped(process, room, 130, left=["out.parquet"])


@contextlib.contextmanager
def small_disk(place, size="1m"):
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    done = subprocess.run(options, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)  # noqa: S603, S607


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_but_the_charge(room):
    with small_disk(room / "disk"):
        charged = "ε = 1 was charged before that, and stays spent"
        assert_stopped(start(LATER, room, "disk/out.parquet", "--shuffle"), room, 1, "No space left", charged)
        assert list((room / "disk").iterdir()) == []
