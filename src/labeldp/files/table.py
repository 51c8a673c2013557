"""A table in one or many files, read in batches as often as needed, in constant memory."""

from __future__ import annotations

import operator
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial, reduce
from typing import Any

from labeldp._arrow import arrow
from labeldp._checks import nearest
from labeldp.errors import DataError, ParameterError
from labeldp.files.formats import as_format
from labeldp.files.labels import as_floats, is_number
from labeldp.files.readers import (
    FILE_MARK,
    OPENERS,
    arrow_batches,
    ask,
    codec_of,
    parquet_batches,
    parquet_file,
    readable,
    schema_of,
)
from labeldp.files.sources import Part, found
from labeldp.files.text import DELIMITERS, column_names, settled_types, text_batches
from labeldp.files.types import one_type, steady

__all__ = ["Table", "open_table"]

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Whole numbers that int64 holds, written in the one way that comes back the same."""

_CELLS = 1 << 20
"""Values in a batch, about: wide tables come in short batches."""


class Table:
    """A table in files; see `open_table`.

    With ``exact``, a column whose type is not given has one from which all that is written comes back: other than
    text only if all its text does, and another than in one of several files only if that loses nothing.

    Attributes
    ----------
    format : str
    parts : list of Part
        Its files, in the order in which they are read.
    schema : pyarrow.Schema
        Without the files' metadata.
    stored : dict
        The types of columns in the first file, where files tell types.
    """

    def __init__(
        self,
        parts: list[Part],
        format: str,
        *,
        as_written: bool,
        types: Mapping[str, Any] | None = None,
        exact: bool = False,
    ) -> None:
        pa = arrow().core
        self.parts = parts
        self.format = format
        self._types: dict[str, Any] = dict(types or {})
        self._exact = exact
        self.stored: dict[str, Any] = {}
        self._default = pa.string() if as_written else None
        self._keys = _key_columns(parts)
        fields = [*self._file_fields(), *(pa.field(name, kind) for name, (kind, _) in self._keys.items())]
        twice = [name for name, times in Counter(each.name for each in fields).items() if times > 1]
        if twice:
            raise DataError(f"the table has two columns named {twice[0]!r}: rename one")
        self.schema = pa.schema(fields)

    # ---- what it is ---------------------------------------------------------------------------

    def field(self, name: str) -> Any:
        """Return a column's name and type.

        Raises
        ------
        ParameterError
            If there is no such column; the message names the nearest.
        """
        if name not in self.schema.names:
            near = nearest(name, self.schema.names)
            known = ", ".join(map(repr, self.schema.names[:12])) + (", …" if len(self.schema.names) > 12 else "")
            raise ParameterError(
                f"there is no column {name!r}" + (f"; did you mean {near!r}?" if near else f"; there are {known}")
            )
        return self.schema.field(name)

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
        for part in self.parts:
            codec = ask(part, codec_of, parquet_file)
            if codec is not None:
                return str(codec)
        return None

    def _file_fields(self) -> list[Any]:
        """Return the columns that the files hold, all of the same names."""
        if self.format in DELIMITERS:
            pa = arrow().core
            names = [column_names(part, DELIMITERS[self.format]) for part in self.parts]
            _refuse_other_columns(self.parts, names)
            if self._default is None:
                settled = settled_types(self.parts, DELIMITERS[self.format], self._types, exact=self._exact)
                self._types = {**settled, **self._types}
            return [pa.field(name, self._types.get(name, self._default)) for name in names[0]]
        schemas = [ask(part, schema_of, OPENERS[self.format]) for part in self.parts]
        _refuse_other_columns(self.parts, [list(schema.names) for schema in schemas])
        first = schemas[0].remove_metadata()
        if len(set(first.names)) < len(first.names):
            return list(first)
        self.stored = {field.name: field.type for field in first}
        kinds = {name: [schema.field(name).type for schema in schemas] for name in first.names}
        fields = [
            field.with_type(
                one_type(field.name, kinds[field.name], rounded=not self._exact or field.name in self._types)
            )
            for field in first
        ]
        if self._has_one_dictionary():
            return fields
        return [field.with_type(steady(field.type)) for field in fields]

    def _has_one_dictionary(self) -> bool:
        """Whether no column can have several: in a file of Arrow's, they only grow."""
        if len(self.parts) > 1:
            return False
        if self.format == "parquet":
            return bool(ask(self.parts[0], lambda file: file.metadata.num_row_groups, parquet_file) <= 1)
        return self.parts[0].start().startswith(FILE_MARK)

    # ---- what is in it --------------------------------------------------------------------------

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield the rows, in the files' order, as record batches.

        Parameters
        ----------
        columns : sequence of str, optional
            Which columns, in this order; by default all.
        """
        pa = arrow().core
        names = list(self.schema.names if columns is None else columns)
        schema = pa.schema([self.field(name) for name in names])
        wanted = [name for name in names if name not in self._keys]
        for part in self.parts:
            for batch in self._file_batches(part, wanted or self.schema.names[:1]):
                arrays = [
                    self._key_array(part, name, batch.num_rows) if name in self._keys else batch.column(name)
                    for name in names
                ]
                yield readable(part, partial(_fitted, arrays, schema))

    def _file_batches(self, part: Part, names: list[str]) -> Iterator[Any]:
        if self.format in DELIMITERS:
            known = {name: kind for name, kind in self._types.items() if name in names}
            yield from text_batches(
                part, DELIMITERS[self.format], types=known, columns=names, default=self._default
            )
            return
        rows = max(1024, _CELLS // max(8, len(names)))
        reader = parquet_batches if self.format == "parquet" else arrow_batches
        batches = reader(part, names, rows)
        while (batch := readable(part, lambda: next(batches, None))) is not None:
            if batch.num_rows:
                yield batch

    def _key_array(self, part: Part, name: str, rows: int) -> Any:
        pa = arrow().core
        kind, convert = self._keys[name]
        value = part.keys[name]
        return pa.repeat(pa.scalar(None if value is None else convert(value), kind), rows)


def open_table(
    source: str | os.PathLike[str],
    format: str | None = None,
    *,
    as_written: bool = False,
    types: Mapping[str, Any] | None = None,
) -> Table:
    r"""Open a table: CSV, TSV, Parquet, Arrow or Feather.

    Parameters
    ----------
    source : path
        A file, a folder, a glob, or ``-`` for standard input, which is kept in a temporary file without a name.
    format : str, optional
        One of ``csv``, ``tsv``, ``parquet``, ``arrow`` and ``arrow-stream``; by default the name tells.
    as_written : bool
        Read columns of text files as the text that is there, so that they can be written back unchanged. By
        default their types are guessed.
    types : mapping, optional
        Arrow types of some columns of text files.

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
    parts, kind = found(os.fspath(source), None if format is None else as_format(format))
    return Table(parts, kind, as_written=as_written, types=types)


