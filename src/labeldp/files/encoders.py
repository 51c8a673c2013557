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

from labeldp.errors import ParameterError
from labeldp.files.batches import SOLID, take_rows
from labeldp.files.columns import replace_inner_fields
from labeldp.files.dialect import Dialect
from labeldp.files.places import DELIMITERS

__all__ = [
    "Encoder",
    "bare_schema",
    "encoder",
    "parquet_file",
    "refuse_types",
    "without_residue",
]

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
    if format == "parquet":
        return _Parquet(stream, schema, compression, repeating)
    return _Ipc(stream, schema, in_stream=format == "arrow-stream")


def refuse_types(schema: Any, format: str) -> None:
    """Refuse columns that a format cannot hold, or whose rows cannot be selected, by a trial before any work."""
    for field in [schema.field(schema.types.index(kind)) for kind in dict.fromkeys(schema.types)]:
        if _hides_values(field.type):
            raise ParameterError(
                "columns of unions, list views, and extension types of nested values, such as "
                f"{field.name!r}, are not supported: convert it"
            )
        if format in DELIMITERS and not _is_plain(field.type):
            raise ParameterError(f"{format.upper()} cannot hold {_describe(field)}: write Parquet or Arrow")
        if not _can_write(field, format):
            raise ParameterError(f"{format} cannot hold {_describe(field)}: convert it, or write another format")


def _describe(field: Any) -> str:
    return f"the column {field.name!r} of type {field.type}"


def _can_write(field: Any, format: str) -> bool:
    schema = pa.schema([field.with_nullable(True)])  # what is tried has nulls
    try:
        batch = take_rows(pa.RecordBatch.from_arrays([pa.nulls(2, field.type)], schema=schema), np.array([1, 0]))
        trial = encoder(pa.BufferOutputStream(), schema, format)
        trial.write(pa.Table.from_batches([batch, batch]).unify_dictionaries().combine_chunks())
        trial.close()
    except pa.ArrowException:
        return False
    return True


def _hides_values(kind: Any) -> bool:
    """Whether more would be written than values: what a union does not select, or what an extension type wraps."""
    if isinstance(kind, pa.FixedShapeTensorType):
        return not _is_flat(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return not _is_flat(kind.storage_type)
    if types.is_run_end_encoded(kind):
        return not _is_flat(kind.value_type)
    inner = [kind.field(k).type for k in range(kind.num_fields)] if types.is_nested(kind) else []
    is_view = types.is_list_view(kind) or types.is_large_list_view(kind)
    return bool(is_view or types.is_union(kind) or any(map(_hides_values, inner)))


def _is_flat(kind: Any) -> bool:
    """Whether a type has no inner fields and no dictionary."""
    outer = isinstance(kind, pa.BaseExtensionType) or types.is_dictionary(kind) or types.is_run_end_encoded(kind)
    return not (outer or types.is_nested(kind))


def _is_plain(kind: Any) -> bool:
    """Whether values are text, or written in digits or a word, and not bytes that could be anything."""
    kind = _plain_type(kind)
    texts = [types.is_string, types.is_large_string, types.is_string_view]
    return any(check(kind) for check in [*texts, types.is_primitive, types.is_decimal, types.is_null])


def _plain_type(kind: Any) -> Any:
    """Return what a column is as text: words of dictionaries."""
    return _plain_type(kind.value_type) if types.is_dictionary(kind) else kind


def bare_schema(schema: Any) -> Any:
    """Return a schema with names and types, and no metadata that is not part of a type."""
    return pa.schema([_bare(field) for field in schema])


def _bare(field: Any) -> Any:
    kept = {key: value for key, value in (field.metadata or {}).items() if key in _KEPT}
    kind = replace_inner_fields(field.type, _bare)
    return field.remove_metadata().with_type(kind).with_metadata(kept or None)


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
        for place, kind in enumerate(table.schema.types):
            if types.is_dictionary(kind):
                table = table.set_column(place, table.schema.field(place), _with_used_words(table.column(place)))
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        self._writer.close()


def _with_used_words(column: Any) -> Any:
    """Return a column of one piece with those words of its dictionary that it uses, in their order.

    Parquet writes a dictionary for each row group, used or not.
    """
    if not column.num_chunks:
        return column
    array = column.chunk(0)
    used = pc.unique(array.indices).drop_null()
    used = used.take(pc.array_sort_indices(used))
    places = pc.index_in(array.indices, value_set=used).cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(places, array.dictionary.take(used))


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
        kind = _plain_type(column.type)
        text = column.cast(kind).cast(pa.large_string())
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


# ---- memory under nulls ---------------------------------------------------------------------------------------


def without_residue(array: Any) -> Any:  # noqa: PLR0911 (one for each kind of type)
    r"""Return an array that is equal, and has zeros where values are missing.

    Arrow's formats write the memory of an array, the places of missing values included, and nobody promises what
    is there: it may be anything that the process had in memory before, labels too.

    Examples
    --------
    >>> gap = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([1, 31415]))])
    >>> gap.to_pylist(), np.frombuffer(without_residue(gap).buffers()[1], np.int64).tolist()
    ([1, None], [1, 0])
    """
    kind = array.type
    if types.is_null(kind):
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, without_residue(array.storage))
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            without_residue(array.indices), without_residue(array.dictionary), ordered=kind.ordered
        )
    if types.is_struct(kind):
        inner = [without_residue(each) for each in array.flatten()]
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=_gaps(array)) if inner else array
    if types.is_list(kind) or types.is_large_list(kind):
        listed = pa.LargeListArray if types.is_large_list(kind) else pa.ListArray
        values = without_residue(array.flatten())
        return listed.from_arrays(_offsets(array, pc.list_value_length), values, type=kind, mask=_gaps(array))
    if types.is_run_end_encoded(kind):  # a run ended where a batch did
        return pc.run_end_encode(without_residue(pc.run_end_decode(array)), run_end_type=kind.run_end_type)
    if types.is_fixed_size_list(kind):
        return _fixed_size_list(array)
    if types.is_map(kind):
        return _map(array)
    if kind in SOLID:
        return without_residue(array.cast(SOLID[kind])).cast(kind)
    return _flat(array)


