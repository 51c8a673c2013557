"""Ids in the database of a ledger: the segment of each row, and the total of each person, under keyed hashes.

Only counts of people with each total are in the chained records: `Chain.people_with` computes all totals again
from them, so that an extract that understates a person is refused, and names nobody.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from labeldp._values import Mask
from labeldp.accounts.budget import Budget, exact_sum
from labeldp.accounts.ledger_chain import Move
from labeldp.accounts.scope import IdColumn, Scope
from labeldp.errors import BudgetError, ParameterError

ID_TABLES = [
    f"CREATE TABLE {name} (hash BLOB PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID" for name in ("ids", "people")
]
"""Values of ids are segments, or nothing for people who were withdrawn; values of people are their totals."""

HASH_BYTES = 16
"""Length of the hash of an id: of a billion ids, two share one by chance once in 10^20 times."""

WITHDRAWN = ""


class IdTables:
    """The tables of ids, in a transaction.

    Parameters
    ----------
    connection : sqlite3.Connection
    key : bytes
        Of the hashes.
    """

    def __init__(self, connection: sqlite3.Connection, key: bytes) -> None:
        self._connection, self._key = connection, key

    @classmethod
    def empty(cls) -> IdTables:
        """Return tables without ids."""
        connection = sqlite3.connect(":memory:")
        for table in ID_TABLES:
            connection.execute(table)
        return cls(connection, b"")

    def assign(self, scope: Scope) -> None:
        """Write the segment of each id; refuse rows that were released in another segment."""
        if scope.ids is None or scope.segments is None:
            return
        hashes = self._hashes(scope.ids, "id")
        names = scope.segments.names if scope.segment is None else scope.segment.distinct
        codes = np.zeros_like(scope.ids.codes) if scope.segment is None else scope.segment.codes
        pairs = set(zip(scope.ids.codes.tolist(), codes.tolist(), strict=True))
        self._insert((hashes[row], names[code]) for row, code in pairs)
        segments = self._values("ids", hashes, "")
        clashes = sum(segments[row] != names[code] for row, code in pairs)
        if clashes:
            raise ParameterError(
                f"{clashes:,} of {len(hashes):,} ids were released in another segment, and rows of different "
                "segments must be different rows. Nothing was charged",
                option="id",
            )

    def charge(self, people: IdColumn, price: Fraction, reserved: Fraction, limit: Budget | None) -> list[Move]:
        """Add the price of their rows to the totals of people, or refuse; return the moves of totals."""
        before = list(zip(self.totals(people), people.counts.tolist(), strict=True))
        accounts = sorted(Counter(before).items())
        moves = [(parse_total(total), rows, count) for (total, rows), count in accounts]
        over = sum(count for total, rows, count in moves if _passes(total, rows * (price + reserved), limit))
        over += int(self.withdrawn(people).sum())
        if over:
            raise BudgetError(
                f"Budget exceeded for {over:,} of {len(people.distinct):,} people: this would pass the limit of "
                "their own accounts, or they were withdrawn. Nothing was spent: leave their rows out",
                option="ledger",
            )
        after = {
            account: str(exact_sum([total, rows * price]))
            for (account, _), (total, rows, _) in zip(accounts, moves, strict=True)
        }
        values = zip(self._hashes(people, "person"), map(after.__getitem__, before), strict=True)
        self._connection.executemany("INSERT OR REPLACE INTO people VALUES (?, ?)", sorted(values))
        return moves

    def exhausted(self, people: IdColumn, price: Fraction, limit: Budget | None) -> Mask:
        """Return the people whose rows would pass a limit, or who were withdrawn."""
        pairs = list(zip(self.totals(people), people.counts.tolist(), strict=True))
        passes = {(total, rows): _passes(parse_total(total), rows * price, limit) for total, rows in set(pairs)}
        is_over: Mask = np.array([passes[pair] for pair in pairs], dtype=bool)
        return is_over | self.withdrawn(people)

    def totals(self, people: IdColumn) -> list[str]:
        """Return the total of each person, as text."""
        return self._values("people", self._hashes(people, "person"), "0")

    def withdrawn(self, people: IdColumn) -> Mask:
        """Return the people who were withdrawn."""
        is_any = self._connection.execute("SELECT 1 FROM ids WHERE value = '' LIMIT 1").fetchone()
        if is_any is None:
            return np.zeros(len(people.distinct), dtype=bool)
        values = self._values("ids", self._hashes(people, "withdrawn"), "no")
        return np.array([value == WITHDRAWN for value in values], dtype=bool)

    def withdraw(self, people: IdColumn) -> int:
        """Mark people as withdrawn; return the number of those who were not before."""
        new = ~self.withdrawn(people)
        hashes = self._hashes(people, "withdrawn")
        self._insert((digest, WITHDRAWN) for digest in hashes)
        return int(new.sum())

    def _values(self, table: str, hashes: Iterable[bytes], default: str) -> list[str]:
        find = self._connection.cursor()
        question = f"SELECT value FROM {table} WHERE hash = ?"  # noqa: S608 (one of two names)
        return [(find.execute(question, (digest,)).fetchone() or (default,))[0] for digest in hashes]

    def _insert(self, values: Iterable[tuple[bytes, str]]) -> None:
        """Insert values of hashes of ids; a value that is there stays."""
        neighbours = sorted(values)  # which lie on the same page
        self._connection.executemany("INSERT OR IGNORE INTO ids VALUES (?, ?)", neighbours)

    def _hashes(self, column: IdColumn, use: str) -> list[bytes]:
        """Return a keyed hash of each distinct id, another one for each use."""
        keyed = hashlib.blake2b(key=self._key, digest_size=HASH_BYTES, person=use.encode())
        hashes = []
        for value in column.distinct:
            digest = keyed.copy()
            digest.update(str(value).encode())
            hashes.append(digest.digest())
        return hashes


def parse_total(text: str) -> Fraction:
    """Return a total of a person; a text that is none is damage."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise sqlite3.DatabaseError("a total of a person is no amount") from None


def _passes(total: Fraction, amount: Fraction, limit: Budget | None) -> bool:
    return limit is not None and total + amount > limit.exact_epsilon
