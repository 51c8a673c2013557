"""Files of Parquet and Arrow: what they say of themselves, and their rows in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from labeldp.files.sources import Part, ask_arrow

__all__ = ["ask", "codec_of", "file_batches", "readable", "schema_of"]


def readable(part: Part, call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns, or say that the file is damaged."""
    return ask_arrow(call, f"{part.name} is damaged, or of another format than its name tells")


def ask(part: Part, format: str, question: Callable[[Any], Any]) -> Any:
    """Return what an open file answers."""
    with part.open() as stream:
        return readable(part, lambda: question(_open(stream, format)))


def _open(stream: Any, format: str) -> Any:
    """Return a reader; Arrow's file and stream formats go by the same names."""
    if format == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

        return pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)
    start = stream.read(6)
    stream.seek(0)
    return pa.ipc.open_file(stream) if start == b"ARROW1" else pa.ipc.open_stream(stream)


def schema_of(file: Any) -> Any:
    """Return the columns that an open file has."""
    schema = getattr(file, "schema_arrow", None) or file.schema
    list(schema.names)  # raises here, where it is caught, if a name is no text
    return schema


def codec_of(file: Any, label: str | None) -> str | None:
    """Return how the first public column of an open Parquet file is compressed."""
    meta = file.metadata
    columns = [meta.row_group(0).column(k) for k in range(meta.num_columns)] if meta.num_row_groups else []
    return next((str(each.compression).lower() for each in columns if each.path_in_schema != label), None)


def file_batches(part: Part, format: str, names: list[str], rows: int) -> Iterator[Any]:
    """Yield batches of a file, of at most so many rows; they end wherever the file's own do."""
    batches = (_parquet_batches if format == "parquet" else _arrow_batches)(part, names, rows)
    while (batch := readable(part, lambda: next(batches, None))) is not None:
        if batch.num_rows:
            yield batch.select(names)


def _parquet_batches(part: Part, names: list[str], rows: int) -> Iterator[Any]:
    """Yield batches page by page, so that a file of one huge row group needs no more memory than others."""
    with part.open() as stream:
        yield from _open(stream, "parquet").iter_batches(batch_size=rows, columns=names)


def _arrow_batches(part: Part, names: list[str], rows: int) -> Iterator[Any]:
    """Yield batches of one of Arrow's files or streams, checked to the last offset."""
    with part.open() as stream:
        reader = _open(stream, "arrow")
        whole = iter(reader) if not hasattr(reader, "get_batch") else _some_columns(stream, reader.schema, names)
        for batch in whole:
            batch.validate(full=True)  # offsets are taken on trust otherwise, and could point anywhere
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)


def _some_columns(stream: Any, schema: Any, names: list[str]) -> Iterator[Any]:
    options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in names])
    reader = pa.ipc.open_file(stream, options=options)
    return (reader.get_batch(i) for i in range(reader.num_record_batches))
