"""Tables as bytes: Parquet, CSV, TSV and Excel, with nothing in them but names, types and values.

What a format cannot hold, names, types, counts or values, is refused before the charge.
"""

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

from labeldp.errors import DataError, ParameterError
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.mechanisms.typed_data import canonical
from labeldp.tables.batches import flat_type, is_text
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


# ---- what a format cannot hold --------------------------------------------------------------------------------

MOST_COLUMNS, MOST_ROWS = 16_384, 1_048_575
"""Columns of a sheet, and rows below its header."""

MOST_CHARACTERS = 32_767
MOST_INTEGER = 1 << 53

MOST_NAMES = MAX_TEXT // 4
"""Characters of all names together as a card writes them; it may list them twice."""

_XML = r"\t\n\r\x20-\x{D7FF}\x{E000}-\x{FFFD}\x{10000}-\x{10FFFF}"
"""The characters that XML 1.0 can hold."""

_SECONDS = (-62_135_596_800, 253_402_300_799)
"""The first second of year 1 and the last of year 9999: text has no other dates."""


def refuse_schema(schema: Any, format: str) -> None:
    r"""Refuse columns that a format cannot hold.

    Parameters
    ----------
    schema : pyarrow.Schema
    format : str

    Examples
    --------
    >>> refuse_schema(pa.schema({"a\x01": pa.int64()}), "xlsx")
    Traceback (most recent call last):
    labeldp.errors.ParameterError: XLSX cannot hold control characters and others that XML does not have, ...
    """
    names = schema.names
    breaks = {"parquet": "", "xlsx": "\r"}.get(format, "\r\n\0")
    broken = next((name for name in names if any(mark in name for mark in breaks)), None)
    if broken is not None:
        raise ParameterError(f"{format.upper()} cannot hold line breaks, as in the name {broken!r}: rename it")
    if format == "xlsx" and len({name.strip() for name in names} - {""}) < len(names):
        raise ParameterError("XLSX cannot hold column names that are blank, or differ in spaces only: rename one")
    if len(canonical(names)) > MOST_NAMES:
        raise ParameterError(f"the column names take more than {MOST_NAMES:,} characters on a card: shorten them")
    if format == "xlsx" and len(names) > MOST_COLUMNS:
        raise ParameterError(f"a sheet of Excel has {MOST_COLUMNS:,} columns at most: write CSV or Parquet")
    _refuse_column(pa.array(names, pa.large_string()), "the column names have", format)
    for field in {field.type: field for field in reversed(list(schema))}.values():  # each type once
        _refuse_type(field, format)
        _refuse_column(pa.array([], field.type), f"the column {field.name!r} has", format)


def refuse_values(batch: Any, format: str, *, before: int = 0) -> None:
    """Refuse public values that a format cannot hold, and rows beyond its last; some rows were before these.

    Examples
    --------
    >>> batch = pa.record_batch({"until": pa.array([1 << 30], pa.date32())})
    >>> refuse_values(batch, "csv")
    Traceback (most recent call last):
    labeldp.errors.ParameterError: CSV cannot hold dates outside of the years 1 to 9999, ...
    """
    if format == "xlsx" and before + batch.num_rows > MOST_ROWS:
        raise ParameterError(f"a sheet of Excel has {MOST_ROWS:,} rows at most: write CSV or Parquet")
    for field, column in zip(batch.schema, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise DataError(f"the column {field.name!r} is damaged: some values are not {field.type}") from None
        _refuse_column(column, f"the column {field.name!r} has", format)


_PLAIN = (is_text, types.is_primitive, types.is_decimal, types.is_null)
"""Types that text and sheets have."""

_SIMPLE = (
    *(types.is_integer, types.is_floating, types.is_boolean, types.is_null, types.is_date32),
    *(is_text, types.is_binary),
)
"""Types whose values are written without a conversion that could fail."""


def _is_written_as_is(kind: Any, format: str) -> bool:
    if format == "parquet" and types.is_timestamp(kind):
        return bool(kind.unit != "s")  # Parquet has no seconds: they become milliseconds
    return any(check(kind) for check in _SIMPLE)


def _refuse_type(field: Any, format: str) -> None:
    is_plain = any(check(field.type) for check in _PLAIN)  # bytes could be anything
    if flat_type(field.name, field.type) != field.type or (format != "parquet" and not is_plain):
        described = f"the column {field.name!r} of type {field.type}"
        raise ParameterError(f"{format.upper()} cannot hold {described}: convert it, or write Parquet")


def _refuse_column(column: Any, which: str, format: str) -> None:
    """Refuse a column that has values which its format cannot hold."""
    try:
        problem = None if format == "parquet" else _date_problem(column)
        if format == "xlsx":
            problem = problem or _sheet_problem(column)
        if problem is None and not _is_written_as_is(column.type, format):
            trial = encoder(pa.BufferOutputStream(), pa.schema({"c": column.type}), format)
            trial.write(pa.table([column], ["c"]))
            trial.close()
    except (pa.ArrowException, ValueError, OverflowError):
        problem = f"some values of type {column.type}"
    if problem is not None:
        raise ParameterError(
            f"{format.upper()} cannot hold {problem}, as {which}: change it, or write another format"
        )


def _sheet_problem(column: Any) -> str | None:
    """Return what no cell of Excel can hold."""
    kind = column.type
    if is_text(kind):
        wide = pc.count_substring_regex(column, r"[\x{10000}-\x{10FFFF}]")  # two of what Excel counts
        if (pc.max(pc.add(pc.utf8_length(column), wide)).as_py() or 0) > MOST_CHARACTERS:
            return f"text of more than {MOST_CHARACTERS:,} characters"
        if pc.any(pc.match_substring_regex(column, f"[^{_XML}]")).as_py():
            return "control characters and others that XML does not have"
    if types.is_integer(kind) and _is_outside(column, -MOST_INTEGER, MOST_INTEGER):
        return "integers of more than 15 digits"
    if types.is_floating(kind) and pc.any(pc.is_inf(column)).as_py():
        return "infinite numbers"
    return None


def _date_problem(column: Any) -> str | None:
    """Return what is wrong with dates and times that become text, or cells of a sheet."""
    kind = column.type
    if types.is_date(kind) or types.is_timestamp(kind):
        local = pc.local_timestamp(column) if types.is_timestamp(kind) and kind.tz is not None else column
        if _is_outside(local.cast(pa.timestamp("s"), safe=False).cast(pa.int64()), *_SECONDS):
            return "dates outside of the years 1 to 9999"
    return None


def _is_outside(column: Any, low: int, high: int) -> bool:
    ends = pc.min_max(column).as_py().values()
    return any(value is not None and not low <= value <= high for value in ends)
