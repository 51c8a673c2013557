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
from typing import Any, NoReturn

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from labeldp._values import Words
from labeldp.errors import ParameterError
from labeldp.exact.row_ids import Ids, aes, encrypted
from labeldp.exact.word_sources import CHUNK, this_process, warn_of_seed


def card_checksum(mechanism: Any) -> str:
    """Return the checksum on a mechanism's card."""
    return str(json.loads(mechanism.to_json())["checksum"])


def _encoded(*fields: str | int) -> bytes:
    """Return fields as bytes that no other fields give: each with its kind and length before it."""
    data = len(fields).to_bytes(8, "big")
    for field in fields:
        text = str(field).encode()
        data += (b"i" if isinstance(field, int) else b"s") + len(text).to_bytes(8, "big") + text
    return data


def _derive(secret: bytes, *purpose: str | int) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt=b"labeldp row words 1", info=_encoded(*purpose)).derive(secret)


def _refuse_elsewhere(owner: tuple[int, int]) -> None:
    """Refuse a secret in a forked process: both processes would use the same words for other labels."""
    if owner != this_process():
        raise ParameterError("a secret of rows serves only the process that made it: make another one there")


class ReleaseKey:
    """A secret for the rows of one release.

    Each column and round has its secret once; a key that was destroyed gives nothing more. It cannot be
    copied or pickled, and does not show itself.

    Parameters
    ----------
    seed : int, optional
        A repeatable key for tests. **Never for a release**: who knows the seed undoes the noise.

    Attributes
    ----------
    release : str
        The release's name, public and random.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mechanism = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> with ReleaseKey() as key:
    ...     secret = key.secret(card=card_checksum(mechanism), column="price")
    >>> ids = np.array([11, 12, 13])
    >>> once = mechanism.randomize([1.0, 2.0, 3.0], random_state=RowWords(secret, Ids("integer", ids)))
    >>> again = mechanism.randomize([3.0, 1.0], random_state=RowWords(secret, Ids("integer", ids[[2, 0]])))
    >>> bool((again == once[[2, 0]]).all())
    True
    """

    __slots__ = ("_owner", "_secret", "_uses", "release")

    def __init__(self, seed: int | None = None) -> None:
        self._owner = this_process()
        self._uses: set[tuple[str, int]] = set()
        self._secret: bytes | None = os.urandom(32)
        self.release = os.urandom(16).hex()
        if seed is not None:
            warn_of_seed()
            self._secret = hashlib.sha256(f"labeldp insecure release key {seed}".encode()).digest()
            self.release = f"test-{seed}"

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
        _refuse_elsewhere(self._owner)
        if self._secret is None:
            raise ParameterError("this key served its release and was destroyed: make a new one for another")
        if (column, round) in self._uses:
            raise ParameterError("this key was used for that column before: two releases would share their noise")
        self._uses.add((column, round))
        return _derive(self._secret, "rows", self.release, card, column, round)

    def __enter__(self) -> ReleaseKey:
        return self

    def __exit__(self, *_: object) -> None:
        self._secret = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("a release key cannot be copied or pickled; make a new one")


class RowWords:
    """Words for rows with ids: what `Mechanism.randomize` takes as ``random_state``, for one call.

    A row has two words, the halves of one AES block: the first says which cell, and half of the second rounds a
    label that lies between two rows of a channel. They depend on the row's id alone, not on its neighbours.

    Parameters
    ----------
    secret : bytes
        From `ReleaseKey.secret`.
    ids : Ids
        One for each label, in the labels' order. Equal ids would share their noise: in one call they are refused,
        and no id may be used for two rows in different calls with one secret.
    """

    __slots__ = ("_cipher", "_ids", "_key", "_next", "_owner")

    def __init__(self, secret: bytes, ids: Ids) -> None:
        if not ids.distinct():
            raise ParameterError("ids of rows must all be different: rows with equal ids would share their noise")
        self._cipher = aes(_derive(secret, "words", ids.kind, 0))
        self._key = _derive(secret, "ids", ids.kind)
        self._ids, self._next, self._owner = ids, 0, this_process()

    @property
    def rows(self) -> int:
        """The number of rows whose words were not used yet."""
        return len(self._ids) - self._next

    def fill(self, words: Words) -> None:
        """Overwrite ``words`` with one for each of the next rows, at most `CHUNK`; or besides half a word each.

        These are the pieces that a channel's `sample` asks for; anything else is refused.
        """
        _refuse_elsewhere(self._owner)
        start, rows = self._next, min(CHUNK, self.rows)
        if rows == 0 or words.size not in (rows, rows + (rows + 1) // 2):
            raise ParameterError("words of rows serve one release of their labels, and nothing else")
        self._next += rows
        pair = encrypted(self._cipher, self._ids.blocks(self._key, start, start + rows))
        words[:rows] = pair[:, 0]
        if words.size > rows:
            rounding = words[rows:].view(np.uint32)
            rounding[-1] = 0
            rounding[:rows] = pair[:, 1]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of secret words cannot be copied or pickled; make a new one")
