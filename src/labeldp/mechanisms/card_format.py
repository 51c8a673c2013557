"""Cards as text: canonical JSON with a schema, a version and a checksum; the same content gives the same bytes.

The checksum finds damage; against a forger, who can compute checksums too, the proof is what counts.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, NoReturn

from labeldp._values import Data
from labeldp.errors import CardError, UncheckableError
from labeldp.mechanisms.typed_data import canonical

SCHEMA = "labeldp.mechanism"
VERSION, OLDEST = 4, 2
MAX_TEXT = 1 << 23
"""Longer cards are refused unread: JSON can take 50 times its text in memory. The largest table takes 3 MB."""


def _checksum(content: Data) -> str:
    return "sha256:" + hashlib.sha256(canonical(content).encode()).hexdigest()


def dump(content: Data, schema: str = SCHEMA) -> str:
    """Return the card's text: ``content`` with schema, version and checksum."""
    content = {"schema": schema, "version": VERSION, **content}
    return canonical({**content, "checksum": _checksum(content)})


def _no_constants(_: str) -> NoReturn:
    raise CardError("the card contains a number that is not finite")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_constants(text)


def _no_repeats(pairs: list[tuple[str, Any]]) -> Data:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise CardError("the card contains a key twice")
    return content


def require_version(what: str, version: object, known: int, oldest: int | None = None) -> None:
    """Refuse a version that is not read here; a later one by name, because it may well be sound."""
    if type(version) is int and (known if oldest is None else oldest) <= version <= known:
        return
    if type(version) is int and version > known:
        raise UncheckableError(
            f"{what} has version {version}, which a newer labeldp wrote; this one reads version {known}: update "
            "labeldp"
        )
    raise CardError(f"{what} has version {version!r}; this labeldp reads version {known}")


def parse(text: str, *schemas: str) -> Data:
    """Return the content of a card whose version and checksum are right, and whose schema is one of these.

    Without any schema it must be a card of a mechanism. One of a later version is an `UncheckableError`.
    """
    if not isinstance(text, str):
        raise CardError("a card is text: pass what to_json() returned, or the content of its file")
    if len(text) > MAX_TEXT:
        raise CardError(f"the card is longer than {MAX_TEXT} characters")
    try:
        content = json.loads(
            text, parse_float=_finite, parse_constant=_no_constants, object_pairs_hook=_no_repeats
        )
    except CardError:
        raise
    except (ValueError, RecursionError):
        raise CardError("this is not a card: it is not valid JSON") from None
    expected = schemas or (SCHEMA,)
    if not isinstance(content, dict) or content.get("schema") not in expected:
        raise CardError(f"this is another kind of card, or none: its schema is not {' or '.join(expected)}")
    require_version("the card", content.get("version"), VERSION, OLDEST)
    checksum = content.pop("checksum", None)
    if checksum != _checksum(content):
        raise CardError("the card was changed after it was written: its checksum does not fit")
    return content
