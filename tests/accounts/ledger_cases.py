"""A ledger's records by hand, and the database that holds them."""

import contextlib
import hashlib
import json
import sqlite3

import labeldp as ldp

WHEN = "2026-01-01T00:00:00+00:00"
HEADER = {"schema": "labeldp.ledger/1", "limit": "3", "unit": "label", "id": "0" * 32}
ENTRY = {
    "description": "café",
    "budget": "1/3",
    "when": WHEN,
    "mechanism": None,
    "rows_per_person": 2,
    "purpose": "labels",
}
TABLES = (
    "CREATE TABLE records (number INTEGER PRIMARY KEY, record TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE ids (hash BLOB PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE people (hash BLOB PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)


def canonical(record):
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def chained(*records):
    """Return text and hash of records, each with the hash of the last hash and itself, as docs/formats.md says."""
    rows, last = [], ""
    for record in records:
        text = record if isinstance(record, str) else canonical(record)
        last = hashlib.sha256((last + text).encode("ascii")).hexdigest()
        rows.append((text, last))
    return rows


def write_ledger(path, *records):
    """Write the database of some records, as docs/formats.md says, in the place of whatever is there."""
    return write_rows(path, chained(*records))


def write_rows(path, rows):
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for table in TABLES:
            database.execute(table)
        database.executemany("INSERT INTO records VALUES (?, ?, ?)", [(k, *row) for k, row in enumerate(rows)])
        database.execute(f"PRAGMA user_version={len(rows)}")
    return path


def rows_of(path):
    """Return text and hash of all records in a database."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT record, hash FROM records ORDER BY number").fetchall()


def charge(description, epsilon):
    """Return a charge for something else than labels, at a fixed time."""
    return ldp.accounts.Charge(description, ldp.Budget(epsilon), WHEN)
