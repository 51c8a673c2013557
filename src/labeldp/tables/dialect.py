"""Dialects of files: separator, marks in numbers, encoding, words for missing values; the sheet of a workbook."""

from __future__ import annotations

import codecs
from collections.abc import Collection
from contextlib import suppress
from copy import copy
from dataclasses import dataclass

from labeldp._values import parse_integer
from labeldp.errors import ParameterError, Setting
from labeldp.release.names import as_text
from labeldp.release.number_patterns import GROUPS
from labeldp.tables.paths import DELIMITERS

UTF8 = ("utf-8", "utf-8-sig")
"""The encodings that need no translation."""

ENCODINGS = (*UTF8, "utf-16", "utf-16-le", "utf-16-be", "iso8859-1", "cp1250", "cp1251", "cp1252", "mac-roman")
"""The encodings that are read: no state but a byte-order mark, and line breaks and digits as in ASCII."""

SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_MARKS = {
    "separator": (SEPARATOR_NAMES, "',', ';', '|' or 'tab'"),
    "decimal": (".,", "'.' or ','"),
    "thousands": (f".,{GROUPS}", "'.', ',', 'space' or an apostrophe"),
}
_WORDS = (
    "NA|N/A|N.A.|N/a|n/a|n.a.|<NA>|NULL|Null|null|None|none|NaN|nan|-NaN|-nan|-|--|\u2013|\u2014|?|."
    "|#NA|#N/A|#N/A N/A|#NULL!|#REF!|#DIV/0!|#VALUE!|#NAME?|#NUM!|1.#IND|-1.#IND|1.#QNAN|-1.#QNAN"
)
NULL_WORDS = ("", *_WORDS.split("|"))
"""The words for a missing value in text: those that PyArrow, pandas and spreadsheets know."""


@dataclass(frozen=True, slots=True)
class Dialect:
    r"""Marks and options with which a file is read; None is detected where that is certain.

    The first five are of text files, ``sheet`` is of Excel files, the others of both.

    Parameters
    ----------
    separator : str, optional
        What stands between values: a comma, a semicolon, a vertical bar or ``"tab"``. By default the header
        shows it.
    decimal : {".", ","}, optional
        The decimal mark. By default public columns show it; else it is a point.
    thousands : str, optional
        The mark between groups of three digits, or ``"space"``. By default public columns show it; else there is
        none.
    encoding : str, optional
        Such as ``"utf-8"``, ``"utf-16"`` or ``"cp1252"``. By default a byte-order mark shows it; else it is UTF-8.
    na : sequence of str
        Words for missing values, beside the usual ones such as ``NA``, ``n/a`` and ``-``.
    sheet : str, optional
        The sheet of an Excel workbook; by default the only one.
    header : bool
        Whether the first row names the columns though most of its values read as numbers, such as years.
    skip : int
        Lines of each text file, or rows of a sheet, above the header: titles. They are not read.
    skip_last : int, optional
        Lines or rows below the table: totals, which would release every label again. They are not read. Without
        it a last row that looks like a total is refused; 0 says that it is none.

    Examples
    --------
    >>> from labeldp.tables import Dialect
    >>> Dialect(separator=";", decimal=",", thousands="space", na=["unknown"]).thousands
    ' '
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    na: Collection[str] = ()
    sheet: str | None = None
    header: bool = False
    skip: int = 0
    skip_last: int | None = None

    def __post_init__(self) -> None:
        self._set(na=tuple(as_text(word, "na") for word in self.na))
        for name, (marks, text) in _MARKS.items():
            mark = getattr(self, name)
            self._set(**{name: {"tab": "\t", "space": " "}.get(mark, mark)})
            if getattr(self, name) not in (None, *marks):
                raise ParameterError(Setting(name), f" must be {text}, not {mark!r}")
        for name in ("skip", "skip_last"):
            if (count := getattr(self, name)) is not None:
                self._set(**{name: parse_integer(count, name, low=0)})
        if self.encoding is not None:
            self._set(encoding=_parse_encoding(self.encoding))
        if any("\n" in word or "\r" in word for word in self.na):
            raise ParameterError(Setting("na"), " must be words without line breaks")
        if self.decimal is None and self.thousands in (".", ","):
            self._set(decimal="," if self.thousands == "." else ".")
        if self.thousands is not None and self.thousands == self.decimal:
            raise ParameterError(Setting("decimal"), " and ", Setting("thousands"), " must differ")

    def _set(self, **fields: object) -> None:
        """Set fields of this frozen instance."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def with_defaults(self, format: str) -> Dialect:
        """Return the dialect with the format's defaults in place of None."""
        separator = self.separator or DELIMITERS.get(format)
        return self.with_detected(
            separator=separator, decimal=self.decimal or ".", encoding=self.encoding or "utf-8"
        )

    def with_detected(self, **fields: str | None) -> Dialect:
        """Return the dialect with values that the library detected, without validating them again."""
        dialect = copy(self)
        dialect._set(**fields)
        return dialect

    def describe(self, format: str) -> str:
        """Return the unusual marks of a file of a format in words."""
        encoding = "utf-8" if self.encoding in UTF8 else self.encoding
        facts = [
            ("separator", self.separator, DELIMITERS[format]),
            ("decimal mark", self.decimal, "."),
            ("thousands mark", self.thousands, None),
            ("encoding", encoding, "utf-8"),
        ]
        words = {"\t": "tab", " ": "space", encoding: encoding}
        unusual = [(name, value) for name, value, usual in facts if value not in (None, usual)]
        return ", ".join(f"{name} {words.get(value, repr(value))}" for name, value in unusual)


def _parse_encoding(name: str) -> str:
    """Return the one name of an encoding that is read."""
    with suppress(LookupError, ValueError):  # no such codec, or no name for one
        encoding = codecs.lookup(name).name
        if encoding in ENCODINGS:
            return encoding
    choices = ", ".join(ENCODINGS)
    raise ParameterError(
        Setting("encoding"), f" must be one of {choices}: convert a file in another encoding to utf-8"
    )
