"""Segments of a ledger's rows: a label is in one of them, so that charges of different segments do not add up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated
from unicodedata import category, is_normalized

from labeldp.errors import ParameterError, list_first
from labeldp.mechanisms.typed_data import Limit, at_most, optional

MAX_SEGMENTS = 4096
"""Segments of one charge: a card lists them all."""

LONGEST_NAME = 200
"""Characters of the name of a segment."""

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of characters that end a line, or change how text around them is shown."""


def is_visible_line(text: str) -> bool:
    """Return whether text is one line that no hidden character changes, and not blank."""
    return bool(text.strip()) and not any(category(character) in HIDDEN for character in text)


def is_name(text: str) -> bool:
    """Return whether text can name a segment, in one spelling only."""
    is_trimmed = text == text.strip() and len(text) <= LONGEST_NAME
    return is_trimmed and is_normalized("NFC", text) and is_visible_line(text)


Name = Annotated[
    str,
    Limit(
        is_name, f"one line of 1 to {LONGEST_NAME} characters in Unicode's form NFC, without blanks at its ends"
    ),
]


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments of the rows whose labels a charge pays for.

    Attributes
    ----------
    names : tuple of str
        Each once, sorted by code point.
    partition : str or None
        The name of the segmentation, such as the column that has the segments.
    checked : bool
        Whether ids showed that none of these rows was charged in another segment with ids. Else the owner
        declares so.

    Examples
    --------
    >>> Segments.of(["2026-11-19", "2026-11-18", "2026-11-19"]).names
    ('2026-11-18', '2026-11-19')
    """

    names: Annotated[tuple[Name, ...], at_most(MAX_SEGMENTS)]
    partition: Name | None = optional()
    checked: bool = False

    def __post_init__(self) -> None:
        """Refuse names that are not sorted and distinct."""
        if not self.names or list(self.names) != sorted(set(self.names)):
            raise ParameterError("segments must be a list of at least one name, each once and sorted")

    @classmethod
    def of(cls, names: Iterable[str], partition: str | None = None) -> Segments:
        """Return the segments with these names, in any order."""
        return cls(tuple(sorted(set(names))), partition)

    def __str__(self) -> str:
        return list_first(self.names, 3)
