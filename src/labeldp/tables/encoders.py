"""Tables as bytes: Parquet, Arrow, CSV and TSV, with nothing in them but names, types and values."""

from __future__ import annotations

import codecs
import csv as python_csv
import io
import re
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.tables.dialect import Dialect
from labeldp.tables.excel_writer import ExcelEncoder
from labeldp.tables.paths import DELIMITERS

BATCH_ROWS = 1 << 16
"""Rows in a batch of Arrow's formats, and of text that is put together at once."""


class Encoder(Protocol):
    """Turns tables into bytes."""

    def write(self, table: Any) -> None:
        """Add rows."""

    def close(self) -> None:
        """End the file."""


def bare_schema(schema: Any) -> Any:
    """Return a schema with names and types, and no metadata."""
    return pa.schema([field.remove_metadata() for field in schema])


def encoder(
    stream: Any,
    schema: Any,
    format: str,
    *,
    compression: str | None = None,
    repeating: Sequence[str] = (),
    dialect: Dialect | None = None,
) -> Encoder:
    """Return an encoder to an Arrow stream; ``repeating`` columns are worth a dictionary in Parquet."""
    if format in DELIMITERS:
        return _Text(stream, schema, (dialect or Dialect()).completed(format), compression)
    if format == "xlsx":
        return ExcelEncoder(stream, schema)
    if format == "parquet":
        return _Parquet(stream, schema, compression, repeating)
    return _Ipc(stream, schema, in_stream=format == "arrow-stream")


# ---- the formats ----------------------------------------------------------------------------------------------


def parquet_file(schema: Any) -> Any:
    """Return an empty Parquet file of a schema: what types it keeps, and what it calls its columns."""
    import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    return pq.ParquetFile(pa.BufferReader(sink.getvalue()))


class _Parquet:
    def __init__(self, stream: Any, schema: Any, compression: str | None, repeating: Sequence[str]) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

        self._writer = pq.ParquetWriter(
            stream, schema, compression=_codec(compression), use_dictionary=list(repeating)
        )

    def write(self, table: Any) -> None:
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        self._writer.close()


def without_residue(array: Any) -> Any:
    r"""Return an array that is equal, and has zeros where values are missing.

    Arrow's formats write the memory of an array, also where values are missing, and that may be anything that the
    process had in memory before, labels too.

    Examples
    --------
    >>> gap = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([1, 31415]))])
    >>> gap.to_pylist(), np.frombuffer(without_residue(gap).buffers()[1], np.int64).tolist()
    ([1, None], [1, 0])
    """
    kind = array.type
    if types.is_null(kind):
        return array
    width = kind.bit_width // 8 if types.is_fixed_size_binary(kind) else 64  # bytes of the widest other type
    zeros = [pa.py_buffer(bytes(width))] * (kind.num_buffers - 1)
    zero = pa.Array.from_buffers(kind, 1, [None, *zeros])[0]
    full = pa.concat_arrays([array.fill_null(zero), array.slice(0, 0)])  # as long as its values
    there = np.packbits(np.asarray(array.is_valid()), bitorder="little")
    return pa.Array.from_buffers(kind, len(array), [pa.py_buffer(there), *full.buffers()[1:]], array.null_count)


def _codec(name: str | None) -> str:
    known = {"uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "brotli": "brotli", "zstd": "zstd"}
    return known.get(name or "snappy", "lz4" if name and "lz4" in name else "snappy")


class _Ipc:
    def __init__(self, stream: Any, schema: Any, *, in_stream: bool) -> None:
        self._schema = schema
        self._writer = (pa.ipc.new_stream if in_stream else pa.ipc.new_file)(stream, schema)

    def write(self, table: Any) -> None:
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            arrays = [without_residue(array) for array in batch.columns]
            self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


class _Text:
    """Lines of text, in which a value has quotes if it needs them: that follows from the value alone."""

    def __init__(self, stream: Any, schema: Any, dialect: Dialect, compression: str | None) -> None:
        self._stream = pa.CompressedOutputStream(stream, compression) if compression else stream
        self._owned = compression is not None
        self._delimiter, self._decimal = str(dialect.separator), str(dialect.decimal)
        encoding = str(dialect.encoding)
        self._encoder = None if encoding == "utf-8" else codecs.getincrementalencoder(encoding)()
        header = io.StringIO()
        python_csv.writer(header, delimiter=self._delimiter, lineterminator="\n").writerow(schema.names)
        self._put(header.getvalue().encode())

    def write(self, table: Any) -> None:
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            self._put(self._lines(batch))

    def _put(self, data: Any) -> None:
        self._stream.write(data if self._encoder is None else self._encoder.encode(bytes(data).decode()))

    def _lines(self, batch: Any) -> Any:
        """Return the lines of some rows, one after the other, which is how Arrow keeps an array of them."""
        columns = [self._quote(column) for column in batch.columns]
        if len(columns) == 1:  # a blank line is no row to most readers
            empty = pc.equal(pc.fill_null(columns[0], ""), "")
            columns[0] = pc.if_else(empty, pa.scalar('""', pa.large_string()), columns[0])
        columns[-1] = _join(columns[-1], "\n", "")
        return _characters(_join(*columns, self._delimiter) if len(columns) > 1 else columns[0])

    def _quote(self, column: Any) -> Any:
        kind, text = column.type, column.cast(pa.large_string())
        if self._decimal != "." and (types.is_floating(kind) or types.is_decimal(kind)):
            text = pc.replace_substring(text, ".", self._decimal)
        special = f'"\n\r{self._delimiter}'
        data = bytes(_characters(text))
        if not any(mark.encode() in data for mark in special):
            return text
        doubled = _join('"', pc.replace_substring(text, '"', '""'), '"', "")
        return pc.if_else(pc.match_substring_regex(text, f"[{re.escape(special)}]"), doubled, text)

    def close(self) -> None:
        if self._owned:
            self._stream.close()


def _join(*pieces: Any) -> Any:
    """Return arrays and words joined, the last of which stands between them; null is nothing."""
    texts = [pa.scalar(each, pa.large_string()) if isinstance(each, str) else each for each in pieces]
    return pc.binary_join_element_wise(*texts, null_handling="replace", null_replacement="")


def _characters(array: Any) -> Any:
    """Return all characters of an array of long text, as Arrow keeps them."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[[array.offset, array.offset + len(array)]] if len(array) else [0, 0]
    return b"" if data is None else data.slice(int(ends[0]), int(ends[1] - ends[0]))
