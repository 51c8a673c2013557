"""Tables as bytes: Parquet, CSV and TSV, with nothing in them but names, types and values.

What a format cannot hold, names, types or values, is refused before the charge.
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

from labeldp.errors import DataError, ParameterError
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.mechanisms.typed_data import canonical
from labeldp.tables.batches import flat_type, is_text
from labeldp.tables.dialect import Dialect
from labeldp.tables.paths import DELIMITERS

BATCH_ROWS = 1 << 16
"""Rows of text that are put together at once."""


def encoder(
    stream: Any, schema: Any, format: str, *, compression: str | None = None, dialect: Dialect | None = None
) -> _Text | _Parquet:
    """Return an encoder to an Arrow stream: it writes tables, and is closed at the end."""
    if format in DELIMITERS:
        return _Text(stream, schema, (dialect or Dialect()).with_defaults(format), compression)
    return _Parquet(stream, schema)


# ---- the formats ----------------------------------------------------------------------------------------------


class _Parquet:
    def __init__(self, stream: Any, schema: Any) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

        self._writer = pq.ParquetWriter(stream, schema)

    def write(self, table: Any) -> None:
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        self._writer.close()


class _Text:
    """Lines of text, in which a value has quotes if it needs them: that follows from the value alone."""

    def __init__(self, stream: Any, schema: Any, dialect: Dialect, compression: str | None) -> None:
        self._stream = pa.CompressedOutputStream(stream, compression) if compression else stream
        self._owned = compression is not None
        self._delimiter, self._decimal = str(dialect.separator), str(dialect.decimal)
        header = io.StringIO()
        python_csv.writer(header, delimiter=self._delimiter, lineterminator="\n").writerow(schema.names)
        self._stream.write(header.getvalue().encode(str(dialect.encoding)))

    def write(self, table: Any) -> None:
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            self._stream.write(self._lines(batch))

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


# ---- what a format cannot hold --------------------------------------------------------------------------------

MOST_NAMES = MAX_TEXT // 4
"""Characters of all names together as a card writes them; it may list them twice."""

_SECONDS = (-62_135_596_800, 253_402_300_799)
"""The first second of year 1 and the last of year 9999: text has no other dates."""

_PLAIN = (is_text, types.is_primitive, types.is_decimal, types.is_null)
"""Types that text has."""

_SIMPLE = (
    *(types.is_integer, types.is_floating, types.is_boolean, types.is_null, types.is_date32),
    *(is_text, types.is_binary),
)
"""Types whose values are written without a conversion that could fail."""


def refuse_schema(schema: Any, format: str) -> None:
    r"""Refuse columns that a format cannot hold.

    Parameters
    ----------
    schema : pyarrow.Schema
    format : str

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
        is_plain = any(check(field.type) for check in _PLAIN)  # bytes could be anything
        if flat_type(field.name, field.type) != field.type or (format in DELIMITERS and not is_plain):
            _refuse(field, format)
        _refuse_unless_written(field, pa.array([], field.type), format)


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
        except pa.ArrowInvalid:
            raise DataError(f"the column {field.name!r} is damaged: some values are not {field.type}") from None
        _refuse_unless_written(field, column, format)


def _refuse_unless_written(field: Any, column: Any, format: str) -> None:
    """Refuse a column that cannot be written."""
    try:
        if format in DELIMITERS and _has_distant_dates(column):
            _refuse(field, format)
        if not any(check(column.type) for check in _SIMPLE):
            trial = encoder(pa.BufferOutputStream(), pa.schema({"c": column.type}), format)
            trial.write(pa.table([column], ["c"]))
            trial.close()
    except (pa.ArrowException, OverflowError):
        _refuse(field, format)


def _refuse(field: Any, format: str) -> None:
    raise ParameterError(
        f"{format.upper()} cannot hold all values of the column {field.name!r} of type {field.type}: convert it, "
        "or write another format"
    )


def _has_distant_dates(column: Any) -> bool:
    kind = column.type
    if not (types.is_date(kind) or types.is_timestamp(kind)):
        return False
    local = pc.local_timestamp(column) if types.is_timestamp(kind) and kind.tz is not None else column
    ends = pc.min_max(local.cast(pa.timestamp("s"), safe=False).cast(pa.int64())).as_py().values()
    return any(value is not None and not _SECONDS[0] <= value <= _SECONDS[1] for value in ends)
