"""A ledger in a file: one JSON line a record, chained by hashes, locked, and flushed before release.

Records are only ever appended. Each carries the hash of the one before, so that a line that was changed,
swapped, or removed from the middle is found; lines cut off at the end, or an old copy put back, cannot be
found by any file alone. A record without its end was being written when the machine stopped; the release
it would have paid for never happened, so it is dropped. Anything else that does not fit is refused, never
repaired.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NotRequired, TypedDict

import portalocker

from labeldp._atomic import as_path, atomic_file, flush_file, regular_handle
from labeldp._values import Data
from labeldp.accounts.budget import Budget, Charge, Declaration, refuse_overspend
from labeldp.errors import CardError, DataError, LabelDPError, LedgerError, ParameterError, Setting
from labeldp.mechanisms.card_format import VERSION, require_version
from labeldp.mechanisms.typed_data import canonical, plain, read

SCHEMA = "labeldp.ledger/1"
MOST_BYTES = 1 << 28
"""A longer ledger is refused; a charge takes about 300 bytes."""
MOST_LINE = 1 << 23
"""A longer line is refused: as many bytes as a card may have, which lists the charges of a line, too."""


class _Header(TypedDict):
    """The first record."""

    schema: str
    id: str
    limit: Budget | None


class _Charged(TypedDict):
    """A record of charges that were spent together."""

    charges: list[Charge]
    declaration: NotRequired[Declaration]


class LedgerFile:
    """The charges of a ledger that is kept in a file; see `Ledger.open`."""

    def __init__(self, path: str, limit: Budget | None) -> None:
        if limit is not None:
            Budget.from_data(limit.as_data())  # the file can hold it
        self.limit = limit
        self.path = os.path.abspath(as_path(path))
        self.exists = False  # once found or created, a file that is gone or another is refused
        self._lock = threading.RLock()
        self._count, self._last = 0, ""  # the number of records at the last look, and the hash of the last
        self._charges: list[Charge] = []  # in these records

    def prepare(self, *, create: bool) -> None:
        """Read the file; if told to, end a torn record in it, or create it."""
        if create and not os.path.lexists(self.path):
            self._create()
        with self._locked_file(os.O_RDWR if create else os.O_RDONLY):
            pass

    def charges(self) -> tuple[Charge, ...]:
        """Return all charges in the file now, oldest first."""
        if not self.exists and not os.path.lexists(self.path):
            return ()
        with self._locked_file(os.O_RDONLY):
            return tuple(self._charges)

    def spend(self, charges: Sequence[Charge], reserve: Sequence[Charge] = ()) -> None:
        """Spend several charges together, or none of them; they are on the disk when this returns."""
        if not self.exists and not os.path.lexists(self.path):
            refuse_overspend(self.limit, (), [*charges, *reserve])
            self._create()
        with self._locked_file(os.O_RDWR) as handle:
            refuse_overspend(self.limit, self._charges, [*charges, *reserve])
            record: Data = {"charges": plain(list(charges))}
            declaration = plain(charges[0].declaration)
            if declaration:
                record["declaration"] = declaration
            self._last = _append(handle, record, self._last)
            self._count += 1
            self._charges += charges

    def _create(self) -> None:
        """Make a ledger appear whole, unless another process was faster; a kill may leave a part beside it."""
        header = {"schema": SCHEMA, "limit": plain(self.limit), "id": secrets.token_hex(16)}
        line, digest = _line(header, "")
        if not os.path.isdir(os.path.dirname(self.path)):
            raise LedgerError(f"cannot create the ledger {self.path}: there is no such folder")
        try:
            with atomic_file(self.path, replace=False) as unfinished:
                unfinished.write_bytes(line)
        except ParameterError:  # another process created it: `_locked_file` reads it
            return
        except OSError as error:
            raise LedgerError(f"cannot create the ledger {self.path}: {error.strerror}") from None
        self._count, self._last, self.exists = 1, digest, True

    @contextmanager
    def _locked_file(self, flags: int) -> Iterator[int]:
        """Yield the open file, its charges read, while no other process may write."""
        with self._lock:
            handle = _open_handle(self.path, flags)
            try:
                _lock(handle, self.path, exclusive=bool(flags & os.O_RDWR))
                records, hashes, tail = _read(handle, self.path)
                self._update(records, hashes)
                if flags & os.O_RDWR:
                    _mend_tail(handle, tail)
                yield handle
            finally:
                with suppress(portalocker.LockException):  # it was never locked
                    portalocker.unlock(handle)  # closing does not where a forked child has the file open too
                os.close(handle)

    def _update(self, records: list[Data], hashes: list[str]) -> None:
        """Take the limit of a file that is found for the first time, and the charges of records that are new."""
        if len(hashes) < self._count or (self._count and hashes[self._count - 1] != self._last):
            raise LedgerError(
                f"records were removed from the ledger {self.path}, or another was put in its place: it is not "
                "used"
            )
        if not self.exists:
            on_file = _parse_record(_Header, records[0], self.path)["limit"]
            if self.limit is not None and self.limit != on_file:
                limit = "no limit" if on_file is None else f"the limit {on_file}"
                raise LedgerError(
                    f"the ledger {self.path} has {limit}, not {self.limit}: leave out ",
                    Setting("limit"),
                )
            self.limit, self.exists = on_file, True
        for record in records[max(1, self._count) :]:
            self._add(record)
        self._count, self._last = len(hashes), hashes[-1]

    def _add(self, record: Data) -> None:
        """Add the charges of a record."""
        content = _parse_record(_Charged, record, self.path)
        declaration = content.get("declaration", Declaration())
        self._charges += [dataclasses.replace(charge, declaration=declaration) for charge in content["charges"]]


def _lock(handle: int, path: str, *, exclusive: bool) -> None:
    """Wait until no other process writes, nor reads if this is exclusive, and keep them waiting from now on.

    The lock is on the ledger's own file, so that nobody needs to know of another; on POSIX it is ``flock``, as in
    all versions before, and old and new ones wait for each other.
    """
    kind = portalocker.LockFlags.EXCLUSIVE if exclusive else portalocker.LockFlags.SHARED
    if sys.platform == "win32":  # whose locks are not shared, and give up waiting after ten seconds
        kind = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
    while True:
        try:
            portalocker.lock(handle, kind)
            break
        except portalocker.AlreadyLocked:
            time.sleep(0.005)
        except portalocker.LockException as error:
            raise LedgerError(f"the ledger {path} cannot be locked: {error.__cause__ or error}") from None
    if os.fstat(handle).st_nlink == 0:
        raise LedgerError(f"the ledger {path} was removed")


def _open_handle(path: str, access: int) -> int:
    try:
        return regular_handle(path, access)
    except DataError as error:
        raise LedgerError(f"cannot open the ledger: {error}") from None
    except OSError as error:
        raise LedgerError(f"cannot open the ledger {path}: {error.strerror}") from None


def _read(handle: int, path: str) -> tuple[list[Data], list[str], bytes]:
    """Return the records, their hashes, and the last line if it has no end."""
    if os.fstat(handle).st_size > MOST_BYTES:
        raise LedgerError(f"the ledger {path} is longer than {MOST_BYTES} bytes: start another")
    records: list[Data] = []
    hashes: list[str] = []
    line, last = b"", ""
    with os.fdopen(os.dup(handle), "rb") as stream:
        stream.seek(0)
        while next_line := stream.readline(MOST_LINE + 2):  # of a file that is no ledger only the first is read
            line = next_line
            if len(line) > MOST_LINE + 1:
                raise LedgerError(f"the ledger {path} has a line of more than {MOST_LINE:,} bytes: it is not used")
            record, digest = _read_line(line.removesuffix(b"\n"), last)
            if record is None and records and _is_torn(line, last):
                break
            if record is None or (not records and record.get("schema") != SCHEMA):
                _refuse_version(b"" if records else line, path)
                raise LedgerError(
                    f"line {len(records) + 1} of {path} is damaged, was changed, or is not a ledger's: the file "
                    "is not used, and not repaired. Treat its whole limit as spent"
                )
            last = digest
            hashes.append(digest)
            records.append(record)
    if not records:
        raise LedgerError(f"the ledger {path} is empty")
    return records, hashes, b"" if line.endswith(b"\n") else line


def _is_torn(line: bytes, last: str) -> bool:
    """Return whether a line was being written when the machine stopped: neither whole nor changed at its end."""
    return not line.endswith(b"\n") and _parse(line) is None and _read_line(line[:-1], last)[0] is None


def _refuse_version(line: bytes, path: str) -> None:
    """Refuse a ledger of another version by name: it is not damaged, and nobody should count it as spent."""
    header = _parse(line) or {}
    version = re.fullmatch(r"labeldp\.ledger/([0-9]{1,9})", str(header.get("schema")))
    try:
        require_version(f"the ledger {path}", int(version[1]) if version else VERSION)
    except CardError as error:
        raise LedgerError(str(error)) from None


def _mend_tail(handle: int, tail: bytes) -> None:
    """End a whole last record with its line's end; drop one that was never finished."""
    if not tail:
        return
    end = os.lseek(handle, 0, os.SEEK_END)
    if _parse(tail) is None:
        os.ftruncate(handle, end - len(tail))
    else:
        os.write(handle, b"\n")


