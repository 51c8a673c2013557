"""Patterns of numbers in text: decimal marks, marks between thousands, currency signs."""

from __future__ import annotations

GROUPS = " \u00a0\u2009\u202f'\u2019"
"""Marks between groups of three digits that are no decimal marks; where one of them is used, so are the others."""

CURRENCIES = "€$£¥₹"

_BLANK = "[ \u00a0\u202f]?"
CURRENCY = f"^([+-]?)[{CURRENCIES}]{_BLANK}|{_BLANK}[{CURRENCIES}]$"
"""A currency sign before or after a number; what stands before it is a sign."""


def number_pattern(decimal: str, groups: str) -> str:
    """Return a pattern, for RE2 too, of numbers with a decimal mark and marks between groups of three digits."""
    integer = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:[{groups}][0-9]{{3}})+)" if groups else "[0-9]+"
    return rf"^[+-]?(?:{integer}(?:[{decimal}][0-9]*)?|[{decimal}][0-9]+)(?:[eE][+-]?[0-9]+)?$"


def amount_pattern(decimal: str, groups: str) -> str:
    """Return the same pattern, of numbers that may have a currency sign, before or after them."""
    number = number_pattern(decimal, groups).removeprefix("^[+-]?").removesuffix("$")
    before = f"[{CURRENCIES}]{_BLANK}"
    return f"^(?:[+-]?(?:{before})?|{before}[+-]){number}(?:{_BLANK}[{CURRENCIES}])?$"
