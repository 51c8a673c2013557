"""A rehearsal of the output: what a writer will do with the public part of a table is tried before the charge.

Names, types, counts, values and space: whatever a format cannot hold is refused while nothing is spent. Names are
cells of the first row, so one rule is for names and text.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.errors import DataError, ParameterError
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.mechanisms.typed_data import canonical
from labeldp.tables.batches import size_of
from labeldp.tables.columns import flat_type
from labeldp.tables.encoders import encoder
from labeldp.tables.paths import DELIMITERS, PIPE

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
        if not _is_written_as_is(field.type, format):
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


def least_size(batch: Any, format: str, *, compressed: bool) -> int:
    """Return how many bytes some rows take in a format, at least."""
    if compressed or format not in DELIMITERS:
        return int(batch.num_rows) // 8
    texts = [place for place, kind in enumerate(batch.schema.types) if _is_text(kind)]
    marks = batch.num_rows * batch.num_columns  # separators and ends of lines
    return size_of(batch.select(texts)) + int(marks)


def refuse_size(to: str, size: int) -> None:
    """Refuse an output of at least this size where there is no space for it and its card.

    Parameters
    ----------
    to : str
        A file or folder, or ``-`` for a pipe, whose content is kept in a temporary file first.
    size : int
        In bytes.
    """
    folder = tempfile.gettempdir() if to == PIPE else os.path.dirname(os.path.abspath(to))
    free, needed = shutil.disk_usage(folder).free, size + MAX_TEXT
    if free < needed:
        raise OSError(28, f"No space left: about {needed:,} bytes are needed, and {free:,} are free", folder)
    limit = file_size_limit()
    if limit is not None and limit < needed:
        raise OSError(
            27, f"File too large: files may have {limit:,} bytes here (ulimit -f), {needed:,} are needed"
        )


def file_size_limit() -> int | None:
    """Return how many bytes a file of this process may have, or None."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 (not on Windows)

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


# ---- types and values -----------------------------------------------------------------------------------------


def _is_text(kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


_PLAIN = (_is_text, types.is_primitive, types.is_decimal, types.is_null)
"""Types that text and sheets have."""

_SIMPLE = (
    *(types.is_integer, types.is_floating, types.is_boolean, types.is_null, types.is_date32),
    *(_is_text, types.is_binary),
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
    if _is_text(kind):
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
