"""Types of columns that come from several files, or batches with dictionaries of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.errors import DataError
from labeldp.files.label_column import is_number

__all__ = ["Words", "common_type", "replace_inner_fields", "with_plain_inner_fields"]


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


class Words:
    """One dictionary for a whole column, whatever files, row groups and batches have.

    Its words are those that rows use, sorted, and it is not ordered: the order of an input's dictionary, words
    that no row uses, and whether all pieces have the same may show how rows were cut or shuffled.

    Examples
    --------
    >>> pieces = [pa.DictionaryArray.from_arrays([1, 0], ["a", "b"]), pa.array(["c", "b"]).dictionary_encode()]
    >>> column = Words(pieces[0].type)
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
