"""Signals and full disks, for real: no part of a table appears, nothing is left, and the ledger is true."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp

ROWS = 300_000
PLAIN = "from labeldp.cli import app; app()"
HELD = """
import sys, time, pathlib
from labeldp.files import door, writer
from labeldp.cli import app
writer.GROUP_ROWS = 50_000  # so that a part of the table is on the disk
batch = door.Output.batch
def held(self, *given):
    if self.rows > 200_000:
        pathlib.Path("held").touch()
        time.sleep(600)
    return batch(self, *given)
door.Output.batch = held
app()
"""
CARELESS = """
import contextlib
from labeldp.files import drafts
@contextlib.contextmanager
def straight(path, **_):
    yield pathlib.Path(path)
drafts.atomic_file = straight
"""


@pytest.fixture
def room(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=ROWS), "b": rng.integers(0, 9, ROWS), "price": rng.uniform(0, 5, ROWS)})
    pq.write_table(table, tmp_path / "in.parquet")
    return tmp_path


def command(code, out="out.parquet", *more):
    options = [
        "--label",
        "price",
        "--bounds",
        "0",
        "5",
        "--epsilon",
        "1",
        "--mechanism",
        "rp",
        "--ledger",
        "budget.jsonl",
    ]
    return [sys.executable, "-c", code, "privatize", "in.parquet", "-o", out, *options, *more]


def started(code, room, *more, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command(code, *more), cwd=room, env=environment, **pipes, **options)  # noqa: S603


def finished(process):
    _, errors = process.communicate(timeout=300)
    return process.returncode, errors.decode()


def left(room):
    return sorted(path.name for path in room.iterdir() if path.name not in {"in.parquet", "budget.jsonl", "held"})


def spent(room):
    return ldp.Ledger.open(room / "budget.jsonl").total.epsilon


def wait_until_held(room, process):
    while not (room / "held").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("kind", "out"), [(signal.SIGINT, "out.parquet"), (signal.SIGTERM, "out.csv"), (signal.SIGTERM, "out/")]
)
def test_a_signal_during_the_release_leaves_nothing_but_the_charge(room, kind, out):
    process = started(HELD, room, out)
    wait_until_held(room, process)
    (draft,) = room.glob("*.part")
    assert draft.stat().st_mode & 0o077 == 0
    process.send_signal(kind)
    code, errors = finished(process)
    assert code == 130
    assert "Stopped. A table that is there is whole" in errors
    assert "Traceback" not in errors
    assert left(room) == []
    assert spent(room) == 1


@contextlib.contextmanager
def small_disk(place):
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    done = subprocess.run(options, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)  # noqa: S603, S607


@pytest.mark.parametrize(
    ("out", "more"),
    [("disk/out.parquet", []), ("disk/out.csv", []), ("disk/parts/", []), ("disk/out.arrow", ["--shuffle"])],
)
def test_a_full_disk_leaves_nothing_but_the_charge(room, out, more):
    with small_disk(room / "disk"):
        code, errors = finished(started(PLAIN, room, out, *more))
        assert code == 1
        assert "No space left" in errors
        assert "ε = 1 was charged before that, and stays spent." in errors
        assert "Traceback" not in errors
        assert list((room / "disk").iterdir()) == []
        assert spent(room) == 1


def test_a_file_that_may_not_grow_leaves_nothing(room):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    code, errors = finished(started(PLAIN, room, preexec_fn=limited))
    assert code == 1
    assert "too large" in errors
    assert left(room) == []
    assert spent(room) == 1


def test_a_reader_that_goes_away_is_no_traceback(room):
    process = started(PLAIN, room, "-")
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait() == 1
    assert "Traceback" not in errors
    process.stderr.close()


def test_the_twin_of_the_test_of_signals(room):
    """A writer that works on the file itself leaves a part of it behind, and the check above finds that."""
    careless = HELD.replace("batch =", f"{CARELESS}\nbatch =", 1)
    process = started(careless, room)
    wait_until_held(room, process)
    process.terminate()
    assert finished(process)[0] == 130
    assert left(room) == ["out.parquet"]
