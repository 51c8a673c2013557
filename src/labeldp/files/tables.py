"""A table in one or many files, read as often as needed, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from labeldp.errors import DataError, LabelDPError, LabelError
from labeldp.files.base_table import Table
from labeldp.files.batches import CELLS, cut, rows_per_batch
from labeldp.files.column_types import Words, common_type, with_plain_inner_fields
from labeldp.files.formats import DELIMITERS, as_format
from labeldp.files.label_column import (
    TOO_LONG,
    as_floats,
    first_bad_label,
    is_number,
    parse_label_text,
    refuse_other_than_numbers,
)
from labeldp.files.sources import Part, find_parts
from labeldp.files.text_files import (
    column_names,
    first_fault,
    multiline_values,
    refuse_hidden_rows,
    refuse_long_rows,
    text_batches,
)
from labeldp.files.text_types import TextType, parse_text
from labeldp.files.typed_files import ask, file_batches, readable, schema_of

__all__ = ["Table", "TextTable", "TypedTable", "open_table"]


class TypedTable(Table):
    """A table in files that tell types; a column has one that holds what all files hold."""

    def __init__(self, parts: list[Part], format: str, *, label: str | None = None, exact: bool = False) -> None:
        self._exact, self._words = exact, dict[str, Words]()
        self._schemas = [ask(part, format, schema_of) for part in parts]
        super().__init__(parts, format, label, [list(schema.names) for schema in self._schemas])

    def _fields(self) -> list[Any]:
        first = self._schemas[0].remove_metadata()
        self.stored = {field.name: field.type for field in first}
        kinds = {}
        for name in first.names:
            public = name != self.label
            stored = [schema.field(name).type for schema in self._schemas]
            kinds[name] = common_type(name, stored, rounded=not (self._exact and public))
            if not public:
                refuse_other_than_numbers(kinds[name], name)
                kinds[name] = pa.float64()
        kinds |= self._dictionary_types({name: kind for name, kind in kinds.items() if types.is_dictionary(kind)})
        nullable = {name: any(schema.field(name).nullable for schema in self._schemas) for name in first.names}
        fields = (field.with_type(with_plain_inner_fields(kinds[field.name])) for field in first)
        return [field.with_nullable(nullable[field.name]) for field in fields]

    def _dictionary_types(self, kinds: dict[str, Any]) -> dict[str, Any]:
        """Return the types of dictionary columns, whose words are those of all files."""
        words = {name: Words(kind) for name, kind in kinds.items()}
        for part in self._parts if words else ():
            for batch in self._part_batches(part, list(words)):
                for name, column in words.items():
                    column.see(batch.column(name))
        self._words = words
        return {name: column.kind for name, column in words.items()}

    def _read(self, schema: Any) -> Iterator[Any]:
        for batch in cut(self._stored_batches(schema), rows_per_batch(schema)):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _part_batches(self, part: Part, names: list[str]) -> Iterator[Any]:
        return file_batches(part, self.format, names, CELLS // max(8, len(names)))

    def _fit(self, part: Part, array: Any, field: Any) -> Any:
        if array.null_count and not field.nullable and field.name != self.label:
            raise DataError(f"{part.name} is damaged: {field.name!r} has missing values, and its type has none")
        return readable(part, lambda: self._cast(array, field))

    def _cast(self, array: Any, field: Any) -> Any:
        """Return an array as a type that it fits; numbers are rounded to float64 where they must be."""
        if field.name in self._words:
            return self._words[field.name].fit(array)
        if array.type == field.type:
            return array
        return as_floats(array) if field.type == pa.float64() and is_number(array.type) else array.cast(field.type)


class TextTable(Table):
    """A table in text files; the type of a public column is decided from all of it, and nothing else.

    With ``exact``, a column is another type than text only if all its text comes back from it.
    """

    def __init__(
        self,
        parts: list[Part],
        format: str,
        *,
        label: str | None = None,
        as_written: bool = False,
        text: Collection[str] = (),
        exact: bool = False,
    ) -> None:
        self._delimiter, self._exact = DELIMITERS[format], exact
        self._has_strict_quotes = label is None
        self._is_text = (lambda name: True) if as_written else frozenset(text).__contains__
        super().__init__(parts, format, label, [column_names(part, self._delimiter) for part in parts])

    def written(self) -> Table:
        """Return the same table with the text of its columns as it is in the files, every digit and zero of it."""
        return TextTable(self._parts, self.format, as_written=True)

    def typed(self, batch: Any, columns: Sequence[str]) -> Any:
        """Return some columns of a batch of `written` as this table has them."""
        schema = pa.schema([self.field(name) for name in columns])
        return pa.RecordBatch.from_arrays([self._parse(batch, field) for field in schema], schema=schema)

    def _parse(self, batch: Any, field: Any) -> Any:
        column = batch.column(field.name)
        return column if field.name in self._keys else parse_text(column, field.type)

    def _fields(self) -> list[Any]:
        kinds = {name: pa.float64() if name == self.label else pa.string() for name in self._inside}
        public = [name for name in self._inside if name != self.label]
        guesses = {name: TextType(exact=self._exact) for name in public if not self._is_text(name)}
        if guesses:
            for batch in self._text(pa.schema(dict.fromkeys(public, pa.string()))):
                for name, guess in guesses.items():
                    guess.see(batch.column(name))
        kinds |= {name: guess.kind for name, guess in guesses.items()}
        return [pa.field(name, kind) for name, kind in kinds.items()]

    def _part_batches(self, part: Part, names: list[str]) -> Iterator[Any]:
        return text_batches(part, self._delimiter, names)

    def _text(self, schema: Any) -> Iterator[Any]:
        """Yield the rows as they are written.

        What is wrong is looked for again, row by row, and raised from here, whoever found that there is something:
        not even a traceback shows where a block ended. A public value with a line break may
        come from a stray quote, and hold a label: all quotes must be in their places then.
        """
        texts = pa.schema(dict.fromkeys(schema.names, pa.string()))
        inside = [name for name in schema.names if name not in self._keys]
        public = [name for name in inside if name != self.label]
        has_line_breaks = False
        try:
            for batch in cut(self._stored_batches(schema), rows_per_batch(texts)):
                refuse_long_rows(batch.select(public))
                values = multiline_values(batch, inside)
                refuse_hidden_rows(values, self._delimiter, self._headers, self.label)
                has_line_breaks |= not values.keys().isdisjoint(public)
                yield batch
            if not has_line_breaks or self._has_strict_quotes:
                return
            problem = first_fault(self._parts, self._delimiter, self.label, strict=True)
            self._has_strict_quotes = True
        except LabelDPError as error:
            problem = type(error)(*error.args)
            problem = first_fault(self._parts, self._delimiter, self.label) or problem
        if problem is not None:
            raise problem

    def _read(self, schema: Any) -> Iterator[Any]:
        """Yield rows in the types of a schema.

        That a label is not a number is said once the rest was read: what is wrong with the file itself is said
        first, wherever a block ended.
        """
        row, problem = 0, None
        for batch in self._text(schema):
            if problem is not None:
                continue
            try:
                arrays = [
                    self._label(batch, row) if field.name == self.label else self._parse(batch, field)
                    for field in schema
                ]
            except LabelError as error:
                problem = LabelError(*error.args)
                continue
            row += batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if problem is not None:
            raise problem

    def _label(self, batch: Any, before: int) -> Any:
        """Return the labels of a batch, or say which row has none, unless it is too long to be looked at."""
        text = batch.column(self.label)
        try:
            return parse_label_text(text)
        except LabelError as error:
            if str(error) == TOO_LONG:
                raise
        raise LabelError(
            f"the label {self.label!r} is not a number in row {before + first_bad_label(text) + 1:,}: convert the "
            "column first. Numbers have a decimal point, not a comma"
        )


def open_table(
    source: str | os.PathLike[str],
    format: str | None = None,
    *,
    label: str | None = None,
    as_written: bool = False,
    text: Collection[str] = (),
) -> Table:
    r"""Open a table: CSV, TSV, Parquet, Arrow or Feather.

    Parameters
    ----------
    source : path
        A file, a folder, a glob, or ``-`` for standard input. What comes through a pipe is kept in a temporary
        file without a name.
    format : str, optional
        One of ``csv``, ``tsv``, ``parquet``, ``arrow`` and ``arrow-stream``; by default the name tells.
    label : str, optional
        The private column: read as float64, and never looked at to decide anything.
    as_written : bool
        Read columns of text files as the text that is there, so that they can be written back unchanged. By
        default their types are guessed, each from the whole column.
    text : collection of str
        Columns of text files that are text even if they look like numbers.

    Raises
    ------
    DataError
        If it cannot be read; the message quotes nothing from it.
    ParameterError
        If the format is unknown.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flats.csv")
    >>> _ = path.write_text("rooms,price\n2,3.5\n3,4\n")
    >>> table = open_table(path)
    >>> table.schema.names, [batch.num_rows for batch in table.batches(["price"])]
    (['rooms', 'price'], [2])
    """
    parts, kind = find_parts(os.fspath(source), None if format is None else as_format(format))
    if kind in DELIMITERS:
        return TextTable(parts, kind, label=label, as_written=as_written, text=text)
    return TypedTable(parts, kind, label=label)
