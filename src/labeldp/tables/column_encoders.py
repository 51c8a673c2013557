"""One column of a table as numbers. Features are public, so an encoding may look at all of them; never at a label.

Numbers stay as they are, booleans are 0 and 1, dates count days, times count seconds. Text becomes a column of 0
and 1 for each value, or for each of the most common ones. Missing values are filled, and marked in a column of
their own if the fit had any.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from labeldp._values import Array
from labeldp.errors import DataError
from labeldp.mechanisms.typed_data import at_most, matching
from labeldp.tables.arrow import arrow

Tally = Counter[tuple[str, str]]
"""Numbers of values of a column that were "missing", or "new" since the fit."""

MAX_VALUE_COLUMNS = 50
"""The largest number of values of a column of text that have a column of their own, the most common ones."""

MAX_RARE_VALUES = 10_000
"""The largest number of further values that are kept, by which new values are recognised."""

_LARGEST = 1e100
_DAY = 86_400.0


_TESTS = {
    "boolean": ["is_boolean"],
    "number": ["is_integer", "is_floating", "is_decimal"],
    "date": ["is_date", "is_timestamp"],
    "time": ["is_time", "is_duration"],
    "category": ["is_string", "is_large_string", "is_string_view"],
}


def kind_of(kind: Any) -> str | None:
    """Return the kind of an Arrow type: number, boolean, date, time or category; None for others."""
    types = arrow().types
    if types.is_dictionary(kind):  # a categorical column, also where its categories are numbers
        return "category" if kind_of(kind.value_type) else None
    fitting = (name for name, tests in _TESTS.items() if any(getattr(types, test)(kind) for test in tests))
    return next(fitting, None)


def one_array(column: Any) -> Any:
    """Return a column in one piece, with dictionaries looked up."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        values = column.type.value_type
        target = pa.large_string() if kind_of(values) == "category" else values
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        pieces = [chunk.dictionary.cast(target).take(chunk.indices) for chunk in chunks]  # not every view casts
        column = pa.chunked_array(pieces, target)
    if kind_of(column.type) == "category":
        column = column.cast(pa.large_string())  # pieces of short strings may not fit together
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def as_floats(column: Any) -> Array:
    """Return a column of numbers, booleans, dates or times as floats, NaN where a value is missing."""
    pa = arrow()
    array = one_array(column)
    kind, unit = array.type, 1.0
    if kind_of(kind) in ("date", "time"):
        target = pa.timestamp("us", tz=getattr(kind, "tz", None))
        if pa.types.is_time(kind):
            target = pa.time64("us")
        elif pa.types.is_duration(kind):
            target = pa.duration("us")
        array, unit = array.cast(target, safe=False).cast(pa.int64()), 1e6
    numbers = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    values = np.array(numbers, dtype=np.float64) / (unit * _DAY if kind_of(kind) == "date" else unit)
    values[~np.isfinite(values)] = np.nan
    return np.clip(values, -_LARGEST, _LARGEST)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers, booleans, dates or times.

    Attributes
    ----------
    name, kind : str
    fill : float
        What stands for missing values: the middle value.
    marks_missing : bool
        Whether a second column says which were missing.
    """

    name: str
    kind: Annotated[str, matching("number|boolean|date|time", "a kind of number")]
    fill: float
    marks_missing: bool

    @classmethod
    def fit(cls, name: str, column: Any) -> Numbers | str:
        """Return the encoding, or why the column is of no use."""
        values = as_floats(column)
        present = values[~np.isnan(values)]
        if not present.size:
            return "all of it is missing"
        marks_missing = present.size < values.size
        if present.min() == present.max() and not marks_missing:
            return "all its values are the same"
        return cls(name, str(kind_of(column.type)), float(np.median(present)), marks_missing)

    @property
    def width(self) -> int:
        """Number of columns of numbers."""
        return 1 + self.marks_missing

    def encode(self, column: Any, tally: Tally) -> Array:
        """Return rows × width numbers."""
        values = as_floats(column)
        missing = np.isnan(values)
        tally[self.name, "missing"] += int(missing.sum())
        values[missing] = self.fill
        return np.column_stack([values, missing]) if self.marks_missing else values[:, None]


@dataclass(frozen=True, slots=True)
class Categories:
    """A column of text.

    Attributes
    ----------
    name : str
    values : tuple of str
        Values with a column of their own.
    rare_values : tuple of str
        Further values of the fit, which have no column.
    marks_missing : bool
        Whether a column says which were missing.
    """

    name: str
    values: Annotated[tuple[str, ...], at_most(MAX_VALUE_COLUMNS)]
    rare_values: Annotated[tuple[str, ...], at_most(MAX_RARE_VALUES)]
    marks_missing: bool
    kind: Annotated[str, matching("category", "a kind of column")] = "category"

    @classmethod
    def fit(cls, name: str, column: Any) -> Categories | str:
        """Return the encoding, or why the column is of no use."""
        array = text_or_null(column)
        tallied = array.drop_null().value_counts()
        counts = dict(zip(tallied.field(0).to_pylist(), tallied.field(1).to_pylist(), strict=True))
        if not counts:
            return "all of it is missing"
        marks_missing = array.null_count > 0
        if len(counts) == 1 and not marks_missing:
            return "all its values are the same"
        if len(counts) > 50 and len(counts) > 0.9 * (len(array) - array.null_count):
            return "nearly every row has a value of its own"
        common = sorted(counts, key=lambda value: (-counts[value], value))
        rare = common[MAX_VALUE_COLUMNS:][:MAX_RARE_VALUES]
        return cls(name, tuple(common[:MAX_VALUE_COLUMNS]), tuple(rare), marks_missing)

    @property
    def width(self) -> int:
        """Number of columns of numbers."""
        return len(self.values) + self.marks_missing

    def encode(self, column: Any, tally: Tally) -> Array:
        """Return rows × width numbers; a rare value, or one that the fit did not see, has no column."""
        coded = text_or_null(column).dictionary_encode()
        values = coded.dictionary.to_pylist()
        position = {value: k for k, value in enumerate(self.values)}
        missing_column = len(self.values) if self.marks_missing else -1
        columns = np.array([*(position.get(value, -1) for value in values), missing_column])
        codes = coded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
        if len(self.rare_values) < MAX_RARE_VALUES:  # else some rare values are not known, and look like new ones
            levels = {*self.values, *self.rare_values}
            is_new = np.array([*(value not in levels for value in values), False])
            tally[self.name, "new"] += int(is_new[codes].sum())
        tally[self.name, "missing"] += int((codes == len(values)).sum())
        numbers = np.zeros((codes.size, self.width))
        column = columns[codes]
        has_column = np.flatnonzero(column >= 0)
        numbers[has_column, column[has_column]] = 1.0
        return numbers


def fit_column(name: str, column: Any, *, is_category: bool) -> Numbers | Categories | str:
    """Return the encoding of a column, or why it is of no use."""
    kind = "category" if is_category else kind_of(column.type)
    if kind is None:
        is_empty = arrow().types.is_null(column.type)
        return "all of it is missing" if is_empty else f"{column.type} cannot be used: convert it first"
    return (Categories if kind == "category" else Numbers).fit(name, column)


def refuse_another_kind(column: Numbers | Categories, kind: Any) -> None:
    """Refuse a column of another kind than in the fit."""
    types = arrow().types
    kind_here = kind_of(kind.value_type if types.is_dictionary(kind) else kind)
    is_other = kind_here != column.kind and (column.kind != "category" or kind_here is None)
    if is_other and not types.is_null(kind):
        raise DataError(
            f"the column {column.name!r} held values of the kind {column.kind} when the model was fitted; here it "
            f"holds {kind_here or kind}"
        )


def text_or_null(column: Any) -> Any:
    """Return a column as text; empty text is missing, as it is where a text file has a gap."""
    pa = arrow()
    array = one_array(column).cast(pa.large_string())
    return pa.compute.if_else(pa.compute.equal(array, ""), pa.scalar(None, pa.large_string()), array)
