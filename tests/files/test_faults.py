"""Killed at any moment, on a full disk or a read-only one: nothing half done, and nothing unpaid."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import labeldp as ldp
from killing import rounds_of_killing, start_workers


@pytest.fixture(scope="module")
def workers():
    with start_workers() as running:
        yield running


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("privatize", 80),
        ("fit", 40),
        ("model", 40),
        ("replaced", 40),
        ("command", 40),
        ("fit_command", 20),
    ],
)
def test_kill_9_at_any_moment_leaves_no_partial_file_no_unpaid_release_and_no_lock(workers, tmp_path, kind, kills):
    finished, outputs, paid = rounds_of_killing(workers, kind, tmp_path, kills)
    assert 0 < finished <= outputs <= paid <= finished + kills


@pytest.mark.parametrize("kind", ["pays_late", "writes_in_place", "replaces_in_place"])
def test_work_done_in_the_wrong_order_is_caught(workers, tmp_path, kind):
    """Half of the time of its work passes between the two steps: 60 kills miss that with a chance below 1e-6."""
    with pytest.raises((AssertionError, ValueError, OSError, KeyError, EOFError)):
        rounds_of_killing(workers, kind, tmp_path, kills=60)


@pytest.mark.parametrize("kind", ["locks_with_a_file", "child_keeps_the_lock"])
def test_a_lock_that_outlives_its_owner_is_caught(workers, tmp_path, kind):
    with pytest.raises((AssertionError, BlockingIOError), match=r"left behind|unavailable"):
        rounds_of_killing(workers, kind, tmp_path, kills=60)


# ---- full and read-only disks -------------------------------------------------------------------------

ON_A_SMALL_DISK = """
import json, os, subprocess, sys
import numpy as np
import labeldp as ldp

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
now, after = ldp.Ledger.open(folder + "/ledger", create="never"), open(folder + "/ledger", "rb").read()
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
        "labeldp.ledger.budget.datetime", SimpleNamespace(now=lambda zone: datetime(1970, 1, 1, tzinfo=zone))
    )
    second = ldp.privatize(labels[1], epsilon=1.0, bounds=(0, 5), mechanism="two-point", ledger=ledger)
    assert second.charges[0].when.startswith("1970")
    assert ldp.Ledger.open(tmp_path / "ledger").charges[-1] == second.charges[0]
    with pytest.raises(ldp.BudgetError):
        ldp.privatize(labels[2], epsilon=1.0, bounds=(0, 5), mechanism="two-point", ledger=ledger)