def _gaps(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _offsets(array: Any, lengths: Any) -> Any:
    """Return where values begin if missing ones take no space."""
    wide = (
        types.is_large_list(array.type) or types.is_large_string(array.type) or types.is_large_binary(array.type)
    )
    ends = np.cumsum(np.asarray(lengths(array).fill_null(0)))
    return pa.array(np.concatenate([[0], ends]), pa.int64() if wide else pa.int32())


def _flat(array: Any) -> Any:
    """Return a copy that is as long as its values: a buffer may go on after the last of them."""
    kind = array.type
    if types.is_boolean(kind):
        return pa.array(np.asarray(array.fill_null(False)), mask=np.asarray(array.is_null()))
    full = pa.concat_arrays([array.drop_null(), array.slice(0, 0)])
    if not array.null_count:
        return full
    there = np.asarray(array.is_valid())
    if types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind):
        width = kind.bit_width // 8
        places = np.zeros((len(array), width), np.uint8)
        if len(full):
            places[there] = np.frombuffer(full.buffers()[1], np.uint8, len(full) * width).reshape(-1, width)
        data: list[Any] = [places]
    else:  # text and bytes
        data = [_offsets(array, pc.binary_length).buffers()[1], full.buffers()[2] or b""]
    buffers = map(pa.py_buffer, [np.packbits(there, bitorder="little"), *data])
    return pa.Array.from_buffers(kind, len(array), list(buffers), array.null_count)


def _fixed_size_list(array: Any) -> Any:
    size, there = array.type.list_size, np.asarray(array.is_valid())
    places = np.repeat(np.cumsum(there) - 1, size) * size + np.tile(np.arange(size), len(array))
    values = array.flatten().take(pa.array(places, pa.int64(), mask=np.repeat(~there, size)))
    return pa.FixedSizeListArray.from_arrays(without_residue(values), type=array.type, mask=_gaps(array))


def _map(array: Any) -> Any:
    """Return a map by way of a list of pairs, which is what it is in memory."""
    pairs = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    kind, kept = pa.list_(pairs.type), array.buffers()[:2]
    listed = without_residue(
        pa.Array.from_buffers(kind, len(array), kept, array.null_count, array.offset, children=[pairs])
    )
    keys, items = listed.values.flatten()
    return pa.MapArray.from_arrays(listed.offsets, keys, items, type=array.type, mask=_gaps(array))
