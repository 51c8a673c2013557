"""The ledger in a file, and processes that race and die: never a charge less than was spent."""

import json
import os
import random
import re
import signal
import sqlite3
import stat
import sys
import time
from fractions import Fraction
from functools import partial
from itertools import takewhile
from subprocess import PIPE, Popen

import pytest

from fuzzing import LONG
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
    assert (Ledger.open(path).total, Ledger.open(path).remaining()) == (Budget(1.6), Budget(0))


@pytest.mark.slow
def test_processes_that_are_killed_lose_no_charge_and_make_none_twice(spender, path):
    """A charge that was acknowledged is in the ledger; one that was not may be, once for each kill."""
    processes, kills = (40, 30) if LONG else (12, 8)
    Ledger.open(path, limit=Budget(1000))
    spender.start(processes, path, times=20)
    said, moments = b"", random.Random(0)
    workers = []
    while len(workers) < processes:
        said += os.read(spender.stdout.fileno(), 1 << 16)
        workers = [int(number) for number in re.findall(rb"([0-9]+)\n", said)]
    for worker in moments.sample(workers, kills):
        said += os.read(spender.stdout.fileno(), 1 << 16)
        os.kill(worker, signal.SIGKILL)
    while not said.endswith(b"end\n"):
        said += os.read(spender.stdout.fileno(), 1 << 16)
    charges = Ledger.open(path).charges
    assert said.count(b"+") <= len(charges) <= said.count(b"+") + kills
    assert len({charge.when for charge in charges}) == len(charges)
    assert Ledger.open(path).total == Budget(Fraction(len(charges), 100))


CALLS = ("open", "link", "fsync", "close", "unlink")
"""Of Python, when a new ledger gets its name; all else is done by SQLite, statement by statement."""


def dies_at(step, path):
    """Make a ledger and charge it in a process that dies before its step-th call; return what it said, or None.

    None if there are fewer steps, and it did not die.
    """
    said, tell = os.pipe()
    child, write = os.fork(), os.write
    if not child:
        left = [step]

        def dying(call):
            def die_or_call(*given, **options):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*given, **options)

            return die_or_call

        class Dying(sqlite3.Connection):
            execute = dying(sqlite3.Connection.execute)
            close = dying(sqlite3.Connection.close)

        for name in CALLS:
            setattr(os, name, dying(getattr(os, name)))
        sqlite3.connect = partial(sqlite3.connect, factory=Dying)
        Ledger.open(path, limit=Budget(3)).charge("labels", epsilon=1)
        write(tell, b"+")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os.close(tell)
    with os.fdopen(said, "rb") as stream:
        return stream.read() if os.WIFSIGNALED(status) else None


def test_a_process_that_dies_before_any_call_leaves_a_whole_ledger_or_none(tmp_path):
    """Each step in turn, so nothing here depends on time: a kill at random misses what a loaded machine hits."""
    step, found = 0, []
    while True:
        step += 1
        path = tmp_path / str(step) / "ledger"
        path.parent.mkdir()
        said = dies_at(step, path)
        found.append(left_by(path))
        assert found[-1][1] or not said
        if said is None:
            break
    assert found == sorted(found)  # no ledger, then one without the charge, then one with it
    assert len(set(found)) == 3
    assert step > 3 * len(CALLS)


def test_a_process_that_dies_while_it_writes_leaves_a_whole_ledger(tmp_path):
    """The system ends it where a file would grow beyond a limit, with the write done in part."""
    import resource

    found = []
    for size in (*range(0, 1200, 100), *range(4000, 40000, 2000)):
        path = tmp_path / str(size) / "ledger"
        path.parent.mkdir()
        Ledger.open(path, limit=Budget(3)).charge("x" * 400, epsilon=1)
        child = os.fork()
        if not child:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            ledger = Ledger.open(path)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            ledger.charge("y" * 12_000, epsilon=1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        found.append(os.WIFSIGNALED(status))
        assert Ledger.open(path).total == Budget(1 if found[-1] else 2)
        Ledger.open(path).charge("still usable", epsilon=0.1)
        assert os.listdir(path.parent) == ["ledger"]
    assert set(found) == {True, False}


def left_by(path):
    """Return whether a ledger is there, and whether it was charged; it is whole, private, and usable."""
    left = {each.name for each in path.parent.iterdir()}
    assert all(name in ("ledger", "ledger-journal") or name.endswith(".part") for name in left)
    assert not any(stat.S_IMODE((path.parent / name).stat().st_mode) & 0o077 for name in left)
    there = path.exists()
    again = Ledger.open(path, limit=Budget(3))
    assert again.total in (Budget(0), Budget(1))
    charged = again.total == Budget(1)
    again.charge("still usable", epsilon=1)
    return there, charged
