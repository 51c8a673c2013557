"""The ledger in a file: whole, locked and flushed, and refused wherever it is not what was written."""

import contextlib
import copy
import os
import pickle
import random
import tempfile
from fractions import Fraction
from functools import partial

import portalocker
import pytest

from helpers import posix_only
from labeldp import Budget, BudgetError, Ledger
from labeldp.accounts.budget import new_charge
from labeldp.errors import LedgerError

LIMIT = Budget(10, 1e-3)


@pytest.fixture
def ledger(path):
    made = Ledger.open(path, limit=LIMIT)
    made.charge("labels, café", epsilon=0.1)
    made.charge_all(
        [
            new_charge("column 0", Budget(0.2, 1e-6), purpose="other"),
            new_charge("column 1", Budget(0.3), purpose="other"),
        ]
    )
    made.describe(1, "sha256:0123")
    made.charge("last", epsilon=0.4)
    return made


def test_a_reopened_ledger_keeps_its_limit_and_refuses_another(path):
    Ledger.open(path, limit=Budget(0.3)).charge("labels", epsilon=0.1)
    for again in (Ledger.open(path), Ledger.open(str(path), limit=Budget(Fraction(3, 10)))):
        assert (again.limit, again.total, again.remaining) == (Budget(0.3), Budget(0.1), Budget(0.2))
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="limit"):
        Ledger.open(path, limit=Budget(0.3, 1e-9))
    with pytest.raises(BudgetError, match="nothing was spent"):
        Ledger.open(path).charge("labels", epsilon=0.21)
    assert path.read_bytes() == before


def test_pickles_are_the_path_and_copies_the_ledger_itself(ledger, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    pickled = pickle.dumps(Ledger.open("ledger"))
    monkeypatch.chdir("/")
    sent = pickle.loads(pickled)
    sent.charge("elsewhere", epsilon=0.1)
    assert (sent.limit, sent.charges, sent.total) == (LIMIT, ledger.charges, Budget(1.1, 1e-6))
    assert copy.deepcopy(ledger) is copy.copy(ledger) is ledger


@posix_only
def test_a_charge_is_on_the_disk_and_the_lock_is_off_when_it_returns(ledger, path, monkeypatch):
    import fcntl

    calls, forked, write, fsync = [], [], os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda *a: (write(*a), calls.append("write"))[0])
    monkeypatch.setattr(os, "fsync", lambda file: (fsync(file), calls.append("flush")))
    Ledger.open(path.with_name("new"), limit=LIMIT)
    ledger.charge("more", epsilon=0.1)
    assert calls == ["flush", "flush", "write", "flush"]  # a new file's folder is flushed too
    monkeypatch.setattr(os, "fsync", lambda file: forked.append(os.dup(file)))  # what a fork does
    ledger.charge("more", epsilon=0.1)
    with path.open() as other, os.fdopen(forked[0]):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_torn_last_line_is_dropped_wherever_it_was_cut(ledger, path):
    whole = path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in range(start, len(whole) - 1):
        path.write_bytes(whole[:end])
        torn = Ledger.open(path)
        assert torn.total == Budget(0.6, 1e-6)
        torn.charge("next", epsilon=1)
        assert [charge.what for charge in Ledger.open(path).charges][2:] == ["column 1", "next"]


def test_an_open_ledger_notices_when_records_are_cut_off_or_it_is_replaced(ledger, path):
    before = path.read_bytes()
    ledger.charge("next", epsilon=0.1)
    path.write_bytes(before)  # an old copy, without the last charge
    with pytest.raises(LedgerError, match="removed"):
        ledger.charge("again", epsilon=0.1)
    path.unlink()
    other = Ledger.open(path, limit=LIMIT)
    for _ in range(before.count(b"\n")):
        other.charge("labels", epsilon=0.1)
    with pytest.raises(LedgerError, match="another was put in its place"):  # with as many records
        ledger.charge("again", epsilon=0.1)


def test_a_last_line_that_lost_only_its_end_still_counts(ledger, path):
    path.write_bytes(path.read_bytes()[:-1])
    ledger.charge("next", epsilon=1)
    assert Ledger.open(path).total == Budget(2, 1e-6)