# ---- columns --------------------------------------------------------------------------------------


def _key_columns(parts: list[Part]) -> dict[str, tuple[Any, Callable[[str], Any]]]:
    """Return the type of each column that folders tell: whole numbers where all are, else text."""
    pa = arrow().core
    names = list(parts[0].keys)
    if any(list(part.keys) != names for part in parts):
        raise DataError("some files lie in folders named key=value and others do not, or in other ones")
    found_types: dict[str, tuple[Any, Callable[[str], Any]]] = {}
    for name in names:
        values = [value for part in parts if (value := part.keys[name]) is not None]
        whole = bool(values) and all(_WHOLE.fullmatch(value) for value in values)
        found_types[name] = (pa.int64(), int) if whole else (pa.string(), str)
    return found_types


def _refuse_other_columns(parts: list[Part], names: list[list[str]]) -> None:
    for part, others in zip(parts, names, strict=True):
        if sorted(others) != sorted(names[0]):
            raise DataError(f"{part.name} has other columns than {parts[0].name}")


def _fitted(arrays: list[Any], schema: Any) -> Any:
    cast = [a if a.type == f.type else _cast(a, f.type) for a, f in zip(arrays, schema, strict=True)]
    return arrow().core.RecordBatch.from_arrays(cast, schema=schema)


def _cast(array: Any, kind: Any) -> Any:
    """Return an array as a type that it fits; numbers are rounded to the nearest float64 where they must be."""
    pa = arrow().core
    if kind == pa.float64() and is_number(array.type):
        return as_floats(array)
    if pa.types.is_dictionary(kind) and pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(
            array.indices.cast(kind.index_type), array.dictionary, ordered=kind.ordered
        )
    return array.cast(kind)
