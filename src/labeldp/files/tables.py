"""A table in one or many files, read as often as needed, in constant memory.

Whatever the files are cut into, blocks, row groups, batches or files, ends here: rows are cut again by number,
which follows from the types of the columns.
"""

from __future__ import annotations

import operator
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
from pyarrow import types

from labeldp._validation import nearest
from labeldp.errors import DataError, LabelDPError, LabelError, ParameterError
from labeldp.files.batches import CELLS, cut, rows_per_batch
from labeldp.files.columns import (
    ColumnDictionary,
    as_floats,
    common_type,
    is_number,
    parse_labels,
    refuse_other_than_numbers,
    with_plain_inner_fields,
)
from labeldp.files.places import DELIMITERS, as_format
from labeldp.files.sources import (
    Part,
    find_parts,
    folder_types,
    public_codec,
    refuse_label_folders,
    schema_of,
)
from labeldp.files.text_files import TextType, check_rows, first_fault, parse_text, read_header, text_batches

__all__ = ["Table", "open_table", "table_of"]


class Table:
    """A table in files; see `open_table`.

    Attributes
    ----------
    format : str
    label : str or None
    schema : pyarrow.Schema
        Without the files' metadata. The label is a float64, and its values have no part in any of it.
    stored : dict
        The types of columns in the first file, where files store types.
    """

    def __init__(self, parts: list[Part], format: str, label: str | None, names: list[list[str]]) -> None:
        if label is not None:
            refuse_label_folders(parts, label)
        self.format, self.label, self.stored = format, label, dict[str, Any]()
        self._parts, self._keys = parts, folder_types(parts)
        for part, others in zip(parts, names, strict=True):
            if sorted(others) != sorted(names[0]):
                raise DataError(f"{part.name} has other columns than {parts[0].name}")
        self._names = [*names[0], *self._keys]
        repeated = [name for name, times in Counter(self._names).items() if times > 1]
        if repeated:  # without a header, names would be the values of a row
            name = "of the same name" if format in DELIMITERS else f"named {repeated[0]!r}"
            raise DataError(f"the table has two columns {name}: rename one, or add the header if there is none")
        self._inside = names[0]
        self._headers = list(dict.fromkeys(map(tuple, names)))
        if label is not None:
            self._refuse_unknown(label)
        self.schema = pa.schema([*self._fields(), *self._keys.items()])

    def field(self, name: str) -> Any:
        """Return a column's name and type, or name the nearest if there is no such column."""
        self._refuse_unknown(name)
        return self.schema.field(name)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield the rows, in the files' order, as record batches of a length that follows from the columns.

        Parameters
        ----------
        columns : sequence of str, optional
            Which columns, in this order; by default all.
        """
        names = self.schema.names if columns is None else columns
        return self._read(pa.schema([self.field(name) for name in names]))

    def as_text(self) -> Table:
        """Return the same table with columns of text files as the text that is there, to the last digit."""
        return self

    def parse(self, batch: Any, columns: Sequence[str]) -> Any:
        """Return some columns of a batch of `as_text` as this table has them."""
        return batch.select(list(columns))

    @cached_property
    def rows(self) -> int | None:
        """How many rows there are, or None where only reading shows it."""
        if self.format != "parquet":
            return None
        return sum(int(part.query("parquet", lambda file: file.metadata.num_rows)) for part in self._parts)

    @cached_property
    def compression(self) -> str | None:
        """How the first public column of a Parquet file is compressed, or None."""
        if self.format != "parquet":
            return None
        codecs = (part.query("parquet", lambda file: public_codec(file, self.label)) for part in self._parts)
        return next((codec for codec in codecs if codec is not None), None)

    @cached_property
    def rights(self) -> int:
        """Who may read and write all of its files."""
        modes = [part.path.stat().st_mode for part in self._parts if part.path is not None]
        return reduce(operator.and_, modes, 0o666)

    def _fields(self) -> list[Any]:
        """Return the columns that the files hold."""
        raise NotImplementedError

    def _read(self, schema: Any) -> Iterator[Any]:
        """Yield rows in the types of a schema."""
        raise NotImplementedError

    def _part_batches(self, part: Part, names: list[str]) -> Iterator[Any]:
        """Yield batches as they come from one file."""
        raise NotImplementedError

    def _fit(self, part: Part, array: Any, field: Any) -> Any:
        """Return a column of a file in the type that it has in the whole table."""
        return array

    def _stored_batches(self, schema: Any) -> Iterator[Any]:
        """Yield batches of any length, with the columns that folders name."""
        names = [name for name in schema.names if name not in self._keys] or self._inside[:1]
        for part in self._parts:
            keys = {name: pa.scalar(part.keys[name], pa.string()).cast(kind) for name, kind in self._keys.items()}
            for batch in self._part_batches(part, names):
                arrays = [
                    pa.repeat(keys[field.name], batch.num_rows)
                    if field.name in keys
                    else self._fit(part, batch.column(field.name), field)
                    for field in schema
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=schema.names)

    def _refuse_unknown(self, name: str) -> None:
        if name in self._names:
            return
        if self.format == "csv" and len(self._names) == 1 and ";" in self._names[0]:
            raise ParameterError(
                f"there is no column {name!r}: the first line has semicolons. Save the table with commas between "
                "values, and a point in decimals"
            )
        near = nearest(name, self._names)
        known = "there are " + ", ".join(map(repr, self._names[:12])) + (", …" if len(self._names) > 12 else "")
        if self.format in DELIMITERS:  # without a header, names would be the values of a row
            known = "does the first line name the columns, with commas (.csv) or tabs (.tsv) between them?"
        raise ParameterError(
            f"there is no column {name!r}" + (f"; did you mean {near!r}?" if near else f"; {known}")
        )


class TypedTable(Table):
    """A table in files that store types; a column has one that holds what all files hold."""

    def __init__(self, parts: list[Part], format: str, label: str | None, *, exact: bool) -> None:
        self._exact, self._dictionaries = exact, dict[str, ColumnDictionary]()
        self._schemas = [part.query(format, schema_of) for part in parts]
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
        self._dictionaries = {name: ColumnDictionary(kind) for name, kind in kinds.items()}
        for part in self._parts if kinds else ():
            for batch in self._part_batches(part, list(kinds)):
                for name, dictionary in self._dictionaries.items():
                    dictionary.see(batch.column(name))
        return {name: dictionary.kind for name, dictionary in self._dictionaries.items()}

    def _read(self, schema: Any) -> Iterator[Any]:
        for batch in cut(self._stored_batches(schema), rows_per_batch(schema)):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _part_batches(self, part: Part, names: list[str]) -> Iterator[Any]:
        return part.batches(self.format, names, CELLS // max(8, len(names)))

    def _fit(self, part: Part, array: Any, field: Any) -> Any:
        if array.null_count and not field.nullable and field.name != self.label:
            raise DataError(f"{part.name} is damaged: {field.name!r} has missing values, and its type has none")
        return part.guard(lambda: self._cast(array, field))

    def _cast(self, array: Any, field: Any) -> Any:
        """Return an array as a type that it fits; numbers are rounded to float64 where they must be."""
        if field.name in self._dictionaries:
            return self._dictionaries[field.name].fit(array)
        if array.type == field.type:
            return array
        return as_floats(array) if field.type == pa.float64() and is_number(array.type) else array.cast(field.type)


class TextTable(Table):
    """A table in text files; the type of a public column is decided from all of it, and nothing else.

    With ``exact``, a column is another type than text only if all its text comes back from it.
    """

    def __init__(
        self, parts: list[Part], format: str, label: str | None, is_text: Callable[[str], bool], *, exact: bool
    ) -> None:
        self._delimiter, self._is_text, self._exact = DELIMITERS[format], is_text, exact
        self._has_strict_quotes = label is None
        super().__init__(parts, format, label, [read_header(part, self._delimiter)[0] for part in parts])

    def as_text(self) -> Table:
        """Return the same table with columns of text files as the text that is there, to the last digit."""
        return TextTable(self._parts, self.format, None, lambda name: True, exact=False)

    def parse(self, batch: Any, columns: Sequence[str]) -> Any:
        """Return some columns of a batch of `as_text` as this table has them."""
        schema = pa.schema([self.field(name) for name in columns])
        return pa.RecordBatch.from_arrays([self._parse(batch, field) for field in schema], schema=schema)

    def _parse(self, batch: Any, field: Any, before: int = 0) -> Any:
        """Return a column of text as values; ``before`` counts the rows before it."""
        column = batch.column(field.name)
        if field.name == self.label:
            return parse_labels(column, field.name, before)
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
        not even a traceback shows where a block ended. A public value with a line break may come from a stray
        quote, and hold a label: all quotes must be in their places then.
        """
        texts = pa.schema(dict.fromkeys(schema.names, pa.string()))
        inside = [name for name in schema.names if name not in self._keys]
        has_line_breaks = False
        try:
            for batch in cut(self._stored_batches(schema), rows_per_batch(texts)):
                has_line_breaks |= check_rows(batch, inside, self._delimiter, self._headers, self.label)
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
                arrays = [self._parse(batch, field, row) for field in schema]
            except LabelError as error:
                problem = LabelError(*error.args)
                continue
            row += batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if problem is not None:
            raise problem


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
        One of ``csv``, ``tsv``, ``parquet``, ``arrow`` and ``arrow-stream``; by default the name implies it.
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
    return table_of(parts, kind, label, is_text=lambda name: as_written or name in text)


def table_of(
    parts: list[Part], format: str, label: str | None, is_text: Callable[[str], bool], *, exact: bool = False
) -> Table:
    """Return the table in some files; ``exact`` keeps all that public columns hold, ``is_text`` is for text."""
    if format in DELIMITERS:
        return TextTable(parts, format, label, is_text, exact=exact)
    return TypedTable(parts, format, label, exact=exact)
