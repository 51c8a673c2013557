"""A ledger in a file: an SQLite database of records that are only ever appended, and flushed before a release.

Every charge is one transaction: SQLite locks the file between processes, and undoes all that a crash or
a full disk left unfinished. Nothing else is repaired: a file that does not fit is refused.

A connection lives as long as one transaction, so that none is shared between threads or with a forked process. The
database is opened by nothing but SQLite: on POSIX, closing any other handle of it would drop the locks of the
whole process.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sqlite3
import threading
from ast import literal_eval
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from labeldp._atomic import StrPath, as_path, atomic_file, read_regular, regular_status
from labeldp._values import Data
from labeldp.accounts.budget import Charge
from labeldp.accounts.ledger_chain import Chain, Header, price_of_row, record_of
from labeldp.accounts.ledger_ids import ID_TABLES, WITHDRAWN, IdTables
from labeldp.accounts.scope import IdColumn, Scope
from labeldp.errors import DataError, LedgerError, ParameterError, Setting, UncheckableError
from labeldp.mechanisms.typed_data import plain

WAIT_SECONDS = 60.0
"""A charge waits so long for other programs that hold the ledger's lock."""

TABLES = [
    "CREATE TABLE records (number INTEGER PRIMARY KEY, record TEXT NOT NULL, hash TEXT NOT NULL)",
    *ID_TABLES,
]
"""All that the database of a ledger has; one with anything else is refused."""

KEY_BYTES = 32
"""Length of the key of the hashes of ids."""

_COLUMN = re.compile(r" of (['\"].*)$", re.DOTALL)
"""The name of the private column at the end of a description."""


