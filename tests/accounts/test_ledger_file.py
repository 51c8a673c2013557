"""The ledger in a file: written byte by byte, whole, locked and flushed, and refused where it is changed."""

import contextlib
import copy
import dataclasses
import json
import os
import pickle
import random
import stat
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import portalocker
import pytest

import labeldp as ldp
from accounts.ledger_cases import ENTRY, HEADER, WHEN, chained, charge
from helpers import posix_only
from labeldp import Budget, BudgetError, Ledger

LedgerError = ldp.errors.LedgerError
LIMIT = Budget(10)
CHARGE = ldp.accounts.Charge("café", Budget(Fraction(1, 3)), WHEN, None, 2, "labels")


@pytest.fixture
def ledger(path):
    made = Ledger.open(path, limit=LIMIT)
    made.charge("labels, café", epsilon=0.1)
    made.charge_all([charge("column 0", 0.2), charge("column 1", 0.3)])
    made.charge("last", epsilon=0.4)
    return made


def put(path, *records):
    path.write_bytes(chained(*records))
    return path


# ---- what is written and read ---------------------------------------------------------------------------


def test_a_ledger_is_written_as_its_account_says_and_read_again(path):
    ledger = Ledger.open(path, limit=Budget(3))
    ledger.charge_all([CHARGE])
    ledger.charge_all([CHARGE, CHARGE])
    ledger.charge_all([])  # leaves no line
    header = {**HEADER, "id": json.loads(path.read_bytes().splitlines()[0])["id"]}
    assert path.read_bytes() == chained(header, {"charges": [ENTRY]}, {"charges": [ENTRY, ENTRY]})
    again = Ledger.open(path, limit=Budget(3))
    assert again.charges == ledger.charges == (CHARGE, CHARGE, CHARGE)
    assert (again.limit, again.total) == (Budget(3), Budget(1))
    free = Ledger.open(path.with_name("free"))
    free.charge_all([ldp.accounts.Charge("one", Budget(2), WHEN, purpose="labels")])
    one = {**ENTRY, "description": "one", "budget": "2", "rows_per_person": 1}
    header = {**HEADER, "limit": None, "id": json.loads(path.with_name("free").read_bytes().splitlines()[0])["id"]}
    assert path.with_name("free").read_bytes() == chained(header, {"charges": [one]})


def test_a_reopened_ledger_keeps_its_limit_and_refuses_another(path):
    Ledger.open(path, limit=Budget(0.3)).charge("labels", epsilon=0.1)
    for again in (Ledger.open(path), Ledger.open(str(path), limit=Budget(Fraction(3, 10)))):
        assert (again.limit, again.total, again.remaining) == (Budget(0.3), Budget(0.1), Budget(0.2))
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="limit"):
        Ledger.open(path, limit=Budget(Fraction(3, 10) + Fraction(1, 10**9)))
    with pytest.raises(BudgetError, match="Nothing was spent"):
        Ledger.open(path).charge("labels", epsilon=0.21)
    assert path.read_bytes() == before


def test_pickles_are_the_path_and_copies_the_ledger_itself(ledger, path):
    with contextlib.chdir(path.parent):
        pickled = pickle.dumps(Ledger.open("ledger"))
    sent = pickle.loads(pickled)
    sent.charge("elsewhere", epsilon=0.1)
    assert (sent.limit, sent.charges, sent.total) == (LIMIT, ledger.charges, Budget(1.1))
    assert copy.deepcopy(ledger) is copy.copy(ledger) is ledger


@posix_only
def test_a_charge_is_on_the_disk_and_the_lock_is_off_when_it_returns(ledger, path, monkeypatch):
    import fcntl

    flushed, fsync = [], os.fsync

    def flush(handle):
        fsync(handle)
        flushed.append((os.fstat(handle), os.dup(handle)))  # a forked process has the file open too

    monkeypatch.setattr(os, "fsync", flush)
    Ledger.open(path.with_name("new"), limit=LIMIT)
    assert [stat.S_ISDIR(status.st_mode) for status, _ in flushed] == [False, True]  # the file, and its folder
    ledger.charge("more", epsilon=0.1)
    assert flushed[-1][0].st_size == path.stat().st_size
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for _, handle in flushed:
        os.close(handle)


# ---- how it is opened -----------------------------------------------------------------------------------


def late(path, limit=None):
    return Ledger.prepare(path, limit=limit)


def test_a_late_ledger_is_created_with_the_first_charge_that_is_accepted(path):
    ledger = late(path, Budget(1))
    assert (ledger.charges, ledger.total, ledger.remaining) == ((), Budget(0), Budget(1))
    with pytest.raises(BudgetError, match="Nothing was spent"):
        ledger.charge("too much", epsilon=1.1)
    assert os.listdir(path.parent) == []
    ledger.charge("labels", epsilon=0.4)
    assert (Ledger.open(path).limit, Ledger.open(path).total) == (Budget(1), Budget(0.4))
    path.unlink()
    with pytest.raises(LedgerError, match="cannot open"):
        ledger.charge("more", epsilon=0.1)
    assert not path.exists(), "one that is gone is not created again"


