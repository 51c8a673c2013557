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
        return pc.run_end_encode(pc.run_end_decode(array), run_end_type=kind.run_end_type)
    if types.is_nested(kind) or types.is_string_view(kind) or types.is_binary_view(kind):
        return array if types.is_union(kind) else pa.array(array.to_pylist(), kind)
    return _flat(array) if array.null_count else array


def _flat(array: Any) -> Any:
    pa = arrow().core
    there = np.asarray(array.is_valid())
    full = array.fill_null(pa.scalar(zero(array.type), array.type))
    bits = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(
        array.type, len(array), [bits, *full.buffers()[1:]], array.null_count, full.offset
    )


def _list(array: Any) -> Any:
    pa, pc = arrow().core, arrow().compute
    length = np.asarray(pc.list_value_length(array).fill_null(0))
    wide = pa.types.is_large_list(array.type)
    offsets = pa.array(np.concatenate([[0], np.cumsum(length)]), pa.int64() if wide else pa.int32())
    made = pa.LargeListArray if wide else pa.ListArray
    gaps = array.is_null() if array.null_count else None
    return made.from_arrays(offsets, without_residue(array.flatten()), type=array.type, mask=gaps)
