"""Cards as text: JSON that begins with a checksum of its own text; the same content gives the same bytes.

A card is ``{"checksum":"sha256:H",`` and the rest of its text, of which H is the hash, so that no language has to
write the JSON again to check it. The checksum finds damage; against a forger, who can compute checksums too, the
proof is what counts.
"""

from __future__ import annotations

import hashlib
import json
import math
from itertools import chain
from typing import Any, NoReturn

from labeldp._values import Data
from labeldp.errors import CardError, UncheckableError
from labeldp.mechanisms.typed_data import canonical

SCHEMA = "labeldp.mechanism"
VERSION = 1
LENGTH_HEAD = 86
"""Characters of a card before the text that its checksum is of."""
MAX_TEXT = 1 << 23
"""Longer cards are refused unread: JSON can take 50 times its text in memory. The largest table takes 3 MB."""


UNPUBLISHED = range(2, 5)
"""Versions of cards, ledgers and models that were written before 0.5.0."""
MAX_DEPTH = 32
"""Objects and lists within each other; a card of this library has 10 at most."""


def dump(content: Data, schema: str = SCHEMA) -> str:
    """Return the card's text: ``content`` with schema, version and checksum."""
    text = canonical({"schema": schema, "version": VERSION, **content})[1:]
    return _head(text) + text


def _head(text: str) -> str:
    """Return the beginning of a card, by the rest of its text."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f'{{"checksum":"sha256:{digest}",'


def _no_constants(_: str) -> NoReturn:
    raise CardError("the card contains a number that is not finite")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_constants(text)


def _integer(text: str) -> int:
    _finite(text)
    return int(text)


def _no_repeats(pairs: list[tuple[str, Any]]) -> Data:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise CardError("the card contains a key twice")
    return content


def require_version(name: str, version: object, supported: int = VERSION) -> None:
    """Refuse a file of another version: it may be sound, and nothing here can tell.

    Examples
    --------
    >>> require_version("the card", 4)
    Traceback (most recent call last):
    ...
    labeldp.errors.UncheckableError: the card was written by a version of labeldp that was never published (4): ...
    """
    if type(version) is not int or version < 1:
        raise CardError(f"{name} has no version: it was not written by labeldp")
    if version in UNPUBLISHED:
        raise UncheckableError(
            f"{name} was written by a version of labeldp that was never published ({version}): write it again"
        )
    if version != supported:
        raise UncheckableError(f"{name} was written by a newer version of labeldp ({version}): update labeldp")


def _require_shallow(content: Any) -> None:
    """Refuse data with too many objects and lists within each other, without recursion."""
    level = [content]
    for _ in range(MAX_DEPTH):
        inner = [
            value.values() if isinstance(value, dict) else value
            for value in level
            if isinstance(value, dict | list)
        ]
        level = list(chain.from_iterable(inner))
        if not level:
            return
    raise CardError(f"the card has more than {MAX_DEPTH} objects and lists within each other")


def parse(text: str, *schemas: str) -> Data:
    """Return the content of a card whose version and checksum are right, and whose schema is one of these.

    Without any schema it must be a card of a mechanism. One of a later version is an `UncheckableError`.
    """
    if not isinstance(text, str):
        raise CardError("a card is text: pass what to_json() returned, or the content of its file")
    if len(text) > MAX_TEXT:
        raise CardError(f"the card is longer than {MAX_TEXT} characters")
    if not text.isascii():
        raise CardError("the card has characters beyond ASCII, which a card writes with a backslash")
    numbers: Any = {"parse_int": _integer, "parse_float": _finite, "parse_constant": _no_constants}
    try:
        content = json.loads(text, object_pairs_hook=_no_repeats, **numbers)
    except CardError:
        raise
    except (ValueError, RecursionError):
        raise CardError("this is not a card: it is not valid JSON") from None
    _require_shallow(content)
    expected = schemas or (SCHEMA,)
    if not isinstance(content, dict) or content.get("schema") not in expected:
        raise CardError(f"this is another kind of card, or none: its schema is not {' or '.join(expected)}")
    require_version("the card", content.get("version"))
    text = text.strip()
    if text[:LENGTH_HEAD] != _head(text[LENGTH_HEAD:]):
        raise CardError("the card was changed after it was written: its checksum does not fit")
    del content["checksum"]
    return content
