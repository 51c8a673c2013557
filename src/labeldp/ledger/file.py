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
import stat
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

import portalocker

from labeldp._atomic import flush_file, flush_folder
from labeldp._paths import as_path
from labeldp._schema import plain, read
from labeldp.errors import LedgerError, ParameterError
from labeldp.ledger.budget import Budget, Charge, refuse_overspend

VERSION = 2
SCHEMA = f"labeldp.ledger/{VERSION}"
MOST_BYTES = 1 << 28
"""A longer ledger is refused; a charge takes about 300 bytes."""
MOST_LINE = 1 << 23
"""A longer line is refused: as many bytes as a card may have, which lists the charges of a line, too."""

_BYTES = getattr(os, "O_BINARY", 0)
"""Windows would end lines in two bytes, and no hash would fit."""


class FileStore:
    """The charges of a ledger that is kept in a file; see `Ledger.open`."""

    def __init__(self, path: str, limit: Budget | None, create: Literal["now", "late", "never"]) -> None:
        if create not in ("now", "late", "never"):
            raise ParameterError(f'create must be "now", "late" or "never", got {create!r}')
        self.path = os.path.abspath(as_path(path))
        self.limit = limit
        self._lock = threading.RLock()
        self.exists = False  # once found or created, a file that is gone or another is refused
        self._seen = (0, "")  # how many records there were at the last look, and the hash of the last one
        if create == "now" and not os.path.lexists(self.path):
            _create(self.path, limit)
        if create != "late" or os.path.lexists(self.path):
            self._attach(os.O_RDONLY if create == "never" else os.O_RDWR)

    def charges(self) -> tuple[Charge, ...]:
        """Return all charges in the file now, oldest first."""
        if not self.exists and not os.path.lexists(self.path):
            return ()
        self._attach(os.O_RDONLY)
        with self._locked(os.O_RDONLY) as (_, records, _last):
            return tuple(_charges(records, self.path))

    def spend(self, charges: Sequence[Charge], reserve: Sequence[Charge] = ()) -> range:
        """Spend several charges together, or none of them; they are on the disk when this returns."""
        if not self.exists:
            if not os.path.lexists(self.path):
                refuse_overspend(self.limit, (), [*charges, *reserve])
                _create(self.path, self.limit)
            self._attach(os.O_RDWR)
        with self._locked(os.O_RDWR) as (handle, records, last):
            spent = _charges(records, self.path)
            refuse_overspend(self.limit, spent, [*charges, *reserve])
            self._write(handle, {"charges": plain(list(charges))}, last)
            return range(len(spent), len(spent) + len(charges))

    def describe(self, place: int, mechanism: str) -> None:
        """Note which mechanism a charge was for."""
        with self._locked(os.O_RDWR) as (handle, records, last):
            if not 0 <= place < len(_charges(records, self.path)):
                raise LedgerError(f"the ledger {self.path} has no charge {place}")
            self._write(handle, {"describes": place, "mechanism": mechanism}, last)

    def _attach(self, flags: int) -> None:
        """Find the file for the first time, and take its limit."""
        if self.exists:
            return
        with self._locked(flags) as (_, records, _last), _well_formed(self.path):
            on_file = _limit(records[0])
        if self.limit is not None and self.limit != on_file:
            raise LedgerError(
                f"the ledger {self.path} has the limit {on_file}, not {self.limit}: open it without limit, or "
                "start another file"
            )
        self.limit = on_file
        self.exists = True

    def _write(self, handle: int, record: dict[str, Any], last: str) -> None:
        _append(handle, record, last)
        self._seen = (self._seen[0] + 1, _hash(record, last))

    @contextmanager
    def _locked(self, flags: int) -> Iterator[tuple[int, list[dict[str, Any]], str]]:
        """Yield an open file, its records and the last hash, while no other process may write."""
        with self._lock:
            handle = _open(self.path, flags)
            try:
                with _exclusion(handle, self.path, exclusive=bool(flags & os.O_RDWR)):
                    if os.fstat(handle).st_nlink == 0:
                        raise LedgerError(f"the ledger {self.path} was removed")
                    records, hashes, tail = _read(handle, self.path)
                    count, old = self._seen
                    if len(hashes) < count or (count and hashes[count - 1] != old):
                        raise LedgerError(
                            f"records were removed from the ledger {self.path}, or another was put in its place: "
                            "it is not used"
                        )
                    if flags & os.O_RDWR:
                        _mend_tail(handle, tail)
                    self._seen = (len(hashes), hashes[-1])
                    yield handle, records, hashes[-1]
            finally:
                os.close(handle)


