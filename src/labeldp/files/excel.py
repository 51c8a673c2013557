"""Excel: the values of one sheet in, and a new workbook with nothing but values out.

Formulas are not read, only what they came to; a public column that has some is refused, for they may have computed
it from the label. Notes, styles, names, other sheets and hidden columns are not copied.
"""

from __future__ import annotations

import datetime
import io
import re
import sys
import threading
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import iterparse

import pyarrow as pa
import pyarrow.compute as pc

from labeldp.errors import DataError, LabelDPError, MissingExtraError, ParameterError
from labeldp.files.batches import cut, rows_per_batch
from labeldp.files.dialect import Dialect
from labeldp.files.sources import Part
from labeldp.files.tables import Table
from labeldp.files.text_types import LabelText

HEADER_ROWS = 50
"""Rows among which the header is looked for: titles may stand above it."""

ERRORS = ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!", "#CALC!")
MIXED = "of several types"
LAST_FLOAT = sys.float_info.max


def openpyxl() -> Any:
    """Return openpyxl, or say which extra brings it."""
    try:
        import openpyxl as module  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError(
            'Excel files need openpyxl, which is not installed: pip install "labeldp[excel]"'
        ) from None
    return module


@dataclass(frozen=True)
class Sheet:
    """The values of one sheet, column by column, of the rows that have any; and what its columns are besides."""

    names: list[str]
    columns: dict[str, list[Any]]
    formulas: set[str]
    hidden: set[str]


class SheetTable(Table):
    """A table in Excel files, one sheet of each; in memory."""

    def __init__(self, parts: list[Part], label: str | None, dialect: Dialect, drop: Collection[str] = ()) -> None:
        self.dialect = Dialect(na=dialect.na)
        self._labels = LabelText(str(label), dialect)
        self._sheets = [read_sheet(part, dialect.sheet, label) for part in parts]
        super().__init__(parts, "xlsx", label, [sheet.names for sheet in self._sheets], drop)
        for sheet, part in zip(self._sheets, parts, strict=True):
            self._refuse(part, sheet.hidden, "has hidden columns: show them, or drop them, as in drop={}")
            self._refuse(
                part,
                sheet.formulas - {*dialect.formulas},
                "has formulas in public columns, which may use the label, directly or through other cells: drop "
                "these columns, as in drop={}, or say that they do not, as in Dialect(formulas={})",
            )
            for column in [name for name in self._inside if name in sheet.formulas]:
                if not any(cell is not None for cell in sheet.columns[column]):
                    raise DataError(
                        f"{part.name} has formulas in the column {column!r}, and not what they come to: "
                        "save it in Excel"
                    )

    def _refuse(self, part: Part, names: set[str], why: str) -> None:
        found = [name for name in self._inside if name in names and name != self.label]
        if found:
            listed = "[" + ", ".join(f'"{name}"' for name in found) + "]"
            raise ParameterError(f"{part.name} {why.replace('{}', listed)}")

    def _fields(self) -> list[Any]:
        fields = []
        for name in self._inside:
            cells = (cell for sheet in self._sheets for cell in sheet.columns[name])
            kind = pa.float64() if name == self.label else _type_of(cells)
            if kind is None:
                self.stored[name], kind = MIXED, pa.string()
            fields.append(pa.field(name, kind))
        return fields

    def _read(self, schema: Any) -> Iterator[Any]:
        for batch in cut(self._stored_batches(schema), rows_per_batch(schema)):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _part_batches(self, part: Part, names: list[str]) -> Iterator[Any]:
        columns = self._sheets[self._parts.index(part)].columns
        before = sum(len(next(iter(sheet.columns.values()))) for sheet in self._sheets[: self._parts.index(part)])
        arrays = [
            self._label_array(columns[name], before)
            if name == self.label
            else _array(columns[name], self.schema.field(name).type)
            for name in names
        ]
        batch = pa.RecordBatch.from_arrays(arrays, names=names)
        if batch.num_rows:
            yield batch

    def _label_array(self, cells: list[Any], before: int) -> Any:
        """Return labels: numbers as they are, text as in text files; beyond the last float there is none."""
        is_number = [isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells]
        text = pa.array(["0" if known else _text(cell) for cell, known in zip(cells, is_number, strict=True)])
        parsed = self._labels.parse(text, before)
        numbers = pa.array(
            [
                min(max(float(str(cell)), -LAST_FLOAT), LAST_FLOAT) if known else 0.0
                for cell, known in zip(cells, is_number, strict=True)
            ]
        )
        return pc.if_else(pa.array(is_number), numbers, parsed)


