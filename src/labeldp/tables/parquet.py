"""Tables in Parquet files, one or a folder of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import types

from labeldp.errors import DataError
from labeldp.tables.batches import (
    CELLS,
    as_floats,
    cut,
    flat_type,
    guard_arrow,
    refuse_other_than_numbers,
    rows_per_batch,
)
from labeldp.tables.tables import Table


def _guard(path: Path, call: Callable[[], Any]) -> Any:
    """Return what a call of Arrow returns, or say that the file is damaged."""
    return guard_arrow(call, f"{path} is damaged, or of another format than its name says")


def _parquet(stream: Any) -> Any:
    import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

    return pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)


def _ask(path: Path, question: Callable[[Any], Any]) -> Any:
    """Return what the open Parquet file answers."""
    with pa.OSFile(str(path)) as stream:
        return _guard(path, lambda: question(_parquet(stream)))


def parquet_schema(path: Path) -> Any:
    """Return the columns that a file has."""

    def schema_of(file: Any) -> Any:
        list(file.schema_arrow.names)  # raises here, where it is caught, if a name is no text
        return file.schema_arrow

    return _ask(path, schema_of)


def _batches(path: Path, names: list[str]) -> Iterator[Any]:
    """Yield batches page by page, so that a file of one huge row group needs no more memory than others."""
    rows = CELLS // max(8, len(names))
    with pa.OSFile(str(path)) as stream:
        batches = _guard(path, lambda: _parquet(stream).iter_batches(batch_size=rows, columns=names))
        while (batch := _guard(path, lambda: next(batches, None))) is not None:
            if batch.num_rows:
                yield batch


class ParquetTable(Table):
    """A table in Parquet files; a public column has one type in all of them."""

    def __init__(self, files: list[Path], label: str | None, drop: Collection[str] = ()) -> None:
        self._schemas = [parquet_schema(file) for file in files]
        names = [list(schema.names) for schema in self._schemas]
        for file, others in zip(files, names, strict=True):
            if sorted(others) != sorted(names[0]):
                raise DataError(f"{file} has other columns than {files[0]}")
        super().__init__(files, "parquet", label, names[0], drop)

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(int(_ask(file, lambda opened: opened.metadata.num_rows)) for file in self._files)

    def _fields(self) -> list[Any]:
        return [self._field(name, [schema.field(name) for schema in self._schemas]) for name in self._inside]

    def _field(self, name: str, fields: list[Any]) -> Any:
        """Return a column as it is read, from what the files say of it."""
        nullable = any(field.nullable for field in fields)
        if name == self.label:
            for field in fields:
                refuse_other_than_numbers(field.type, name)
            return pa.field(name, pa.float64(), nullable)
        first, *others = dict.fromkeys(flat_type(name, field.type) for field in fields)
        if others:
            raise DataError(
                f"the column {name!r} is of type {first} in one file and of type {others[0]} in another: write "
                "the files with one type"
            )
        return pa.field(name, first, nullable)

    def _read(self, schema: Any) -> Iterator[Any]:
        return cut(self._stored_batches(schema), rows_per_batch(schema))

    def _stored_batches(self, schema: Any) -> Iterator[Any]:
        for file in self._files:
            for batch in _batches(file, schema.names):
                arrays = [self._fit(file, batch.column(field.name), field) for field in schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _fit(self, file: Path, array: Any, field: Any) -> Any:
        if types.is_dictionary(array.type):
            array = _guard(file, lambda: array.dictionary.take(array.indices))
        if field.name == self.label:
            return as_floats(array)
        if array.null_count and not field.nullable:
            raise DataError(f"{file} is damaged: {field.name!r} has missing values, and its type has none")
        return array if array.type == field.type else _guard(file, lambda: array.cast(field.type))
