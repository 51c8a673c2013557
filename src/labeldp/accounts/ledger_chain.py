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
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Literal, NotRequired, TypedDict

from labeldp._atomic import StrPath, read_regular
from labeldp._values import Data
from labeldp.accounts.budget import (
    Budget,
    Charge,
    Declaration,
    exact_sum,
    refuse_overspend,
    total_of,
)
from labeldp.accounts.segments import Name, Segments
from labeldp.errors import CardError, DataError, LabelDPError, LedgerError
from labeldp.mechanisms.card_format import VERSION, require_version
from labeldp.mechanisms.typed_data import Hash, Limit, Positive, canonical, optional, plain, read

SCHEMA = "labeldp.ledger/1"
EXTRACT_SCHEMA = "labeldp.ledger-extract/1"
MAX_EXTRACT = 1 << 26
"""A longer extract is refused; a charge takes about 400 bytes."""
MAX_RECORD = 1 << 23
"""A longer record is refused: as many bytes as a card may have, which lists the charges of a record, too."""


Unit = Literal["label", "person"]


@dataclass(frozen=True, slots=True)
class Header:
    """The first record: the rules of a ledger, fixed when it is created.

    Attributes
    ----------
    limit : Budget or None
        The most that may be spent on a label, or on a person.
    unit : {"label", "person"}
        The unit of the limit.
    segments : str or None
        The name of the segmentation.
    id : str
        Random text.
    """

    limit: Budget | None
    unit: Unit = "label"
    segments: Name | None = optional()
    id: str = "0" * 32
    schema: str = SCHEMA


class IdRules(TypedDict):
    """The kinds of ids, fixed at their first use, and the SHA-256 of the key of their hashes."""

    key: Hash
    id: NotRequired[Literal["text", "integer"]]
    person: NotRequired[Literal["text", "integer"]]


Move = tuple[Fraction, Positive, Positive]
"""The total of some people before a charge, the rows of each of them, and the number of these people."""


class Charged(TypedDict):
    """A record of charges that were spent together, or of people who were withdrawn."""

    charges: list[Charge]
    declaration: NotRequired[Declaration]
    ids: NotRequired[IdRules]
    people: NotRequired[list[Move]]
    withdrawn: NotRequired[Positive]


class _Entry(TypedDict):
    """A record in an extract: its text, and its hash."""

    record: str
    hash: Hash


class _Extract(TypedDict):
    """The extract of a ledger."""

    schema: Annotated[str, Limit(lambda schema: schema == EXTRACT_SCHEMA, EXTRACT_SCHEMA)]
    total: Budget
    records: list[_Entry]