def test_a_late_ledger_uses_a_file_that_another_created_meanwhile_unless_its_limit_is_another(path):
    ledgers = [late(path), late(path, Budget(1)), late(path, Budget(2)), pickle.loads(pickle.dumps(late(path)))]
    Ledger.open(path, limit=Budget(1)).charge("another's", epsilon=0.5)
    for ledger in (ledgers[0], ledgers[1], ledgers[3]):
        ledger.charge("labels", epsilon=0.1)
        assert ledger.limit == Budget(1)
    for _ in range(2):
        with pytest.raises(LedgerError, match="has the limit"):
            ledgers[2].charge("labels", epsilon=0.1)
    assert Ledger.open(path).total == Budget(0.8)


@pytest.mark.parametrize("options", [{"create": False}, {"limit": 3.0}], ids=str)
def test_what_is_not_opened_makes_no_file(path, options):
    with pytest.raises((LedgerError, ldp.errors.ParameterError)):
        Ledger.open(path, **options)
    assert os.listdir(path.parent) == []


def test_a_ledger_that_is_only_read_keeps_its_torn_end(path):
    torn = put(path, HEADER, {"charges": [ENTRY]}).read_bytes() + b'{"charges":['
    path.write_bytes(torn)
    assert Ledger.open(path, create=False).total == CHARGE.budget
    assert path.read_bytes() == torn
    Ledger.open(path)
    assert path.read_bytes() == chained(HEADER, {"charges": [ENTRY]})


def test_a_ledger_knows_its_own_charges_and_reserves_budget_for_those_that_follow(path):
    ledger, other = Ledger.open(path, limit=Budget(1)), Ledger.open(path)
    with ledger.reserve([charge("score", 0.5)]):
        with pytest.raises(BudgetError, match="Nothing was spent"):
            ledger.charge("model", epsilon=0.6)
        ledger.charge("model", epsilon=0.3)
    other.charge("between", epsilon=0.2)
    ledger.charge_all([charge("score", 0.5)])
    assert ledger.own_charges == (ledger.charges[0], ledger.charges[2])


