"""Spark itself: which kind of session a frame has, and errors without labels."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from labeldp.errors import DataError, ParameterError

__all__ = ["column", "is_connect", "refuse_revealing_log", "without_labels"]

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
