"""Records of a ledger, chained by hashes: in its database, and in the extract that a reviewer gets.

Each record is canonical JSON. Its hash is of the hash before it and its text, so that a record that was changed,
swapped, or removed from the middle is found. Records that were cut off at the end, or an old copy that was put
back, cannot be found by any file alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

from labeldp._atomic import StrPath, read_regular
from labeldp._values import Data
from labeldp.accounts.budget import Budget, Charge, Declaration, total_of
from labeldp.errors import CardError, DataError, LabelDPError, LedgerError
from labeldp.mechanisms.card_format import VERSION, require_version
from labeldp.mechanisms.typed_data import Hash, canonical, plain, read

SCHEMA = "labeldp.ledger/1"
EXTRACT_SCHEMA = "labeldp.ledger-extract/1"
MAX_EXTRACT = 1 << 26
"""A longer extract is refused; a charge takes about 400 bytes."""
MAX_RECORD = 1 << 23
"""A longer record is refused: as many bytes as a card may have, which lists the charges of a record, too."""


class Header(TypedDict):
    """The first record."""

    schema: str
    id: str
    limit: Budget | None


class Charged(TypedDict):
    """A record of charges that were spent together."""

    charges: list[Charge]
    declaration: NotRequired[Declaration]


class _Entry(TypedDict):
    """A record in an extract: its text, and its hash."""

    record: str
    hash: Hash


class _Extract(TypedDict):
    """The extract of a ledger."""

    schema: str
    total: Budget
    records: list[_Entry]


class Chain:
    """The charges of a ledger, read record by record.

    Parameters
    ----------
    name : str
        The ledger's name in messages.

    Attributes
    ----------
    header : dict or None
    charges : list of Charge
    count : int
        The number of records.
    last : str
        The hash of the last record.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.header: Header | None = None
        self.charges: list[Charge] = []
        self.count = 0
        self.last = ""

    def add(self, text: object, digest: object) -> None:
        """Add a record, if it is the next one.

        Raises
        ------
        LedgerError
            If the record was changed, does not follow the one before, or is not valid.
        """
        record = _parse(text)
        if self.header is None:
            _refuse_version(record, self.name)
        if record is None or digest != next_hash(self.last, str(text)):
            raise LedgerError(
                f"record {self.count + 1} of {self.name} is damaged, was changed, or is not a ledger's: it is not "
                "used, and not repaired. Restore a copy, or treat its whole limit as spent"
            )
        try:
            self._accept(record)
        except LabelDPError as error:
            raise LedgerError(
                f"{self.name} has a record that is not valid, {error}: it is not used, and not repaired"
            ) from None
        self.count += 1
        self.last = str(digest)

    def _accept(self, record: Data) -> None:
        """Read the content of a record that is chained as it should be."""
        if self.header is None:
            header: Header = read(Header, record, "the record")
            if header["schema"] != SCHEMA:
                raise CardError(f"its schema is not {SCHEMA}")
            self.header = header
            return
        content: Charged = read(Charged, record, "the record")
        declaration = content.get("declaration", Declaration())
        self.charges += [dataclasses.replace(charge, declaration=declaration) for charge in content["charges"]]


def header_of(identity: str, limit: Budget | None) -> Data:
    """Return the first record of a ledger."""
    return {"schema": SCHEMA, "limit": plain(limit), "id": identity}


def record_of(charges: Sequence[Charge]) -> Data:
    """Return the record of charges that are spent together."""
    record: Data = {"charges": plain(list(charges))}
    declaration = plain(charges[0].declaration)
    return {**record, "declaration": declaration} if declaration else record


def chain_text(record: Data, last: str) -> tuple[str, str]:
    """Return the text of a record, and its hash, which covers the hash before it."""
    text = canonical(record)
    if len(text) > MAX_RECORD:
        raise LedgerError(f"these charges take more than {MAX_RECORD:,} bytes in a ledger: nothing was charged")
    return text, next_hash(last, text)


