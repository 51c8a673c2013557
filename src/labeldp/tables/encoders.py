"""Tables as bytes: Parquet, CSV, TSV and Excel, with nothing in them but names, types and values."""

from __future__ import annotations

import csv as python_csv
import datetime
import io
import math
import re
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.tables.dialect import Dialect
from labeldp.tables.excel import openpyxl
from labeldp.tables.paths import DELIMITERS

BATCH_ROWS = 1 << 16
"""Rows of text that are put together at once."""


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
    dialect: Dialect | None = None,
) -> Encoder:
    """Return an encoder to an Arrow stream."""
    if format in DELIMITERS:
        return _Text(stream, schema, (dialect or Dialect()).completed(format), compression)
    return _Excel(stream, schema) if format == "xlsx" else _Parquet(stream, schema)


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


# ---- Excel ----------------------------------------------------------------------------------------------------

_FIRST_DAY = datetime.date(1900, 3, 1)
"""Excel takes 1900 for a leap year: days before are written as text."""

_THEN = (1980, 1, 1, 0, 0, 0)
_TIMES = re.compile(rb">\d{4}-\d\d-\d\dT[^<]*<")


class _Excel:
    """Writes one sheet; the file is the same for the same values, whenever it is written."""

    def __init__(self, stream: Any, schema: Any) -> None:
        self._stream = stream
        self._book = openpyxl().Workbook(write_only=True)
        self._sheet = self._book.create_sheet("Sheet1")
        self._header = [schema.names]

    def write(self, table: Any) -> None:
        for batch in table.to_batches():
            columns = [_cells(column) for column in batch.columns]  # first: a sheet with a row must be saved
            self._append([*self._header, *zip(*columns, strict=True)])
            self._header = []

    def _append(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self._sheet.append([self._cell(value) if isinstance(value, str) else value for value in row])

    def _cell(self, text: str) -> Any:
        """Return a cell of text; what looks like a formula or an error is neither."""
        from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415 (an extra)

        cell = WriteOnlyCell(self._sheet, text)
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        self._append(self._header)
        packed = io.BytesIO()
        self._book.save(packed)
        whole = io.BytesIO()
        with zipfile.ZipFile(packed) as old, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                data = old.read(name)
                if name == "docProps/core.xml":
                    data = _TIMES.sub(b">2000-01-01T00:00:00Z<", data)
                new.writestr(zipfile.ZipInfo(name, _THEN), data, zipfile.ZIP_DEFLATED)
        self._stream.write(whole.getvalue())


def _cells(column: Any) -> list[Any]:
    """Return a column as Python's values, of types that a sheet has; the rest is text."""
    kind = column.type
    if types.is_floating(kind) or types.is_decimal(kind):
        numbers = column.cast(pa.float64(), safe=False).to_pylist()
        return [None if value is None or math.isnan(value) else value for value in numbers]
    if types.is_date(kind):
        days = column.cast(pa.date32(), safe=False).to_pylist()
        return [value if value is None or value >= _FIRST_DAY else str(value) for value in days]
    if types.is_timestamp(kind) and kind.tz is None:
        times = column.cast(pa.timestamp("us"), safe=False).to_pylist()
        return [value if value is None or value.date() >= _FIRST_DAY else str(value) for value in times]
    if types.is_boolean(kind) or types.is_integer(kind):
        return list(column.to_pylist())
    return list(column.cast(pa.large_string()).to_pylist())
