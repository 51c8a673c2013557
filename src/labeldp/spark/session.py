"""Spark itself: kinds of sessions, errors without labels, and a release's secret on its way to the executors."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from labeldp._values import parse_integer
from labeldp.errors import DataError, ParameterError

_OWN_MESSAGE = re.compile(r"labeldp\.errors\.\w+: ([^\n]+)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
T = TypeVar("T")


def is_connect(df: DataFrame) -> bool:
    """Return whether a DataFrame belongs to a session of Spark Connect."""
    return type(df).__module__.startswith("pyspark.sql.connect.")


def column(name: str) -> Column:
    """Return a top-level column, whatever characters its name has."""
    return F.col("`" + name.replace("`", "``") + "`")


def refuse_revealing_log(df: DataFrame) -> None:
    """Refuse to go on while Spark Connect's client logs all that it sends: the secret would be in it."""
    if is_connect(df):
        from pyspark.sql.connect.logging import getLogLevel  # noqa: PLC0415

        level = getLogLevel()
        if level is not None and level <= logging.DEBUG:
            raise ParameterError(
                "Spark Connect's client logs all that it sends, and the release's secret would be in its log: set "
                "SPARK_CONNECT_LOG_LEVEL to info, or leave it out"
            )


def without_labels(compute: Callable[[], T]) -> T:
    """Return what Spark computes; if it fails, raise an error with no label in its message or its context.

    Spark's own messages quote values, such as one that cannot be cast. This package's messages do not, and stay.
    """
    try:
        return compute()
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
    # Outside of the handler: else the new error would carry the old one along.
    own_message, condition = _OWN_MESSAGE.search(text), _CONDITION.search(text)
    if own_message:
        raise DataError(own_message[1].strip())
    reason = f" ({condition[1]})" if condition else ""
    raise DataError(f"Spark cannot compute these rows{reason}: compute the frame by itself to see why")


def as_seed(random_state: object) -> int | None:
    """Return a seed, or None for a release: words of a source cannot be sent to executors."""
    return None if random_state is None else parse_integer(random_state, "random_state", 0)


@dataclass(slots=True)
class SealedSecret:
    """A secret in two halves, each of which is random: only both give the secret.

    In a classic session one half is in the pickled function, inside the plan's command, which is bytes that no
    plan text, log or web page shows; the other is a broadcast variable, which can be destroyed. Spark Connect
    has no broadcast variables: there both halves are in the command.
    """

    pad: bytes = field(repr=False)
    masked: Any = field(repr=False)
    is_destroyed: bool = False

    def unseal(self) -> bytes:
        """Return the secret; on an executor."""
        return _xor(self.pad, self.masked if isinstance(self.masked, bytes) else self.masked.value)

    def destroy(self) -> None:
        """Destroy the secret: later actions fail. A second call does nothing."""
        if not isinstance(self.masked, bytes) and not self.is_destroyed:
            self.is_destroyed = True
            self.masked.destroy(blocking=True)


def seal(df: DataFrame, secret: bytes) -> SealedSecret:
    """Return a secret, ready to travel with a function on ``df``."""
    pad = os.urandom(len(secret))
    masked = _xor(secret, pad)
    return SealedSecret(pad, masked if is_connect(df) else df.sparkSession.sparkContext.broadcast(masked))


def _xor(text: bytes, pad: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(text, pad, strict=True))
