"""A release's key and secret: how it is generated, how it travels to executors, and how it ends."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from labeldp.errors import ParameterError
from labeldp.randomness.row_words import ReleaseKey
from labeldp.spark.session import is_connect

__all__ = ["SealedSecret", "as_seed", "release_key", "seal"]


def as_seed(random_state: object) -> int | None:
    """Return a seed, or None for a release."""
    if random_state is None:
        return None
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise ParameterError("random_state must be None (secure, for releases) or an integer (tests only)")
    return int(random_state)


def release_key(seed: int | None) -> ReleaseKey:
    """Return a new key for a release, or one from a seed for tests."""
    return ReleaseKey() if seed is None else ReleaseKey.from_seed(seed)


@dataclass(slots=True)
class SealedSecret:
    """A secret in two halves, each of them random on its own: only both together give it.

    In a classic session one half is in the pickled function, inside the plan's command, which is bytes that no
    plan text, log or web page shows; the other is a broadcast variable, which can be destroyed. Spark Connect
    has no broadcast variables: there both halves are in the command.
    """

    pad: bytes = field(repr=False)
    other: Any = field(repr=False)
    is_destroyed: bool = False

    def open(self) -> bytes:
        """Return the secret; on an executor."""
        return _xor(self.pad, self.other if isinstance(self.other, bytes) else self.other.value)

    def destroy(self) -> None:
        """Destroy it: actions that come after fail. A second time does nothing."""
        if not isinstance(self.other, bytes) and not self.is_destroyed:
            self.is_destroyed = True
            self.other.destroy(blocking=True)


def seal(df: DataFrame, secret: bytes) -> SealedSecret:
    """Return a secret, ready to travel with a function on ``df``."""
    pad = os.urandom(len(secret))
    other = _xor(secret, pad)
    return SealedSecret(pad, other if is_connect(df) else df.sparkSession.sparkContext.broadcast(other))


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
