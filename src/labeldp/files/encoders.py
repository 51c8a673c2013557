"""Tables as bytes: Parquet, Arrow, CSV and TSV, with nothing in them but names, types and values."""

from __future__ import annotations

import csv as python_csv
import io
from collections.abc import Sequence
from typing import Any, Protocol

from labeldp._arrow import arrow
from labeldp.errors import ParameterError
from labeldp.files.examples import examples
from labeldp.files.text import DELIMITERS
from labeldp.files.types import rebuilt

__all__ = ["Encoder", "bare_schema", "changed_types", "check_schema", "encoder"]

_KEPT = (b"ARROW:extension:name", b"ARROW:extension:metadata")
"""The only metadata that is kept: without it a column would lose its type."""


class Encoder(Protocol):
    """Turns tables into bytes."""

    def write(self, table: Any) -> None:
        """Add rows."""

    def close(self) -> None:
        """End the file."""


def encoder(
    stream: Any, schema: Any, format: str, *, compression: str | None = None, plain: Sequence[str] = ()
) -> Encoder:
    """Return an encoder that writes to an Arrow stream."""
    if format in DELIMITERS:
        return _Text(stream, schema, DELIMITERS[format], compression)
    if format == "parquet":
        return _Parquet(stream, schema, compression, plain)
    return _Ipc(stream, schema, in_stream=format == "arrow-stream")


def check_schema(schema: Any, format: str) -> None:
    """Refuse columns that a format cannot hold, by a trial before any work."""
    pa = arrow().core
    if format in DELIMITERS:
        for field in schema:
            kind = _plain_type(field.type)
            if pa.types.is_nested(kind) or not (_is_text(kind) or _has_digits(kind)):
                raise ParameterError(
                    f"{format.upper()} cannot hold the column {field.name!r} of type {field.type}: "
                    "write Parquet or Arrow"
                )
    for field in schema:
        one = pa.schema([field])
        for values in (pa.nulls(0, field.type), *examples(field.type)):
            if not _can_write(pa.table([values], schema=one), format):
                raise ParameterError(
                    f"{format} cannot hold the column {field.name!r} of type {field.type}: convert it, or write "
                    "another format"
                )


def changed_types(schema: Any, format: str) -> dict[str, Any]:
    """Return the columns that come back from a format with another type, and that type; of text nothing is said.

    Examples
    --------
    >>> import pyarrow as pa
    >>> changed_types(pa.schema([("when", pa.timestamp("s"))]), "parquet")
    {'when': TimestampType(timestamp[ms])}
    """
    pa, parquet = arrow().core, arrow().parquet
    if format != "parquet":
        return {}
    sink = pa.BufferOutputStream()
    parquet.ParquetWriter(sink, schema).close()
    written = parquet.ParquetFile(pa.BufferReader(sink.getvalue())).schema_arrow
    return {old.name: new.type for old, new in zip(schema, written, strict=True) if old.type != new.type}


def _can_write(table: Any, format: str) -> bool:
    pa = arrow().core
    try:
        trial = encoder(pa.BufferOutputStream(), table.schema, format)
        trial.write(table)
        trial.close()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True


# ---- schemas without metadata -------------------------------------------------------------------------


def bare_schema(schema: Any) -> Any:
    """Return a schema with names and types, and no metadata that is not part of a type."""
    return arrow().core.schema([_bare(field) for field in schema])


def _bare(field: Any) -> Any:
    kept = {key: value for key, value in (field.metadata or {}).items() if key in _KEPT}
    return field.remove_metadata().with_type(rebuilt(field.type, _bare)).with_metadata(kept or None)


# ---- the formats ----------------------------------------------------------------------------------------


class _Parquet:
    def __init__(self, stream: Any, schema: Any, compression: str | None, plain: Sequence[str]) -> None:
        self._writer = arrow().parquet.ParquetWriter(
            stream, schema, compression=_codec(compression), use_dictionary=_repeating(schema, plain)
        )

    def write(self, table: Any) -> None:
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        self._writer.close()


