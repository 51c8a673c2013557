"""How a release's secret travels to executors, and how it ends."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp.errors import ParameterError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Sealed", "is_connect", "refuse_telling_log", "seal"]


def is_connect(df: DataFrame) -> bool:
    """Return whether a DataFrame lives on the other side of Spark Connect."""
    return type(df).__module__.startswith("pyspark.sql.connect.")


def refuse_telling_log(df: DataFrame) -> None:
    """Refuse to go on while Spark Connect's client logs all that it sends: the secret would be in it."""
    if is_connect(df):
        from pyspark.sql.connect.logging import getLogLevel  # noqa: PLC0415

        level = getLogLevel()
        if level is not None and level <= logging.DEBUG:
            raise ParameterError(
                "Spark Connect's client logs all that it sends, and the release's secret would be in its log: set "
                "SPARK_CONNECT_LOG_LEVEL to info, or leave it out"
            )


@dataclass(slots=True)
class Sealed:
    """A secret in two halves, each of them random on its own: only both together tell it.

    In a classic session one half is in the pickled function, inside the plan's command, which is bytes that no
    plan text, log or web page shows; the other is a broadcast variable, which can be destroyed. Spark Connect
    has no broadcast variables: there both halves are in the command.
    """

    pad: bytes = field(repr=False)
    other: Any = field(repr=False)
    ended: bool = False

    def open(self) -> bytes:
        """Return the secret; on an executor."""
        other = self.other if isinstance(self.other, bytes) else self.other.value
        return _xor(self.pad, other)

    def destroy(self) -> None:
        """End it: actions that come after fail. A second time does nothing."""
        if not isinstance(self.other, bytes) and not self.ended:
            self.ended = True
            self.other.destroy(blocking=True)


def seal(df: DataFrame, secret: bytes) -> Sealed:
    """Return a secret, ready to travel with a function on ``df``."""
    pad = os.urandom(len(secret))
    other = _xor(secret, pad)
    if is_connect(df):
        return Sealed(pad, other)
    return Sealed(pad, df.sparkSession.sparkContext.broadcast(other))


def _xor(one: bytes, other: bytes) -> bytes:
    mixed = np.frombuffer(one, dtype=np.uint8) ^ np.frombuffer(other, dtype=np.uint8)
    return bytes(mixed.tobytes())
