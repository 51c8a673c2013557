"""Tables in text files: the types of public columns, and how files are written, follow from public values.

PyArrow reads blocks of bytes, labels included. Where they end must show nowhere, so its guesses of types are not
used, its batches are cut again, and faults that it finds are looked for again row by row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from labeldp.errors import DataError, LabelDPError, ParameterError, Setting
from labeldp.release.names import reads_as_value
from labeldp.tables.batches import cut, guard_arrow, rows_per_batch
from labeldp.tables.dialect import Dialect
from labeldp.tables.paths import DELIMITERS
from labeldp.tables.source_file import SourceFile
from labeldp.tables.tables import Table
from labeldp.tables.text_records import TextFile
from labeldp.tables.text_types import TextType, find_marks, not_a_number, parse_labels, parse_text

BLOCK = 1 << 22
"""Bytes read at a time."""

LONGEST_ROW = 1 << 20
"""Bytes that the public values of a row may have, and its label: a row is then shorter than a block."""

LONG_ROW = f"the table has a row or a label of more than {LONGEST_ROW >> 20} MB, or a quote that never ends"
_TEXT = pa.string()


class TextTable(Table):
    """A table in a text file; the type of a public column is decided from all of it, and nothing else.

    Columns in ``text`` are text, all if it is None.
    """

    def __init__(
        self,
        source: SourceFile,
        format: str,
        labels: Sequence[str],
        dialect: Dialect,
        *,
        text: Collection[str] | None,
        drop: Collection[str] = (),
        file: TextFile | None = None,
    ) -> None:
        self._as_text, self._exact = text, False
        private = {*drop, *labels}
        self._has_checked_quotes = not private
        self._file = file = file or TextFile.detect(source, dialect, format, private)
        self.dialect = file.dialect
        for label in labels:
            if label in file.header or dialect.skip or reads_as_value(label):
                continue
            if not (titles := self._lines_above(label)):
                continue
            raise ParameterError(
                f"the column {label!r} is named in line {titles + 1} of {source.path}, not in the first: leave "
                "out the lines above with ",
                Setting("skip", titles),
            )
        super().__init__(source, format, labels, file.header, drop)

    def _lines_above(self, label: str) -> int:
        """Return the number of lines above the one that names the label: nothing else of a row may decide it."""
        return self._file.lines_above(label)

    @property
    def notes(self) -> list[str]:
        """Detected marks of the file, such as its separator."""
        words = self.dialect.describe(self.format) if self.format in DELIMITERS else ""
        marks = [f"The table was read as {self.format.upper()} with {words}."] if words else []
        counts = {"above the header": self.dialect.skip, "at the end": self.dialect.skip_last}
        skipped = ", ".join(f"{count:,} {position}" for position, count in counts.items() if count)
        return [*marks, f"Lines that were not read: {skipped}."] if skipped else marks

    def as_text(self) -> Table:
        """Return the same table with public columns as the text that is there, to the last digit."""
        table = copy(self)
        fields = [field if field.name in self.labels else pa.field(field.name, _TEXT) for field in self.schema]
        table.schema = pa.schema(fields)
        return table

    def with_exact_types(self) -> Table:
        """Return the same table with public columns in types from which all their text comes back."""
        table = copy(self)
        table._as_text, table._exact = table._as_text or (), True
        table.schema = pa.schema(table._fields())
        table.dialect = self.dialect
        return table

    def parse(self, batch: Any, columns: Sequence[str]) -> Any:
        """Return some public columns of a batch of `as_text` or `with_exact_types` as this table has them."""
        schema = pa.schema([self.field(name) for name in columns])
        arrays = []
        for field in schema:
            column = batch.column(field.name)
            arrays.append(parse_text(column, field.type, self.dialect) if column.type == _TEXT else column)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _fields(self) -> list[Any]:
        kinds = {name: pa.float64() if name in self.labels else _TEXT for name in self._inside}
        public = [name for name in self._inside if name not in self.labels]
        decimal, thousands = find_marks(self._file.first_columns(self.private), self.dialect)
        self.dialect = self.dialect.with_detected(decimal=decimal, thousands=thousands)
        typed = [] if self._as_text is None else [name for name in public if name not in self._as_text]
        guesses = {name: TextType(self.dialect, exact=self._exact) for name in typed}
        for batch in self._text(public) if guesses else ():
            for name, guess in guesses.items():
                guess.update(batch.column(name))
        kinds |= {name: guess.kind for name, guess in guesses.items()}
        return [pa.field(name, kind) for name, kind in kinds.items()]

    def _text(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as they are written.

        A fault is looked for again, row by row, and raised from here, whoever noticed it: not even a traceback
        shows where a block ended. A public value with a line break or a separator may come
        from a stray quote, and hold a label: the quotes of all records are checked then.
        """
        public = [name for name in names if name not in self.private]
        is_suspect, problem = False, None
        try:
            for batch in cut(text_batches(self._file, names), rows_per_batch([_TEXT] * len(names))):
                refuse_long_rows(batch, public, self.labels)
                is_suspect |= may_hide_records(batch, public, self._file.separator)
                yield batch
        except LabelDPError as error:
            problem = type(error)(*error.args)
        self.source.refuse_change()
        if problem is not None or (is_suspect and not self._has_checked_quotes):
            self._raise_first_fault(problem)

    def _raise_first_fault(self, otherwise: LabelDPError | None) -> None:
        """Raise the first fault of the file, else another problem."""
        problem = self._file.first_fault(self.private, self.labels) or otherwise
        if problem is not None:
            raise problem
        self._has_checked_quotes = True

    def _read(self, schema: Any) -> Iterator[Any]:
        """Yield rows in the types of a schema; labels that are not numbers are null.

        Such labels are refused once the file was read: faults of the file itself are said first, wherever a block
        ended.
        """
        rows, faults = 0, list[tuple[int, str]]()
        for batch in self._text(schema.names):
            arrays = []
            for field, column in zip(schema, batch.columns, strict=True):
                if field.name in self.labels:
                    values, wrong = parse_labels(column, self.dialect)
                    faults += [] if wrong is None else [(rows + wrong, field.name)]
                    arrays.append(values)
                else:
                    arrays.append(parse_text(column, field.type, self.dialect))
            rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if faults:
            first, label = min(faults)
            self.refuse_total(rows - 1)
            self._raise_first_fault(not_a_number(label, first + 1, self.dialect))

    def _cells(self, names: Sequence[str], row: int) -> list[str]:
        """Return the cells of a row; bytes that are no text stay out: they may be in a column that is left out."""
        for batch in text_batches(self._file, names, pa.binary()):
            if row < batch.num_rows:
                return [column[row].as_py().decode("utf-8", "replace").strip() for column in batch.columns]
            row -= batch.num_rows
        raise DataError("the table changed while it was read")