def _read_line(line: bytes, last: str) -> tuple[Data | None, str]:
    """Return the record of a line that is, to the byte, what would have been written, and its hash."""
    record = _parse(line) or {}
    with suppress(ValueError):  # a number that is not finite, which is never written
        record.pop("hash", None)
        written, digest = _line(record, last)
        if written == line + b"\n":
            return record, digest
    return None, ""


def _line(record: Data, last: str) -> tuple[bytes, str]:
    """Return the line of a record, and its hash, which covers the hash before it."""
    digest = hashlib.sha256((last + canonical(record)).encode()).hexdigest()
    return canonical({**record, "hash": digest}).encode() + b"\n", digest


def _parse(line: bytes) -> Data | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _append(handle: int, record: Data, last: str) -> str:
    """Write a whole line at the end and wait until it is on the disk; return its hash."""
    data, digest = _line(record, last)
    if len(data) > MOST_LINE:
        raise LedgerError(f"these charges take more than {MOST_LINE:,} bytes in a ledger: nothing was charged")
    end = os.lseek(handle, 0, os.SEEK_END)
    try:
        while data:
            data = data[os.write(handle, data) :]
        flush_file(handle)
    except OSError as error:
        os.ftruncate(handle, end)
        raise LedgerError(f"the ledger cannot be written: {error.strerror}") from None
    return digest


def _parse_record(hint: Any, record: Data, path: str) -> Any:
    """Return a record's content; refuse one that is chained as it should be, and is not that of a ledger."""
    try:
        return read(hint, record, "the record")
    except LabelDPError as error:
        raise LedgerError(
            f"the ledger {path} has a record that is not valid, {error}: it is not used, and not repaired"
        ) from None
