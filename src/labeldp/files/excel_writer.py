"""A new Excel workbook: one sheet of values, and nothing else that could tell where they came from."""

from __future__ import annotations

import datetime
import io
import math
import re
import zipfile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.errors import ParameterError
from labeldp.files.excel import openpyxl

MOST_ROWS = 1_048_575
"""Rows of a sheet below its header."""

MOST_CHARACTERS = 32_767
MOST_INTEGER = 1 << 53

_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f]"
_FIRST_DAY = datetime.date(1900, 3, 1)
"""Excel takes 1900 for a leap year: days before are written as text."""

_THEN = (1980, 1, 1, 0, 0, 0)
_TIMES = re.compile(rb">\d{4}-\d\d-\d\dT[^<]*<")


def refuse_cells(batch: Any, before: int) -> None:
    """Refuse public values that no cell of a sheet can hold, and rows beyond its last; some were before these."""
    if before + batch.num_rows > MOST_ROWS:
        raise ParameterError(f"a sheet of Excel has {MOST_ROWS:,} rows at most: write CSV or Parquet")
    for field, column in zip(batch.schema, batch.columns, strict=True):
        problem = _problem(column)
        if problem is not None:
            raise ParameterError(
                f"Excel cannot hold {problem}, as the column {field.name!r} has: write CSV or Parquet"
            )


def _problem(column: Any) -> str | None:
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    values = column.cast(kind)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        text = values.cast(pa.large_string())
        if (pc.max(pc.utf8_length(text)).as_py() or 0) > MOST_CHARACTERS:
            return f"text of more than {MOST_CHARACTERS:,} characters"
        if pc.any(pc.match_substring_regex(text, _CONTROL)).as_py():
            return "control characters"
    elif types.is_integer(kind) and any(
        abs(value) > MOST_INTEGER for value in pc.min_max(values).as_py().values() if value is not None
    ):
        return "integers of more than 15 digits"
    elif types.is_floating(kind) and pc.any(pc.is_inf(values)).as_py():
        return "infinite numbers"
    return None


class ExcelEncoder:
    """Writes one sheet; the file is the same for the same values, whenever it is written."""

    def __init__(self, stream: Any, schema: Any) -> None:
        self._stream, self._rows = stream, 0
        self._book = openpyxl().Workbook(write_only=True)
        self._sheet = self._book.create_sheet("Sheet1")
        self._sheet.append([self._cell(name) for name in schema.names])

    def write(self, table: Any) -> None:
        """Add rows."""
        for batch in table.to_batches():
            refuse_cells(batch, self._rows)
            self._rows += batch.num_rows
            columns = [_cells(column) for column in batch.columns]
            for row in zip(*columns, strict=True):
                self._sheet.append([self._cell(value) if isinstance(value, str) else value for value in row])

    def _cell(self, text: str) -> Any:
        """Return a cell of text; what looks like a formula or an error is neither."""
        from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415 (an extra)

        cell = WriteOnlyCell(self._sheet, text)
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        """End the file."""
        draft = io.BytesIO()
        self._book.save(draft)
        whole = io.BytesIO()
        with zipfile.ZipFile(draft) as old, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                data = old.read(name)
                if name == "docProps/core.xml":
                    data = _TIMES.sub(b">2000-01-01T00:00:00Z<", data)
                new.writestr(zipfile.ZipInfo(name, _THEN), data, zipfile.ZIP_DEFLATED)
        self._stream.write(whole.getvalue())


def _cells(column: Any) -> list[Any]:
    """Return a column as Python's values, of types that a sheet has; the rest is text."""
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    column = column.cast(kind)
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