@dataclass
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
    partition : str or None
        The name of the segmentation, once a charge has segments.
    people : Counter
        The number of people with each total, of a ledger for people.
    ids : dict
        The kinds of ids, and the hash of their key.
    withdrawn : int
        The number of people who were withdrawn.
    """

    name: str
    header: Header | None = None
    charges: list[Charge] = field(default_factory=list)
    count: int = 0
    last: str = ""
    partition: str | None = None
    people: Counter[Fraction] = field(default_factory=Counter)
    ids: dict[str, str] = field(default_factory=dict)
    withdrawn: int = 0

    @classmethod
    def of(cls, name: str, records: Iterable[tuple[object, object]]) -> Chain:
        """Return the chain of records: the text and the hash of each."""
        chain = cls(name)
        for text, digest in records:
            chain.add(text, digest)
        return chain

    def write(self, record: Data) -> tuple[str, str]:
        """Add a record that is new, if it can be read again; return its text and its hash."""
        text = canonical(record)
        if len(text) > MAX_RECORD:
            raise LedgerError(
                f"these charges take more than {MAX_RECORD:,} bytes in a ledger: nothing was charged. Name fewer "
                "segments in one release"
            )
        digest = next_hash(self.last, text)
        self.add(text, digest)
        return text, digest

    def copy(self) -> Chain:
        """Return a copy, to which records can be added."""
        return dataclasses.replace(self, charges=[*self.charges], ids={**self.ids})

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
            if header.schema != SCHEMA:
                raise CardError(f"its schema is not {SCHEMA}")
            self.header, self.partition = header, header.segments
            return
        content: Charged = read(Charged, record, "the record")
        if not content["charges"] and "withdrawn" not in content:
            raise CardError("it has no charges")
        declaration = content.get("declaration", Declaration())
        charges = [dataclasses.replace(charge, declaration=declaration) for charge in content["charges"]]
        self.partition = self.partition_with(charges)
        self.ids |= self.ids_with(dict(content.get("ids", {})))
        self.people = self.people_with(charges, content.get("people", []))
        self.withdrawn += content.get("withdrawn", 0)
        self.charges += charges

    @property
    def rules(self) -> Header:
        """The first record."""
        if self.header is None:
            raise LedgerError(f"{self.name} has no records: it is not used")
        return self.header

    @property
    def total(self) -> Budget:
        """The total of a label; of a ledger for people, the largest total of a person."""
        if self.rules.unit == "person":
            return Budget(max(self.people, default=Fraction(0)))
        return total_of(self.charges)

    def remaining(self, segments: Segments | None = None) -> Budget | None:
        """Return the rest of the limit for all rows, or for those of some segments; None without a limit."""
        if self.rules.limit is None:
            return None
        total = self.total if self.rules.unit == "person" else total_of(self.charges, segments)
        return self.rules.limit.minus(total)

    def refuse_overspend(self, charges: Sequence[Charge], reserve: Sequence[Charge]) -> None:
        """Refuse charges of another segmentation, and those that would pass the limit of a label."""
        self.partition_with(charges)
        if self.rules.unit == "label":
            refuse_overspend(self.rules.limit, self.charges, [*charges, *reserve])

    def partition_with(self, charges: Sequence[Charge]) -> str | None:
        """Return the name of the segmentation once charges are added; refuse those of another one."""
        partition, is_begun = self.partition, any(charge.segments for charge in self.charges)
        for segments in filter(None, (charge.segments for charge in charges)):
            if segments.partition not in (None, partition) and (is_begun or partition is not None):
                has = "have no name" if partition is None else f"are those of {partition!r}"
                raise LedgerError(
                    f"the segments of this ledger {has}, and these are those of {segments.partition!r}: a row may "
                    "be in one of both. Without segments, the charge counts for all rows"
                )
            partition, is_begun = segments.partition or partition, True
        return partition

    def ids_with(self, ids: Data) -> Data:
        """Return the kinds and the key of ids; refuse others than those that were used first."""
        for name, kind in ids.items():
            if self.ids.get(name, kind) != kind:
                has = f"{name}s are of the type {self.ids[name]}, and these of the type {kind}"
                raise LedgerError(f"in {self.name}, {'the key of ids is another' if name == 'key' else has}")
        return ids

    def people_with(self, charges: Sequence[Charge], moves: Sequence[Move]) -> Counter[Fraction]:
        """Return the number of people with each total, once charges are added; nobody passes the limit."""
        if self.rules.unit == "label" or not charges:
            if moves:
                raise CardError("only charges of a ledger for people have people")
            return self.people
        price = price_of_row(charges)
        people, limit = self.people.copy(), self.rules.limit
        for total, rows, count in moves:
            if total:
                people[total] -= count
            after = Budget(exact_sum([total, rows * price]))
            if people[total] < 0 or rows > charges[0].rows_per_person or not (limit is None or after <= limit):
                raise CardError("its people do not have these totals, or pass the limit")
            people[after.exact_epsilon] += count
        if not moves:
            raise CardError("charges of a ledger for people need people")
        return +people


def price_of_row(charges: Sequence[Charge]) -> Fraction:
    """Return the cost of each row that charges are for."""
    return exact_sum(charge.label_budget.exact_epsilon for charge in charges)


def record_of(entries: Data) -> Data:
    """Return the record of charges that are spent together; entries that are empty are left out."""
    charges = list(entries.get("charges", ()))
    entries = {**entries, "declaration": charges[0].declaration if charges else None}
    record = {name: plain(entry) for name, entry in entries.items()}
    return {name: entry for name, entry in record.items() if entry} | {"charges": plain(charges)}


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


# ---- ledgers and their extracts ---------------------------------------------------------------------------------


class Book(ABC):
    """Charges and totals of a chain: of a ledger, or of its extract."""

    @property
    @abstractmethod
    def path(self) -> str | None:
        """The path of the file, or None for a ledger in memory."""

    @property
    @abstractmethod
    def chain(self) -> Chain:
        """All records."""

    @abstractmethod
    def to_extract(self) -> str:
        """Return the extract, JSON for a reviewer."""

    @property
    def rules(self) -> Header:
        """The limit, its unit and the name of the segmentation, as they were fixed when it was created."""
        return self.chain.rules

    @property
    def limit(self) -> Budget | None:
        """The most that may be spent, or None."""
        return self.rules.limit

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges, oldest first."""
        return tuple(self.chain.charges)

    @property
    def total(self) -> Budget:
        """The largest total of a label: the charges without a segment, and the largest sum of one segment.

        Of a ledger for people, the largest total of a person.
        """
        return self.chain.total

    def remaining(self, segment: str | None = None) -> Budget | None:
        """Return the limit minus the total, or None without a limit.

        Parameters
        ----------
        segment : str, optional
            The segment to release: charges of other segments do not count for its rows.

        Examples
        --------
        >>> import labeldp as ldp
        >>> ledger = ldp.Ledger(limit=ldp.Budget(epsilon=1.0))
        >>> charge = ledger.charge("labels of Monday", epsilon=0.7, segment="Monday")
        >>> ledger.remaining(), ledger.remaining(segment="Monday"), ledger.remaining(segment="Tuesday")
        (Budget(epsilon=0.3), Budget(epsilon=0.3), Budget(epsilon=1.0))
        """
        return self.chain.remaining(None if segment is None else Segments.of([segment]))


class Extract(Book):
    """The extract of a ledger, which a reviewer reads in place of somebody else's database.

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
    >>> Extract(ledger.to_extract()).remaining()
    Budget(epsilon=0.6)
    """

    def __init__(self, text: str, name: str = "the extract") -> None:
        content = _read_extract(text, name)
        self._name, self._text = name, text
        self._chain = Chain.of(name, ((entry["record"], entry["hash"]) for entry in content["records"]))
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

    @property
    def path(self) -> str:
        """The name of the extract."""
        return self._name

    @property
    def chain(self) -> Chain:
        """All records."""
        return self._chain

    def to_extract(self) -> str:
        """Return the text."""
        return self._text


def write_extract(records: Sequence[tuple[str, str]]) -> str:
    """Return the text of an extract, from the text and the hash of each record."""
    total = Chain.of("the ledger", records).total
    entries = [{"record": text, "hash": digest} for text, digest in records]
    return json.dumps({"schema": EXTRACT_SCHEMA, "total": plain(total), "records": entries}, indent=1)


def _read_extract(text: str, name: str) -> _Extract:
    """Return the content of an extract, by its schema."""
    try:
        content: _Extract = read(_Extract, json.loads(text), name)
    except (LabelDPError, ValueError, RecursionError) as error:
        why = f": {error}" if isinstance(error, LabelDPError) else ""
        raise LedgerError(
            f"{name} is not the extract of a ledger, which labeldp ledger --json writes{why}"
        ) from None
    return content
