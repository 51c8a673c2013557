"""Tables as input: opened whatever their format, and split into their public part and their labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from labeldp._atomic import StrPath
from labeldp._values import Array, Data, Mask
from labeldp.errors import DataError, ParameterError, Setting
from labeldp.exact.word_sources import WordSource
from labeldp.release.names import looks_like_value
from labeldp.tables.batches import label_values, missing_labels, read_ahead
from labeldp.tables.dialect import Dialect
from labeldp.tables.excel import SheetTable, read_sheet, sheet_names
from labeldp.tables.hints import HintSampler
from labeldp.tables.parquet import MemoryFile, ParquetTable, parquet_schema
from labeldp.tables.paths import DELIMITERS, find_table
from labeldp.tables.source_file import SourceFile
from labeldp.tables.tables import MAY_LACK_HEADER, Table, lacks_header
from labeldp.tables.text_records import TextFile
from labeldp.tables.text_tables import TextTable


@dataclass(frozen=True, slots=True)
class TableHeader:
    """The names of a table's columns, read off its header alone.

    Attributes
    ----------
    format : str
    dialect : Dialect
        How the header is written.
    names : tuple of str
        Empty where it must be said first which sheet is meant, or that the first row is a header.
    sheets : tuple of str
        Of an Excel workbook.
    lacks_header : bool
        Whether most names read as numbers, as those of a table without a header do.
    """

    format: str
    dialect: Dialect
    names: tuple[str, ...]
    sheets: tuple[str, ...] = ()
    lacks_header: bool = False

    @property
    def visible_names(self) -> tuple[str, ...]:
        """The names to show while nobody has said which column is the label.

        One that reads as a value may be a label of the first row, unless the header was confirmed, or the format
        has one always: its position is shown.
        """
        if self.format not in MAY_LACK_HEADER or self.dialect.header:
            return self.names
        pairs = enumerate(self.names, 1)
        return tuple(f"column {position}" if looks_like_value(name) else name for position, name in pairs)


def table_header(source: StrPath, format: str | None = None, *, dialect: Dialect | None = None) -> TableHeader:
    r"""Return the names of a table's columns; no row is looked at.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flats.csv")
    >>> _ = path.write_text("rooms;price\n2;3,5\n")
    >>> table_header(path).names
    ('rooms', 'price')
    """
    path, kind = find_table(source, format)
    return _read_header(SourceFile(path), kind, dialect or Dialect())


def _read_header(source: SourceFile, kind: str, dialect: Dialect) -> TableHeader:
    sheets, names = list[str](), list[str]()
    if kind in DELIMITERS:
        file = TextFile.detect(source, dialect, kind, ())
        dialect, names = file.dialect, file.header
    elif kind == "xlsx":
        sheets = sheet_names(source)
        if dialect.sheet is not None or len(sheets) == 1:
            names = read_sheet(source, dialect).file.header
    else:
        names = parquet_schema(source).names
    is_values = lacks_header(names, kind, dialect)
    return TableHeader(kind, dialect, () if is_values else tuple(names), tuple(sheets), is_values)


def in_memory(source: Any) -> bool:
    """Return whether a table is given as rows of Arrow, in place of the name of a file."""
    return hasattr(source, "__arrow_c_stream__")


def open_table(
    source: StrPath | Any,
    format: str | None = None,
    *,
    label: str | Sequence[str] | None = None,
    as_written: bool = False,
    text: Collection[str] = (),
    drop: Collection[str] = (),
    only: Collection[str] | None = None,
    dialect: Dialect | None = None,
) -> Table:
    r"""Open a table: CSV, TSV, Excel or Parquet.

    Parameters
    ----------
    source : path-like, or rows of Arrow
        A file; or a `pyarrow.RecordBatchReader`, or a data frame, which is read once, into memory.
    format : str, optional
        One of ``csv``, ``tsv``, ``xlsx`` and ``parquet``; by default the name implies it.
    label : str or sequence of str, optional
        The private columns: read as float64, and never looked at to decide anything.
    as_written : bool
        Read columns of text files as the text that is there, so that they can be written back unchanged. By
        default their types are guessed, each from the whole column.
    text : collection of str
        Columns of text files that are text even if they look like numbers.
    drop : collection of str
        Columns that are not read, if there are such; they decide nothing but whether the last row is a total.
    only : collection of str, optional
        The columns to read, if there are such; all others are dropped.
    dialect : Dialect, optional
        How text files are written, and which sheet of a workbook is read; the rest is detected from
        the header and the public columns.

    Raises
    ------
    DataError
        If it cannot be read; the message quotes nothing from it.
    ParameterError
        If the format is unknown.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from labeldp.tables import open_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flats.csv")
    >>> _ = path.write_text("rooms,price\n2,3.5\n3,4\n")
    >>> table = open_table(path)
    >>> table.schema.names, [batch.num_rows for batch in table.batches(["price"])]
    (['rooms', 'price'], [2])
    """
    labels = label_names(label)
    if in_memory(source):
        return ParquetTable(MemoryFile(source), labels, drop)
    path, kind = find_table(source, format)
    dialect, file = dialect or Dialect(), SourceFile(path)
    if only is not None:
        names = _read_header(file, kind, dialect).names
        drop = {*drop, *(name for name in names if name not in only)}
    reading: Data = {"text": None if as_written else text, "drop": drop}
    if kind in DELIMITERS:
        return TextTable(file, kind, labels, dialect, **reading)
    if kind == "xlsx":
        return SheetTable(file, labels, dialect, **reading)
    for option in ("skip", "skip_last"):
        if getattr(dialect, option):
            raise ParameterError(Setting(option), " is for text files and sheets: change the file itself")
    return ParquetTable(file, labels, drop)


def label_names(label: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of label columns; no name may be there twice.

    Examples
    --------
    >>> label_names("price"), label_names(["pay", "rent"]), label_names(None)
    (('price',), ('pay', 'rent'), ())
    """
    names = (label,) if isinstance(label, str) else tuple(label or ())
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(Setting("label"), f" names {name!r} twice")
    return names


