"""Memory under nulls: what Arrow's formats would write of it, and must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.files.batches import SOLID


def without_residue(array: Any) -> Any:  # noqa: PLR0911 (one for each kind of type)
    r"""Return an array that is equal, and has zeros where values are missing.

    Arrow's formats write the memory of an array, the places of missing values included, and nobody promises what
    is there: it may be anything that the process had in memory before, labels too.

    Examples
    --------
    >>> gap = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([1, 31415]))])
    >>> gap.to_pylist(), np.frombuffer(without_residue(gap).buffers()[1], np.int64).tolist()
    ([1, None], [1, 0])
    """
    kind = array.type
    if types.is_null(kind):
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, without_residue(array.storage))
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            without_residue(array.indices), without_residue(array.dictionary), ordered=kind.ordered
        )
    if types.is_struct(kind):
        inner = [without_residue(each) for each in array.flatten()]
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=_gaps(array)) if inner else array
    if types.is_list(kind) or types.is_large_list(kind):
        listed = pa.LargeListArray if types.is_large_list(kind) else pa.ListArray
        values = without_residue(array.flatten())
        return listed.from_arrays(_offsets(array, pc.list_value_length), values, type=kind, mask=_gaps(array))
    if types.is_run_end_encoded(kind):  # a run ended where a batch did
        return pc.run_end_encode(without_residue(pc.run_end_decode(array)), run_end_type=kind.run_end_type)
    if types.is_fixed_size_list(kind):
        return _fixed_size_list(array)
    if types.is_map(kind):
        return _map(array)
    if kind in SOLID:
        return without_residue(array.cast(SOLID[kind])).cast(kind)
    return _flat(array)


def _gaps(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _offsets(array: Any, lengths: Any) -> Any:
    """Return where values begin if missing ones take no space."""
    wide = (
        types.is_large_list(array.type) or types.is_large_string(array.type) or types.is_large_binary(array.type)
    )
    ends = np.cumsum(np.asarray(lengths(array).fill_null(0)))
    return pa.array(np.concatenate([[0], ends]), pa.int64() if wide else pa.int32())


def _flat(array: Any) -> Any:
    """Return a copy that is as long as its values: a buffer may go on after the last of them."""
    kind = array.type
    if types.is_boolean(kind):
        return pa.array(np.asarray(array.fill_null(False)), mask=np.asarray(array.is_null()))
    full = pa.concat_arrays([array.drop_null(), array.slice(0, 0)])
    if not array.null_count:
        return full
    there = np.asarray(array.is_valid())
    if types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind):
        width = kind.bit_width // 8
        places = np.zeros((len(array), width), np.uint8)
        if len(full):
            places[there] = np.frombuffer(full.buffers()[1], np.uint8, len(full) * width).reshape(-1, width)
        data: list[Any] = [places]
    else:  # text and bytes
        data = [_offsets(array, pc.binary_length).buffers()[1], full.buffers()[2] or b""]
    buffers = map(pa.py_buffer, [np.packbits(there, bitorder="little"), *data])
    return pa.Array.from_buffers(kind, len(array), list(buffers), array.null_count)


def _fixed_size_list(array: Any) -> Any:
    size, there = array.type.list_size, np.asarray(array.is_valid())
    places = np.repeat(np.cumsum(there) - 1, size) * size + np.tile(np.arange(size), len(array))
    values = array.flatten().take(pa.array(places, pa.int64(), mask=np.repeat(~there, size)))
    return pa.FixedSizeListArray.from_arrays(without_residue(values), type=array.type, mask=_gaps(array))


def _map(array: Any) -> Any:
    """Return a map by way of a list of pairs, which is what it is in memory."""
    pairs = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    kind, kept = pa.list_(pairs.type), array.buffers()[:2]
    listed = without_residue(
        pa.Array.from_buffers(kind, len(array), kept, array.null_count, array.offset, children=[pairs])
    )
    keys, items = listed.values.flatten()
    return pa.MapArray.from_arrays(listed.offsets, keys, items, type=array.type, mask=_gaps(array))
