"""Arrays in files that anybody may have written: read only if they are what a table of specifications says.

An ``.npz`` file is a zip of arrays. A member's name, dtype, shape and size are compared with its `ArraySpec`
before its numbers are read, and its numbers before anybody uses them. Nothing is unpickled.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from labeldp._atomic import open_regular
from labeldp.errors import CardError, LabelDPError

Arrays = dict[str, NDArray[Any]]

MAX_FILE = 1 << 31
"""Larger files are refused; a model of 300 columns takes 10 MB."""

MAX_MEMORY, MAX_EXPANSION = 1 << 28, 64
"""Arrays may take this much memory, and this many times their file's size: noise shrinks little."""

_LARGEST = float(np.finfo(np.float64).max)
_END = struct.Struct("<4s4H2LH")
"""The end of a zip: signature, disks, members, size and start of their directory, length of a comment."""

_MAX_DIRECTORY = 1 << 14
"""Bytes of a directory at most; a model with trees has 2 KiB."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """What one array must be.

    Attributes
    ----------
    dtype : str
        The exact dtype, or ``"<U"`` for text of at most ``high`` characters.
    shape : tuple of str
        Names of dimensions. Arrays that name the same dimension have the same size along it.
    low, high : float
        The range of all numbers, ends included. By default, any finite number.
    """

    dtype: str
    shape: tuple[str, ...] = ()
    low: float = -_LARGEST
    high: float = _LARGEST

    def refuse_type(self, dtype: np.dtype[Any]) -> None:
        """Raise a `ValueError` if numbers of this dtype are none that are expected."""
        is_text = dtype.kind == "U" and 0 < dtype.itemsize <= 4 * self.high
        if not (is_text if self.dtype == "<U" else dtype == np.dtype(self.dtype)):
            raise ValueError(f"its dtype is not {self.dtype}")

    def refuse_values(self, array: NDArray[Any]) -> None:
        """Raise a `ValueError` if a number is not in the range, or text is not Unicode."""
        if self.dtype == "<U":
            str(array).encode()
        elif not ((array >= np.float64(self.low)) & (array <= np.float64(self.high))).all():
            raise ValueError(f"a number is not between {self.low:g} and {self.high:g}")


def read_arrays(
    path: str | os.PathLike[str],
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
        What each array must be, by its name.
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
    labeldp.errors.CardError: ...numbers.npz is damaged, or was not written by labeldp: shares: a number is not ...
    """
    try:
        with open_regular(path) as stream:
            size = _refuse_directory(stream)
            with zipfile.ZipFile(stream) as archive:
                memory = MAX_MEMORY + MAX_EXPANSION * size
                arrays = _read_members(archive, specs, dict(sizes), memory, skip_others=skip_others)
        _refuse_missing(set(arrays), set(specs), optional)
    except LabelDPError:
        raise
    except Exception as error:  # whatever a hostile archive makes NumPy and zlib raise
        why = str(error) if type(error) is ValueError else type(error).__name__
        raise CardError(f"{os.fspath(path)} is damaged, or was not written by labeldp: {why}") from None
    return arrays


def _read_members(
    archive: zipfile.ZipFile,
    specs: Mapping[str, ArraySpec],
    sizes: dict[str, tuple[int, int]],
    memory: int,
    *,
    skip_others: bool,
) -> Arrays:
    arrays: Arrays = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if skip_others and name not in specs:
            continue
        if name == member.filename or name not in specs or name in arrays:
            raise ValueError("it holds an array that is not expected")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("it is compressed in an unknown way")
        with archive.open(member) as stream:
            try:
                arrays[name] = _read_array(stream, specs[name], sizes, memory)
                specs[name].refuse_values(arrays[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        memory -= arrays[name].nbytes
    return arrays


def _read_array(stream: Any, spec: ArraySpec, sizes: dict[str, tuple[int, int]], memory: int) -> NDArray[Any]:
    """Return the array in a stream, of which no more is read than its header says, if that is as specified."""
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("its header is of an unknown version")
    shape, in_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    spec.refuse_type(dtype)
    if len(shape) != len(spec.shape):
        raise ValueError(f"it must have {len(spec.shape)} dimensions")
    for name, size in zip(spec.shape, shape, strict=True):
        low, high = sizes[name]
        if not low <= size <= high:
            raise ValueError(f"its {name} must be {low}" + ("" if low == high else f" to {high}"))
        sizes[name] = (size, size)
    count = math.prod(shape) * dtype.itemsize
    if count > memory:
        raise ValueError("it would unpack to far more than its file's size")
    data = stream.read(count)
    if len(data) != count or stream.read(1):
        raise ValueError("it does not have the size that its header states")
    return np.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if in_columns else "C")


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
    return size


def _refuse_missing(there: set[str], known: set[str], optional: Sequence[str]) -> None:
    missing = known - there
    for prefix in optional:
        group = {name for name in known if name.startswith(prefix)}
        missing -= group if not group & there else set()
    if missing:
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