_ALONE = threading.RLock()
"""Filters of warnings are one for all threads: whoever changes them for a while must be the only one."""


@contextmanager
def _guard(part: Part) -> Iterator[None]:
    """Say that the file is damaged where it is, without the original error, which may quote a label."""
    try:
        with _ALONE, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on what openpyxl leaves out, where it may quote a label
            yield
            return
    except (LabelDPError, MemoryError):
        raise
    except OSError as error:
        if error.errno is not None:
            raise
    except Exception:  # noqa: S110 (what it says may be a label)
        pass
    raise DataError(
        f"{part.name} is damaged, protected by a password, or of another format than its name says: save it as an "
        "Excel workbook (.xlsx)"
    )


def sheet_names(part: Part) -> list[str]:
    """Return the names of a workbook's sheets."""
    with _guard(part), part.open() as stream:
        book = openpyxl().load_workbook(io.BufferedReader(_Seekable(stream)), read_only=True)
        return [sheet.title for sheet in book.worksheets]


def read_sheet(part: Part, name: str | None, label: str | None) -> Sheet:
    """Return the values of one sheet; its header is looked for by the label's name, if that is known."""
    with _guard(part), part.open() as stream:
        book = openpyxl().load_workbook(io.BufferedReader(_Seekable(stream)), read_only=True, data_only=True)
        names = [sheet.title for sheet in book.worksheets]
        if name is None and len(names) > 1:
            raise ParameterError(
                f"{part.name} has several sheets ({', '.join(map(repr, names[:12]))}): say which, as in "
                f'Dialect(sheet="{names[0]}")'
            )
        if name is not None and name not in names:
            raise ParameterError(
                f"{part.name} has no sheet {name!r}; there are {', '.join(map(repr, names[:12]))}"
            )
        sheet = book[name or names[0]]
        sheet.reset_dimensions()  # what a file says of its size may be wrong
        formulas, hidden = _scan(sheet)
        header, rows = _split(list(sheet.iter_rows(values_only=True)), label)
    places = {place: _text(value) for place, value in enumerate(header) if _text(value)}
    values = [[_value(row[place]) if place < len(row) else None for place in places] for row in rows]
    values = [row for row in values if any(cell is not None for cell in row)]
    if not places:
        raise DataError(f"{part.name} is empty: the sheet has no values")
    return Sheet(
        list(places.values()),
        dict(
            zip(
                places.values(),
                map(list, zip(*values, strict=True)) if values else [[] for _ in places],
                strict=True,
            )
        ),
        {name for place, name in places.items() if place in formulas},
        {name for place, name in places.items() if place in hidden},
    )


def _split(rows: list[Any], label: str | None) -> tuple[Any, list[Any]]:
    """Return the header, which names the label if one is known, else has two values or more; and what is below."""
    for place, row in enumerate(rows[:HEADER_ROWS]):
        texts = [text for value in row if (text := _text(value))]
        if label in texts if label is not None else len(texts) > 1:
            return row, rows[place + 1 :]
    first = next((place for place, row in enumerate(rows) if any(map(_text, row))), len(rows))
    return (rows[first] if first < len(rows) else ()), rows[first + 1 :]


