"""A label column as numbers. Messages name a row at most: that a label is missing or not a number is public."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from labeldp.errors import LabelError, ParameterError

__all__ = [
    "as_floats",
    "is_number",
    "label_values",
    "parse_label_text",
    "refuse_other_than_numbers",
    "without_nulls",
]

_NULL_WORDS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
"""What stands for a missing value in text: the words that PyArrow and pandas know."""

LONGEST = 1 << 20
TOO_LONG = f"a label has more than {LONGEST:,} characters: no number needs that many"

_MISSING = (
    'some labels are missing or not finite: fill them, or leave their rows out with missing="drop"; '
    "which rows are left out is public then"
)


def without_nulls(text: Any) -> Any:
    """Return text without blanks around it, null where a word stands for a missing value."""
    trimmed = pc.ascii_trim(text, characters=" \t")
    missing = pc.is_in(trimmed, value_set=pa.array(_NULL_WORDS, trimmed.type))
    return pc.if_else(missing, pa.scalar(None, trimmed.type), trimmed)


def parse_label_text(text: Any) -> Any:
    """Return an Arrow array of label text as float64, null where a label is missing: all labels in text come here.

    A number beyond the range of floats is the last of them, as in an array: to refuse it, or to leave its row out,
    would tell. Only words such as ``inf`` are infinite.

    Raises
    ------
    LabelError
        If one is not a number. The message says no more, and no other error is attached.

    Examples
    --------
    >>> parse_label_text(pa.array(["1", " 2.5e1 ", "NA", "-1e999", "inf"])).to_pylist()
    [1.0, 25.0, None, -1.7976931348623157e+308, inf]
    """
    if (pc.max(pc.binary_length(text)).as_py() or 0) > LONGEST:
        raise LabelError(TOO_LONG)
    try:
        values = without_nulls(text).cast(pa.float64())
    except pa.ArrowInvalid:
        values = None
    if values is None:
        raise LabelError("a label is not a number")
    too_large = pc.and_(pc.is_inf(values), pc.match_substring_regex(text, "[0-9]"))
    return pc.if_else(too_large, pc.multiply(pc.sign(values), np.finfo(np.float64).max), values)


def first_bad_label(text: Any) -> int:
    """Return where the first label is that is not a number, among some that are not all numbers."""
    first, last = 0, len(text)
    while last - first > 1:
        middle = (first + last) // 2
        try:
            parse_label_text(text[first:middle])
            first = middle
        except LabelError:
            last = middle
    return first


def label_values(
    array: Any, missing: Literal["error", "keep"] = "error"
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return labels as float64, and which of them are missing: null, NaN or infinite, and that is public.

    With ``missing="error"`` they are refused, as are columns of other things than numbers; else they are NaN.

    Examples
    --------
    >>> label_values(pa.array([1, None, 3]), missing="keep")
    (array([ 1., nan,  3.]), array([False,  True, False]))
    """
    if missing not in {"error", "keep"}:
        raise ParameterError("missing must be 'error' or 'keep'")
    refuse_other_than_numbers(array.type)
    values = np.asarray(as_floats(array), dtype=np.float64)
    gone = ~np.isfinite(values)
    if gone.any():
        if missing == "error":
            raise LabelError(_MISSING)
        values = np.where(gone, np.nan, values)
    return values, gone


def as_floats(array: Any) -> Any:
    """Return an Arrow array of numbers as the nearest float64; nulls stay."""
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if types.is_decimal(array.type):  # by way of their digits: a cast may be off by a rounding
        array = array.cast(pa.string())
    return array if array.type == pa.float64() else array.cast(pa.float64(), safe=False)


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of real numbers, or a dictionary of them."""
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_integer(inner) or types.is_floating(inner) or types.is_decimal(inner))


def refuse_other_than_numbers(kind: Any, name: str | None = None) -> None:
    """Refuse a label column of this Arrow type if it holds no real numbers."""
    if is_number(kind):
        return
    inner = kind.value_type if types.is_dictionary(kind) else kind
    column = "the label" if name is None else f"the label {name!r}"
    contents = {
        "text": types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner),
        "booleans": types.is_boolean(inner),
        "nothing but nulls": types.is_null(inner),
        "dates or times": types.is_temporal(inner),
    }
    holds = next((words for words, so in contents.items() if so), f"values of type {inner}")
    raise LabelError(f"{column} must be a column of numbers, and holds {holds}: convert it to numbers first")
