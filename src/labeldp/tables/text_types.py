"""Values in text: labels as numbers, and the types of public columns, by the marks of a file's dialect.

Messages on labels name a row at most: that a label is missing or not a number is public.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from labeldp.errors import LabelError, ParameterError, Setting
from labeldp.release.number_patterns import CURRENCIES, GROUPS, amount_pattern
from labeldp.tables.dialect import NULL_WORDS, Dialect

# ---- marks in numbers -----------------------------------------------------------------------------------------

_READINGS = [(decimal, groups) for decimal, group in (".,", ",.") for groups in ("", group, GROUPS)]


def find_marks(columns: Iterable[Sequence[str]], dialect: Dialect) -> tuple[str | None, str | None]:
    """Return the decimal mark and the one between thousands that public values show, or that were given, or None.

    Only columns of nothing but numbers count. ``1.234`` may be either of two, ``12.5`` and ``1.234.567`` not.

    Raises
    ------
    ParameterError
        If values are separated by semicolons, and nothing shows whether decimals have a point or a comma.
    """
    patterns = {pair: re.compile(amount_pattern(*pair)) for pair in _READINGS}
    pairs = {pair for pair in patterns if dialect.decimal in (None, pair[0])}
    for column in columns:
        cells = {cell.strip() for cell in column}.difference(NULL_WORDS, dialect.na)
        pairs &= {pair for pair, pattern in patterns.items() if all(map(pattern.search, cells))} or pairs
    pairs = pairs or {(str(dialect.decimal or "."), "")}
    decimals = {decimal for decimal, _ in pairs}
    if len(decimals) > 1 and dialect.separator == ";":
        raise ParameterError(
            "values are separated by semicolons, and the public columns do not show whether decimals have a point "
            "or a comma: name it, as in ",
            Setting("decimal", ","),
        )
    marks = "".join(groups for _, groups in pairs) if len(pairs) == 1 else ""
    return decimals.pop() if len(decimals) == 1 else None, dialect.thousands or marks[:1] or None


def mark_missing(text: Any, words: Collection[str] = ()) -> Any:
    """Return text without blanks around it, null where a word stands for a missing value."""
    trimmed = pc.ascii_trim(text, characters=" \t")
    missing = pc.is_in(trimmed, value_set=pa.array([*NULL_WORDS, *words], trimmed.type))
    return pc.if_else(missing, pa.scalar(None, trimmed.type), trimmed)


def _groups(dialect: Dialect) -> str:
    """Return the marks that may stand between groups of three digits."""
    return GROUPS if dialect.thousands and dialect.thousands in GROUPS else dialect.thousands or ""


def _plain(values: Any, decimal: str | None, groups: str) -> tuple[Any, Any]:
    """Return numbers that have these marks as Arrow reads them, and other text as it is; and which are numbers.

    The same work for all values: they may be labels.
    """
    is_number = pc.match_substring_regex(values, amount_pattern(decimal or ".", groups))
    plain = values
    for mark in dict.fromkeys(CURRENCIES + GROUPS + groups):  # each by itself is quicker than a pattern of all
        plain = pc.replace_substring(plain, mark, "")
    return pc.if_else(is_number, pc.replace_substring(plain, decimal or ".", "."), values), is_number


def _numbers(values: Any, kind: Any, dialect: Dialect) -> Any:
    """Return public text as numbers of a type, or raise."""
    if dialect.decimal != ",":  # most files: quick, and the same where there are no other marks
        with suppress(pa.ArrowInvalid):
            return values.cast(kind)
    plain, is_number = _plain(values, dialect.decimal, _groups(dialect))
    is_other = pc.and_not(pc.match_substring_regex(values, "[0-9]"), is_number)
    return pc.if_else(is_other, "?", plain).cast(kind)  # which is no number


# ---- labels ---------------------------------------------------------------------------------------------------

_NOT_FINITE = pa.array([sign + word for word in ("inf", "infinity", "nan") for sign in ("", "+", "-")])
"""Words for labels that are no finite numbers, in any case."""


_OUTCOMES = {"1": ["true", "yes", "ja", "oui", "sí", "si"], "0": ["false", "no", "nein", "non"]}
"""Words for labels of 1 and of 0, in any case."""


def parse_labels(text: Any, dialect: Dialect) -> tuple[Any, int | None]:
    """Return label text as float64, null where a label is missing or no number, and which is the first no number.

    Words such as ``true`` and ``no``, in any case, are 1 and 0.

    All labels take the same way: which one must not follow from their values. A number beyond the range of floats
    is the last of them, as in an array: to refuse it, or to leave its row out, would reveal it. Only words such as
    ``inf`` are infinite.

    Examples
    --------
    >>> values, wrong = parse_labels(pa.array(["1", " 2.5e1 ", "NA", "-1e999", "inf", "Yes", "five"]), Dialect())
    >>> values.to_pylist(), wrong
    ([1.0, 25.0, None, -1.7976931348623157e+308, inf, 1.0, None], 6)
    """
    words = mark_missing(text, dialect.na)
    lower = pc.ascii_lower(words)
    for digit, outcomes in _OUTCOMES.items():
        words = pc.if_else(pc.is_in(lower, value_set=pa.array(outcomes)), digit, words)
    groups = _groups(dialect) + GROUPS + ("." if dialect.decimal == "," else "")  # never a decimal mark
    plain, is_number = _plain(words, dialect.decimal, groups)
    is_known = pc.or_(is_number, pc.is_in(pc.ascii_lower(words), value_set=_NOT_FINITE))
    first = pc.index(is_known, False).as_py()  # no null is found
    values = pc.if_else(is_known, plain, pa.scalar(None, plain.type)).cast(pa.float64())
    too_large = pc.and_(pc.is_inf(values), is_number)
    limited = pc.if_else(too_large, pc.multiply(pc.sign(values), np.finfo(np.float64).max), values)
    return limited, None if first < 0 else first


def not_a_number(name: str, row: int, dialect: Dialect) -> LabelError:
    """Return what to say of a label that is not a number."""
    decimal, group = ("comma", ".") if dialect.decimal == "," else ("point", ",")
    return LabelError(
        f"the label {name!r} is not a number in row {row:,}. If it is text, name another column as ",
        Setting("label"),
        "; of two words, write yes and no, or 1 and 0, into a column. "
        f"Numbers are read with a decimal {decimal}: where {group!r} stands between thousands, add ",
        Setting("thousands", group),
        "; where it is the decimal mark, add ",
        Setting("decimal", group),
        "; name words for missing values with ",
        Setting("na", ["unknown"]),
        "; or convert the column",
    )


# ---- types of public columns ----------------------------------------------------------------------------------


def parse_text(text: Any, kind: Any, dialect: Dialect) -> Any:
    """Return text as values of a type; words for missing values are null, but in a column of text.

    Arrow's errors may quote text that is no such value.

    Examples
    --------
    >>> parse_text(pa.array(["1", "NA", " 3"]), pa.int64(), Dialect()).to_pylist()
    [1, None, 3]
    """
    return text if kind == pa.string() else _parse(mark_missing(text, dialect.na), kind, dialect)


def _parse(values: Any, kind: Any, dialect: Dialect) -> Any:
    if types.is_integer(kind) or types.is_floating(kind):
        return _numbers(values, kind, dialect)
    if types.is_time(kind):  # a cast from text knows times of a day only with their day
        day = pc.binary_join_element_wise("1970-01-01", values, " ")
        return day.cast(pa.timestamp(kind.unit)).cast(kind)
    if types.is_date(kind) or types.is_timestamp(kind):
        values = pc.replace_substring_regex(values, _DAY_FIRST, r"\3-\2-\1")
    return values.cast(kind)


class TextType:
    """The type of one column of text, once all of it was seen.

    Parameters
    ----------
    exact : bool
        Whether codes are text: ``01000`` is no number then, nor is more digits than a float holds.
    dialect : Dialect

    Examples
    --------
    >>> column = TextType(Dialect(), exact=False)
    >>> column.update(pa.array(["1", "2"]))
    >>> column.update(pa.array(["2.5", ""]))
    >>> column.kind
    DataType(double)
    """

    def __init__(self, dialect: Dialect, *, exact: bool) -> None:
        self._dialect, self._exact, self._empty = dialect, exact, True
        times = [pa.time32("ms"), pa.timestamp("us"), pa.timestamp("us", "UTC")]
        self._left = [pa.int64(), pa.bool_(), pa.date32(), *times, pa.float64()]

    def update(self, text: Any) -> None:
        """Add the next values of the column."""
        values = mark_missing(text, self._dialect.na)
        self._empty = self._empty and values.null_count == len(values)
        if self._exact and pc.any(pc.match_substring_regex(values, _CODES)).as_py():
            self._left = []
        self._left = [kind for kind in self._left if self._fits(values, kind)]

    def _fits(self, values: Any, kind: Any) -> bool:
        try:
            _parse(values, kind, self._dialect)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return False
        is_rounded = self._exact and kind == pa.float64()
        return not (is_rounded and pc.any(pc.match_substring_regex(values, "^-?[0-9]{16}")).as_py())

    @property
    def kind(self) -> Any:
        """The first type that all text can be read as, else text."""
        return pa.string() if self._empty or not self._left else self._left[0]


_CODES = r"^(\+|-?0[0-9xX][0-9a-fA-F.,]*$)|[0-9.,]{20,}|[+-][0-9]{2}:?[0-9]{2}$|[€$£¥₹]"
"""Text that is more than its value: telephone numbers, codes, many digits, zones other than UTC, currencies."""

_DAY_FIRST = r"^([0-9]{2})\.([0-9]{2})\.([0-9]{4})\b"
"""DD.MM.YYYY"""