class LedgerFile:
    """The charges of a ledger that is kept in a file; see `Ledger.open`."""

    def __init__(self, path: str, **rules: Any) -> None:
        self._rules = {name: rule for name, rule in rules.items() if rule is not None}
        self._new = Chain("a new ledger")
        self._new.write(plain(Header(**{"limit": None} | self._rules)))  # a file can hold it
        self.path = os.path.abspath(as_path(path))
        self.exists = False  # once found or created, a file that is gone or another is refused
        self._lock = threading.RLock()
        self._chain = Chain(self._name)

    @property
    def _name(self) -> str:
        return f"the ledger {self.path}"

    @property
    def header(self) -> Header:
        """The rules of the file, or of the one that is to be created."""
        return self._chain.rules if self.exists else self._new.rules

    def prepare(self, *, create: bool) -> None:
        """Read the file; if told to, create it."""
        if create and not os.path.lexists(self.path):
            self._create()
        with self._transaction():
            pass

    def chain(self) -> Chain:
        """Return the content of the file now."""
        if self._is_to_be_created():
            return self._new
        with self._transaction():
            return self._chain

    def records(self) -> list[tuple[str, str]]:
        """Return the text and the hash of each record."""
        if self._is_to_be_created():
            return []
        with self._transaction() as connection:
            return list(connection.execute("SELECT record, hash FROM records ORDER BY number"))

    def spend(self, charges: Sequence[Charge], reserve: Sequence[Charge], scope: Scope) -> None:
        """Spend several charges together, or none of them; they are on the disk when this returns."""
        if self._is_to_be_created():
            self._new.refuse_overspend(charges, reserve)
            self._create()
        with self._appending() as (connection, entries):
            self._chain.refuse_overspend(charges, reserve)
            people = scope.people if self.header.unit == "person" else None
            if scope.ids is not None or people is not None:
                entries["ids"] = self._id_rules(id=scope.ids, person=people)
                ids = IdTables(connection, self._key())
                ids.assign(scope)
            if people is not None:
                prices = price_of_row(charges), price_of_row(reserve)
                entries["people"] = ids.charge(people, *prices, self.header.limit)
            entries["charges"] = charges

    def withdraw(self, people: IdColumn) -> None:
        """Let the labels of people be used in no further release."""
        if self._is_to_be_created():
            self._create()
        with self._appending() as (connection, entries):
            entries["ids"] = self._id_rules(person=people)
            entries["withdrawn"] = IdTables(connection, self._key()).withdraw(people)

    @contextmanager
    def ids(self, people: IdColumn) -> Iterator[IdTables]:
        """Yield the tables of ids, to be read for some people; those of a new ledger are empty."""
        if self._is_to_be_created():
            yield IdTables.empty()
            return
        with self._transaction() as connection:
            _require_accounts(connection, self._chain)
            if self._chain.ids:
                self._id_rules(person=people)
            yield IdTables(connection, self._key() if self._chain.ids else b"")

    def backup(self, path: StrPath, *, force: bool = False) -> None:
        """Write a copy of the whole ledger, which no charge comes between.

        Parameters
        ----------
        path : path-like
        force : bool
            Whether it may replace a file.
        """
        with atomic_file(path, replace=force) as draft, self._transaction() as connection:
            _require_sound(connection, self._chain)
            with closing(sqlite3.connect(draft)) as copy:
                copy.execute("PRAGMA journal_mode=OFF")  # no second file: a draft that fails is removed
                connection.backup(copy)

    def lacks(self, copy: LedgerFile) -> int:
        """Return the number of records that another copy of this ledger has beyond this one.

        Raises
        ------
        LedgerError
            If they are not two copies of one ledger.
        """
        records, copied = self.records(), copy.records()
        shared = min(len(records), len(copied))
        if records[:shared] != copied[:shared]:
            raise LedgerError(f"{self.path} and {copy.path} are not copies of one ledger")
        return len(copied) - shared

    def _key(self) -> bytes:
        """Return the key of the hashes of ids, from a file beside the database; the first id makes it."""
        path = f"{self.path}.key"
        if not os.path.lexists(path):
            if self._chain.ids:
                raise LedgerError(
                    f"the key of the ids of {self._name} is missing: put {path} back, without which nobody's "
                    "earlier charges are found"
                )
            try:
                with atomic_file(path, replace=False) as draft:
                    draft.write_bytes(secrets.token_bytes(KEY_BYTES))
            except OSError as error:
                raise LedgerError(f"cannot write {path}: {error.strerror}. Nothing was charged") from None
        key = read_regular(path, KEY_BYTES)
        if len(key) != KEY_BYTES:
            raise LedgerError(f"{path} is not the key of the ids of a ledger: it has {len(key)} bytes")
        return key

    def _id_rules(self, **columns: IdColumn | None) -> dict[str, str]:
        """Return the types of ids and the hash of their key; refuse others than those that were used first."""
        types: dict[str, str] = {name: column.kind for name, column in columns.items() if column is not None}
        return self._chain.ids_with({**types, "key": hashlib.sha256(self._key()).hexdigest()})

    @contextmanager
    def _appending(self) -> Iterator[tuple[sqlite3.Connection, Data]]:
        """Yield a connection in a transaction, and the entries of a record to append, if it can be read again."""
        with self._lock:
            with self._transaction("IMMEDIATE") as connection:
                _require_accounts(connection, self._chain)
                entries: Data = {}
                yield connection, entries
                chain = self._chain.copy()
                if entries.get("charges") or entries.get("withdrawn"):
                    _append(connection, record_of(entries), chain)
            self._chain = chain

    def _is_to_be_created(self) -> bool:
        return not self.exists and not os.path.lexists(self.path)

    def _create(self) -> None:
        """Make a ledger appear whole, unless another process was faster; a kill may leave a part beside it."""
        if not os.path.isdir(os.path.dirname(self.path)):
            raise LedgerError(f"cannot create {self._name}: there is no such folder")
        self._refuse_journal()
        header = plain(replace(self._new.rules, id=secrets.token_hex(16)))
        try:
            with atomic_file(self.path, replace=False) as draft, _translated(self._name):
                _write_new(draft, header)
        except ParameterError:  # another process created it, and the transaction reads it
            return
        except OSError as error:
            raise LedgerError(f"cannot create {self._name}: {error.strerror}") from None

    def _refuse_journal(self) -> None:
        """Refuse a new ledger beside the journal of a removed one: SQLite would write its pages into the new."""
        journal = f"{self.path}-journal"
        if os.path.lexists(journal) and not os.path.lexists(self.path):
            raise LedgerError(f"cannot create {self._name}: {journal} is of one that was removed; remove it, too")

    @contextmanager
    def _transaction(self, kind: str = "DEFERRED") -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction, all records read; what raises in the block is undone."""
        with self._lock, _translated(self._name):
            before = _status(self.path)
            with closing(_connect(self.path)) as connection:  # which undoes all that was not committed
                connection.execute(f"BEGIN {kind}")
                self._read(connection)
                yield connection
                connection.execute("COMMIT")
            if not os.path.samestat(before, _status(self.path)):
                raise LedgerError(f"{self._name} was removed, or another was put in its place")

    def _read(self, connection: sqlite3.Connection) -> None:
        """Read the records that are new, and the limit of a file that is found for the first time."""
        _require_tables(connection, self._name)
        first = max(0, self._chain.count - 1)
        rows = connection.execute(
            "SELECT number, record, hash FROM records WHERE number >= ? ORDER BY number", (first,)
        ).fetchall()
        if self._chain.count and (not rows or rows.pop(0)[2] != self._chain.last):
            raise LedgerError(
                f"records were removed from {self._name}, or another was put in its place: it is not used"
            )
        for number, text, digest in rows:
            if number != self._chain.count:
                raise LedgerError(f"{self._name} lacks record {self._chain.count + 1}: it is not used")
            self._chain.add(text, digest)
        if self._chain.count != connection.execute("PRAGMA user_version").fetchone()[0]:
            raise LedgerError(f"{self._name} has another number of records than it says: it is not used")
        if not self.exists:
            self._take_rules()

    def _take_rules(self) -> None:
        """Take the rules of a file that is found for the first time."""
        header = self._chain.rules
        for name, rule in self._rules.items():
            on_file = getattr(header, name)
            if rule != on_file:
                self._chain = Chain(self._name)
                has = f"no {name}" if on_file is None else f"the {name} {on_file}"
                raise LedgerError(f"{self._name} has {has}, not {rule}: leave out ", Setting(name))
        self.exists = True


def restore_ledger(path: StrPath, copy: StrPath) -> Path | None:
    """Put the copy of a ledger in its place, unless a readable ledger is there with charges that the copy lacks.

    Returns
    -------
    Path or None
        Where the file is now that was in its place.

    Raises
    ------
    LedgerError
        If the copy is not a ledger, or a charge would be forgotten.
    """
    source = LedgerFile(os.fspath(copy))
    source.prepare(create=False)
    target, aside = Path(path), None
    if os.path.lexists(target):
        _refuse_newer(target, source)
        aside = target.with_name(f"{target.name}.replaced-{secrets.token_hex(4)}")
        os.rename(target, aside)
    for ending in ("-journal", "-wal", "-shm"):  # SQLite would write these pages into the copy
        if os.path.lexists(f"{target}{ending}"):
            os.rename(f"{target}{ending}", f"{aside or target}{ending}.replaced")
    source.backup(target)
    return aside


def _refuse_newer(path: Path, copy: LedgerFile) -> None:
    """Refuse to replace a ledger that can be read and is not the beginning of a copy."""
    current = LedgerFile(os.fspath(path))
    try:
        current.prepare(create=False)
    except LedgerError as error:
        if isinstance(error.__context__, (sqlite3.OperationalError, UncheckableError)):
            raise  # locked, say, or of a later version: its records may be sound
        return
    if not current.lacks(copy):
        newer = copy.lacks(current)
        raise LedgerError(
            f"the ledger {path} can be read, and the copy lacks {newer} of its records: it was not replaced"
        )


def has_charges(path: StrPath, label: str, *, is_named: bool = False) -> bool:
    """Return whether a file is a ledger with charges of a private column, without waiting for its lock.

    Charges that name no column may be of any; they count unless ``is_named``.
    """
    texts = _descriptions(path)
    return label in charged_columns(texts) or (not is_named and any(" of '" not in text for text in texts))


def private_columns(path: StrPath) -> set[str]:
    """Return the private columns that charges of a ledger name; of another file none."""
    return charged_columns(_descriptions(path))


def _descriptions(path: StrPath) -> list[str]:
    """Return the descriptions of the charges of a ledger, without waiting for its lock; of another file none."""
    try:
        regular_status(path)
        with closing(_connect(os.path.abspath(path), mode="ro", seconds=0)) as connection:
            _require_tables(connection, str(path))
            records = connection.execute("SELECT record FROM records WHERE number > 0")
            return [str(charge["description"]) for (text,) in records for charge in json.loads(text)["charges"]]
    except (sqlite3.Error, ValueError, TypeError, KeyError, OSError, LedgerError, DataError):
        return []


def charged_columns(descriptions: Iterable[str]) -> set[str]:
    """Return the columns that descriptions end with, as Python writes their names."""
    names = set[str]()
    for text in descriptions:
        if match := _COLUMN.search(text):
            with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                names.add(str(literal_eval(match[1])))
    return names


# ---- SQLite -------------------------------------------------------------------------------------------------


def _status(path: str) -> os.stat_result:
    """Return the status of a ledger's file; refuse folders, pipes and devices."""
    try:
        return regular_status(path)
    except DataError as error:
        raise LedgerError(f"cannot open the ledger: {error}") from None
    except OSError as error:
        raise LedgerError(f"cannot open the ledger {path}: {error.strerror}") from None


