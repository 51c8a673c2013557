"""The ledger in a file, and processes that race and die: never a charge less than was spent."""

import json
import os
import signal
import stat
import sys
import time
from itertools import takewhile
from subprocess import PIPE, Popen

import pytest

from helpers import posix_only
from labeldp import Budget, Ledger

pytestmark = posix_only

SPENDER = """
import contextlib, json, os, sys, time
from labeldp import Budget, BudgetError, Ledger

def spend(path, limit, epsilon, times, at):
    os.write(1, b"%d\\n" % os.getpid())
    ledger = Ledger.open(path, limit=Budget(limit))
    time.sleep(max(0, at - time.time()))
    with contextlib.suppress(BudgetError):
        for _ in range(times):
            ledger.charge("labels", epsilon=epsilon)
            os.write(1, b"+")

for line in sys.stdin:
    processes, *order = json.loads(line)
    for _ in range(processes):
        if not os.fork():
            spend(*order)
            os._exit(0)
    for _ in range(processes):
        os.wait()
    os.write(1, b"\\nend\\n")
"""


class Spender(Popen):
    """Starts processes that charge, and say + after each charge; by forks, because importing is slow."""

    def start(self, processes, path, *, limit=1000, epsilon=0.01, times=10**9):
        order = [processes, str(path), limit, epsilon, times, time.time() + 0.03 * (processes > 1)]
        self.stdin.write(json.dumps(order).encode() + b"\n")
        self.stdin.flush()

    def acknowledged(self):
        return sum(line.count(b"+") for line in takewhile(b"end\n".__ne__, self.stdout))


@pytest.fixture(scope="module")
def spender():
    with Spender([sys.executable, "-c", SPENDER], stdin=PIPE, stdout=PIPE) as running:
        yield running


def test_of_two_processes_that_race_for_the_last_budget_exactly_one_wins(spender, tmp_path):
    for path in (tmp_path / str(attempt) for attempt in range(12)):
        spender.start(2, path, limit=1, epsilon=0.6, times=1)
        assert spender.acknowledged() == 1
        assert Ledger.open(path).total == Budget(0.6)


def test_sixteen_processes_with_ten_charges_each_sum_exactly(spender, path):
    spender.start(16, path, limit=1.6, times=10)
    assert spender.acknowledged() == 160
    assert (Ledger.open(path).total, Ledger.open(path).remaining) == (Budget(1.6), Budget(0))


CALLS = ("open", "link", "write", "fsync", "ftruncate", "close", "unlink")


def dies_at(step, path):
    """Make a ledger and charge it in a process that dies in its step-th system call; return what it said, or None.

    A write is done by half, and of any other call nothing. None if there are fewer steps, and it did not die.
    """
    said, tell = os.pipe()
    child, write = os.fork(), os.write
    if not child:
        left = [step]

        def dying(name, call):
            def die_or_call(*given, **options):
                left[0] -= 1
                if not left[0]:
                    if name == "write":
                        write(given[0], given[1][: len(given[1]) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*given, **options)

            return die_or_call

        for name in CALLS:
            setattr(os, name, dying(name, getattr(os, name)))
        Ledger.open(path, limit=Budget(3)).charge("labels", epsilon=1)
        write(tell, b"+")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os.close(tell)
    with os.fdopen(said, "rb") as stream:
        return stream.read() if os.WIFSIGNALED(status) else None


def test_a_process_that_dies_in_any_system_call_leaves_a_whole_ledger_or_none(tmp_path):
    """Each step in turn, so nothing here depends on time: a kill at random misses what a loaded machine hits."""
    step, found = 0, []
    while True:
        step += 1
        path = tmp_path / str(step) / "ledger"
        path.parent.mkdir()
        said = dies_at(step, path)
        left = {each.name for each in path.parent.iterdir()}
        assert all(name == "ledger" or name.endswith(".part") for name in left)
        assert not any(stat.S_IMODE((path.parent / name).stat().st_mode) & 0o077 for name in left)
        there = path.exists()
        again = Ledger.open(path, limit=Budget(3))
        found.append((there, again.total == Budget(1)))
        assert again.total in (Budget(0), Budget(1))
        assert again.total == Budget(1) or not said
        again.charge("still usable", epsilon=1)
        if said is None:
            break
    assert found == sorted(found)  # no ledger, then one without the charge, then one with it
    assert len(set(found)) == 3
    assert step > len(CALLS)
