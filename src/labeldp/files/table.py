"""A table in one or many files, read as often as needed, in constant memory.

Whatever the files are cut into, blocks, row groups, batches or files, ends here: rows are cut again by number,
which follows from the types of the columns.
"""

from __future__ import annotations

import operator
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial, reduce
from typing import Any

from labeldp._arrow import arrow
from labeldp._validation import nearest
from labeldp.errors import DataError, LabelDPError, LabelError, ParameterError
from labeldp.files.formats import as_format
from labeldp.files.guess import Guess, typed
from labeldp.files.labels import (
    TOO_LONG,
    as_floats,
    first_bad_label,
    is_number,
    parse_label_text,
    refuse_other_than_numbers,
)
from labeldp.files.pieces import CELLS, cut, rows_of
from labeldp.files.readers import OPENERS, ask, codec_of, file_batches, parquet_file, readable, schema_of
from labeldp.files.sources import Part, found
from labeldp.files.text import (
    DELIMITERS,
    column_names,
    first_fault,
    refuse_hidden_rows,
    refuse_long_rows,
    text_batches,
)
from labeldp.files.types import one_type, without_inner_dictionaries
from labeldp.files.words import Words

__all__ = ["Table", "open_table"]

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Integers that int64 holds, written in the one way that comes back the same."""


class Table:
    """A table in files; see `open_table`.

    With ``exact``, a column has a type from which all that is written comes back: other than text only if all its
    text does, and another than in one of several files only if that loses nothing.

    Attributes
    ----------
    format : str
    parts : list of Part
        Its files, in the order in which they are read.
    label : str or None
    schema : pyarrow.Schema
        Without the files' metadata. The label is a float64, and its values have no part in any of it.
    stored : dict
        The types of columns in the first file, where files tell types.
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
        pa = arrow().core
        self.parts, self.format, self.label = parts, format, label
        self._as_written, self._text, self._exact = as_written, frozenset(text), exact
        self.stored: dict[str, Any] = {}
        self._words: dict[str, Words] = {}
        self._keys = _key_columns(parts)
        keys = [pa.field(name, kind) for name, (kind, _) in self._keys.items()]
        names = [*self._file_names(), *self._keys]
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:  # without a header, names would be the values of a row
            name = "of the same name" if format in DELIMITERS else f"named {twice[0]!r}"
            raise DataError(f"the table has two columns {name}: rename one, or add the header if there is none")
        self._names = names
        if label is not None:
            self._find(label)
        fields = self._text_fields() if format in DELIMITERS else self._file_fields()
        self.schema = pa.schema([*fields, *keys])

    # ---- what it is ---------------------------------------------------------------------------

    def field(self, name: str) -> Any:
        """Return a column's name and type.

        Raises
        ------
        ParameterError
            If there is no such column; the message names the nearest.
        """
        return self.schema.field(self._find(name))

    def _find(self, name: str) -> str:
        if name in self._names:
            return name
        near = nearest(name, self._names)
        known = "there are " + ", ".join(map(repr, self._names[:12])) + (", …" if len(self._names) > 12 else "")
        if self.format in DELIMITERS:  # without a header, names would be the values of a row
            known = "does the first line name the columns, with commas (.csv) or tabs (.tsv) between them?"
        raise ParameterError(
            f"there is no column {name!r}" + (f"; did you mean {near!r}?" if near else f"; {known}")
        )

    @cached_property
    def rows(self) -> int | None:
        """How many rows there are, or None where only reading would tell."""
        if self.format != "parquet":
            return None
        return sum(int(ask(part, lambda file: file.metadata.num_rows, parquet_file)) for part in self.parts)

    @cached_property
    def rights(self) -> int:
        """Who may read and write all of its files."""
        modes = [part.path.stat().st_mode for part in self.parts if part.path is not None]
        return reduce(operator.and_, modes, 0o666)

    @cached_property
    def compression(self) -> str | None:
        """How a Parquet file is compressed, or None."""
        if self.format != "parquet":
            return None
        codecs = (ask(part, lambda file: codec_of(file, self.label), parquet_file) for part in self.parts)
        return next((str(codec) for codec in codecs if codec is not None), None)

    def _file_names(self) -> list[str]:
        """Return the columns that the files hold, all of the same names."""
        if self.format in DELIMITERS:
            names = [column_names(part, DELIMITERS[self.format]) for part in self.parts]
        else:
            self._schemas = [ask(part, schema_of, OPENERS[self.format]) for part in self.parts]
            names = [list(schema.names) for schema in self._schemas]
        self._label_places = {each.index(self.label) for each in names if self.label in each}
        for part, others in zip(self.parts, names, strict=True):
            if sorted(others) != sorted(names[0]):
                raise DataError(f"{part.name} has other columns than {self.parts[0].name}")
        return names[0]

    def _text_fields(self) -> list[Any]:
        """Return the columns of text files; types are guessed from all of a public column and nothing else."""
        pa = arrow().core
        names = [name for name in self._names if name not in self._keys]
        kinds = {name: pa.float64() if name == self.label else pa.string() for name in names}
        guesses = {
            name: Guess(exact=self._exact)
            for name in names
            if not self._as_written and name != self.label and name not in self._text
        }
        if guesses:
            for piece in self._text_pieces([name for name in names if name != self.label]):
                for name, guess in guesses.items():
                    guess.see(piece.column(name))
        kinds |= {name: guess.kind for name, guess in guesses.items()}
        return [pa.field(name, kind) for name, kind in kinds.items()]

    def _file_fields(self) -> list[Any]:
        """Return the columns of files that tell types: a type that holds what all of them hold."""
        pa = arrow().core
        first = self._schemas[0].remove_metadata()
        self.stored = {field.name: field.type for field in first}
        fields = []
        for field in first:
            kinds = [schema.field(field.name).type for schema in self._schemas]
            public = field.name != self.label
            kind = one_type(field.name, kinds, rounded=not (self._exact and public))
            if not public:
                refuse_other_than_numbers(kind, field.name)
                kind = pa.float64()
            elif pa.types.is_dictionary(kind):
                if self.format == "parquet":  # each row group has an order of its own
                    kind = pa.dictionary(kind.index_type, kind.value_type)
                words = Words.of((batch.column(0) for batch in self._stored([field.name])), kind)
                kind = words.kind
                self._words[field.name] = words
            fields.append(field.with_type(without_inner_dictionaries(kind)))
        return fields

    # ---- what is in it --------------------------------------------------------------------------

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield the rows, in the files' order, as record batches of a length that follows from the columns.

        Parameters
        ----------
        columns : sequence of str, optional
            Which columns, in this order; by default all.
        """
        pa = arrow().core
        names = list(self.schema.names if columns is None else columns)
        schema = pa.schema([self.field(name) for name in names])
        if self.format not in DELIMITERS:
            for piece in cut(self._stored(names, schema), rows_of(schema)):
                yield pa.RecordBatch.from_arrays(piece.columns, schema=schema)
            return
        yield from self._read(schema)

    def written(self) -> Table:
        """Return the same table with the text of its columns as it is in the files, every digit and zero of it."""
        return Table(self.parts, self.format, as_written=True) if self.format in DELIMITERS else self

    def typed(self, batch: Any, columns: Sequence[str]) -> Any:
        """Return some columns of a batch of `written` as this table has them."""
        pa = arrow().core
        schema = pa.schema([self.field(name) for name in columns])
        if self.format not in DELIMITERS:
            return batch.select(list(columns))
        arrays = {name: batch.column(name) for name in schema.names}
        arrays |= {name: typed(arrays[name], schema.field(name).type) for name in arrays if name not in self._keys}
        return pa.RecordBatch.from_arrays(list(arrays.values()), schema=schema)

    def _stored(self, names: Sequence[str], schema: Any = None) -> Iterator[Any]:
        """Yield batches as they come from the files, with what folders tell; of any length, in a schema if any."""
        pa = arrow().core
        inside = [name for name in names if name not in self._keys]
        read = inside or [name for name in self._names if name not in self._keys][:1]
        for part in self.parts:
            if self.format in DELIMITERS:
                batches = text_batches(part, DELIMITERS[self.format], read)
            else:
                batches = file_batches(part, self.format, read, CELLS // max(8, len(read)))
            for batch in batches:
                arrays = [
                    self._key_array(part, name, batch.num_rows) if name in self._keys else batch.column(name)
                    for name in names
                ]
                if schema is not None:
                    arrays = readable(part, partial(self._fitted, arrays, schema))
                yield pa.RecordBatch.from_arrays(arrays, names=list(names))

    def _text_pieces(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of text files as they are written.

        What is wrong is looked for again, row by row, and raised from here, whoever found that there is something:
        not even a traceback shows where a block ended.
        """
        pa = arrow().core
        public = [name for name in names if name != self.label and name not in self._keys]
        delimiter = DELIMITERS[self.format]
        try:
            for piece in cut(self._stored(names), rows_of(pa.schema(dict.fromkeys(names, pa.string())))):
                refuse_long_rows(piece.select(public))
                refuse_hidden_rows(piece.select(public), delimiter, self._label_places)
                yield piece
            return
        except LabelDPError as error:
            problem = type(error)(*error.args)
        raise first_fault(self.parts, delimiter, self.label) or problem

    def _read(self, schema: Any) -> Iterator[Any]:
        """Yield rows of text in the types of a schema.

        That a label is no number is said once the rest was read: what is wrong with the file itself is said first,
        wherever a block ended.
        """
        pa = arrow().core
        public = [name for name in schema.names if name != self.label and name not in self._keys]
        row, problem = 0, None
        for piece in self._text_pieces(schema.names):
            if problem is not None:
                continue
            arrays = {name: typed(piece.column(name), schema.field(name).type) for name in public}
            arrays |= {name: piece.column(name) for name in schema.names if name in self._keys}
            if self.label in schema.names:
                text = piece.column(self.label)
                try:
                    arrays[str(self.label)] = parse_label_text(text)
                except LabelError as error:
                    problem = _with_row(error, str(self.label), row, text)
                    continue
            row += piece.num_rows
            yield pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
        if problem is not None:
            raise problem

    def _fitted(self, arrays: list[Any], schema: Any) -> list[Any]:
        """Return columns of a file in the types of the whole table."""
        return [self._cast(array, field) for array, field in zip(arrays, schema, strict=True)]

    def _cast(self, array: Any, field: Any) -> Any:
        """Return an array as a type that it fits; numbers are rounded to float64 where they must be."""
        pa = arrow().core
        if field.name in self._words:
            return self._words[field.name].fitted(array)
        if array.type == field.type:
            return array
        return as_floats(array) if field.type == pa.float64() and is_number(array.type) else array.cast(field.type)

    def _key_array(self, part: Part, name: str, rows: int) -> Any:
        pa = arrow().core
        kind, convert = self._keys[name]
        value = part.keys[name]
        return pa.repeat(pa.scalar(None if value is None else convert(value), kind), rows)


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
        A file, a folder, a glob, or ``-`` for standard input, which is kept in a temporary file without a name.
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
    arrow()
    parts, kind = found(os.fspath(source), None if format is None else as_format(format))
    return Table(parts, kind, label=label, as_written=as_written, text=text)


def _with_row(problem: LabelError, label: str, before: int, text: Any) -> LabelError:
    """Return the complaint about a label, with its row unless it is too long to be looked at."""
    if str(problem) == TOO_LONG:
        return LabelError(TOO_LONG)
    return LabelError(
        f"the label {label!r} is not a number in row {before + first_bad_label(text) + 1:,}: convert the column "
        "first. Numbers have a decimal point, not a comma"
    )


# ---- columns --------------------------------------------------------------------------------------


def _key_columns(parts: list[Part]) -> dict[str, tuple[Any, Callable[[str], Any]]]:
    """Return the type of each column that folders tell: integers where all are, else text."""
    pa = arrow().core
    names = list(parts[0].keys)
    if any(list(part.keys) != names for part in parts):
        raise DataError("some files lie in folders named key=value and others do not, or in other ones")
    kinds: dict[str, tuple[Any, Callable[[str], Any]]] = {}
    for name in names:
        values = [value for part in parts if (value := part.keys[name]) is not None]
        integers = bool(values) and all(_INTEGER.fullmatch(value) for value in values)
        kinds[name] = (pa.int64(), int) if integers else (pa.string(), str)
    return kinds
