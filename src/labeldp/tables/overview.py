"""An overview of a table for its owner, before anything is spent; no label is in it.

While nobody has said which column is the label, any may be: then only the header is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labeldp._atomic import StrPath
from labeldp.errors import Message
from labeldp.exact.word_sources import resolve_source
from labeldp.tables.column_encoders import kind_of
from labeldp.tables.dialect import Dialect
from labeldp.tables.excel import count_sheet_titles
from labeldp.tables.hints import HintSampler, Identifiers
from labeldp.tables.opening import Progress, TableInput, open_table
from labeldp.tables.paths import DELIMITERS, find_table
from labeldp.tables.source_file import SourceFile
from labeldp.tables.tables import Table
from labeldp.tables.text_records import TextFile

FIRST_ROWS = 10
LONGEST = 60
"""Characters that are shown of a value."""

KINDS = {"number": "number", "boolean": "yes or no", "date": "date", "time": "time", "category": "text"}


def count_titles(source: StrPath, dialect: Dialect) -> int:
    r"""Count lines above the header, or rows of a sheet, that seem to be titles, for the owner to agree to.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flats.csv")
    >>> _ = path.write_text("Flats, 2025\n\nrooms;area;price\n2;60,5;3,5\n")
    >>> count_titles(path, Dialect())
    2
    """
    path, kind = find_table(source)
    if kind == "xlsx":
        return count_sheet_titles(path, dialect)
    return TextFile.detect(SourceFile(path), dialect, kind, ()).titles(kind) if kind in DELIMITERS else 0


@dataclass(frozen=True, slots=True)
class Overview:
    """The public content of a table.

    Attributes
    ----------
    format : str
    dialect : Dialect
        How it is written, as it was found out from the header and the public columns.
    columns : dict
        The kind of each public column, in a word, and the number of its missing values.
    rows, missing : int
        All rows, and those without a label.
    first : tuple of tuples of str
        Public values of the first rows, as they are written.
    identifiers : tuple of str
        Public columns whose values all differ, as names and customer numbers do; no measured numbers.
    notes : tuple of str
        What to say of columns whose values all differ.
    """

    format: str
    dialect: Dialect
    columns: dict[str, tuple[str, int]]
    rows: int
    missing: int
    first: tuple[tuple[str, ...], ...] = field(repr=False)
    identifiers: tuple[str, ...] = ()
    notes: tuple[Message, ...] = ()


def overview(
    source: StrPath,
    *,
    label: str,
    drop: Collection[str] = (),
    dialect: Dialect | None = None,
    progress: Progress | None = None,
    hints: Callable[[HintSampler], None] | None = None,
) -> Overview:
    r"""Read a whole table once, and return its public content.

    Parameters
    ----------
    source, dialect, drop
        As in `open_table`.
    label : str
        The private column; only the number of its missing values is returned.
    progress : callable, optional
        As in `privatize_file`; an exception of it stops the reading.
    hints : callable, optional
        Is called with a sample of rows, whose hints follow from true labels: **for the owner's eyes only**.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flats.csv")
    >>> _ = path.write_text("rooms,price\n,4\n2,3.5\n3,\n")
    >>> seen = overview(path, label="price")
    >>> seen.columns, seen.rows, seen.missing, seen.first
    ({'rooms': ('number', 1)}, 3, 1, (('',), ('2',), ('3',)))
    """
    progress = progress or (lambda *_: None)
    progress("Opening", 0, None)
    table = open_table(source, label=label, drop=drop, dialect=dialect)
    rows = TableInput(table, drop=True, progress=progress)
    samplers = [] if hints is None else rows.hint_samplers(resolve_source(None))
    counts = _PublicCounts()
    labelled = sum(len(labels) for labels in rows.labels(counts.add, samplers=samplers))
    if hints is not None:
        hints(*samplers)
    fields = {field.name: field.type for field in table.schema if field.name != label}
    kinds = {name: KINDS.get(str(kind_of(kind)), str(kind)) for name, kind in fields.items()}
    unique = counts.identifiers.unique
    return Overview(
        table.format,
        table.dialect,
        {name: (kind, counts.gaps[name]) for name, kind in kinds.items()},
        counts.rows,
        counts.rows - labelled,
        _first_rows(table, list(fields)),
        tuple(name for name in unique if not pa.types.is_floating(fields[name])),
        tuple(counts.identifiers.hints()),
    )


class _PublicCounts:
    """Rows, missing values and identifiers of the public part of a table."""

    def __init__(self) -> None:
        self.rows = 0
        self.gaps = Counter[str]()
        self.identifiers = Identifiers()

    def add(self, public: Any) -> None:
        """Add the next rows."""
        self.rows += public.num_rows
        self.gaps.update({name: _gaps(public.column(name)) for name in public.schema.names})
        self.identifiers.update(public)


def _first_rows(table: Table, public: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return public values of the first rows, as they are written."""
    if not public:
        return ()
    rows = next(iter(table.as_text().batches(public))).slice(0, FIRST_ROWS).to_pylist()
    return tuple(tuple(map(_shorten, row.values())) for row in rows)


def _gaps(column: Any) -> int:
    """Return the number of missing values, of text also of empty ones."""
    empty = pc.sum(pc.equal(column, "")).as_py() if pa.types.is_string(column.type) else 0
    return int(column.null_count) + (empty or 0)


def _shorten(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
