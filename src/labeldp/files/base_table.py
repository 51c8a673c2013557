"""What all tables in files have in common: columns, the files that hold them, and what folders tell.

Whatever the files are cut into, blocks, row groups, batches or files, ends here: rows are cut again by number,
which follows from the types of the columns.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa

from labeldp._validation import nearest
from labeldp.errors import DataError, ParameterError
from labeldp.files.formats import DELIMITERS
from labeldp.files.sources import Part, refuse_label_folders
from labeldp.files.typed_files import ask, codec_of

__all__ = ["Table"]

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Integers that int64 holds, written in the one way that comes back the same."""


class Table:
    """A table in files; see `open_table`.

    Attributes
    ----------
    format : str
    label : str or None
    schema : pyarrow.Schema
        Without the files' metadata. The label is a float64, and its values have no part in any of it.
    stored : dict
        The types of columns in the first file, where files tell types.
    """

    def __init__(self, parts: list[Part], format: str, label: str | None, names: list[list[str]]) -> None:
        if label is not None:
            refuse_label_folders(parts, label)
        self.format, self.label, self.stored = format, label, dict[str, Any]()
        self._parts, self._keys = parts, _key_columns(parts)
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
        keys = [pa.field(name, kind) for name, (kind, _) in self._keys.items()]
        self.schema = pa.schema([*self._fields(), *keys])

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

    def written(self) -> Table:
        """Return the same table with the text of its columns as it is in the files, every digit and zero of it."""
        return self

    def typed(self, batch: Any, columns: Sequence[str]) -> Any:
        """Return some columns of a batch of `written` as this table has them."""
        return batch.select(list(columns))

    @cached_property
    def rows(self) -> int | None:
        """How many rows there are, or None where only reading would tell."""
        if self.format != "parquet":
            return None
        return sum(int(ask(part, self.format, lambda file: file.metadata.num_rows)) for part in self._parts)

    @cached_property
    def compression(self) -> str | None:
        """How a Parquet file is compressed, or None."""
        if self.format != "parquet":
            return None
        codecs = (ask(part, self.format, lambda file: codec_of(file, self.label)) for part in self._parts)
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
        """Yield batches of any length, with what folders tell."""
        read = [name for name in schema.names if name not in self._keys] or self._inside[:1]
        for part in self._parts:
            for batch in self._part_batches(part, read):
                arrays = [
                    self._key_column(part, field.name, batch.num_rows)
                    if field.name in self._keys
                    else self._fit(part, batch.column(field.name), field)
                    for field in schema
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=schema.names)

    def _key_column(self, part: Part, name: str, rows: int) -> Any:
        kind, convert = self._keys[name]
        value = part.keys[name]
        return pa.repeat(pa.scalar(None if value is None else convert(value), kind), rows)

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


def _key_columns(parts: list[Part]) -> dict[str, tuple[Any, Callable[[str], Any]]]:
    """Return the type of each column that folders tell: integers where all are, else text."""
    names = list(parts[0].keys)
    if any(list(part.keys) != names for part in parts):
        raise DataError("some files lie in folders named key=value and others do not, or in other ones")
    kinds: dict[str, tuple[Any, Callable[[str], Any]]] = {}
    for name in names:
        values = [value for part in parts if (value := part.keys[name]) is not None]
        integers = bool(values) and all(_INTEGER.fullmatch(value) for value in values)
        kinds[name] = (pa.int64(), int) if integers else (pa.string(), str)
    return kinds
