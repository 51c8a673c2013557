"""What is said when a pass over the rows fails: Spark's own messages quote what they stumble on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from labeldp.errors import DataError

__all__ = ["no_labels_told"]

_OURS = re.compile(r"labeldp\.errors\.\w+: ([^\n]+)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


@contextmanager
def no_labels_told() -> Iterator[None]:
    """Replace Spark's message by one that has no label in it.

    A cast that fails says which value it failed on. What this package says of labels has none in it, and stays.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
    else:
        return
    ours, condition = _OURS.search(text), _CONDITION.search(text)
    if ours:
        raise DataError(ours[1].strip()) from None
    why = f" ({condition[1]})" if condition else ""
    raise DataError(f"Spark cannot compute these rows{why}: compute the frame by itself to see it") from None
