"""A ledger in a file: one JSON line a record, chained by hashes, locked, and flushed before release.

Records are only ever appended. Each carries the hash of the one before, so that a changed, removed or
swapped line is found. A line without its end was being written when the machine stopped; the release it
would have paid for never happened, so it is dropped. Anything else that does not fit is refused, never
repaired.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from labeldp.errors import LedgerError
from labeldp.ledger import Budget, Charge, Ledger, refuse_overspend

__all__ = ["FileLedger"]

SCHEMA = "labeldp.ledger/1"


class FileLedger(Ledger):
    """See `Ledger.open`."""

    def __init__(self, path: str, limit: Budget | None = None) -> None:
        super().__init__(limit)
        self._path = os.path.abspath(path)
        with self._locked(os.O_RDWR | os.O_CREAT) as (handle, records, last):
            if records:
                on_file = _budget(records[0]["limit"])
                if limit is not None and limit != on_file:
                    raise LedgerError(
                        f"the ledger {self._path} has the limit {on_file}, not {limit}: open it without "
                        "limit, or start another file"
                    )
                self._limit = on_file
            else:
                header = {"schema": SCHEMA, "limit": _plain(limit)}
                _append(handle, [header], last)
                _flush_folder(self._path)

    @property
    def path(self) -> str:
        """Where the ledger is kept."""
        return self._path

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges in the file now, oldest first."""
        with self._locked(os.O_RDONLY) as (_, records, _last):
            return tuple(_charges(records))

    def charge_all(self, charges: Sequence[Charge]) -> range:
        """Spend several charges together, or none of them; they are on the disk when this returns."""
        with self._locked(os.O_RDWR) as (handle, records, last):
            spent = _charges(records)
            refuse_overspend(self._limit, spent, charges)
            entry = {"charges": [_record(charge) for charge in charges]}
            _append(handle, [entry], last)
            return range(len(spent), len(spent) + len(charges))

    def describe(self, place: int, mechanism: str) -> None:
        """Note which mechanism a charge was for."""
        with self._locked(os.O_RDWR) as (handle, _, last):
            _append(handle, [{"describes": place, "mechanism": mechanism}], last)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileLedger, (self._path,)

    @contextmanager
    def _locked(self, flags: int) -> Iterator[tuple[int, list[dict[str, Any]], str]]:
        """Yield an open file, its records and the last hash, while no other process may write."""
        with self._lock:
            write = flags & os.O_RDWR
            try:
                handle = os.open(self._path, flags | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise LedgerError(f"cannot open the ledger {self._path}: {error.strerror}") from None
            try:
                fcntl.flock(handle, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
                records, last, length = _read(handle, self._path)
                if not records and not flags & os.O_CREAT:
                    raise LedgerError(f"the ledger {self._path} is empty: it was removed or cut off")
                if write and length != os.fstat(handle).st_size:
                    os.ftruncate(handle, length)
                yield handle, records, last
            finally:
                os.close(handle)


def _read(handle: int, path: str) -> tuple[list[dict[str, Any]], str, int]:
    """Return the records, the last hash, and the length of the file up to its last whole line."""
    with os.fdopen(os.dup(handle), "rb") as stream:
        stream.seek(0)
        data = stream.read()
    length = data.rfind(b"\n") + 1
    records: list[dict[str, Any]] = []
    last = ""
    for number, line in enumerate(data[:length].splitlines(), start=1):
        record = _parse(line)
        if record is None or record.pop("hash", None) != _hash(record, last):
            raise LedgerError(
                f"line {number} of the ledger {path} is damaged or was changed: it is not used, and not "
                "repaired. Restore it from a backup, or treat its whole limit as spent"
            )
        if number == 1 and record.get("schema") != SCHEMA:
            raise LedgerError(f"{path} is not a ledger of this version of labeldp")
        last = _hash(record, last)
        records.append(record)
    return records, last, length


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _hash(record: dict[str, Any], last: str) -> str:
    text = last + json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _append(handle: int, records: list[dict[str, Any]], last: str) -> None:
    """Write whole lines at the end and wait until they are on the disk."""
    for record in records:
        last = _hash(record, last)
        line = json.dumps({**record, "hash": last}, sort_keys=True, separators=(",", ":")) + "\n"
        data = line.encode()
        end = os.lseek(handle, 0, os.SEEK_END)
        try:
            while data:
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        except OSError as error:
            os.ftruncate(handle, end)
            raise LedgerError(f"the ledger cannot be written: {error.strerror}") from None


def _flush_folder(path: str) -> None:
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _plain(budget: Budget | None) -> list[str | None] | None:
    if budget is None:
        return None
    epsilon = None if budget.exact_epsilon is None else str(budget.exact_epsilon)
    return [epsilon, str(budget.exact_delta)]


def _budget(data: list[str | None] | None) -> Budget | None:
    if data is None:
        return None
    epsilon, delta = data
    return Budget(float("inf") if epsilon is None else Fraction(epsilon), Fraction(delta or "0"))


def _record(charge: Charge) -> dict[str, Any]:
    return {
        "what": charge.what,
        "budget": _plain(charge.budget),
        "when": charge.when,
        "mechanism": charge.mechanism,
        "rows_per_person": charge.rows_per_person,
    }


def _charges(records: list[dict[str, Any]]) -> list[Charge]:
    charges: list[Charge] = []
    for record in records[1:]:
        for entry in record.get("charges", ()):
            budget = _budget(entry["budget"]) or Budget(0)
            charges.append(Charge(**{**entry, "budget": budget}))
        if "describes" in record:
            place = record["describes"]
            old = charges[place]
            charges[place] = Charge(
                old.what, old.budget, old.when, record["mechanism"], old.rows_per_person
            )
    return charges
