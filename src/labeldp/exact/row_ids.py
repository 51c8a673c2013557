"""Ids of rows as blocks of 128 bits: integers as they are, text and bytes through a keyed hash."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from labeldp._values import Counts, Words

Blocks = Words
"""Rows × 2: blocks of 128 bits, their bytes in the order of the memory of a little-endian machine."""


def aes(key: bytes) -> CipherContext:
    """Return AES-256 on single blocks: a pseudo-random permutation."""
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305 (a permutation is needed)


def encrypted(cipher: CipherContext, blocks: Blocks) -> Blocks:
    """Return each block, encrypted."""
    result = np.empty((len(blocks) + 1, 2), dtype=np.uint64)  # a block more: update_into asks for room
    cipher.update_into(blocks.reshape(-1).view(np.uint8).data, result.reshape(-1).view(np.uint8).data)
    return result[:-1]


@dataclass(frozen=True, slots=True)
class Ids:
    """One id for each row.

    Attributes
    ----------
    kind : {"integer", "text", "binary"}
    values : array of int64, or list of bytes
        NumPy's own arrays of text and bytes would not do: they drop zeros at the end.
    """

    kind: Literal["integer", "text", "binary"]
    values: Counts | list[bytes]

    def __len__(self) -> int:
        return len(self.values)

    def distinct(self) -> bool:
        """Return True if no two are equal."""
        if isinstance(self.values, np.ndarray):
            return bool(np.diff(np.sort(self.values)).all())
        return len(set(self.values)) == len(self.values)

    def blocks(self, key: bytes, start: int, stop: int) -> Blocks:
        """Return the blocks of some rows: integers and zeros, or the first 128 bits of HMAC-SHA256."""
        values = self.values[start:stop]
        if isinstance(values, np.ndarray):
            return np.column_stack([values, np.zeros_like(values)]).astype("<i8").view(np.uint64)
        tags = [hmac.digest(key, value, "sha256")[:16] for value in values]
        return np.frombuffer(b"".join(tags), dtype=np.uint64).reshape(-1, 2)


def public_places(ids: Ids) -> Blocks:
    """Return two words for each id, the same everywhere and known to all: for public samples and orders."""
    key = bytes(32)
    return encrypted(aes(key), ids.blocks(key, 0, len(ids)))
