"""Columns: labels as numbers, and the types that public columns may have.

Messages on labels name a row at most: that a label is missing or not a number is public.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from labeldp.errors import LabelError, ParameterError, Setting

_MISSING = (
    "some labels are missing or not finite: fill them, or leave their rows out with ",
    Setting("missing", "drop"),
    "; which rows are left out is public then",
)

# ---- labels ---------------------------------------------------------------------------------------------------


def label_values(array: Any, *, allow_missing: bool = False) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return labels as float64, and which of them are missing: null, NaN or infinite, and that is public.

    With ``allow_missing`` those are NaN, else they are refused. `Table` has refused other things than numbers.

    Examples
    --------
    >>> label_values(pa.array([1, None, 3]), allow_missing=True)
    (array([ 1., nan,  3.]), array([False,  True, False]))
    """
    values = np.asarray(as_floats(array), dtype=np.float64)
    missing = ~np.isfinite(values)
    if missing.any():
        if not allow_missing:
            raise LabelError(*_MISSING)
        values = np.where(missing, np.nan, values)
    return values, missing


def as_floats(array: Any) -> Any:
    """Return an Arrow array of numbers as the nearest float64; nulls stay."""
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if types.is_decimal(array.type):  # by way of their digits: a cast may be off by a rounding
        array = array.cast(pa.string())
    return array if array.type == pa.float64() else array.cast(pa.float64(), safe=False)


def refuse_other_than_numbers(kind: Any, name: str) -> None:
    """Refuse a label column of this Arrow type if it holds no real numbers."""
    held = value_type(kind)
    if not (types.is_integer(held) or types.is_floating(held) or types.is_decimal(held)):
        raise LabelError(
            f"the label {name!r} must be a column of numbers, and is of type {held}: convert it to numbers first"
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
