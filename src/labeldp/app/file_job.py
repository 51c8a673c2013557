"""A release from a table in a file, as it is asked for: the options that all such releases take, parsed once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypedDict

from labeldp._atomic import StrPath
from labeldp._values import Data, parse_choice
from labeldp.accounts.budget import declared
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.ledger_file import charged_columns
from labeldp.accounts.scope import RowOptions
from labeldp.errors import Message, ParameterError, Setting, warn
from labeldp.tables import Dialect, opening  # Dialect first: it says which extra is missing
from labeldp.tables.opening import Progress, in_memory
from labeldp.tables.paths import refuse_same
from labeldp.tables.tables import Table

Hints = Callable[[list[Message]], None]
"""Called with sentences that follow from true labels."""


class FileOptions(TypedDict, total=False):
    """Options that every release from a table in a file takes; see `labeldp.privatize_file`.

    ``progress`` may raise before the charge to stop the release, and ``hints`` is **for the owner's eyes only**.
    """

    missing: str
    rows_per_person: int
    segment: str | None
    segment_by: str | None
    id: str | None
    person: str | None
    most_rows_per_person: int | None
    intended_use: str | None
    recipient: str | None
    bounds_reason: str | None
    format: str | None
    dialect: Dialect | None
    force: bool
    progress: Progress | None
    hints: Hints | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileJob:
    """Work on a table with private columns: where it is, how it is read, whose labels it has, and who pays.

    Attributes
    ----------
    source : path-like, or rows of Arrow
    labels : tuple of str
        The private columns.
    ledger : Ledger
        By default one in memory.
    others
        As in `FileOptions`.
    """

    source: Any
    labels: tuple[str, ...]
    ledger: Ledger = field(default_factory=Ledger)
    missing: str = "error"
    rows_per_person: int = 1
    segment: str | None = None
    segment_by: str | None = None
    id: str | None = None
    person: str | None = None
    most_rows_per_person: int | None = None
    intended_use: str | None = None
    recipient: str | None = None
    bounds_reason: str | None = None
    format: str | None = None
    dialect: Dialect | None = None
    force: bool = False
    progress: Progress | None = None
    hints: Hints | None = None

    def __post_init__(self) -> None:
        """Refuse two sources of segments, and options without the column that they need."""
        parse_choice(self.missing, "missing", ("error", "drop"))
        if self.most_rows_per_person is not None and self.person is None:
            raise ParameterError(Setting("most_rows_per_person"), " needs ", Setting("person"))
        if self.segment is not None and self.segment_by is not None:
            raise ParameterError("give ", Setting("segment"), " or ", Setting("segment_by"), ", not both")
        if self.id is not None and self.id == self.person:
            raise ParameterError(Setting("person"), f" must be another column than the id of rows, {self.id!r}")

    @property
    def drops_unlabelled(self) -> bool:
        """True if rows without a label are left out."""
        return self.missing == "drop"

    @property
    def id_columns(self) -> dict[str, str]:
        """The column for each option that names one: of segments, of ids of rows and of people."""
        options = {"segment_by": self.segment_by, "id": self.id, "person": self.person}
        return {option: column for option, column in options.items() if column is not None}

    def budget(self, epsilon: float) -> Data:
        """Return the arguments of a release that costs a label ε."""
        return {"epsilon": epsilon, "rows_per_person": self.rows_per_person, "ledger": self.ledger}

    def report(self, step: str, done: int = 0, total: int | None = None) -> None:
        """Report the progress of a step."""
        if self.progress is not None:
            self.progress(step, done, total)

    def give_hints(self, sentences: list[Message]) -> None:
        """Give the owner hints, if there are some."""
        if self.hints is not None and sentences:
            self.hints(sentences)

    def declared(self) -> AbstractContextManager[None]:
        """Return the block in which charges and cards carry the owner's statements."""
        return declared(intended_use=self.intended_use, recipient=self.recipient, bounds_reason=self.bounds_reason)

    def refuse_same(self, outputs: Mapping[str, StrPath | None]) -> None:
        """Refuse a file that would replace the source, the ledger, or another file."""
        source = None if in_memory(self.source) else self.source
        refuse_same({**outputs, "the ledger": self.ledger.path}, {"the source": source})

    def warn_of_charged(self, public: Iterable[str]) -> None:
        """Warn of public columns, before the charge, if the ledger has charges of them as private ones."""
        charged = charged_columns(charge.description for charge in self.ledger.charges)
        if shared := sorted(charged.intersection(public).difference(self.labels)):
            names = ", ".join(map(repr, shared))
            warn(f"The ledger has charges of {names}, which is public here: leave it out, unless all may see it")

    def open_table(
        self, *, drop: Collection[str] = (), text: Collection[str] = (), as_written: bool = False
    ) -> Table:
        """Open the table; columns of ids are read as they are written, also those that are left out."""
        ids = self.id_columns.values()
        table = opening.open_table(
            self.source,
            self.format,
            label=self.labels,
            as_written=as_written and not ids,
            text=[*text, *ids],
            drop=[name for name in drop if name not in ids],
            dialect=self.dialect,
        )
        for name in drop:
            table.refuse_unknown(name, "drop")
        for option, column in self.id_columns.items():
            if column in self.labels:
                raise ParameterError(Setting(option), f" is a public column, and {column!r} is the label")
            table.refuse_unknown(column, option)
        return table

    def row_options(self, values: Mapping[str, list[Any]]) -> RowOptions:
        """Return the options that state whose labels the rows have, with the values of columns of ids."""
        read = {option: values[column] for option, column in self.id_columns.items()}
        segment: Any = self.segment
        if self.segment_by is not None:
            segment = _NamedColumn(self.segment_by, read["segment_by"])
        return {
            "segment": segment,
            "most_rows_per_person": self.most_rows_per_person,
            "id": read.get("id"),
            "person": read.get("person"),
        }


@dataclass(frozen=True, slots=True)
class _NamedColumn:
    """Values with the name of their column, which names the segmentation."""

    name: str
    values: list[Any]

    def to_pylist(self) -> list[Any]:
        """Return the values."""
        return self.values
