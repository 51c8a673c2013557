"""A value of each type, to try whether something can be done with it."""

from __future__ import annotations

import datetime
from contextlib import suppress
from decimal import Decimal
from typing import Any

from labeldp._arrow import arrow

__all__ = ["examples", "zero"]

_VALUES: tuple[Any, ...] = (
    0,
    "",
    b"",
    False,
    Decimal(0),
    datetime.datetime(1970, 1, 1),
    datetime.date(1970, 1, 1),
    datetime.time(0),
    datetime.timedelta(0),
    (0, 0, 0),
)


def examples(kind: Any) -> list[Any]:
    """Return arrays of a null, and of a value where one can be made.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [array.to_pylist() for array in examples(pa.list_(pa.int8()))]
    [[None], [[0]]]
    """
    pa = arrow().core
    made = [pa.nulls(1, kind)]
    with suppress(pa.ArrowException, NotImplementedError):
        made.append(_array(kind))
    return made


def _array(kind: Any) -> Any:
    pa = arrow().core
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _array(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(pa.array([0], kind.index_type), _array(kind.value_type))
    return pa.array([zero(kind)], kind)


def zero(kind: Any) -> Any:
    """Return a Python value of a type: zero, or empty."""
    pa = arrow().core
    types = pa.types
    if types.is_struct(kind):
        return {kind.field(i).name: zero(kind.field(i).type) for i in range(kind.num_fields)}
    if types.is_map(kind):
        return [(zero(kind.key_type), zero(kind.item_type))]
    if types.is_fixed_size_list(kind):
        return [zero(kind.value_type)] * kind.list_size
    if hasattr(kind, "value_type"):  # lists of all sorts, and dictionaries
        inner = zero(kind.value_type)
        return [inner] if types.is_nested(kind) else inner
    if types.is_fixed_size_binary(kind) and not types.is_decimal(kind):
        return bytes(kind.byte_width)
    for value in _VALUES:
        with suppress(pa.ArrowException, TypeError, ValueError):
            pa.array([value], kind)
            return value
    raise NotImplementedError(f"no value of type {kind} is known")
