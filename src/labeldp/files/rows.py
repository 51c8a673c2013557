"""Some rows of a batch, for columns of every type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._arrow import arrow
from labeldp.errors import ParameterError

__all__ = ["refuse_odd_types", "size_of", "taken"]


def taken(batch: Any, places: NDArray[np.int64]) -> Any:
    """Return the rows at some places, in that order.

    Arrow cannot take rows of every type that it can read and write; those are put together one by one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"a": pa.array(["x", "y", "z"], pa.string_view())})
    >>> taken(batch, np.array([2, 0])).to_pydict()
    {'a': ['z', 'x']}
    """
    pa = arrow().core
    return pa.RecordBatch.from_arrays([_taken(column, places) for column in batch.columns], schema=batch.schema)


def _taken(column: Any, places: NDArray[np.int64]) -> Any:
    pa = arrow().core
    solid = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(column.type)
    if solid is not None:
        return _taken(column.cast(solid), places).cast(column.type)
    try:
        return column.take(pa.array(places, pa.int64()))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        pieces = [column.slice(place, 1) for place in places.tolist()]
    return pa.concat_arrays(pieces) if pieces else column.slice(0, 0)


def size_of(batch: Any) -> int:
    """Return how many bytes the values of a batch have, about: the same however they came into memory.

    Examples
    --------
    >>> import pyarrow as pa
    >>> size_of(pa.record_batch({"a": [1, 2, 3], "b": ["x", None, "yz"]}).slice(1))
    18
    """
    return sum(_size(column) for column in batch.columns)


def _size(array: Any) -> int:
    pa, pc = arrow().core, arrow().compute
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _size(array.storage)
    if pa.types.is_dictionary(kind):
        return _size(array.indices)
    if pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = array.flatten()
        return sum(map(_size, inner)) if isinstance(inner, list) else _size(inner)
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return int(len(array) * kind.bit_width // 8)
    try:
        return int(pc.sum(pc.binary_length(array)).as_py() or 0)
    except pa.ArrowNotImplementedError:  # of other types, by the number of values
        return 8 * len(array)


def refuse_odd_types(schema: Any) -> None:
    """Refuse columns that rows cannot be taken of, or put together, by a trial."""
    pa = arrow().core
    for field in schema:
        if _has_union(field.type):  # the memory of what is not selected would be written, too
            raise ParameterError(f"columns of unions, such as {field.name!r}, are not supported: convert it")
        try:
            some = _taken(pa.nulls(2, field.type), np.array([1, 0]))
            pa.chunked_array([some, some]).unify_dictionaries().combine_chunks()
            continue
        except pa.ArrowException:
            pass
        raise ParameterError(
            f"columns of type {field.type}, such as {field.name!r}, are not supported: convert it"
        )


def _has_union(kind: Any) -> bool:
    types = arrow().core.types
    inner = [kind.field(k).type for k in range(kind.num_fields)] if types.is_nested(kind) else []
    return bool(types.is_union(kind) or types.is_list_view(kind) or any(map(_has_union, inner)))
