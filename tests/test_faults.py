"""Killed at any moment, on a full disk or a read-only one: nothing half done, and nothing unpaid.

Children are forked from one process that has imported everything, so that 200 kills take seconds; each does
real work in a folder until it is killed, and says + after each release that it finished.
"""

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import takewhile
from subprocess import PIPE, Popen

import numpy as np
import pytest

import labeldp as ldp
from labeldp.verification import verify_card

EPSILON = 0.125
WORKER = """
import json, os, sys, tempfile, time
import numpy as np
import labeldp as ldp
import labeldp.cli.privatize, labeldp.files.privatize, labeldp.ledger_file
from labeldp._arrow import arrow
from labeldp._files import written_whole
from labeldp.cli import app

LABELS = np.linspace(1, 4, 60)
FEATURES = LABELS[:, None]
E, BOUNDS = %r, (0.0, 5.0)

def privatize(folder, number, ledger):
    release = ldp.privatize(LABELS, epsilon=E, bounds=BOUNDS, mechanism="two-point", ledger=ledger)
    with written_whole(f"{folder}/{number}.npz") as draft, open(draft, "wb") as stream:
        np.savez(stream, labels=release.labels, card=np.array(release.to_card()))

def stream(folder, number, ledger):
    from labeldp.stream import LabelStream, Order
    order = Order(epsilon=E, bounds=BOUNDS, mechanism="two-point")
    batches = np.split(LABELS, 6)
    running = LabelStream(lambda: batches, order, ledger=ledger)
    with written_whole(f"{folder}/{number}.npz") as draft, open(draft, "wb") as out:
        labels = np.concatenate([running.release(batch) for batch in batches])
        np.savez(out, labels=labels, card=np.array(running.finish().to_card()))

def fit(folder, number, ledger):
    model = ldp.LabelReleaseRegressor(epsilon=E, bounds=BOUNDS, ledger=ledger, rounds=1).fit(FEATURES, LABELS)
    model.release_.save(f"{folder}/{number}.npz")

def model(folder, number, ledger):
    card = ldp.ModelReleaseRegressor(epsilon=E, bounds=BOUNDS, ledger=ledger).fit(FEATURES, LABELS).to_card()
    with written_whole(f"{folder}/{number}.npz") as draft, open(draft, "wb") as stream:
        np.savez(stream, labels=LABELS * 0, card=np.array(card))

def command(folder, number, ledger):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    order = ["--label", "price", "--bounds", "0", "5", "--epsilon", str(E), "--mechanism", "two-point"]
    order += ["--ledger", f"{folder}/ledger", "-o", f"{folder}/{number}.csv"]
    app(["privatize", f"{folder}/in.tsv", *order], standalone_mode=False)

def pays_late(folder, number, ledger):
    begun = time.perf_counter()
    privatize(folder, number, ldp.Ledger())
    time.sleep(time.perf_counter() - begun)
    ledger.charge("labels", epsilon=E)

def writes_in_place(folder, number, ledger):
    begun = time.perf_counter()
    release = ldp.privatize(LABELS, epsilon=E, bounds=BOUNDS, mechanism="two-point", ledger=ledger)
    with open(f"{folder}/{number}.npz", "wb") as stream:
        time.sleep(time.perf_counter() - begun)
        np.savez(stream, labels=release.labels, card=np.array(release.to_card()))

# What is imported only when used must be there before the fork, or every child would import it again.
arrow()
with tempfile.TemporaryDirectory() as warm:
    fit(warm, 0, ldp.Ledger())
    model(warm, 1, ldp.Ledger())

def work(kind, folder, number):
    os.write(1, b"%%d\\n" %% os.getpid())
    ledger = ldp.Ledger.open(f"{folder}/ledger", limit=ldp.Budget(1000))
    while True:
        globals()[kind](folder, number, ledger)
        os.write(1, b"+\\n")
        number += 1

for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            work(*json.loads(line))
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    os.write(1, b"end\\n")
"""


class Workers(Popen):
    """Starts a worker, kills it at a random moment of its work, and counts what it had finished."""

    def killed(self, moments, kind, folder, start):
        self.stdin.write(json.dumps([kind, str(folder), start]).encode() + b"\n")
        self.stdin.flush()
        process = int(self.stdout.readline())
        finished, begun = 0, time.perf_counter()
        for _ in range(moments.choice([0, 0, 1, 2])):
            assert self.stdout.readline() == b"+\n", "the worker failed by itself"
            finished += 1
        if finished:
            self.unit = (time.perf_counter() - begun) / finished
        time.sleep(moments.uniform(0, 1.2 * getattr(self, "unit", 0.05)))
        os.kill(process, signal.SIGKILL)
        return finished + sum(1 for _ in takewhile(b"end\n".__ne__, self.stdout))


@pytest.fixture(scope="module")
def workers():
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", WORKER % EPSILON]
    with Workers(command, stdin=PIPE, stdout=PIPE, env=environment) as running:
        yield running


