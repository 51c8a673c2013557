"""The ledger in a file: records that are chained, one transaction a charge, and refused where they are changed."""

import contextlib
import copy
import dataclasses
import json
import os
import pickle
import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from unittest.mock import Mock

import pytest

import labeldp as ldp
from accounts import ledger_cases
from accounts.ledger_cases import ENTRY, HEADER, WHEN, chained, charge
from helpers import posix_only
from labeldp import Budget, BudgetError, Ledger
from labeldp.accounts import Charge, ledger_file
from labeldp.accounts.ledger_chain import Extract
from labeldp.accounts.ledger_file import restore_ledger
from labeldp.errors import LedgerError, ParameterError

LIMIT = Budget(10)
CHARGE = Charge("café", Budget(Fraction(1, 3)), WHEN, None, 2, "labels")


@pytest.fixture
def ledger(path):
    made = Ledger.open(path, limit=LIMIT)
    made.charge("labels, café", epsilon=0.1)
    made.charge_all([charge("column 0", 0.2), charge("column 1", 0.3)])
    made.charge("last", epsilon=0.4)
    return made


# ---- what is written and read ---------------------------------------------------------------------------


def test_a_ledger_is_written_as_its_account_says_and_read_again(path):
    ledger = Ledger.open(path, limit=Budget(3))
    ledger.charge_all([CHARGE])
    ledger.charge_all([CHARGE, CHARGE])
    ledger.charge_all([])  # leaves no line
    header = {**HEADER, "id": json.loads(ledger_cases.rows_of(path)[0][0])["id"]}
    assert ledger_cases.rows_of(path) == chained(header, {"charges": [ENTRY]}, {"charges": [ENTRY, ENTRY]})
    again = Ledger.open(path, limit=Budget(3))
    assert again.charges == ledger.charges == (CHARGE, CHARGE, CHARGE)
    assert (again.limit, again.total) == (Budget(3), Budget(1))
    free = Ledger.open(path.with_name("free"))
    free.charge_all([Charge("one", Budget(2), WHEN, purpose="labels")])
    one = {**ENTRY, "description": "one", "budget": "2", "rows_per_person": 1}
    rows = ledger_cases.rows_of(path.with_name("free"))
    assert rows == chained({**HEADER, "limit": None, "id": json.loads(rows[0][0])["id"]}, {"charges": [one]})
    assert ledger_cases.write_ledger(path.with_name("by hand"), HEADER, {"charges": [ENTRY]}).exists()
    assert Ledger.open(path.with_name("by hand")).charges == (CHARGE,)


def test_a_reopened_ledger_keeps_its_limit_and_refuses_another(path):
    Ledger.open(path, limit=Budget(0.3)).charge("labels", epsilon=0.1)
    for again in (Ledger.open(path), Ledger.open(str(path), limit=Budget(Fraction(3, 10)))):
        assert (again.limit, again.total, again.remaining()) == (Budget(0.3), Budget(0.1), Budget(0.2))
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
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(LedgerError, match=r"there is no file .*save_model"):
        pickle.loads(pickled)


# ---- how it is opened -----------------------------------------------------------------------------------


def late(path, limit=None):
    return Ledger.prepare(path, limit=limit)


def test_a_late_ledger_is_created_with_the_first_charge_that_is_accepted(path):
    ledger = late(path, Budget(1))
    assert (ledger.charges, ledger.total, ledger.remaining()) == ((), Budget(0), Budget(1))
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
    with pytest.raises((LedgerError, ParameterError)):
        Ledger.open(path, **options)
    assert os.listdir(path.parent) == []


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
        with pytest.raises(ParameterError):
            book.charge_all([dataclasses.replace(CHARGE, **odd)])
        given = {"description": "labels", "epsilon": 0.1, **odd}
        with pytest.raises((ParameterError, TypeError)):  # TypeError: no such parameter
            book.charge(given.pop("description"), **given)
    assert path.read_bytes() == before
    assert Ledger.open(path).charges == ledger.charges


# ---- changed, replaced ------------------------------------------------------------------------------------


