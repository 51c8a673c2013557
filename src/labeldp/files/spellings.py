"""How values are written as text: one way for a whole column, or it stays text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labeldp._arrow import arrow

__all__ = ["Spelling", "are_numbers", "spellings_of"]

Spelling = Callable[[Any], Any]


def spellings_of(kind: Any) -> list[Spelling]:
    """Return the ways in which values of a type may be written.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [way(pa.array([True, False])).to_pylist() for way in spellings_of(pa.bool_())]
    [['true', 'false'], ['True', 'False'], ['TRUE', 'FALSE']]
    """
    types = arrow().core.types
    if types.is_boolean(kind):
        return [plain, titled, upper]
    if types.is_timestamp(kind):
        return [plain, joined]
    return [plain]


def plain(values: Any) -> Any:
    """Write values as Arrow does."""
    return values.cast(arrow().core.string())


def are_numbers(text: Any) -> bool:
    """Whether text that can be read as floats means numbers, whose value is what counts, and not names.

    Names have zeros in front, or more digits than a float holds: ``007``, ``12345678901234567890``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> are_numbers(pa.array(["1.10", "1e-05", None])), are_numbers(pa.array(["1.5", "007"]))
    (True, False)
    """
    pc = arrow().compute
    named = pc.match_substring_regex(text, r"^[+-]?0[0-9]|^[+-]?[0-9]{16,}$|[0-9.]{20,}")
    return not pc.any(named, min_count=0).as_py()


def titled(values: Any) -> Any:
    """Write True and False."""
    return arrow().compute.utf8_title(plain(values))


def upper(values: Any) -> Any:
    """Write TRUE and FALSE."""
    return arrow().compute.utf8_upper(plain(values))


def joined(values: Any) -> Any:
    """Write a T between day and time."""
    return arrow().compute.replace_substring(plain(values), " ", "T")
