"""A ledger's file, byte by byte: what is written, what is read, and what is refused though its hashes fit.

What is refused because they do not is in `test_ledger_file`.
"""

import json
import os
import re
import secrets
import stat
from fractions import Fraction

import pytest

from accounts.ledger_cases import ENTRY, HEADER, NAMED, WHEN, chained
from helpers import linux_only, posix_only
from labeldp import Budget, BudgetError, Ledger
from labeldp.accounts import ledger_file
from labeldp.accounts.budget import Charge
from labeldp.errors import LedgerError, ParameterError

CHARGE = Charge("café", Budget(Fraction(1, 3), Fraction(1, 10000)), WHEN, None, 2, "labels", 1)


def put(path, *records):
    path.write_bytes(chained(*records))
    return path


def test_a_ledger_is_written_as_its_account_says(path, monkeypatch):
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * (2 * size))
    ledger = Ledger.open(path, limit=Budget(3, 0.001))
    ledger.charge_all([CHARGE])
    ledger.describe(0, "sha256:0123")
    with pytest.raises(LedgerError, match="no charge 1"):
        ledger.describe(1, "sha256:0123")
    ledger.charge_all([CHARGE, CHARGE])
    assert path.read_bytes() == chained(HEADER, {"charges": [ENTRY]}, NAMED, {"charges": [ENTRY, ENTRY]})
    free = Ledger.open(path.with_name("free"))
    free.charge_all([Charge("all", Budget(float("inf")), WHEN, purpose="labels", column=1)])
    all_of_it = {**ENTRY, "what": "all", "budget": [None, "0"], "rows_per_person": 1}
    assert path.with_name("free").read_bytes() == chained({**HEADER, "limit": None}, {"charges": [all_of_it]})


def test_a_ledger_written_by_hand_is_read(path):
    put(path, HEADER, {"charges": [ENTRY, ENTRY]}, NAMED, {"charges": [ENTRY]})
    ledger = Ledger.open(path, limit=Budget(3, 0.001))
    named = Charge(CHARGE.what, CHARGE.budget, WHEN, "sha256:0123", 2, "labels", 1)
    assert ledger.charges == (named, CHARGE, CHARGE)
    assert (ledger.limit, ledger.total) == (Budget(3, 0.001), Budget(1, 0.0003))
    most = {**ENTRY, "rows_per_person": (1 << 63) - 1, "budget": [None, "1"], "mechanism": "sha256:"}
    assert len(Ledger.open(put(path, {**HEADER, "limit": [None, "1"]}, {"charges": [most]})).charges) == 1


NO_LEDGERS = {
    "no header": [{"charges": [ENTRY]}],
    "another schema": [{**HEADER, "schema": "labeldp.ledger/1"}],
    "a schema of something else": [{**HEADER, "schema": "labeldp.ledgers/3"}],
    "a version that is too long to be one": [{**HEADER, "schema": "labeldp.ledger/1" + "0" * 5000}],
}


@pytest.mark.parametrize("case", NO_LEDGERS)
def test_what_is_chained_and_no_ledger_is_refused(path, case):
    before = put(path, *NO_LEDGERS[case]).read_bytes()
    with pytest.raises(LedgerError, match="not used, and not repaired"):
        Ledger.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("end", ["", '{"charges'])
def test_a_ledger_of_a_later_version_is_refused_by_name_and_left_alone(path, end):
    before = put(path, {**HEADER, "schema": "labeldp.ledger/3"}).read_bytes() + end.encode()
    path.write_bytes(before)
    with pytest.raises(
        LedgerError, match=f"the ledger {re.escape(str(path))} has version 3, .* version 2: update labeldp$"
    ):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_an_amount_that_no_float_holds_is_kept_exactly_and_shown_as_infinite(path):
    huge = Fraction(10**350)
    ledger = Ledger.open(path, limit=Budget(3 * huge))
    ledger.charge("labels", epsilon=huge)
    again = Ledger.open(path)
    assert (again.total, again.remaining) == (Budget(huge), Budget(2 * huge))
    assert again.total.epsilon == float("inf")
    with pytest.raises(BudgetError, match="ε = inf"):
        again.charge("more", epsilon=2 * huge + 1)


def test_a_ledger_may_be_as_long_as_is_said_and_no_longer(path, monkeypatch):
    put(path, HEADER, {"charges": [ENTRY]})
    monkeypatch.setattr(ledger_file, "MOST_BYTES", path.stat().st_size)
    assert Ledger.open(path).total == CHARGE.budget
    monkeypatch.setattr(ledger_file, "MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(LedgerError, match="longer"):
        Ledger.open(path)


# ---- a new file -------------------------------------------------------------------------------------


@posix_only
def test_a_new_ledger_is_its_owners_alone_with_an_id_of_its_own(tmp_path):
    umask = os.umask(0)
    try:
        made = [Ledger.open(tmp_path / name, limit=Budget(1)) for name in "ab"]
    finally:
        os.umask(umask)
    ids = {json.loads((tmp_path / name).read_bytes())["id"] for name in "ab"}
    assert len(ids) == len(made) == 2
    assert all(len(bytes.fromhex(one)) == 16 for one in ids)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"} == {0o600}
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]  # no draft is left


def test_of_two_who_make_the_same_ledger_the_slower_uses_the_other(path, monkeypatch):
    Ledger.open(path, limit=Budget(3)).charge("labels", epsilon=1)
    monkeypatch.setattr(os.path, "lexists", lambda path: False)  # it appeared a moment later
    assert Ledger.open(path, limit=Budget(3)).total == Budget(1)
    assert os.listdir(path.parent) == ["ledger"]


def test_a_limit_that_is_none_makes_no_file(path):
    with pytest.raises(ParameterError, match="Budget"):
        Ledger.open(path, limit=3.0)
    assert not path.exists()


def test_a_ledger_that_is_only_read_is_opened_for_reading_and_its_torn_end_left(path, monkeypatch):
    torn = put(path, HEADER, {"charges": [ENTRY]}).read_bytes() + b'{"charges":['
    path.write_bytes(torn)
    flags, original = [], os.open
    monkeypatch.setattr(os, "open", lambda path, how, *more: (flags.append(how), original(path, how, *more))[1])
    ledger = Ledger.open(path, create="never")
    assert ledger.total == CHARGE.budget
    assert not any(how & (os.O_RDWR | os.O_WRONLY | os.O_CREAT) for how in flags)
    assert path.read_bytes() == torn
    Ledger.open(path)
    assert path.read_bytes() == chained(HEADER, {"charges": [ENTRY]})


@linux_only
def test_no_file_is_left_open(path):
    def count():
        return len(os.listdir("/proc/self/fd"))

    before = count()
    ledger = Ledger.open(path, limit=Budget(3))
    ledger.charge("labels", epsilon=1)
    ledger.describe(0, "sha256:0123")
    assert ledger.total == Budget(1)
    with pytest.raises(BudgetError):
        ledger.charge("labels", epsilon=3)
    assert count() == before