def _connect(path: str, *, mode: str = "rw", seconds: float | None = None) -> sqlite3.Connection:
    """Return a connection that waits for locks, and flushes the disk at each end of a transaction."""
    wait = WAIT_SECONDS if seconds is None else seconds
    address = f"{Path(path).as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=wait)
    for pragma in ("synchronous=EXTRA", "fullfsync=ON", "trusted_schema=OFF", "cell_size_check=ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _write_new(path: Path, header: Data) -> None:
    """Write a database with nothing but the first record."""
    with closing(_connect(str(path))) as connection:
        connection.execute("PRAGMA journal_mode=MEMORY")  # no second file: a kill leaves a draft that nobody reads
        connection.execute("BEGIN")
        for table in TABLES:
            connection.execute(table)
        _append(connection, header, Chain(""))
        connection.execute("COMMIT")


def _append(connection: sqlite3.Connection, record: Data, chain: Chain) -> None:
    """Insert the record that follows those of a chain, and add it to the chain."""
    row = (chain.count, *chain.write(record))
    connection.execute("INSERT INTO records VALUES (?, ?, ?)", row)
    connection.execute(f"PRAGMA user_version={chain.count:d}")  # records cut off by damage are missed


def _require_tables(connection: sqlite3.Connection, name: str) -> None:
    """Refuse the database of another program."""
    tables = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid")]
    if tables != TABLES:
        empty = " It is empty." if not tables else ""
        raise LedgerError(f"{name} is the database of another program, not of a ledger.{empty}")


def _require_accounts(connection: sqlite3.Connection, chain: Chain) -> None:
    """Refuse accounts of people that are not those of the records: a lost one would have its budget again."""
    totals = dict(connection.execute("SELECT value, count(*) FROM people GROUP BY value"))
    withdrawn = 0
    if chain.withdrawn:  # ids of all rows are many: they are only read where one of them must be there
        withdrawn = connection.execute("SELECT count(*) FROM ids WHERE value = ?", (WITHDRAWN,)).fetchone()[0]
    if withdrawn < chain.withdrawn or totals != {str(total): count for total, count in chain.people.items()}:
        raise sqlite3.DatabaseError("people have other accounts than its records say")


def _require_sound(connection: sqlite3.Connection, chain: Chain) -> None:
    """Refuse a database whose pages contradict each other, or its records."""
    _require_accounts(connection, chain)
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise sqlite3.DatabaseError("its pages contradict each other")


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Turn errors of SQLite into one sentence each."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's messages are in the encoding of a damaged file
        raise LedgerError(_explain(error, name)) from None


def _explain(error: Exception, name: str) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"{name} was locked by another program for {WAIT_SECONDS:g} seconds: nothing was charged"
    if code == sqlite3.SQLITE_NOTADB:
        return (
            f"{name} is damaged, or is not a ledger: it is not used, and not repaired. A ledger of JSON lines was "
            "written by a version that was never published: begin a new one"
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return f"{name} cannot be written, or its folder cannot: {error}. Nothing was charged"
    return (
        f"{name} is damaged ({error}): it is not used, and not repaired. Restore a copy, or treat its whole limit "
        "as spent"
    )
