"""Arrays without what lies under their nulls.

Arrow's formats write the memory of an array, the places of missing values included, and nobody promises what is
there: it may be anything that the process had in memory before, labels too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labeldp._arrow import arrow
from labeldp.files.examples import zero

__all__ = ["without_residue"]


def without_residue(array: Any) -> Any:  # noqa: PLR0911 (one for each kind of type)
    r"""Return an array that is equal, and has zeros where values are missing.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> gap = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([1, 31415]))])
    >>> gap.to_pylist(), np.frombuffer(without_residue(gap).buffers()[1], np.int64).tolist()
    ([1, None], [1, 0])
    """
    pa, pc = arrow().core, arrow().compute
    types, kind = pa.types, array.type
    if types.is_null(kind):
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, without_residue(array.storage))
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            without_residue(array.indices), without_residue(array.dictionary), ordered=kind.ordered
        )
    if types.is_boolean(kind):
        bits = np.asarray(array.fill_null(False))
        return pa.array(bits, mask=np.asarray(array.is_null()) if array.null_count else None)
    if types.is_struct(kind):
        inner = [without_residue(each) for each in array.flatten()]
        gaps = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=gaps) if inner else array
    if types.is_list(kind) or types.is_large_list(kind):
        return _list(array)
    if types.is_run_end_encoded(kind):  # a run ended where a batch did
        return pc.run_end_encode(without_residue(pc.run_end_decode(array)), run_end_type=kind.run_end_type)
    if types.is_fixed_size_list(kind):
        return _fixed_size_list(array)
    if types.is_map(kind):
        return _map(array)
    solid = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(kind)
    if solid is not None:
        return without_residue(array.cast(solid)).cast(kind)
    return _flat(array)


def _flat(array: Any) -> Any:
    """Return a copy that is as long as its values: a buffer may go on after the last of them."""
    pa = arrow().core
    if not array.null_count:
        return pa.concat_arrays([array, array.slice(0, 0)])
    there = np.asarray(array.is_valid())
    full = array.fill_null(pa.scalar(zero(array.type), array.type)).cast(array.type)  # short decimals grow
    full = pa.concat_arrays([full, full.slice(0, 0)])
    buffers = [pa.py_buffer(np.packbits(there, bitorder="little")), *full.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count, full.offset)


def _fixed_size_list(array: Any) -> Any:
    pa = arrow().core
    size, there = array.type.list_size, np.asarray(array.is_valid())
    places = np.repeat(np.cumsum(there) - 1, size) * size + np.tile(np.arange(size), len(array))
    values = array.flatten().take(pa.array(places, pa.int64(), mask=np.repeat(~there, size)))
    gaps = array.is_null() if array.null_count else None
    return pa.FixedSizeListArray.from_arrays(without_residue(values), type=array.type, mask=gaps)


def _map(array: Any) -> Any:
    """Return a map by way of a list of pairs, which is what it is in memory."""
    pa = arrow().core
    pairs = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    kept, kind = array.buffers()[:2], pa.list_(pairs.type)
    listed = _list(pa.Array.from_buffers(kind, len(array), kept, array.null_count, array.offset, children=[pairs]))
    keys, items = listed.values.flatten()
    gaps = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(listed.offsets, keys, items, type=array.type, mask=gaps)


def _list(array: Any) -> Any:
    pa, pc = arrow().core, arrow().compute
    length = np.asarray(pc.list_value_length(array).fill_null(0))
    wide = pa.types.is_large_list(array.type)
    offsets = pa.array(np.concatenate([[0], np.cumsum(length)]), pa.int64() if wide else pa.int32())
    made = pa.LargeListArray if wide else pa.ListArray
    gaps = array.is_null() if array.null_count else None
    return made.from_arrays(offsets, without_residue(array.flatten()), type=array.type, mask=gaps)
