"""Rows in batches: cut by their number, read ahead and shuffled; labels as numbers, and types of public columns.

Messages on labels name a row at most: that a label is missing or not a number is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp._values import Array, Mask, Words
from labeldp.errors import DataError, LabelError, ParameterError, Setting
from labeldp.exact.word_sources import WordSource

CELLS = 1 << 20
"""Values in a batch, about: wide tables come in short batches."""

CELLS_OF_ANY_LENGTH = 1 << 18
"""Values in a batch of a table with text."""

T = TypeVar("T")


def guard_arrow(call: Callable[[], T], complaint: str) -> T:
    """Return the result of a call of Arrow, or complain without the original error, which may quote a label."""
    try:
        return call()
    except (pa.ArrowException, EOFError, UnicodeDecodeError) as error:
        if isinstance(error, KeyboardInterrupt | pa.ArrowCancelled | MemoryError):
            raise
    except OSError as error:
        if error.errno is not None:
            raise
    raise DataError(complaint)


def cut(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield the rows in batches of so many, the last one shorter: no end of a block, row group or file shows.

    Examples
    --------
    >>> batches = [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3, 4, 5]})]
    >>> [batch.column(0).to_pylist() for batch in cut(batches, 4)]
    [[1, 2, 3, 4], [5]]
    """
    pieces: list[Any] = []
    missing = rows
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            pieces.append(batch.slice(start, missing))
            start += pieces[-1].num_rows
            missing -= pieces[-1].num_rows
            if not missing:
                yield _join(pieces)
                pieces, missing = [], rows
    if pieces:
        yield _join(pieces)


def _join(pieces: list[Any]) -> Any:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)


def rows_per_batch(kinds: Sequence[Any]) -> int:
    """Return the number of rows in a batch, by the number of columns and the types of their values."""
    cells = CELLS if all(map(_has_fixed_size, kinds)) else CELLS_OF_ANY_LENGTH
    return max(1024, cells // max(8, len(kinds)))


def _has_fixed_size(kind: Any) -> bool:
    return bool(types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind))


def read_ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield items that a thread fetches, one of them ahead of its use.

    Examples
    --------
    >>> list(read_ahead(range(5)))
    [0, 1, 2, 3, 4]
    """
    source = ([item] for item in items)
    end: list[T] = []
    with ThreadPoolExecutor(1, "labeldp-ahead") as thread:
        future = thread.submit(next, source, end)
        while wait([future]) and (item := future.result()):  # waits first: one traceback, whoever was quicker
            future = thread.submit(next, source, end)
            yield item[0]


def size_of(batch: Any) -> int:
    """Return the size of the values of a batch in bytes, about: the same however they came into memory.

    Examples
    --------
    >>> size_of(pa.record_batch({"a": [1, 2, 3], "b": ["x", None, "yz"]}).slice(1))
    18
    """
    return sum(_size(column) for column in batch.columns)


def _size(array: Any) -> int:
    kind = array.type
    if types.is_null(kind):
        return 0
    if _has_fixed_size(kind):
        return int(len(array) * kind.bit_width // 8)
    return int(pc.sum(pc.binary_length(array)).as_py() or 0)


# ---- a random order -------------------------------------------------------------------------------------------

MOST_SHUFFLED = 1 << 30
"""Bytes of a table that is shuffled, in memory."""

SHUFFLED_ROWS = 1 << 17


def shuffle_rows(batches: Iterable[Any], source: WordSource) -> Iterator[Any]:
    """Yield all rows in a uniformly random order; only rows whose label is private already may come here."""
    table = pa.Table.from_batches(list(batches))
    order = np.argsort(draw_words(table.num_rows, source))
    for first in range(0, order.size, SHUFFLED_ROWS):
        (batch,) = table.take(pa.array(order[first : first + SHUFFLED_ROWS])).combine_chunks().to_batches()
        yield batch


def draw_words(count: int, source: WordSource) -> Words:
    """Return random words."""
    words = np.empty(count, dtype=np.uint64)
    source.fill(words)
    return words


# ---- labels ---------------------------------------------------------------------------------------------------


def missing_labels(row: int) -> LabelError:
    """Return the error of labels that are missing, first at this position: where they are is public."""
    return LabelError(
        f"some labels are missing or not finite, first in row {row + 1:,}: fill them, or leave their rows out "
        "with ",
        Setting("missing", "drop"),
        "; which rows are left out is public then",
    )


def label_values(array: Any, *, allow_missing: bool = False) -> tuple[Array, Mask]:
    """Return labels as float64, and which of them are missing: null, NaN or infinite, and that is public.

    With ``allow_missing`` those are NaN, else they are refused. `Table` has refused other things than numbers.

    Examples
    --------
    >>> label_values(pa.array([1, None, 3]), allow_missing=True)
    (array([ 1., nan,  3.]), array([False,  True, False]))
    """
    values = np.asarray(as_floats(array), dtype=np.float64)
    missing = ~np.isfinite(values)
    if missing.any() and not allow_missing:
        raise missing_labels(int(np.argmax(missing)))
    return np.where(missing, np.nan, values), missing


def as_floats(array: Any) -> Any:
    """Return an Arrow array of numbers as the nearest float64; nulls stay."""
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if types.is_decimal(array.type):  # by way of their digits: a cast may be off by a rounding
        array = array.cast(pa.string())
    return array if array.type == pa.float64() else array.cast(pa.float64(), safe=False)


def refuse_other_than_numbers(kind: Any, name: str) -> None:
    """Refuse a label column of this Arrow type if it holds no numbers or booleans; of nulls all are missing."""
    values = value_type(kind)
    checks = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    if not any(check(values) for check in checks):
        raise LabelError(
            f"the label {name!r} must be a column of numbers, and is of type {values}: name another column, or "
            "convert it to numbers first"
        )


def value_type(kind: Any) -> Any:
    """Return the type of the values, also of a dictionary."""
    return kind.value_type if types.is_dictionary(kind) else kind


# ---- types of public columns ----------------------------------------------------------------------------------

_FLAT = (
    *(types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null),
    *(types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_fixed_size_binary),
    *(types.is_date, types.is_time, types.is_timestamp, types.is_duration),
)
"""The types that public columns may have."""


def is_text(kind: Any) -> bool:
    """Return whether a column of this type holds text."""
    return bool(types.is_string(kind) or types.is_large_string(kind))


_IN_ONE_PIECE = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def flat_type(name: str, kind: Any) -> Any:
    """Return the type in which a column is read: dictionaries are decoded, and nested types refused.

    Examples
    --------
    >>> flat_type("town", pa.dictionary(pa.int8(), pa.string()))
    DataType(string)
    >>> flat_type("tags", pa.list_(pa.string()))
    Traceback (most recent call last):
    labeldp.errors.ParameterError: the column 'tags' is of type list<item: string>, and columns ...
    """
    inner = value_type(kind)
    flat = _IN_ONE_PIECE.get(inner, inner)
    if types.is_decimal(flat) and flat.bit_width < 128:  # Arrow cannot do all with them
        flat = pa.decimal128(flat.precision, flat.scale)
    if any(is_kind(flat) for is_kind in _FLAT):
        return flat
    raise ParameterError(
        f"the column {name!r} is of type {kind}, and columns hold one number, text, boolean, date, time or bytes "
        "in each row: convert it, or leave it out with ",
        Setting("drop", [name]),
    )