def next_hash(last: str, text: str) -> str:
    """Return the hash of a record's text and of the hash before it."""
    return hashlib.sha256((last + text).encode("utf-8", "replace")).hexdigest()


def _parse(text: object) -> Data | None:
    """Return the record of a text that is, to the letter, what would have been written."""
    if not isinstance(text, str) or len(text) > MAX_RECORD:
        return None
    try:
        record = json.loads(text)
        return record if isinstance(record, dict) and canonical(record) == text else None
    except (ValueError, RecursionError):  # ValueError: a number that is not finite, which is never written
        return None


def _refuse_version(header: Data | None, name: str) -> None:
    """Refuse a ledger of another version by name: it is not damaged, and nobody should count it as spent."""
    version = re.fullmatch(r"labeldp\.ledger/([0-9]{1,9})", str((header or {}).get("schema")))
    try:
        require_version(name, int(version[1]) if version else VERSION)
    except CardError as error:
        raise LedgerError(str(error)) from None


# ---- the extract --------------------------------------------------------------------------------------------


class Extract:
    """The extract of a ledger: what a reviewer reads in place of somebody else's database.

    Parameters
    ----------
    text : str
        Of ``labeldp ledger --json``. Totals are computed from the records, and must be those that are stated.
    name : str
        Its name in messages.

    Raises
    ------
    LedgerError
        If it is not valid.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts.ledger_chain import Extract
    >>> ledger = ldp.Ledger(limit=ldp.Budget(epsilon=1.0))
    >>> charge = ledger.charge("labels", epsilon=0.4)
    >>> Extract(ledger.to_extract()).remaining
    Budget(epsilon=0.6)
    """

    def __init__(self, text: str, name: str = "the extract") -> None:
        chain = Chain(name)
        content = _read_extract(text, name)
        for entry in content["records"]:
            chain.add(entry["record"], entry["hash"])
        if chain.header is None:
            raise LedgerError(f"{name} has no records: it is not the extract of a ledger")
        self.path = name
        self._text = text
        self.limit = chain.header["limit"]
        self.charges = tuple(chain.charges)
        if content["total"] != self.total:
            raise LedgerError(f"{name} states a total of {content['total']}, and its charges are {self.total}")

    @classmethod
    def load(cls, path: StrPath) -> Extract:
        """Read the extract in a file; a database is refused unopened."""
        try:
            data = read_regular(path, MAX_EXTRACT)
        except DataError as error:
            raise LedgerError(f"cannot read the extract of a ledger: {error}") from None
        if data.startswith(b"SQLite format 3\0"):
            raise LedgerError(
                f"{path} is the database of a ledger, which only its owner opens: give its extract, which "
                f"labeldp ledger {path} --json writes"
            )
        return cls(data.decode("utf-8", "replace"), str(path))

    def to_extract(self) -> str:
        """Return the text."""
        return self._text

    @property
    def total(self) -> Budget:
        """The sum of all charges."""
        return total_of(self.charges)

    @property
    def remaining(self) -> Budget | None:
        """The limit minus the total, or None without a limit."""
        return None if self.limit is None else self.limit.minus(self.total)


def write_extract(records: Sequence[tuple[str, str]], total: Budget) -> str:
    """Return the text of an extract.

    Parameters
    ----------
    records : sequence of (str, str)
        Text and hash of each.
    total : Budget
    """
    entries = [{"record": text, "hash": digest} for text, digest in records]
    return json.dumps({"schema": EXTRACT_SCHEMA, "total": plain(total), "records": entries}, indent=1)


def _read_extract(text: str, name: str) -> _Extract:
    """Return the content of an extract, by its schema."""
    refused = f"{name} is not the extract of a ledger, which labeldp ledger --json writes"
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise LedgerError(refused) from None
    if not isinstance(data, dict) or data.get("schema") != EXTRACT_SCHEMA:
        raise LedgerError(refused)
    try:
        content: _Extract = read(_Extract, data, "the extract")
    except LabelDPError as error:
        raise LedgerError(f"{name} is not valid: {error}") from None
    return content
