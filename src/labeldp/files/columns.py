"""Columns: labels as numbers, and types and dictionaries that hold for all files.

Messages on labels name a row at most: that a label is missing or not a number is public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from labeldp.errors import DataError, LabelError

_MISSING = (
    'some labels are missing or not finite: fill them, or leave their rows out with missing="drop"; '
    "which rows are left out is public then"
)

# ---- labels ---------------------------------------------------------------------------------------------------


def label_values(array: Any, *, allow_missing: bool = False) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return labels as float64, and which of them are missing: null, NaN or infinite, and that is public.

    With ``allow_missing`` those are NaN, else they are refused, as are columns of other things than numbers.

    Examples
    --------
    >>> label_values(pa.array([1, None, 3]), allow_missing=True)
    (array([ 1., nan,  3.]), array([False,  True, False]))
    """
    refuse_other_than_numbers(array.type)
    values = np.asarray(as_floats(array), dtype=np.float64)
    missing = ~np.isfinite(values)
    if missing.any():
        if not allow_missing:
            raise LabelError(_MISSING)
        values = np.where(missing, np.nan, values)
    return values, missing


def as_floats(array: Any) -> Any:
    """Return an Arrow array of numbers as the nearest float64; nulls stay."""
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if types.is_decimal(array.type):  # by way of their digits: a cast may be off by a rounding
        array = array.cast(pa.string())
    return array if array.type == pa.float64() else array.cast(pa.float64(), safe=False)


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of real numbers, or a dictionary of them."""
    inner = _value_type(kind)
    return bool(types.is_integer(inner) or types.is_floating(inner) or types.is_decimal(inner))


def refuse_other_than_numbers(kind: Any, name: str | None = None) -> None:
    """Refuse a label column of this Arrow type if it holds no real numbers."""
    if is_number(kind):
        return
    inner = _value_type(kind)
    column = "the label" if name is None else f"the label {name!r}"
    contents = {
        "text": types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner),
        "booleans": types.is_boolean(inner),
        "nothing but nulls": types.is_null(inner),
        "dates or times": types.is_temporal(inner),
    }
    holds = next((words for words, so in contents.items() if so), f"values of type {inner}")
    raise LabelError(f"{column} must be a column of numbers, and holds {holds}: convert it to numbers first")


def _value_type(kind: Any) -> Any:
    return kind.value_type if types.is_dictionary(kind) else kind


# ---- types and dictionaries for all files ---------------------------------------------------------------------


def common_type(name: str, kinds: Sequence[Any], *, rounded: bool = False) -> Any:
    """Return a type that holds what a column holds in all files, or refuse it.

    With ``rounded``, numbers of several types may be rounded to float64, as they are for learning.

    Examples
    --------
    >>> common_type("rooms", [pa.int16(), pa.int32(), pa.null()])
    DataType(int32)
    """
    different = list(dict.fromkeys(kinds))
    if len(different) == 1:
        return kinds[0]
    for target in [*different, pa.int64(), pa.float64()]:
        if all(_fits(kind, target) for kind in different):
            return target
    if rounded and all(is_number(kind) for kind in different):
        return pa.float64()
    shown = ", ".join(map(str, different))
    raise DataError(f"the types of the column {name!r} differ between files ({shown}): make them the same")


def _fits(kind: Any, target: Any) -> bool:
    """Whether each value of a type is one of the other, too."""
    if kind == target or types.is_null(kind):
        return True
    if types.is_dictionary(kind):
        wide = types.is_dictionary(target) and target.index_type.bit_width >= kind.index_type.bit_width
        return bool(target == kind.value_type or (wide and _with_index(kind, target.index_type) == target))
    if types.is_integer(kind) and types.is_integer(target):
        signs = types.is_signed_integer(kind), types.is_signed_integer(target)
        room = target.bit_width - kind.bit_width
        return bool(room >= 0 if signs[0] == signs[1] else signs[1] and room > 0)
    if types.is_floating(target):
        digits = {16: 11, 32: 24, 64: 53}[target.bit_width]
        if types.is_floating(kind):
            return bool(kind.bit_width <= target.bit_width)
        return bool(types.is_integer(kind) and kind.bit_width <= digits)
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return bool(wide.get(kind) == target)


def _with_index(kind: Any, index: Any) -> Any:
    return pa.dictionary(index, kind.value_type, kind.ordered)


def with_plain_inner_fields(kind: Any) -> Any:
    """Return a type whose lists and structs hold words themselves, and may hold nulls.

    A file of Arrow's has one dictionary for each column, and each file or row group that is read may have its own.
    Arrow puts nulls under a struct that is null, whatever its inner fields say, and cannot write it to Parquet.

    Examples
    --------
    >>> with_plain_inner_fields(pa.list_(pa.field("item", pa.dictionary(pa.int8(), pa.string()), nullable=False)))
    ListType(list<item: string>)
    """

    def plain(field: Any) -> Any:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        return field.with_type(with_plain_inner_fields(kind)).with_nullable(True)

    return replace_inner_fields(kind, plain)


def replace_inner_fields(kind: Any, change: Callable[[Any], Any]) -> Any:
    """Return a type with its inner fields, if it has any, as ``change`` returns them."""
    if types.is_struct(kind):
        return pa.struct([change(kind.field(i)) for i in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(change(kind.key_field).with_nullable(False), change(kind.item_field), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(change(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(change(kind.value_field))
    return pa.list_(change(kind.value_field)) if types.is_list(kind) else kind


class ColumnDictionary:
    """One dictionary for a whole column, whatever files, row groups and batches have.

    Its words are those that rows use, sorted, and it is not ordered: the order of an input's dictionary, words
    that no row uses, and whether all pieces have the same may show how rows were cut or shuffled.

    Examples
    --------
    >>> pieces = [pa.DictionaryArray.from_arrays([1, 0], ["a", "b"]), pa.array(["c", "b"]).dictionary_encode()]
    >>> column = ColumnDictionary(pieces[0].type)
    >>> for piece in pieces:
    ...     column.see(piece)
    >>> column.fit(pieces[0]).dictionary.to_pylist()
    ['a', 'b', 'c']
    """

    def __init__(self, kind: Any) -> None:
        self._kind, self._seen = kind, pa.nulls(0, kind.value_type)
        try:
            pc.index_in(self._seen, value_set=self._seen)
            pc.array_sort_indices(self._seen)
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
            self._seen = None

    def see(self, column: Any) -> None:
        """Look at more of the column."""
        if self._seen is None:
            return
        if types.is_dictionary(column.type):
            column = column.dictionary.take(pc.unique(column.indices))
        self._seen = pc.unique(pa.concat_arrays([self._seen, column.cast(self._seen.type)])).drop_null()

    @cached_property
    def words(self) -> Any:
        """The words, once all of the column was seen, or None where Arrow cannot look them up."""
        if self._seen is None:
            return None
        is_float = types.is_floating(self._seen.type)
        keys = self._seen.cast(pa.string()) if is_float else self._seen  # 0.0 and -0.0 differ as text only
        return self._seen.take(pc.array_sort_indices(keys))

    @cached_property
    def kind(self) -> Any:
        """The column's type, once all of it was seen: a dictionary, or the type of its words."""
        if self.words is None:
            return self._kind.value_type
        index = self._kind.index_type
        bits = index.bit_width - types.is_signed_integer(index)
        fits = bits >= 31 or len(self.words) < 1 << bits
        return pa.dictionary(index if fits else pa.int32(), self._kind.value_type)

    def fit(self, array: Any) -> Any:
        """Return a piece of the column, with these words as its dictionary."""
        if self.words is None:
            return array.cast(self.kind)
        if types.is_dictionary(array.type) and array.dictionary.equals(self.words):
            places = array.indices
        else:
            places = pc.index_in(array.cast(self.words.type), value_set=self.words)
        return pa.DictionaryArray.from_arrays(places.cast(self.kind.index_type), self.words)