def _codec(name: str | None) -> str:
    known = {"uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "brotli": "brotli", "zstd": "zstd"}
    return known.get(name or "snappy", "lz4" if name and "lz4" in name else "snappy")


def _repeating(schema: Any, plain: Sequence[str]) -> bool | list[str]:
    """Return the columns that are worth a dictionary, as Parquet names them."""
    if not plain:
        return True
    pa, parquet = arrow().core, arrow().parquet
    sink = pa.BufferOutputStream()
    parquet.ParquetWriter(sink, schema).close()
    leaves = parquet.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    paths = [leaves.column(i).path for i in range(len(leaves))]
    return [path for path in paths if path not in plain]


class _Ipc:
    def __init__(self, stream: Any, schema: Any, *, in_stream: bool) -> None:
        ipc = arrow().core.ipc
        self._schema = schema
        self._words: dict[int, Any] = {}
        make = ipc.new_stream if in_stream else ipc.new_file
        self._writer = make(stream, schema, options=ipc.IpcWriteOptions(emit_dictionary_deltas=True))

    def write(self, table: Any) -> None:
        for batch in table.to_batches(max_chunksize=1 << 16):
            arrays = [self._extended(i, array) for i, array in enumerate(batch.columns)]
            self._writer.write_batch(arrow().core.RecordBatch.from_arrays(arrays, schema=self._schema))

    def _extended(self, place: int, array: Any) -> Any:
        """Return a dictionary column with all words so far: a file has one dictionary, which may grow."""
        pa, pc = arrow().core, arrow().compute
        if not pa.types.is_dictionary(array.type):
            return array
        old = self._words.get(place)
        if old is None and not len(array.dictionary):  # nothing can be added to a dictionary without words
            old = pa.nulls(1, array.type.value_type)
        if old is None or array.dictionary.equals(old):
            self._words[place] = array.dictionary
            return array
        new = array.dictionary.filter(pc.invert(pc.is_in(array.dictionary, old)))
        words = self._words[place] = pa.concat_arrays([old, new]) if len(new) else old
        moved = pc.index_in(array.dictionary, words).take(array.indices).cast(array.type.index_type)
        return pa.DictionaryArray.from_arrays(moved, words, ordered=array.type.ordered)

    def close(self) -> None:
        self._writer.close()


class _Text:
    def __init__(self, stream: Any, schema: Any, delimiter: str, compression: str | None) -> None:
        pa, csv = arrow().core, arrow().csv
        self._stream = pa.CompressedOutputStream(stream, compression) if compression else stream
        self._owned = compression is not None
        self._bare = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
        self._quoted = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed")
        header = io.StringIO()
        python_csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(schema.names)
        self._stream.write(header.getvalue().encode())

    def write(self, table: Any) -> None:
        table = _plain(table)
        for batch in table.to_batches(max_chunksize=1 << 16):
            self._stream.write(self._lines(batch))

    def _lines(self, batch: Any) -> Any:
        """Return lines without quotes if none of them needs any; empty text looks the same in both."""
        pa, csv = arrow().core, arrow().csv
        sink = pa.BufferOutputStream()
        try:
            csv.write_csv(batch, sink, self._bare)
        except pa.ArrowInvalid:
            sink = pa.BufferOutputStream()
            csv.write_csv(_empty_as_null(batch), sink, self._quoted)
        return sink.getvalue()

    def close(self) -> None:
        if self._owned:
            self._stream.close()


def _plain_type(kind: Any) -> Any:
    """Return what a column is as text: words of dictionaries, and text that Arrow can write."""
    pa = arrow().core
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    return pa.large_string() if kind == pa.string_view() else kind


def _empty_as_null(batch: Any) -> Any:
    """Return a batch without empty text: in quotes it would be told apart from null, in some lines only."""
    pa, pc = arrow().core, arrow().compute
    if batch.num_columns == 1:  # a blank line is no row to most readers
        return batch
    columns = [
        pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column) if _is_text(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _is_text(kind: Any) -> bool:
    types = arrow().core.types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _has_digits(kind: Any) -> bool:
    """Whether values are written in digits or a word, and not as bytes that could be anything."""
    types = arrow().core.types
    return bool(types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind))


def _plain(table: Any) -> Any:
    pa = arrow().core
    fields = [pa.field(field.name, _plain_type(field.type)) for field in table.schema]
    return table if [f.type for f in fields] == table.schema.types else table.cast(pa.schema(fields))
