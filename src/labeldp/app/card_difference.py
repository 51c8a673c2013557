"""What differs between two cards, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labeldp.accounts.reading import ReadCard

Difference = tuple[str, Any, Any]

MOST_ITEMS = 8
"""A list that is longer is compared as a whole."""


def differences(one: ReadCard, other: ReadCard) -> list[Difference]:
    """Return the fields in which two cards differ, with what each says; None where one lacks the field.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import read_any_card
    >>> cards = [read_any_card(ldp.TwoPoint(bounds=(0, high), epsilon=1.0).to_json()) for high in (5, 6)]
    >>> ("parameters.bounds[1]", 5.0, 6.0) in differences(*cards)
    True
    """
    return list(_walk("", one.content, other.content))


def _walk(path: str, one: Any, other: Any) -> Iterator[Difference]:
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            yield from _walk(f"{path}.{name}".removeprefix("."), one.get(name), other.get(name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other) <= MOST_ITEMS:
        for k, pair in enumerate(zip(one, other, strict=True)):
            yield from _walk(f"{path}[{k}]", *pair)
    else:
        yield path, one, other
