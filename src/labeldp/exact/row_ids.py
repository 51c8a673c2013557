"""Ids of rows as blocks of 128 bits: integers as they are, text and bytes through a keyed hash."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from labeldp._values import Counts
from labeldp.errors import ParameterError, Setting

Blocks = NDArray[np.uint64]
"""Rows × 2: blocks of 128 bits, their bytes in the order of the memory of a little-endian machine."""

_BLOCK = 16


def aes(key: bytes) -> CipherContext:
    """Return AES-256 on single blocks: a pseudo-random permutation."""
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305 (a permutation is what is wanted)


def encrypted(cipher: CipherContext, blocks: Blocks) -> Blocks:
    """Return each block, encrypted."""
    result = np.empty((len(blocks) + 1, 2), dtype=np.uint64)  # a block more: update_into asks for room
    cipher.update_into(blocks.reshape(-1).view(np.uint8).data, result.reshape(-1).view(np.uint8).data)
    return result[:-1]


@dataclass(frozen=True, slots=True)
class IntegerIds:
    """Integers of 64 bits: a block each, so that different ids have different blocks."""

    values: Counts
    kind: str = "integer"

    def __len__(self) -> int:
        return int(self.values.size)

    def distinct(self) -> bool:
        """Return whether no two are equal."""
        return bool(np.diff(np.sort(self.values)).all())

    def blocks(self, start: int, stop: int) -> Blocks:
        """Return the blocks of some rows."""
        result = np.zeros((stop - start, 2), dtype="<i8")
        result[:, 0] = self.values[start:stop]
        return result.view(np.uint64)


@dataclass(frozen=True, slots=True)
class TextIds:
    """Strings of bytes of any length, one after the other, as Arrow keeps them.

    Attributes
    ----------
    offsets : array of n + 1 integers
        Where each starts, and where the last ends.
    data : array of uint8
    kind : {"text", "binary"}
    key : bytes or None
        Of the hash.
    """

    offsets: Counts
    data: NDArray[np.uint8]
    kind: str
    key: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, values: list[bytes], kind: str) -> TextIds:
        """Return a list's ids."""
        offsets = np.concatenate([[0], np.cumsum([len(value) for value in values], dtype=np.int64)])
        return cls(offsets.astype(np.int64), np.frombuffer(b"".join(values), dtype=np.uint8), kind)

    def under(self, key: bytes) -> TextIds:
        """Return these ids, to be hashed with a key."""
        return replace(self, key=key)

    def __len__(self) -> int:
        return int(self.offsets.size - 1)

    def _values(self, start: int, stop: int) -> Iterator[bytes]:
        offsets = self.offsets[start : stop + 1]
        data = self.data[offsets[0] : offsets[-1]].tobytes()
        for first, last in pairwise((offsets - offsets[0]).tolist()):
            yield data[first:last]

    def distinct(self) -> bool:
        """Return whether no two are equal."""
        return len(set(self._values(0, len(self)))) == len(self)

    def blocks(self, start: int, stop: int) -> Blocks:
        """Return a keyed hash of each of some rows' ids: the first 128 bits of HMAC-SHA256."""
        assert self.key is not None  # noqa: S101 (for the type checker)
        tags = [hmac.digest(self.key, value, "sha256")[:_BLOCK] for value in self._values(start, stop)]
        return np.frombuffer(b"".join(tags), dtype=np.uint64).reshape(-1, 2)


def as_ids(ids: Any) -> IntegerIds | TextIds:
    """Return ids of rows, or raise `ParameterError`: NumPy cuts zeros off text and bytes of a fixed width."""
    if isinstance(ids, IntegerIds | TextIds):
        return ids
    if isinstance(ids, np.ndarray) and ids.dtype == np.int64 and ids.ndim == 1:
        return IntegerIds(ids)
    kinds = {type(one) for one in ids} if isinstance(ids, list) else set()
    if kinds == {int} and max(map(abs, ids)) < 1 << 63:
        return IntegerIds(np.array(ids, dtype=np.int64))
    if kinds == {str}:
        return TextIds.of([one.encode() for one in ids], "text")
    if kinds == {bytes}:
        return TextIds.of(ids, "binary")
    raise ParameterError(
        Setting("ids"), " must be an array of 64-bit integers, or a list of integers, of text or of bytes"
    )


def public_places(ids: IntegerIds | TextIds) -> Blocks:
    """Return two words for each id, the same everywhere and known to all: for public samples and orders."""
    key = bytes(32)
    known = ids.under(key) if isinstance(ids, TextIds) else ids
    return encrypted(aes(key), known.blocks(0, len(ids)))
