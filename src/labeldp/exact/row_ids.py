"""Ids of rows as blocks of 128 bits: integers as they are, text and bytes through a keyed hash."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

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

    values: NDArray[np.int64]
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
    cipher : AES under the hash's key, or None
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    kind: str
    cipher: CipherContext | None = field(default=None, repr=False)

    @classmethod
    def of(cls, values: list[bytes], kind: str) -> TextIds:
        """Return a list's ids."""
        offsets = np.concatenate([[0], np.cumsum([len(value) for value in values], dtype=np.int64)])
        return cls(offsets.astype(np.int64), np.frombuffer(b"".join(values), dtype=np.uint8), kind)

    def under(self, cipher: CipherContext) -> TextIds:
        """Return these ids, to be hashed with a key."""
        return replace(self, cipher=cipher)

    def __len__(self) -> int:
        return int(self.offsets.size - 1)

    def distinct(self) -> bool:
        """Return whether no two are equal."""
        data = self.data[self.offsets[0] : self.offsets[-1]].tobytes()
        places = (self.offsets - self.offsets[0]).tolist()
        return len({data[start:stop] for start, stop in pairwise(places)}) == len(self)

    def blocks(self, start: int, stop: int) -> Blocks:
        """Return a keyed hash of each of some rows' ids: CMAC with AES-256 (RFC 4493), on all of them at once."""
        assert self.cipher is not None  # noqa: S101 (for the type checker)
        offsets = self.offsets[start : stop + 1]
        length = np.diff(offsets)
        count = np.maximum(1, -(-length // _BLOCK))
        first = np.concatenate([[0], np.cumsum(count)])
        message = self._padded(offsets, length, first)
        last, whole = first[1:] - 1, (length > 0) & (length % _BLOCK == 0)
        message[last] ^= np.where(whole[:, None], *_subkeys(self.cipher))

        # Rows with most blocks first, so that those not yet done are always the first ones.
        order = np.argsort(-count, kind="stable")
        first, count = first[:-1][order], count[order]
        state = np.zeros((stop - start, 2), dtype=np.uint64)
        for step in range(int(count[0])):
            left = int(np.searchsorted(-count, -step, side="left"))
            state[:left] = encrypted(self.cipher, state[:left] ^ message[first[:left] + step])
        result = np.empty_like(state)
        result[order] = state
        return result

    def _padded(self, offsets: NDArray[np.int64], length: NDArray[np.int64], first: NDArray[np.int64]) -> Blocks:
        """Return the messages in whole blocks: each followed by a bit, and zeros, where its last is not full."""
        padded = np.zeros(int(first[-1]) * _BLOCK, dtype=np.uint8)
        shift = first[:-1] * _BLOCK - offsets[:-1]
        some = self.data[offsets[0] : offsets[-1]]
        padded[np.arange(offsets[0], offsets[-1]) + np.repeat(shift, length)] = some
        open_ended = (length % _BLOCK > 0) | (length == 0)
        padded[(first[:-1] * _BLOCK + length)[open_ended]] = 0x80
        return padded.view(np.uint64).reshape(-1, 2)


def _subkeys(cipher: CipherContext) -> tuple[Blocks, Blocks]:
    """Return what CMAC adds to a last block that is full, and to one that was padded."""
    keys = []
    value = int.from_bytes(encrypted(cipher, np.zeros((1, 2), dtype=np.uint64)).tobytes(), "big")
    for _ in range(2):
        carry = value >> 127
        value = ((value << 1) & ((1 << 128) - 1)) ^ (0x87 if carry else 0)
        keys.append(np.frombuffer(value.to_bytes(_BLOCK, "big"), dtype=np.uint64))
    return keys[0], keys[1]


def as_ids(ids: Any) -> IntegerIds | TextIds:
    """Return ids of rows, or raise `ParameterError`."""
    if isinstance(ids, IntegerIds | TextIds):
        return ids
    if isinstance(ids, list | tuple) and len({type(one) for one in ids}) > 1:
        raise ParameterError(Setting("ids"), " must all be of one kind: numbers, text or bytes")
    array = np.asarray(ids)
    if array.dtype.kind == "U" or (array.dtype.kind == "S" and not isinstance(ids, np.ndarray)):
        array = np.asarray(ids, dtype=object)  # as they came: of a fixed width, they lose zeros at their end
    if array.ndim != 1:
        raise ParameterError(Setting("ids"), f" must be a list, one for each label, got shape {array.shape}")
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.size and int(array.max()) >> 63:
            raise ParameterError(Setting("ids"), " of 2^63 and more do not fit: give them as text")
        return IntegerIds(array.astype(np.int64))
    if all(isinstance(one, str) for one in array):
        return TextIds.of([one.encode() for one in array], "text")
    if array.dtype.kind == "O" and all(isinstance(one, bytes) for one in array):
        return TextIds.of(list(array), "binary")
    raise ParameterError(Setting("ids"), " must be integers, text, or bytes (in a list); none may be missing")


def public_places(ids: IntegerIds | TextIds) -> Blocks:
    """Return two words for each id, the same everywhere and known to all: for public samples and orders."""
    key = bytes(32)
    known = ids.under(aes(key)) if isinstance(ids, TextIds) else ids
    return encrypted(aes(key), known.blocks(0, len(ids)))
