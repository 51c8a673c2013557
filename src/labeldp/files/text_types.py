"""Types of text columns, decided from all of their text: the first of a few that every value can be read as."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.files.label_column import without_nulls

__all__ = ["TextType", "parse_text"]


def parse_text(text: Any, kind: Any) -> Any:
    """Return text as values of a type; words for missing values are null, but in a column of text.

    Arrow's errors may quote text that is no such value.

    Examples
    --------
    >>> parse_text(pa.array(["1", "NA", " 3"]), pa.int64()).to_pylist()
    [1, None, 3]
    """
    return text if kind == pa.string() else _parse(without_nulls(text), kind)


def _parse(values: Any, kind: Any) -> Any:
    if types.is_time(kind):  # a cast from text knows times of a day only with their day
        day = pc.binary_join_element_wise("1970-01-01", values, " ")
        return day.cast(pa.timestamp(kind.unit)).cast(kind)
    return values.cast(kind)


class TextType:
    """The type of one column of text, once all of it was seen.

    Parameters
    ----------
    exact : bool
        Whether all text must come back the same from its type, but for words for missing values: ``01000`` is no
        number then. Of floats only the value counts.

    Examples
    --------
    >>> column = TextType(exact=False)
    >>> column.see(pa.array(["1", "2"]))
    >>> column.see(pa.array(["2.5", ""]))
    >>> column.kind
    DataType(double)
    """

    def __init__(self, *, exact: bool) -> None:
        self._exact, self._empty = exact, True
        kinds = [pa.int64(), pa.bool_(), pa.date32(), pa.time32("s")]
        kinds += [pa.timestamp(unit, zone) for unit in ("s", "ns") for zone in (None, "UTC")]
        self._left = {kind: _spellings(kind) for kind in [*kinds, pa.float64()]}

    def see(self, text: Any) -> None:
        """Look at more of the column."""
        values = without_nulls(text)
        self._empty = self._empty and values.null_count == len(values)
        for kind, spellings in list(self._left.items()):
            try:
                parsed = _parse(values, kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                del self._left[kind]
                continue
            if self._exact:
                self._left[kind] = [spelling for spelling in spellings if _are_all(spelling(parsed, text))]

    @property
    def kind(self) -> Any:
        """The first type that all text can be read as; text, if it does not come back from it or is missing."""
        kind, spellings = next(iter(self._left.items()), (None, []))
        return kind if spellings and not self._empty else pa.string()


# ---- ways of writing values -----------------------------------------------------------------------------------

Spelling = Callable[[Any, Any], Any]
"""Says which text is what values look like, written in one way."""

_NAMES = r"^[ \t]*(\+|-?0[0-9]|-?[0-9]{16,}[ \t]*$)|[0-9.]{20,}"
"""Text that can be read as floats, but is a name: telephone numbers, codes, more digits than a float holds."""


def _spellings(kind: Any) -> list[Spelling]:
    """Return the ways in which values of a type may be written: a column keeps to one of them."""
    if types.is_floating(kind):
        return [lambda _, text: pc.invert(pc.match_substring_regex(text, _NAMES))]
    ways: list[Callable[[Any], Any]] = [lambda plain: plain]
    if types.is_boolean(kind):
        ways += [pc.utf8_title, pc.utf8_upper]
    if types.is_timestamp(kind):
        ways += [lambda plain: pc.replace_substring(plain, " ", "T")]
    return [partial(_are_equal, way) for way in ways]


def _are_equal(way: Callable[[Any], Any], parsed: Any, text: Any) -> Any:
    return pc.equal(way(parsed.cast(pa.string())), text)


def _are_all(flags: Any) -> bool:
    """Whether no flag is false; where a value is missing there is none."""
    return bool(pc.all(flags, min_count=0).as_py())