DAMAGE = {
    "empty": lambda lines: [],
    "cut in the first line": lambda lines: [lines[0][:50]],
    "no middle line": lambda lines: lines[:2] + lines[3:],
    "lines swapped": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "a line twice": lambda lines: [*lines, lines[-1]],
    "an amount edited": lambda lines: [line.replace(b'"1/10"', b'"1/20"') for line in lines],
    "the limit edited": lambda lines: [line.replace(b'"10"', b'"90"') for line in lines],
    "the same in other letters": lambda lines: [line.replace(b"u00e9", b"u00E9") for line in lines],
    "the last line end changed": lambda lines: [*lines[:-1], lines[-1][:-1] + b"*"],
    "junk": lambda lines: [random.Random(0).randbytes(1000) + b"\n"],
    "junk without a line": lambda lines: [b"\x93NUMPY somebody's only copy"],
    "no hash": lambda lines: [b"{}\n"],
    "no record": lambda lines: [b"[]\n"],
    "deep": lambda lines: [*lines, b"[" * 100_000 + b"\n"],
    "a hash that is none": lambda lines: [*lines, b'{"hash":null}\n'],
    "an empty line": lambda lines: [*lines, b"\n"],
    "the last line changed and without its end": lambda lines: [
        *lines[:-1],
        lines[-1][:-1].replace(b"2/5", b"2/9"),
    ],
    "an end that is no part of a record": lambda lines: [*lines, b"{}"],
    "an end with a letter more": lambda lines: [*lines[:-1], lines[-1][:-1] + b" "],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_refused_and_the_file_left_as_it_is(ledger, path, damage):
    damaged = b"".join(DAMAGE[damage](path.read_bytes().splitlines(keepends=True)))
    path.write_bytes(damaged)
    uses = [partial(Ledger.open, path, create=create) for create in ("now", "late", "never")]
    uses += [lambda: Ledger.open(path, limit=LIMIT), lambda: ledger.total]
    for use in [*uses, lambda: ledger.charge("more", epsilon=0.1)]:
        with pytest.raises(LedgerError, match="ledger"):
            use()
        assert path.read_bytes() == damaged


def test_a_changed_byte_is_found_wherever_it_is(ledger, path):
    whole, changes = path.read_bytes(), random.Random(1)
    for place in range(0, len(whole) - 1, 3):
        changed = bytes([whole[place] ^ changes.randrange(1, 256)])
        path.write_bytes(whole[:place] + changed + whole[place + 1 :])
        with pytest.raises(LedgerError, match="damaged"):
            Ledger.open(path)


@posix_only  # Windows removes no file that is open
def test_a_file_that_is_gone_or_replaced_is_an_error_and_not_a_fresh_budget(ledger, path, monkeypatch):
    sent, lock = pickle.dumps(ledger), portalocker.lock
    with monkeypatch.context() as patch:  # it goes while the charge waits for the lock
        patch.setattr(portalocker, "lock", lambda *a: (lock(*a), path.unlink(missing_ok=True)))
        with pytest.raises(LedgerError, match="ledger"):
            ledger.charge("into nothing", epsilon=0.1)
    uses = [lambda: ledger.total, lambda: ledger.charge("more", epsilon=0.1), lambda: pickle.loads(sent)]
    for use in [*uses, lambda: ledger.describe(0, "sha256:0123")]:
        with pytest.raises(LedgerError, match="ledger"):
            use()
        assert not path.exists()
    Ledger.open(path, limit=Budget(0.1))  # another in its place, with less to spend
    with pytest.raises((LedgerError, BudgetError)):
        ledger.charge("more", epsilon=1)


def test_a_disk_without_locks_is_refused(ledger, path, monkeypatch):
    def fail(handle, kind):
        raise portalocker.LockException("no locks available")

    monkeypatch.setattr(portalocker, "lock", fail)
    with pytest.raises(LedgerError, match="cannot be locked: no locks available"):
        ledger.charge("labels", epsilon=0.1)


@posix_only
def test_a_place_that_cannot_be_written_is_named_in_a_ledger_error(tmp_path):
    with pytest.raises(LedgerError, match="no such folder"):
        Ledger.open(tmp_path / "nowhere" / "ledger", limit=LIMIT)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as later:
        Ledger.open(f"{folder}/ledger", limit=LIMIT)
        os.chmod(folder, 0o755)  # noqa: S103
        if os.geteuid() == 0:  # who may write everywhere
            os.seteuid(65534)
            later.callback(os.seteuid, 0)
        for name in ("ledger", "new"):
            with pytest.raises(LedgerError, match=f"{folder}/{name}: Permission denied"):
                Ledger.open(f"{folder}/{name}", limit=LIMIT)


@posix_only
@pytest.mark.parametrize("create", ["now", "late", "never"])
def test_a_fifo_or_a_folder_in_a_ledgers_place_is_refused_at_once_even_if_it_comes_while_it_is_opened(
    ledger, path, monkeypatch, create
):
    place, opened = path.with_name("place"), os.open
    for make in (os.mkfifo, os.mkdir):
        make(place)
        with pytest.raises(LedgerError, match="cannot open"):
            Ledger.open(place, create=create).charge("labels", epsilon=0.1)
        place.rename(path.with_name(f"old {make.__name__}"))
    path.rename(place)
    with monkeypatch.context() as patch:  # it is put there between the look and the opening
        patch.setattr(os, "open", lambda path, *how: (os.unlink(path), os.mkfifo(path), opened(path, *how))[2])
        with pytest.raises(LedgerError, match="not a regular file"):
            Ledger.open(place, create=create)


@posix_only
def test_a_full_disk_leaves_nothing_half_written_and_the_next_charge_works(ledger, path):
    import resource

    before, new = path.read_bytes(), path.with_name("new")
    uses = {len(before) + 40: lambda: ledger.charge("more", epsilon=1), 40: lambda: Ledger.open(new)}
    with contextlib.ExitStack() as later:
        room = resource.getrlimit(resource.RLIMIT_FSIZE)
        later.callback(resource.setrlimit, resource.RLIMIT_FSIZE, room)
        for size, use in uses.items():  # a write beyond the limit is done in part, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, room[1]))
            with pytest.raises(LedgerError, match=r"cannot (be written|create)"):
                use()
    assert path.read_bytes() == before
    ledger.charge("more", epsilon=1)
    assert (Ledger.open(path).total, Ledger.open(new).total) == (Budget(2, 1e-6), Budget(0))
