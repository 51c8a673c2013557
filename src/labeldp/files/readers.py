"""Files of Parquet and Arrow: what they say of themselves, and their rows in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from labeldp._arrow import arrow
from labeldp.errors import DataError
from labeldp.files.sources import Part

__all__ = ["OPENERS", "ask", "codec_of", "file_batches", "parquet_file", "readable", "schema_of"]


def readable(part: Part, call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns, or say that the file is damaged, without the original, which may quote it."""
    pa = arrow().core
    try:
        return call()
    except (pa.ArrowException, EOFError, UnicodeDecodeError) as error:
        if isinstance(error, KeyboardInterrupt | pa.ArrowCancelled | MemoryError):
            raise
    except OSError as error:
        if error.errno is not None:
            raise
    raise DataError(f"{part.name} is damaged, or of another format than its name tells")


def ask(part: Part, question: Callable[[Any], Any], opener: Callable[[Any], Any]) -> Any:
    """Return what an open file answers."""
    with part.open() as stream:
        return readable(part, lambda: question(opener(stream)))


def parquet_file(stream: Any) -> Any:
    """Return a reader of a Parquet file."""
    return arrow().parquet.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)


def _arrow_file(stream: Any) -> Any:
    """Return a reader of Arrow's file or stream format: both go by the same names."""
    ipc = arrow().core.ipc
    start = stream.read(6)
    stream.seek(0)
    return ipc.open_file(stream) if start == b"ARROW1" else ipc.open_stream(stream)


OPENERS: dict[str, Callable[[Any], Any]] = {
    "parquet": parquet_file,
    "arrow": _arrow_file,
    "arrow-stream": _arrow_file,
}


def schema_of(file: Any) -> Any:
    """Return the columns that an open file has."""
    schema = getattr(file, "schema_arrow", None) or file.schema
    list(schema.names)  # raises here, where it is caught, if a name is no text
    return schema


def codec_of(file: Any, label: str | None) -> str | None:
    """Return how the first public column of an open Parquet file is compressed."""
    meta = file.metadata
    columns = [meta.row_group(0).column(k) for k in range(meta.num_columns)] if meta.num_row_groups else []
    public = [column for column in columns if column.path_in_schema != label]
    return str(public[0].compression).lower() if public else None


def file_batches(part: Part, format: str, names: list[str], rows: int) -> Iterator[Any]:
    """Yield batches of a file, of at most so many rows; they end wherever the file's own do."""
    batches = (_parquet_batches if format == "parquet" else _arrow_batches)(part, names, rows)
    while (batch := readable(part, lambda: next(batches, None))) is not None:
        if batch.num_rows:
            yield batch


def _parquet_batches(part: Part, names: list[str], rows: int) -> Iterator[Any]:
    """Yield batches page by page, so that a file of one huge row group needs no more memory than others."""
    with part.open() as stream:
        for batch in parquet_file(stream).iter_batches(batch_size=rows, columns=names):
            yield batch.select(names)


def _arrow_batches(part: Part, names: list[str], rows: int) -> Iterator[Any]:
    """Yield batches of one of Arrow's files or streams, checked to the last offset."""
    ipc = arrow().core.ipc
    with part.open() as stream:
        reader = _arrow_file(stream)
        if hasattr(reader, "get_batch"):
            options = ipc.IpcReadOptions(included_fields=[reader.schema.get_field_index(name) for name in names])
            reader = ipc.open_file(stream, options=options)
            whole = (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            whole = iter(reader)
        for batch in whole:
            batch.validate(full=True)  # offsets are taken on trust otherwise, and could point anywhere
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows).select(names)