def _scan(sheet: Any) -> tuple[set[int], set[int]]:
    """Return the places of columns that have formulas, and of those that are hidden, as the file has them."""
    formulas: set[int] = set()
    hidden: set[int] = set()
    place = 0
    with sheet._get_source() as stream:
        if not any(_TELLING.search(text) for text in _overlapping(stream)):  # most sheets: no need to parse it
            return formulas, hidden
    with sheet._get_source() as stream:
        for event, element in iterparse(stream, ("start", "end")):  # noqa: S314 (as openpyxl reads it)
            tag = element.tag.rpartition("}")[2]
            if event == "start" and tag == "c":
                place = _place(element.get("r", "")) if element.get("r") else place + 1
            elif event == "start" and tag == "row":
                place = -1
            elif event == "end" and tag == "f":
                ends = [_place(cell) for cell in element.get("ref", "").split(":") if cell]
                formulas |= {place, *(range(ends[0], ends[-1] + 1) if ends else ())}
            elif event == "start" and tag == "col" and element.get("hidden") in ("1", "true"):
                hidden |= set(range(int(element.get("min", 1)) - 1, int(element.get("max", 1))))
            if event == "end" and tag == "row":
                element.clear()
    return formulas, hidden


_TELLING = re.compile(rb"<(?:\w+:)?f[\s>/]|hidden|\0")
"""Formulas, what is hidden, or text in another encoding than UTF-8, in which neither could be seen."""


def _overlapping(stream: Any) -> Iterator[bytes]:
    """Yield blocks of a stream, each with the end of the one before, which may hold half a word."""
    before = b""
    while block := stream.read(1 << 20):
        yield before + block
        before = block[-64:]


def _place(cell: str) -> int:
    """Return the column of a cell, counted from 0.

    Examples
    --------
    >>> _place("A1"), _place("AB12")
    (0, 27)
    """
    place = 0
    for letter in re.sub("[^A-Z]", "", cell.upper()):
        place = 26 * place + ord(letter) - ord("A") + 1
    return place - 1


class _Seekable(io.RawIOBase):
    """An Arrow stream that Python's own readers can move in."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._stream.seek(offset, whence)
        return int(self._stream.tell())

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


# ---- values ---------------------------------------------------------------------------------------------------


def _value(cell: Any) -> Any:
    """Return what a cell holds, None for errors and blanks."""
    return None if isinstance(cell, str) and (not cell.strip() or cell in ERRORS) else cell


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return "" if value is None else str(value).strip()


def _type_of(cells: Iterator[Any]) -> Any:
    """Return the type that holds all cells of a public column, or None if there is no such but text."""
    seen, whole, days, fraction = set[type](), True, True, False
    for cell in cells:
        if cell is None:
            continue
        seen.add(type(cell))
        if isinstance(cell, int):
            whole = whole and -(2**63) <= cell < 2**63
        if isinstance(cell, datetime.datetime):
            days = days and cell.time() == datetime.time()
            fraction = fraction or cell.microsecond > 0
    if seen <= {int, float} and seen:
        return pa.int64() if seen == {int} and whole else pa.float64()
    if seen <= {datetime.datetime, datetime.date} and seen:
        return pa.date32() if days else pa.timestamp("us" if fraction else "s")
    single = {bool: pa.bool_(), str: pa.string(), datetime.time: pa.time64("us")}
    return single.get(seen.copy().pop()) if len(seen) == 1 else None if seen else pa.string()


def _array(cells: list[Any], kind: Any) -> Any:
    if kind == pa.string():
        return pa.array(
            [None if cell is None else cell if isinstance(cell, str) else _text(cell) for cell in cells], kind
        )
    if kind == pa.float64():
        return pa.array([None if cell is None else float(str(cell)) for cell in cells], kind)
    if kind == pa.date32():
        return pa.array([None if cell is None else datetime.date(*cell.timetuple()[:3]) for cell in cells], kind)
    return pa.array(cells, kind)
