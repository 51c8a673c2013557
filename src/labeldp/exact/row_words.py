"""Words that belong to a row: computed again for the same row, they are the same again.

A cluster may run a task twice, and fresh noise for a label that was released before would spend the budget again.
So here a word is a pseudo-random function, under a secret key, of what names it: the release, the card's checksum,
the column, the round, the number of the word, and the row's id; never of time or place. The key is generated for
one release, and destroyed after: two releases under one key would share their noise, and their difference would
show labels. The guarantee is computational, as with AES in counter mode: see ``docs/proofs/spark.md``.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from typing import Any, NoReturn

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import CipherContext
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from labeldp._values import Words
from labeldp.errors import ParameterError, Setting
from labeldp.exact.row_ids import IntegerIds, TextIds, aes, as_ids, encrypted
from labeldp.exact.word_sources import CHUNK, WordSource, warn_of_seed

_LENGTH = 32


def card_checksum(mechanism: Any) -> str:
    """Return the checksum on a mechanism's card."""
    return str(json.loads(mechanism.to_json())["checksum"])


def _encoded(*fields: str | int) -> bytes:
    """Return fields as bytes that no other fields give: each with its kind and length before it."""
    parts = []
    for field in fields:
        kind, data = (b"i", str(field).encode()) if isinstance(field, int) else (b"s", field.encode())
        parts.append(kind + len(data).to_bytes(8, "big") + data)
    return len(fields).to_bytes(8, "big") + b"".join(parts)


def _derive(secret: bytes | bytearray, *purpose: str | int) -> bytes:
    return HKDF(hashes.SHA256(), _LENGTH, salt=b"labeldp row words 1", info=_encoded(*purpose)).derive(secret)


class _Once:
    """Uses that are allowed once each, whatever the threads, and only in the process that started them."""

    __slots__ = ("_lock", "_owner", "_uses")

    def __init__(self) -> None:
        self._uses: set[object] = set()
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def claim(self, use: object, refusal: str) -> None:
        """Note a use, or refuse it."""
        if self._owner != os.getpid():
            raise ParameterError(
                "a secret of rows serves only the process that generated it: generate another one there"
            )
        with self._lock:
            if use in self._uses:
                raise ParameterError(refusal)
            self._uses.add(use)


class ReleaseKey:
    """A secret for the rows of one release.

    Each column and round has its secret once; a key that was destroyed gives nothing more. It cannot be
    copied or pickled, and does not show itself.

    Attributes
    ----------
    release : str
        The release's name, public and random.
    secure : bool
        False for a key from a seed: what is released with it is **not private**.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mechanism = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> with ReleaseKey() as key:
    ...     secret = key.secret(card=card_checksum(mechanism), column="price")
    >>> once = mechanism.randomize([1.0, 2.0, 3.0], random_state=RowWords(secret, [11, 12, 13]))
    >>> again = mechanism.randomize([3.0, 1.0], random_state=RowWords(secret, [13, 11]))
    >>> bool((again == once[[2, 0]]).all())
    True
    """

    __slots__ = ("_once", "_secret", "release", "secure")

    def __init__(self) -> None:
        self._start(os.urandom(_LENGTH), os.urandom(16).hex(), secure=True)

    def _start(self, secret: bytes, release: str, *, secure: bool) -> None:
        self._secret: bytearray | None = bytearray(secret)
        self._once = _Once()
        self.release = release
        self.secure = secure

    @classmethod
    def from_seed(cls, seed: int) -> ReleaseKey:
        """Return a repeatable key for tests. **Never for a release**: who knows the seed undoes the noise."""
        warn_of_seed()
        key = cls.__new__(cls)
        secret = hashlib.sha256(f"labeldp insecure release key {int(seed)}".encode()).digest()
        key._start(secret, f"test-{int(seed)}", secure=False)
        return key

    def secret(self, *, card: str, column: str, round: int = 0) -> bytes:
        """Return the secret that `RowWords` needs for a column's round, once.

        Parameters
        ----------
        card : str
            Checksum of the mechanism's card.
        column : str
        round : int

        Raises
        ------
        ParameterError
            If it was given out before, or the key is destroyed, or comes from another process.
        """
        secret = self._present()
        self._once.claim(
            (column, round), "this key was used for that column before: two releases would share their noise"
        )
        derived = _derive(secret, "rows", self.release, card, column, round)
        self._present()  # if it was overwritten meanwhile, all know what was derived
        return derived

    def _present(self) -> bytearray:
        if self._secret is None:
            raise ParameterError("this key served its release and was destroyed: make a new one for another")
        return self._secret

    def destroy(self) -> None:
        """Forget and overwrite the secret."""
        secret, self._secret = self._secret, None
        if secret is not None:
            secret[:] = bytes(_LENGTH)

    def __enter__(self) -> ReleaseKey:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a release key cannot be copied or pickled; make a new one")

    def __repr__(self) -> str:
        return f"<ReleaseKey of release {self.release}>"


class RowWords:
    """Words for rows with ids: what `Mechanism.randomize` takes as ``random_state``, for one call.

    A row has two words, the halves of one AES block: the first says which cell, and half of the second rounds a
    label that lies between two rows of a channel. They depend on the row's id alone, not on its neighbours.

    Parameters
    ----------
    secret : bytes
        From `ReleaseKey.secret`.
    ids : array-like of integers, text or bytes
        One for each label, in the labels' order. Equal ids would share their noise: in one call they are refused,
        and no id may be used for two rows in different calls with one secret.
    """

    __slots__ = ("_cipher", "_ids", "_once")

    def __init__(self, secret: bytes, ids: Any) -> None:
        self._ids: IntegerIds | TextIds = as_ids(ids)
        if not self._ids.distinct():
            raise ParameterError(
                Setting("ids"), " must all be different: rows with equal ids would share their noise"
            )
        kind = self._ids.kind
        self._cipher = aes(_derive(secret, "words", kind, 0))
        if isinstance(self._ids, TextIds):
            self._ids = self._ids.under(_derive(secret, "ids", kind))
        self._once = _Once()

    def for_labels(self, rows: int) -> WordSource:
        """Return the source for the labels of these rows: once, in this process, for as many labels as ids."""
        if rows != len(self._ids):
            raise ParameterError(f"there must be one id for each label: {len(self._ids)} ids, {rows} labels")
        self._once.claim("words", "the words of these rows were used before: one release, one source")
        return _Words(self._cipher, self._ids)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of secret words cannot be copied or pickled; make a new one")


class _Words:
    """The words of rows, in the pieces that a channel's `sample` asks for."""

    __slots__ = ("_cipher", "_ids", "_next")

    def __init__(self, cipher: CipherContext, ids: IntegerIds | TextIds) -> None:
        self._cipher, self._ids, self._next = cipher, ids, 0

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of secret words cannot be copied or pickled; make a new one")

    def fill(self, words: Words) -> None:
        """Overwrite ``words`` with one for each of the next rows, at most `CHUNK`; or besides half a word each."""
        rows = min(CHUNK, len(self._ids) - self._next)
        if rows == 0 or words.size not in (rows, rows + (rows + 1) // 2):
            raise ParameterError("this channel asks for other words than rows have")
        pair = encrypted(self._cipher, self._ids.blocks(self._next, self._next + rows))
        self._next += rows
        words[:rows] = pair[:, 0]
        if words.size > rows:
            rounding = words[rows:].view(np.uint32)
            rounding[-1] = 0
            rounding[:rows] = pair[:, 1]
