"""Types of columns that come from several files, or batches with dictionaries of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from labeldp._arrow import arrow
from labeldp.errors import DataError
from labeldp.files.labels import is_number

__all__ = ["one_type", "rebuilt", "without_inner_dictionaries"]


def one_type(name: str, kinds: Sequence[Any], *, rounded: bool = False) -> Any:
    """Return a type that holds what a column holds in all files.

    Parameters
    ----------
    name : str
    kinds : sequence of Arrow types
        What it is in each file.
    rounded : bool
        Whether numbers of several types may be rounded to float64, as they are for learning.

    Raises
    ------
    DataError
        If there is none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> one_type("rooms", [pa.int16(), pa.int32(), pa.null()])
    DataType(int32)
    """
    pa = arrow().core
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
    pa = arrow().core
    types = pa.types
    if kind == target or types.is_null(kind):
        return True
    if types.is_dictionary(kind):
        return _words_fit(kind, target)
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


def _words_fit(kind: Any, target: Any) -> bool:
    if not arrow().core.types.is_dictionary(target):
        return bool(kind.value_type == target)
    wider = target.index_type.bit_width >= kind.index_type.bit_width
    return bool(kind.value_type == target.value_type and kind.ordered == target.ordered and wider)


def without_inner_dictionaries(kind: Any) -> Any:
    """Return a type whose lists and structs hold words themselves.

    A file of Arrow's has one dictionary for each column, and each file or row group that is read may have its own.

    Examples
    --------
    >>> import pyarrow as pa
    >>> without_inner_dictionaries(pa.list_(pa.dictionary(pa.int8(), pa.string())))
    ListType(list<item: string>)
    """
    return rebuilt(kind, _plain_field)


def _plain_field(field: Any) -> Any:
    kind = field.type.value_type if arrow().core.types.is_dictionary(field.type) else field.type
    return field.with_type(without_inner_dictionaries(kind))


def rebuilt(kind: Any, change: Callable[[Any], Any]) -> Any:
    """Return a type with its inner fields, if it has any, as ``change`` returns them."""
    pa = arrow().core
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([change(kind.field(i)) for i in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(change(kind.key_field), change(kind.item_field), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(change(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(change(kind.value_field))
    return pa.list_(change(kind.value_field)) if types.is_list(kind) else kind
