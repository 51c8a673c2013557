"""Read arrays from untrusted files: each must match its specification.

An ``.npz`` file is a zip of arrays. NumPy reads it, without pickles and no more bytes than the zip's directory
states; names, dtypes, shapes and numbers are compared with their `ArraySpec` before anybody uses them.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from labeldp._atomic import StrPath, open_regular
from labeldp._values import Data, Numbers
from labeldp.errors import CardError, LabelDPError

Arrays = dict[str, Numbers]

MAX_FILE = 1 << 31
"""Larger files are refused; a model of 300 columns takes 10 MB."""

MAX_MEMORY = 1 << 28
"""Bytes that arrays may take …"""

MAX_EXPANSION = 64
"""… beside this many times the size of their file: noise shrinks little."""

_LARGEST = float(np.finfo(np.float64).max)
_TINY = float(np.finfo(np.float64).smallest_subnormal)
_END = struct.Struct("<4s4H2LH")
"""The end of a zip: signature, disks, members, size and start of their directory, length of a comment."""

_MAX_DIRECTORY = 1 << 14
"""Bytes of a directory at most; a model with trees has 2 KiB."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The specification of an array.

    Attributes
    ----------
    dtype : str
        The exact dtype, or ``"<U"`` for text of any length.
    shape : tuple of str
        Names of dimensions. Arrays that name the same dimension have the same size along it.
    low, high : float
        The range of all numbers, ends included. By default, any finite number.
    """

    dtype: str
    shape: tuple[str, ...] = ()
    low: float = -_LARGEST
    high: float = _LARGEST

    def refuse_other(self, array: Numbers, sizes: dict[str, tuple[int, int]]) -> None:
        """Raise a `ValueError` if this is no such array; its dimensions in ``sizes`` get this array's size."""
        is_text = self.dtype == "<U"
        if not (array.dtype.kind == "U" if is_text else array.dtype == np.dtype(self.dtype)):
            raise ValueError(f"its dtype is not {self.dtype}")
        for name, size in zip(self.shape, array.shape, strict=True):
            low, high = sizes[name]
            if not low <= size <= high:
                raise ValueError(f"its {name} must be {low} to {high}")
            sizes[name] = (size, size)
        if is_text:
            str(array).encode()  # raises for text that is not Unicode
        elif not ((array >= np.float64(self.low)) & (array <= np.float64(self.high))).all():
            raise ValueError(f"a number is not between {self.low:g} and {self.high:g}")


def _as_spec(dtype: str, dimensions: str, *limits: str) -> ArraySpec:
    shape = () if dimensions == "-" else tuple(dimensions.split(","))
    return ArraySpec(dtype, shape, *(_TINY if limit == "positive" else float(limit) for limit in limits))


def parse_specs(table: str) -> dict[str, ArraySpec]:
    """Return the specifications of arrays, one in a line: name, dtype, dimensions, least and largest number."""
    return {name: _as_spec(*columns) for name, *columns in map(str.split, table.strip().splitlines())}


@dataclass(frozen=True, slots=True)
class ArraySchema:
    """The arrays of a file of objects: ``linear_weights`` are the ``weights`` of the object ``linear``.

    Attributes
    ----------
    specs : dict of ArraySpec
        The specification of each array, by its name.
    optional : tuple of str
        As for `read_arrays`.
    """

    specs: Mapping[str, ArraySpec]
    optional: tuple[str, ...]

    def write(self, path: StrPath, objects: Mapping[str, Any]) -> None:
        """Write the attributes of objects to a file; without those that are None, or whose object is."""
        arrays: Arrays = {}
        for name, spec in self.specs.items():
            owner, _, attribute = name.partition("_")
            value = getattr(objects.get(owner), attribute, None)
            if value is not None:
                arrays[name] = np.asarray(value).astype(spec.dtype)
        np.savez(path, allow_pickle=False, **arrays)

    def read(self, path: StrPath, sizes: Mapping[str, tuple[int, int]]) -> dict[str, Data]:
        """Return the attributes of each object in a file; those of an object without arrays are empty.

        Raises
        ------
        CardError
            If an array is not as specified.
        """
        objects: dict[str, Data] = {name.partition("_")[0]: {} for name in self.specs}
        for name, array in read_arrays(path, self.specs, sizes, optional=self.optional).items():
            owner, _, attribute = name.partition("_")
            objects[owner][attribute] = array if array.ndim else array.item()
        return objects


