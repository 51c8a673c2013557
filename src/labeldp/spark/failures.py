"""What is said when a pass over the rows fails: Spark's own messages quote what they stumble on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from labeldp.errors import DataError

__all__ = ["without_labels"]

_OURS = re.compile(r"labeldp\.errors\.\w+: ([^\n]+)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
T = TypeVar("T")


def without_labels(compute: Callable[[], T]) -> T:
    """Return what Spark computes; if it fails, say so with no label in the message, nor in what it came from.

    A cast that fails says which value it failed on. What this package says of labels has none in it, and stays.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        return compute()
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
    # Outside of the handler: else the new error would carry the old one along.
    ours, condition = _OURS.search(text), _CONDITION.search(text)
    if ours:
        raise DataError(ours[1].strip())
    why = f" ({condition[1]})" if condition else ""
    raise DataError(f"Spark cannot compute these rows{why}: compute the frame by itself to see it")
