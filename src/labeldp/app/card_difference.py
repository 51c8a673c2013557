"""What differs between two cards, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import zip_longest
from typing import Any

from labeldp.accounts.budget import rounded_up
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


_ALWAYS = (
    *("channel", "origin", "proof", "mechanisms.channel", "mechanisms.origin", "mechanisms.proof", "guarantee"),
    *("charges.when", "charges.mechanism", "file.sha256", "files"),
)
"""Fields of times and checksums, and what follows from others and from noise."""


def always_differs(name: str, one: ReadCard, other: ReadCard) -> bool:
    """Whether a field differs between any two releases; a prior does if it is private.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.accounts import read_any_card
    >>> card = read_any_card(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json())
    >>> always_differs("charges[1].when", card, card), always_differs("priors[0].masses[1]", card, card)
    (True, False)
    """
    field = re.sub(r"\[[0-9]+\]", "", name)
    private = [prior for card in (one, other) for prior in card.terms.priors if prior and prior.origin]
    return f"{field}.".startswith(tuple(f"{each}." for each in (*_ALWAYS, *["priors"] * bool(private))))


_WORDS = {
    r"bounds(\[0\])?\[0\]$": "lower bound",
    r"bounds(\[0\])?\[1\]$": "upper bound",
    r"\b(budget\[0\]|epsilon)$": "ε",
    r"\b(budget\[1\]|delta)$": "δ",
    r"\bparameters\.": "",
    r"\bmasses\b": "share of bins",
}
"""Parts of a field's name, and what readers call them."""


def readable(line: Difference) -> Difference:
    """Return a difference with a name and amounts for people.

    Examples
    --------
    >>> readable(("mechanisms[0].parameters.bounds[1]", 5.0, 6.0))
    ('mechanism 1: upper bound', 5.0, 6.0)
    >>> readable(("charges[1].budget[0]", "3/10", "3/20"))
    ('charge 2: ε', '0.3', '0.15')
    """
    name, one, other = line
    if re.search(r"^charges.*\.budget\[", name):
        one, other = (rounded_up(Fraction(amount)) for amount in (one, other))
    for pattern, word in _WORDS.items():
        name = re.sub(pattern, word, name)
    name = re.sub(r"s\[([0-9]+)\]", lambda found: f" {int(found[1]) + 1}", name)
    return name.replace(".", ": "), _plain(one), _plain(other)


def _plain(value: Any) -> Any:
    """Return lists, and fields by their names, as text; of a charge, what it was for and its cost."""
    if isinstance(value, dict) and {"what", "budget"} <= value.keys():
        return f"{value['what']}, ε = {rounded_up(Fraction(value['budget'][0]))}"
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_plain(item)}" for name, item in value.items())
    return ", ".join(str(_plain(item)) for item in value) if isinstance(value, list) else value


def _are_comparable(one: list[Any], other: list[Any]) -> bool:
    """Whether to compare lists item by item: short ones of one length, or of items with fields."""
    same_length = len(one) == len(other) or all(isinstance(item, dict) for item in (*one, *other))
    return same_length and max(len(one), len(other)) <= MOST_ITEMS


def _walk(path: str, one: Any, other: Any) -> Iterator[Difference]:
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            yield from _walk(f"{path}.{name}".removeprefix("."), one.get(name), other.get(name))
    elif isinstance(one, list) and isinstance(other, list) and _are_comparable(one, other):
        for k, pair in enumerate(zip_longest(one, other)):
            yield from _walk(f"{path}[{k}]", *pair)
    else:
        yield path, one, other
