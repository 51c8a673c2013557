"""How values are written as text: one way for a whole column, or it stays text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labeldp._arrow import arrow

__all__ = ["spellings_of"]

Spelling = Callable[[Any], Any]


def spellings_of(kind: Any) -> list[Spelling]:
    """Return the ways in which values of a type may be written.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [way(pa.array([1.0, 2.5])).to_pylist() for way in spellings_of(pa.float64())]
    [['1', '2.5'], ['1.0', '2.5']]
    """
    types = arrow().core.types
    if types.is_floating(kind):
        return [plain, pointed]
    if types.is_boolean(kind):
        return [plain, titled, upper]
    if types.is_timestamp(kind):
        return [plain, joined]
    return [plain]


def plain(values: Any) -> Any:
    """Write values as Arrow does."""
    return values.cast(arrow().core.string())


def pointed(values: Any) -> Any:
    """Write whole numbers with a point: 1.0."""
    return arrow().compute.replace_substring_regex(plain(values), r"^(-?[0-9]+)$", r"\1.0")


def titled(values: Any) -> Any:
    """Write True and False."""
    return arrow().compute.utf8_title(plain(values))


def upper(values: Any) -> Any:
    """Write TRUE and FALSE."""
    return arrow().compute.utf8_upper(plain(values))


def joined(values: Any) -> Any:
    """Write a T between day and time."""
    return arrow().compute.replace_substring(plain(values), " ", "T")