ODD = [
    {"description": 7},
    {"description": None},
    {"purpose": "label"},
    {"purpose": ["labels"]},
    {"mechanism": 3},
    {"rows_per_person": True},
    {"rows_per_person": (1 << 53) + 1},
    {"rows_per_person": 0},
    {"when": 1.0},
    {"budget": 1.0},
    {"budget": Budget(Fraction(1, 10**400))},
    {"declaration": ldp.accounts.Declaration(intended_use="two\nlines")},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_charge_that_no_ledger_reads_again_is_refused_before_it_is_written(ledger, path, odd):
    before = path.read_bytes()
    for book in (ledger, Ledger()):
        with pytest.raises(ldp.errors.ParameterError):
            book.charge_all([dataclasses.replace(CHARGE, **odd)])
        given = {"description": "labels", "epsilon": 0.1, **odd}
        with pytest.raises((ldp.errors.ParameterError, TypeError)):  # TypeError: no such parameter
            book.charge(given.pop("description"), **given)
    assert path.read_bytes() == before
    assert Ledger.open(path).charges == ledger.charges


# ---- torn, changed, replaced ----------------------------------------------------------------------------


def test_a_torn_last_line_is_dropped_wherever_it_was_cut(ledger, path):
    whole = path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in range(start, len(whole) - 1):
        path.write_bytes(whole[:end])
        torn = Ledger.open(path)
        assert torn.total == Budget(0.6)
        torn.charge("next", epsilon=1)
        assert [one.description for one in Ledger.open(path).charges][2:] == ["column 1", "next"]


def test_a_last_line_that_lost_only_its_end_still_counts(ledger, path):
    path.write_bytes(path.read_bytes()[:-1])
    ledger.charge("next", epsilon=1)
    assert Ledger.open(path).total == Budget(2)


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


DAMAGE = {
    "empty": lambda lines: [],
    "cut in the first line": lambda lines: [lines[0][:50]],
    "no middle line": lambda lines: lines[:2] + lines[3:],
    "lines swapped": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "a line twice": lambda lines: [*lines, lines[-1]],
    "the last line end changed": lambda lines: [*lines[:-1], lines[-1][:-1] + b"*"],
    "junk": lambda lines: [random.Random(0).randbytes(1000) + b"\n"],
    "junk without a line": lambda lines: [b"\x93NUMPY somebody's only copy"],
    "no record": lambda lines: [b"[]\n"],
    "deep": lambda lines: [*lines, b"[" * 100_000 + b"\n"],
    "a hash that is none": lambda lines: [*lines, b'{"hash":null}\n'],
    "a number that is not finite": lambda lines: [*lines, b'{"charges":NaN,"hash":"0"}\n'],
    "a number that no float holds": lambda lines: [*lines, b'{"charges":1e999,"hash":"0"}\n'],
    "an empty line": lambda lines: [*lines, b"\n"],
    "changed and without its end": lambda lines: [*lines[:-1], lines[-1][:-1].replace(b"2/5", b"2/9")],
    "an end that is no part of a record": lambda lines: [*lines, b"{}"],
    "an end with a letter more": lambda lines: [*lines[:-1], lines[-1][:-1] + b" "],
    "no header": lambda lines: [chained({"charges": [ENTRY]})],
    "an unpublished version": lambda lines: [chained({**HEADER, "schema": "labeldp.ledger/3"})],
    "a schema of something else": lambda lines: [chained({**HEADER, "schema": "labeldp.ledgers/1"})],
    "a version that is none": lambda lines: [chained({**HEADER, "schema": "labeldp.ledger/1" + "0" * 5000})],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_refused_and_the_file_left_as_it_is(ledger, path, damage):
    damaged = b"".join(DAMAGE[damage](path.read_bytes().splitlines(keepends=True)))
    path.write_bytes(damaged)
    uses = [partial(Ledger.open, path), partial(Ledger.prepare, path), partial(Ledger.open, path, create=False)]
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


def test_a_ledger_or_a_line_that_is_too_long_is_refused_unread(path):
    put(path, HEADER)
    os.truncate(path, 9 << 20)  # zeros: one line of 9 MiB
    with pytest.raises(LedgerError, match="a line of more than"):
        Ledger.open(path)
    os.truncate(path, (1 << 28) + 1)
    with pytest.raises(LedgerError, match="longer than"):
        Ledger.open(path)


@posix_only  # Windows removes no file that is open
def test_a_file_that_is_gone_or_replaced_is_an_error_and_not_a_fresh_budget(ledger, path):
    import fcntl

    sent = pickle.dumps(ledger)
    with path.open() as other, ThreadPoolExecutor(1) as pool:  # it goes while the charge waits for the lock
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = pool.submit(ledger.charge, "into nothing", epsilon=0.1)
        with contextlib.suppress(TimeoutError):
            waiting.exception(timeout=0.2)
        path.unlink()
        fcntl.flock(other, fcntl.LOCK_UN)
        assert isinstance(waiting.exception(), LedgerError)
    for use in (lambda: ledger.total, lambda: ledger.charge("more", epsilon=0.1), lambda: pickle.loads(sent)):
        with pytest.raises(LedgerError, match="ledger"):
            use()
        assert not path.exists()
    Ledger.open(path, limit=Budget(0.1))  # another in its place, with less to spend
    with pytest.raises((LedgerError, BudgetError)):
        ledger.charge("more", epsilon=1)


# ---- disks ----------------------------------------------------------------------------------------------


def test_a_disk_without_locks_is_refused(ledger, path, monkeypatch):
    def fail(handle, kind):
        raise portalocker.LockException("no locks available")

    monkeypatch.setattr(portalocker, "lock", fail)
    with pytest.raises(LedgerError, match="cannot be locked: no locks available"):
        ledger.charge("labels", epsilon=0.1)


@posix_only
@pytest.mark.parametrize("open_ledger", [Ledger.open, Ledger.prepare, partial(Ledger.open, create=False)])
def test_a_fifo_or_a_folder_instead_of_a_ledger_is_refused_at_once(path, open_ledger):
    place = path.with_name("place")
    for make in (os.mkfifo, os.mkdir):
        make(place)
        with pytest.raises(LedgerError, match="cannot open"):
            open_ledger(place).charge("labels", epsilon=0.1)
        place.rename(path.with_name(f"old {make.__name__}"))


@posix_only
def test_a_full_disk_leaves_nothing_half_written_and_the_next_charge_works(ledger, path):
    import resource

    before, new = path.read_bytes(), path.with_name("new")
    uses = {len(before) + 40: lambda: ledger.charge("more", epsilon=1), 40: lambda: Ledger.open(new)}
    with contextlib.ExitStack() as later:
        allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
        later.callback(resource.setrlimit, resource.RLIMIT_FSIZE, allowed)
        for size, use in uses.items():  # a write beyond the limit is done in part, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, allowed[1]))
            with pytest.raises(LedgerError, match=r"cannot (be written|create)"):
                use()
    assert path.read_bytes() == before
    ledger.charge("more", epsilon=1)
    assert (Ledger.open(path).total, Ledger.open(new).total) == (Budget(2), Budget(0))
