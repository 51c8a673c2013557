"""Tables in Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
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
from labeldp.tables.memory import refuse_too_large
from labeldp.tables.source_file import SourceFile
from labeldp.tables.tables import Table


def _guard(source: SourceFile, call: Callable[[], Any]) -> Any:
    """Return the result of a call of Arrow, or refuse a file that is damaged."""
    try:
        return guard_arrow(call, f"{source.path} is damaged, or of another format than its name says")
    except DataError:
        source.refuse_change()
        raise


def _parquet(stream: Any) -> Any:
    import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

    return pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)


def parquet_schema(source: SourceFile) -> Any:
    """Return the columns of a file, as its metadata states them."""

    def read() -> Any:
        schema = _parquet(source.file).schema_arrow
        list(schema.names)  # raises here, where it is caught, if a name is no text
        return schema

    return _guard(source, read)


class MemoryFile(SourceFile):
    """Rows of Arrow in memory, as the Parquet file that they would be.

    Parameters
    ----------
    rows : object with the method ``__arrow_c_stream__``
        Is read once, to its end.
    """

    def __init__(self, rows: Any) -> None:
        buffer = pa.BufferOutputStream()
        guard_arrow(
            lambda: _write_rows(rows, buffer), "the rows cannot be read, or Parquet lacks one of their types"
        )
        self.path, self.rights = Path("the table"), 0o666
        self.file = pa.BufferReader(buffer.getvalue())

    def refuse_change(self) -> None:
        """Do nothing: nobody else has these bytes."""


def _write_rows(rows: Any, stream: Any) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

    reader = pa.RecordBatchReader.from_stream(rows)
    with pq.ParquetWriter(stream, reader.schema) as writer:
        for batch in reader:
            refuse_too_large(stream.tell() + batch.nbytes)
            writer.write_batch(batch)


class ParquetTable(Table):
    """A table in a Parquet file."""

    def __init__(self, source: SourceFile, labels: Sequence[str], drop: Collection[str] = ()) -> None:
        self._stored = parquet_schema(source)
        self.rows = int(_guard(source, lambda: _parquet(source.file).metadata.num_rows))
        super().__init__(source, "parquet", labels, list(self._stored.names), drop)

    def _fields(self) -> list[Any]:
        return [self._field(self._stored.field(name)) for name in self._inside]

    def _field(self, field: Any) -> Any:
        """Return a column as it is read, from the file's schema."""
        if field.name not in self.labels:
            return pa.field(field.name, flat_type(field.name, field.type), field.nullable)
        refuse_other_than_numbers(field.type, field.name)
        return pa.field(field.name, pa.float64())

    def _read(self, schema: Any) -> Iterator[Any]:
        return cut(self._stored_batches(schema), rows_per_batch(schema.types))

    def _stored_batches(self, schema: Any) -> Iterator[Any]:
        """Yield batches page by page, so that a file of one huge row group needs no more memory than others."""
        rows = CELLS // max(8, len(schema.names))
        source = self.source
        file = _guard(source, lambda: _parquet(source.file))
        batches = _guard(source, lambda: file.iter_batches(batch_size=rows, columns=schema.names))
        while (batch := _guard(source, lambda: next(batches, None))) is not None:
            if batch.num_rows:
                arrays = [self._fit(batch.column(field.name), field) for field in schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        source.refuse_change()

    def _fit(self, array: Any, field: Any) -> Any:
        if types.is_dictionary(array.type):
            array = _guard(self.source, lambda: array.dictionary.take(array.indices))
        if field.name in self.labels:
            return as_floats(array)
        if array.null_count and not field.nullable:
            path = self.source.path
            raise DataError(f"{path} is damaged: {field.name!r} has missing values, and its type has none")
        return array if array.type == field.type else _guard(self.source, lambda: array.cast(field.type))