def read_arrays(
    path: StrPath,
    specs: Mapping[str, ArraySpec],
    sizes: Mapping[str, tuple[int, int]],
    *,
    optional: Sequence[str] = (),
    skip_others: bool = False,
) -> Arrays:
    """Return the arrays of an ``.npz`` file.

    Parameters
    ----------
    path : path-like
    specs : mapping
        The specification of each array, by its name.
    sizes : mapping
        The least and the largest size of each dimension that the specifications name.
    optional : sequence of str
        Prefixes: arrays whose names start with one of them are all there, or none of them is.
    skip_others : bool
        Whether arrays that are not specified may be there; they are not read.

    Raises
    ------
    CardError
        If anything is not as specified.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from labeldp.learning.array_files import ArraySpec, read_arrays
    >>> path = tempfile.mkdtemp() + "/numbers.npz"
    >>> np.savez(path, shares=np.array([0.5, 2.0]))
    >>> read_arrays(path, {"shares": ArraySpec("<f8", ("rows",), 0, 1)}, {"rows": (1, 10)})
    Traceback (most recent call last):
    labeldp.errors.CardError: ...numbers.npz is damaged, or was not written by labeldp: a number is not ...
    """
    known_sizes = dict(sizes)
    try:
        with open_regular(path) as stream:
            memory = MAX_MEMORY + MAX_EXPANSION * _refuse_directory(stream)
            with np.load(stream, allow_pickle=False) as stored:
                _refuse_members(stored.zip.infolist(), memory)
                names = [name for name in stored.files if name in specs or not skip_others]
                _refuse_names(names, specs, optional)
                arrays = {name: stored[name] for name in names}
        for name, array in arrays.items():
            specs[name].refuse_other(array, known_sizes)
    except LabelDPError:
        raise
    except Exception as error:  # whatever a hostile archive makes NumPy and zlib raise
        why = str(error) if type(error) is ValueError else type(error).__name__
        raise CardError(f"{os.fspath(path)} is damaged, or was not written by labeldp: {why}") from None
    return arrays


def _refuse_directory(stream: BinaryIO) -> int:
    """Return the size of a zip whose directory is small; `ZipFile` reads all of it at once."""
    size = stream.seek(0, os.SEEK_END)
    if not _END.size + 20 <= size <= MAX_FILE:
        raise ValueError("its size is not that of a file with arrays")
    stream.seek(size - _END.size - 20)
    before = stream.read(20)  # where a second record would be, of archives above 4 GiB, which counts instead
    mark, *_, directory, _, comment = _END.unpack(stream.read())
    if mark != b"PK\5\6" or comment or before[:4] == b"PK\6\7":
        raise ValueError("it is not a plain zip archive")
    if directory > _MAX_DIRECTORY:
        raise ValueError("it holds more arrays than expected")
    stream.seek(0)
    return size


def _refuse_members(members: Sequence[zipfile.ZipInfo], memory: int) -> None:
    """Refuse ways to compress that need memory of their own, and sizes, beyond which `ZipFile` does not unpack."""
    if {member.compress_type for member in members} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError("it is compressed in an unknown way")
    if sum(member.file_size for member in members) > memory:
        raise ValueError("it would unpack to far more than its file's size")


def _refuse_names(names: Sequence[str], specs: Mapping[str, ArraySpec], optional: Sequence[str]) -> None:
    """Refuse arrays that are missing, and those that are not expected, or are there twice."""
    expected = set(specs)
    for prefix in optional:
        group = {name for name in specs if name.startswith(prefix)}
        if group.isdisjoint(names):
            expected -= group
    missing = expected.difference(names)
    if missing:
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    if len(names) > len(expected):
        raise ValueError("it holds an array that is not expected")
