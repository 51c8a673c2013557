"""Numbers that people type: read as the table writes its own, and refused where that could mean two things."""

from __future__ import annotations

import math
import re

from labeldp.errors import ParameterError, Setting
from labeldp.tables.dialect import GROUPS, Dialect, number_pattern

GROUP_MARKS = {".": f",{GROUPS}", ",": f".{GROUPS}"}
"""What may stand between thousands, by the decimal mark."""

POINT = Dialect(decimal=".", thousands="'")
"""How ε is read: nobody means thousands of it. A decimal comma is understood, too."""


def _decimal_marks(dialect: Dialect | None) -> list[str]:
    """Return the decimal marks that are possible: one, where a table shows it."""
    if dialect is not None and (dialect.decimal == "," or dialect.thousands == "."):
        return [","]
    return [".", ","] if dialect is None or dialect.thousands is None else ["."]


def _readings(text: str, marks: list[str]) -> list[float]:
    found = (
        float(re.sub(f"[{GROUP_MARKS[mark]}]", "", text).replace(mark, "."))
        for mark in marks
        if re.match(number_pattern(re.escape(mark), GROUP_MARKS[mark]), text)
    )
    return list(dict.fromkeys(found))


def parse_number(text: str, what: str | Setting, dialect: Dialect | None = None) -> float:
    """Return the number that was typed.

    Raises
    ------
    ParameterError
        If it is none, or could be two.

    Examples
    --------
    >>> parse_number("60.000", "The limit", Dialect(thousands=".")), parse_number("0,5", "The limit")
    (60000.0, 0.5)
    >>> parse_number("60.000", "The limit")
    Traceback (most recent call last):
    ...
    labeldp.errors.ParameterError: The limit can be 60 or 60 000 (60 thousand): write 60 or 60000
    """
    text = text.strip().replace("−", "-")
    found = _readings(text, _decimal_marks(dialect)) or _readings(text, [".", ","])
    if len(found) == 2:
        meanings = " or ".join(exact_text(value) for value in found).replace("\u00a0", " ")
        raise ParameterError(what, f" can be {meanings}: write {' or '.join(map(plain_number, found))}")
    if not found or not math.isfinite(found[0]):
        raise ParameterError(what, " must be a finite number, such as 1.5")
    return found[0]


def exact_text(value: float) -> str:
    """Return all digits of a number, in groups that nobody takes for decimals.

    Examples
    --------
    >>> [" ".join(exact_text(value).split()) for value in (60000.0, -1250.5)]  # with no-break spaces
    ['60 000 (60 thousand)', '−1 250.5']
    """
    sign, text = "−" if value < 0 else "", plain_number(abs(value))
    whole, point, rest = text.partition(".")
    if whole.isdecimal():
        text = f"{int(whole):,}".replace(",", "\u00a0") + point + rest
    for size, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if size <= abs(value) < 1e12 and value % size == 0:
            return f"{sign}{text} ({sign}{plain_number(abs(value) / size)} {word})"
    return f"{sign}{text}"


def plain_number(value: float) -> str:
    """Return all digits of a number, as they are typed."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