@contextmanager
def _exclusion(handle: int, path: str, *, exclusive: bool) -> Iterator[None]:
    """Wait until no other process writes, nor reads if this is exclusive, and keep them waiting meanwhile.

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
    try:
        yield
    finally:  # closing would not give it back where a forked child has the file open too
        portalocker.unlock(handle)


def _open(path: str, flags: int) -> int:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise LedgerError(f"the ledger {path} is not a regular file")
        return os.open(path, flags | _BYTES | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise LedgerError(f"cannot open the ledger {path}: {error.strerror}") from None


def _create(path: str, limit: Budget | None) -> None:
    """Make a ledger appear whole, unless another process was faster."""
    header = {"schema": SCHEMA, "limit": None if limit is None else limit.as_data(), "id": secrets.token_hex(16)}
    try:
        if not _link_nameless(path, header):
            _name_draft(path, header)
        flush_folder(os.path.dirname(path))
    except OSError as error:
        raise LedgerError(f"cannot create the ledger {path}: {error.strerror}") from None


def _link_nameless(path: str, header: dict[str, Any]) -> bool:
    """Write a file that has no name until it is whole: a kill leaves nothing. False where there are none such."""
    if sys.platform != "linux":
        return False
    try:
        handle = os.open(os.path.dirname(path), os.O_TMPFILE | os.O_RDWR, 0o600)
    except (AttributeError, OSError):
        return False
    try:
        _append(handle, header, "")
        os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, follow_symlinks=True)
    except FileExistsError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _name_draft(path: str, header: dict[str, Any]) -> None:
    """Write a draft, and give it the ledger's name unless there is one; a kill may leave the draft."""
    draft = f"{path}.{header['id']}.part"
    handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BYTES, 0o600)
    try:
        try:
            _append(handle, header, "")
        finally:
            os.close(handle)
        with suppress(FileExistsError):
            if sys.platform == "win32":
                os.rename(draft, path)  # which replaces nothing there, and needs no links
            else:
                os.link(draft, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)


def _read(handle: int, path: str) -> tuple[list[dict[str, Any]], list[str], bytes]:
    """Return the records, their hashes, and what follows the last whole line."""
    if os.fstat(handle).st_size > MOST_BYTES:
        raise LedgerError(f"the ledger {path} is longer than {MOST_BYTES} bytes: start another")
    records: list[dict[str, Any]] = []
    hashes: list[str] = []
    tail = b""
    for line in _lines(handle, path):
        if not records:
            _refuse_newer(line, path)
        if not line.endswith(b"\n"):
            tail = line
            break
        last = hashes[-1] if hashes else ""
        record = _checked(line[:-1], last)
        if record is None or (not records and record.get("schema") != SCHEMA):
            raise LedgerError(
                f"line {len(records) + 1} of {path} is damaged, was changed, or is not a ledger's: the file is "
                "not used, and not repaired. Treat its whole limit as spent, or start another ledger"
            )
        hashes.append(_hash(record, last))
        records.append(record)
    if not records:
        raise LedgerError(f"{path} is empty, or not a ledger")
    whole = _checked(tail, hashes[-1])
    if whole is not None:  # only its line's end was lost: it counts
        return [*records, whole], [*hashes, _hash(whole, hashes[-1])], tail
    if _parse(tail) is not None or _checked(tail[:-1], hashes[-1]) is not None:
        raise LedgerError(f"the end of the ledger {path} was changed: it is not used, and not repaired")
    return records, hashes, tail


def _lines(handle: int, path: str) -> Iterator[bytes]:
    """Yield the lines with their ends, one at a time: of a file that is no ledger only the first is read."""
    with os.fdopen(os.dup(handle), "rb") as stream:
        stream.seek(0)
        while line := stream.readline(MOST_LINE + 2):
            if len(line.removesuffix(b"\n")) > MOST_LINE:
                raise LedgerError(f"the ledger {path} has a line of more than {MOST_LINE:,} bytes: it is not used")
            yield line


def _refuse_newer(line: bytes, path: str) -> None:
    """Refuse a ledger of a later version by name: it is not damaged, and nobody should count it as spent."""
    header = _parse(line) or {}
    version = re.fullmatch(r"labeldp\.ledger/([0-9]{1,9})", str(header.get("schema")))
    if version and int(version[1]) > VERSION:
        raise LedgerError(
            f"the ledger {path} has version {version[1]}, which a newer labeldp wrote; this one reads version "
            f"{VERSION}: update labeldp"
        )


def _mend_tail(handle: int, tail: bytes) -> None:
    """End a whole last record with its line's end; drop one that was never finished."""
    if not tail:
        return
    end = os.lseek(handle, 0, os.SEEK_END)
    if _parse(tail) is None:
        os.ftruncate(handle, end - len(tail))
    else:
        os.write(handle, b"\n")


def _checked(line: bytes, last: str) -> dict[str, Any] | None:
    """Return the record of a line that is, to the byte, what would have been written."""
    record = _parse(line)
    if record is None or record.pop("hash", None) is None:
        return None
    return record if _line(record, last) == line + b"\n" else None


def _line(record: dict[str, Any], last: str) -> bytes:
    content = {**record, "hash": _hash(record, last)}
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _hash(record: dict[str, Any], last: str) -> str:
    text = last + json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _append(handle: int, record: dict[str, Any], last: str) -> None:
    """Write a whole line at the end and wait until it is on the disk."""
    data = _line(record, last)
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


@contextmanager
def _well_formed(path: str) -> Iterator[None]:
    """Refuse records that are chained as they should be, and are not those of a ledger."""
    try:
        yield
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise LedgerError(
            f"the ledger {path} has a record that is not valid: it is not used, and not repaired"
        ) from None


def _limit(header: dict[str, Any]) -> Budget | None:
    if not isinstance(header["id"], str):
        raise TypeError("id must be text")
    return None if header["limit"] is None else Budget.from_data(header["limit"])


def _charges(records: list[dict[str, Any]], path: str) -> list[Charge]:
    charges: list[Charge] = []
    with _well_formed(path):
        for record in records[1:]:
            if set(record) == {"charges"}:
                charges += read(list[Charge], record["charges"], "charges")
                continue
            place, mechanism = record["describes"], record["mechanism"]
            if type(place) is not int or not 0 <= place < len(charges) or not isinstance(mechanism, str):
                raise ValueError("describes must be the place of a charge, and mechanism text")
            charges[place] = dataclasses.replace(charges[place], mechanism=mechanism)
    return charges
