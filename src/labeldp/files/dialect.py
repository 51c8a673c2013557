"""How files are written: separator, marks in numbers, encoding, words for missing values; which sheet is read."""

from __future__ import annotations

import codecs
from collections.abc import Collection
from dataclasses import dataclass, replace

from labeldp.errors import ParameterError
from labeldp.files.places import DELIMITERS

UTF8 = ("utf-8", "utf-8-sig")
"""The encodings that need no translation."""


SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
GROUPS = " \u00a0\u2009\u202f'\u2019"
"""Marks between groups of three digits that are no decimal marks; where one of them is used, so are the others."""

NULL_WORDS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA"),
    *(
        "NULL",
        "NaN",
        "n/a",
        "nan",
        "null",
        "<NA>",
        "None",
        "none",
        "N.A.",
        "n.a.",
        "N/a",
        "Null",
        "#NULL!",
        "#REF!",
    ),
    *("#DIV/0!", "#VALUE!", "#NAME?", "#NUM!", "-", "--", "\u2013", "\u2014", "?", "."),
)
"""What stands for a missing value in text: the words that PyArrow, pandas and spreadsheets know."""


@dataclass(frozen=True, slots=True)
class Dialect:
    r"""How a file is written, and what of it is read; what is None is detected where that is certain.

    Text files have all but the last two, and Excel files these.

    Parameters
    ----------
    separator : str, optional
        What stands between values: one character, or ``"tab"``. By default the header shows it.
    decimal : {".", ","}, optional
        The decimal mark. By default public columns show it; else it is a point.
    thousands : str, optional
        The mark between groups of three digits, or ``"space"``. By default public columns show it; else there is
        none.
    encoding : str, optional
        Such as ``"utf-8"``, ``"utf-16"`` or ``"latin-1"``. By default a byte-order mark or public columns show it.
    na : sequence of str
        Words for missing values, beside the usual ones such as ``NA``, ``n/a`` and ``-``.
    sheet : str, optional
        The sheet of an Excel workbook; by default the only one.
    formulas : sequence of str
        Public columns of it whose formulas do not use the label, directly or through other cells.

    Examples
    --------
    >>> from labeldp.files import Dialect
    >>> Dialect(separator=";", decimal=",", thousands="space", na=["unknown"]).thousands
    ' '
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    na: Collection[str] = ()
    sheet: str | None = None
    formulas: Collection[str] = ()

    def __post_init__(self) -> None:
        names = {"tab": "\t", "\\t": "\t", "space": " ", "semicolon": ";", "comma": ",", "point": ".", "dot": "."}
        for name in ("separator", "decimal", "thousands"):
            value = getattr(self, name)
            object.__setattr__(self, name, names.get(value, value))
        object.__setattr__(self, "na", tuple(self.na))
        object.__setattr__(self, "formulas", tuple(self.formulas))
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise ParameterError(f"separator must be one character or 'tab', not {self.separator!r}")
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"decimal must be '.' or ',', not {self.decimal!r}")
        if self.thousands is not None and self.thousands not in (*".,", *GROUPS):
            raise ParameterError(f"thousands must be '.', ',', 'space' or an apostrophe, not {self.thousands!r}")
        if self.thousands in (".", ",") and self.decimal is None:
            object.__setattr__(self, "decimal", "," if self.thousands == "." else ".")
        if self.thousands is not None and self.thousands == self.decimal:
            raise ParameterError("decimal and thousands must differ")
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding(self.encoding))

    def completed(self, format: str) -> Dialect:
        """Return what most files of a format have, where nothing else is said."""
        separator = self.separator or DELIMITERS[format]
        return replace(self, separator=separator, decimal=self.decimal or ".", encoding=self.encoding or "utf-8")

    def describe(self, format: str) -> str:
        """Return in words what is not as in most files of a format, or nothing."""
        named = {"\t": "tab", " ": "space", **{mark: f"'{mark}'" for mark in ";,.|"}}
        unusual = {
            "separator": None if self.separator == DELIMITERS[format] else self.separator,
            "decimal mark": None if self.decimal == "." else self.decimal,
            "thousands mark": self.thousands,
            "encoding": None if self.encoding in UTF8 else self.encoding,
        }
        words = {name: named.get(value, value) for name, value in unusual.items() if value is not None}
        return ", ".join(f"{name} {value}" for name, value in words.items())


def _encoding(name: str) -> str:
    try:
        info = codecs.lookup(name)
        if not info._is_text_encoding or info.incrementaldecoder is None:
            raise LookupError
        "a,1\n".encode(info.name)
    except (LookupError, UnicodeError, ValueError):
        raise ParameterError(f"unknown encoding {name!r}; known are utf-8, utf-16, latin-1, cp1252 …") from None
    return str(info.name)


def number_pattern(decimal: str, groups: str) -> str:
    """Return a pattern, for RE2 too, of numbers with a decimal mark and marks between groups of three digits."""
    whole = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:[{groups}][0-9]{{3}})+)" if groups else "[0-9]+"
    return rf"^[+-]?(?:{whole}(?:[{decimal}][0-9]*)?|[{decimal}][0-9]+)(?:[eE][+-]?[0-9]+)?$"