Progress = Callable[[str, int, int | None], None]


class RowReader(Protocol):
    """Object that sees the rows of a table that have all labels."""

    def update(self, public: list[Any], labels: Array, /) -> None:
        """See the public columns and the labels of the next rows, rows × labels."""


class TableInput:
    """Rows of a table as their public part and their labels; `Table` has cut them by their number.

    Rows that lack a label are left out with ``drop``, and refused else. ``hidden`` are columns of ids that are
    read, and shared with nobody.

    Attributes
    ----------
    schema, public : pyarrow.Schema
        The columns that are shared, with the labels and without.
    """

    def __init__(self, table: Table, *, drop: bool, progress: Progress, hidden: Collection[str] = ()) -> None:
        self.table, self._drop, self._progress = table, drop, progress
        self.schema = pa.schema([field for field in table.schema if field.name not in hidden])
        self.public = pa.schema([field for field in self.schema if field.name not in table.labels])
        self._unlabelled = [name for name in table.schema.names if name not in table.labels]
        table.refuse_lookalike(self.schema.names)
        self.left_out = 0

    def hint_samplers(self, source: WordSource) -> list[HintSampler]:
        """Return a sampler of rows for hints to the owner for each label."""
        return [HintSampler(self.public, label, source, self.table.dialect) for label in self.table.labels]

    def labels(
        self,
        rehearse: Callable[[Any], None] = lambda _: None,
        readers: Sequence[RowReader] = (),
        ids: Callable[[Any], None] = lambda _: None,
        samplers: Sequence[HintSampler] = (),
    ) -> Iterator[Array]:
        """Yield the labels from the start, rows × labels.

        All columns are read, so that one that is damaged is found before the charge; of Parquet that is 10 to 20 %
        more work for a release. ``rehearse`` is called with the public part of all rows, to refuse values that
        cannot be written. The readers see all rows that have their labels, each of the
        samplers one label of them, and ``ids`` their hidden columns, too.
        """
        done, last, first_gap = 0, None, None
        for public, values, missing in self._read():
            rehearse(public.select(self.public.names))
            labelled = np.flatnonzero(~missing)
            last = done + int(labelled[-1]) if labelled.size else last
            if first_gap is None and missing.any():
                first_gap = done + int(np.argmax(missing))
            done += len(values)
            is_counted = self.table.format == "parquet"  # the progress before a fault shows where blocks end
            self._progress("Counting", done if is_counted else 0, self.table.rows)
            rows, labels = _labelled(public, values, missing)
            shared = rows.select(self.public.names).columns
            for reader in readers:
                reader.update(shared, labels)
            for sampler, column in zip(samplers, labels.T, strict=False):
                sampler.update(shared, column)
            ids(rows)
            yield labels
        if last is not None:
            self.table.refuse_total(last)
        if first_gap is not None and not self._drop:
            raise missing_labels(first_gap)
        if last is None:
            raise DataError("no row of the table has a label" if done else "the table has no rows")

    def rows(self, total: int) -> Iterator[tuple[list[Any], Array]]:
        """Yield the public columns and the labels of all rows that have them."""
        done = 0
        for public, values, missing in self._read():
            rows, labels = _labelled(public, values, missing)
            self.left_out += len(values) - len(labels)
            done += len(labels)
            self._progress("Releasing", done, total)
            yield rows.select(self.public.names).columns, labels

    def _read(self) -> Iterator[tuple[Any, Array, Mask]]:
        """Yield the public part of rows, their labels, and which rows lack one."""
        for batch in read_ahead(self.table.batches()):
            labels = [label_values(batch.column(name), allow_missing=True) for name in self.table.labels]
            values = np.column_stack([column for column, _ in labels])
            missing = np.any([gaps for _, gaps in labels], axis=0)
            yield batch.select(self._unlabelled), values, missing


def _labelled(public: Any, values: Array, missing: Mask) -> tuple[Any, Array]:
    """Return the public columns and the labels of the rows that have them."""
    return (public.filter(pa.array(~missing)), values[~missing]) if missing.any() else (public, values)