def test_an_open_ledger_notices_when_records_are_cut_off_or_it_is_replaced(ledger, path):
    before = path.read_bytes()
    ledger.charge("next", epsilon=0.1)
    path.write_bytes(before)  # an old copy, without the last charge
    with pytest.raises(LedgerError, match="removed"):
        ledger.charge("again", epsilon=0.1)
    path.unlink()
    other = Ledger.open(path, limit=LIMIT)
    for _ in range(len(ledger_cases.rows_of(path)) + 9):
        other.charge("labels", epsilon=0.1)
    with pytest.raises(LedgerError, match="another was put in its place"):
        ledger.charge("again", epsilon=0.1)


def changed(rows, place, old, new):
    text, digest = rows[place]
    assert old in text
    return [*rows[:place], (text.replace(old, new), digest), *rows[place + 1 :]]


DAMAGE = {
    "empty": lambda rows: [],
    "no middle record": lambda rows: rows[:2] + rows[3:],
    "records swapped": lambda rows: [rows[0], rows[2], rows[1], *rows[3:]],
    "a record twice": lambda rows: [*rows, rows[-1]],
    "changed": lambda rows: changed(rows, 3, "2/5", "1/5"),
    "a limit that was changed": lambda rows: changed(rows, 0, "10", "90"),
    "no record": lambda rows: chained("[]"),
    "deep": lambda rows: chained(json.dumps(HEADER, sort_keys=True, separators=(",", ":")), "[" * 100_000),
    "a hash that is none": lambda rows: [*rows, (rows[-1][0], "0")],
    "a number that is not finite": lambda rows: chained(HEADER, '{"charges":NaN}'),
    "a number that no float holds": lambda rows: chained(HEADER, '{"charges":1e999}'),
    "blanks": lambda rows: chained(HEADER, json.dumps({"charges": [ENTRY]})),
    "no header": lambda rows: chained({"charges": [ENTRY]}),
    "an unpublished version": lambda rows: chained({**HEADER, "schema": "labeldp.ledger/3"}),
    "a schema of something else": lambda rows: chained({**HEADER, "schema": "labeldp.ledgers/1"}),
    "a version that is none": lambda rows: chained({**HEADER, "schema": "labeldp.ledger/1" + "0" * 5000}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_records_that_do_not_fit_are_refused_and_left_as_they_are(ledger, path, damage):
    ledger_cases.write_rows(path, DAMAGE[damage](ledger_cases.rows_of(path)))
    refuse_everywhere(path, ledger.to_extract)


FOREIGN = {
    "nothing": b"",
    "junk": random.Random(0).randbytes(1000) + b"\n",
    "a ledger of JSON lines": b'{"id":"0","limit":null,"schema":"labeldp.ledger/1"}\n{"charges":[]}\n',
    "somebody's only copy": b"\x93NUMPY somebody's only copy",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_another_file_is_refused_and_left_as_it_is(ledger, path, name):
    path.write_bytes(FOREIGN[name])
    refuse_everywhere(path, lambda: ledger.total, lambda: ledger.charge("more", epsilon=0.1), ledger.to_extract)


@pytest.mark.parametrize("change", ["CREATE TABLE other (a)", "DROP TABLE records", "PRAGMA user_version=9"])
def test_the_database_of_another_program_and_one_that_lost_records_are_refused(ledger, path, change):
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(change)
    refuse_everywhere(path, lambda: ledger.total, lambda: ledger.charge("more", epsilon=0.1), ledger.to_extract)


def refuse_everywhere(path, *uses):
    """Use a ledger in every way; each is refused, and the file stays as it is."""
    damaged = path.read_bytes()
    opened = [partial(Ledger.open, path), partial(Ledger.prepare, path), partial(Ledger.open, path, create=False)]
    opened += [lambda: Ledger.open(path, limit=LIMIT), lambda: restore_ledger(path.with_name("new"), path)]
    for use in [*opened, *uses]:
        with pytest.raises(LedgerError, match="ledger"):
            use()
        assert path.read_bytes() == damaged
    assert os.listdir(path.parent) == ["ledger"]


def test_a_changed_byte_is_found_or_changes_nothing(ledger, path):
    """SQLite's pages have room that nobody reads; all else is chained."""
    whole, changes, found = path.read_bytes(), random.Random(1), 0
    charges = ledger.charges
    for place in range(0, len(whole), 5):
        other = bytes([whole[place] ^ changes.randrange(1, 256)])
        path.write_bytes(whole[:place] + other + whole[place + 1 :])
        try:
            again = Ledger.open(path, create=False)
            assert (again.charges, again.limit) == (charges, LIMIT)
        except LedgerError:
            found += 1
    assert found > 200


@posix_only  # Windows removes no file that is open
def test_a_file_that_is_gone_or_replaced_is_an_error_and_not_a_fresh_budget(ledger, path):
    sent = pickle.dumps(ledger)
    with locked(path) as other, ThreadPoolExecutor(1) as pool:  # it goes while the charge waits for the lock
        waiting = pool.submit(ledger.charge, "into nothing", epsilon=0.1)
        with contextlib.suppress(TimeoutError):
            waiting.exception(timeout=0.2)
        path.unlink()
        other.execute("ROLLBACK")
        assert isinstance(waiting.exception(), LedgerError)
    for use in (lambda: ledger.total, lambda: ledger.charge("more", epsilon=0.1), lambda: pickle.loads(sent)):
        with pytest.raises(LedgerError, match="ledger"):
            use()
        assert not path.exists()
    Ledger.open(path, limit=Budget(0.1))  # another in its place, with less to spend
    with pytest.raises((LedgerError, BudgetError)):
        ledger.charge("more", epsilon=1)


def test_no_new_ledger_is_made_beside_the_journal_of_one_that_was_removed(ledger, path):
    path.unlink()
    path.with_name("ledger-journal").write_bytes(b"pages")
    with pytest.raises(LedgerError, match="journal"):
        Ledger.open(path, limit=LIMIT)


# ---- copies -----------------------------------------------------------------------------------------------


def test_a_copy_is_restored_where_a_ledger_is_damaged_or_gone_and_not_where_a_charge_would_be_forgotten(
    ledger, path
):
    copy = path.with_name("copy")
    ledger.backup(copy)
    with pytest.raises(ParameterError, match="exists"):
        ledger.backup(copy)
    made = ledger.charges
    ledger.charge("later", epsilon=1)
    with pytest.raises(LedgerError, match="lacks 1 of its records"):
        restore_ledger(path, copy)
    assert ledger.charges[-1].description == "later"
    path.write_bytes(b"damaged")
    aside = restore_ledger(path, copy)
    assert aside.read_bytes() == b"damaged"
    assert Ledger.open(path, limit=LIMIT).charges == made
    path.unlink()
    assert restore_ledger(path, copy) is None
    assert Ledger.open(path).charges == made


def test_a_restored_copy_is_not_harmed_by_the_journal_of_the_damaged_ledger(ledger, path):
    ledger.backup(path.with_name("copy"))
    path.write_bytes(b"damaged")
    path.with_name("ledger-journal").write_bytes(b"pages of the damaged ledger")
    restore_ledger(path, path.with_name("copy"))
    assert not path.with_name("ledger-journal").exists()
    assert Ledger.open(path).charges == ledger.charges


def test_a_ledger_that_another_program_locks_is_not_replaced(ledger, path, monkeypatch):
    """It may have charges that the copy lacks."""
    monkeypatch.setattr(ledger_file, "WAIT_SECONDS", 0.1)
    ledger.backup(path.with_name("copy"))
    ledger.charge("later", epsilon=1)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="locked"):
            restore_ledger(path, path.with_name("copy"))
    assert ledger.charges[-1].description == "later"


def test_a_ledger_of_a_later_version_is_not_replaced(ledger, path):
    """Its charges would no longer count."""
    ledger.backup(path.with_name("copy"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE records SET record = replace(record, 'ledger/1', 'ledger/9') WHERE number = 0")
    content = path.read_bytes()
    with pytest.raises(LedgerError, match="newer version"):
        restore_ledger(path, path.with_name("copy"))
    assert path.read_bytes() == content


def test_another_ledger_or_a_damaged_copy_is_not_restored(ledger, path):
    other, damaged = path.with_name("other"), path.with_name("junk")
    Ledger.open(other, limit=LIMIT)
    damaged.write_bytes(b"junk")
    for wrong in (other, damaged):
        with pytest.raises(LedgerError):
            restore_ledger(path, wrong)
    assert ledger.total == Budget(1)


# ---- extracts ---------------------------------------------------------------------------------------------


def test_an_extract_has_what_the_ledger_has_and_a_database_is_not_read_for_one(ledger, path):
    extract = Extract(ledger.to_extract())
    assert (extract.charges, extract.total, extract.remaining()) == (
        ledger.charges,
        ledger.total,
        ledger.remaining(),
    )
    memory = Ledger(limit=LIMIT)
    memory.charge_all(ledger.charges)
    assert Extract(memory.to_extract()).charges == ledger.charges
    with pytest.raises(LedgerError, match="only its owner opens"):
        Extract.load(path)


LIES = {
    "a smaller total": lambda content: content.update(total="1/2"),
    "no total": lambda content: content.pop("total"),
    "a record less": lambda content: content["records"].pop(2),
    "the last record less": lambda content: content["records"].pop(),
    "a smaller charge": lambda content: content["records"].__setitem__(
        3, {**content["records"][3], "record": content["records"][3]["record"].replace("2/5", "1/5")}
    ),
    "no records": lambda content: content.update(records=[]),
    "another schema": lambda content: content.update(schema="labeldp.ledger/1"),
    "a field more": lambda content: content.update(note="all is well"),
    "records that are none": lambda content: content.update(records=[7]),
}


@pytest.mark.parametrize("name", LIES)
def test_an_extract_that_contradicts_itself_is_refused(ledger, name):
    content = json.loads(ledger.to_extract())
    Extract(json.dumps(content))
    LIES[name](content)
    with pytest.raises(LedgerError):
        Extract(json.dumps(content))


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"schema":NaN}', "{}\n{}"])
def test_text_that_is_no_extract_is_refused(text):
    with pytest.raises(LedgerError):
        Extract(text)


# ---- disks ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(path):
    """Hold a ledger's lock, as another program does."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield other


def test_a_ledger_that_stays_locked_is_refused_and_nothing_is_charged(ledger, path, monkeypatch):
    monkeypatch.setattr(ledger_file, "WAIT_SECONDS", 0.05)
    with locked(path):
        for use in (lambda: ledger.charge("labels", epsilon=0.1), lambda: Ledger.open(path)):
            with pytest.raises(LedgerError, match=r"was locked .* nothing was charged"):
                use()
    assert ledger.total == Budget(1)


def test_a_disk_without_locks_is_refused(ledger, path, monkeypatch):
    failure = sqlite3.OperationalError("disk I/O error")
    failure.sqlite_errorcode = sqlite3.SQLITE_IOERR_LOCK
    monkeypatch.setattr(ledger_file, "_require_tables", Mock(side_effect=failure))
    with pytest.raises(LedgerError, match="Nothing was charged"):
        ledger.charge("labels", epsilon=0.1)


@posix_only
def test_a_folder_without_permission_to_write_is_refused_and_its_ledger_is_read(ledger, path):
    if os.geteuid() == 0:
        pytest.skip("the superuser writes everywhere")
    path.parent.chmod(0o500)
    try:
        assert Ledger.open(path).total == Budget(1)
        for use in (partial(ledger.charge, "labels", epsilon=0.1), partial(Ledger.open, path.with_name("new"))):
            with pytest.raises(LedgerError, match=r"cannot be written|cannot create"):
                use()
    finally:
        path.parent.chmod(0o700)
    assert ledger.total == Budget(1)


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

    before, new = ledger.charges, path.with_name("new")
    with contextlib.ExitStack() as later:
        allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
        later.callback(resource.setrlimit, resource.RLIMIT_FSIZE, allowed)
        for size in (40, 600, 5000):  # a write beyond the limit is done in part, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, allowed[1]))
            for use in (partial(ledger.charge, "more", epsilon=1), partial(Ledger.open, new)):
                with pytest.raises(LedgerError, match=r"cannot (be written|create)"):
                    use()
    assert os.listdir(path.parent) == ["ledger"]
    assert Ledger.open(path).charges == before
    ledger.charge("more", epsilon=1)
    assert (Ledger.open(path).total, Ledger.open(new).total) == (Budget(2), Budget(0))
