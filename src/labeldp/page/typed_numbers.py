"""Numbers that people type: read as the table writes its own, and asked about where that could mean two things."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from labeldp.files.dialect import GROUPS, Dialect, number_pattern

NOTATIONS = {".": f",{GROUPS}", ",": f".{GROUPS}"}
"""What may stand between thousands, by the decimal mark."""


def _marks(dialect: Dialect | None) -> list[str]:
    """Return the decimal marks that are possible: one, where a table shows it."""
    if dialect is None:
        return [".", ","]
    if dialect.decimal == "," or dialect.thousands == ".":
        return [","]
    return ["."] if dialect.thousands is not None else [".", ","]


def _readings(text: str, marks: list[str]) -> list[float]:
    found: list[float] = []
    for mark in marks:
        if re.match(number_pattern(re.escape(mark), NOTATIONS[mark]), text):
            value = float(re.sub(f"[{NOTATIONS[mark]}]", "", text).replace(mark, "."))
            found += [value] if value not in found else []
    return found


def read_number(text: str, dialect: Dialect | None = None) -> list[float]:
    """Return what a text can mean: nothing, one number, or two.

    Examples
    --------
    >>> read_number("60.000", Dialect(thousands=".")), read_number("60.000"), read_number("0,5")
    ([60000.0], [60.0, 60000.0], [0.5])
    >>> read_number("12,5 %"), read_number("0 5"), read_number("1 250.5")
    ([], [], [1250.5])
    """
    text = text.strip().replace("−", "-")
    return _readings(text, _marks(dialect)) or _readings(text, [".", ","])


def number_in(
    form: Mapping[str, Any], name: str, problems: dict[str, str], what: str, dialect: Dialect | None = None
) -> float | None:
    """Return the number in a field, or note what is wrong with it.

    Examples
    --------
    >>> problems = {}
    >>> number_in({"high": "60.000"}, "high", problems, "The highest value")
    >>> " ".join(problems["high"].split())
    'The highest value can be 60 or 60 000 (60 thousand): write 60 or 60000.'
    """
    text = str(form.get(name, "")).strip()
    found = read_number(text, dialect)
    if len(found) == 1 and math.isfinite(found[0]):
        return found[0]
    if not text:
        problems[name] = f"{what} is missing: it must be a number, such as 1.5."
    elif len(found) == 2:
        meant = " or ".join(exact_words(value) for value in found)
        problems[name] = f"{what} can be {meant}: write {' or '.join(typed(value) for value in found)}."
    else:
        problems[name] = f"{what} must be a finite number, such as 1.5."
    return None


def typed(value: float, dialect: Dialect | None = None) -> str:
    """Return a number as it can be typed: read again, it is the same.

    Examples
    --------
    >>> typed(60000.0), typed(1.125), typed(1.125, Dialect(decimal=","))
    ('60000', '1.1250', '1,125')
    """
    text = _plain(value).replace(".", _marks(dialect)[0])
    return text if read_number(text, dialect) == [value] else f"{text}0"


def exact_words(value: float) -> str:
    """Return all digits of a number, in groups that nobody takes for decimals.

    Examples
    --------
    >>> [" ".join(exact_words(value).split()) for value in (60000.0, -1250.5)]  # the gaps are not to be broken
    ['60 000 (60 thousand)', '−1 250.5']
    """
    sign, text = "−" if value < 0 else "", _plain(abs(value))
    whole, point, rest = text.partition(".")
    if whole.isdecimal():
        text = f"{int(whole):,}".replace(",", "\u00a0") + point + rest
    for size, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if abs(value) >= size and value % size == 0 and abs(value) < 1e12:
            return f"{sign}{text} ({sign}{_plain(abs(value) / size)} {word})"
    return f"{sign}{text}"


def _plain(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
