"""Tables as bytes: Parquet, CSV and TSV, with nothing in them but names, types and values.

Names, types and values that a format cannot hold are refused before the charge.
"""

from __future__ import annotations

import csv as python_csv
import io
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.errors import ParameterError
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.mechanisms.typed_data import canonical
from labeldp.tables.batches import flat_type, is_text
from labeldp.tables.dialect import Dialect
from labeldp.tables.paths import DELIMITERS

BATCH_ROWS = 1 << 16
"""Rows of text that are put together at once."""


class ParquetFileWriter:
    """Writes tables to an Arrow stream as Parquet, each as one row group."""

    def __init__(self, stream: Any, schema: Any) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

        self._writer = pq.ParquetWriter(stream, schema)

    def write(self, table: Any) -> None:
        """Add rows."""
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()


class TextFileWriter:
    """Writes tables to an Arrow stream as lines; a value has quotes if it needs them, by the value alone."""

    def __init__(self, stream: Any, schema: Any, dialect: Dialect) -> None:
        self._stream = stream
        self._delimiter, self._decimal = str(dialect.separator), str(dialect.decimal)
        header = io.StringIO()
        python_csv.writer(header, delimiter=self._delimiter, lineterminator="\n").writerow(schema.names)
        stream.write(header.getvalue().encode(str(dialect.encoding)))

    def write(self, table: Any) -> None:
        """Add rows."""
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            columns = [self._quote(column) for column in batch.columns]
            if len(columns) == 1:  # a blank line is no row to most readers
                empty = pc.equal(pc.fill_null(columns[0], ""), "")
                columns[0] = pc.if_else(empty, pa.scalar('""', pa.large_string()), columns[0])
            columns[-1] = _join(columns[-1], "\n", between="")
            self._stream.write(_characters(_join(*columns, between=self._delimiter)))

    def _quote(self, column: Any) -> Any:
        kind, text = column.type, column.cast(pa.large_string())
        if self._decimal != "." and (types.is_floating(kind) or types.is_decimal(kind)):
            text = pc.replace_substring(text, ".", self._decimal)
        special = f'"\n\r{self._delimiter}'
        data = bytes(_characters(text))
        if not any(mark.encode() in data for mark in special):
            return text
        doubled = _join('"', pc.replace_substring(text, '"', '""'), '"', between="")
        return pc.if_else(pc.match_substring_regex(text, f"[{re.escape(special)}]"), doubled, text)

    def close(self) -> None:
        """Do nothing: text has no end."""


def _join(*pieces: Any, between: str) -> Any:
    """Return arrays and words joined; null is nothing."""
    texts = [
        pa.scalar(piece, pa.large_string()) if isinstance(piece, str) else piece for piece in (*pieces, between)
    ]
    return pc.binary_join_element_wise(*texts, null_handling="replace", null_replacement="")


def _characters(array: Any) -> Any:
    """Return all characters of an array of long text, one value after the other, which is how Arrow keeps them."""
    _, offsets, data = array.buffers()
    positions = np.frombuffer(offsets, np.int64)
    first = int(positions[array.offset])
    last = int(positions[array.offset + len(array)])
    return b"" if data is None else data.slice(first, last - first)


# ---- limits of formats ----------------------------------------------------------------------------------------

MOST_NAMES = MAX_TEXT // 4
"""Characters of all names together as a card writes them; it may list them twice."""

_SIMPLE = (is_text, types.is_integer, types.is_floating, types.is_boolean, types.is_null)
"""Types whose values are written without a conversion that could fail."""

_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{4})?)?$"
"""Days and times of the years 0 to 9999: text has no others."""


def refuse_schema(schema: Any, format: str) -> None:
    r"""Refuse columns that a format cannot hold.

    Examples
    --------
    >>> refuse_schema(pa.schema({"a\n": pa.int64()}), "csv")
    Traceback (most recent call last):
    labeldp.errors.ParameterError: CSV cannot hold line breaks in names of columns: rename the column
    """
    if format in DELIMITERS and any(mark in name for name in schema.names for mark in "\r\n\0"):
        raise ParameterError(f"{format.upper()} cannot hold line breaks in names of columns: rename the column")
    if len(canonical(schema.names)) > MOST_NAMES:
        raise ParameterError(f"the column names take more than {MOST_NAMES:,} characters on a card: shorten them")
    for field in schema:
        if flat_type(field.name, field.type) != field.type:
            _refuse(field, format)
    refuse_values(pa.RecordBatch.from_pylist([], schema), format)


def refuse_values(batch: Any, format: str) -> None:
    """Refuse public values that a format cannot hold.

    Examples
    --------
    >>> batch = pa.record_batch({"until": pa.array([1 << 30], pa.date32())})
    >>> refuse_values(batch, "csv")
    Traceback (most recent call last):
    labeldp.errors.ParameterError: CSV cannot hold all values of the column 'until' of type date32...
    """
    for field, column in zip(batch.schema, batch.columns, strict=True):
        try:
            column.validate(full=True)
            is_written = any(check(column.type) for check in _SIMPLE) or _can_write(column, format)
        except (pa.ArrowException, OverflowError):
            is_written = False
        if not is_written:
            _refuse(field, format)


def _can_write(column: Any, format: str) -> bool:
    """Return whether a column can be written, or raise an error of Arrow."""
    kind = column.type
    if format in DELIMITERS:
        if not (types.is_decimal(kind) or types.is_temporal(kind)):  # bytes could be anything
            return False
        text = column.cast(pa.large_string())
        pattern = _DAY if types.is_date(kind) or types.is_timestamp(kind) else ""
        return pc.all(pc.match_substring_regex(text, pattern)).as_py() is not False
    trial = ParquetFileWriter(pa.BufferOutputStream(), pa.schema({"c": kind}))
    trial.write(pa.table([column], ["c"]))
    trial.close()
    return True


def _refuse(field: Any, format: str) -> None:
    raise ParameterError(
        f"{format.upper()} cannot hold all values of the column {field.name!r} of type {field.type}, or they are "
        "damaged: convert it, or write another format"
    )
