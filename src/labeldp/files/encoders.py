"""Tables as bytes: Parquet, Arrow, CSV and TSV, with nothing in them but names, types and values."""

from __future__ import annotations

import csv as python_csv
import io
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from labeldp._arrow import arrow
from labeldp.errors import ParameterError
from labeldp.files.examples import examples
from labeldp.files.residue import without_residue
from labeldp.files.text import DELIMITERS
from labeldp.files.types import rebuilt

__all__ = ["Encoder", "bare_schema", "changed_types", "check_schema", "encoder"]

BATCH_ROWS = 1 << 16
"""Rows in a batch of Arrow's formats, and of text that is put together at once."""

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
        for place, kind in enumerate(table.schema.types):
            if arrow().core.types.is_dictionary(kind):
                table = table.set_column(place, table.schema.field(place), _with_used_words(table.column(place)))
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        self._writer.close()


def _with_used_words(column: Any) -> Any:
    """Return a column of one piece with those words of its dictionary that it uses, in their order.

    Parquet writes a dictionary for each row group, used or not.
    """
    pa, pc = arrow().core, arrow().compute
    if not column.num_chunks:
        return column
    array = column.chunk(0)
    used = pc.unique(array.indices).drop_null()
    used = used.take(pc.array_sort_indices(used))
    places = pc.index_in(array.indices, value_set=used).cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(places, array.dictionary.take(used), ordered=array.type.ordered)


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
        self._writer = (ipc.new_stream if in_stream else ipc.new_file)(stream, schema)

    def write(self, table: Any) -> None:
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            arrays = [without_residue(array) for array in batch.columns]
            self._writer.write_batch(arrow().core.RecordBatch.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


class _Text:
    """Lines of text, in which a value has quotes if it needs them: that follows from the value alone."""

    def __init__(self, stream: Any, schema: Any, delimiter: str, compression: str | None) -> None:
        pa = arrow().core
        self._stream = pa.CompressedOutputStream(stream, compression) if compression else stream
        self._owned = compression is not None
        self._delimiter = delimiter
        header = io.StringIO()
        python_csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(schema.names)
        self._stream.write(header.getvalue().encode())

    def write(self, table: Any) -> None:
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            self._stream.write(self._lines(batch))

    def _lines(self, batch: Any) -> Any:
        """Return the lines of some rows, one after the other, which is how Arrow keeps an array of them."""
        pa, pc = arrow().core, arrow().compute
        columns = [self._quoted(column) for column in batch.columns]
        if len(columns) == 1:  # a blank line is no row to most readers
            empty = pc.equal(pc.fill_null(columns[0], ""), "")
            columns[0] = pc.if_else(empty, pa.scalar('""', pa.large_string()), columns[0])
        columns[-1] = _put_together(columns[-1], "\n", "")
        lines = _put_together(*columns, self._delimiter) if len(columns) > 1 else columns[0]
        return _text_of(lines)

    def _quoted(self, column: Any) -> Any:
        pa, pc = arrow().core, arrow().compute
        text = column.cast(_plain_type(column.type)).cast(pa.large_string())
        special = f'"\n\r{self._delimiter}'
        data = bytes(_text_of(text))
        if not any(mark.encode() in data for mark in special):
            return text
        doubled = _put_together('"', pc.replace_substring(text, '"', '""'), '"', "")
        return pc.if_else(pc.match_substring_regex(text, f"[{special}]"), doubled, text)

    def close(self) -> None:
        if self._owned:
            self._stream.close()


def _put_together(*pieces: Any) -> Any:
    """Return text made of arrays and words, the last of which stands between them; null is nothing."""
    pa, pc = arrow().core, arrow().compute
    texts = [pa.scalar(each, pa.large_string()) if isinstance(each, str) else each for each in pieces]
    return pc.binary_join_element_wise(*texts, null_handling="replace", null_replacement="")


def _text_of(array: Any) -> Any:
    """Return all characters of an array of long text, as Arrow keeps them."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[[array.offset, array.offset + len(array)]] if len(array) else [0, 0]
    return b"" if data is None else data.slice(int(ends[0]), int(ends[1] - ends[0]))


def _plain_type(kind: Any) -> Any:
    """Return what a column is as text: words of dictionaries."""
    return _plain_type(kind.value_type) if arrow().core.types.is_dictionary(kind) else kind


def _is_text(kind: Any) -> bool:
    types = arrow().core.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _has_digits(kind: Any) -> bool:
    """Whether values are written in digits or a word, and not as bytes that could be anything."""
    types = arrow().core.types
    return bool(types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind))