def check(folder, finished, seen):
    """Hold a folder to the promises: whole files, all of them paid for, and a ledger free to use."""
    with open(folder / "ledger", "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # no lock was left behind
    ledger = ldp.Ledger.open(folder / "ledger")
    outputs = [*folder.glob("*.npz"), *folder.glob("*.csv")]
    for path in set(outputs) - seen:
        seen.add(path)
        if path.suffix == ".csv":
            card = path.with_name(f"{path.name}.card.json").read_text()
            done = verify_card(card, file=path)
            assert [c.holds for c in done.checks if c.name in ("file", "rows")] == [True, True]
            continue
        with np.load(path, allow_pickle=False) as stored:
            assert stored["labels"].shape == (60,)
            assert json.loads(str(stored["card"]))["schema"].startswith("labeldp.")
    spent = ledger.total.epsilon
    assert finished <= len(outputs)
    assert len(outputs) * EPSILON <= spent * (1 + 1e-12)
    return len(outputs), round(spent / EPSILON)


def rounds_of_killing(workers, kind, folder, kills):
    """Kill a worker again and again in one folder, where the next goes on; return releases and payments."""
    moments = random.Random(kind)
    (folder / "in.tsv").write_text("id\tprice\n" + "".join(f"{k}\t{1 + k % 4}\n" for k in range(60)))
    finished = outputs = paid = 0
    seen = set()
    for kill in range(kills):
        finished += workers.killed(moments, kind, folder, start=1000 * kill)
        if (folder / "ledger").exists():
            outputs, paid = check(folder, finished, seen)
    ldp.Ledger.open(folder / "ledger").charge("still usable", epsilon=EPSILON)
    return finished, outputs, paid


@pytest.mark.parametrize(
    ("kind", "kills"), [("privatize", 80), ("stream", 60), ("fit", 40), ("model", 40), ("command", 40)]
)
def test_kill_9_at_any_moment_leaves_no_partial_file_no_unpaid_release_and_no_lock(workers, tmp_path, kind, kills):
    finished, outputs, paid = rounds_of_killing(workers, kind, tmp_path, kills)
    assert 0 < finished <= outputs <= paid <= finished + kills


@pytest.mark.parametrize("kind", ["pays_late", "writes_in_place"])
def test_work_done_in_the_wrong_order_is_caught(workers, tmp_path, kind):
    """Half of the time of its work passes between the two steps: 60 kills miss that with a chance below 1e-6."""
    with pytest.raises((AssertionError, ValueError, OSError, KeyError, EOFError)):
        rounds_of_killing(workers, kind, tmp_path, kills=60)


# ---- full and read-only disks -------------------------------------------------------------------------

ON_A_SMALL_DISK = """
import json, os, subprocess, sys
import numpy as np
import labeldp as ldp
from labeldp.ledger_file import FileLedger

folder, how = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=True)
ledger = ldp.Ledger.open(folder + "/ledger", limit=ldp.Budget(1000))
labels = np.linspace(1, 4, 500)
model = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=(0, 5), ledger=ledger).fit(labels[:, None], labels)
paid, before = ledger.total, open(folder + "/ledger", "rb").read()
if how == "full":
    with open(folder + "/filler", "wb", buffering=0) as filler:
        try:
            while filler.write(b"0" * 512):
                pass
        except OSError:
            pass
else:
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
failed = []
for number in range(40):  # a full disk may have room left in the ledger's last page
    try:
        ledger.charge("more, " + "x" * 200, epsilon=1.0)
    except ldp.LedgerError:
        failed.append("ledger")
        break
try:
    model.release_.save(folder + "/rows.npz")
except OSError as error:
    failed.append("save")
try:
    ldp.privatize(np.linspace(1, 4, 501), epsilon=1.0, bounds=(0, 5), ledger=ledger)
except ldp.LedgerError:
    failed.append("privatize")
now, after = FileLedger(folder + "/ledger", create=False), open(folder + "/ledger", "rb").read()
print(json.dumps({
    "failed": failed,
    "files": sorted(os.listdir(folder)),
    "kept": after.startswith(before) and now.total == ledger.total,
    "paid": ledger.total.epsilon - paid.epsilon - number,
}))
"""


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_disk_that_takes_no_more_refuses_in_words_and_keeps_what_is_there(tmp_path, how):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only the superuser may mount a small disk")
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:  # noqa: S607
        pytest.skip("this machine gives no mount namespaces")
    command = ["unshare", "-m", sys.executable, "-W", "ignore", "-c", ON_A_SMALL_DISK, str(tmp_path), how]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["failed"] == ["ledger", "save", "privatize"]
    assert found["files"] == (["filler", "ledger"] if how == "full" else ["ledger"])
    assert found["kept"]
    assert found["paid"] in ((0.0, 1.0) if how == "full" else (0.0,))  # paid and not released is safe


def test_a_clock_set_back_is_written_down_and_changes_nothing_else(tmp_path, monkeypatch):
    from datetime import datetime
    from types import SimpleNamespace

    ledger = ldp.Ledger.open(tmp_path / "ledger", limit=ldp.Budget(2))
    labels = [np.linspace(1, 4, 50) for _ in range(3)]
    ldp.privatize(labels[0], epsilon=1.0, bounds=(0, 5), mechanism="two-point", ledger=ledger)
    monkeypatch.setattr(
        "labeldp.ledger.datetime", SimpleNamespace(now=lambda zone: datetime(1970, 1, 1, tzinfo=zone))
    )
    second = ldp.privatize(labels[1], epsilon=1.0, bounds=(0, 5), mechanism="two-point", ledger=ledger)
    assert second.charges[0].when.startswith("1970")
    assert ldp.Ledger.open(tmp_path / "ledger").charges[-1] == second.charges[0]
    with pytest.raises(ldp.BudgetError):
        ldp.privatize(labels[2], epsilon=1.0, bounds=(0, 5), mechanism="two-point", ledger=ledger)
