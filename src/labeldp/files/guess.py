"""Types of text columns, decided from all of their text: the first of a few that every value can be read as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labeldp._arrow import arrow
from labeldp.files.labels import NULL_WORDS

__all__ = ["Guess", "typed"]


def typed(text: Any, kind: Any) -> Any:
    """Return text as values of a type; words for missing values are null, but in a column of text.

    Raises
    ------
    pyarrow.ArrowInvalid
        If some text is no such value. It may quote it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> typed(pa.array(["1", "NA", " 3"]), pa.int64()).to_pylist()
    [1, None, 3]
    """
    pa, pc = arrow().core, arrow().compute
    if kind == pa.string():
        return text
    trimmed = pc.ascii_trim(text, characters=" \t")
    words = pc.is_in(trimmed, value_set=pa.array(NULL_WORDS))
    values = pc.if_else(words, pa.scalar(None, pa.string()), trimmed)
    if pa.types.is_time(kind):  # a cast from text knows times of a day only with their day
        day = pc.binary_join_element_wise("1970-01-01", values, " ")
        return day.cast(pa.timestamp(kind.unit)).cast(kind)
    return values.cast(kind)


class Guess:
    """The type of one column of text, once all of it was seen.

    Parameters
    ----------
    exact : bool
        Whether all text must come back the same from its type, but for words for missing values: ``01000`` is no
        number then. Of floats only the value counts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> column = Guess(exact=False)
    >>> column.see(pa.array(["1", "2"]))
    >>> column.see(pa.array(["2.5", ""]))
    >>> column.kind
    DataType(double)
    """

    def __init__(self, *, exact: bool) -> None:
        pa = arrow().core
        self._exact, self._empty = exact, True
        kinds = [pa.int64(), pa.bool_(), pa.date32(), pa.time32("s")]
        kinds += [pa.timestamp(unit, zone) for unit in ("s", "ns") for zone in (None, "UTC")]
        self._left: dict[Any, list[Spelling]] = {kind: _spellings(kind) for kind in [*kinds, pa.float64()]}

    def see(self, text: Any) -> None:
        """Take in more of the column."""
        pa, pc = arrow().core, arrow().compute
        words = pc.is_in(pc.ascii_trim(text, characters=" \t"), value_set=pa.array(NULL_WORDS))
        self._empty = self._empty and bool(pc.all(words, min_count=0).as_py())
        for kind, spellings in list(self._left.items()):
            try:
                values = typed(text, kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                del self._left[kind]
                continue
            if self._exact:
                self._left[kind] = [spelling for spelling in spellings if _comes_back(spelling, values, text)]

    @property
    def kind(self) -> Any:
        """The first type that all text can be read as; text, if it does not come back from it or is missing."""
        pa = arrow().core
        kind, spellings = next(iter(self._left.items()), (None, []))
        return kind if spellings and not self._empty else pa.string()


# ---- ways of writing values -------------------------------------------------------------------------------

Spelling = Callable[[Any], Any]


def _spellings(kind: Any) -> list[Spelling]:
    """Return the ways in which values of a type may be written: a column keeps to one of them."""
    types = arrow().core.types
    if types.is_boolean(kind):
        return [_plain, _titled, _upper]
    return [_plain, _joined] if types.is_timestamp(kind) else [_plain]


def _comes_back(spelling: Spelling, values: Any, text: Any) -> bool:
    pc = arrow().compute
    if arrow().core.types.is_floating(values.type):
        return _are_numbers(text)
    return bool(pc.all(pc.equal(spelling(values), text), min_count=0).as_py())


def _are_numbers(text: Any) -> bool:
    """Whether text that can be read as floats means numbers, whose value is what counts, and not names.

    Names have zeros in front, or more digits than a float holds: ``007``, ``12345678901234567890``.
    """
    pc = arrow().compute
    names = pc.match_substring_regex(text, r"^[+-]?0[0-9]|^[+-]?[0-9]{16,}$|[0-9.]{20,}")
    return not pc.any(names, min_count=0).as_py()


def _plain(values: Any) -> Any:
    return values.cast(arrow().core.string())


def _titled(values: Any) -> Any:
    return arrow().compute.utf8_title(_plain(values))


def _upper(values: Any) -> Any:
    return arrow().compute.utf8_upper(_plain(values))


def _joined(values: Any) -> Any:
    return arrow().compute.replace_substring(_plain(values), " ", "T")
