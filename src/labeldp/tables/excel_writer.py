"""A new Excel workbook: one sheet of values, and nothing else that could tell where they came from."""

from __future__ import annotations

import datetime
import io
import math
import re
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from labeldp.tables.excel import openpyxl

_FIRST_DAY = datetime.date(1900, 3, 1)
"""Excel takes 1900 for a leap year: days before are written as text."""

_THEN = (1980, 1, 1, 0, 0, 0)
_TIMES = re.compile(rb">\d{4}-\d\d-\d\dT[^<]*<")


class ExcelEncoder:
    """Writes one sheet; the file is the same for the same values, whenever it is written."""

    def __init__(self, stream: Any, schema: Any) -> None:
        self._stream = stream
        self._book = openpyxl().Workbook(write_only=True)
        self._sheet = self._book.create_sheet("Sheet1")
        self._header = [schema.names]

    def write(self, table: Any) -> None:
        """Add rows."""
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
        """End the file."""
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