def text_batches(file: TextFile, columns: Sequence[str], kind: Any = _TEXT) -> Iterator[Any]:
    """Yield some columns of a text file as record batches of text, or of its bytes, of any length."""
    names, line = file.header, file.header_line
    if not line:
        return
    kinds = dict.fromkeys(columns or names, kind)  # no column is left for PyArrow to guess
    has_blanks = len(names) == 1  # there a blank line is a missing value
    options = {
        "read_options": arrow_csv.ReadOptions(block_size=BLOCK, skip_rows=line, column_names=names),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=file.separator, newlines_in_values=True, ignore_empty_lines=not has_blanks
        ),
        "convert_options": arrow_csv.ConvertOptions(include_columns=list(columns), column_types=kinds),
    }
    with file.stream() as stream:
        reader = guard_arrow(lambda: arrow_csv.open_csv(stream, **options), LONG_ROW)
        while (batch := guard_arrow(lambda: next(reader, None), LONG_ROW)) is not None:
            if batch.num_rows:
                yield batch


def refuse_long_rows(batch: Any, public: Sequence[str], labels: Sequence[str]) -> None:
    """Refuse rows of long public text, and long labels: whether PyArrow reads them depends on where blocks end."""
    for names in (public, *([name] for name in batch.schema.names if name in labels)):
        sizes = [np.asarray(pc.binary_length(batch.column(name)), dtype=np.int64) for name in names]
        if sizes and np.max(sum(sizes)) > LONGEST_ROW:
            raise DataError(LONG_ROW)


def may_hide_records(batch: Any, public: Sequence[str], separator: str) -> bool:
    """Return whether a public value holds a line break or a separator."""
    texts = [bytes(batch.column(name).buffers()[2] or b"") for name in public]
    return any(mark.encode() in text for text in texts for mark in ("\n", "\r", separator))
