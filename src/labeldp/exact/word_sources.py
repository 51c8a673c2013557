"""Secure random 64-bit words, in bulk.

Words are the keystream of AES-256 in counter mode under a key from the operating system: as fast as
memory, and predicting one bit of them means breaking AES. `SecureWords` is the only source that
the library uses by itself. `SeededWords` is a different type, for tests, and warns.

Examples
--------
>>> words = np.empty(4, dtype=np.uint64)
>>> SecureWords().fill(words)
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from labeldp._values import Words
from labeldp.errors import InsecureRandomnessWarning, ParameterError, Setting, warn

CHUNK = 1 << 15
"""Labels are handled in pieces of this many, so that their words and all scratch arrays stay in the cache."""

CHUNK_BYTES = 1 << 18
"""Keystream is written in pieces of this size, so that it is used while still in the cache."""

REKEY_BYTES = 1 << 34
"""A key serves this many bytes at most: 2^30 blocks, far below the 2^64 where AES-CTR frays."""

_ZEROS = memoryview(bytes(CHUNK_BYTES))


_forks: list[None] = []
if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=lambda: _forks.append(None))


def this_process() -> tuple[int, int]:
    """Return the id of this process, which may be used again, and the number of forks that led to it.

    A fork that Python does not see, such as one in C, changes the id alone.
    """
    return os.getpid(), len(_forks)


class WordSource(Protocol):
    """Whatever fills a buffer with uniform random words."""

    def fill(self, words: Words) -> None:
        """Overwrite ``words``, a contiguous array, with uniform random 64-bit words."""


RandomState = int | WordSource | None
"""The argument ``random_state``: None for secure words, or a seed or a source of words for tests."""


def _keystream(key: bytes, counter: bytes) -> CipherContext:
    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor()


def _write(stream: CipherContext, target: memoryview) -> None:
    for start in range(0, target.nbytes, CHUNK_BYTES):
        piece = target[start : start + CHUNK_BYTES]
        stream.update_into(_ZEROS[: piece.nbytes], piece)


def _bytes(words: Words) -> memoryview:
    """Return the buffer's bytes; one with gaps is a TypeError, where a copy would be filled in its place."""
    return words.data.cast("B")


class SecureWords:
    """AES-256-CTR words under a key from the operating system.

    Thread-safe: a lock guards the counter. Fork-safe: a child process drops the key that it
    inherited and draws its own, so parent and child never share words. Copying or pickling is
    refused, because a copy would repeat the original's words.
    """

    __slots__ = ("_left", "_lock", "_owner", "_stream")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stream: CipherContext | None = None
        self._left = 0
        self._owner = this_process()

    def fill(self, words: Words) -> None:
        """Overwrite ``words`` with secure random words.

        Parameters
        ----------
        words : contiguous array of uint64
        """
        if self._owner != this_process():
            SecureWords.__init__(self)  # another key, and a lock that no thread of the parent holds
        target = _bytes(words)
        with self._lock:
            for start in range(0, target.nbytes, REKEY_BYTES):
                piece = target[start : start + REKEY_BYTES]
                if self._stream is None or self._left < piece.nbytes:
                    self._stream = _keystream(os.urandom(32), os.urandom(16))
                    self._left = REKEY_BYTES
                self._left -= piece.nbytes
                _write(self._stream, piece)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of secret words cannot be copied or pickled; make a new one")


class SeededWords:
    """Repeatable words for tests. **Never for a release**: who knows the seed undoes the noise.

    Parameters
    ----------
    seed : int
        The same seed gives the same words on every machine.
    quiet : bool
        For simulations that release nothing: do not warn.
    """

    __slots__ = ("_lock", "_stream")

    def __init__(self, seed: int, *, quiet: bool = False) -> None:
        if not quiet:
            warn_of_seed()
        key = hashlib.sha256(f"labeldp insecure seed {int(seed)}".encode()).digest()
        self._lock = threading.Lock()
        self._stream = _keystream(key, bytes(16))

    def fill(self, words: Words) -> None:
        """Overwrite ``words`` with the seed's next words."""
        with self._lock:
            _write(self._stream, _bytes(words))


def warn_of_seed() -> None:
    """Warn that noise from a seed is not private."""
    warn(
        "random_state makes the noise repeatable and therefore removable: use it in tests and "
        "experiments, never for a release.",
        InsecureRandomnessWarning,
    )


def simulation_words(seed: int) -> SeededWords:
    """Return repeatable words without the warning, for simulations that release nothing."""
    return SeededWords(seed, quiet=True)


_local = threading.local()


def default_source() -> SecureWords:
    """Return this thread's secure source."""
    source: SecureWords | None = getattr(_local, "source", None)
    if source is None:
        source = _local.source = SecureWords()
    return source


def resolve_source(random_state: RandomState, *, rows: int | None = None) -> WordSource:
    """Turn a ``random_state`` argument into a source of words.

    Parameters
    ----------
    random_state : None, int or source
        None: secure words. An integer: `SeededWords`, with its warning. A source: itself.
    rows : int, optional
        The number of labels, for words that belong to rows; without it such words are refused.
    """
    if getattr(random_state, "rows", rows) != rows:
        raise ParameterError(
            Setting("random_state"),
            " of rows is for Mechanism.randomize: there must be one id, not used before, for each label",
        )
    if random_state is None:
        return default_source()
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return SeededWords(int(random_state))
    if hasattr(random_state, "fill") and not isinstance(random_state, np.ndarray | np.generic):
        return random_state
    raise ParameterError(
        Setting("random_state"),
        " must be None (secure, for releases), an integer (tests only) or a source of words; NumPy generators are "
        "not secure and are not accepted",
    )
